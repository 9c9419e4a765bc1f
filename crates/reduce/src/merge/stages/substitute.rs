//! Puts values in place of subqueries.

use sieva_plan::{Call, Expr, Output, Plan, SortKey, Step};
use sieva_types::Result;

use super::Value;

/// Gives the value of a subquery.
type ValueOf<'a> = &'a mut dyn FnMut(&Plan) -> Result<Value>;

/// A plan with a value in place of each of its subqueries, which is asked for it whole: what it has inside is not
/// looked at. The plan means what it meant, to the types and bits of its columns; of what it asks it is not the same
/// plan, and its id is another one.
///
/// # Errors
/// `invalid-value` for what is no plan; those of `value_of`.
pub fn substitute(plan: &Plan, value_of: ValueOf<'_>) -> Result<Plan> {
    plan.check()?;
    let steps = plan.steps.iter().map(|s| step(s, value_of)).collect::<Result<_>>()?;
    Ok(Plan { scan: plan.scan.clone(), steps })
}

fn step(step: &Step, value_of: ValueOf<'_>) -> Result<Step> {
    let mut put = |e: &Expr| expr(e, false, value_of);
    Ok(match step {
        Step::Filter(e) => Step::Filter(put(e)?),
        Step::Having(e) => Step::Having(put(e)?),
        Step::Aggregate { keys, calls } => {
            let keys = keys.iter().map(&mut put).collect::<Result<_>>()?;
            let call =
                |c: &Call| Ok(Call { argument: c.argument.as_ref().map(&mut put).transpose()?, ..c.clone() });
            Step::Aggregate { keys, calls: calls.iter().map(call).collect::<Result<_>>()? }
        }
        Step::Sort(keys) => {
            let key = |k: &SortKey| Ok(SortKey { value: put(&k.value)?, ..*k });
            Step::Sort(keys.iter().map(key).collect::<Result<_>>()?)
        }
        Step::Project(outputs) => {
            let output = |o: &Output| Ok(Output { name: o.name.clone(), value: put(&o.value)? });
            Step::Project(outputs.iter().map(output).collect::<Result<_>>()?)
        }
        Step::Distinct | Step::Limit { .. } => step.clone(),
    })
}

/// An expression; `compared`: whether it is a side of a comparison.
fn expr(e: &Expr, compared: bool, value_of: ValueOf<'_>) -> Result<Expr> {
    let mut boxed = |e: &Expr, compared: bool| expr(e, compared, value_of).map(Box::new);
    Ok(match e {
        Expr::Literal(_) | Expr::Column(_) => e.clone(),
        Expr::Negate(a) => Expr::Negate(boxed(a, false)?),
        Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(a, false)?, boxed(b, false)?),
        Expr::Compare(op, a, b) => Expr::Compare(*op, boxed(a, true)?, boxed(b, true)?),
        Expr::In(a, list) => Expr::In(boxed(a, false)?, list.clone()),
        Expr::IsNull(a) => Expr::IsNull(boxed(a, false)?),
        Expr::Like(a, pattern) => Expr::Like(boxed(a, false)?, pattern.clone()),
        Expr::Not(a) => Expr::Not(boxed(a, false)?),
        Expr::And(parts) => Expr::And(each(parts, value_of)?),
        Expr::Or(parts) => Expr::Or(each(parts, value_of)?),
        Expr::Call(function, parts) => Expr::Call(function.clone(), each(parts, value_of)?),
        Expr::Subquery(plan) => {
            let value = value_of(plan)?;
            if compared { value.compared() } else { value.typed() }
        }
    })
}

fn each(parts: &[Expr], value_of: ValueOf<'_>) -> Result<Vec<Expr>> {
    parts.iter().map(|p| expr(p, false, value_of)).collect()
}
