//! What tells the state of a source from others, for what was made of it elsewhere.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::schema::StorageInfo;
use sieva_index::content_hash;
use sieva_index::store::Fingerprint;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::Source;

/// What tells this state of a source from others, wherever it is opened: length, and hashes of its version and of its content.
/// Of many files together only what their lengths, versions and schemas say.
pub(crate) fn state_of(source: &Source) -> Result<[u64; 3]> {
    let (reader, store) = (source.reader(), source.reader().store());
    store.check_unchanged()?;
    if source.many().is_some() {
        let version = content_hash(store.version().as_bytes());
        return Ok([store.len(), version, schema_hash(reader)]);
    }
    let loaded = source.loaded()?;
    let Fingerprint { len, version, content } = loaded.fingerprint()?;
    Ok([*len, content_hash(version.as_bytes()), *content])
}

/// The same of a source's bytes alone, whichever of its arrays were looked at when it was opened.
pub(crate) fn state_of_bytes(source: &Source) -> Result<[u64; 3]> {
    let store = source.reader().store();
    store.check_unchanged()?;
    let Fingerprint { len, version, content } = Fingerprint::take(store.as_ref(), store.version(), 0)?;
    Ok([len, content_hash(version.as_bytes()), content])
}

/// A hash of what arrays are and how they are stored.
pub(super) fn schema_hash(reader: &Arc<dyn ArraySource>) -> u64 {
    let mut described = String::new();
    for a in &reader.schema().arrays {
        // What dims= may change of a schema is left out, and stored bytes, which are not added up over a network.
        let storage = StorageInfo { stored_bytes: None, ..a.storage.clone() };
        described += &format!("{:?}", (&a.path, a.dtype, &a.shape, &a.decoding, &storage));
    }
    content_hash(described.as_bytes())
}

/// That a source is in the state that a task is of.
///
/// # Errors
/// `stale-source` where it is in another.
pub(crate) fn check_state(source: &Source, state: [u64; 3]) -> Result<()> {
    if state == state_of(source)? {
        return Ok(());
    }
    let message = format!("'{}' is not in the state that the task is of", source.name());
    Err(Error::new(ErrorKind::StaleSource, message)
        .hint("make the tasks anew, of the same file, copied with its time of modification if at all"))
}
