//! Sets of values with ends at, beside and far from the values of the data.

use arbitrary::Arbitrary;
use sieva_types::keys::key_range;
use sieva_types::{DType, KeySet};

/// Keys of all types lie within these.
const KEYS: (i128, i128) = (i64::MIN as i128, u64::MAX as i128);

/// How a set is made.
#[derive(Arbitrary, Clone, Debug)]
pub struct SetRecipe {
    ends: Vec<End>,
    nan: bool,
    /// Intervals that touch stay two, as no one promises to join them.
    apart: bool,
}

#[derive(Arbitrary, Clone, Debug)]
enum End {
    Value { number: u16, off: i8 },
    Key(i64),
    Least(i8),
    Greatest(i8),
    Beyond(bool),
}

impl SetRecipe {
    /// A condition upon values with these keys: at most eight intervals.
    pub fn condition(&self, dtype: DType, keys: &[i128]) -> KeySet {
        let mut ends: Vec<i128> = self.ends.iter().take(16).map(|e| e.key(dtype, keys)).collect();
        ends.sort_unstable();
        let intervals = ends.as_chunks::<2>().0.iter().map(|e| (e[0], e[1]));
        if self.apart {
            let mut ranges: Vec<(i128, i128)> = Vec::new();
            for (low, high) in intervals {
                if ranges.last().is_none_or(|last| last.1 < low) {
                    ranges.push((low, high));
                }
            }
            return KeySet { ranges, nan: self.nan };
        }
        let joined = intervals.fold(KeySet::EMPTY, |set, (a, b)| set.union(&KeySet::interval(a, b)));
        KeySet { nan: self.nan, ..joined }
    }

    /// Missing values of an array: within the keys of all types, as the header of an array has them.
    pub fn missing(&self, dtype: DType, keys: &[i128]) -> KeySet {
        let set = self.condition(dtype, keys);
        set.intersection(&KeySet { nan: true, ..KeySet::interval(KEYS.0, KEYS.1) })
    }
}

impl End {
    fn key(&self, dtype: DType, keys: &[i128]) -> i128 {
        let (least, greatest) = key_range(dtype);
        match *self {
            Self::Value { number, off } => {
                keys.get(usize::from(number) % keys.len().max(1)).copied().unwrap_or(least) + i128::from(off)
            }
            Self::Key(key) => key.into(),
            Self::Least(off) => least + i128::from(off),
            Self::Greatest(off) => greatest + i128::from(off),
            Self::Beyond(above) => {
                if above {
                    i128::MAX
                } else {
                    i128::MIN
                }
            }
        }
    }
}
