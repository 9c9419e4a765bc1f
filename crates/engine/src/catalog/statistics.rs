//! What zone maps say of whole arrays, as the catalog keeps it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_catalog::{ArrayStats, Value};
use sieva_index::content_hash;
use sieva_index::stats::RegionStats;
use sieva_index::store::ArrayHeader;
use sieva_types::keys::{f32_of_key, f64_of_key};
use sieva_types::{DType, Result};

use crate::augment::{BuildOptions, IndexKind};
use crate::open::Source;

/// Builds zone maps of all arrays of numbers of a source, as far as they are not there, and what they say of each.
///
/// # Errors
/// Those of building. Arrays that cannot be read are left out.
pub(super) fn of(source: &Source, cancel: &Arc<AtomicBool>) -> Result<Vec<(String, ArrayStats)>> {
    // One worker: there are as many files at a time as there are cores.
    let (kinds, cancel) = (vec![IndexKind::ZoneMap], Arc::clone(cancel));
    let options = BuildOptions { kinds, jobs: 1, cancel, ..BuildOptions::default() };
    source.build_index(&[], &options)?;
    let arrays = &source.schema().arrays;
    let found = arrays.iter().enumerate().filter(|(_, info)| info.dtype != DType::Str);
    Ok(found.filter_map(|(i, info)| Some((info.path.clone(), of_array(source, i)?))).collect())
}

fn of_array(source: &Source, array: usize) -> Option<ArrayStats> {
    let index = source.index_of(array)?;
    let zone = RegionStats { histogram: None, sums: None, ..index.summary()? };
    let info = &source.schema().arrays[array];
    let bound = |key| bound(key, index.header().dtype, info.decoding.packing);
    let range = match zone.bounds {
        None => None,
        Some((low, high)) => {
            let (low, high) = (bound(low)?, bound(high)?);
            let falls = info.decoding.packing.is_some_and(|(scale, _)| scale < 0.0);
            Some(if falls { (high, low) } else { (low, high) })
        }
    };
    let mut blob = meaning(index.header()).to_le_bytes().to_vec();
    zone.encode(&mut blob);
    let missing = zone.missing.saturating_add(zone.nan);
    Some(ArrayStats { range, missing, count: zone.rows, blob: Some(blob) })
}

/// A bound as a decoded value. `None` where decoding gives no number.
fn bound(key: i128, dtype: DType, packing: Option<(f64, f64)>) -> Option<Value> {
    let value = match (dtype, packing) {
        (DType::F16 | DType::F32, _) => Value::Float(f32_of_key(key).into()),
        (DType::F64, _) => Value::Float(f64_of_key(key)),
        (_, None) => {
            return i64::try_from(key).map(Value::Int).or_else(|_| u64::try_from(key).map(Value::UInt)).ok();
        }
        _ => Value::Float(key as f64),
    };
    let (Value::Float(stored), Some((scale, offset))) = (&value, packing) else { return Some(value) };
    Some(Value::Float(stored * scale + offset)).filter(Value::is_number)
}

/// What keys of an array mean: two arrays' statistics compare where it is the same.
fn meaning(header: &ArrayHeader) -> u64 {
    content_hash(format!("{:?} {:?}", header.dtype, header.missing).as_bytes())
}

/// The statistics of a whole array for an array of this header; `None` where they are of another kind of values.
pub(crate) fn known_for(header: &ArrayHeader, stats: &ArrayStats) -> Option<RegionStats> {
    let (hash, zone) = stats.blob.as_deref()?.split_at_checked(8)?;
    (hash == meaning(header).to_le_bytes()).then(|| RegionStats::decode(zone).ok()).flatten()
}
