//! HDF5 datatypes as a tree of what sieva can show, and the leaves of that tree: one leaf is one array.

use std::ffi::{CString, c_uint, c_void};
use std::ops::Range;

use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5t::*;
use sieva_types::{DType, Endian, Result};

use crate::ffi::{self, Handle, call};

/// Deepest nesting of types within types that is looked into.
const DEPTH_LIMIT: usize = 16;
/// Most members of one compound, or names of one enumeration, that are looked at.
const MEMBER_LIMIT: usize = 4096;

/// What a type is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A number as this machine knows it, save for the byte order.
    Number { dtype: DType, endian: Endian },
    /// A number that libhdf5 has to convert to `dtype`.
    Converted { dtype: DType, what: String, integer_bit: Option<IntegerBit> },
    /// Text of a fixed number of bytes.
    Text { space_padded: bool },
    /// Text of any length, in the file's heap.
    VlenText,
    /// A pair of numbers, real part first.
    Complex(Box<TypeInfo>),
    /// Named members.
    Compound(Vec<Member>),
    /// A block of items.
    Array(Vec<u64>, Box<TypeInfo>),
    /// An address of another object or region.
    Reference,
    /// None of these, in words.
    Other(String),
}

/// Where floating-point numbers that write down their integer bit, as x87's do, have it and their exponent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IntegerBit {
    endian: Endian,
    bit: usize,
    exponent: Range<usize>,
    mantissa: Range<usize>,
}

impl IntegerBit {
    /// Whether libhdf5 converts an item: with an integer bit of zero it does so to zeros alone and, of x87's own form,
    /// to what has an exponent of zero. No processor writes others under an exponent.
    pub(crate) fn is_number(&self, item: &[u8]) -> bool {
        let is_set = |bit: usize| {
            let byte = bit / 8;
            let byte =
                if self.endian == Endian::Little { byte } else { (item.len() - 1).saturating_sub(byte) };
            item.get(byte).is_some_and(|b| b >> (bit % 8) & 1 == 1)
        };
        let is_native = self.endian == Endian::NATIVE && (self.bit, &self.exponent) == (63, &(64..79));
        let is_zero = || is_native || !self.mantissa.clone().any(is_set);
        is_set(self.bit) || (!self.exponent.clone().any(is_set) && is_zero())
    }
}

/// One member of a compound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: Vec<u8>,
    /// Bytes from the compound's start.
    pub(crate) offset: u64,
    /// Its type.
    pub(crate) info: TypeInfo,
}

/// A datatype.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeInfo {
    /// Bytes of one item, in memory (which differs from the file's where `relocated`).
    pub(crate) size: u64,
    /// What it is.
    pub(crate) kind: Kind,
    /// Names of an enumeration's values.
    pub(crate) enum_names: Vec<(i128, String)>,
    /// Whether it holds heap data or references, so that sizes and offsets in the file are other ones.
    pub(crate) relocated: bool,
}

impl TypeInfo {
    fn new(size: u64, kind: Kind) -> Self {
        let relocated = match &kind {
            Kind::VlenText | Kind::Reference => true,
            Kind::Other(_) | Kind::Number { .. } | Kind::Converted { .. } | Kind::Text { .. } => false,
            Kind::Complex(item) | Kind::Array(_, item) => item.relocated,
            Kind::Compound(members) => members.iter().any(|m| m.info.relocated),
        };
        Self { size, kind, enum_names: Vec::new(), relocated }
    }

    /// Looks into the datatype `handle`.
    pub(crate) fn read(handle: &Handle) -> Result<Self> {
        let _guard = ffi::lock();
        read_type(handle, 0)
    }
}

