//! Tags of single objects: set, read, removed. What is found by them is in `objects.rs`.

use std::ffi::{c_char, c_void};

use sieva::ast::Literal;
use sieva::catalog::{self, ObjectInfo, Origin, Value};
use sieva::{Catalog, Column, DType, Data, Error, ErrorKind, Result};

use crate::catalog::CatalogHandle;
use crate::given::{self, Out};
use crate::status::{guarded, invalid};
use crate::target::Target;
use crate::types::{dtype_of, literal, number_of};

/// An object as a caller names it.
struct Place<'a> {
    catalog: &'a Catalog,
    /// Its source, as the catalog calls it.
    location: String,
    /// Its path there, empty for the source itself.
    path: &'a str,
}

impl<'a> Place<'a> {
    /// The object at `path` (NULL: the source itself) of `source`.
    ///
    /// # Safety
    /// As the header says of the arguments.
    unsafe fn of(catalog: *const CatalogHandle, source: *const c_char, path: *const c_char) -> Result<Self> {
        // SAFETY: the caller's promise.
        let (catalog, source, path) = unsafe {
            let path = given::optional_text(path, "path")?.unwrap_or_default();
            (given::handle(catalog, "catalog")?, given::text(source, "source")?, path)
        };
        let location = match catalog::location(source) {
            // Of a directory that is gone: as it was registered.
            Err(e) if e.kind() == ErrorKind::FileNotFound => {
                let absolute = std::path::absolute(source);
                absolute.map_err(|e| Error::io(format!("cannot find '{source}'"), &e))?.display().to_string()
            }
            found => found?,
        };
        Ok(Self { catalog: &catalog.0, location, path: path.trim_matches('/') })
    }

    /// What is known of it.
    fn info(&self) -> Result<ObjectInfo> {
        if let Some(info) = self.catalog.object(&self.location, self.path)? {
            return Ok(info);
        }
        let (location, path) = (&self.location, self.path);
        Err(match self.catalog.known(&[location], None)?.is_empty() {
            true => Error::new(ErrorKind::FileNotFound, format!("'{location}' is not in the catalog"))
                .hint("register it with sieva_catalog_add()"),
            false => Error::new(ErrorKind::UnknownArray, format!("'{location}' has no object '{path}'"))
                .hint("sieva_tag_query() without a condition lists all"),
        })
    }

    /// The value that holds for it: its own tag, else its attribute, else that of the nearest group above.
    fn value(&self, key: &str) -> Result<Value> {
        let mut info = self.info()?;
        let mut path = self.path;
        loop {
            // On one object tags stand last, and hold.
            if let Some((_, value, _)) = info.attributes.iter().rev().find(|(k, _, _)| k == key) {
                return Ok(value.clone());
            }
            if path.is_empty() {
                let message = format!("'{}' of '{}' has no tag '{key}'", self.path, self.location);
                return Err(Error::new(ErrorKind::UnknownAttribute, message)
                    .hint("set it with sieva_tag_set(); keys are told apart by case"));
            }
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
            info = Place { path, location: self.location.clone(), ..*self }.info()?;
        }
    }

    /// Its own tags.
    fn keys(&self) -> Result<Vec<String>> {
        let attributes = self.info()?.attributes.into_iter();
        Ok(attributes.filter(|(_, _, origin)| *origin == Origin::Tag).map(|(key, _, _)| key).collect())
    }
}

/// A constant as the catalog keeps it.
fn value_of(constant: Literal) -> Result<Value> {
    Ok(match constant {
        Literal::Bool(b) => Value::Bool(b),
        Literal::Float(f) => Value::Float(f),
        Literal::Str(s) => Value::Text(s),
        Literal::Int(i) => i64::try_from(i)
            .map(Value::Int)
            .or_else(|_| u64::try_from(i).map(Value::UInt))
            .map_err(|_| invalid(format!("{i} is beyond 64 bits")))?,
        other => return Err(invalid(format!("{other:?} is no value of a tag"))),
    })
}

/// `sieva_tag_set`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_set(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    key: *const c_char,
    r#type: i32,
    value: *const c_void,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (place, key) = unsafe { (Place::of(catalog, source, path)?, given::text(key, "key")?) };
        // SAFETY: as above.
        let value = value_of(unsafe { literal(dtype_of(r#type)?, value) }?)?;
        place.catalog.tag(&place.location, place.path, key, value)
    })
}

/// `sieva_tag_remove`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_remove(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    key: *const c_char,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (place, key) = unsafe { (Place::of(catalog, source, path)?, given::text(key, "key")?) };
        place.catalog.untag(&place.location, place.path, key).map(|_| ())
    })
}

/// `sieva_tag_type`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_type(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    key: *const c_char,
    r#type: *mut i32,
) -> i32 {
    guarded(|| {
        let out = Out::new(r#type, "type")?;
        // SAFETY: the promises of sieva.h.
        let value = unsafe { Place::of(catalog, source, path)?.value(given::text(key, "key")?) }?;
        let dtype = match value {
            Value::Int(_) => DType::I64,
            Value::UInt(_) => DType::U64,
            Value::Float(_) => DType::F64,
            Value::Text(_) => DType::Str,
            Value::Bool(_) => DType::Bool,
        };
        // SAFETY: as above.
        unsafe { out.set(number_of(dtype)) };
        Ok(())
    })
}

/// `sieva_tag_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_read(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    key: *const c_char,
    r#type: i32,
    value: *mut c_void,
) -> i32 {
    guarded(|| {
        let mut target = Target::new(r#type, value, 1, std::ptr::null_mut())?;
        target.check_room(1)?;
        // SAFETY: the promises of sieva.h.
        let found = unsafe { Place::of(catalog, source, path)?.value(given::text(key, "key")?) }?;
        let data = match found {
            Value::Int(i) => Data::I64(vec![i]),
            Value::UInt(u) => Data::U64(vec![u]),
            Value::Float(f) => Data::F64(vec![f]),
            Value::Bool(b) => Data::Bool(vec![b]),
            Value::Text(_) => {
                return Err(Error::new(ErrorKind::TypeMismatch, "the tag is text")
                    .hint("read it with sieva_tag_text()"));
            }
        };
        // SAFETY: as above.
        unsafe { target.put_numbers(&Column { data, valid: None }) }
    })
}

/// `sieva_tag_text`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_text(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    key: *const c_char,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        match unsafe { Place::of(catalog, source, path)?.value(given::text(key, "key")?) }? {
            // SAFETY: as above.
            Value::Text(found) => unsafe { given::put_text(&found, text, capacity, needed) },
            _ => Err(Error::new(ErrorKind::TypeMismatch, "the tag is a number")
                .hint("read it with sieva_tag_read()")),
        }
    })
}

/// `sieva_tag_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_count(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(Place::of(catalog, source, path)?.keys()?.len() as u64) };
        Ok(())
    })
}

/// `sieva_tag_key`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_key(
    catalog: *const CatalogHandle,
    source: *const c_char,
    path: *const c_char,
    index: u64,
    key: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let keys = unsafe { Place::of(catalog, source, path) }?.keys()?;
        let found = usize::try_from(index).ok().and_then(|i| keys.get(i));
        let found =
            found.ok_or_else(|| invalid(format!("no tag {index}: there are {}, from 0 on", keys.len())))?;
        // SAFETY: as above.
        unsafe { given::put_text(found, key, capacity, needed) }
    })
}
