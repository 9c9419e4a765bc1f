//! Which servers and stripes a query touches, for people and for programs.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::{FileTouched, LayoutPlan, StripeTouched, Traffic};

/// Servers that are shown of a file.
const SHOWN: usize = 40;

/// The plan as lines of text.
pub(super) fn lines(plan: &LayoutPlan) -> String {
    let mut out = String::new();
    for file in &plan.files {
        of_file(&mut out, file);
    }
    if plan.objects > 0 {
        let _ = writeln!(out, "objects    {} chunks, each an object of its own", plan.objects);
    }
    if plan.files.iter().all(|f| f.stripes.is_empty()) && plan.objects == 0 {
        let _ = writeln!(out, "touches    nothing");
    }
    for note in &plan.notes {
        let _ = writeln!(out, "note       {note}");
    }
    out
}

fn of_file(out: &mut String, file: &FileTouched) {
    let servers = file.servers();
    let (mut before, mut after) = (Traffic::default(), Traffic::default());
    for server in &servers {
        before.add(server.before);
        after.add(server.after);
    }
    let _ = writeln!(out, "file       {}, {} bytes", file.name, file.length);
    let _ = writeln!(out, "layout     {}", file.striping.describe());
    let all = file.striping.servers();
    let _ = writeln!(out, "touches    {} of {all} servers, {} stripes", servers.len(), file.stripes.len());
    let _ = writeln!(out, "requests   {}", traffic(before, after));
    for server in servers.iter().take(SHOWN) {
        let (name, stripes) = (file.striping.server_name(server.server), server.stripes.len());
        let _ =
            writeln!(out, "server     {name}: {stripes} stripes, {}", traffic(server.before, server.after));
    }
    if let Some(more) = servers.len().checked_sub(SHOWN).filter(|n| *n > 0) {
        let _ = writeln!(out, "           and {more} more");
    }
}

fn traffic(before: Traffic, after: Traffic) -> String {
    format!(
        "{} of {} bytes box by box, {} of {} bytes put together",
        before.requests, before.bytes, after.requests, after.bytes
    )
}

/// The plan as JSON.
pub(super) fn json(plan: &LayoutPlan) -> Json {
    let files: Vec<Json> = plan.files.iter().map(file_json).collect();
    json!({"files": files, "objects": plan.objects, "notes": plan.notes})
}

fn file_json(file: &FileTouched) -> Json {
    let servers = file.servers().into_iter().map(|of| {
        json!({
            "server": of.server,
            "name": file.striping.server_name(of.server),
            "before": traffic_json(of.before),
            "after": traffic_json(of.after),
            "stripes": of.stripes.iter().map(stripe_json).collect::<Vec<_>>(),
        })
    });
    let size = file.striping.stripe_size();
    json!({
        "file": file.name,
        "length": file.length,
        "layout": file.striping.describe(),
        "striping": file.striping.to_string(),
        "stripe_size": if file.striping.is_single() { Json::Null } else { json!(size) },
        "server_count": file.striping.servers(),
        "servers": servers.collect::<Vec<_>>(),
    })
}

fn stripe_json(stripe: &StripeTouched) -> Json {
    let ranges: Vec<[u64; 2]> = stripe.requests.iter().map(|r| [r.start, r.end]).collect();
    json!({
        "stripe": stripe.stripe,
        "before": traffic_json(stripe.before),
        "after": traffic_json(stripe.after()),
        "requests": ranges,
    })
}

fn traffic_json(traffic: Traffic) -> Json {
    json!({"bytes": traffic.bytes, "requests": traffic.requests})
}