fn read_type(t: &Handle, depth: usize) -> Result<TypeInfo> {
    // SAFETY: the lock is held by `read`, `t` is an open datatype.
    let (class, size) = unsafe { (H5Tget_class(t.id()), H5Tget_size(t.id()) as u64) };
    if depth > DEPTH_LIMIT {
        return Ok(TypeInfo::new(size, Kind::Other(format!("a type nested more than {DEPTH_LIMIT} deep"))));
    }
    let kind = match class {
        H5T_INTEGER => integer(t, size),
        H5T_BITFIELD => integer(t, size),
        H5T_FLOAT => float(t, size)?,
        H5T_STRING => text(t)?,
        H5T_ENUM => return enumeration(t, size, depth),
        H5T_COMPOUND => compound(t, size, depth)?,
        H5T_ARRAY => array(t, size, depth)?,
        H5T_COMPLEX => complex(t, size, depth)?,
        H5T_REFERENCE => Kind::Reference,
        H5T_VLEN => {
            let mut info = TypeInfo::new(size, Kind::Other("variable-length sequences".into()));
            info.relocated = true;
            return Ok(info);
        }
        H5T_OPAQUE => Kind::Other("opaque bytes".into()),
        H5T_TIME => Kind::Other("times in HDF5's obsolete form".into()),
        _ => Kind::Other("an unknown type".into()),
    };
    Ok(TypeInfo::new(size, kind))
}

fn byte_order(t: &Handle) -> Option<Endian> {
    // SAFETY: the lock is held, `t` is an open datatype.
    match unsafe { H5Tget_order(t.id()) } {
        H5T_ORDER_LE => Some(Endian::Little),
        H5T_ORDER_BE => Some(Endian::Big),
        H5T_ORDER_NONE => Some(Endian::NATIVE),
        _ => None,
    }
}

/// Whether all bits of a number of `size` bytes are significant.
fn is_full(t: &Handle, size: u64) -> bool {
    // SAFETY: the lock is held, `t` is an open datatype.
    unsafe { H5Tget_precision(t.id()) as u64 == 8 * size && H5Tget_offset(t.id()) == 0 }
}

fn integer(t: &Handle, size: u64) -> Kind {
    // SAFETY: the lock is held, `t` is an open datatype (a bit-field has no sign, which reads as error).
    let (signed, bits) = unsafe { (H5Tget_sign(t.id()) == H5T_SGN_2, H5Tget_precision(t.id())) };
    let width =
        if matches!(size, 1 | 2 | 4 | 8) { size } else { (bits as u64).div_ceil(8).next_power_of_two() };
    let dtype = match (width, signed) {
        (1, true) => DType::I8,
        (2, true) => DType::I16,
        (4, true) => DType::I32,
        (8, true) => DType::I64,
        (1, false) => DType::U8,
        (2, false) => DType::U16,
        (4, false) => DType::U32,
        (8, false) => DType::U64,
        _ => return Kind::Other(format!("integers of {bits} bits")),
    };
    match byte_order(t) {
        Some(endian) if width == size && is_full(t, size) => Kind::Number { dtype, endian },
        _ => {
            let what = format!("{bits}-bit integers in {size} bytes");
            Kind::Converted { dtype, what, integer_bit: None }
        }
    }
}

fn float(t: &Handle, size: u64) -> Result<Kind> {
    let (mut sign, mut exp, mut exp_len, mut man, mut man_len) = (0, 0, 0, 0, 0);
    call("cannot read a type", || {
        // SAFETY: the lock is held, `t` is an open floating-point datatype, the pointers are to locals.
        unsafe { H5Tget_fields(t.id(), &mut sign, &mut exp, &mut exp_len, &mut man, &mut man_len) }
    })?;
    // SAFETY: as above.
    let (bias, norm) = unsafe { (H5Tget_ebias(t.id()), H5Tget_norm(t.id())) };
    let ieee = match (size, sign, exp, exp_len, man, man_len, bias) {
        (2, 15, 10, 5, 0, 10, 15) => Some(DType::F16),
        (4, 31, 23, 8, 0, 23, 127) => Some(DType::F32),
        (8, 63, 52, 11, 0, 52, 1023) => Some(DType::F64),
        _ => None,
    };
    Ok(match (ieee, byte_order(t)) {
        (Some(dtype), Some(endian)) if norm == H5T_NORM_IMPLIED && is_full(t, size) => {
            Kind::Number { dtype, endian }
        }
        _ => {
            let what = format!("floating-point numbers of {size} bytes with {exp_len} bits of exponent");
            let integer_bit = match (norm, byte_order(t)) {
                (H5T_NORM_NONE, Some(endian)) if man_len > 0 => Some(IntegerBit {
                    endian,
                    bit: man + man_len - 1,
                    exponent: exp..exp + exp_len,
                    mantissa: man..man + man_len,
                }),
                _ => None,
            };
            Kind::Converted { dtype: DType::F64, what, integer_bit }
        }
    })
}

