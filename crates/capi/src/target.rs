//! The caller's memory for values: of one type, of a known capacity, written at most once each.

use std::ffi::c_void;

use sieva::{Column, DType, Data, Error, ErrorKind, Mask, Result};

use crate::given::check_room;
use crate::types::dtype_of;

/// Where values go, and which of them are missing.
pub struct Target {
    dtype: DType,
    values: *mut u8,
    capacity: u64,
    missing: *mut u8,
    /// Values written so far.
    written: usize,
}

// SAFETY: the memory is the caller's, who leaves it alone while work goes on (see `sieva_start_read`).
unsafe impl Send for Target {}

impl Target {
    /// Memory for `capacity` values of the type of this number; `missing` may be NULL.
    ///
    /// # Errors
    /// `invalid-value` for a type that has no values of one size.
    pub fn new(number: i32, values: *mut c_void, capacity: u64, missing: *mut u8) -> Result<Self> {
        let dtype = dtype_of(number)?;
        match dtype {
            DType::Str => Err(Error::new(ErrorKind::TypeMismatch, "texts have no fixed size")
                .hint("read them with sieva_read_texts()")),
            DType::F16 => Err(Error::new(ErrorKind::TypeMismatch, "C has no type for SIEVA_F16")
                .hint("read it as SIEVA_F32, which is exact")),
            _ => Ok(Self { dtype, values: values.cast(), capacity, missing, written: 0 }),
        }
    }

    /// Whether there is room for `n` values in all.
    ///
    /// # Errors
    /// `invalid-value` with the number needed.
    pub fn check_room(&self, n: u64) -> Result<()> {
        check_room(n, self.capacity, self.values.is_null(), "values")
    }

