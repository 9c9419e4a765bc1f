//! Aggregates by statistics: what zone maps tell of an aggregate over all positions of a box, without reading one.
//!
//! A zone map holds the number of values that are there and the extremes that occur, of stored values. Counts follow at
//! once. Extremes decode to the extremes of what a scan would see, bit for bit, as decoding is monotonic; where a packed
//! extreme is zero its sign may be another value's, and the data must tell. Of values that are all the same every aggregate
//! is known.

use sieva_format::decoding::Number;
use sieva_index::ArrayIndex;
use sieva_types::{Buffer, Bx, DType, KeySet, Result};

use crate::aggregate::Aggregate;
use crate::bind::Value;
use crate::exec::{Column, Execution};
use crate::raw::{StoredDomain, value_of_key};
use crate::values::{Scalar, Vector};

/// Rows that stand for those of a box: a column of one row, and how often it is there.
pub(crate) type Known = Vec<(Option<Vector>, u64)>;

/// What the zone maps of some regions say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    present: u64,
    missing: u64,
    bounds: Option<(i128, i128)>,
}

impl Execution {
    /// Rows that come to the same for an aggregate as all rows of a box, as far as they are known without reading.
    pub(crate) fn known_of_box(
        &self,
        aggregate: &Aggregate,
        value: Option<&Value>,
        bx: &Bx,
    ) -> Option<Known> {
        let Some(value) = value else {
            return matches!(aggregate, Aggregate::Count).then(|| vec![(None, bx.len())]);
        };
        let Value::Array { array, raw } = value else { return None };
        let own = self.own_box(*array, bx);
        let index = self.zones(*array, *raw).filter(|_| !own.is_empty())?;
        let by_ends = matches!(aggregate, Aggregate::CountValues | Aggregate::Min | Aggregate::Max);
        let bound = &self.bound.arrays[*array];
        let domain = if *raw { &bound.raw_domain } else { &bound.domain };
        let zone = zone_of(index, &own, by_ends)?;
        if !agree(&zone, &index.header().missing, domain.missing()) {
            return None;
        }
        let times = zone.present.checked_mul(bx.len() / own.len())?;
        let Some((low, high)) = zone.bounds else { return (times == 0).then(Vec::new) };
        let ends = [low, high].map(|key| one_row(domain, key).ok().flatten());
        let [Some(low_row), Some(high_row)] = ends else { return None };
        match aggregate {
            _ if low == high => Some(vec![(Some(low_row), times)]),
            Aggregate::CountValues => Some(vec![(Some(low_row), times)]),
            Aggregate::Min | Aggregate::Max => {
                let is_zero = |row: &Vector| matches!(row.scalar(0), Scalar::F64(x) if x == 0.0);
                if domain.packing().is_some() && (is_zero(&low_row) || is_zero(&high_row)) {
                    return None;
                }
                // Either end may be the least: a negative scale turns them round.
                Some(vec![(Some(low_row), 1), (Some(high_row), 1)])
            }
            _ => None,
        }
    }
}

/// The zone map of a box that is made up of whole regions; `ends` is whether values may differ.
fn zone_of(index: &ArrayIndex, own: &Bx, ends: bool) -> Option<Zone> {
    let mut all = Zone { present: 0, missing: 0, bounds: None };
    for region in index.grid().touched(own) {
        let stats = index.stats(region)?;
        if !own.contains(&index.grid().bx(region)) {
            return None;
        }
        all.present += stats.present();
        all.missing += stats.missing;
        all.bounds = match (all.bounds, stats.bounds) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        if !ends && all.bounds.is_some_and(|(low, high)| low != high) {
            return None;
        }
    }
    Some(all)
}

/// Whether what was missing when the zone map was made is what is missing now, of the values that there are.
fn agree(zone: &Zone, then: &KeySet, now: &KeySet) -> bool {
    let touched = |(low, high)| now.ranges.iter().any(|r| r.0 <= high && low <= r.1);
    then.ranges == now.ranges || zone.missing == 0 && !zone.bounds.is_some_and(touched)
}

/// The value of a stored key, as a scan decodes it; `None` of what has no number.
fn one_row(domain: &StoredDomain, key: i128) -> Result<Option<Vector>> {
    let mut buffer = Buffer::default();
    let number = value_of_key(domain.dtype(), key);
    macro_rules! put {
        ($t:ty, $v:expr) => {{
            buffer.resize(size_of::<$t>());
            buffer.as_mut_slice::<$t>()[0] = $v as $t;
        }};
    }
    match (domain.dtype(), number) {
        (DType::F16 | DType::F32, Number::Float(f)) => put!(f32, f),
        (DType::F64, Number::Float(f)) => put!(f64, f),
        (DType::I8, Number::Int(i)) => put!(i8, i),
        (DType::I16, Number::Int(i)) => put!(i16, i),
        (DType::I32, Number::Int(i)) => put!(i32, i),
        (DType::I64, Number::Int(i)) => put!(i64, i),
        (DType::U8 | DType::Bool, Number::Int(i)) => put!(u8, i),
        (DType::U16, Number::Int(i)) => put!(u16, i),
        (DType::U32, Number::Int(i)) => put!(u32, i),
        (DType::U64, Number::Int(i)) => put!(u64, i),
        _ => return Ok(None),
    }
    Column::decode(&buffer, 1, domain).into_vector().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieva_format::decoding::Decoding;
    use sieva_types::keys::{f32_key, f64_key};

    fn domain(stored: DType, packing: Option<(f64, f64)>) -> StoredDomain {
        StoredDomain::new(&Decoding { stored, packing, missing: vec![], valid: (None, None) }, false).unwrap()
    }

    #[test]
    fn a_key_is_the_value_that_a_scan_sees() {
        let of = |d: &StoredDomain, key| one_row(d, key).unwrap().unwrap().scalar(0);
        for f in [-0.0_f32, 0.0, 1.5, -3.25e-40, f32::INFINITY, f32::MIN] {
            assert!(
                matches!(of(&domain(DType::F32, None), f32_key(f)), Scalar::F64(x) if x.to_bits() == f64::from(f).to_bits())
            );
        }
        assert!(
            matches!(of(&domain(DType::F64, None), f64_key(-0.0)), Scalar::F64(x) if x.to_bits() == (-0.0_f64).to_bits())
        );
        assert_eq!(of(&domain(DType::I64, None), i128::from(i64::MIN)), Scalar::I64(i64::MIN));
        assert_eq!(of(&domain(DType::U64, None), i128::from(u64::MAX)), Scalar::U64(u64::MAX));
        assert_eq!(of(&domain(DType::I16, Some((0.5, 10.0))), -4), Scalar::F64(8.0));
    }

    #[test]
    fn what_is_missing_now_must_have_been_missing_then() {
        let zone = Zone { present: 4, missing: 0, bounds: Some((10, 20)) };
        let (fill, other) = (KeySet::interval(99, 99), KeySet::interval(15, 15));
        assert!(agree(&zone, &fill, &fill) && agree(&zone, &fill, &KeySet::EMPTY));
        assert!(!agree(&zone, &fill, &other));
        assert!(!agree(&Zone { missing: 1, ..zone }, &fill, &KeySet::EMPTY));
    }
}
