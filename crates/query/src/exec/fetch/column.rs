//! Columns of a result: array values in their own type, with what is missing.

use sieva_format::buffer::{Buffer, Element};
use sieva_types::{DType, Error, ErrorKind, Result, Texts, bytes_of_mut, large};

use crate::exec::tile::arrays::element_size;
use crate::mask::Mask;
use crate::raw::{RawTest, StoredDomain};
use crate::values::{Values, Vector};

/// Values of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the types name themselves
pub enum Data {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Str(Texts),
}

/// Runs `$body` with `$v` bound to the vector inside, whatever its type; with texts `$texts`, where they want another.
#[macro_export]
macro_rules! with_data {
    ($data:expr, $v:ident => $body:expr) => {
        $crate::with_data!($data, $v => $body, $body)
    };
    ($data:expr, $v:ident => $body:expr, $texts:expr) => {
        match $data {
            $crate::exec::Data::Bool($v) => $body,
            $crate::exec::Data::I8($v) => $body,
            $crate::exec::Data::I16($v) => $body,
            $crate::exec::Data::I32($v) => $body,
            $crate::exec::Data::I64($v) => $body,
            $crate::exec::Data::U8($v) => $body,
            $crate::exec::Data::U16($v) => $body,
            $crate::exec::Data::U32($v) => $body,
            $crate::exec::Data::U64($v) => $body,
            $crate::exec::Data::F32($v) => $body,
            $crate::exec::Data::F64($v) => $body,
            $crate::exec::Data::Str($v) => $texts,
        }
    };
}

/// Values that are decoded before somebody looks whether they are still wanted.
const AT_ONCE: usize = 1 << 20;

fn bytes_of<T>(values: &Vec<T>) -> usize {
    values.capacity() * size_of::<T>()
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The values; what stands at a missing one means nothing.
    pub data: Data,
    /// Which values are there; `None`: all.
    pub valid: Option<Mask>,
}

