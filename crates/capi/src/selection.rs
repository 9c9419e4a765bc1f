//! Selections: the positions of a query's hits, and their set algebra.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, OnceLock};

use sieva::{CollectionSelection, Error, ErrorKind, Query, QueryOptions, Result, Selection};

use crate::asked::{Asked, Bound};
use crate::given::{self, Out, check_room};
use crate::query::QueryHandle;
use crate::read::Reader;
use crate::selection_objects::Objects;
use crate::status::{guarded, invalid};

/// `sieva_selection`.
pub struct SelectionHandle {
    /// Whose rows the positions are of.
    pub asked: Asked,
    /// What values are read with.
    pub options: QueryOptions,
    hits: Hits,
    /// What reads the array that was read last: batches that follow each other share its decoded chunks.
    pub reader: Mutex<Option<(String, Reader)>>,
    /// The objects of a collection in C's form.
    pub objects: OnceLock<Objects>,
}

/// The hits.
#[derive(Clone)]
pub enum Hits {
    /// Positions of the rows of a query of a file.
    File(Arc<Query>, Arc<Selection>),
    /// In the objects of a collection.
    Collection(CollectionSelection),
}

impl SelectionHandle {
    /// Hits of what was asked.
    pub fn of(asked: Asked, options: QueryOptions, hits: Hits) -> Box<Self> {
        let (reader, objects) = (Mutex::default(), OnceLock::new());
        Box::new(Self { asked, options, hits, reader, objects })
    }

    /// The hits of a query.
    ///
    /// # Errors
    /// As `sieva_query_selection()`.
    pub fn found(asked: Asked, query: Bound, options: QueryOptions) -> Result<Box<Self>> {
        let hits = match query {
            Bound::File(query) => {
                let found = query.selection()?;
                Hits::File(query, found)
            }
            Bound::Collection(query) => Hits::Collection(query.selection()?),
        };
        Ok(Self::of(asked, options, hits))
    }

    /// Other hits of the same rows.
    pub fn with(&self, hits: Hits) -> Box<Self> {
        Self::of(self.asked.clone(), self.options.clone(), hits)
    }

    /// Another handle of the same hits.
    pub fn same(&self) -> Box<Self> {
        self.with(self.hits.clone())
    }

    /// The hits.
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match &self.hits {
            Hits::File(_, selection) => selection.len(),
            Hits::Collection(selection) => selection.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The query whose rows they are positions of, and the positions.
    ///
    /// # Errors
    /// `unsupported` of a collection.
    pub fn file(&self) -> Result<(&Arc<Query>, &Arc<Selection>)> {
        match &self.hits {
            Hits::File(query, selection) => Ok((query, selection)),
            Hits::Collection(_) => {
                let message = "each object of a collection has rows of its own: there is no shape of all";
                Err(Error::new(ErrorKind::Unsupported, message)
                    .hint("sieva_selection_of_object() has the hits in one of them"))
            }
        }
    }

    /// How many of the hits from number `first` on there are, at most `capacity`.
    ///
    /// # Errors
    /// `invalid-value` where there are fewer than `first`.
    pub fn range(&self, first: u64, capacity: u64) -> Result<u64> {
        let all = self.len();
        let left =
            all.checked_sub(first).ok_or_else(|| invalid(format!("no hit {first}: there are {all}")))?;
        Ok(left.min(capacity))
    }
}

/// `sieva_query_selection`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_query_selection(
    query: *const QueryHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(selection, "selection")?;
        // SAFETY: the promises of sieva.h.
        let query = unsafe { given::handle(query, "query") }?;
        let found = SelectionHandle::found(query.asked.clone(), query.bound()?, query.options())?;
        // SAFETY: as above.
        unsafe { out.set(found) };
        Ok(())
    })
}

/// `sieva_selection_nhits`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_nhits(selection: *const SelectionHandle, nhits: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(nhits, "nhits")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(selection, "selection")?.len()) };
        Ok(())
    })
}

/// `sieva_selection_shape`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_shape(
    selection: *const SelectionHandle,
    rank: *mut u32,
    shape: *mut u64,
    capacity: u32,
) -> i32 {
    guarded(|| {
        let out = Out::new(rank, "rank")?;
        // SAFETY: the promises of sieva.h.
        let own = unsafe { given::handle(selection, "selection") }?.file()?.1.shape();
        // SAFETY: as above.
        unsafe {
            out.set(own.len() as u32);
            if shape.is_null() { Ok(()) } else { given::copy_out(own, shape, capacity.into(), "shape") }
        }
    })
}

/// `sieva_selection_dimension`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_dimension(
    selection: *const SelectionHandle,
    axis: u32,
    name: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let dims = unsafe { given::handle(selection, "selection") }?.file()?.1.dims();
        let own = dims
            .get(axis as usize)
            .ok_or_else(|| invalid(format!("no axis {axis}: the selection has {}, from 0 on", dims.len())))?;
        // SAFETY: as above.
        unsafe { given::put_text(own, name, capacity, needed) }
    })
}

/// `sieva_selection_positions`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_positions(
    selection: *const SelectionHandle,
    first: u64,
    capacity: u64,
    positions: *mut u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let own = unsafe { given::handle(selection, "selection") }?;
        let n = own.range(first, capacity)?;
        check_room(n, capacity, positions.is_null(), "positions")?;
        let put = |(i, position): (usize, u64)| {
            // SAFETY: there is room for `capacity`, by the caller's promise.
            unsafe { positions.add(i).write_unaligned(position) }
        };
        match own.hits() {
            Hits::File(_, own) => own.iter_from(first).take(n as usize).enumerate().for_each(put),
            Hits::Collection(own) => own.positions(first).take(n as usize).enumerate().for_each(put),
        }
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// `sieva_selection_coords`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_coords(
    selection: *const SelectionHandle,
    first: u64,
    capacity: u64,
    coords: *mut u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let selection = unsafe { given::handle(selection, "selection") }?;
        let own = selection.file()?.1;
        let (n, shape) = (selection.range(first, capacity)?, own.shape());
        check_room(n, capacity, coords.is_null(), "coords")?;
        for (i, position) in own.iter_from(first).take(n as usize).enumerate() {
            let mut rest = position;
            for d in (0..shape.len()).rev() {
                // SAFETY: there is room for `capacity` times the rank, by the caller's promise.
                unsafe { coords.add(i * shape.len() + d).write_unaligned(rest % shape[d]) };
                rest /= shape[d];
            }
        }
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// `sieva_selection_and`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_and(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { combine(a, b, selection, Selection::intersection) })
}

/// `sieva_selection_or`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_or(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { combine(a, b, selection, Selection::union) })
}

/// `sieva_selection_minus`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_minus(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { combine(a, b, selection, Selection::difference) })
}

unsafe fn combine(
    a: *const SelectionHandle,
    b: *const SelectionHandle,
    selection: *mut *mut SelectionHandle,
    with: fn(&Selection, &Selection) -> Result<Selection>,
) -> Result<()> {
    let out = Out::handle(selection, "selection")?;
    // SAFETY: the caller's promises.
    let (a, b) = unsafe { (given::handle(a, "a")?, given::handle(b, "b")?) };
    let ((query, own), (_, other)) = (a.file()?, b.file()?);
    let both = a.with(Hits::File(Arc::clone(query), Arc::new(with(own, other)?)));
    // SAFETY: as above.
    unsafe { out.set(both) };
    Ok(())
}

/// `sieva_selection_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_free(selection: *mut SelectionHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(selection) }
}
