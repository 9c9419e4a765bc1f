//! EXPLAIN: the physical plan as a tree of text or JSON, with what happened if the query was run.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use sieva_query::optimizer::{Description, Expected, Found, Price, UNBOUNDED};
use sieva_types::{Result, printable_lines};

use crate::query::Query;
use crate::stats::QueryStats;

impl Query {
    /// The physical plan in text, made without reading a value; `analyze` runs the query and adds what happened.
    ///
    /// # Errors
    /// `cancelled`; with `analyze` reading errors.
    pub fn explain(&self, analyze: bool) -> Result<String> {
        if analyze {
            self.execution()?;
        }
        let plan = self.described()?;
        let mut out = text(&plan);
        price_lines(&mut out, &self.price()?);
        if analyze {
            let rows = self.count()?;
            first_stage(&mut out, &self.execution()?.found()?);
            analysis(&mut out, rows, plan.estimate, &self.stats());
        }
        Ok(printable_lines(&out).into_owned())
    }

    /// The physical plan as JSON text.
    ///
    /// # Errors
    /// As [`Query::explain`].
    pub fn explain_json(&self, analyze: bool) -> Result<String> {
        if analyze {
            self.execution()?;
        }
        let plan = self.described()?;
        let condition: Vec<Json> =
            plan.condition.iter().map(|(depth, text)| json!({"depth": depth, "text": text})).collect();
        let library: Vec<Json> =
            plan.by_library.iter().map(|(a, why)| json!({"array": a, "reason": why})).collect();
        let fetch: Vec<Json> = plan.fetch.iter().map(|(a, way)| json!({"array": a, "way": way})).collect();
        let mut out = json!({
            "rows": plan.rows.iter().zip(&plan.aligned).map(dimension_json).collect::<Vec<_>>(),
            "area": {"start": plan.area.start, "shape": plan.area.shape},
            "tiles": plan.tiles,
            "tile_shape": plan.tile_shape,
            "foreseen": {"none": plan.foreseen[0], "all": plan.foreseen[1], "open": plan.foreseen[2]},
            "estimate": {"low": plan.estimate.0, "high": plan.estimate.1},
            "first_stage": plan.first_stage,
            "condition": condition,
            "count": plan.count,
            "aggregates": plan.aggregates.map(|(n, all)| json!({"by_statistics": n, "tiles": all})),
            "fetch": fetch,
            "output": plan.output,
            "read_by_library": library,
            "notes": plan.notes,
            "price": price_json(&self.price()?),
        });
        if analyze {
            let rows = self.count()?;
            let found = self.execution()?.found()?;
            out["analyze"] = stats_json(rows, &self.stats());
            out["analyze"]["estimate_held"] = json!(plan.estimate.0 <= rows && rows <= plan.estimate.1);
            out["analyze"]["first_stage"] = json!({
                "area": {"start": found.area.start, "shape": found.area.shape},
                "tiles": found.tiles,
                "known": found.known,
                "estimate": {"low": found.estimate.0, "high": found.estimate.1},
            });
        }
        Ok(out.to_string())
    }
}

fn text(plan: &Description) -> String {
    let mut out = String::new();
    let shown = |names: &[(String, u64)]| {
        names.iter().map(|(n, l)| format!("{n} = {l}")).collect::<Vec<_>>().join(", ")
    };
    let all: u64 = plan.rows.iter().map(|(_, n)| n).product();
    let _ = writeln!(out, "rows       ({}): {all} positions", shown(&plan.rows));
    for ((name, _), along) in plan.rows.iter().zip(&plan.aligned) {
        let _ = writeln!(out, "           along {name}: {}", arrays_along(along));
    }
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
    for (i, line) in plan.first_stage.iter().enumerate() {
        let _ = writeln!(out, "{:<10} {line}", if i == 0 { "first" } else { "" });
    }
    for (i, (depth, line)) in plan.condition.iter().enumerate() {
        let head = if i == 0 { "condition" } else { "" };
        let _ = writeln!(out, "{head:<10} {}{line}", "  ".repeat(*depth));
    }
    if let Some(way) = &plan.count {
        let _ = writeln!(out, "count      {way}");
    }
    if let Some((known, all)) = plan.aggregates.filter(|(known, _)| *known > 0) {
        let _ = writeln!(out, "aggregates by statistics, without data: {known} of {all} tiles");
    }
    for (i, (array, way)) in plan.fetch.iter().enumerate() {
        let _ = writeln!(out, "{:<10} {array}: {way}", if i == 0 { "fetch" } else { "" });
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

fn dimension_json(((name, len), along): (&(String, u64), &Vec<(String, &'static str)>)) -> Json {
    let arrays: Vec<Json> = along.iter().map(|(a, why)| json!({"array": a, "reason": why})).collect();
    json!({"dimension": name, "length": len, "arrays": arrays})
}

/// The arrays that line up along a dimension, those of one reason together.
fn arrays_along(along: &[(String, &'static str)]) -> String {
    let mut reasons: Vec<&str> = along.iter().map(|(_, why)| *why).collect();
    reasons.dedup();
    if reasons.is_empty() {
        return "no array, its positions alone".into();
    }
    let of = |why: &str| -> String {
        let own = along.iter().filter(|(_, w)| *w == why).map(|(a, _)| a.as_str());
        format!("{} ({why})", own.collect::<Vec<_>>().join(", "))
    };
    let mut seen: Vec<&str> = Vec::new();
    for why in reasons {
        if !seen.contains(&why) {
            seen.push(why);
        }
    }
    seen.into_iter().map(of).collect::<Vec<_>>().join("; ")
}

/// What a query takes.
pub(crate) fn price_lines(out: &mut String, price: &Price) {
    let counts = [
        ("rows", price.rows),
        ("bytes read", price.bytes_read),
        ("bytes given back", price.bytes_returned),
        ("requests", price.requests),
    ];
    for (i, (name, n)) in counts.iter().enumerate() {
        let high = if n.high == UNBOUNDED { "any number".to_string() } else { n.high.to_string() };
        let head = if i == 0 { "price" } else { "" };
        let _ = writeln!(out, "{head:<10} about {} {name} ({} to {high})", n.expected, n.low);
    }
    let _ = writeln!(out, "{:<10} about {:.6} s", "", price.seconds.expected);
}

fn price_json(price: &Price) -> Json {
    let count = |n: Expected<u64>| {
        let high = if n.high == UNBOUNDED { Json::Null } else { json!(n.high) };
        json!({"low": n.low, "expected": n.expected, "high": high})
    };
    let s = price.seconds;
    json!({
        "rows": count(price.rows),
        "bytes_read": count(price.bytes_read),
        "bytes_returned": count(price.bytes_returned),
        "requests": count(price.requests),
        "seconds": {"low": s.low, "expected": s.expected, "high": s.high},
    })
}

/// What the first stage left.
fn first_stage(out: &mut String, found: &Found) {
    let (positions, (low, high)) = (found.area.len(), found.estimate);
    let _ = writeln!(
        out,
        "found      {positions} positions in {} tiles after the first stage, {low} to {high} hits",
        found.tiles
    );
    for line in &found.known {
        let _ = writeln!(out, "           {line}");
    }
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
