//! A name for the bytes of a result: who has the same name has the same bytes.

use sieva::Query;
use xxhash_rust::xxh3::Xxh3Default;

use crate::encoded::EncodeOptions;
use crate::format::Format;

/// 32 hexadecimal digits: the 128-bit xxh3 hash of the source's path, length and version (time of modification or tag),
/// how it was opened, the printed query, the names of its columns, the format, how it is compressed, and the version of this crate.
pub(crate) fn id_of(query: &Query, format: Format, options: &EncodeOptions) -> String {
    let source = query.source();
    let store = source.reader().store();
    let path = std::fs::canonicalize(source.path()).unwrap_or_else(|_| source.path().to_path_buf());
    let mut hash = Xxh3Default::new();
    let mut add = |part: &[u8]| {
        // The length before each part, so that no two lists of parts are the same bytes.
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(path.as_os_str().as_encoded_bytes());
    add(&store.len().to_le_bytes());
    add(store.version().as_bytes());
    add(source.meaning().as_bytes());
    add(query.text().as_bytes());
    query.outputs().iter().for_each(|output| add(output.name.as_bytes()));
    add(format.name().as_bytes());
    if options.deflate > 0 {
        add(&options.deflate.to_le_bytes());
    }
    format!("{:032x}", hash.digest128())
}
