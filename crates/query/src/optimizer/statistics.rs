//! Aggregates by statistics: what zone maps tell of an aggregate over all positions of a box, without reading one.
//!
//! A zone map holds the number of values that are there and the extremes that occur, of stored values. Counts follow at
//! once. Extremes decode to the extremes of what a scan would see, bit for bit, as decoding is monotonic; where a packed
//! extreme is zero its sign may be another value's, and the data must tell. Sums and means follow from the exact sums that
//! regions keep, of stored values or of those decoded by the same packing. Of values that are all the same every aggregate is
//! known.

use sieva_format::decoding::Number;
use sieva_index::ArrayIndex;
use sieva_index::stats::{RegionStats, Total};
use sieva_types::exact::{ExactSum, Sum};
use sieva_types::{Buffer, Bx, DType, KeySet, Result};

use crate::aggregate::Aggregate;
use crate::bind::Value;
use crate::exec::{Column, Execution};
use crate::raw::{StoredDomain, value_of_key};
use crate::values::{Scalar, Vector};

/// What comes to the same for an aggregate as the rows of a box.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// These rows: each a column of one row, and how often it is there.
    Rows(Vec<(Option<Vector>, u64)>),
    /// So many values of this sum.
    Total(Total, u64),
}

/// What of the zone maps an aggregate of values that may differ follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Nothing: they must be the same.
    Same,
    /// The number of values and their extremes.
    Ends,
    /// Their number and their sum.
    Sums,
}

impl By {
    fn of(aggregate: &Aggregate) -> Self {
        match aggregate {
            Aggregate::CountValues | Aggregate::Min | Aggregate::Max => Self::Ends,
            Aggregate::Sum | Aggregate::Avg => Self::Sums,
            _ => Self::Same,
        }
    }
}

/// What the zone maps of some regions say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    present: u64,
    missing: u64,
    bounds: Option<(i128, i128)>,
}

impl Execution {
    /// What comes to the same for an aggregate as all rows of a box, as far as it is known without reading.
    pub(crate) fn known_of_box(
        &self,
        aggregate: &Aggregate,
        value: Option<&Value>,
        bx: &Bx,
    ) -> Option<Known> {
        let Some(value) = value else {
            return matches!(aggregate, Aggregate::Count).then(|| Known::Rows(vec![(None, bx.len())]));
        };
        let Value::Array { array, raw } = value else { return None };
        let own = self.own_box(*array, bx);
        let index = self.zones(*array, *raw).filter(|_| !own.is_empty())?;
        let by = By::of(aggregate);
        let bound = &self.bound.arrays[*array];
        let domain = if *raw { &bound.raw_domain } else { &bound.domain };
        let zone = zone_of(index, &own, |stats| match by {
            By::Same => false,
            By::Ends => true,
            By::Sums => sum_of(stats, domain).is_some(),
        })?;
        if !agree(&zone, &index.header().missing, domain.missing()) {
            return None;
        }
        let repeats = bx.len() / own.len();
        let times = zone.present.checked_mul(repeats)?;
        let Some((low, high)) = zone.bounds else { return (times == 0).then(|| Known::Rows(Vec::new())) };
        if by == By::Sums && low != high {
            return Some(Known::Total(total_of(index, &own, domain, repeats)?, times));
        }
        let ends = [low, high].map(|key| one_row(domain, key).ok().flatten());
        let [Some(low_row), Some(high_row)] = ends else { return None };
        match aggregate {
            _ if low == high => Some(Known::Rows(vec![(Some(low_row), times)])),
            Aggregate::CountValues => Some(Known::Rows(vec![(Some(low_row), times)])),
            Aggregate::Min | Aggregate::Max => {
                let is_zero = |row: &Vector| matches!(row.scalar(0), Scalar::F64(x) if x == 0.0);
                if domain.packing().is_some() && (is_zero(&low_row) || is_zero(&high_row)) {
                    return None;
                }
                // Either end may be the least: a negative scale turns them round.
                Some(Known::Rows(vec![(Some(low_row), 1), (Some(high_row), 1)]))
            }
            _ => None,
        }
    }
}

/// The exact sum of the values that a scan would see in a region of which nothing is missing now that was not then.
fn sum_of<'s>(stats: &'s RegionStats, domain: &StoredDomain) -> Option<Summand<'s>> {
    let sums = stats.sums.as_deref()?;
    if let Some(packing) = domain.packing() {
        return sums.decoded.as_ref().filter(|d| d.packing == packing).map(|d| Summand::Float(&d.sum));
    }
    match (&sums.stored, domain.dtype()) {
        (Total::Float(sum), dtype) if dtype.is_float() => Some(Summand::Float(sum)),
        // A truth value is 1 whatever stands for it.
        (Total::Integer(_), DType::Bool) if stats.bounds.is_some_and(|(_, high)| high > 1) => None,
        (Total::Integer(sum), dtype) if !dtype.is_float() => Some(Summand::Integer(*sum)),
        _ => None,
    }
}

/// What a region adds to a sum.
enum Summand<'s> {
    Integer(i128),
    Float(&'s Sum),
}

/// The sum of all values of a box that is made up of whole regions, each so many times.
fn total_of(index: &ArrayIndex, own: &Bx, domain: &StoredDomain, repeats: u64) -> Option<Total> {
    let (mut integers, mut floats, mut is_float) = (0_i128, ExactSum::default(), false);
    for region in index.grid().touched(own) {
        match sum_of(index.stats(region)?, domain)? {
            Summand::Integer(sum) => integers = integers.checked_add(sum)?,
            Summand::Float(sum) => {
                is_float = true;
                sum.add_to(&mut floats);
            }
        }
    }
    if is_float {
        return Some(Total::Float(Sum::of(floats.times(repeats))));
    }
    integers.checked_mul(repeats.into()).map(Total::Integer)
}

/// The zone map of a box that is made up of whole regions. Its values are all the same, or those of every region may differ
/// by `may_differ`.
fn zone_of(index: &ArrayIndex, own: &Bx, may_differ: impl Fn(&RegionStats) -> bool) -> Option<Zone> {
    let mut all = Zone { present: 0, missing: 0, bounds: None };
    let mut may_all_differ = true;
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
        may_all_differ = may_all_differ && may_differ(stats);
        if !may_all_differ && all.bounds.is_some_and(|(low, high)| low != high) {
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
