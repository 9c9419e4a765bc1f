//! One way to write a question: equal questions get equal plans.
//!
//! What may change is how a question is put, never what it means, NULL and overflow included: a value that cannot be
//! represented is an error only where the answer depends on it, whatever is looked at first, so that the parts of a
//! junction may stand in any order. Nothing is re-associated: sums of floats depend on it.

use std::collections::BTreeMap;

use crate::expr::{BinaryOp, ColumnId, CompareOp, Expr, Literal};
use crate::plan::{Call, Column, Plan, Scan, SortKey, SourceRef, Step};

impl Plan {
    /// The same question in its one form: columns in order and each once; NOT at the comparisons; junctions flat,
    /// in order, without repetitions; literals to the right, and numbers that are compared written in one way; equalities
    /// with one value as one list; aggregates in order and each once; steps left out that do nothing.
    #[must_use]
    pub fn canonical(&self) -> Self {
        let (scan, places) = scan(&self.scan);
        let columns = u32::try_from(self.scan.columns.len()).unwrap_or(u32::MAX);
        let kept = u32::try_from(scan.columns.len()).unwrap_or(u32::MAX);
        let mut ids = Ids { places, columns, kept, groups: Vec::new() };
        let steps = self.steps.iter().filter_map(|s| step(s, &mut ids)).collect();
        Self { scan, steps }
    }
}

impl Expr {
    /// The same expression in its one form, of the same columns.
    #[must_use]
    pub fn canonical(&self) -> Self {
        expr(self.clone(), false)
    }
}

impl Call {
    /// The same call in its one form, of the same columns.
    #[must_use]
    pub fn canonical(&self) -> Self {
        Self { argument: self.argument.as_ref().map(Expr::canonical), ..self.clone() }
    }
}

/// The new numbers of columns.
struct Ids {
    /// Of those of the scan.
    places: Vec<u32>,
    /// How many the scan had, and has.
    columns: u32,
    kept: u32,
    /// Of those of the aggregation.
    groups: Vec<u32>,
}

impl Ids {
    fn new_id(&self, ColumnId(old): ColumnId) -> ColumnId {
        let new = match old.checked_sub(self.columns) {
            None => self.places.get(old as usize).copied(),
            Some(group) => self.groups.get(group as usize).map(|g| self.kept + g),
        };
        ColumnId(new.unwrap_or(u32::MAX))
    }

    fn expr(&self, e: &Expr) -> Expr {
        expr(e.clone().map_columns(&|id| self.new_id(id)), false)
    }
}

fn scan(scan: &Scan) -> (Scan, Vec<u32>) {
    let mut new = scan.clone();
    if let SourceRef::Collection(_) = scan.source {
        // The array that is named first says what the objects are: the order of arrays stays.
        let (mut arrays, mut keys) = (Vec::new(), Vec::new());
        for column in new.columns.drain(..) {
            let list = if column.kind.is_of_object() { &mut keys } else { &mut arrays };
            if !list.contains(&column) {
                list.push(column);
            }
        }
        keys.sort_unstable();
        arrays.append(&mut keys);
        new.columns = arrays;
    } else {
        new.columns.sort_unstable();
        new.columns.dedup();
    }
    let numbers: BTreeMap<&Column, u32> = new.columns.iter().zip(0..).collect();
    let place = |c| numbers.get(c).copied().unwrap_or(u32::MAX);
    let places = scan.columns.iter().map(place).collect();
    drop(numbers);
    (new, places)
}

