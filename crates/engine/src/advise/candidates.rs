//! From notes to cases: each array that was asked, with what is there for it and what could be.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use sieva_catalog::{Augmentation, AugmentationState, Catalog, Rule, Usage};
use sieva_types::{Error, ErrorKind, Result};

use super::choose::{Case, Kind};
use super::model::{Clock, price};
use super::workload::Asked;
use super::{AdviseOptions, number, sample};
use crate::augment::{IndexKind, IndexStatus, Learn};
use crate::catalog::place::location_or_absolute;
use crate::open::{OpenOptions, Source};

/// Notes of one array that are priced; each stands for as many as there are.
const PRICED: usize = 64;

/// One source.
pub(super) struct SourceCase {
    pub arrays: Vec<Case>,
}

/// What the catalog says of one source.
#[derive(Default)]
struct Known {
    uses: BTreeMap<String, Vec<Usage>>,
    rules: HashMap<(String, usize), Rule>,
    built: Vec<Augmentation>,
}

/// Whether a location is what `prefix` means: itself, something in that directory, or what begins with it.
pub(super) fn is_within(location: &str, prefix: &str) -> bool {
    let Some(rest) = location.strip_prefix(prefix) else { return false };
    let whole = Path::new(prefix).exists() && !prefix.ends_with('/');
    rest.is_empty() || rest.starts_with('/') || !whole
}

type Skipped = Vec<(String, String)>;