    /// Writes the next values, and which of them are missing.
    ///
    /// # Errors
    /// `type-mismatch` where the type cannot hold them all exactly; `invalid-value` where values are missing and
    /// nothing can say so.
    ///
    /// # Safety
    /// The memory must be as the caller of [`Target::new`] said.
    pub unsafe fn put(&mut self, column: &Column) -> Result<()> {
        let absent = column.valid.as_ref().map_or(0, |v| v.len() as u64 - v.count());
        if absent > 0 && self.missing.is_null() && !self.dtype.is_float() {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("{absent} values are missing, which {} values cannot say", self.dtype.name()),
            )
            .hint("give a buffer 'missing' of a byte per value"));
        }
        let from = self.written;
        // SAFETY: the caller's promise.
        unsafe { self.put_numbers(column) }?;
        // SAFETY: as many as there are values, by the caller's promise.
        unsafe {
            if !self.missing.is_null() {
                self.missing.add(from).write_bytes(0, column.len());
            }
            for i in column.valid.iter().flat_map(Mask::zeros_iter) {
                if !self.missing.is_null() {
                    self.missing.add(from + i).write(1);
                }
                self.blank(from + i);
            }
        }
        Ok(())
    }

    /// NaN, or 0, at a missing value.
    unsafe fn blank(&self, at: usize) {
        let size = self.dtype.size();
        // SAFETY: the caller's promise.
        unsafe {
            let place = self.values.add(at * size);
            match self.dtype {
                DType::F32 => place.cast::<f32>().write_unaligned(f32::NAN),
                DType::F64 => place.cast::<f64>().write_unaligned(f64::NAN),
                _ => place.write_bytes(0, size),
            }
        }
    }

    /// Writes the next values; where a value does not fit exactly into the type, none of them.
    ///
    /// # Errors
    /// `type-mismatch`.
    ///
    /// # Safety
    /// As [`Target::put`].
    pub unsafe fn put_numbers(&mut self, column: &Column) -> Result<()> {
        let n = column.len();
        self.check_room((self.written + n) as u64)?;
        let place = self.values.wrapping_add(self.written * self.dtype.size());
        let valid = column.valid.as_ref();
        // SAFETY: as above.
        unsafe {
            match self.dtype {
                DType::Bool => match &column.data {
                    Data::Bool(v) => write(place, v, |&b| u8::from(b)),
                    other => return Err(self.mismatch(other)),
                },
                _ if self.same(place, &column.data) => {}
                DType::I8 => self.integers::<i8>(place, &column.data, valid)?,
                DType::I16 => self.integers::<i16>(place, &column.data, valid)?,
                DType::I32 => self.integers::<i32>(place, &column.data, valid)?,
                DType::I64 => self.integers::<i64>(place, &column.data, valid)?,
                DType::U8 => self.integers::<u8>(place, &column.data, valid)?,
                DType::U16 => self.integers::<u16>(place, &column.data, valid)?,
                DType::U32 => self.integers::<u32>(place, &column.data, valid)?,
                DType::U64 => self.integers::<u64>(place, &column.data, valid)?,
                DType::F32 => self.singles(place, &column.data, valid)?,
                DType::F64 => self.doubles(place, &column.data, valid)?,
                DType::F16 | DType::Str => return Err(self.mismatch(&column.data)),
            }
        }
        self.written += n;
        Ok(())
    }

    /// Writes integers of the very type; false where they are of another.
    unsafe fn same(&self, place: *mut u8, data: &Data) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.dtype, data) {
                (DType::I8, Data::I8(v)) => write(place, v, |&x| x),
                (DType::I16, Data::I16(v)) => write(place, v, |&x| x),
                (DType::I32, Data::I32(v)) => write(place, v, |&x| x),
                (DType::I64, Data::I64(v)) => write(place, v, |&x| x),
                (DType::U8, Data::U8(v)) => write(place, v, |&x| x),
                (DType::U16, Data::U16(v)) => write(place, v, |&x| x),
                (DType::U32, Data::U32(v)) => write(place, v, |&x| x),
                (DType::U64, Data::U64(v)) => write(place, v, |&x| x),
                _ => return false,
            }
        }
        true
    }

    unsafe fn integers<T: Copy + Default + TryFrom<i128>>(
        &self,
        place: *mut u8,
        data: &Data,
        valid: Option<&Mask>,
    ) -> Result<()> {
        macro_rules! exact {
            ($v:expr) => {{
                let fits = |&x: &_| T::try_from(i128::from(x)).ok();
                self.check_each($v.iter().map(|x| fits(x).is_some()), valid)?;
                // SAFETY: the caller's promise.
                unsafe { write(place, $v, |x| fits(x).unwrap_or_default()) }
            }};
        }
        match data {
            Data::Bool(v) => exact!(v),
            Data::I8(v) => exact!(v),
            Data::I16(v) => exact!(v),
            Data::I32(v) => exact!(v),
            Data::I64(v) => exact!(v),
            Data::U8(v) => exact!(v),
            Data::U16(v) => exact!(v),
            Data::U32(v) => exact!(v),
            Data::U64(v) => exact!(v),
            other => return Err(self.mismatch(other)),
        }
        Ok(())
    }

    unsafe fn singles(&self, place: *mut u8, data: &Data, valid: Option<&Mask>) -> Result<()> {
        match data {
            // SAFETY: the caller's promise.
            Data::F32(v) => unsafe { write(place, v, |&x| x) },
            Data::F64(v) => {
                self.check_each(v.iter().map(|&x| x.is_nan() || f64::from(x as f32) == x), valid)?;
                // SAFETY: as above.
                unsafe { write(place, v, |&x| x as f32) }
            }
            Data::Str(_) => return Err(self.mismatch(data)),
            other => {
                let wide = widened(other);
                self.check_each(wide.iter().map(|&x| exactly(x as f32 as f64, x)), valid)?;
                // SAFETY: as above.
                unsafe { write(place, &wide, |&x| x as f32) }
            }
        }
        Ok(())
    }

    unsafe fn doubles(&self, place: *mut u8, data: &Data, valid: Option<&Mask>) -> Result<()> {
        match data {
            // SAFETY: the caller's promise.
            Data::F64(v) => unsafe { write(place, v, |&x| x) },
            // SAFETY: as above.
            Data::F32(v) => unsafe { write(place, v, |&x| f64::from(x)) },
            Data::Str(_) => return Err(self.mismatch(data)),
            other => {
                let wide = widened(other);
                self.check_each(wide.iter().map(|&x| exactly(x as f64, x)), valid)?;
                // SAFETY: as above.
                unsafe { write(place, &wide, |&x| x as f64) }
            }
        }
        Ok(())
    }

    /// Every value that is there must be held exactly.
    fn check_each(&self, fits: impl Iterator<Item = bool>, valid: Option<&Mask>) -> Result<()> {
        let lost = fits.enumerate().find(|&(i, ok)| !ok && valid.is_none_or(|v| v.get(i)));
        match lost {
            None => Ok(()),
            Some((i, _)) => Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("value {} is not exactly a {}", self.written + i, self.dtype.name()),
            )
            .hint("read the array in its own type: value_type of sieva_array_describe()")),
        }
    }

    fn mismatch(&self, data: &Data) -> Error {
        let own = match data {
            Data::Str(_) => "text",
            Data::Bool(_) => "bool",
            Data::F32(_) | Data::F64(_) => "floating-point",
            _ => "integer",
        };
        Error::new(ErrorKind::TypeMismatch, format!("{own} values cannot be read as {}", self.dtype.name()))
            .hint("value_type of sieva_array_describe() is the type to read in")
    }
}

/// Integers, in a type that has room for all.
fn widened(data: &Data) -> Vec<i128> {
    match data {
        Data::Bool(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I8(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I16(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I64(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U8(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U16(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U64(v) => v.iter().map(|&x| x.into()).collect(),
        Data::F32(_) | Data::F64(_) | Data::Str(_) => Vec::new(),
    }
}

/// Whether rounding an integer of 64 bits to a float kept it.
fn exactly(rounded: f64, x: i128) -> bool {
    rounded as i128 == x
}

/// Writes values one behind the other, at any alignment.
unsafe fn write<T, U>(place: *mut u8, values: &[T], as_stored: impl Fn(&T) -> U) {
    for (i, v) in values.iter().enumerate() {
        // SAFETY: the caller has room for all of them.
        unsafe { place.cast::<U>().add(i).write_unaligned(as_stored(v)) };
    }
}
