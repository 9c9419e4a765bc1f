//! Keys of ORDER BY as bytes: two rows are in the order of their bytes.

use super::sort::make_room;
use crate::bind::OrderKey;
use crate::exec::order::keys::float_bits;
use crate::values::{Values, Vector};

/// Bytes of a key that is a number: whether it is there, and its order.
pub const NUMBER_BYTES: usize = 9;

/// What a value is marked with; what is missing comes before or behind.
const FIRST: u8 = 0;
const PRESENT: u8 = 1;
const LAST: u8 = 2;

/// The keys of some rows.
#[derive(Debug, Default)]
pub struct Encoded {
    bytes: Vec<u8>,
    /// Bytes of each row, where all have as many.
    width: Option<usize>,
    /// Where each row ends, where not.
    ends: Vec<usize>,
}

impl Encoded {
    /// No rows, of `width` bytes each, or of any number.
    pub fn new(width: Option<usize>) -> Self {
        Self { bytes: Vec::new(), width, ends: Vec::new() }
    }

    /// The keys of the rows `0..n`, whose values are `vectors`.
    pub fn of(keys: &[OrderKey], vectors: &[Vector], n: usize, width: Option<usize>) -> Self {
        let mut all = Self::new(width);
        if let Some(width) = width {
            all.bytes.resize(n * width, 0);
            for (k, (key, vector)) in keys.iter().zip(vectors).enumerate() {
                numbers(key, vector, &mut all.bytes[k * NUMBER_BYTES..], width, n);
            }
            return all;
        }
        for i in 0..n {
            for (key, vector) in keys.iter().zip(vectors) {
                append(key, vector, i, &mut all.bytes);
            }
            all.ends.push(all.bytes.len());
        }
        all
    }

    /// The number of rows.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.width.map_or(self.ends.len(), |w| self.bytes.len() / w.max(1))
    }

    /// The bytes of a row.
    pub fn row(&self, i: usize) -> &[u8] {
        match self.width {
            Some(w) => &self.bytes[i * w..(i + 1) * w],
            None => &self.bytes[i.checked_sub(1).map_or(0, |i| self.ends[i])..self.ends[i]],
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[u8]) {
        make_room(&mut self.bytes, row.len());
        self.bytes.extend_from_slice(row);
        if self.width.is_none() {
            make_room(&mut self.ends, 1);
            self.ends.push(self.bytes.len());
        }
    }

    /// Adds rows of the same kind.
    pub fn append(&mut self, other: &Self) {
        let start = self.bytes.len();
        make_room(&mut self.bytes, other.bytes.len());
        self.bytes.extend_from_slice(&other.bytes);
        make_room(&mut self.ends, other.ends.len());
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    /// Bytes of its rows.
    pub fn used_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// A number's place in the order of its type.
fn place(values: &Values, i: usize) -> u64 {
    match values {
        Values::Bool(v) => u64::from(v[i]),
        Values::I64(v) => v[i] as u64 ^ (1 << 63),
        Values::U64(v) => v[i],
        Values::F64(v) => float_bits(v[i]) as u64 ^ (1 << 63),
        Values::Str(_) => 0,
    }
}

/// The bytes of the number in row `i`.
fn number(key: &OrderKey, vector: &Vector, i: usize) -> [u8; NUMBER_BYTES] {
    let mut bytes = [0; NUMBER_BYTES];
    if !vector.is_valid(i) {
        bytes[0] = if key.nulls_first { FIRST } else { LAST };
        return bytes;
    }
    let place = place(&vector.values, i);
    let place = if key.descending { !place } else { place };
    bytes[0] = PRESENT;
    bytes[1..].copy_from_slice(&place.to_be_bytes());
    bytes
}

fn numbers(key: &OrderKey, vector: &Vector, out: &mut [u8], width: usize, n: usize) {
    for (i, row) in out.chunks_mut(width).take(n).enumerate() {
        row[..NUMBER_BYTES].copy_from_slice(&number(key, vector, i));
    }
}

fn append(key: &OrderKey, vector: &Vector, i: usize, out: &mut Vec<u8>) {
    let (Values::Str(texts), true) = (&vector.values, vector.is_valid(i)) else {
        return out.extend_from_slice(&number(key, vector, i));
    };
    out.push(PRESENT);
    let start = out.len();
    // A text that another one begins with ends before it: with a zero, which within a text is followed by another byte.
    for &byte in texts[i].as_bytes() {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
    if key.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The first key of a row of which it is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstNumber {
    /// It is missing.
    Missing,
    /// Its place in the order of its type.
    Place(u64),
}

impl FirstNumber {
    /// What the bytes of a row say of it.
    pub fn of(row: &[u8], descending: bool) -> Option<Self> {
        if *row.first()? != PRESENT {
            return Some(Self::Missing);
        }
        let place = u64::from_be_bytes(row.get(1..NUMBER_BYTES)?.try_into().ok()?);
        Some(Self::Place(if descending { !place } else { place }))
    }
}

#[cfg(test)]
mod tests {
    use crate::mask::Mask;
    use proptest::prelude::*;

    use super::*;
    use crate::bind::Value;
    use crate::exec::order::keys::compare;

    type Columns = (Vec<i64>, Vec<f64>, Vec<u64>, Vec<String>, Vec<bool>);

    fn column() -> impl Strategy<Value = Columns> {
        let floats =
            prop_oneof![Just(0.0), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY), any::<f64>()];
        (1..20_usize).prop_flat_map(move |n| {
            (
                prop::collection::vec(prop_oneof![any::<i64>(), -2..2_i64], n),
                prop::collection::vec(floats.clone(), n),
                prop::collection::vec(prop_oneof![any::<u64>(), 0..3_u64], n),
                prop::collection::vec("[a\0b\u{ff}]{0,3}", n),
                prop::collection::vec(any::<bool>(), n),
            )
        })
    }

    proptest! {
        #[test]
        fn bytes_are_in_the_order_of_the_rows(
            (ints, floats, wide, texts, valid) in column(),
            flags in prop::collection::vec(any::<(bool, bool)>(), 4),
        ) {
            let n = ints.len();
            let some = |values| Vector::new(values, Some(Mask::from(&valid[..]))).unwrap();
            let vectors =
                [some(Values::F64(floats)), some(Values::I64(ints)), some(Values::U64(wide)), some(Values::Str(texts.iter().collect()))];
            let keys: Vec<OrderKey> = flags
                .iter()
                .map(|&(descending, nulls_first)| OrderKey { value: Value::Key(0), descending, nulls_first })
                .collect();
            for (range, width) in [(0..3, Some(27)), (0..1, Some(9)), (3..4, None), (0..4, None), (2..4, None)] {
                let (keys, vectors) = (&keys[range.clone()], &vectors[range]);
                let rows = Encoded::of(keys, vectors, n, width);
                prop_assert_eq!(rows.len(), n);
                for a in 0..n {
                    for b in 0..n {
                        prop_assert_eq!(rows.row(a).cmp(rows.row(b)), compare(keys, vectors, a, b));
                    }
                }
            }
        }
    }
}