/// All cases within `options.prefix`, what was left out, and the number of notes.
///
/// # Errors
/// Those of the catalog; `cancelled`.
pub(super) fn gather(catalog: &Catalog, options: &AdviseOptions) -> Result<(Vec<SourceCase>, Skipped, u64)> {
    let prefix = match options.prefix.as_str() {
        "" => String::new(),
        given => location_or_absolute(given.as_ref()),
    };
    let mut sources: BTreeMap<String, Known> = BTreeMap::new();
    let mut n = 0;
    for usage in catalog.usage(&prefix, options.limit)? {
        if is_within(&usage.location, &prefix) {
            n += 1;
            let uses = &mut sources.entry(usage.location.clone()).or_default().uses;
            uses.entry(usage.path.clone()).or_default().push(usage);
        }
    }
    for (location, path, kind, rule) in catalog.rules(&prefix)? {
        if let Ok(kind) = IndexKind::parse(&kind)
            && is_within(&location, &prefix)
        {
            sources.entry(location).or_default().rules.insert((path, number(kind)), rule);
        }
    }
    for built in catalog.augmentations(&prefix)? {
        if built.state != AugmentationState::Gone && is_within(&built.location, &prefix) {
            sources.entry(built.location.clone()).or_default().built.push(built);
        }
    }
    let (mut cases, mut skipped) = (Vec::new(), Vec::new());
    for (location, known) in &sources {
        if options.cancel.load(Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the advice was interrupted"));
        }
        match of_source(location, known, options, &mut skipped) {
            Ok(arrays) => cases.push(SourceCase { arrays }),
            Err(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Err(e) => skipped.push((location.clone(), e.message().to_string())),
        }
    }
    Ok((cases, skipped, n))
}

/// Opens the source of a location as advice does: it leaves no statistics and no notes behind.
///
/// # Errors
/// Those of [`Source::open_many`].
pub(super) fn open(location: &str, options: &AdviseOptions) -> Result<Source> {
    let learn = Learn { share: 0.0, ..Learn::default() };
    Source::open_many(
        &[location],
        &OpenOptions { store: options.store.clone(), learn, ..OpenOptions::default() },
    )
}

fn of_source(
    location: &str,
    known: &Known,
    options: &AdviseOptions,
    skipped: &mut Skipped,
) -> Result<Vec<Case>> {
    let source = open(location, options)?;
    let status = source.held_status()?;
    let mut paths: BTreeSet<&str> = known.uses.keys().map(String::as_str).collect();
    paths.extend(known.rules.keys().map(|(path, _)| path.as_str()));
    paths.extend(status.arrays.iter().map(|a| a.path.as_str()));
    paths.extend(status.replicas.iter().map(|r| r.key.as_str()));
    let mut cases = Vec::new();
    for path in paths {
        match of_array(&source, location, path, known, &status, options) {
            Ok(case) => cases.push(case),
            Err(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Err(e) => skipped.push((format!("{location}:{path}"), e.message().to_string())),
        }
    }
    Ok(cases)
}

fn of_array(
    source: &Source,
    location: &str,
    path: &str,
    known: &Known,
    status: &IndexStatus,
    options: &AdviseOptions,
) -> Result<Case> {
    let arrays = &source.schema().arrays;
    let found = arrays.iter().position(|a| a.path == path);
    let index = found.ok_or_else(|| {
        Error::new(ErrorKind::UnknownArray, format!("'{location}' has no array '{path}' any more"))
    })?;
    let uses = known.uses.get(path).map_or(&[][..], Vec::as_slice);
    let dtype = crate::augment::indexed_dtype(&arrays[index]);
    let asked: Vec<(Asked, &Usage)> =
        uses.iter().filter_map(|u| Some((Asked::decode(&u.condition, dtype)?, u))).collect();
    let conditions: Vec<&(Asked, &Usage)> = asked.iter().filter(|(a, _)| a.set.is_some()).collect();
    let mut case = Case::new(location, path);
    case.uses = conditions.len() as u64;
    case.stale = status.stale;
    case.columns = columns(source, index, &conditions);
    let sample = sample::take(source, index, options)?;
    let step = conditions.len().div_ceil(PRICED).max(1);
    sample.learn(conditions.iter().step_by(step).filter_map(|(a, _)| a.set.as_ref()));
    case.kinds = kinds(&sample, &case, path, known, status, options, source);
    case.seconds = seconds(&sample, &conditions, options.jobs);
    if source.many().is_some() {
        // Queries over many files together do not use replicas.
        case.seconds.iter_mut().for_each(|(_, s)| s.by[number(IndexKind::Sorted)] = f64::INFINITY);
    }
    Ok(case)
}

/// What there is of each kind, and what there would be.
fn kinds(
    sample: &sample::Sample,
    case: &Case,
    path: &str,
    known: &Known,
    status: &IndexStatus,
    options: &AdviseOptions,
    source: &Source,
) -> [Kind; 3] {
    let there = status.arrays.iter().find(|a| a.path == path);
    let replica: u64 = status.replicas.iter().filter(|r| r.key == path).map(|r| r.bytes).sum();
    let now = [
        there.map_or((0, false), |a| (a.stats_bytes, a.with_stats == a.regions)),
        there.map_or((0, false), |a| (a.bitmap_bytes, a.with_bitmap == a.regions && a.bitmap_bytes > 0)),
        (replica, replica > 0),
    ];
    std::array::from_fn(|k| {
        let (bytes_now, whole) = now[k];
        let (mut bytes, mut build) = (sample.bytes[k], sample.seconds[k]);
        if k == 2 {
            for name in &case.columns[1..] {
                let size = source.resolve(name).map_or(8, |a| source.schema().arrays[a].dtype.size());
                let more = sample.column(size, options.jobs);
                bytes = bytes.saturating_add(more.0);
                build += more.1;
            }
        }
        let complete = whole && !status.stale;
        if complete {
            bytes = bytes_now;
            let built = known.built.iter().find(|b| b.path == path && b.kind == IndexKind::NAMED[k].0);
            build = built.map_or(build, |b| b.seconds);
        }
        let rule = known.rules.get(&(path.to_string(), k)).copied();
        Kind { bytes_now, bytes, build_seconds: build, complete, rule }
    })
}

/// The array itself and those that its queries use besides it, where a replica can carry them.
fn columns(source: &Source, array: usize, asked: &[&(Asked, &Usage)]) -> Vec<String> {
    let arrays = &source.schema().arrays;
    let mut columns = vec![arrays[array].path.clone()];
    let others: BTreeSet<&String> = asked.iter().flat_map(|(a, _)| &a.with).collect();
    for name in others {
        let fits = arrays.iter().enumerate().any(|(i, a)| {
            a.path == *name
                && a.dims == arrays[array].dims
                && a.shape == arrays[array].shape
                && i != array
                && source.array_header(i).is_ok()
        });
        if fits {
            columns.push(name.clone());
        }
    }
    columns
}

/// Seconds of the notes without augmentations and with each, with the number of notes that each entry stands for.
fn seconds(
    sample: &sample::Sample,
    asked: &[&(Asked, &Usage)],
    threads: usize,
) -> Vec<(f64, super::model::Seconds)> {
    let step = asked.len().div_ceil(PRICED).max(1);
    let priced: Vec<(Asked, f64, super::model::Seconds)> = asked
        .iter()
        .step_by(step)
        .filter_map(|(a, usage)| {
            let hits = a.alone.then_some(usage.selectivity);
            let price = price(sample, a.set.as_ref()?, hits, usage.operation == "count", threads);
            Some((a.clone(), usage.seconds * a.share, price))
        })
        .collect();
    let clock = Clock::of(&priced);
    let weight = asked.len() as f64 / priced.len().max(1) as f64;
    priced.iter().map(|(a, took, s)| (weight, clock.real(a, *took, s))).collect()
}