/// A step in its one form; none if it does nothing.
fn step(step: &Step, ids: &mut Ids) -> Option<Step> {
    Some(match step {
        Step::Filter(e) => Step::Filter(condition(ids.expr(e))?),
        Step::Having(e) => Step::Having(condition(ids.expr(e))?),
        Step::Aggregate { keys, calls } => aggregate(keys, calls, ids),
        Step::Sort(keys) => {
            let mut kept: Vec<SortKey> = Vec::new();
            for key in keys {
                let key = SortKey { value: ids.expr(&key.value), ..*key };
                // Rows that are equal by a value stay equal by it.
                if !kept.iter().any(|k| k.value == key.value) {
                    kept.push(key);
                }
            }
            kept.retain(|k| !matches!(k.value, Expr::Literal(_)));
            (!kept.is_empty()).then_some(Step::Sort(kept))?
        }
        Step::Project(outputs) => {
            let mut outputs = outputs.clone();
            outputs.iter_mut().for_each(|o| o.value = ids.expr(&o.value));
            Step::Project(outputs)
        }
        Step::Limit { count: None, offset: 0 } => return None,
        Step::Distinct | Step::Limit { .. } => step.clone(),
    })
}

/// What rows are kept by: none if all are. Where it is missing, a row is not kept.
fn condition(e: Expr) -> Option<Expr> {
    match e {
        Expr::Literal(Literal::Bool(true)) => None,
        Expr::Literal(Literal::Null) => Some(Expr::Literal(Literal::Bool(false))),
        other => Some(other),
    }
}

fn aggregate(keys: &[Expr], calls: &[Call], ids: &mut Ids) -> Step {
    let mut new_keys: Vec<Expr> = Vec::new();
    let mut groups = Vec::with_capacity(keys.len() + calls.len());
    for key in keys {
        let key = ids.expr(key);
        let known = new_keys.iter().position(|k| *k == key);
        groups.push(known.unwrap_or(new_keys.len()) as u32);
        if known.is_none() {
            new_keys.push(key);
        }
    }
    let each = |c: &Call| Call { argument: c.argument.as_ref().map(|a| ids.expr(a)), ..c.clone() };
    let canonical: Vec<Call> = calls.iter().map(each).collect();
    let mut sorted = canonical.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let place = |c| new_keys.len() as u32 + sorted.binary_search(c).map_or(u32::MAX / 2, |i| i as u32);
    groups.extend(canonical.iter().map(place));
    ids.groups = groups;
    Step::Aggregate { keys: new_keys, calls: sorted }
}

/// An expression, or its opposite, in its one form.
fn expr(e: Expr, negated: bool) -> Expr {
    let boxed = |e: Box<Expr>| Box::new(expr(*e, false));
    let each = |parts: Vec<Expr>| parts.into_iter().map(|p| expr(p, false)).collect();
    match e {
        Expr::Literal(Literal::Bool(b)) => Expr::Literal(Literal::Bool(b != negated)),
        Expr::Literal(Literal::Null) => Expr::Literal(Literal::Null),
        Expr::Not(inner) => expr(*inner, !negated),
        Expr::And(parts) => junction(parts, negated, !negated),
        Expr::Or(parts) => junction(parts, negated, negated),
        Expr::Compare(op, a, b) => {
            compare(if negated { op.negated() } else { op }, expr(*a, false), expr(*b, false))
        }
        Expr::In(a, list) => one_of(expr(*a, false), list, negated),
        Expr::Literal(_) | Expr::Column(_) => opposite_if(negated, e),
        Expr::Negate(a) => opposite_if(negated, Expr::Negate(boxed(a))),
        Expr::IsNull(a) => opposite_if(negated, Expr::IsNull(boxed(a))),
        Expr::Like(a, pattern) => opposite_if(negated, Expr::Like(boxed(a), pattern)),
        Expr::Call(function, args) => opposite_if(negated, Expr::Call(function, each(args))),
        Expr::Subquery(plan) => opposite_if(negated, Expr::Subquery(Box::new(plan.canonical()))),
        Expr::Binary(op, a, b) => {
            let (mut a, mut b) = (boxed(a), boxed(b));
            if matches!(op, BinaryOp::Add | BinaryOp::Mul) && b < a {
                std::mem::swap(&mut a, &mut b);
            }
            opposite_if(negated, Expr::Binary(op, a, b))
        }
    }
}

