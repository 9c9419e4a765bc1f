//! The memory that operators and outputs hold, counted by the allocator: none goes over its limit by more than a
//! quarter and 64 MiB, or it refuses before it would.
//!
//! The suite measures at 64 MiB. `make bench-memory` measures at 256 MiB and 1 GiB too, over four times as many
//! rows, and writes the table of `docs/benchmarks/memory.md`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod counting;
mod data;
mod operators;

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use counting::{Counting, bytes_of, peak_of};
use data::Data;
use operators::{Must, OPERATORS};
use sieva::{ErrorKind, QueryOptions};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: u64 = 1 << 20;

/// What came of one operator under one limit.
struct Measured {
    name: &'static str,
    limit: u64,
    peak: u64,
    refused: Option<String>,
    seconds: f64,
    wrong: Option<String>,
}

/// All operators under a limit, over 2^20 times `steps` rows.
fn measured(limit: u64, steps: usize) -> Vec<Measured> {
    let data = Data::new(steps);
    let options = QueryOptions { memory: Some(limit), threads: Some(2), ..crossed() };
    let wanted = std::env::var("SIEVA_MEMORY_ONLY").unwrap_or_default();
    let chosen = OPERATORS.iter().filter(|o| o.name.contains(&wanted));
    let each = chosen.map(|operator| {
        let source = data.open();
        let started = Instant::now();
        let (done, peak) = peak_of(|| operator.run(&source, &options, &data.file("out")));
        let seconds = started.elapsed().as_secs_f64();
        let mut wrong = None;
        let (own, refused) = match done {
            Ok(own) => (own, None),
            Err(e) if e.kind() == ErrorKind::MemoryLimit => (0, Some(e.to_string())),
            Err(e) if e.message().contains("not compiled in") => (0, Some("not compiled in".into())),
            Err(e) => {
                wrong = Some(format!("{e}"));
                (0, None)
            }
        };
        let peak = peak.saturating_sub(own);
        if limit == 64 * MIB && wrong.is_none() {
            wrong = match (operator.must, &refused) {
                (Must::Answer, Some(why)) if why != "not compiled in" => Some(format!("refused: {why}")),
                (Must::Refuse, None) => Some("answered: the data are too small for this limit".into()),
                _ => None,
            };
        }
        if peak > limit + limit / 4 + 64 * MIB {
            wrong = Some(format!("held {} MiB under a limit of {} MiB", peak / MIB, limit / MIB));
        }
        let one = Measured { name: operator.name, limit, peak, refused, seconds, wrong };
        eprintln!("{}", line(&one));
        one
    });
    each.collect()
}

fn line(m: &Measured) -> String {
    let what = m.wrong.as_deref().or(m.refused.as_deref()).unwrap_or("answered");
    format!(
        "{:<38} {:>5} MiB: {:>6.1} MiB {:>6.2} s  {what}",
        m.name,
        m.limit / MIB,
        m.peak as f64 / MIB as f64,
        m.seconds
    )
}

fn check(all: &[Measured]) {
    let wrong: Vec<String> = all.iter().filter(|m| m.wrong.is_some()).map(line).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rows of most operators are a product of arrays that share no dimension: many rows of little data.
fn crossed() -> QueryOptions {
    QueryOptions { cross: true, ..QueryOptions::default() }
}

/// Only one test allocates at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queries over 10^15 rows: whatever they do holds little, and ends soon after it is told to.
#[test]
fn a_query_over_more_rows_than_can_be_looked_at_is_stopped() {
    let _alone = alone();
    let data = Data::new(8);
    let source = data.open();
    let options = QueryOptions { memory: Some(512 * MIB), threads: Some(2), ..crossed() };
    for text in
        ["SELECT iv, jv, lv ORDER BY iv+jv+lv LIMIT 1", "SELECT DISTINCT iv * 0 + jv * 0 + lv * 0 AS zero"]
    {
        let query = source.sql(text, &options).unwrap();
        let flag = query.cancel_flag();
        let (stopped, peak) = peak_of(|| {
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| query.batches(1 << 16)?.try_for_each(|b| b.map(|_| ())));
                std::thread::sleep(Duration::from_millis(300));
                flag.store(true, Relaxed);
                let told = Instant::now();
                let done = asked.join().unwrap();
                assert!(told.elapsed() < Duration::from_secs(20), "{text}");
                done
            })
        });
        let e = stopped.unwrap_err();
        assert!([ErrorKind::Cancelled, ErrorKind::MemoryLimit].contains(&e.kind()), "{text}: {e}");
        assert!(peak < (512 + 128 + 64) * MIB, "{text}: {} MiB", peak / MIB);
    }
    let e = source.sql("SELECT iv ORDER BY iv+jv+lv", &options).unwrap().batches(9).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    assert!(
        e.message().starts_with("ORDER BY of 1000000000000000 rows would take 25000000000000000 bytes"),
        "{e}"
    );
}

/// The value of a read is counted where a limit was given, and refused before it is there.
#[test]
fn reading_more_than_the_limit_is_refused() {
    let _alone = alone();
    let data = Data::new(8);
    let source = data.open();
    let sum = "a + b";
    let read = |options: &QueryOptions| source.query(None, Some(&[sum.into()]), options).unwrap().read(sum);
    let limited = QueryOptions { memory: Some(4 * MIB), ..crossed() };
    let (refused, peak) = peak_of(|| read(&limited));
    let e = refused.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    assert_eq!(e.message(), "read() of 1048576 values of 'a + b' takes 8388608 bytes; the limit is 4194304");
    assert!(peak < 16 * MIB, "{} MiB", peak / MIB);
    assert_eq!(read(&crossed()).unwrap().len(), 1 << 20);
}

