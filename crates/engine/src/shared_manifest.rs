//! What opening a source learnt, as bytes with which other processes open it: none of them reads its metadata.
//!
//! One process opens the source, takes its manifest and hands it to the others, by a broadcast or a file. They look at the
//! source's length and time of modification (of a remote object: length and tag) and read nothing until values are wanted.
//! The samples of content by which indexes know their source (`Fingerprint`) are read by the first process only: the others
//! take the hash of them from the bytes. The format is described in `docs/reference/manifest-format.md`.

use std::path::Path;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::layout::Placement;
use sieva_format::manifest::{Layouts, MAX_DECODED, Manifest, ManifestSource};
use sieva_store::guard::Purpose;
use sieva_store::{RangedRead, is_url};
use sieva_types::wire::{Subject, Writer};
use sieva_types::{Error, ErrorKind, Result};

use crate::catalog::LazyFile;
use crate::open::{OpenOptions, Source};
use crate::{formats, frame};

const MAGIC: [u8; 4] = *b"SVSM";
const SUBJECT: Subject = Subject {
    name: "shared manifest",
    kind: ErrorKind::CorruptIndex,
    hint: "take it again from the source, and hand it on whole",
};

/// A manifest for opening a source elsewhere.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// use std::sync::Arc;
/// let bytes = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?.manifest()?;
/// // In another process:
/// let manifest = Arc::new(sieva::SharedManifest::from_bytes(&bytes)?);
/// let options = sieva::OpenOptions { manifest: Some(manifest), ..Default::default() };
/// let source = sieva::Source::open("pop.nc", &options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedManifest {
    manifest: Manifest,
    /// How the source was opened, as far as that changes its schema.
    opened: String,
    /// The hash of samples of its content, and of its schema.
    content: u64,
}

impl SharedManifest {
    /// What [`Source::manifest`] gave. It is believed as the process that made it is: the bytes are checked against damage,
    /// and that nothing in them leads astray, not whether they tell the truth.
    ///
    /// # Errors
    /// `corrupt-index` for damaged bytes, and for those of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_within(bytes, MAX_DECODED)
    }

    /// As [`SharedManifest::from_bytes`], in at most about `limit` bytes of memory.
    ///
    /// # Errors
    /// As [`SharedManifest::from_bytes`].
    pub fn from_bytes_within(bytes: &[u8], limit: usize) -> Result<Self> {
        let mut r = frame::opened(MAGIC, "SVSM", &SUBJECT, bytes, limit as u64)?;
        let (opened, content) = (r.text()?, r.uint()?);
        let manifest = Manifest::decode_within(r.blob()?, limit)?;
        r.finish()?;
        Ok(Self { manifest, opened, content })
    }

    /// The bytes of it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.text(&self.opened);
        w.uint(self.content);
        w.blob(&self.manifest.encode());
        frame::framed(MAGIC, w)
    }

    /// The hash of samples of the source's content, which tells its indexes from those of another state.
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    /// The reader of the source at `path` in the state of which the manifest was taken.
    ///
    /// # Errors
    /// `stale-source` where it is in another state; `invalid-value` where it is opened in another way; `file-not-found`,
    /// `permission-denied`.
    pub(crate) fn open(&self, path: &Path, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
        if opened_as(options) != self.opened {
            let message = format!(
                "the manifest was taken of a source opened with dims={}, this one is opened with dims={}",
                self.opened,
                opened_as(options)
            );
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint("give the dims= that it was opened with then"));
        }
        let store: Arc<dyn RangedRead> = match path.to_str().filter(|p| is_url(p)) {
            Some(url) => {
                // One byte, with which the server tells length and tag.
                let remote = sieva_store::RemoteOptions { first_bytes: 1, ..options.remote.clone() };
                sieva_store::open_within(url, &remote, &options.gate, Purpose::Source)?
            }
            None => Arc::new(LazyFile::look(path, &options.gate)?),
        };
        let source = ManifestSource::new(self.manifest.clone(), store)?;
        let (path, options) = (path.to_path_buf(), options.clone());
        Ok(Arc::new(source.with_fallback(Box::new(move || formats::open(&path, &options)))))
    }
}

