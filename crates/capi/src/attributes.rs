//! Attributes of the source, its groups and its arrays.

use std::ffi::{CString, c_char, c_void};

use sieva::{Attr, AttrValue, Column, DType, Data, Error, ErrorKind, Result};

use crate::given::{self, Out};
use crate::source::{Opened, SourceHandle, opened};
use crate::status::{guarded, invalid, text};
use crate::target::Target;
use crate::types::number_of;

/// One attribute.
pub struct Attribute {
    name: CString,
    dtype: DType,
    values: Values,
}

enum Values {
    Numbers(Data),
    Texts(Vec<CString>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(data) => sieva::with_data!(data, v => v.len()),
            Self::Texts(v) => v.len(),
        }
    }
}

/// Attributes in C's form.
pub fn of_attrs(attrs: &[Attr]) -> Vec<Attribute> {
    attrs.iter().map(|(name, value)| of_attr(name, value)).collect()
}

fn of_attr(name: &str, value: &AttrValue) -> Attribute {
    let texts = |v: &[String]| Values::Texts(v.iter().map(|s| text(s)).collect());
    let (dtype, values) = match value {
        AttrValue::Text(s) | AttrValue::Other(s) => (DType::Str, Values::Texts(vec![text(s)])),
        AttrValue::Texts(v) => (DType::Str, texts(v)),
        // Stored in 64 bits at most, so that one of the two has room for all.
        AttrValue::Ints(dtype, v) => match v.iter().map(|&i| i64::try_from(i)).collect() {
            Ok(signed) => (*dtype, Values::Numbers(Data::I64(signed))),
            Err(_) => (*dtype, Values::Numbers(Data::U64(v.iter().map(|&i| i as u64).collect()))),
        },
        AttrValue::Floats(dtype, v) => (*dtype, Values::Numbers(Data::F64(v.clone()))),
    };
    Attribute { name: text(name), dtype, values }
}

/// `sieva_attribute`
#[repr(C)]
pub struct Described {
    /// Its name.
    pub name: *const c_char,
    /// Number of values.
    pub count: u64,
    /// Stored type.
    pub r#type: i32,
    /// 0.
    pub reserved: i32,
}

/// The attributes of an array, a group, or (NULL or empty) the whole source.
unsafe fn of_owner(source: &Opened, owner: *const c_char) -> Result<&[Attribute]> {
    let groups = &source.described().groups;
    let root = || groups.first().map_or(&[][..], |g| g.1.as_slice());
    if owner.is_null() {
        return Ok(root());
    }
    // SAFETY: the caller's promise.
    let name = unsafe { given::text(owner, "owner") }?;
    let path = name.trim_matches('/');
    if path.is_empty() {
        return Ok(root());
    }
    if let Some(group) = groups.iter().find(|g| g.0 == path) {
        return Ok(&group.1);
    }
    Ok(source.described().attributes_of(source.source.resolve_within(&source.group, name)?))
}

unsafe fn find(attrs: &[Attribute], name: *const c_char) -> Result<&Attribute> {
    // SAFETY: the caller's promise.
    let name = unsafe { given::text(name, "name") }?;
    attrs.iter().find(|a| a.name.as_bytes() == name.as_bytes()).ok_or_else(|| {
        let all: Vec<_> = attrs.iter().map(|a| a.name.to_string_lossy()).collect();
        Error::new(ErrorKind::UnknownAttribute, format!("no attribute '{name}'")).hint(if all.is_empty() {
            "there are none".into()
        } else {
            format!("there are {}", all.join(", "))
        })
    })
}

/// `sieva_attribute_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_attribute_count(
    source: *const SourceHandle,
    owner: *const c_char,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let attrs = unsafe { of_owner(opened(source)?, owner) }?;
        // SAFETY: as above.
        unsafe { out.set(attrs.len() as u64) };
        Ok(())
    })
}

/// `sieva_attribute_describe`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_attribute_describe(
    source: *const SourceHandle,
    owner: *const c_char,
    index: u64,
    attribute: *mut Described,
) -> i32 {
    guarded(|| {
        let out = Out::new(attribute, "attribute")?;
        // SAFETY: the promises of sieva.h.
        let attrs = unsafe { of_owner(opened(source)?, owner) }?;
        let found = usize::try_from(index).ok().and_then(|i| attrs.get(i));
        let found = found
            .ok_or_else(|| invalid(format!("no attribute {index}: there are {}, from 0 on", attrs.len())))?;
        let described = Described {
            name: found.name.as_ptr(),
            count: found.values.len() as u64,
            r#type: number_of(found.dtype),
            reserved: 0,
        };
        // SAFETY: as above.
        unsafe { out.set(described) };
        Ok(())
    })
}

/// `sieva_attribute_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_attribute_read(
    source: *const SourceHandle,
    owner: *const c_char,
    name: *const c_char,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let found = unsafe { find(of_owner(opened(source)?, owner)?, name) }?;
        let Values::Numbers(data) = &found.values else {
            return Err(Error::new(ErrorKind::TypeMismatch, "the attribute is text")
                .hint("read it with sieva_attribute_text()"));
        };
        let mut target = Target::new(r#type, values, capacity, std::ptr::null_mut())?;
        let n = found.values.len() as u64;
        target.check_room(n)?;
        // SAFETY: as above.
        unsafe {
            target.put_numbers(&Column { data: data.clone(), valid: None })?;
            out.set(n);
        }
        Ok(())
    })
}

/// `sieva_attribute_text`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_attribute_text(
    source: *const SourceHandle,
    owner: *const c_char,
    name: *const c_char,
    index: u64,
    text: *mut *const c_char,
) -> i32 {
    guarded(|| {
        let out = Out::new(text, "text")?;
        // SAFETY: the promises of sieva.h.
        let found = unsafe { find(of_owner(opened(source)?, owner)?, name) }?;
        let Values::Texts(texts) = &found.values else {
            return Err(Error::new(ErrorKind::TypeMismatch, "the attribute is of numbers")
                .hint("read it with sieva_attribute_read()"));
        };
        let one = usize::try_from(index).ok().and_then(|i| texts.get(i));
        let one =
            one.ok_or_else(|| invalid(format!("no text {index}: the attribute has {}", texts.len())))?;
        // SAFETY: as above.
        unsafe { out.set(one.as_ptr()) };
        Ok(())
    })
}
