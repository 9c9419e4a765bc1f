//! Fills a catalog like H5BOSS's and asks it: `fill --objects 5000000 --db /tmp/catalog.db`, then with `--find`.
//!
//! A plate is a source, a fiber a group with its place on the sky, its plate and its class as attributes; under it
//! lie arrays with their units. Half of the objects are groups, each with 8 attributes, and half arrays with 2.

use std::time::Instant;

use sieva_catalog::{Catalog, Comparison, Filter, Find, ObjectRecord, SourceRecord};
use sieva_types::{Error, ErrorKind, Result};

const FIBERS: u64 = 1000;

/// SplitMix64 (Steele, Lea, Flood 2014): numbers that look random and are the same each time.
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A place on the sky in hundredths of a degree, so that some fibers share theirs.
fn place(fiber: u64) -> (f64, f64) {
    ((mixed(fiber) % 36_000) as f64 / 100.0, (mixed(fiber ^ 1 << 40) % 18_000) as f64 / 100.0 - 90.0)
}

fn plate(number: u64) -> SourceRecord {
    let location = format!("/data/h5boss/{number:06}.h5");
    let mut source = SourceRecord::new(location, "HDF5", 1 << 28, "1");
    for i in 0..FIBERS {
        let fiber = number * FIBERS + i;
        let (ra, dec) = place(fiber);
        let class = ["GALAXY", "GALAXY", "GALAXY", "QSO", "STAR"][(mixed(fiber ^ 2 << 40) % 5) as usize];
        let path = format!("{number}/{i}");
        let group = ObjectRecord::group(&path)
            .attribute("RADEG", ra)
            .attribute("DECDEG", dec)
            .attribute("PLATE", number as i64)
            .attribute("FIBER", i as i64)
            .attribute("CLASS", class)
            .attribute("Z", (mixed(fiber ^ 3 << 40) % 7_000_000) as f64 / 1e6)
            .attribute("MJD", 55_000 + (number % 2000) as i64)
            .attribute("SN", (mixed(fiber ^ 4 << 40) % 100_000) as f64 / 1e3);
        let flux = ObjectRecord::array(format!("{path}/flux"), "<f4", &[4620])
            .attribute("units", "1e-17 erg/cm2/s/A")
            .attribute("long_name", "coadded flux");
        source.objects.extend([group, flux]);
    }
    source
}

struct Options {
    objects: u64,
    db: String,
    batch: u64,
    find: bool,
}

fn options() -> Result<Options> {
    let mut options = Options { objects: 100_000, db: String::new(), batch: 100_000, find: false };
    let mut words = std::env::args().skip(1);
    let wrong = |word: &str| {
        let message = format!("'{word}' is not understood");
        Error::new(ErrorKind::InvalidValue, message).hint("fill --db PATH [--objects N] [--batch N] [--find]")
    };
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse().ok()).ok_or_else(|| wrong(&word));
        match word.as_str() {
            "--objects" => options.objects = number()?,
            "--batch" => options.batch = number()?,
            "--db" => options.db = words.next().unwrap_or_default(),
            "--find" => options.find = true,
            _ => return Err(wrong(&word)),
        }
    }
    if options.db.is_empty() { Err(wrong("a missing --db")) } else { Ok(options) }
}

fn fill(catalog: &Catalog, options: &Options) -> Result<()> {
    let start = Instant::now();
    let plates: Vec<u64> = (0..options.objects.div_ceil(2 * FIBERS)).collect();
    let mut done = 0;
    for numbers in plates.chunks((options.batch / (2 * FIBERS)).max(1) as usize) {
        let batch: Vec<SourceRecord> = numbers.iter().map(|&n| plate(n)).collect();
        let before = Instant::now();
        let objects = catalog.ingest(&batch)?.objects;
        done += objects;
        let (rate, mean) =
            (objects as f64 / before.elapsed().as_secs_f64(), done as f64 / start.elapsed().as_secs_f64());
        eprintln!("{done} objects, {rate:.0}/s in this batch, {mean:.0}/s in all");
    }
    Ok(())
}

/// Times of a question asked of many fibers, in milliseconds: median, 99th of 100, greatest.
fn ask(name: &str, mut question: impl FnMut(u64) -> Result<usize>) -> Result<()> {
    let mut times = Vec::new();
    let mut found = 0;
    for i in 0..300 {
        let start = Instant::now();
        found += question(mixed(i))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{name}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms, {found} found",
        times[150], times[297], times[299]
    );
    Ok(())
}

fn find(catalog: &Catalog, options: &Options) -> Result<()> {
    let fibers = options.objects / 2;
    let sky = |i: u64| place(i % fibers);
    let found = |parts: Vec<Filter>| Ok(catalog.find(&Find::new(Filter::And(parts)).limit(1000))?.len());
    ask("RADEG = x AND DECDEG = y", |i| {
        let (ra, dec) = sky(i);
        found(vec![Filter::equal("RADEG", ra), Filter::equal("DECDEG", dec)])
    })?;
    ask("CLASS = 'QSO' AND PLATE = n", |i| {
        let plate = i64::try_from(i % fibers / FIBERS).unwrap_or(i64::MAX);
        found(vec![Filter::equal("CLASS", "QSO"), Filter::equal("PLATE", plate)])
    })?;
    ask("RADEG = x AND Z > 3.5", |i| {
        found(vec![Filter::equal("RADEG", sky(i).0), Filter::compare("Z", Comparison::Gt, 3.5)])
    })?;
    ask("CLASS = 'STAR' AND units = '...', first 1000", |_| {
        let units = Filter::Like("units".into(), "1e-17%".into());
        found(vec![Filter::equal("CLASS", "STAR"), units])
    })?;
    let locations: Vec<String> = (0..10_000).map(|n| format!("/data/h5boss/{n:06}.h5")).collect();
    let locations: Vec<&str> = locations.iter().map(String::as_str).collect();
    let start = Instant::now();
    let known = catalog.known(&locations, Some(1 << 30))?.len();
    println!("{known} known of 10000 locations in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let stars = catalog.count(&Find::new(Filter::equal("CLASS", "STAR")))?;
    println!("{stars} stars counted in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

fn main() {
    let work = || -> Result<()> {
        let options = options()?;
        let catalog = Catalog::open(&options.db)?;
        if options.find { find(&catalog, &options) } else { fill(&catalog, &options) }
    };
    if let Err(e) = work() {
        eprintln!("fill: {e}");
        e.hint_text().iter().for_each(|hint| eprintln!("hint: {hint}"));
        std::process::exit(1);
    }
}
