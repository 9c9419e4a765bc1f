//! The head of a netCDF classic file: 64-bit offset (CDF-2), or CDF-5 where types or sizes ask for it.
//!
//! Numbers are big-endian; names and values are padded with zeros to four bytes (netCDF user's guide, "File Format
//! Specifications", classic and CDF-5):
//!
//! ```text
//! "CDF" version numrecs dim_list gatt_list var_list
//! list  = tag count item* | 0 0          tag: 10 dimensions, 12 attributes, 11 variables
//! dim   = name length                    length 0: the dimension that grows
//! attr  = name type count values
//! var   = name rank dimension* attributes type size begin
//! ```
//!
//! Counts, lengths and sizes have four bytes in CDF-2 and eight in CDF-5, types four, offsets (`begin`) eight.

use sieva::{Attr, AttrValue, DType, Result};

use crate::elements::Order;
use crate::file_layout::{FileLayout, Place};
use crate::variable::{Kind, OBS, Variable};
use crate::writer::{Making, ResultWriter};

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;
const CHAR: u32 = 2;
/// CDF-2 writes sizes in four bytes, rounded up to four.
const MAX_SIZE: u64 = u32::MAX as u64 - 3;
const MAX_LENGTH: u64 = i32::MAX as u64;

/// The format.
pub(crate) struct Netcdf;

impl ResultWriter for Netcdf {
    fn name(&self) -> &'static str {
        "netcdf"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["nc", "cdf"]
    }

    fn making(&self) -> Making {
        Making::LaidOut { plan, has_dimension: true }
    }

    fn is_for_pipes(&self) -> bool {
        false
    }
}

/// The layout of a file of `rows` rows.
///
/// # Errors
/// `arithmetic-overflow` where it would have more than 2^63 bytes.
fn plan(variables: &[Variable], rows: u64, attrs: &[Attr]) -> Result<FileLayout> {
    let large = needs_cdf5(variables, rows, attrs);
    let head = |begins: &[u64]| Head::new(large).file(variables, rows, attrs, begins);
    // Offsets take the same room whatever they are.
    let mut at = head(&vec![0; variables.len()]).len() as u64;
    let (mut places, mut begins) = (Vec::new(), Vec::new());
    for (column, variable) in variables.iter().enumerate() {
        let width = variable.width() as u64;
        begins.push(at);
        places.push(Place { column, begin: at, width });
        // Without rows, where the first row's values would be: readers want offsets that ascend.
        at = end_of(at, rows.max(1), width)?;
    }
    let head = head(&begins);
    if rows == 0 {
        let len = head.len() as u64;
        return Ok(FileLayout { head, places: Vec::new(), rows, len, order: Order::Big });
    }
    Ok(FileLayout { head, places, rows, len: at, order: Order::Big })
}

/// Where the values of a variable end, padded to four bytes.
fn end_of(begin: u64, rows: u64, width: u64) -> Result<u64> {
    let end = rows.checked_mul(width).and_then(|n| n.checked_next_multiple_of(4)?.checked_add(begin));
    end.filter(|&e| e <= i64::MAX as u64).ok_or_else(|| {
        let message = format!("a file of {rows} rows would have more than 2^63 bytes");
        sieva::Error::new(sieva::ErrorKind::Overflow, message)
    })
}

fn needs_cdf5(variables: &[Variable], rows: u64, attrs: &[Attr]) -> bool {
    let wide = |(_, value): &Attr| match value {
        AttrValue::Ints(_, v) => v.iter().any(|i| i32::try_from(*i).is_err()),
        _ => false,
    };
    rows > MAX_LENGTH
        || attrs.iter().any(wide)
        || variables.iter().any(|v| {
            let new = matches!(v.kind, Kind::Number(d) if type_number(d) > 6);
            new || rows.saturating_mul(v.width() as u64) > MAX_SIZE || v.attrs.iter().any(wide)
        })
}

/// netCDF's number of a type.
fn type_number(dtype: DType) -> u32 {
    match dtype {
        DType::I8 | DType::Bool => 1,
        DType::Str => CHAR,
        DType::I16 => 3,
        DType::I32 => 4,
        DType::F32 | DType::F16 => 5,
        DType::F64 => 6,
        DType::U8 => 7,
        DType::U16 => 8,
        DType::U32 => 9,
        DType::I64 => 10,
        DType::U64 => 11,
    }
}

/// A head while it is written.
struct Head {
    out: Vec<u8>,
    /// Whether it is one of CDF-5.
    large: bool,
}