impl Column {
    /// Number of values.
    pub fn len(&self) -> usize {
        crate::with_data!(&self.data, v => v.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it takes.
    pub fn memory_bytes(&self) -> u64 {
        let values = crate::with_data!(&self.data, v => bytes_of(v), v.memory_bytes());
        (values + self.valid.as_ref().map_or(0, Mask::memory_bytes)) as u64
    }

    /// Bytes of its values, room for others left out.
    pub fn used_bytes(&self) -> u64 {
        let values = match &self.data {
            Data::Str(v) => v.used_bytes(),
            _ => self.len() * self.dtype().size(),
        };
        (values + self.valid.as_ref().map_or(0, |v| v.len().div_ceil(8))) as u64
    }

    /// Makes room for so many values more; of texts, which take as much as those that are there.
    ///
    /// # Errors
    /// `memory-limit` where there is none.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let done = crate::with_data!(&mut self.data, v => v.try_reserve_exact(more), {
            let bytes = v.as_str().len().div_ceil(v.len().max(1)).saturating_mul(more);
            return v.reserve_exact(more, bytes);
        });
        done.map_err(|_| Error::new(ErrorKind::MemoryLimit, format!("no memory for {more} values")))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match &self.data {
            Data::Bool(_) => DType::Bool,
            Data::I8(_) => DType::I8,
            Data::I16(_) => DType::I16,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::U8(_) => DType::U8,
            Data::U16(_) => DType::U16,
            Data::U32(_) => DType::U32,
            Data::U64(_) => DType::U64,
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
            Data::Str(_) => DType::Str,
        }
    }

    /// The rows at `order`.
    #[must_use]
    pub fn take(&self, order: &[usize]) -> Column {
        fn pick<T: Clone>(v: &[T], order: &[usize]) -> Vec<T> {
            order.iter().map(|&i| v[i].clone()).collect()
        }
        let data = match &self.data {
            Data::Bool(v) => Data::Bool(pick(v, order)),
            Data::I8(v) => Data::I8(pick(v, order)),
            Data::I16(v) => Data::I16(pick(v, order)),
            Data::I32(v) => Data::I32(pick(v, order)),
            Data::I64(v) => Data::I64(pick(v, order)),
            Data::U8(v) => Data::U8(pick(v, order)),
            Data::U16(v) => Data::U16(pick(v, order)),
            Data::U32(v) => Data::U32(pick(v, order)),
            Data::U64(v) => Data::U64(pick(v, order)),
            Data::F32(v) => Data::F32(pick(v, order)),
            Data::F64(v) => Data::F64(pick(v, order)),
            Data::Str(v) => Data::Str(v.take(order.iter().copied())),
        };
        Column { data, valid: self.valid.as_ref().map(|v| v.take(order)) }
    }

    /// Adds the rows of a column of the same type.
    ///
    /// # Errors
    /// `internal-error` where it is of another type.
    pub fn append(&mut self, mut other: Column) -> Result<()> {
        let (n, m) = (self.len(), other.len());
        match (&mut self.data, &mut other.data) {
            (Data::Bool(a), Data::Bool(b)) => a.append(b),
            (Data::I8(a), Data::I8(b)) => a.append(b),
            (Data::I16(a), Data::I16(b)) => a.append(b),
            (Data::I32(a), Data::I32(b)) => a.append(b),
            (Data::I64(a), Data::I64(b)) => a.append(b),
            (Data::U8(a), Data::U8(b)) => a.append(b),
            (Data::U16(a), Data::U16(b)) => a.append(b),
            (Data::U32(a), Data::U32(b)) => a.append(b),
            (Data::U64(a), Data::U64(b)) => a.append(b),
            (Data::F32(a), Data::F32(b)) => a.append(b),
            (Data::F64(a), Data::F64(b)) => a.append(b),
            (Data::Str(a), Data::Str(b)) => a.append(b.all()),
            _ => return Err(Error::new(ErrorKind::Internal, "columns of different types put together")),
        }
        if self.valid.is_some() || other.valid.is_some() {
            let valid = self.valid.get_or_insert_with(|| Mask::ones(n));
            valid.append(&other.valid.unwrap_or_else(|| Mask::ones(m)));
        }
        Ok(())
    }

    /// `n` stored elements, which `fill` writes, as a column of the domain's decoded type; `None` where it has none. What is
    /// stored as it is shown is written in place.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn filled(
        n: usize,
        domain: &StoredDomain,
        fill: impl FnOnce(&mut [u8]) -> Result<Option<()>>,
    ) -> Result<Option<Column>> {
        fn plain<T: Element + Default>(
            n: usize,
            fill: impl FnOnce(&mut [u8]) -> Result<Option<()>>,
        ) -> Result<Option<Vec<T>>> {
            let mut values = large::zeros(n);
            Ok(fill(bytes_of_mut(&mut values))?.map(|()| values))
        }
        let is_plain = domain.missing().is_empty() && domain.packing().is_none();
        let data = match domain.dtype() {
            DType::I16 if is_plain => plain(n, fill)?.map(Data::I16),
            DType::I32 if is_plain => plain(n, fill)?.map(Data::I32),
            DType::I64 if is_plain => plain(n, fill)?.map(Data::I64),
            DType::F32 if is_plain => plain(n, fill)?.map(Data::F32),
            DType::F64 if is_plain => plain(n, fill)?.map(Data::F64),
            _ => {
                let mut buffer = Buffer::zeros(n * element_size(domain));
                return Ok(fill(buffer.bytes_mut())?.map(|()| Self::decode(&buffer, n, domain)));
            }
        };
        Ok(data.map(|data| Column { data, valid: None }))
    }

    /// `n` stored elements of `buffer` as a column of the domain's decoded type.
    pub fn decode(buffer: &Buffer, n: usize, domain: &StoredDomain) -> Column {
        let data = decoded(buffer, n, domain, &|| true);
        Column { data, valid: present(buffer, n, domain) }
    }

    /// The same, as long as `is_wanted`, which is asked between pieces, says so; then `None`.
    pub fn decode_while(
        buffer: &Buffer,
        n: usize,
        domain: &StoredDomain,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<Column> {
        let data = decoded(buffer, n, domain, is_wanted);
        let valid = is_wanted().then(|| present(buffer, n, domain))?;
        let column = Column { data, valid };
        (column.len() == n).then_some(column)
    }

    /// The column as values to compute with (integers as int64, floats as float64).
    ///
    /// # Errors
    /// `internal-error` where lengths disagree.
    pub fn into_vector(self) -> Result<Vector> {
        fn wide<T: Into<i64>>(v: Vec<T>) -> Values {
            Values::I64(v.into_iter().map(Into::into).collect())
        }
        let values = match self.data {
            Data::Bool(v) => Values::Bool(v),
            Data::I8(v) => wide(v),
            Data::I16(v) => wide(v),
            Data::I32(v) => wide(v),
            Data::I64(v) => Values::I64(v),
            Data::U8(v) => wide(v),
            Data::U16(v) => wide(v),
            Data::U32(v) => wide(v),
            Data::U64(v) => Values::U64(v),
            Data::F32(v) => Values::F64(v.into_iter().map(f64::from).collect()),
            Data::F64(v) => Values::F64(v),
            Data::Str(v) => Values::Str(v),
        };
        Vector::new(values, self.valid)
    }

    /// A computed column of `rows` rows.
    ///
    /// # Errors
    /// `arithmetic-overflow` where a value cannot be represented, `internal-error` where lengths disagree.
    pub fn from_vector(vector: Vector, rows: usize) -> Result<Column> {
        let vector = vector.into_rows(rows)?.sound()?;
        let data = match vector.values {
            Values::Bool(v) => Data::Bool(v),
            Values::I64(v) => Data::I64(v),
            Values::U64(v) => Data::U64(v),
            Values::F64(v) => Data::F64(v),
            Values::Str(v) => Data::Str(v),
        };
        Ok(Column { data, valid: vector.valid.and_then(Mask::unless_all) })
    }
}

