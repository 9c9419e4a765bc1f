//! Numbers, texts and lists as bytes: the alphabet of manifests, of plans, and of what a worker process answers.
//!
//! By hand instead of serde and postcard: the same bytes but for the columns of chunks (`chunks.rs`), which postcard
//! could not give and which make the difference of 3 to 24 bytes a chunk; no two more crates to build; and a reader
//! that charges every allocation to a budget, which postcard has no place for.

use crate::{DType, Endian, Error, ErrorKind, Result};

/// Appends values to a row of bytes.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A truth value, as 0 or 1.
    pub fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    /// An unsigned number, as LEB128: seven bits a byte, least significant first.
    pub fn uint(&mut self, value: u64) {
        self.wide_uint(u128::from(value));
    }

    /// A signed number, zigzag (the sign in the lowest bit), then as an unsigned one.
    pub fn int(&mut self, value: i128) {
        self.wide_uint(((value << 1) ^ (value >> 127)) as u128);
    }

    fn wide_uint(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// The bits of a float64, little-endian: NaN and -0.0 come back as they were.
    pub fn float(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// A length and so many bytes.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.uint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// What `write` writes, behind its length, so that a reader can pass over it.
    pub fn framed(&mut self, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.blob(&inner.bytes);
    }

    /// A text in UTF-8.
    pub fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    /// A length, then each item by `write`.
    pub fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.uint(items.len() as u64);
        items.iter().for_each(|item| write(self, item));
    }

    /// Unsigned numbers.
    pub fn uints(&mut self, values: &[u64]) {
        self.list(values, |w, &v| w.uint(v));
    }

    /// Positions in a list.
    pub fn indices(&mut self, values: &[usize]) {
        self.list(values, |w, &v| w.uint(v as u64));
    }

    /// A flag whether there is something, then that.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// An element type by its place in [`DTYPES`].
    pub fn dtype(&mut self, dtype: DType) {
        self.byte(DTYPES.iter().position(|&d| d == dtype).unwrap_or(DTYPES.len()) as u8);
    }

    /// A byte order: 0 little, 1 big.
    pub fn endian(&mut self, endian: Endian) {
        self.flag(endian == Endian::Big);
    }

    /// An error: code, message, hint.
    pub fn error(&mut self, e: &Error) {
        self.text(e.kind().code());
        self.text(e.message());
        self.option(e.hint_text(), Self::text);
    }
}

/// Element types in the order of their codes.
pub const DTYPES: [DType; 13] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::Str,
];

/// What bytes are of, for the errors of a [`Reader`].
#[derive(Debug)]
pub struct Subject {
    /// Its name: "manifest".
    pub name: &'static str,
    /// The kind of error that damage is.
    pub kind: ErrorKind,
    /// What to do about it.
    pub hint: &'static str,
}

/// Takes values off a row of bytes that nobody vouches for: reads stay inside, and what is allocated is charged to
/// a budget first. Every error is of the subject's kind.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    budget: usize,
    is_over: bool,
    subject: &'static Subject,
}

impl<'a> Reader<'a> {
    /// A reader of `subject`'s bytes that allocates at most about `budget` bytes.
    pub fn new(subject: &'static Subject, bytes: &'a [u8], budget: usize) -> Self {
        Self { bytes, at: 0, budget, is_over: false, subject }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error that names the place.
    pub fn damaged(&self, what: impl std::fmt::Display) -> Error {
        let Subject { name, kind, hint } = self.subject;
        Error::new(*kind, format!("damaged {name}: {what}, at byte {}", self.at)).hint(*hint)
    }

    /// Charges `bytes` to the budget.
    ///
    /// # Errors
    /// Where they are more than what is left of it.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        let left = self.budget.checked_sub(bytes);
        self.is_over = left.is_none();
        self.budget = left.ok_or_else(|| self.damaged("it takes more memory than allowed"))?;
        Ok(())
    }

    /// Whether the budget did not suffice, which ended the reading.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Charges `n` values of `T`.
    ///
    /// # Errors
    /// As [`Reader::charge`].
    pub fn charge_values<T>(&mut self, n: usize) -> Result<()> {
        self.charge(n.saturating_mul(size_of::<T>()))
    }

