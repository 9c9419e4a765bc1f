//! HDF5 datatypes as a tree of what sieva can show.

use std::ffi::{c_uint, c_void};

use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5t::*;
use sieva_types::{DType, Endian, Result};

use crate::ffi::{self, Handle, call};
use crate::numbers::{Field, Float, Form, OddNumber, Order};
use crate::texts::BESIDES_ADDRESS;

/// Deepest nesting of types within types that is looked into.
const DEPTH_LIMIT: usize = 16;
/// Most members of one compound, or names of one enumeration, that are looked at.
const MEMBER_LIMIT: usize = 4096;

/// Bytes in memory of references to objects and to regions, but those of HDF5 1.12's kind.
const OBJECT_REFERENCE: u64 = 8;
const REGION_REFERENCE: u64 = 12;

/// What a type is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A number as this machine knows it, save for the byte order.
    Number { dtype: DType, endian: Endian },
    /// A number that this machine does not know.
    Odd(OddNumber),
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
    /// Any number of items, in the file's heap.
    Sequence(Box<TypeInfo>),
    /// None of these, in words.
    Other(String),
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
    pub(crate) fn new(size: u64, kind: Kind) -> Self {
        let relocated = match &kind {
            Kind::VlenText | Kind::Reference | Kind::Sequence(_) => true,
            Kind::Other(_) | Kind::Number { .. } | Kind::Odd(_) | Kind::Text { .. } => false,
            Kind::Complex(item) | Kind::Array(_, item) => item.relocated,
            Kind::Compound(members) => members.iter().any(|m| m.info.relocated),
        };
        Self { size, kind, enum_names: Vec::new(), relocated }
    }

    /// The type as it lies in a file whose addresses take `address` bytes; `None` where that is not known: of
    /// references of HDF5 1.12's kind, and of what was not looked into.
    ///
    /// What is in a heap has an address and 8 bytes in its place; libhdf5 moves what follows it in a compound.
    pub(crate) fn in_file(&self, address: u64) -> Option<Self> {
        if !self.relocated {
            return Some(self.clone());
        }
        let (size, kind) = match &self.kind {
            Kind::Reference => match self.size {
                OBJECT_REFERENCE => (address, self.kind.clone()),
                REGION_REFERENCE => (address + 4, self.kind.clone()),
                _ => return None,
            },
            Kind::Array(dims, item) => {
                let item = item.in_file(address)?;
                let size = dims.iter().try_fold(item.size, |n, &length| n.checked_mul(length))?;
                (size, Kind::Array(dims.clone(), Box::new(item)))
            }
            Kind::Complex(item) => {
                let item = item.in_file(address)?;
                (item.size.checked_mul(2)?, Kind::Complex(Box::new(item)))
            }
            Kind::Compound(members) => {
                let mut members = members.clone();
                let mut order: Vec<usize> = (0..members.len()).collect();
                order.sort_by_key(|&i| members[i].offset);
                // What the members so far take more or less than in memory.
                let mut moved = 0_i64;
                for i in order {
                    let info = members[i].info.in_file(address)?;
                    members[i].offset = members[i].offset.checked_add_signed(moved)?;
                    moved += info.size as i64 - members[i].info.size as i64;
                    members[i].info = info;
                }
                (self.size.checked_add_signed(moved)?, Kind::Compound(members))
            }
            Kind::VlenText | Kind::Sequence(_) => (address + BESIDES_ADDRESS as u64, self.kind.clone()),
            _ => return None,
        };
        Some(Self { size, kind, ..self.clone() })
    }

    /// Where in an item of this form ([`TypeInfo::in_file`]) lie lengths and addresses of what is in a heap, each with the
    /// type of its elements: `None` for texts.
    pub(crate) fn heap_items(&self) -> Vec<(u64, Option<&TypeInfo>)> {
        let mut found = Vec::new();
        let mut todo = vec![(0, self)];
        while let Some((at, info)) = todo.pop() {
            match &info.kind {
                _ if !info.relocated => {}
                Kind::VlenText => found.push((at, None)),
                Kind::Sequence(item) => found.push((at, Some(&**item))),
                Kind::Array(_, item) | Kind::Complex(item) => {
                    let n = info.size.checked_div(item.size).unwrap_or(0);
                    todo.extend((0..n).map(|i| (at + i * item.size, &**item)));
                }
                Kind::Compound(members) => todo.extend(members.iter().map(|m| (at + m.offset, &m.info))),
                _ => {}
            }
        }
        found
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
        let mut info =
            TypeInfo::new(size, Kind::Other(format!("a type nested more than {DEPTH_LIMIT} deep")));
        info.relocated = may_hold_heap_data(t);
        return Ok(info);
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
        H5T_VLEN => Kind::Sequence(Box::new(read_type(&super_type(t)?, depth + 1)?)),
        H5T_OPAQUE => Kind::Other("opaque bytes".into()),
        H5T_TIME => Kind::Other("times in HDF5's obsolete form".into()),
        _ => Kind::Other("an unknown type".into()),
    };
    let mut info = TypeInfo::new(size, kind);
    // Of a type that was not looked into.
    info.relocated |= matches!(info.kind, Kind::Other(_)) && may_hold_heap_data(t);
    Ok(info)
}

