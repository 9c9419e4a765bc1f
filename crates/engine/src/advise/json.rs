//! Advice and what was done as JSON, as the command line prints it.

use serde_json::{Value as Json, json};

use super::{Advice, Done, Item, name_of};

impl Advice {
    /// As JSON text.
    pub fn to_json(&self) -> String {
        let skipped: Vec<Json> =
            self.skipped.iter().map(|(what, why)| json!({"what": what, "why": why})).collect();
        json!({
            "items": self.items.iter().map(Item::json).collect::<Vec<_>>(),
            "budget": self.budget,
            "bytes_now": self.bytes_now,
            "bytes_then": self.bytes_then,
            "saves_seconds": self.saves,
            "bound_seconds": self.bound,
            "uses": self.uses,
            "skipped": skipped,
        })
        .to_string()
    }
}

impl Item {
    fn json(&self) -> Json {
        json!({
            "source": self.location,
            "array": self.path,
            "kind": name_of(self.kind),
            "columns": self.columns,
            "verdict": self.verdict.name(),
            "saves_seconds": self.saves,
            "bytes": self.bytes,
            "bytes_now": self.bytes_now,
            "build_seconds": self.build_seconds,
            "uses": self.uses,
            "stale": self.stale,
            "why": self.why,
        })
    }
}

impl Done {
    /// As JSON text.
    pub fn to_json(&self) -> String {
        json!({
            "source": self.location,
            "array": self.path,
            "kind": name_of(self.kind),
            "what": self.what,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "error": self.error,
        })
        .to_string()
    }
}
