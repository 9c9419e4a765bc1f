//! How long a small query of an open file takes from Rust, from its text to the answer:
//!
//!     cargo run --release --locked -p sieva --example small -- FILE CONDITION [RUNS]

use std::time::Instant;

use sieva::{OpenOptions, Query, QueryOptions, Result, Source};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, condition, rest @ ..] = &arguments[..] else {
        println!("usage: small FILE CONDITION [RUNS]");
        return Ok(());
    };
    let runs = rest.first().and_then(|runs| runs.parse().ok()).unwrap_or(2000);
    let source = Source::open(file, &OpenOptions::default())?;
    let ask = |what: fn(&Query) -> Result<u64>| -> Result<Vec<f64>> {
        let once = |_| {
            let started = Instant::now();
            let rows = what(&source.query(Some(condition), None, &QueryOptions::default())?)?;
            std::hint::black_box(rows);
            Ok(started.elapsed().as_secs_f64() * 1e3)
        };
        (0..runs).map(once).collect()
    };
    let rows_of = |query: &Query| -> Result<u64> {
        query.batches(65_536)?.map(|batch| Ok(batch?.num_rows() as u64)).sum()
    };
    println!("| question | median (middle nine tenths), ms |\n|---|---|");
    for (name, mut times) in [("count", ask(Query::count)?), ("batches", ask(rows_of)?)] {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!("| {name} | {:.3} ({:.3}..{:.3}) |", at(0.5), at(0.05), at(0.95));
    }
    Ok(())
}