/// Whether a type has parts of variable length, or texts, which may be such.
fn may_hold_heap_data(t: &Handle) -> bool {
    // SAFETY: the lock is held, `t` is an open datatype.
    unsafe { H5Tdetect_class(t.id(), H5T_VLEN) > 0 || H5Tdetect_class(t.id(), H5T_STRING) > 0 }
}

fn byte_order(t: &Handle) -> Option<Order> {
    // SAFETY: the lock is held, `t` is an open datatype.
    match unsafe { H5Tget_order(t.id()) } {
        H5T_ORDER_LE => Some(Order::Plain(Endian::Little)),
        H5T_ORDER_BE => Some(Order::Plain(Endian::Big)),
        H5T_ORDER_NONE => Some(Order::Plain(Endian::NATIVE)),
        H5T_ORDER_VAX => Some(Order::Vax),
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
        Some(Order::Plain(endian)) if width == size && is_full(t, size) => Kind::Number { dtype, endian },
        order => {
            // SAFETY: as above.
            let offset = unsafe { H5Tget_offset(t.id()) };
            let form = Form::Integer { offset: bit(offset), precision: bit(bits), signed, dtype };
            odd(size, order, form)
        }
    }
}

/// A number of bits as libhdf5 gives it; what is beyond any item stays so.
fn bit<T: TryInto<u32>>(n: T) -> u32 {
    n.try_into().unwrap_or(u32::MAX)
}

fn odd(size: u64, order: Option<Order>, form: Form) -> Kind {
    let number = OddNumber { size: bit(size) as usize, order: order.unwrap_or(Order::Vax), form };
    match order {
        Some(_) if number.is_sound() => Kind::Odd(number),
        _ => Kind::Other(number.name()),
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
        (Some(dtype), Some(Order::Plain(endian))) if norm == H5T_NORM_IMPLIED && is_full(t, size) => {
            Kind::Number { dtype, endian }
        }
        (_, order) => {
            let form = Form::Float(Float {
                sign: bit(sign),
                exponent: Field { start: bit(exp), len: bit(exp_len) },
                mantissa: Field { start: bit(man), len: bit(man_len) },
                bias: bias as u64,
                implied: norm == H5T_NORM_IMPLIED,
            });
            odd(size, order, form)
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
pub(crate) fn integer_of(bytes: &[u8], dtype: DType, endian: Endian) -> i128 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enum_values_follow_sign_and_byte_order() {
        assert_eq!(integer_of(&[0xff, 0xfe], DType::I16, Endian::Big), -2);
        assert_eq!(integer_of(&[0xfe, 0xff], DType::U16, Endian::Little), 0xfffe);
        assert_eq!(integer_of(&[0xff], DType::I8, Endian::Little), -1);
    }
}
