//! The manifest: a small JSON file that says what counts.
//!
//! ```text
//! {"version": 1, "xxh3": "<16 hex: of all bytes after this line>",
//! "fingerprint":{...},"segments":[...],"sorted":[...]}
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sieva_store::local::Dir;
use sieva_types::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::bytes::corrupt;
use super::draft::Draft;
use super::files::write_error;
use super::names;
use super::{Fingerprint, Home};
use crate::place::{OpenError, Place};

/// The version of the manifest and of all that it lists.
const VERSION: u64 = 1;
/// What every manifest begins with.
const BEGINNING: &[u8] = b"{\"version\": ";
/// Bytes beyond which a file is not taken for a manifest.
const MAX_BYTES: u64 = 64 << 20;

/// A complete segment; what the manifest keeps of it.
///
/// One that was never published is removed when the last clone of it is dropped.
#[derive(Clone, Debug)]
pub struct SegmentName {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// xxh3-64 of its directory.
    pub(super) directory: u64,
    /// Whether it was written to survive a crash.
    pub(super) durable: bool,
    pub(super) draft: Option<Arc<Draft>>,
}

impl SegmentName {
    /// Whether it was written to survive a crash of the machine: what builds make is, what scans leave is not.
    pub fn durable(&self) -> bool {
        self.durable
    }

    /// Its file name within the store.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl PartialEq for SegmentName {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.bytes, self.directory) == (&other.name, other.bytes, other.directory)
    }
}

/// A sorted replica; made by [`SortedDraft::finish`](super::SortedDraft::finish), or read from a manifest.
#[derive(Clone, Debug)]
pub struct SortedEntry {
    /// Path of the array that it is sorted by.
    pub key: String,
    /// Its directory.
    pub dir: PathBuf,
    /// Paths of the arrays in it.
    pub columns: Vec<String>,
    /// Bytes of its files.
    pub bytes: u64,
    /// The number that its files are sealed with: the replica of another source has another. None of those of before.
    pub seal: Option<u64>,
    pub(super) draft: Option<Arc<Draft>>,
}

impl PartialEq for SortedEntry {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.dir, &self.columns, self.bytes, self.seal)
            == (&other.key, &other.dir, &other.columns, other.bytes, other.seal)
    }
}

/// What counts of a store. Of two segments that have a record of one region, the later one's is taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Segments, oldest first.
    pub segments: Vec<SegmentName>,
    /// Sorted replicas.
    pub sorted: Vec<SortedEntry>,
}

/// A manifest as it was read or will be written.
#[derive(Debug, PartialEq)]
pub(super) struct Manifest {
    pub(super) fingerprint: Fingerprint,
    pub(super) listing: Listing,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

#[derive(Deserialize)]
struct FileHead {
    xxh3: String,
}

#[derive(Serialize, Deserialize)]
struct FileBody {
    fingerprint: FileFingerprint,
    segments: Vec<FileSegment>,
    sorted: Vec<FileSorted>,
}

#[derive(Serialize, Deserialize)]
struct FileFingerprint {
    len: u64,
    version: String,
    content: String,
}

#[derive(Serialize, Deserialize)]
struct FileSegment {
    name: String,
    bytes: u64,
    directory: String,
    durable: bool,
}

#[derive(Serialize, Deserialize)]
struct FileSorted {
    name: String,
    key: String,
    columns: Vec<String>,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

impl Manifest {
    /// The manifest of the store in a local directory; `None` if there is none.
    pub(super) fn read(home: &Home) -> Result<Option<Self>> {
        Ok(Self::read_at(&Place::Local(home.clone()))?.map(|(manifest, _)| manifest))
    }

    /// The manifest of the store in `place`, and when it was put there where a server says so;
    /// `None` if there is none.
    pub(super) fn read_at(place: &Place) -> Result<Option<(Self, Option<u64>)>> {
        let name = || format!("'{}'", place.name_of(names::MANIFEST));
        let failed = |e: OpenError| match e {
            OpenError::System(e) if e.kind() == io::ErrorKind::InvalidData => {
                corrupt(e.to_string()).at(name())
            }
            // It names the store, and says what to do.
            OpenError::Storage(e) if !place.is_remote() => e,
            e => e.into_error(format!("cannot read {}", name())),
        };
        let file = match place.open(names::MANIFEST) {
            Err(e) if e.is_absence() => return Ok(None),
            file => file.map_err(failed)?,
        };
        let bytes = file.read_all(MAX_BYTES).map_err(failed)?;
        // Some web servers answer with a page of their own where there is nothing.
        if place.is_remote() && bytes.as_ref().is_none_or(|bytes| !bytes.starts_with(BEGINNING)) {
            return Ok(None);
        }
        let parsed = bytes.ok_or_else(|| corrupt("too large for a manifest"));
        let parsed = parsed.and_then(|bytes| Self::parse(&bytes, Path::new(&place.to_string())));
        Ok(Some((parsed.map_err(|e| e.at(name()))?, file.modified())))
    }

