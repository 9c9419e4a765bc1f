//! What is registered of one source.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sieva_catalog::{ArrayStats, MAX_MANIFEST, ObjectRecord, SourceRecord};
use sieva_format::ArraySource;
use sieva_format::manifest::{Layouts, Manifest};
use sieva_format::schema::{ArrayInfo, Schema};
use sieva_index::content_hash;
use sieva_types::{Error, ErrorKind, Result};

use super::attributes;
use super::statistics;
use crate::formats;
use crate::open::{OpenOptions, Source};

/// Values of coordinates that are kept with the manifest, in bytes each.
const MAX_VALUES: usize = 1 << 20;
/// Bytes and levels of a path that the catalog keeps.
const MAX_PATH: usize = 2000;
const MAX_DEPTH: usize = 256;
/// Characters of an error that are kept.
const MAX_ERROR: usize = 2000;

/// What became of a source.
pub(super) enum Outcome {
    /// It can be registered; attributes and objects that are left out.
    Found(Box<SourceRecord>, u64),
    /// It is damaged, and registered as such.
    Damaged(Box<SourceRecord>),
    /// It is of another format.
    Other,
    /// It could not be looked at now.
    Unreadable(Error),
    /// It is gone.
    Gone,
}

/// Opens a source and tells all that the catalog keeps. `state` is its size and version, where a look at it told them.
pub(super) fn look(
    path: &str,
    location: &str,
    state: &(u64, String),
    options: &OpenOptions,
    with_statistics: Option<&Arc<AtomicBool>>,
) -> Outcome {
    let found = formats::open(Path::new(path), options)
        .and_then(|reader| described(&reader, path, location, options, with_statistics));
    match found {
        Ok((record, left_out)) => Outcome::Found(Box::new(record), left_out),
        Err(e) => match e.kind() {
            ErrorKind::UnknownFormat => Outcome::Other,
            ErrorKind::FileNotFound => Outcome::Gone,
            ErrorKind::PermissionDenied
            | ErrorKind::Io
            | ErrorKind::Cancelled
            | ErrorKind::StaleSource
            | ErrorKind::Internal => Outcome::Unreadable(e),
            _ if is_json(path) => Outcome::Other,
            _ => Outcome::Damaged(Box::new(damaged(location, state, &e))),
        },
    }
}

/// A source that is registered with why it cannot be read.
pub(super) fn damaged(location: &str, (size, version): &(u64, String), e: &Error) -> SourceRecord {
    let message = e.message().chars().filter(|&c| c != '\0').take(MAX_ERROR).collect();
    SourceRecord { error: Some(message), ..SourceRecord::new(location, "", *size, version.clone()) }
}

/// Whether a file is JSON: it may be a reference set, but most are something else altogether.
fn is_json(path: &str) -> bool {
    use std::io::Read;
    let mut first = [0; 16];
    let read = sieva_store::local::open_regular(path.as_ref()).and_then(|mut f| f.read(&mut first));
    read.is_ok_and(|n| first[..n].trim_ascii_start().starts_with(b"{"))
}

fn described(
    reader: &Arc<dyn ArraySource>,
    path: &str,
    location: &str,
    options: &OpenOptions,
    with_statistics: Option<&Arc<AtomicBool>>,
) -> Result<(SourceRecord, u64)> {
    let (schema, store) = (reader.schema(), reader.store());
    let mut version = store.version();
    let manifest = if version.is_empty() { None } else { manifest(reader)? };
    if version.is_empty() {
        // A tree of objects has no state as a whole; what it says of itself tells whether it is the same.
        version = format!("schema {:016x}", content_hash(format!("{schema:?}").as_bytes()));
    }
    let stats = match with_statistics {
        Some(cancel) => {
            let source = Source::from_parts(Arc::clone(reader), path.into(), options, None, Instant::now());
            statistics::of(&source, cancel)?
        }
        None => Vec::new(),
    };
    let (objects, left_out) = objects(schema, stats);
    store.check_unchanged()?;
    let mut record = SourceRecord::new(location, schema.format.clone(), store.len(), version);
    (record.objects, record.manifest) = (objects, manifest);
    Ok((record, left_out))
}

/// How all arrays lie, with the values of their coordinates.
fn manifest(reader: &Arc<dyn ArraySource>) -> Result<Option<Vec<u8>>> {
    let mut manifest = Manifest::take(&**reader, Layouts::All)?;
    manifest.keep_values(reader, MAX_VALUES)?;
    let bytes = manifest.encode();
    Ok((bytes.len() <= MAX_MANIFEST).then_some(bytes))
}

/// Groups and arrays with their attributes; and how many attributes and objects are left out.
fn objects(schema: &Schema, stats: Vec<(String, ArrayStats)>) -> (Vec<ObjectRecord>, u64) {
    let mut stats: std::collections::HashMap<String, ArrayStats> = stats.into_iter().collect();
    let groups = schema.groups.iter().map(|group| (ObjectRecord::group(&group.path), &group.attrs));
    let arrays = schema.arrays.iter().map(|info| (array(info), &info.attrs));
    let (mut seen, mut kept, mut left_out) = (HashSet::new(), Vec::new(), 0);
    for (mut object, attrs) in groups.chain(arrays) {
        if !is_usable(&object) || !seen.insert(object.path.clone()) {
            left_out += 1;
            continue;
        }
        let (attributes, others) = attributes::values(attrs);
        left_out += others;
        object.attributes = attributes;
        object.stats = stats.remove(&object.path);
        kept.push(object);
    }
    (kept, left_out)
}

fn array(info: &ArrayInfo) -> ObjectRecord {
    let stored = &info.storage.stored_type;
    let dtype = if stored.is_empty() || stored.len() > 64 { info.dtype.name() } else { stored };
    let mut object = ObjectRecord::array(&info.path, dtype, &info.shape);
    object.stored_bytes = info.storage.stored_bytes.filter(|&n| i64::try_from(n).is_ok());
    object
}

/// Whether the catalog can keep an object of this path and shape.
fn is_usable(object: &ObjectRecord) -> bool {
    let path = &object.path;
    path.len() <= MAX_PATH
        && !path.contains('\0')
        && path.split('/').count() <= MAX_DEPTH
        && object.element_count().is_ok()
}