/// A million texts of 16 bytes take these, and four bytes each for where they begin: 20 MiB. As strings they took 40.
#[test]
fn texts_are_held_as_bytes_and_offsets() {
    let _alone = alone();
    let data = Data::new(32);
    let source = data.open();
    let query = source.query(None, Some(&["name".into()]), &crossed()).unwrap();
    let column = query.read("name").unwrap();
    assert_eq!(column.len(), 1 << 20);
    let held = bytes_of(column);
    assert!((20 * MIB..21 * MIB).contains(&held), "read: {held} bytes");
    let batches = query.batches(1 << 16).unwrap().collect::<sieva::Result<Vec<_>>>().unwrap();
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 1 << 20);
    let held = bytes_of(batches);
    assert!((20 * MIB..21 * MIB).contains(&held), "batches: {held} bytes");
    let groups = source.sql("SELECT name, count(*) AS n GROUP BY name ORDER BY name", &crossed()).unwrap();
    let (n, peak) =
        peak_of(|| groups.batches(1 << 16).unwrap().map(|b| b.unwrap().num_rows()).sum::<usize>());
    eprintln!("groups of each text: {} MiB at most", peak / MIB);
    assert_eq!(n, 1 << 20);
}

/// Groups come in batches of the size that was asked for, and are all there.
#[test]
fn groups_come_in_batches() {
    let _alone = alone();
    let data = Data::new(8);
    let query = data.open().sql("SELECT x, sum(b) AS s GROUP BY x ORDER BY x DESC", &crossed()).unwrap();
    let sizes: Vec<usize> = query.batches(300).unwrap().map(|b| b.unwrap().num_rows()).collect();
    assert_eq!(sizes, [300, 300, 300, 124]);
    let none = data.open().sql("SELECT x, sum(b) WHERE a < 0 GROUP BY x", &crossed()).unwrap();
    let sizes: Vec<usize> = none.batches(300).unwrap().map(|b| b.unwrap().num_rows()).collect();
    assert_eq!(sizes, [0]);
}

/// A long list of values that are computed, or texts, is looked up: comparisons one by one took hours.
#[test]
fn long_lists_of_computed_values_and_texts() {
    let _alone = alone();
    let data = Data::new(8);
    let source = data.open();
    let count = |condition: &str| source.query(Some(condition), None, &crossed()).unwrap().count().unwrap();
    let texts: Vec<String> = (0..50_000).map(|i| format!("'station {:08}'", 2 * i)).collect();
    let (list, numbers) =
        (texts.join(", "), (0..50_000).map(|i| (2 * i).to_string()).collect::<Vec<_>>().join(", "));
    assert_eq!(count(&format!("t IN ({list})")), 512);
    assert_eq!(count(&format!("t NOT IN ({list})")), 512);
    assert_eq!(count(&format!("k * 1 IN ({numbers})")), 585);
    assert_eq!(count(&format!("if(k + 0 NOT IN ({numbers}), 1, 0) = 1")), 439);
    let terms: Vec<String> = (0..50_000).map(|i| format!("k = {}", 2 * i)).collect();
    assert_eq!(count(&terms.join(" OR ")), 585);
}

/// What once was refused: different texts are held as bytes, histograms share their edges, and quantiles of one argument
/// the values that they are of.
#[test]
fn what_is_held_once_fits() {
    let _alone = alone();
    let asked = [
        (256, 64, "SELECT count(DISTINCT name) AS n"),
        (256, 64, "SELECT x, histogram(b, 10000, 0, 2000) GROUP BY x"),
        (192, 8, "SELECT median(a+b+c), quantile(a+b+c, 0.5), quantile(a+b+c, 0.9), quantile(a+b+c, 0.1)"),
    ];
    for (limit, steps, sql) in asked {
        let data = Data::new(steps);
        let options = QueryOptions { memory: Some(limit * MIB), threads: Some(2), ..crossed() };
        let query = data.open().sql(sql, &options).unwrap();
        let (found, peak) = peak_of(|| query.batches(1 << 16)?.collect::<sieva::Result<Vec<_>>>());
        let rows: usize = found.unwrap().iter().map(|b| b.num_rows()).sum();
        assert_eq!(rows, if sql.contains("GROUP") { 1024 } else { 1 });
        assert!(peak <= (limit + limit / 4 + 64) * MIB, "{sql}: {} MiB", peak / MIB);
        eprintln!("{sql}: {} MiB", peak / MIB);
    }
}

#[test]
fn operators_and_outputs_stay_under_their_limit() {
    let _alone = alone();
    check(&measured(64 * MIB, 32));
}

/// The table: three limits, the data growing with them.
#[test]
#[ignore = "takes minutes: make bench-memory"]
fn the_table_of_operators_and_limits() {
    let _alone = alone();
    let columns: Vec<Vec<Measured>> =
        [(64, 32), (256, 64), (1024, 128)].map(|(limit, steps)| measured(limit * MIB, steps)).into();
    let mut table = String::from("| operator | 64 MiB | 256 MiB | 1 GiB |\n|---|---|---|---|\n");
    for row in 0..columns[0].len() {
        let _ = write!(table, "| {}", columns[0][row].name);
        for column in &columns {
            let m = &column[row];
            let what = if m.refused.is_some() { ", refused" } else { "" };
            let _ = write!(table, " | {:.1} MiB{what}", m.peak as f64 / MIB as f64);
        }
        table.push_str(" |\n");
    }
    println!("{table}");
    if let Ok(path) = std::env::var("SIEVA_MEMORY_TABLE") {
        std::fs::write(path, &table).unwrap();
    }
    columns.iter().for_each(|c| check(c));
}