fn text(t: &Handle) -> Result<Kind> {
    // SAFETY: the lock is held, `t` is an open string datatype.
    if call("cannot read a type", || unsafe { H5Tis_variable_str(t.id()) })? > 0 {
        return Ok(Kind::VlenText);
    }
    // SAFETY: as above.
    Ok(Kind::Text { space_padded: unsafe { H5Tget_strpad(t.id()) } == H5T_STR_SPACEPAD })
}

fn super_type(t: &Handle) -> Result<Handle> {
    // SAFETY: the lock is held, `t` is an open derived datatype.
    ffi::open("cannot read a type", || unsafe { H5Tget_super(t.id()) })
}

fn complex(t: &Handle, size: u64, depth: usize) -> Result<Kind> {
    let item = read_type(&super_type(t)?, depth + 1)?;
    if item.size.checked_mul(2) != Some(size) {
        return Ok(Kind::Other("complex numbers of an odd size".into()));
    }
    Ok(Kind::Complex(Box::new(item)))
}

fn array(t: &Handle, size: u64, depth: usize) -> Result<Kind> {
    let item = read_type(&super_type(t)?, depth + 1)?;
    // SAFETY: the lock is held, `t` is an open array datatype.
    let rank = call("cannot read a type", || unsafe { H5Tget_array_ndims(t.id()) })? as usize;
    let mut dims = vec![0_u64; rank];
    // SAFETY: as above; the buffer has one entry per dimension.
    call("cannot read a type", || unsafe { H5Tget_array_dims2(t.id(), dims.as_mut_ptr()) })?;
    let total = dims.iter().try_fold(item.size, |n, &d| n.checked_mul(d));
    if total != Some(size) {
        return Ok(Kind::Other(format!("blocks {dims:?} that do not fill their {size} bytes")));
    }
    Ok(Kind::Array(dims, Box::new(item)))
}

/// The number of members of a compound or an enumeration, if it is one that can be listed.
fn member_count(t: &Handle) -> Result<std::result::Result<c_uint, Kind>> {
    // SAFETY: the lock is held, `t` is an open compound or enumeration.
    let n = call("cannot read a type", || unsafe { H5Tget_nmembers(t.id()) })?;
    if n as usize > MEMBER_LIMIT {
        return Ok(Err(Kind::Other(format!("a type of {n} members, more than {MEMBER_LIMIT}"))));
    }
    Ok(Ok(n as c_uint))
}

fn member_name(t: &Handle, i: c_uint) -> Vec<u8> {
    // SAFETY: the lock is held, member `i` exists; the string is ours to free with the library's own free.
    unsafe {
        let text = H5Tget_member_name(t.id(), i);
        let name = ffi::bytes_of(text);
        if !text.is_null() {
            H5free_memory(text.cast());
        }
        name
    }
}

fn compound(t: &Handle, size: u64, depth: usize) -> Result<Kind> {
    let n = match member_count(t)? {
        Ok(n) => n,
        Err(other) => return Ok(other),
    };
    let mut members = Vec::with_capacity(n as usize);
    for i in 0..n {
        // SAFETY: the lock is held, `t` is an open compound and member `i` exists.
        let handle = ffi::open("cannot read a type", || unsafe { H5Tget_member_type(t.id(), i) })?;
        let info = read_type(&handle, depth + 1)?;
        // SAFETY: as above.
        let offset = unsafe { H5Tget_member_offset(t.id(), i) } as u64;
        if offset.checked_add(info.size).is_none_or(|end| end > size) {
            return Ok(Kind::Other("a compound whose members leave its bytes".into()));
        }
        members.push(Member { name: member_name(t, i), offset, info });
    }
    Ok(Kind::Compound(members))
}

