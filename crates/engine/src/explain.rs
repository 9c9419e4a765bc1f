//! EXPLAIN: the plan as a tree of text or JSON, with what happened if the query was run.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use sieva_query::exec::Plan;
use sieva_types::Result;

use crate::query::Query;
use crate::stats::QueryStats;

impl Query {
    /// The plan in text; `analyze` runs the query and adds what happened.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn explain(&self, analyze: bool) -> Result<String> {
        let plan = self.plan()?;
        let mut out = text(&plan);
        if analyze {
            let rows = self.count()?;
            analysis(&mut out, rows, &self.stats());
        }
        Ok(out)
    }

    /// The plan as JSON text.
    ///
    /// # Errors
    /// As [`Query::explain`].
    pub fn explain_json(&self, analyze: bool) -> Result<String> {
        let plan = self.plan()?;
        let condition: Vec<Json> =
            plan.condition.iter().map(|(depth, text)| json!({"depth": depth, "text": text})).collect();
        let library: Vec<Json> =
            plan.by_library.iter().map(|(a, why)| json!({"array": a, "reason": why})).collect();
        let mut out = json!({
            "rows": plan.rows.iter().map(|(n, l)| json!({"dimension": n, "length": l})).collect::<Vec<_>>(),
            "area": {"start": plan.area.start, "shape": plan.area.shape},
            "tiles": plan.tiles,
            "tile_shape": plan.tile_shape,
            "estimate": {"low": plan.estimate.0, "high": plan.estimate.1},
            "condition": condition,
            "output": plan.output,
            "read_by_library": library,
        });
        if analyze {
            let rows = self.count()?;
            out["analyze"] = stats_json(rows, &self.stats());
        }
        Ok(out.to_string())
    }
}

fn text(plan: &Plan) -> String {
    let mut out = String::new();
    let shown = |names: &[(String, u64)]| {
        names.iter().map(|(n, l)| format!("{n} = {l}")).collect::<Vec<_>>().join(", ")
    };
    let all: u64 = plan.rows.iter().map(|(_, n)| n).product();
    let _ = writeln!(out, "rows       ({}): {all} positions", shown(&plan.rows));
    let ranges: Vec<String> = plan
        .rows
        .iter()
        .enumerate()
        .map(|(d, (name, n))| match (plan.area.start[d], plan.area.end(d)) {
            (0, end) if end == *n => format!("{name}[:]"),
            (start, end) => format!("{name}[{start}:{end}]"),
        })
        .collect();
    let _ = writeln!(
        out,
        "area       {}: {} positions in {} tiles of {:?}",
        ranges.join(" "),
        plan.area.len(),
        plan.tiles,
        plan.tile_shape
    );
    let _ = writeln!(out, "estimate   {} to {} hits", plan.estimate.0, plan.estimate.1);
    for (i, (depth, line)) in plan.condition.iter().enumerate() {
        let head = if i == 0 { "condition" } else { "" };
        let _ = writeln!(out, "{head:<10} {}{line}", "  ".repeat(*depth));
    }
    let _ = writeln!(out, "output     {}", plan.output);
    for (array, why) in &plan.by_library {
        let _ = writeln!(out, "note       '{array}' is read through the format's library: {why}");
    }
    out
}

fn analysis(out: &mut String, rows: u64, s: &QueryStats) {
    let _ = writeln!(
        out,
        "analyzed   {rows} rows; {} tiles scanned, {} decided without reading",
        s.exec.tiles_scanned, s.exec.tiles_skipped
    );
    let _ = writeln!(
        out,
        "           {} bytes in {} requests, {} chunks decoded, {} library reads",
        s.io.bytes_read, s.io.requests, s.io.chunks_decoded, s.io.library_reads
    );
    let _ = writeln!(
        out,
        "           open {:.6} s, bind {:.6} s, select {:.6} s, fetch {:.6} s",
        s.open_seconds, s.bind_seconds, s.select_seconds, s.fetch_seconds
    );
}

fn stats_json(rows: u64, s: &QueryStats) -> Json {
    json!({
        "rows": rows,
        "tiles_scanned": s.exec.tiles_scanned,
        "tiles_skipped": s.exec.tiles_skipped,
        "bytes_read": s.io.bytes_read,
        "requests": s.io.requests,
        "chunks_decoded": s.io.chunks_decoded,
        "library_reads": s.io.library_reads,
        "seconds": {"open": s.open_seconds, "bind": s.bind_seconds, "select": s.select_seconds, "fetch": s.fetch_seconds},
    })
}