    /// `n` bytes as they are.
    ///
    /// # Errors
    /// Where there are fewer.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let found = rest.get(..n).ok_or_else(|| self.damaged(format!("{n} bytes wanted")))?;
        self.at += n;
        Ok(found)
    }

    /// As [`Writer::byte`].
    ///
    /// # Errors
    /// At the end.
    pub fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.damaged("it is cut off"))?;
        self.at += 1;
        Ok(byte)
    }

    /// As [`Writer::flag`].
    ///
    /// # Errors
    /// Where it is neither 0 nor 1.
    pub fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.damaged(format!("{other} is no truth value"))),
        }
    }

    /// As [`Writer::uint`].
    ///
    /// # Errors
    /// Where it does not fit into 64 bits.
    pub fn uint(&mut self) -> Result<u64> {
        // Most numbers are short: no 128-bit arithmetic for those.
        if let Some(&byte) = self.bytes.get(self.at).filter(|&&b| b < 0x80) {
            self.at += 1;
            return Ok(u64::from(byte));
        }
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.damaged("a number of more than 64 bits"))
    }

    /// As [`Writer::int`].
    ///
    /// # Errors
    /// Where it does not fit into 128 bits.
    pub fn int(&mut self) -> Result<i128> {
        if let Some(&byte) = self.bytes.get(self.at).filter(|&&b| b < 0x80) {
            self.at += 1;
            return Ok(i128::from(byte >> 1) ^ -i128::from(byte & 1));
        }
        let mut value = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift == 126 && bits > 3 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i128 ^ -((value & 1) as i128));
            }
        }
        Err(self.damaged("a number of more than 128 bits"))
    }

    /// As [`Writer::uint`], of a length or a position.
    ///
    /// # Errors
    /// As [`Reader::uint`].
    pub fn index(&mut self) -> Result<usize> {
        let value = self.uint()?;
        usize::try_from(value).map_err(|_| self.damaged(format!("{value} is no place")))
    }

    /// As [`Writer::float`].
    ///
    /// # Errors
    /// At the end.
    pub fn float(&mut self) -> Result<f64> {
        let bytes = self.take(8)?.try_into().map_err(|_| self.damaged("it is cut off"))?;
        Ok(f64::from_bits(u64::from_le_bytes(bytes)))
    }

    /// As [`Writer::blob`].
    ///
    /// # Errors
    /// At the end, or where the budget is used up.
    pub fn blob(&mut self) -> Result<&'a [u8]> {
        let n = self.index()?;
        let bytes = self.take(n)?;
        self.charge(n)?;
        Ok(bytes)
    }

    /// As [`Writer::framed`].
    ///
    /// # Errors
    /// What `read` says, and where it took more or fewer bytes than there are.
    pub fn framed<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let frame = self.frame()?;
        let after = std::mem::replace(&mut self.at, frame.start);
        let found = read(self)?;
        if self.at == after { Ok(found) } else { Err(self.damaged("a part of another length than it says")) }
    }

    /// Passes over what [`Writer::framed`] or [`Writer::blob`] wrote; where it stands, for [`Reader::seek`].
    ///
    /// # Errors
    /// Where it is longer than what is left.
    pub fn skip(&mut self) -> Result<usize> {
        let place = self.at;
        self.frame().map(|_| place)
    }

    /// Goes on from another place of the same bytes.
    pub fn seek(&mut self, place: usize) {
        self.at = place.min(self.bytes.len());
    }

    /// The places of the next frame's bytes, behind which the reader is then.
    fn frame(&mut self) -> Result<std::ops::Range<usize>> {
        let n = self.index()?;
        let start = self.at;
        self.take(n)?;
        Ok(start..self.at)
    }

    /// A text that stays where it is.
    ///
    /// # Errors
    /// As [`Reader::text`], but for the budget.
    pub fn text_here(&mut self) -> Result<&'a str> {
        let n = self.index()?;
        let bytes = self.take(n)?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("a text is not UTF-8"))
    }

    /// As [`Writer::text`].
    ///
    /// # Errors
    /// As [`Reader::blob`], and where it is not UTF-8.
    pub fn text(&mut self) -> Result<String> {
        let bytes = self.blob()?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| self.damaged("a text is not UTF-8"))
    }

    /// As [`Writer::list`].
    ///
    /// # Errors
    /// What `read` says, or where the list is longer than what is left.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let n = self.index()?;
        // An item takes a byte at least.
        if n > self.left() {
            return Err(self.damaged(format!("a list of {n} items in {} bytes", self.left())));
        }
        self.charge_values::<T>(n)?;
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// As [`Writer::uints`].
    ///
    /// # Errors
    /// As [`Reader::list`].
    pub fn uints(&mut self) -> Result<Vec<u64>> {
        self.list(Self::uint)
    }

    /// As [`Writer::indices`].
    ///
    /// # Errors
    /// As [`Reader::list`].
    pub fn indices(&mut self) -> Result<Vec<usize>> {
        self.list(Self::index)
    }

    /// As [`Writer::option`].
    ///
    /// # Errors
    /// What `read` says.
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// As [`Writer::dtype`].
    ///
    /// # Errors
    /// Where it is none.
    pub fn dtype(&mut self) -> Result<DType> {
        let code = self.byte()?;
        DTYPES.get(usize::from(code)).copied().ok_or_else(|| self.damaged(format!("{code} is no type")))
    }

    /// As [`Writer::endian`].
    ///
    /// # Errors
    /// Where it is none.
    pub fn endian(&mut self) -> Result<Endian> {
        Ok(if self.flag()? { Endian::Big } else { Endian::Little })
    }

    /// As [`Writer::error`].
    ///
    /// # Errors
    /// Where the code is unknown, or nothing is said.
    pub fn error(&mut self) -> Result<Error> {
        let code = self.text()?;
        let kind = ErrorKind::ALL.into_iter().find(|k| k.code() == code);
        let kind = kind.ok_or_else(|| self.damaged(format!("'{code}' is no kind of error")))?;
        let message = self.text()?;
        if message.is_empty() {
            return Err(self.damaged("an error that says nothing"));
        }
        let e = Error::new(kind, message);
        Ok(match self.option(Self::text)? {
            Some(hint) => e.hint(hint),
            None => e,
        })
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// Where something is.
    pub fn finish(self) -> Result<()> {
        if self.left() == 0 { Ok(()) } else { Err(self.damaged(format!("{} bytes too many", self.left()))) }
    }
}
