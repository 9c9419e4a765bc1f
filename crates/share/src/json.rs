//! What a pass would make, as JSON: for programs that are not written in Rust.

use serde_json::{Value, json};
use sieva::{Error, ErrorKind, Price, Result};

use crate::group::Group;
use crate::scan::{PlannedStep, PlannedUnit};

/// The plan of a pass as JSON: of each step its results, with the bounds of what they take, and what is refused. `null` is no bound.
#[must_use]
pub fn plan_json(planned: &[PlannedStep]) -> String {
    let steps: Vec<Value> = planned.iter().map(step).collect();
    Value::Array(steps).to_string()
}

fn step(planned: &PlannedStep) -> Value {
    let results: Vec<Value> = planned.units.iter().map(result).collect();
    let refused = planned.refused.iter().map(
        |(user, ask, e)| json!({"user": user, "ask": ask, "code": e.kind().code(), "message": e.message()}),
    );
    json!({
        "step": planned.step.name,
        "size": planned.step.size,
        "results": results,
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn result(unit: &PlannedUnit) -> Value {
    let given = unit.given.iter().map(|(format, who)| {
        let who: Vec<Value> = who.iter().map(|(user, ask)| json!({"user": user, "ask": ask})).collect();
        json!({"format": format, "for": who})
    });
    json!({
        "sql": unit.sql,
        "stage": unit.stage,
        "given": given.collect::<Vec<_>>(),
        "price": price(&unit.price),
    })
}

fn price(price: &Price) -> Value {
    let bounds = |low: u64, expected: u64, high: u64| json!({"low": low, "expected": expected, "high": (high != u64::MAX).then_some(high)});
    let of = |e: &sieva::Expected<u64>| bounds(e.low, e.expected, e.high);
    json!({
        "rows": of(&price.rows),
        "bytes_read": of(&price.bytes_read),
        "bytes_returned": of(&price.bytes_returned),
        "requests": of(&price.requests),
        "seconds": {"low": price.seconds.low, "expected": price.seconds.expected, "high": price.seconds.high},
    })
}

impl Group {
    /// What there is in the group, as JSON: [`Group::status`].
    ///
    /// # Errors
    /// Those of the store.
    pub fn status_json(&self) -> Result<String> {
        serde_json::to_string(&self.status()?).map_err(|e| unprintable(&e))
    }

    /// What producers have, as JSON: of each its name, sources, steps, and the schema of the newest; `null` before its first pass, and
    /// where what is kept is no schema.
    ///
    /// # Errors
    /// Those of the store.
    pub fn list_json(&self) -> Result<String> {
        let mut listed = Vec::new();
        for producer in self.status()?.producers {
            let text = self.schema(&producer.name)?;
            let schema: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
            let mut one = serde_json::to_value(&producer).map_err(|e| unprintable(&e))?;
            one["schema"] = schema.unwrap_or(Value::Null);
            listed.push(one);
        }
        Ok(Value::Array(listed).to_string())
    }
}

fn unprintable(e: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("as JSON: {e}"))
}
