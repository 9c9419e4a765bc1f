//! A name for the bytes of a result: who has the same name has the same bytes.

use sieva::{CollectionQuery, Query, Result};
use xxhash_rust::xxh3::Xxh3Default;

use crate::encoded::EncodeOptions;
use crate::format::Format;

/// 32 hexadecimal digits: the 128-bit xxh3 hash of the source's path, length and version (time of modification or tag),
/// how it was opened, the printed query, the names of its columns, the format, how it is compressed, and the version of this crate.
pub(crate) fn id_of(query: &Query, format: Format, options: &EncodeOptions) -> String {
    let source = query.source();
    let store = source.reader().store();
    let path = std::fs::canonicalize(source.path()).unwrap_or_else(|_| source.path().to_path_buf());
    let mut hash = Parts::new();
    hash.add(path.as_os_str().as_encoded_bytes());
    hash.add(&store.len().to_le_bytes());
    hash.add(store.version().as_bytes());
    hash.add(source.meaning().as_bytes());
    hash.add(query.text().as_bytes());
    query.outputs().iter().for_each(|output| hash.add(output.name.as_bytes()));
    hash.add(format.name().as_bytes());
    if options.deflate > 0 {
        hash.add(&options.deflate.to_le_bytes());
    }
    hash.id()
}

/// The same of a query of a collection: of its plan, the objects that the catalog tells of, and the states of their sources.
///
/// # Errors
/// Those of opening the sources.
pub(crate) fn id_of_collection(query: &CollectionQuery, format: Format) -> Result<String> {
    let mut hash = Parts::new();
    hash.add(query.collection().name().as_bytes());
    query.state()?.iter().for_each(|n| hash.add(&n.to_le_bytes()));
    hash.add(query.logical_plan()?.id()?.as_bytes());
    query.columns()?.iter().for_each(|(name, _)| hash.add(name.as_bytes()));
    hash.add(format.name().as_bytes());
    Ok(hash.id())
}

/// The hash of a list of parts.
struct Parts(Xxh3Default);

impl Parts {
    fn new() -> Self {
        let mut parts = Self(Xxh3Default::new());
        parts.add(env!("CARGO_PKG_VERSION").as_bytes());
        parts
    }

    fn add(&mut self, part: &[u8]) {
        // The length before each part, so that no two lists of parts are the same bytes.
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn id(&self) -> String {
        format!("{:032x}", self.0.digest128())
    }
}
