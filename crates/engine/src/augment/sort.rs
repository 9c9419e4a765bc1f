//! Building sorted replicas of a source's arrays.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_index::sorted::{self, Column, SharedBuild, SortOptions, Table};
use sieva_index::store::{Home, Listing, SortedDraft, SortedEntry, Store};
use sieva_index::{RegionGrid, content_hash};
use sieva_types::{Buffer, Bx, Error, ErrorKind, Result};

use super::build::{BuildOptions, Progress};
use super::indexed_dtype;
use crate::open::Source;

/// The columns of a replica, read from the source.
struct Columns {
    grid: RegionGrid,
    readers: Vec<BlockReader>,
}

impl Table for Columns {
    fn regions(&self) -> usize {
        self.grid.len()
    }

    fn region(&self, region: usize) -> Bx {
        self.grid.bx(region)
    }

    fn read(&self, region: usize, column: usize, out: &mut Buffer) -> Result<()> {
        thread_local! {
            static WORKSPACE: std::cell::RefCell<Workspace> = std::cell::RefCell::default();
        }
        WORKSPACE.with_borrow_mut(|ws| self.readers[column].read(&self.grid.bx(region), out, ws))
    }
}

/// Writes the replica sorted by `key`, unless there is one with these columns; whether it did.
pub fn build(source: &Source, key: usize, options: &BuildOptions) -> Result<bool> {
    let arrays = columns(source, key, options)?;
    let names = names(source, &arrays);
    if is_there(source, &names)? {
        return Ok(false);
    }
    let place = SortedDraft::create(&home(source, options)?)?;
    with_table(source, &arrays, options, |shape, described, table, sorting| {
        sorted::build(&place.path(), shape, described, table, &attributes(source), sorting)
    })?;
    publish(source, place, &names, options)?;
    Ok(true)
}

/// Does `work` with what takes part in a build by many processes.
pub(super) fn with_build<R>(
    source: &Source,
    arrays: &[usize],
    options: &BuildOptions,
    work: impl FnOnce(&SharedBuild<'_>) -> Result<R>,
) -> Result<R> {
    with_table(source, arrays, options, |shape, described, table, sorting| {
        work(&SharedBuild::new(shape, described, table, sorting)?)
    })
}

/// Does `work` with the arrays of a replica as a table: their shape, columns, values, and how they are to be sorted.
fn with_table<R>(
    source: &Source,
    arrays: &[usize],
    options: &BuildOptions,
    work: impl FnOnce(&[u64], &[Column], &Columns, &SortOptions<'_>) -> Result<R>,
) -> Result<R> {
    let info = |a: usize| &source.schema().arrays[a];
    let key = *arrays.first().ok_or_else(|| Error::new(ErrorKind::InvalidValue, "a replica of no arrays"))?;
    let header = source.array_header(key)?;
    let cache = Arc::new(ChunkCache::new(0));
    let reader =
        |&a: &usize| BlockReader::new(Arc::clone(source.reader()), a, Arc::clone(&cache), options.memory / 2);
    let table = Columns {
        grid: RegionGrid::new(&header.shape, &header.region)?,
        readers: arrays.iter().map(reader).collect::<Result<_>>()?,
    };
    let described: Vec<Column> = arrays
        .iter()
        .map(|&a| Column { name: info(a).path.clone(), dtype: indexed_dtype(info(a)) })
        .collect();
    let row: u64 = described.iter().map(|c| c.dtype.size() as u64).sum();
    let progress = |done: u64, total: u64| {
        if let Some(progress) = &options.progress {
            progress(Progress { done: done * row, total: total * row });
        }
    };
    let sorting = SortOptions {
        threads: options.jobs.max(1),
        memory: options.memory,
        seal: seal_of(source, &names(source, arrays))?,
        cancel: &options.cancel,
        progress: &progress,
    };
    work(&header.shape, &described, &table, &sorting)
}

/// What tells the replica from others: the content of the source and the columns, the key first. All processes that build
/// it find the same.
fn seal_of(source: &Source, names: &[String]) -> Result<u64> {
    let loaded = source.loaded()?;
    let state = loaded.fingerprint()?;
    Ok(content_hash(format!("{} {:016x} {names:?}", state.len, state.content).as_bytes()))
}

/// Paths of arrays.
pub(super) fn names(source: &Source, arrays: &[usize]) -> Vec<String> {
    arrays.iter().map(|&a| source.schema().arrays[a].path.clone()).collect()
}

/// Whether there is a replica with these columns.
pub(super) fn is_there(source: &Source, names: &[String]) -> Result<bool> {
    let loaded = source.loaded()?;
    Ok(loaded.store.iter().flat_map(|s| s.sorted()).any(|e| e.key == names[0] && e.columns == names))
}

/// What is kept with a replica.
pub(super) fn attributes(source: &Source) -> Map<String, Value> {
    let mut attributes = Map::new();
    attributes.insert("source".into(), json!(source.path().file_name().map(|n| n.to_string_lossy())));
    attributes
}

/// Where replicas go.
pub(super) fn home(source: &Source, options: &BuildOptions) -> Result<Home> {
    Ok(source.loaded()?.write.clone().with_patience(options.lock_timeout))
}

/// Lists a replica that is complete, instead of one with the same key.
pub(super) fn publish(
    source: &Source,
    place: SortedDraft,
    names: &[String],
    options: &BuildOptions,
) -> Result<()> {
    source.reader().store().check_unchanged()?;
    let seal = seal_of(source, names)?;
    let entry: SortedEntry = place.finish(names[0].clone(), names.to_vec(), seal)?;
    let add = |listing: &Listing| {
        let mut listing = listing.clone();
        listing.sorted.retain(|e| e.key != entry.key);
        listing.sorted.push(entry.clone());
        listing
    };
    Store::publish(&home(source, options)?, source.loaded()?.fingerprint()?, &add, true)
}

/// The key, then the arrays that go with it.
pub(super) fn columns(source: &Source, key: usize, options: &BuildOptions) -> Result<Vec<usize>> {
    let arrays = &source.schema().arrays;
    let mut columns = vec![key];
    match &options.columns {
        None => {
            let fits =
                |&a: &usize| a != key && arrays[a].dims == arrays[key].dims && source.array_header(a).is_ok();
            columns.extend((0..arrays.len()).filter(fits));
        }
        Some(names) => {
            for name in names {
                let a = source.resolve(name)?;
                source.array_header(a)?;
                if arrays[a].shape != arrays[key].shape || arrays[a].dims != arrays[key].dims {
                    return Err(Error::new(
                        ErrorKind::DimensionMismatch,
                        format!(
                            "'{}' does not have the dimensions of '{}'",
                            arrays[a].path, arrays[key].path
                        ),
                    )
                    .hint("a sorted replica carries arrays of its key's dimensions"));
                }
                if !columns.contains(&a) {
                    columns.push(a);
                }
            }
        }
    }
    Ok(columns)
}
