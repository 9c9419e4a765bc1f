//! The order of rows in a text: where it depends on what is named first, that is named first.

use sieva_plan::{ColumnId, ColumnKind, Expr as PlanExpr, Plan, Step};

use crate::ast::{Expr, Literal, Select};
use crate::bind::order_of;

/// So many columns are tried as the first.
const MOST: usize = 64;

/// A condition that is true of all rows and names a column.
pub(super) fn always(column: &Expr) -> Expr {
    let missing = Expr::IsNull { expr: Box::new(column.clone()), negated: false };
    Expr::or([missing, Expr::Literal(Literal::Bool(true))])
}

/// Makes the text of `select` name first what gives the rows the order of the plan's. `asked` tells which columns of the
/// scan the plan's expressions name; the others stand at the end of WHERE.
pub(super) fn keep(plan: &Plan, asked: &[bool], columns: &[Expr], select: &mut Select) {
    let scanned: Vec<usize> = (0..plan.scan.columns.len().min(MOST)).collect();
    let named = mentions(plan, asked);
    let is_kept = |first: &[usize]| rows(plan, first.iter().chain(&named).copied()).is_sorted();
    let one = || scanned.iter().map(|&a| vec![a]);
    let two = || scanned.iter().flat_map(|&a| scanned.iter().map(move |&b| vec![a, b]));
    let candidates = std::iter::once(Vec::new()).chain(one()).chain(two());
    let first = candidates.into_iter().find(|first| is_kept(first)).unwrap_or_default();
    if !first.is_empty() {
        let first = first.into_iter().map(|c| always(&columns[c]));
        select.condition = Some(Expr::and(first.chain(select.condition.take())));
    }
}

/// Makes the text name the arrays of a collection in the order of the plan's columns: the first says what the objects are.
pub(super) fn keep_objects(plan: &Plan, columns: &[Expr], select: &mut Select) {
    let mut named = Vec::new();
    let of = |wanted: &dyn Fn(&Step) -> bool| plan.steps.iter().find(|s| wanted(s));
    if let Some(Step::Filter(e)) = of(&|s| matches!(s, Step::Filter(_))) {
        walk(plan, e, &mut named);
    }
    plan.outputs().iter().for_each(|o| walk(plan, &o.value, &mut named));
    if let Some(Step::Having(e)) = of(&|s| matches!(s, Step::Having(_))) {
        walk(plan, e, &mut named);
    }
    if let Some(Step::Sort(keys)) = of(&|s| matches!(s, Step::Sort(_))) {
        keys.iter().for_each(|k| walk(plan, &k.value, &mut named));
    }
    if let Some(Step::Aggregate { keys, .. }) = of(&|s| matches!(s, Step::Aggregate { .. })) {
        keys.iter().for_each(|k| walk(plan, k, &mut named));
    }
    let scanned = &plan.scan.columns;
    let is_array = |c: &usize| scanned.get(*c).is_some_and(|c| !c.kind.is_of_object());
    let mut first = Vec::new();
    named.into_iter().filter(is_array).for_each(|c| {
        if !first.contains(&c) {
            first.push(c);
        }
    });
    let arrays: Vec<usize> = (0..scanned.len()).filter(is_array).collect();
    if first != arrays {
        let all = arrays.into_iter().map(|c| always(&columns[c]));
        select.condition = Some(Expr::and(all.chain(select.condition.take())));
    }
}

/// The rows' dimensions, as places in the plan's, of columns that are named in this order.
fn rows(plan: &Plan, named: impl Iterator<Item = usize>) -> Vec<usize> {
    let place = |dim: &String| plan.scan.rows.iter().position(|d| d == dim).unwrap_or(usize::MAX);
    let (mut arrays, mut alone) = (Vec::new(), Vec::new());
    for column in named.map(|c| &plan.scan.columns[c]) {
        let list = if column.kind == ColumnKind::Position { &mut alone } else { &mut arrays };
        list.push(column.dims.iter().map(place).collect::<Vec<usize>>());
    }
    order_of(&[], &arrays, &alone)
}

/// The columns of the scan in the order in which the text names them.
fn mentions(plan: &Plan, asked: &[bool]) -> Vec<usize> {
    let mut named = Vec::new();
    let of = |wanted: &dyn Fn(&Step) -> bool| plan.steps.iter().find(|s| wanted(s));
    if let Some(Step::Filter(e)) = of(&|s| matches!(s, Step::Filter(_))) {
        walk(plan, e, &mut named);
    }
    named.extend((0..asked.len().min(plan.scan.columns.len())).filter(|&c| !asked[c]));
    if let Some(Step::Aggregate { keys, .. }) = of(&|s| matches!(s, Step::Aggregate { .. })) {
        keys.iter().for_each(|k| walk(plan, k, &mut named));
    }
    plan.outputs().iter().for_each(|o| walk(plan, &o.value, &mut named));
    if let Some(Step::Having(e)) = of(&|s| matches!(s, Step::Having(_))) {
        walk(plan, e, &mut named);
    }
    if let Some(Step::Sort(keys)) = of(&|s| matches!(s, Step::Sort(_))) {
        keys.iter().for_each(|k| walk(plan, &k.value, &mut named));
    }
    named
}

/// Adds the columns of the scan that an expression names; of a group's, those of its key or of what is aggregated.
fn walk(plan: &Plan, e: &PlanExpr, named: &mut Vec<usize>) {
    if let PlanExpr::Column(ColumnId(id)) = e {
        match (*id as usize).checked_sub(plan.scan.columns.len()) {
            None => named.push(*id as usize),
            Some(group) => of_group(plan, group, named),
        }
    }
    e.children().into_iter().for_each(|c| walk(plan, c, named));
}

fn of_group(plan: &Plan, group: usize, named: &mut Vec<usize>) {
    for step in &plan.steps {
        if let Step::Aggregate { keys, calls } = step {
            let argument = || calls.get(group - keys.len()).and_then(|c| c.argument.as_ref());
            let of = if group < keys.len() { keys.get(group) } else { argument() };
            of.into_iter().for_each(|e| walk(plan, e, named));
        }
    }
}
