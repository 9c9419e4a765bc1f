//! The objects of a collection that a selection has hits in.

use std::sync::Arc;

use sieva::catalog::ObjectKind;
use sieva::{CollectionSelection, Error, ErrorKind, Result};

use crate::asked::Asked;
use crate::given::{self, Out};
use crate::objects::{KINDS, Listed, Object};
use crate::selection::{Hits, SelectionHandle};
use crate::source::Opened;
use crate::status::guarded;

/// The objects in C's form.
pub struct Objects {
    listed: Listed,
    /// The number of each among all of the query, and of its hits.
    numbers: Vec<(u64, u64)>,
}

impl Objects {
    fn of(selection: &CollectionSelection) -> Self {
        let group = KINDS.iter().find(|k| k.0 == ObjectKind::Group).map_or(0, |k| k.1);
        let listed = Listed::of(selection.objects().map(|o| (o.source, o.path, group)));
        let numbers = selection.objects().map(|o| (o.number, o.found.len())).collect();
        Self { listed, numbers }
    }
}

impl SelectionHandle {
    /// The hits in a collection.
    ///
    /// # Errors
    /// `unsupported` of a file.
    fn of_collection(&self) -> Result<&CollectionSelection> {
        match self.hits() {
            Hits::Collection(selection) => Ok(selection),
            Hits::File(..) => {
                let message = "the selection is of a file, where one of a collection is expected";
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

/// `sieva_selection_objects`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_objects(
    selection: *const SelectionHandle,
    objects: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(objects, "objects")?;
        // SAFETY: the promises of sieva.h.
        let n = unsafe { given::handle(selection, "selection") }?.of_collection()?.object_count();
        // SAFETY: as above.
        unsafe { out.set(n as u64) };
        Ok(())
    })
}

/// `sieva_selection_object`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_object(
    selection: *const SelectionHandle,
    index: u64,
    object: *mut Object,
    number: *mut u64,
    nhits: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(object, "object")?;
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(selection, "selection") }?;
        let selection = handle.of_collection()?;
        let known = handle.objects.get_or_init(|| Objects::of(selection));
        let found = known.listed.get(index)?;
        let own = known.numbers[index as usize];
        // SAFETY: as above.
        unsafe {
            out.set(found);
            for (place, value) in [(number, own.0), (nhits, own.1)] {
                if !place.is_null() {
                    place.write_unaligned(value);
                }
            }
        }
        Ok(())
    })
}

/// `sieva_selection_of_object`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_of_object(
    selection: *const SelectionHandle,
    index: u64,
    object: *mut *mut SelectionHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(object, "object")?;
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(selection, "selection") }?;
        let number = usize::try_from(index).unwrap_or(usize::MAX);
        let (query, group, found) = handle.of_collection()?.object(number)?;
        let opened = Opened::new(query.source().clone(), handle.options.clone(), group);
        let hits = Hits::File(Arc::new(query), found);
        // SAFETY: as above.
        unsafe { out.set(SelectionHandle::of(Asked::File(opened), handle.options.clone(), hits)) };
        Ok(())
    })
}
