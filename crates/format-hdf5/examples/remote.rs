//! What opening a file over a network would take: requests, round trips waited for, and bytes, on a simulated clock.
//!
//! `cargo run --release -p sieva-format-hdf5 --example remote -- FILE [ARRAY]`: opens FILE, then finds the layout of
//! ARRAY (the largest one by default); once with metadata announced ahead, once as libhdf5 asks for them.

#[path = "../tests/common/remote.rs"]
mod remote;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use remote::{Remote, Traffic};
use sieva_format::ArraySource;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_store::FileStore;
use sieva_types::Result;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.first() else {
        eprintln!("usage: remote FILE [ARRAY]");
        return ExitCode::from(2);
    };
    match measure(Path::new(path), args.get(1).map(String::as_str)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn measure(path: &Path, array: Option<&str>) -> Result<()> {
    let local = Instant::now();
    let source = Hdf5Source::open(path, &Hdf5Options::default())?;
    println!(
        "local open {:.1} ms, {} arrays",
        1e3 * local.elapsed().as_secs_f64(),
        source.schema().arrays.len()
    );
    for (how, is_deaf) in [("announced", false), ("asked for", true)] {
        let file = Arc::new(FileStore::open(path)?);
        let store = if is_deaf { Remote::deaf(file) } else { Remote::new(file) };
        let started = Instant::now();
        let source = Hdf5Source::open_store(store.clone(), &Hdf5Options::default())?;
        println!(
            "{how}: open   {} ({:.1} ms of work)",
            words(store.traffic()),
            1e3 * started.elapsed().as_secs_f64()
        );
        let largest = || {
            let arrays = source.schema().arrays.iter().enumerate();
            arrays.max_by_key(|(_, a)| a.shape.iter().product::<u64>()).map(|(i, _)| i)
        };
        let chosen = array.map_or_else(largest, |name| source.schema().array(name));
        let Some(chosen) = chosen else { continue };
        source.layout(chosen)?;
        println!("{how}: +index {} of {}", words(store.traffic()), source.schema().arrays[chosen].path);
    }
    Ok(())
}

fn words(t: Traffic) -> String {
    format!(
        "{} requests, {} round trips, {:.1} MiB",
        t.requests,
        t.rounds,
        t.bytes as f64 / f64::from(1 << 20)
    )
}