fn enumeration(t: &Handle, size: u64, depth: usize) -> Result<TypeInfo> {
    let mut info = read_type(&super_type(t)?, depth + 1)?;
    let n = match member_count(t)? {
        Ok(n) => n,
        Err(_) => return Ok(info),
    };
    let Kind::Number { dtype, endian } = info.kind.clone() else { return Ok(info) };
    for i in 0..n {
        let mut value = vec![0_u8; size.max(16) as usize];
        call("cannot read a type", || {
            // SAFETY: the lock is held, member `i` exists, and the buffer holds a value of the type.
            unsafe { H5Tget_member_value(t.id(), i, value.as_mut_ptr().cast::<c_void>()) }
        })?;
        value.truncate(dtype.size());
        let name = String::from_utf8_lossy(&member_name(t, i)).into_owned();
        info.enum_names.push((integer_of(&value, dtype, endian), name));
    }
    let is_bool =
        size == 1 && matches!(&info.enum_names[..], [(0, f), (1, t)] if f == "FALSE" && t == "TRUE");
    if is_bool {
        info.kind = Kind::Number { dtype: DType::Bool, endian };
        info.enum_names.clear();
    }
    Ok(info)
}

/// The integer of type `dtype` in `bytes`.
fn integer_of(bytes: &[u8], dtype: DType, endian: Endian) -> i128 {
    let mut value = 0_i128;
    for k in 0..bytes.len() {
        let byte = bytes[if endian == Endian::Big { k } else { bytes.len() - 1 - k }];
        value = value << 8 | i128::from(byte);
    }
    let bits = 8 * bytes.len() as u32;
    if dtype.as_unsigned() != dtype && bits > 0 && value >> (bits - 1) & 1 == 1 {
        value -= 1_i128 << bits;
    }
    value
}

/// One step from a dataset's type down to a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Into the member of this name.
    Member(CString),
    /// Into the items of a block of this shape.
    Items(Vec<u64>),
    /// Into the real (0) or imaginary (1) part.
    Part(usize),
}

/// One array of a dataset: the dataset itself, or a member of its compound.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// What to add to the dataset's path: empty, or `.member.member`.
    pub(crate) suffix: String,
    /// Its element.
    pub(crate) element: TypeInfo,
    /// Offset of the first element in an item of the dataset.
    pub(crate) base: u64,
    /// Length and byte stride of each dimension within an item.
    pub(crate) inner: Vec<(u64, u64)>,
    /// The way from the dataset's type to the element's.
    pub(crate) steps: Vec<Step>,
}

impl Leaf {
    /// The type of the elements; `None` for what is not a number or text.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self.element.kind {
            Kind::Number { dtype, .. } | Kind::Converted { dtype, .. } => Some(dtype),
            Kind::Text { .. } | Kind::VlenText => Some(DType::Str),
            _ => None,
        }
    }

    /// Bytes of one element as the layout counts them: 0 for text of any length.
    pub(crate) fn element_size(&self) -> usize {
        match self.element.kind {
            Kind::Number { dtype, .. } | Kind::Converted { dtype, .. } => dtype.size(),
            Kind::Text { .. } => self.element.size as usize,
            _ => 0,
        }
    }

    /// The stored type as numpy writes it.
    pub(crate) fn numpy_name(&self) -> String {
        match &self.element.kind {
            Kind::Number { dtype, endian } => {
                let code = match dtype {
                    DType::Bool => 'b',
                    d if d.is_float() => 'f',
                    d if d.as_unsigned() == *d => 'u',
                    _ => 'i',
                };
                let order = match (dtype.size(), endian) {
                    (1, _) => '|',
                    (_, Endian::Little) => '<',
                    (_, Endian::Big) => '>',
                };
                format!("{order}{code}{}", dtype.size())
            }
            Kind::Text { .. } => format!("|S{}", self.element.size),
            Kind::VlenText => "|O".into(),
            Kind::Converted { what, .. } | Kind::Other(what) => what.clone(),
            Kind::Reference => "references".into(),
            Kind::Complex(_) | Kind::Compound(_) | Kind::Array(..) => format!("|V{}", self.element.size),
        }
    }
}