fn is_literal(e: &Expr) -> bool {
    matches!(e, Expr::Literal(_))
}

fn opposite_if(negated: bool, e: Expr) -> Expr {
    if negated { Expr::not(e) } else { e }
}

fn compare(op: CompareOp, a: Expr, b: Expr) -> Expr {
    let number = |e| if let Expr::Literal(l) = e { Expr::Literal(l.compared()) } else { e };
    let (a, b) = (number(a), number(b));
    let is_null = |e: &Expr| matches!(e, Expr::Literal(Literal::Null));
    if is_null(&a) || is_null(&b) {
        return Expr::Literal(Literal::Null);
    }
    if let (Expr::Literal(x), Expr::Literal(y)) = (&a, &b)
        && let Some(order) = x.order(y)
    {
        return Expr::Literal(Literal::Bool(op.holds(order)));
    }
    // Of a value and itself the first of the two that say the same.
    let swap = match (is_literal(&a), is_literal(&b)) {
        (x, y) if x == y => (&b, op.mirrored()) < (&a, op),
        (is_left, _) => is_left,
    };
    if swap { Expr::compare(op.mirrored(), b, a) } else { Expr::compare(op, a, b) }
}

fn one_of(a: Expr, list: Vec<Literal>, negated: bool) -> Expr {
    if let Expr::Literal(_) = a {
        let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
        let each = list.into_iter().map(|l| Expr::compare(op, a.clone(), Expr::Literal(l)));
        return junction(each.collect(), false, negated);
    }
    let mut list: Vec<Literal> = list.into_iter().map(Literal::compared).collect();
    list.sort_unstable();
    list.dedup();
    // NULL is the least.
    if list.first() == Some(&Literal::Null) {
        let rest = one_of(a, list.split_off(1), negated);
        return junction(vec![rest, Expr::Literal(Literal::Null)], false, negated);
    }
    match list.as_slice() {
        [] => Expr::Literal(Literal::Bool(negated)),
        [_] => {
            let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
            compare(op, a, Expr::Literal(list.swap_remove(0)))
        }
        _ => opposite_if(negated, Expr::In(Box::new(a), list)),
    }
}

/// All of `parts` (each negated, if so), or any of them.
fn junction(parts: Vec<Expr>, negated: bool, all: bool) -> Expr {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match (expr(part, negated), all) {
            (Expr::And(inner), true) | (Expr::Or(inner), false) => flat.extend(inner),
            // What changes nothing, and what decides.
            (Expr::Literal(Literal::Bool(b)), _) if b == all => {}
            (Expr::Literal(Literal::Bool(b)), _) => return Expr::Literal(Literal::Bool(b)),
            (other, _) => flat.push(other),
        }
    }
    let mut parts = listed(flat, all);
    parts.sort_unstable();
    parts.dedup();
    match parts.len() {
        0 => Expr::Literal(Literal::Bool(all)),
        1 => parts.swap_remove(0),
        _ if all => Expr::And(parts),
        _ => Expr::Or(parts),
    }
}

/// Makes one list of the literals that one value is to be equal to (in a conjunction: to be different from).
fn listed(parts: Vec<Expr>, all: bool) -> Vec<Expr> {
    let wanted = if all { CompareOp::NotEq } else { CompareOp::Eq };
    let mut lists: BTreeMap<Expr, Vec<Literal>> = BTreeMap::new();
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::Compare(op, a, b) if op == wanted && is_literal(&b) && !is_literal(&a) => {
                let Expr::Literal(l) = *b else { continue };
                lists.entry(*a).or_default().push(l);
            }
            Expr::In(a, list) if !all => lists.entry(*a).or_default().extend(list),
            Expr::Not(inner) if all => match *inner {
                Expr::In(a, list) => lists.entry(*a).or_default().extend(list),
                other => out.push(Expr::not(other)),
            },
            other => out.push(other),
        }
    }
    out.extend(lists.into_iter().map(|(a, list)| one_of(a, list, all)));
    out
}
