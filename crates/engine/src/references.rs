//! Reference sets of kerchunk: where every chunk of a source lies, for readers of the Zarr world; and sources made of
//! such sets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::json::parsed_size;
use sieva_format::manifest::kerchunk::{self, Exported, ReferenceTree, References};
use sieva_format::manifest::{Layouts, Manifest};
use sieva_format_zarr::ZarrSource;
use sieva_store::guard::{AllowList, Purpose};
use sieva_store::{RangedRead, is_url};
use sieva_types::{Error, ErrorKind, Result};

use crate::catalog::place as files;
use crate::formats;
use crate::memory;
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
    let memory = options.memory.unwrap_or_else(memory::default_limit);
    let too_large = |what: &str| {
        let message = format!("'{name}': a reference set of {} bytes {what}", store.len());
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("open it with more memory (memory= in Python), or write it anew as Parquet (*.parq)"))
    };
    let most = memory.min(MAX_BYTES);
    if store.len() > most {
        return too_large(&format!(", at most {most} are read"));
    }
    let mut bytes = vec![0; store.len() as usize];
    store.read_exact_at(0, &mut bytes)?;
    if parsed_size(&bytes) > memory {
        return too_large(&format!("takes more than {memory} bytes of memory when it is parsed"));
    }
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
    // Asked for the set as a whole, and again for each object when it is opened, by where that leads then.
    let gate = options.gate.and(Arc::new(roots(&beside, options)?));
    let allowed = |url: &str| gate.check_url(&place(url), Purpose::Link).is_ok();
    let (remote, placed, asked) = (options.remote.clone(), place.clone(), gate.clone());
    let opener =
        Box::new(move |url: &str| sieva_store::open_within(&placed(url), &remote, &asked, Purpose::Link));
    // What an index knows of the data is of the files as they are now.
    let state = |url: &str| {
        let url = place(url);
        let path = url.strip_prefix("file://").unwrap_or(&url);
        if is_url(path) { None } else { std::fs::metadata(path).ok().map(|meta| files::state(&meta)) }
    };
    let tree = ReferenceTree::new(name, references, opener, &allowed)?.noting(&state);
    Ok(Arc::new(ZarrSource::open(Arc::new(tree), &formats::zarr_options(options))?))
}

/// Where the references of a set may lead: its own folder, and the directories and URLs that the options allow.
fn roots(beside: &str, options: &OpenOptions) -> Result<AllowList> {
    let mut roots = AllowList::new([if beside.is_empty() { "." } else { beside }])?;
    for root in &options.external_roots {
        match root.to_str() {
            Some(root) if is_url(root) => roots.add(root)?,
            _ => roots.add_path(root),
        }
    }
    Ok(roots.with_hint("name its directory with --external (external= in Python) if you trust it"))
}