impl Head {
    fn new(large: bool) -> Self {
        Self { out: Vec::new(), large }
    }

    fn file(mut self, variables: &[Variable], rows: u64, attrs: &[Attr], begins: &[u64]) -> Vec<u8> {
        self.out.extend(b"CDF");
        self.out.push(if self.large { 5 } else { 2 });
        // Without rows the dimension is one that grows, and has not grown: a length of 0 means that.
        self.count(0);
        let mut lengths = text_lengths(variables);
        self.list(DIMENSIONS, 1 + lengths.len());
        self.name(OBS);
        self.count(rows);
        for width in &lengths {
            self.name(&format!("string{width}"));
            self.count(*width as u64);
        }
        lengths.insert(0, 0);
        self.attributes(attrs);
        self.list(VARIABLES, variables.len());
        for (variable, begin) in variables.iter().zip(begins) {
            self.variable(variable, &lengths, rows, *begin);
        }
        self.out
    }

    fn variable(&mut self, variable: &Variable, lengths: &[usize], rows: u64, begin: u64) {
        self.name(&variable.name);
        let kind = match variable.kind {
            Kind::Number(dtype) => {
                self.count(1);
                self.count(0);
                type_number(dtype)
            }
            Kind::Text(width) => {
                self.count(2);
                self.count(0);
                self.count(lengths.iter().position(|l| *l == width).unwrap_or_default() as u64);
                CHAR
            }
        };
        self.attributes(&variable.attrs);
        self.word(kind);
        // Of one that grows, the size of one row.
        let size = rows.max(1).saturating_mul(variable.width() as u64);
        let size = size.checked_next_multiple_of(4).unwrap_or(size);
        self.count(if self.large { size } else { size.min(u32::MAX.into()) });
        self.out.extend(begin.to_be_bytes());
    }

    fn attributes(&mut self, attrs: &[Attr]) {
        self.list(ATTRIBUTES, attrs.len());
        for (name, value) in attrs {
            self.name(name);
            match value {
                AttrValue::Text(text) | AttrValue::Other(text) => self.text_value(text),
                AttrValue::Texts(texts) => self.text_value(&texts.join("\n")),
                AttrValue::Ints(dtype, values) => self.integers(*dtype, values),
                AttrValue::Floats(dtype, values) => {
                    let dtype = if *dtype == DType::F64 { DType::F64 } else { DType::F32 };
                    self.word(type_number(dtype));
                    self.count(values.len() as u64);
                    for v in values {
                        match dtype {
                            DType::F64 => self.out.extend(v.to_be_bytes()),
                            _ => self.out.extend((*v as f32).to_be_bytes()),
                        }
                    }
                }
            }
            self.pad();
        }
    }

    fn text_value(&mut self, text: &str) {
        self.word(CHAR);
        self.count(text.len() as u64);
        self.out.extend(text.as_bytes());
    }

    /// Integers of their type; in CDF-2, of the smallest one that it has and that has all of their type's values, as far
    /// as they are met.
    fn integers(&mut self, dtype: DType, values: &[i128]) {
        let dtype = match dtype {
            _ if self.large => dtype,
            DType::U8 => DType::I16,
            DType::U16 | DType::U32 | DType::I64 | DType::U64 => DType::I32,
            other => other,
        };
        let size = dtype.size();
        self.word(type_number(dtype));
        self.count(values.len() as u64);
        for v in values {
            self.out.extend(&v.to_be_bytes()[16 - size..]);
        }
    }

    fn list(&mut self, tag: u32, n: usize) {
        self.word(if n == 0 { 0 } else { tag });
        self.count(n as u64);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.out.extend(name.as_bytes());
        self.pad();
    }

    /// A number whose width depends on the version; CDF-2 is taken only where it fits.
    fn count(&mut self, n: u64) {
        match self.large {
            true => self.out.extend(n.to_be_bytes()),
            false => self.word(n as u32),
        }
    }

    fn word(&mut self, n: u32) {
        self.out.extend(n.to_be_bytes());
    }

    fn pad(&mut self) {
        self.out.resize(self.out.len().next_multiple_of(4), 0);
    }
}

/// The lengths of texts, each once, in the order of the variables.
fn text_lengths(variables: &[Variable]) -> Vec<usize> {
    let mut lengths = Vec::new();
    for variable in variables {
        if let Kind::Text(width) = variable.kind
            && !lengths.contains(&width)
        {
            lengths.push(width);
        }
    }
    lengths
}
