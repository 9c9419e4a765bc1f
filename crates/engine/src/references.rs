//! Reference sets of kerchunk: where every chunk of a source lies, for readers of the Zarr world; and sources made of
//! such sets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::manifest::kerchunk::{self, Exported, ReferenceTree, References};
use sieva_format::manifest::{Layouts, Manifest};
use sieva_format_zarr::{ZarrOptions, ZarrSource};
use sieva_store::{RangedRead, is_url};
use sieva_types::{Error, ErrorKind, Result};

use crate::open::{OpenOptions, Source};

/// A reference set of more bytes than this is not read.
const MAX_BYTES: u64 = 1 << 30;

impl Source {
    /// The reference set of this source, whose readers find its bytes at `url`; finds the layouts of all arrays.
    ///
    /// # Errors
    /// `unsupported` for a source of many files, or one whose chunks are objects already; reading errors.
    pub fn references(&self, url: &str) -> Result<Exported> {
        if self.many().is_some() {
            let message =
                format!("'{}' is many files: a reference set is made of one", self.path().display());
            return Err(Error::new(ErrorKind::Unsupported, message).hint("make one of each file"));
        }
        kerchunk::export(&Manifest::take(&**self.reader(), Layouts::All)?, url)
    }

    /// A source made of a reference set that lies at `name`; what it refers to may lie beside it, or in the directories
    /// and below the URLs that the options allow.
    ///
    /// # Errors
    /// `link-refused` for references to other places; those of the Zarr reader.
    pub fn of_references(name: &str, references: References, options: &OpenOptions) -> Result<Self> {
        let started = Instant::now();
        let inner = open(name, references, options)?;
        Ok(Self::from_parts(inner, PathBuf::from(name), options, None, started))
    }
}

/// Whether an object looks like a reference set: JSON that says so at its beginning.
pub(crate) fn is_references(store: &dyn RangedRead) -> bool {
    let mut head = vec![0; store.len().min(4096) as usize];
    if store.read_exact_at(0, &mut head).is_err() || !head.trim_ascii_start().starts_with(b"{") {
        return false;
    }
    let text = String::from_utf8_lossy(&head);
    ["\"refs\"", "\".zgroup\"", ".zarray\"", ".zattrs\"", "\"version\""]
        .iter()
        .any(|word| text.contains(word))
}

/// Opens the reference set that an object holds.
pub(crate) fn read(store: &dyn RangedRead, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    let name = store.name().to_string();
    if store.len() > MAX_BYTES {
        let message =
            format!("'{name}': a reference set of {} bytes, at most {MAX_BYTES} are read", store.len());
        return Err(Error::new(ErrorKind::MemoryLimit, message));
    }
    let mut bytes = vec![0; store.len() as usize];
    store.read_exact_at(0, &mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::corrupt(format!("'{name}' is not UTF-8")))?;
    open(&name, kerchunk::import(&text).map_err(|e| e.at(format!("'{name}'")))?, options)
}

fn open(name: &str, references: References, options: &OpenOptions) -> Result<Arc<dyn ArraySource>> {
    let beside = name.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"));
    let place = {
        let beside = beside.clone();
        move |url: &str| {
            let stands_alone = is_url(url) || url.starts_with('/');
            if stands_alone { url.to_string() } else { format!("{beside}{url}") }
        }
    };
    let allowed = |url: &str| is_allowed(&place(url), &beside, options);
    let (remote, placed) = (options.remote.clone(), place.clone());
    let opener = Box::new(move |url: &str| sieva_store::open(&placed(url), &remote));
    let tree = ReferenceTree::new(name, references, opener, &allowed)?;
    Ok(Arc::new(ZarrSource::open(Arc::new(tree), &ZarrOptions { dims: options.dims.clone() })?))
}

/// Whether a reference may be followed: within the folder of the set, or within an allowed directory or URL.
fn is_allowed(target: &str, beside: &str, options: &OpenOptions) -> bool {
    let roots = &options.external_roots;
    if is_url(target) {
        let within = |root: &str| target.starts_with(&format!("{}/", root.trim_end_matches('/')));
        let named = roots.iter().filter_map(|r| r.to_str()).filter(|r| is_url(r)).any(within);
        return !target.contains("/../") && (named || (is_url(beside) && within(beside)));
    }
    if is_url(beside) && roots.is_empty() {
        return false;
    }
    // What is not there is told by who opens it, but for its folder the same holds.
    let target = Path::new(target);
    let real = target.canonicalize().or_else(|_| {
        let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        folder.canonicalize().map(|folder| folder.join(target.file_name().unwrap_or_default()))
    });
    let Ok(real) = real else { return false };
    let here = if beside.is_empty() { Path::new(".") } else { Path::new(beside) };
    let here = (!is_url(beside)).then_some(here);
    let mut all = roots.iter().map(PathBuf::as_path).chain(here).filter_map(|r| r.canonicalize().ok());
    all.any(|root| real.starts_with(root))
}
