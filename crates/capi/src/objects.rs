//! Objects that are found by their attributes and tags.

use std::collections::HashMap;
use std::ffi::{CString, c_char};

use sieva::Result;
use sieva::catalog::{Filter, Find, ObjectKind, ObjectRef, parse_filter};

use crate::catalog::CatalogHandle;
use crate::given::{self, Out};
use crate::status::{guarded, invalid, text};

/// Kinds by their numbers (`sieva_kind`); both are none of them.
pub const KINDS: [(ObjectKind, i32); 2] = [(ObjectKind::Array, 1), (ObjectKind::Group, 2)];
/// `SIEVA_OBJECTS`
pub const ANY: i32 = 3;

/// `sieva_object`
#[repr(C)]
pub struct Object {
    /// Location of its source.
    pub source: *const c_char,
    /// Its path there.
    pub path: *const c_char,
    /// `sieva_kind`.
    pub kind: i32,
    /// 0.
    pub reserved: i32,
}

/// Objects in C's form: each source is named once.
#[derive(Default)]
pub struct Listed {
    sources: Vec<CString>,
    objects: Vec<(usize, CString, i32)>,
}

impl Listed {
    /// These, as source, path and number of the kind.
    pub fn of<'a>(objects: impl Iterator<Item = (&'a str, &'a str, i32)>) -> Self {
        let (mut listed, mut numbers) = (Self::default(), HashMap::new());
        for (source, path, kind) in objects {
            let next = listed.sources.len();
            let number = *numbers.entry(source).or_insert(next);
            if number == next {
                listed.sources.push(text(source));
            }
            listed.objects.push((number, text(path), kind));
        }
        listed
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Number `index`, valid as long as this is.
    ///
    /// # Errors
    /// `invalid-value` where there is none.
    pub fn get(&self, index: u64) -> Result<Object> {
        let found = usize::try_from(index).ok().and_then(|i| self.objects.get(i));
        let (source, path, kind) = found
            .ok_or_else(|| invalid(format!("no object {index}: there are {}, from 0 on", self.len())))?;
        let source = self.sources[*source].as_ptr();
        Ok(Object { source, path: path.as_ptr(), kind: *kind, reserved: 0 })
    }
}

/// `sieva_objects`.
pub struct ObjectsHandle(Listed);

/// The question of a caller.
///
/// # Safety
/// As the header says of the arguments.
unsafe fn question(condition: *const c_char, kinds: i32, collection: *const c_char) -> Result<Find> {
    // SAFETY: the caller's promise.
    let (condition, collection) = unsafe {
        (given::optional_text(condition, "condition")?, given::optional_text(collection, "collection")?)
    };
    let filter = match condition.map(str::trim) {
        None | Some("") => Filter::All,
        Some(text) => parse_filter(text)?,
    };
    let kind = KINDS.iter().find(|k| k.1 == kinds).map(|k| k.0);
    if kind.is_none() && kinds != ANY {
        return Err(invalid(format!(
            "{kinds} is no kind of object: SIEVA_ARRAYS (1), SIEVA_GROUPS (2), SIEVA_OBJECTS (3)"
        )));
    }
    let find = Find::new(filter).kind(kind);
    Ok(match collection {
        None => find,
        Some(name) => find.collection(name),
    })
}

/// `sieva_tag_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_query(
    catalog: *const CatalogHandle,
    condition: *const c_char,
    kinds: i32,
    collection: *const c_char,
    limit: u64,
    objects: *mut *mut ObjectsHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(objects, "objects")?;
        // SAFETY: the promises of sieva.h.
        let (catalog, find) =
            unsafe { (given::handle(catalog, "catalog")?, question(condition, kinds, collection)?) };
        let most = usize::try_from(limit).ok().filter(|&n| n > 0).unwrap_or(usize::MAX);
        let found: Vec<ObjectRef> = catalog.0.find(&find.limit(most))?;
        let number = |kind| KINDS.iter().find(|k| k.0 == kind).map_or(0, |k| k.1);
        let each = found.iter().map(|o| (o.location.as_str(), o.path.as_str(), number(o.kind)));
        // SAFETY: as above.
        unsafe { out.set(Box::new(ObjectsHandle(Listed::of(each)))) };
        Ok(())
    })
}

/// `sieva_tag_nhits`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tag_nhits(
    catalog: *const CatalogHandle,
    condition: *const c_char,
    kinds: i32,
    collection: *const c_char,
    nhits: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(nhits, "nhits")?;
        // SAFETY: the promises of sieva.h.
        let (catalog, find) =
            unsafe { (given::handle(catalog, "catalog")?, question(condition, kinds, collection)?) };
        // SAFETY: as above.
        unsafe { out.set(catalog.0.count(&find)?) };
        Ok(())
    })
}

/// `sieva_objects_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_objects_count(objects: *const ObjectsHandle, count: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(objects, "objects")?.0.len()) };
        Ok(())
    })
}

/// `sieva_objects_describe`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_objects_describe(
    objects: *const ObjectsHandle,
    index: u64,
    object: *mut Object,
) -> i32 {
    guarded(|| {
        let out = Out::new(object, "object")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(objects, "objects")?.0.get(index)?) };
        Ok(())
    })
}

/// `sieva_objects_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_objects_free(objects: *mut ObjectsHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(objects) }
}