/// The values of `n` stored elements; fewer where they are not wanted any more.
fn decoded(buffer: &Buffer, n: usize, domain: &StoredDomain, is_wanted: &dyn Fn() -> bool) -> Data {
    fn each<T: Element, U>(
        (buffer, n): (&Buffer, usize),
        is_wanted: &dyn Fn() -> bool,
        add: impl Fn(&mut Vec<U>, &[T]),
    ) -> Vec<U> {
        let mut values = large::with_room(n);
        let pieces = buffer.as_slice::<T>()[..n].chunks(AT_ONCE);
        pieces.take_while(|_| is_wanted()).for_each(|piece| add(&mut values, piece));
        values
    }
    let of = (buffer, n);
    if let Some((scale, offset)) = domain.packing() {
        macro_rules! unpacked {
            ($t:ty) => {
                each(of, is_wanted, |out, v: &[$t]| out.extend(v.iter().map(|&x| x as f64 * scale + offset)))
            };
        }
        return Data::F64(match domain.dtype() {
            DType::I8 => unpacked!(i8),
            DType::I16 => unpacked!(i16),
            DType::I32 => unpacked!(i32),
            DType::I64 => unpacked!(i64),
            DType::U8 | DType::Bool | DType::Str => unpacked!(u8),
            DType::U16 => unpacked!(u16),
            DType::U32 => unpacked!(u32),
            DType::U64 => unpacked!(u64),
            DType::F16 | DType::F32 => unpacked!(f32),
            DType::F64 => unpacked!(f64),
        });
    }
    macro_rules! copied {
        ($t:ty) => {
            each(of, is_wanted, |out: &mut Vec<$t>, v: &[$t]| out.extend_from_slice(v))
        };
    }
    match domain.dtype() {
        DType::Bool => Data::Bool(each(of, is_wanted, |out, v: &[u8]| out.extend(v.iter().map(|&b| b != 0)))),
        DType::I8 => Data::I8(copied!(i8)),
        DType::I16 => Data::I16(copied!(i16)),
        DType::I32 => Data::I32(copied!(i32)),
        DType::I64 => Data::I64(copied!(i64)),
        DType::U8 | DType::Str => Data::U8(copied!(u8)),
        DType::U16 => Data::U16(copied!(u16)),
        DType::U32 => Data::U32(copied!(u32)),
        DType::U64 => Data::U64(copied!(u64)),
        DType::F16 | DType::F32 => Data::F32(copied!(f32)),
        DType::F64 => Data::F64(copied!(f64)),
    }
}

/// Which of `n` stored elements are there; `None` where all are.
fn present(buffer: &Buffer, n: usize, domain: &StoredDomain) -> Option<Mask> {
    if domain.missing().is_empty() {
        return None;
    }
    let mut mask = Mask::zeros(n);
    RawTest::new(domain.dtype(), domain.missing()).test(buffer, mask.words_mut());
    if mask.none() {
        return None;
    }
    mask.invert();
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_ends_when_it_is_not_wanted() {
        use sieva_format::decoding::Decoding;
        use std::cell::Cell;

        let n = 2 * AT_ONCE + 3;
        let mut buffer = Buffer::zeros(n * 2);
        buffer.as_mut_slice::<i16>().iter_mut().enumerate().for_each(|(i, v)| *v = i as i16);
        let domain = StoredDomain::new(&Decoding::none(DType::I16), false).unwrap();
        let want = Column { data: Data::I16(buffer.as_slice::<i16>().to_vec()), valid: None };
        assert_eq!(Column::decode(&buffer, n, &domain), want);
        assert_eq!(Column::decode_while(&buffer, n, &domain, &|| true), Some(want));
        for most in 0..4 {
            let asked = Cell::new(0);
            let is_wanted = || asked.replace(asked.get() + 1) < most;
            assert_eq!(Column::decode_while(&buffer, n, &domain, &is_wanted), None);
            // Once more at the end of the values.
            assert_eq!(asked.get(), most + 2 - u32::from(most == 3));
        }
    }

    #[test]
    fn appending_keeps_what_is_missing() {
        let column = |v: &[i32], valid: Option<&[bool]>| Column {
            data: Data::I32(v.to_vec()),
            valid: valid.map(Mask::from),
        };
        let mut a = column(&[1, 2], None);
        a.append(column(&[3], Some(&[false]))).unwrap();
        a.append(column(&[4], None)).unwrap();
        assert_eq!(a, column(&[1, 2, 3, 4], Some(&[true, true, false, true])));
        assert!(a.append(Column { data: Data::Bool(vec![]), valid: None }).is_err());
    }
}