/// How a source is opened, as far as that changes what its manifest says.
fn opened_as(options: &OpenOptions) -> String {
    format!("{:?}", options.dims)
}

impl Source {
    /// What opening this source learnt, for processes that open it after this one: its schema, where the bytes of all its
    /// arrays lie, and what tells its state ([`SharedManifest`]). Finds the layouts of all arrays, which reads the indexes of
    /// their chunks, and reads 64 KiB of samples.
    ///
    /// # Errors
    /// `unsupported` for what is not one object: several files, a Zarr hierarchy, a reference set; for an object whose server
    /// gives it no tag; `stale-source` where it was changed since it was opened; reading errors.
    pub fn manifest(&self) -> Result<Vec<u8>> {
        let name = self.name();
        let several = |what: String| {
            Error::new(ErrorKind::Unsupported, format!("no manifest of '{name}': {what}"))
                .hint("open it in each process, or each file of it by its own manifest")
        };
        if self.many().is_some() {
            return Err(several("it is made of several files".into()));
        }
        let reader = self.reader();
        if reader.store().version().is_empty() {
            return Err(several("nothing tells one state of it from another".into()));
        }
        let manifest = Manifest::take(&**reader, Layouts::All)?.with_striping(self.striping());
        for (array, info) in reader.schema().arrays.iter().enumerate() {
            // An array that cannot be read here cannot be read there; what may pass is an error now.
            if matches!(manifest.layout(array), Ok(None)) {
                let layout = reader.layout(array)?;
                let why = match &layout.placement {
                    Placement::Objects | Placement::Parts(_) => "lies in several objects",
                    Placement::Foreign(_) => "is read by a library",
                    _ => "has a filter that has no number",
                };
                return Err(several(format!("'{}' {why}", info.path)));
            }
        }
        let shared =
            SharedManifest { manifest, opened: opened_as(self.options()), content: self.content_hash()? };
        Ok(shared.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test alone, which is removed in the end.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("sieva-shared-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A netCDF-3 file of one array x (n) of 1000 float32.
    fn file(dir: &Path) -> std::path::PathBuf {
        let mut bytes = b"CDF\x01\0\0\0\0".to_vec();
        let mut word = |w: u32| bytes.extend(w.to_be_bytes());
        // One dimension n, no attributes, one variable x of it.
        for w in [
            0x0a,
            1,
            1,
            u32::from(b'n') << 24,
            1000,
            0,
            0,
            0x0b,
            1,
            1,
            u32::from(b'x') << 24,
            1,
            0,
            0,
            0,
            5,
            4000,
            80,
        ] {
            word(w);
        }
        assert_eq!(bytes.len(), 80);
        bytes.extend((0..1000).flat_map(|i| (i as f32).to_be_bytes()));
        let path = dir.join("x.nc");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn by(bytes: &[u8]) -> OpenOptions {
        OpenOptions {
            manifest: Some(Arc::new(SharedManifest::from_bytes(bytes).unwrap())),
            ..OpenOptions::default()
        }
    }

    #[test]
    fn a_source_is_opened_without_reading_and_read_as_it_is() {
        let dir = Scratch::new("read");
        let path = file(&dir.0);
        let first = Source::open(&path, &OpenOptions::default()).unwrap();
        let bytes = first.manifest().unwrap();
        assert_eq!(SharedManifest::from_bytes(&bytes).unwrap().to_bytes(), bytes);
        let other = Source::open(&path, &by(&bytes)).unwrap();
        assert_eq!(other.schema().arrays[0].path, "x");
        assert_eq!(other.content_hash().unwrap(), first.content_hash().unwrap());
        assert_eq!(other.reader().store().counters().snapshot().bytes_read, 0);
        let query = other.query(Some("x >= 990"), None, &crate::QueryOptions::default()).unwrap();
        assert_eq!(query.count().unwrap(), 10);
        assert_eq!(other.reader().store().counters().snapshot().bytes_read, 4000);
        // What was opened by a manifest gives one.
        assert_eq!(other.manifest().unwrap(), bytes);
    }

    #[test]
    fn whoever_has_the_manifest_asks_no_file_system_for_the_striping() {
        let dir = Scratch::new("striping");
        let path = file(&dir.0);
        let striping = sieva_store::Striping::parse("stripe_size=128,on=7+3+9").unwrap();
        let given = OpenOptions { striping: Some(striping.clone()), ..OpenOptions::default() };
        let first = Source::open(&path, &given).unwrap();
        let bytes = first.manifest().unwrap();
        let plain = Source::open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(plain.striping().servers(), 1, "what the file system would say");
        let other = Source::open(&path, &by(&bytes)).unwrap();
        let of = |source: &Source| {
            let set = source.sub_correlation(0).unwrap().unwrap();
            (0..3).map(|server| set.of_server(server).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(of(&other), of(&first));
        assert_eq!((other.striping().servers(), other.striping().server_name(0)), (3, "server 3".into()));
        assert_eq!(other.reader().store().counters().snapshot().requests, 0);
        assert_eq!(other.manifest().unwrap(), bytes);
        // What is given at opening counts for more; of one server nothing is kept.
        let two = Some(sieva_store::Striping::given(64, 2, 0).unwrap());
        let told = Source::open(&path, &OpenOptions { striping: two, ..by(&bytes) }).unwrap();
        assert_eq!(told.striping().servers(), 2);
        let single = Source::open(&path, &by(&plain.manifest().unwrap())).unwrap();
        assert!(single.striping().is_single());
        assert!(bytes.len() < plain.manifest().unwrap().len() + 64, "a rule, no table");
    }

    #[test]
    fn another_state_another_way_and_several_files_are_refused() {
        let dir = Scratch::new("refused");
        let path = file(&dir.0);
        let bytes = Source::open(&path, &OpenOptions::default()).unwrap().manifest().unwrap();
        let named = OpenOptions { dims: vec![("x".into(), vec!["m".into()])], ..by(&bytes) };
        assert_eq!(Source::open(&path, &named).map(|_| ()).unwrap_err().kind(), ErrorKind::InvalidValue);
        let copy = dir.0.join("y.nc");
        std::fs::copy(&path, &copy).unwrap();
        let two = [&path, &copy].map(|p| p.to_str().unwrap().to_string());
        let joined = OpenOptions { join: Some("file".into()), ..by(&bytes) };
        assert_eq!(Source::open_many(&two, &joined).map(|_| ()).unwrap_err().kind(), ErrorKind::InvalidValue);
        let many =
            Source::open_many(&two, &OpenOptions { join: Some("file".into()), ..OpenOptions::default() });
        assert_eq!(many.unwrap().manifest().unwrap_err().kind(), ErrorKind::Unsupported);
        let mut longer = std::fs::read(&path).unwrap();
        longer.push(0);
        std::fs::write(&path, longer).unwrap();
        let e = Source::open(&path, &by(&bytes)).map(|_| ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::StaleSource, "{e}");
        std::fs::remove_file(&path).unwrap();
        let e = Source::open(&path, &by(&bytes)).map(|_| ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::FileNotFound, "{e}");
    }

    #[test]
    fn damage_is_told() {
        let dir = Scratch::new("damage");
        let bytes = Source::open(file(&dir.0), &OpenOptions::default()).unwrap().manifest().unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let e = SharedManifest::from_bytes(&damaged).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::CorruptIndex, "byte {at}: {e}");
            assert!(e.hint_text().is_some());
            assert!(SharedManifest::from_bytes(&bytes[..at]).is_err());
        }
        assert!(SharedManifest::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}
