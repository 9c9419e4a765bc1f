//! Arrays that a program has in memory, as a source: nothing is copied before it is asked for.
//!
//! An array lies in blocks, as several parts of a program have them, which cover all of it and do not overlap. The memory is
//! lent: once the [`Loan`] is dropped nothing reads it, whatever still holds the source.

mod reader;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sieva_types::{Bx, DType, Error, ErrorKind, Result, checked_len};

use super::{ForeignArray, ForeignSource, ForeignStore, Places, groups_of, owner_of};
use crate::decoding::Decoding;
use crate::schema::{ArrayInfo, Attr, AttrValue, GroupInfo, Naming, Schema, StorageInfo};
pub use reader::Loan;
use reader::MemoryReader;

/// More dimensions than any array has.
const MOST_DIMS: usize = 64;
/// The most blocks of an array: each is compared with the others.
const MOST_BLOCKS: usize = 1 << 14;

/// The values of a block in C order. Cheap to clone.
#[derive(Clone)]
pub enum MemoryValues {
    /// Numbers in native byte order.
    Bytes(Arc<dyn AsRef<[u8]> + Send + Sync>),
    /// Texts.
    Texts(Arc<[String]>),
}

/// A block: where it lies in its array, and its values.
#[derive(Clone)]
struct Block {
    bx: Bx,
    values: MemoryValues,
}

/// An array in memory.
#[derive(Clone)]
struct Held {
    dtype: DType,
    shape: Vec<u64>,
    dims: Option<Vec<String>>,
    blocks: Vec<Block>,
}

/// Arrays in memory, until they are a source. A clone copies no values.
#[derive(Clone, Default)]
pub struct MemoryArrays {
    /// In the order in which they were given.
    paths: Vec<String>,
    arrays: HashMap<String, Held>,
    attrs: BTreeMap<String, AttrValue>,
    left_out: Vec<(String, Error)>,
}

impl MemoryArrays {
    /// Adds an array without values yet, by its path (`group/name`). Dimensions without names are shared by their length, as those
    /// of BP files.
    ///
    /// # Errors
    /// `invalid-value` for an empty path, one that is there, too many dimensions or elements, and other names than dimensions.
    pub fn array(
        &mut self,
        path: &str,
        dtype: DType,
        shape: &[u64],
        dims: Option<Vec<String>>,
    ) -> Result<()> {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return Err(invalid("an array without a name"));
        }
        if self.is_known(path) {
            return Err(invalid(format!("two arrays are called '{path}'")));
        }
        let bytes = checked_len(shape).ok().and_then(|n| n.checked_mul(dtype.size().max(1) as u64));
        if shape.len() > MOST_DIMS || bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err(invalid(format!("'{path}' of shape {shape:?} is more than memory can have")));
        }
        if let Some(names) = dims.as_ref().filter(|names| names.len() != shape.len()) {
            let (rank, given) = (shape.len(), names.len());
            return Err(invalid(format!("'{path}' has {rank} dimensions, {given} names are given for them")));
        }
        self.paths.push(path.to_owned());
        let held = Held { dtype, shape: shape.to_vec(), dims, blocks: Vec::new() };
        self.arrays.insert(path.to_owned(), held);
        Ok(())
    }

    /// Adds the values of a box of an array.
    ///
    /// # Errors
    /// `unknown-array`; `invalid-value` for a box that does not lie within the array, and values of another number or kind.
    pub fn block(&mut self, path: &str, bx: Bx, values: MemoryValues) -> Result<()> {
        let path = path.trim_matches('/');
        let unknown =
            || Error::new(ErrorKind::UnknownArray, format!("values of '{path}', which is no array yet"));
        let held = self.arrays.get_mut(path).ok_or_else(unknown)?;
        let (shape, rank) = (&held.shape, held.shape.len());
        if bx.start.len() != rank || bx.shape.len() != rank || !bx.is_within(shape) {
            let (start, count) = (&bx.start, &bx.shape);
            let message = format!(
                "a block of '{path}' from {start:?} of shape {count:?}: the array has shape {shape:?}"
            );
            return Err(invalid(message));
        }
        let expected = bx.len();
        let (given, what) = match &values {
            MemoryValues::Texts(texts) if held.dtype == DType::Str => (texts.len() as u64, "texts"),
            MemoryValues::Bytes(bytes) if held.dtype != DType::Str => {
                let bytes = (**bytes).as_ref().len() as u64;
                let size = held.dtype.size().max(1) as u64;
                (if bytes.is_multiple_of(size) { bytes / size } else { u64::MAX }, "values")
            }
            _ => {
                return Err(invalid(format!(
                    "'{path}' is of {}: these are no values of it",
                    held.dtype.name()
                )));
            }
        };
        if given != expected {
            return Err(invalid(format!(
                "a block of '{path}' has {expected} {what}, not as many were given"
            )));
        }
        if held.blocks.len() >= MOST_BLOCKS {
            return Err(
                invalid(format!("more than {MOST_BLOCKS} blocks of '{path}'")).hint("write larger blocks")
            );
        }
        if expected > 0 {
            held.blocks.push(Block { bx, values });
        }
        Ok(())
    }

    /// Adds an attribute, in place of one of that name. It is of the array or group whose path its name begins with (`T/units`), as
    /// in BP files.
    pub fn attribute(&mut self, name: &str, value: AttrValue) {
        self.attrs.insert(name.trim_matches('/').to_owned(), value);
    }

    /// Says that something is no array here, and why: `is of complex numbers`. Who asks for it is told.
    ///
    /// # Errors
    /// `invalid-value` for the name of an array.
    pub fn leave_out(&mut self, path: &str, why: &str) -> Result<()> {
        let path = path.trim_matches('/');
        if self.is_known(path) {
            return Err(invalid(format!("'{path}' is there already")));
        }
        let error = Error::new(ErrorKind::Unsupported, format!("'{path}' {why}"));
        self.left_out.push((path.to_owned(), error));
        Ok(())
    }

    /// The type and the shape of an array that was given.
    pub fn type_and_shape(&self, path: &str) -> Option<(DType, &[u64])> {
        self.arrays.get(path.trim_matches('/')).map(|held| (held.dtype, &*held.shape))
    }

    /// Bytes of all arrays; of texts, their characters.
    pub fn bytes(&self) -> u64 {
        let of = |block: &Block| match &block.values {
            MemoryValues::Bytes(bytes) => (**bytes).as_ref().len() as u64,
            MemoryValues::Texts(texts) => texts.iter().map(|text| text.len() as u64).sum(),
        };
        self.arrays.values().flat_map(|held| &held.blocks).map(of).sum()
    }

    fn is_known(&self, path: &str) -> bool {
        self.arrays.contains_key(path) || self.left_out.iter().any(|(known, _)| known == path)
    }

    /// The source that messages call `name`, and the loan of its memory. `version` tells it from others of that name.
    ///
    /// # Errors
    /// `invalid-value` for blocks that overlap or leave something out, and for one dimension of two lengths.
    pub fn source(self, name: &str, version: &str) -> Result<(ForeignSource, Loan)> {
        for path in &self.paths {
            self.arrays[path].check_covered(path)?;
        }
        let schema = self.schema()?;
        let described = vec![ForeignArray::default(); schema.arrays.len()];
        let (reader, loan) = MemoryReader::new(self.arrays);
        let store = ForeignStore::new(name, &[], version)?;
        let source =
            ForeignSource::new(schema, &described, "in the program's memory", store, Box::new(reader))?;
        Ok((source, loan))
    }

    fn schema(&self) -> Result<Schema> {
        let mut groups: BTreeSet<&str> = self.paths.iter().flat_map(|path| groups_of(path)).collect();
        groups.insert("");
        let owners: BTreeSet<&str> =
            groups.iter().copied().chain(self.paths.iter().map(String::as_str)).collect();
        let mut attrs: BTreeMap<&str, Vec<Attr>> = BTreeMap::new();
        for (name, value) in &self.attrs {
            let owner = owner_of(name, &owners);
            let own = name[owner.len()..].trim_start_matches('/').to_owned();
            attrs.entry(owner).or_default().push((own, value.clone()));
        }
        let (mut places, mut arrays) = (Places::default(), Vec::with_capacity(self.paths.len()));
        for path in &self.paths {
            let held = &self.arrays[path];
            arrays.push(ArrayInfo {
                path: path.clone(),
                dtype: held.dtype,
                dims: held.places(path, &mut places)?,
                shape: held.shape.clone(),
                attrs: attrs.remove(path.as_str()).unwrap_or_default(),
                enum_names: Vec::new(),
                decoding: Decoding::none(held.dtype),
                storage: StorageInfo { stored_type: held.dtype.name().into(), ..StorageInfo::default() },
                coordinates: Vec::new(),
            });
        }
        let of_group = |path: &str| GroupInfo {
            path: path.to_owned(),
            attrs: attrs.get(path).cloned().unwrap_or_default(),
        };
        Ok(Schema {
            format: "memory".into(),
            groups: groups.into_iter().map(of_group).collect(),
            dims: places.into_dims(),
            arrays,
            left_out: self.left_out.clone(),
            ..Schema::default()
        })
    }
}