/// The leaves of a type, and in words what was left out.
pub(crate) fn leaves(info: &TypeInfo) -> (Vec<Leaf>, Vec<String>) {
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let root =
        Leaf { suffix: String::new(), element: info.clone(), base: 0, inner: Vec::new(), steps: Vec::new() };
    let mut todo = vec![root];
    while let Some(leaf) = todo.pop() {
        if found.len() + todo.len() > MEMBER_LIMIT {
            left_out.push(format!("members beyond the first {MEMBER_LIMIT}"));
            break;
        }
        match leaf.element.kind.clone() {
            Kind::Compound(members) => todo.extend(members.iter().rev().filter_map(|m| leaf.member(m))),
            Kind::Array(dims, item) => todo.push(leaf.items(dims, *item)),
            Kind::Complex(item) => todo.extend([leaf.part(1, "i", &item), leaf.part(0, "r", &item)]),
            Kind::Reference => left_out.push(format!("{}: references, not numbers or text", leaf.suffix)),
            Kind::Other(what) => left_out.push(format!("{}: {what}, not numbers or text", leaf.suffix)),
            _ => found.push(leaf),
        }
    }
    for text in &mut left_out {
        *text = text.trim_start_matches(": ").to_owned();
    }
    (found, left_out)
}

impl Leaf {
    fn member(&self, member: &Member) -> Option<Leaf> {
        let step = Step::Member(CString::new(member.name.clone()).ok()?);
        let name = String::from_utf8_lossy(&member.name).into_owned();
        Some(self.child(&name, member.offset, &member.info, step))
    }

    fn part(&self, part: usize, name: &str, item: &TypeInfo) -> Leaf {
        self.child(name, part as u64 * item.size, item, Step::Part(part))
    }

    fn child(&self, name: &str, offset: u64, element: &TypeInfo, step: Step) -> Leaf {
        let mut steps = self.steps.clone();
        steps.push(step);
        Leaf {
            suffix: format!("{}.{name}", self.suffix),
            element: element.clone(),
            base: self.base + offset,
            inner: self.inner.clone(),
            steps,
        }
    }

    fn items(mut self, dims: Vec<u64>, item: TypeInfo) -> Leaf {
        let strides = sieva_format::layout::c_strides(&dims, item.size);
        self.inner.extend(dims.iter().copied().zip(strides));
        self.steps.push(Step::Items(dims));
        self.element = item;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(dtype: DType) -> TypeInfo {
        TypeInfo::new(dtype.size() as u64, Kind::Number { dtype, endian: Endian::Little })
    }

    fn member(name: &str, offset: u64, info: TypeInfo) -> Member {
        Member { name: name.into(), offset, info }
    }

    #[test]
    fn leaves_of_nested_compounds_keep_file_order_and_offsets() {
        let position = Kind::Compound(vec![
            member("x", 0, number(DType::F32)),
            member("v", 4, TypeInfo::new(24, Kind::Array(vec![2, 3], Box::new(number(DType::F32))))),
        ]);
        let info = TypeInfo::new(
            36,
            Kind::Compound(vec![
                member("id", 0, number(DType::I64)),
                member("p", 8, TypeInfo::new(28, position)),
                member("ref", 8, TypeInfo::new(8, Kind::Reference)),
            ]),
        );
        let (found, left_out) = leaves(&info);
        let got: Vec<_> = found.iter().map(|l| (l.suffix.as_str(), l.base, l.inner.clone())).collect();
        assert_eq!(got, [(".id", 0, vec![]), (".p.x", 8, vec![]), (".p.v", 12, vec![(2, 12), (3, 4)])]);
        assert_eq!(left_out, [".ref: references, not numbers or text"]);
    }

    #[test]
    fn enum_values_follow_sign_and_byte_order() {
        assert_eq!(integer_of(&[0xff, 0xfe], DType::I16, Endian::Big), -2);
        assert_eq!(integer_of(&[0xfe, 0xff], DType::U16, Endian::Little), 0xfffe);
        assert_eq!(integer_of(&[0xff], DType::I8, Endian::Little), -1);
    }

    #[test]
    fn complex_numbers_are_two_leaves() {
        let info = TypeInfo::new(16, Kind::Complex(Box::new(number(DType::F64))));
        let (found, _) = leaves(&info);
        assert_eq!(
            found.iter().map(|l| (l.suffix.as_str(), l.base)).collect::<Vec<_>>(),
            [(".r", 0), (".i", 8)]
        );
        assert_eq!(found[0].numpy_name(), "<f8");
    }
}
