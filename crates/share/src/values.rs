//! Values in memory as a source, so that they are written in any format as the result of a query.

use std::collections::HashSet;
use std::sync::Arc;

use sieva::{
    ArrayInfo, AttrValue, Bx, DType, Decoding, Dimension, Error, ErrorKind, ForeignArray, ForeignReader,
    ForeignSource, ForeignStore, GroupInfo, Naming, OpenOptions, Query, QueryOptions, Result, Schema, Source,
    StorageInfo, Texts,
};
use sieva_usercode::{Element, Values};
use xxhash_rust::xxh3::Xxh3;

use crate::made::digest;

/// The dimension of the rows.
const ROW: &str = "row";

/// What reads them: each column's values.
struct InMemory(Vec<(String, Values)>);

impl InMemory {
    fn column(&self, path: &str) -> Result<&Values> {
        let found = self.0.iter().find(|(name, _)| name == path).map(|(_, values)| values);
        found.ok_or_else(|| Error::new(ErrorKind::Internal, format!("no column '{path}' came of the code")))
    }
}

impl ForeignReader for InMemory {
    fn read(&self, path: &str, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let values = self.column(path)?;
        let (Some(start), size) = (bx.start.first(), values.element.size()) else {
            return Err(Error::new(ErrorKind::Internal, "a box without a dimension"));
        };
        let from = usize::try_from(*start).ok().and_then(|start| start.checked_mul(size));
        let part = from.and_then(|from| values.data.get(from..from.checked_add(out.len())?));
        let Some(part) = part else {
            return Err(Error::new(ErrorKind::Internal, "a box beyond the values that came of the code"));
        };
        out.copy_from_slice(part);
        Ok(())
    }

    fn read_texts(&self, path: &str, _: &Bx) -> Result<Texts> {
        Err(Error::new(ErrorKind::Internal, format!("'{path}' has numbers, not texts")))
    }
}

/// A source of these columns.
///
/// # Errors
/// `internal-error` for columns that are no source.
pub(crate) fn source(names: Vec<String>, columns: Vec<Values>) -> Result<Source> {
    let mut sum = Xxh3::new();
    let rows = columns.first().map_or(0, Values::rows) as u64;
    let (mut arrays, mut kept) = (Vec::new(), Vec::new());
    for (name, mut values) in names.into_iter().zip(columns) {
        // There are no groups here.
        let name = name.replace('/', "_");
        let dtype = dtype(values.element);
        // The decoding is found by this, as that of any file.
        let fill = mark_missing(&mut values)?;
        let attrs: Vec<_> = fill
            .map(|fill| ("_FillValue".to_owned(), AttrValue::Ints(dtype, vec![fill])))
            .into_iter()
            .collect();
        sum.update(name.as_bytes());
        sum.update(&values.element.code().to_le_bytes());
        sum.update(&values.data);
        arrays.push(ArrayInfo {
            path: name.clone(),
            dtype,
            dims: vec![0],
            shape: vec![rows],
            attrs,
            enum_names: Vec::new(),
            decoding: Decoding::none(dtype),
            storage: StorageInfo::default(),
            coordinates: Vec::new(),
        });
        kept.push((name, values));
    }
    let row = Dimension {
        name: ROW.to_owned(),
        path: ROW.to_owned(),
        len: rows,
        unlimited: false,
        naming: Naming::Caller,
        coordinate: None,
    };
    let root = GroupInfo { path: String::new(), attrs: Vec::new() };
    let described = vec![ForeignArray::default(); arrays.len()];
    let schema = Schema {
        format: "code".to_owned(),
        groups: vec![root],
        dims: vec![row],
        arrays,
        ..Schema::default()
    };
    let store = ForeignStore::new("what came of code", &[], &digest(&sum))?;
    let reader = ForeignSource::new(schema, &described, "made by code", store, Box::new(InMemory(kept)))?;
    Ok(Source::from_reader(Arc::new(reader), "what came of code", &OpenOptions::default()))
}

/// The query of all columns, with the means of another.
///
/// # Errors
/// Those of a query.
pub(crate) fn all(source: &Source, of: &Query) -> Result<Query> {
    let options = QueryOptions {
        memory: Some(of.memory()),
        threads: Some(of.threads()),
        cancel: Some(of.cancel_flag()),
        ..QueryOptions::default()
    };
    // In quotes a name is never taken for anything else.
    let names: Vec<String> =
        source.schema().arrays.iter().map(|a| format!("\"{}\"", a.path.replace('"', "\"\""))).collect();
    source.sql(&format!("SELECT {}", names.join(", ")), &options)
}

/// Gives values that are missing one that no other has, and says which.
fn mark_missing(of: &mut Values) -> Result<Option<i128>> {
    let Some(valid) = of.valid.take() else { return Ok(None) };
    let size = of.element.size();
    let there = of.data.chunks_exact(size).zip(&valid).filter(|(_, valid)| **valid != 0);
    let taken: HashSet<u64> = there.map(|(bytes, _)| word(bytes)).collect();
    let bits = 8 * size as u32;
    let all = u64::MAX >> (64 - bits);
    let missing = match of.element {
        Element::F32 => u64::from(f32::NAN.to_bits()),
        Element::F64 => f64::NAN.to_bits(),
        // From the least of signed ones upwards: the usual fill values are at the ends.
        other => {
            let first = if other.is_unsigned() { all } else { 1 << (bits - 1) };
            let mut tried = (0..=taken.len() as u64).map(|n| first.wrapping_sub(n) & all);
            match tried.find(|value| !taken.contains(value)) {
                Some(value) => value,
                None => {
                    let message =
                        format!("all values of type {} are taken: none can say 'missing'", other.name());
                    return Err(Error::new(ErrorKind::InvalidValue, message)
                        .hint("return a wider type: double map(...)"));
                }
            }
        }
    };
    for (bytes, _) in of.data.chunks_exact_mut(size).zip(&valid).filter(|(_, valid)| **valid == 0) {
        bytes.copy_from_slice(&missing.to_le_bytes()[..size]);
    }
    Ok(match of.element {
        // NaN is missing by itself.
        Element::F32 | Element::F64 => None,
        other if other.is_unsigned() => Some(i128::from(missing)),
        _ => Some(i128::from((missing << (64 - bits)).cast_signed() >> (64 - bits))),
    })
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn dtype(of: Element) -> DType {
    match of {
        Element::I8 => DType::I8,
        Element::U8 => DType::U8,
        Element::I16 => DType::I16,
        Element::U16 => DType::U16,
        Element::I32 => DType::I32,
        Element::U32 => DType::U32,
        Element::I64 => DType::I64,
        Element::U64 => DType::U64,
        Element::F32 => DType::F32,
        Element::F64 => DType::F64,
    }
}
