//! What an array is, as far as its records depend on it.

use sieva_types::{DType, Error, ErrorKind, KeySet, Result, checked_len, wire};

use super::bytes::{Cursor, corrupt};

/// Codes of the types, by position from 1 on; texts, the last, have no records.
const DTYPES: &[DType] = wire::DTYPES.split_at(12).0;

/// An array: records of one array are only good together if their headers are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayHeader {
    /// Its path in the source.
    pub path: String,
    /// The type of its elements; texts have no records.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// The shape of a region that no edge cuts.
    pub region: Vec<u64>,
    /// Stored values that mean "missing".
    pub missing: KeySet,
}

impl ArrayHeader {
    /// Number of regions of the array's grid.
    ///
    /// # Errors
    /// `invalid-value` where the header describes no array: ranks that differ, a region without elements, more
    /// than 2^63 elements, a type without keys, or missing values that are no set of keys.
    pub fn regions(&self) -> Result<u64> {
        let bad = |what: &str| {
            Error::new(ErrorKind::InvalidValue, format!("the header of array '{}' has {what}", self.path))
        };
        if self.shape.len() != self.region.len() || self.region.contains(&0) {
            return Err(bad("regions that do not cut its shape"));
        }
        if !DTYPES.contains(&self.dtype) {
            return Err(bad("a type without keys"));
        }
        if !is_set_of_keys(&self.missing) {
            return Err(bad("missing values that are no set of keys"));
        }
        checked_len(&self.shape).and(checked_len(&self.region)).map_err(|_| bad("too many elements"))?;
        if self.shape.contains(&0) {
            return Ok(0);
        }
        // No more than elements, so that the product does not overflow.
        Ok(self.shape.iter().zip(&self.region).map(|(n, r)| n.div_ceil(*r)).product())
    }

    /// Bytes of the elements of a region that no edge cuts, as far as the array reaches.
    pub fn region_bytes(&self) -> u64 {
        let lengths = self.region.iter().zip(&self.shape).map(|(r, n)| *r.min(n));
        lengths.fold(self.dtype.size() as u64, u64::saturating_mul)
    }

    /// Whether the other one is of the same array, cut into other regions.
    pub fn differs_in_regions(&self, other: &Self) -> bool {
        let (one, two) = (self, other);
        self.region != other.region
            && (&one.path, one.dtype, &one.shape, &one.missing)
                == (&two.path, two.dtype, &two.shape, &two.missing)
    }

    /// Appends its bytes.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.path.len() as u32).to_le_bytes());
        out.extend_from_slice(self.path.as_bytes());
        out.push(DTYPES.iter().position(|&d| d == self.dtype).map_or(0, |at| at as u8 + 1));
        out.push(u8::from(self.missing.nan));
        out.extend_from_slice(&(self.shape.len() as u16).to_le_bytes());
        self.shape.iter().chain(&self.region).for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
        out.extend_from_slice(&(self.missing.ranges.len() as u32).to_le_bytes());
        for (low, high) in &self.missing.ranges {
            out.extend_from_slice(&low.to_le_bytes());
            out.extend_from_slice(&high.to_le_bytes());
        }
    }

    /// Reads what [`encode`](Self::encode) wrote, and its number of regions.
    pub(super) fn decode(from: &mut Cursor<'_>) -> Result<(Self, u64)> {
        let path_len = from.u32()? as usize;
        let path = std::str::from_utf8(from.take(path_len)?).map_err(|_| corrupt("a path is not UTF-8"))?;
        let code = usize::from(from.u8()?);
        let dtype = code.checked_sub(1).and_then(|at| DTYPES.get(at));
        let dtype = *dtype.ok_or_else(|| corrupt(format!("type {code} is not known")))?;
        let nan = match from.u8()? {
            0 => false,
            1 => true,
            other => return Err(corrupt(format!("flag {other} is not known"))),
        };
        let rank = usize::from(from.u16()?);
        let (shape, region) = (from.u64s(rank)?, from.u64s(rank)?);
        let count = from.u32()?;
        let ranges = (0..count).map(|_| Ok((from.i128()?, from.i128()?))).collect::<Result<_>>()?;
        let header = Self { path: path.to_owned(), dtype, shape, region, missing: KeySet { ranges, nan } };
        let regions = header.regions().map_err(|e| corrupt(e.message()))?;
        Ok((header, regions))
    }
}

/// Keys of all types lie within these: integers and mirrored floats of at most 64 bits.
const KEYS: (i128, i128) = (i64::MIN as i128, u64::MAX as i128);

/// Whether `set` is in order, as set operations rely on, and far from where they would overflow.
fn is_set_of_keys(set: &KeySet) -> bool {
    let mut above = KEYS.0 - 1;
    set.ranges.iter().all(|&(low, high)| {
        let fits = above < low && low <= high && high <= KEYS.1;
        above = high;
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> ArrayHeader {
        ArrayHeader {
            path: "/a/TEMP".into(),
            dtype: DType::I16,
            shape: vec![5, 7],
            region: vec![2, 3],
            missing: KeySet { ranges: vec![(-9, -9), (3, 5)], nan: false },
        }
    }

    #[test]
    fn headers_survive_their_bytes() {
        let scalar = ArrayHeader { dtype: DType::F64, shape: vec![], region: vec![], ..header() };
        let scalar = ArrayHeader { missing: KeySet { ranges: vec![], nan: true }, ..scalar };
        for (header, regions) in [(header(), 9), (scalar, 1)] {
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            let mut cursor = Cursor(&bytes);
            assert_eq!(ArrayHeader::decode(&mut cursor).unwrap(), (header, regions));
            cursor.finish().unwrap();
        }
    }

    #[test]
    fn headers_of_no_array_are_refused() {
        let change = |f: &dyn Fn(&mut ArrayHeader)| {
            let mut changed = header();
            f(&mut changed);
            changed.regions().unwrap_err().kind()
        };
        let refused = ErrorKind::InvalidValue;
        assert_eq!(change(&|h| h.region = vec![2]), refused);
        assert_eq!(change(&|h| h.region = vec![2, 0]), refused);
        assert_eq!(change(&|h| h.shape = vec![1 << 40, 1 << 40]), refused);
        assert_eq!(change(&|h| h.dtype = DType::Str), refused);
        assert_eq!(change(&|h| h.missing.ranges = vec![(5, 3)]), refused);
        assert_eq!(change(&|h| h.missing.ranges = vec![(3, 5), (5, 6)]), refused);
        assert_eq!(change(&|h| h.missing.ranges = vec![(0, i128::MAX)]), refused);
        let empty = ArrayHeader { shape: vec![u64::MAX, 0], region: vec![1, 1], ..header() };
        assert_eq!(empty.regions().unwrap(), 0);
    }
}
