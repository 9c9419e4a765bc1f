//! What is known of a source after it was parsed once: its schema, where its arrays' bytes lie, and which state of the
//! object that was true of.
//!
//! With a [`Manifest`] nobody parses the file again: a catalog keeps one for each file, a worker process that parses
//! foreign bytes hands back nothing else. [`ManifestSource`] is a source made of one. The format is described in
//! `docs/reference/manifest-format.md`; [`kerchunk`] translates from and to reference sets of the Zarr world.

pub mod kerchunk;

mod check;
mod chunks;
mod container;
mod excerpt;
mod layout;
mod schema;
mod source;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_store::{RangedRead, Striping};
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{Error, ErrorKind, Result};

use crate::ArraySource;
use crate::layout::Layout;
use crate::schema::{ArrayInfo, Schema};
pub use excerpt::Excerpt;
pub use source::{Fallback, ManifestSource};

/// Bytes of a manifest, for whoever reads them.
pub const SUBJECT: Subject = Subject {
    name: "manifest",
    kind: ErrorKind::CorruptIndex,
    hint: "remove it: it is made anew from the source",
};

/// The most memory that [`Manifest::decode`] takes: some 20 million chunks.
pub const MAX_DECODED: usize = 1 << 30;

/// Of which arrays a manifest keeps the layout. Finding one may read much: the index of all chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layouts<'a> {
    /// Of all.
    All,
    /// Of none.
    None,
    /// Of these (indices into [`Schema::arrays`]).
    Some(&'a [usize]),
}

/// What is known of an array's layout.
#[derive(Clone, Debug)]
enum Kept {
    /// Nothing, or that only the source itself can say it.
    Nothing,
    /// The layout.
    Known(Arc<Layout>),
    /// Why there is none.
    Failed(Error),
}

impl Kept {
    fn write(&self, w: &mut Writer) {
        match self {
            Self::Nothing => w.byte(0),
            Self::Known(layout) => {
                w.byte(1);
                layout::write(w, layout);
            }
            Self::Failed(e) => {
                w.byte(2);
                w.error(e);
            }
        }
    }

    /// What is known of the layout of `array`.
    fn read(r: &mut Reader<'_>, array: &ArrayInfo) -> Result<Self> {
        match r.byte()? {
            0 => Ok(Self::Nothing),
            1 => {
                let found = layout::read(r)?;
                check::layout(array, &found)?;
                Ok(Self::Known(Arc::new(found)))
            }
            2 => Ok(Self::Failed(r.error()?)),
            other => Err(r.damaged(format!("{other} is no kind of layout"))),
        }
    }
}

/// All that is known of a source.
#[derive(Clone, Debug)]
pub struct Manifest {
    schema: Arc<Schema>,
    len: u64,
    version: String,
    layouts: Vec<Kept>,
    values: BTreeMap<usize, Arc<[u8]>>,
    striping: Option<Striping>,
}

impl Manifest {
    /// What `source` says. An array whose layout cannot be found is kept with its error.
    ///
    /// # Errors
    /// `stale-source` where the source was changed since it was opened; `internal-error` for an index that is none.
    pub fn take(source: &dyn ArraySource, which: Layouts<'_>) -> Result<Self> {
        let taken = Self::take_pinned(source, which)?;
        // After all was looked at: what it says then belongs to one state of the object.
        source.store().check_unchanged()?;
        Ok(taken)
    }

    /// As [`Manifest::take`], of a source whose storage checks every byte that it brings against the version that was
    /// opened: nothing is asked of it.
    ///
    /// # Errors
    /// As [`Manifest::take`], but for `stale-source`.
    pub fn take_pinned(source: &dyn ArraySource, which: Layouts<'_>) -> Result<Self> {
        let arrays = source.schema().arrays.len();
        let mut layouts = vec![Kept::Nothing; arrays];
        let mut keep = |array: usize| {
            let none = || Error::new(ErrorKind::Internal, format!("no array number {array}"));
            let slot = layouts.get_mut(array).ok_or_else(none)?;
            *slot = match source.layout(array) {
                Ok(found) if layout::can_keep(&found) => Kept::Known(found),
                Ok(_) => Kept::Nothing,
                // What passes is asked again.
                Err(e)
                    if matches!(e.kind(), ErrorKind::Io | ErrorKind::Cancelled | ErrorKind::StaleSource) =>
                {
                    Kept::Nothing
                }
                Err(e) => Kept::Failed(e),
            };
            Ok(())
        };
        match which {
            Layouts::All => (0..arrays).try_for_each(&mut keep)?,
            Layouts::None => {}
            Layouts::Some(some) => some.iter().copied().try_for_each(&mut keep)?,
        }
        let (len, version) = (source.store().len(), source.store().version());
        let schema = Arc::new(source.schema().clone());
        Ok(Self { schema, len, version, layouts, values: BTreeMap::new(), striping: None })
    }

