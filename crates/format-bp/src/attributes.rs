//! Attributes of BP files: their values, and whose they are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_char;
use std::ptr::null_mut;

use sieva_format::foreign::owner_of;
use sieva_format::schema::{Attr, AttrValue};
use sieva_types::{DType, Result};

use crate::file::{File, Handle};
use crate::library::Api;
use crate::variable::dtype_of;

/// An attribute of more values or bytes than this is none of a header.
const MOST: usize = 1 << 24;

/// All attributes by the path of the array or group that each is of; the root's is empty.
pub fn attributes(
    file: &File,
    api: &Api,
    owners: &BTreeSet<&str>,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, Vec<Attr>> {
    let mut found: BTreeMap<String, Vec<Attr>> = BTreeMap::new();
    for name in file.names(api.available_attributes) {
        let Some(name) = name else {
            warnings.push("an attribute whose name is not UTF-8 is left out".into());
            continue;
        };
        let Some(attribute) = file.attribute(api, &name) else { continue };
        let value = value(file, api, attribute).unwrap_or_else(|e| {
            warnings.push(format!("attribute '{name}' cannot be read: {}", e.message()));
            AttrValue::Other("cannot be read".into())
        });
        let path = name.trim_matches('/');
        let owner = owner_of(path, owners);
        let own = path[owner.len()..].trim_start_matches('/').to_string();
        found.entry(owner.to_string()).or_default().push((own, value));
    }
    found
}

fn value(file: &File, api: &Api, attribute: Handle) -> Result<AttrValue> {
    // SAFETY: the handle is one of this file, here and below.
    let kind = file.text(|text, len| unsafe { (api.attribute_type_string)(text, len, attribute.0) })?;
    let (mut count, mut single) = (0_usize, 0);
    // SAFETY: as above.
    file.check(unsafe { (api.attribute_size)(&raw mut count, attribute.0) }, "asked for an attribute")?;
    // SAFETY: as above.
    let told = unsafe { (api.attribute_is_value)(&raw mut single, attribute.0) };
    file.check(told, "asked for an attribute")?;
    match dtype_of(&kind) {
        Ok(DType::Str) if single != 0 => text(file, api, attribute),
        Ok(DType::Str) => texts(file, api, attribute, count),
        Ok(dtype) => numbers(file, api, attribute, dtype, count.max(1)),
        Err(why) => Ok(AttrValue::Other(why)),
    }
}

fn text(file: &File, api: &Api, attribute: Handle) -> Result<AttrValue> {
    let Some(get) = api.attribute_string_data else { return Ok(not_handed_out()) };
    // SAFETY: the handle is one of this file; the text is as long as was told.
    file.text(|text, len| unsafe { get(attribute.0, text, len) }).map(AttrValue::Text)
}

fn texts(file: &File, api: &Api, attribute: Handle, count: usize) -> Result<AttrValue> {
    let Some(get) = api.attribute_string_data_array else { return Ok(not_handed_out()) };
    let too_long = || file.failed("asked for an attribute: it is too long");
    if count > MOST {
        return Err(too_long());
    }
    let mut lens = vec![0_usize; count];
    // SAFETY: there are as many lengths as texts.
    file.check(unsafe { get(attribute.0, null_mut(), lens.as_mut_ptr()) }, "asked for an attribute")?;
    if lens.iter().fold(0_usize, |all, len| all.saturating_add(*len)) > MOST {
        return Err(too_long());
    }
    let mut texts: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; len + 1]).collect();
    let mut places: Vec<*mut c_char> = texts.iter_mut().map(|text| text.as_mut_ptr().cast()).collect();
    // SAFETY: each place has room for its text and a zero.
    let told = unsafe { get(attribute.0, places.as_mut_ptr(), lens.as_mut_ptr()) };
    file.check(told, "asked for an attribute")?;
    let one = |mut text: Vec<u8>| {
        text.pop();
        String::from_utf8(text).map_err(|_| file.failed("asked for a text: it is not UTF-8"))
    };
    Ok(AttrValue::Texts(texts.into_iter().map(one).collect::<Result<_>>()?))
}

fn numbers(file: &File, api: &Api, attribute: Handle, dtype: DType, count: usize) -> Result<AttrValue> {
    let bytes = count.checked_mul(dtype.size()).filter(|&n| n <= MOST);
    let bytes = bytes.ok_or_else(|| file.failed("asked for an attribute: it is too long"))?;
    let (mut data, mut told) = (vec![0_u8; bytes], count);
    // SAFETY: `data` has room for all elements, of the size that their type has there, too.
    let done = unsafe { (api.attribute_data)(data.as_mut_ptr().cast(), &raw mut told, attribute.0) };
    file.check(done, "asked for an attribute")?;
    let size = dtype.size();
    let items = data.chunks_exact(size);
    if dtype.is_float() {
        let float = |b: &[u8]| match dtype {
            DType::F32 => f64::from(f32::from_ne_bytes(b.try_into().unwrap_or_default())),
            _ => f64::from_ne_bytes(b.try_into().unwrap_or_default()),
        };
        return Ok(AttrValue::Floats(dtype, items.map(float).collect()));
    }
    Ok(AttrValue::Ints(dtype, items.map(|b| integer(dtype, b)).collect()))
}

/// An integer of native byte order.
pub fn integer(dtype: DType, bytes: &[u8]) -> i128 {
    let mut wide = [0; 8];
    wide[..dtype.size().min(8)].copy_from_slice(&bytes[..dtype.size().min(8)]);
    let raw =
        u64::from_le_bytes(if cfg!(target_endian = "big") { reversed(wide, dtype.size()) } else { wide });
    match dtype {
        DType::I8 => i128::from(raw as i8),
        DType::I16 => i128::from(raw as i16),
        DType::I32 => i128::from(raw as i32),
        DType::I64 => i128::from(raw as i64),
        _ => i128::from(raw),
    }
}

fn reversed(mut wide: [u8; 8], size: usize) -> [u8; 8] {
    wide[..size].reverse();
    wide
}

fn not_handed_out() -> AttrValue {
    AttrValue::Other("a text, which this version of ADIOS2 does not hand out".into())
}