    fn parse(bytes: &[u8], dir: &Path) -> Result<Self> {
        let no_json = |e: serde_json::Error| corrupt(format!("no manifest: {e}"));
        let version = serde_json::from_slice::<VersionOnly>(bytes).map_err(no_json)?.version;
        if version > VERSION {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("written by a newer sieva (store version {version}, known up to {VERSION})"),
            )
            .hint("update sieva, or drop the augmentations and build them again"));
        }
        let start = bytes.iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| at + 1);
        let head: FileHead = serde_json::from_slice(bytes).map_err(no_json)?;
        if version != VERSION || head.xxh3 != hex(xxh3_64(&bytes[start..])) {
            return Err(corrupt("does not match its checksum"));
        }
        serde_json::from_slice::<FileBody>(bytes).map_err(no_json)?.resolve(dir)
    }

    /// The file's bytes.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let body = serde_json::to_string(&FileBody::of(self))
            .map_err(|e| Error::new(ErrorKind::Internal, format!("a manifest does not become JSON: {e}")))?;
        let rest = format!("{}\n", &body[1..]);
        let checksum = hex(xxh3_64(rest.as_bytes()));
        Ok(format!("{{\"version\": {VERSION}, \"xxh3\": \"{checksum}\",\n{rest}").into_bytes())
    }

    /// Replaces the manifest of a store whose directory is `dir`; the caller holds the store's lock. `before_rename` is called when nothing
    /// but the renaming is left.
    pub(super) fn write(
        &self,
        dir: &Dir,
        home: &Home,
        durable: bool,
        before_rename: impl FnOnce(),
    ) -> Result<()> {
        let bytes = self.encode()?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a store of so many segments: drop it and build it again",
            ));
        }
        let written = home.put(dir, names::MANIFEST, &bytes, durable, before_rename);
        written.map_err(|e| write_error(&home.path().join(names::MANIFEST), &e))?;
        if durable { dir.sync().map_err(|e| write_error(&home.path(), &e)) } else { Ok(()) }
    }
}

impl FileBody {
    fn of(manifest: &Manifest) -> Self {
        let Manifest { fingerprint, listing } = manifest;
        let segments = listing.segments.iter().map(|s| FileSegment {
            name: s.name.clone(),
            bytes: s.bytes,
            directory: hex(s.directory),
            durable: s.durable,
        });
        let sorted = listing.sorted.iter().map(|s| FileSorted {
            name: s.name(),
            key: s.key.clone(),
            columns: s.columns.clone(),
            bytes: s.bytes,
            seal: s.seal.map(hex),
        });
        Self {
            fingerprint: FileFingerprint {
                len: fingerprint.len,
                version: fingerprint.version.clone(),
                content: hex(fingerprint.content),
            },
            segments: segments.collect(),
            sorted: sorted.collect(),
        }
    }

    fn resolve(self, dir: &Path) -> Result<Manifest> {
        let segments = self.segments.into_iter().map(|s| {
            let directory = number(&s.directory)?;
            checked_name(&s.name, names::SEGMENT)?;
            Ok(SegmentName { name: s.name, bytes: s.bytes, directory, durable: s.durable, draft: None })
        });
        let sorted = self.sorted.into_iter().map(|s| {
            checked_name(&s.name, names::SORTED)?;
            Ok(SortedEntry {
                key: s.key,
                dir: dir.join(s.name),
                columns: s.columns,
                bytes: s.bytes,
                seal: s.seal.map(|seal| number(&seal)).transpose()?,
                draft: None,
            })
        });
        Ok(Manifest {
            listing: Listing {
                segments: segments.collect::<Result<_>>()?,
                sorted: sorted.collect::<Result<_>>()?,
            },
            fingerprint: Fingerprint {
                len: self.fingerprint.len,
                version: self.fingerprint.version,
                content: number(&self.fingerprint.content)?,
            },
        })
    }
}

impl SortedEntry {
    /// The name of its directory within the store.
    pub(super) fn name(&self) -> String {
        self.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Refuses names that could lead out of the store.
fn checked_name(name: &str, suffix: &str) -> Result<()> {
    if names::is_ours(name, suffix) {
        Ok(())
    } else {
        Err(corrupt(format!("lists '{name}', which is no name of a store")))
    }
}

fn hex(n: u64) -> String {
    format!("{n:016x}")
}

fn number(text: &str) -> Result<u64> {
    u64::from_str_radix(text, 16).map_err(|_| corrupt(format!("'{text}' is no checksum")))
}