    /// The same with where the bytes of the object lie. With the layouts that is the sub-correlation set of each array
    /// ([`crate::physical`]), which is a rule and no table: who has the manifest asks no file system. Of one server nothing is
    /// kept.
    #[must_use]
    pub fn with_striping(self, striping: &Striping) -> Self {
        Self { striping: (!striping.is_single()).then(|| striping.clone()), ..self }
    }

    /// Where the bytes of the object lie, where that was kept.
    pub fn striping(&self) -> Option<&Striping> {
        self.striping.as_ref()
    }

    /// What the source says of itself.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Length of the object in bytes, then.
    pub fn object_len(&self) -> u64 {
        self.len
    }

    /// What [`RangedRead::version`] said of it, then.
    pub fn object_version(&self) -> &str {
        &self.version
    }

    /// The layout of an array; `None` where it is not known here.
    ///
    /// # Errors
    /// What finding it said when the manifest was taken.
    pub fn layout(&self, array: usize) -> Result<Option<Arc<Layout>>> {
        match self.layouts.get(array) {
            Some(Kept::Known(layout)) => Ok(Some(Arc::clone(layout))),
            Some(Kept::Failed(e)) => Err(e.clone()),
            Some(Kept::Nothing) | None => Ok(None),
        }
    }

    /// Whether an object is the one that the manifest tells of.
    ///
    /// # Errors
    /// `stale-source` where it has another length, or another version.
    pub fn check_object(&self, object: &dyn RangedRead) -> Result<()> {
        let (len, version) = (object.len(), object.version());
        let what = if len != self.len {
            format!("has {len} bytes, it had {}", self.len)
        } else if !version.is_empty() && !self.version.is_empty() && version != self.version {
            format!("is of version {version}, it was {}", self.version)
        } else {
            return Ok(());
        };
        let message = format!("'{}' was changed since its manifest was taken: it {what}", object.name());
        Err(Error::new(ErrorKind::StaleSource, message).hint("take the manifest again"))
    }

    /// The manifest as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.uint(self.len);
        w.text(&self.version);
        schema::write(&mut w, &self.schema, |w, array| self.layouts[array].write(w));
        let values: Vec<_> = self.values.iter().collect();
        w.list(&values, |w, (array, bytes)| {
            w.uint(**array as u64);
            w.blob(&values::reorder(&self.schema.arrays[**array], bytes));
        });
        let kept = self.striping.as_ref().and_then(Striping::to_kept);
        if let Some((rule, kind)) = &kept {
            w.text(rule);
            w.text(kind);
        }
        container::pack(&w.into_bytes(), kept.is_some())
    }

    /// The manifest that [`Manifest::encode`] made, in at most [`MAX_DECODED`] bytes of memory.
    ///
    /// # Errors
    /// `corrupt-index` for anything else.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::decode_within(bytes, MAX_DECODED)
    }

    /// As [`Manifest::decode`], in at most about `limit` bytes of memory.
    ///
    /// # Errors
    /// As [`Manifest::decode`].
    pub fn decode_within(bytes: &[u8], limit: usize) -> Result<Self> {
        container::unpack(bytes, limit, |content, format| {
            let mut r = Reader::new(&SUBJECT, content, limit);
            let (len, version) = (r.uint()?, r.text()?);
            let (schema, layouts) = match format {
                container::UNFRAMED => schema::read_unframed(&mut r, Kept::read)?,
                _ => schema::read(&mut r, Kept::read)?,
            };
            check::schema(&schema)?;
            let values = values::read(&mut r, &schema)?;
            let striping = (format == container::STRIPED).then(|| read_striping(&mut r, len)).transpose()?;
            r.finish()?;
            Ok(Self { schema: Arc::new(schema), len, version, layouts, values, striping })
        })
    }
}

/// The striping of an object of `len` bytes.
fn read_striping(r: &mut Reader<'_>, len: u64) -> Result<Striping> {
    let (rule, kind) = (r.text()?, r.text()?);
    Striping::of_kept(&rule, &kind, len).map_err(|e| r.damaged(e.message()))
}

/// One layout as bytes, where it can be written down: for programs that ask for one array at a time.
pub fn encode_layout(layout: &Layout) -> Option<Vec<u8>> {
    layout::can_keep(layout).then(|| {
        let mut w = Writer::default();
        layout::write(&mut w, layout);
        w.into_bytes()
    })
}

/// The layout that [`encode_layout`] made, of array number `array` of `schema`, in at most about `limit` bytes.
///
/// # Errors
/// `corrupt-index` for anything else, and where it does not fit the array.
pub fn decode_layout(bytes: &[u8], schema: &Schema, array: usize, limit: usize) -> Result<Layout> {
    let mut r = Reader::new(&SUBJECT, bytes, limit);
    let info = schema.arrays.get(array).ok_or_else(|| r.damaged(format!("no array number {array}")))?;
    let found = layout::read(&mut r)?;
    r.finish()?;
    check::layout(info, &found)?;
    Ok(found)
}
