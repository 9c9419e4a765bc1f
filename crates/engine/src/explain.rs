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
            analysis(&mut out, rows, plan.estimate, &self.stats());
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
            "foreseen": {"none": plan.foreseen[0], "all": plan.foreseen[1], "open": plan.foreseen[2]},
            "estimate": {"low": plan.estimate.0, "high": plan.estimate.1},
            "condition": condition,
            "output": plan.output,
            "read_by_library": library,
            "notes": plan.notes,
        });
        if analyze {
            let rows = self.count()?;
            out["analyze"] = stats_json(rows, &self.stats());
            out["analyze"]["estimate_held"] = json!(plan.estimate.0 <= rows && rows <= plan.estimate.1);
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
    let [none, whole, open] = plan.foreseen;
    let _ =
        writeln!(out, "foreseen   {none} tiles hold nothing, {whole} are selected wholly, {open} are open");
    let _ = writeln!(out, "estimate   {} to {} hits", plan.estimate.0, plan.estimate.1);
    for (i, (depth, line)) in plan.condition.iter().enumerate() {
        let head = if i == 0 { "condition" } else { "" };
        let _ = writeln!(out, "{head:<10} {}{line}", "  ".repeat(*depth));
    }
    let _ = writeln!(out, "output     {}", plan.output);
    for (array, why) in &plan.by_library {
        let _ = writeln!(out, "note       '{array}' is read by the format's own reader, box by box: {why}");
    }
    for note in &plan.notes {
        let _ = writeln!(out, "note       {note}");
    }
    out
}

fn analysis(out: &mut String, rows: u64, (low, high): (u64, u64), s: &QueryStats) {
    let did = &s.exec;
    let _ = writeln!(
        out,
        "analyzed   {rows} rows, estimated {low} to {high}; {} tiles scanned, {} decided without reading data",
        did.tiles_scanned, did.tiles_skipped
    );
    let _ = writeln!(
        out,
        "           conditions on tiles: {} by bitmap, {} by single elements, {} by scan; {} rows by sorted replica",
        did.by_bitmap, did.by_points, did.by_scan, did.by_replica
    );
    let _ = writeln!(
        out,
        "           {} bytes in {} requests, {} chunks decoded, {} library reads",
        s.io.bytes_read, s.io.requests, s.io.chunks_decoded, s.io.library_reads
    );
    let _ = writeln!(out, "           {} bytes of augmentations in {} requests", s.index.0, s.index.1);
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
        "tiles_taken": s.exec.tiles_taken,
        "by_bitmap": s.exec.by_bitmap,
        "by_points": s.exec.by_points,
        "by_scan": s.exec.by_scan,
        "by_replica": s.exec.by_replica,
        "bytes_read": s.io.bytes_read,
        "requests": s.io.requests,
        "chunks_decoded": s.io.chunks_decoded,
        "library_reads": s.io.library_reads,
        "index_bytes_read": s.index.0,
        "index_requests": s.index.1,
        "seconds": {"open": s.open_seconds, "bind": s.bind_seconds, "select": s.select_seconds, "fetch": s.fetch_seconds},
    })
}