impl Held {
    /// The numbers of its dimensions.
    fn places(&self, path: &str, places: &mut Places) -> Result<Vec<usize>> {
        let Some(names) = &self.dims else { return Ok(places.by_length(path, &self.shape)) };
        let mut own = Vec::with_capacity(names.len());
        for (name, &len) in names.iter().zip(&self.shape) {
            let place = places.place(name.clone(), len, Naming::Caller);
            let known = places.len_of(place);
            if known != len {
                let message =
                    format!("dimension '{name}' of '{path}' has length {len}, elsewhere it has {known}");
                return Err(invalid(message));
            }
            own.push(place);
        }
        Ok(own)
    }

    /// Refuses blocks that overlap, and an array of which some values are not there: they would be taken for zeros.
    fn check_covered(&self, path: &str) -> Result<()> {
        let mut blocks: Vec<&Bx> = self.blocks.iter().map(|block| &block.bx).collect();
        blocks.sort_by_key(|bx| bx.start.first().copied());
        for (number, one) in blocks.iter().enumerate() {
            let end = one.start.first().map(|start| start + one.shape[0]);
            let near = |other: &&&Bx| end.is_none_or(|end| other.start[0] < end);
            for other in blocks[number + 1..].iter().take_while(near) {
                if meet(one, other) {
                    let message =
                        format!("two blocks of '{path}' overlap: {} and {}", shown(one), shown(other));
                    return Err(invalid(message).hint("give each value once"));
                }
            }
        }
        let (covered, all) = (blocks.iter().map(|bx| bx.len()).sum::<u64>(), Bx::whole(&self.shape).len());
        if covered == all {
            return Ok(());
        }
        let message = format!("of '{path}' {covered} of {all} values were given");
        Err(invalid(message).hint("give the blocks of the whole array"))
    }
}

/// Whether two boxes of one rank have a position in common.
fn meet(a: &Bx, b: &Bx) -> bool {
    (0..a.rank()).all(|d| a.start[d] < b.end(d) && b.start[d] < a.end(d))
}

fn shown(bx: &Bx) -> String {
    format!("from {:?} of shape {:?}", bx.start, bx.shape)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
