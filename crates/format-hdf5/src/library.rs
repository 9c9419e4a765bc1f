//! Data through libhdf5, for what our own reader cannot decode.

use std::alloc;
use std::ffi::c_void;

use hdf5_metno_sys::h5d::H5Dread;
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_XFER, H5Pset_vlen_mem_manager};
use hdf5_metno_sys::h5s::{H5S_SELECT_SET, H5Screate_simple, H5Sget_simple_extent_type, H5Sselect_hyperslab};
use hdf5_metno_sys::h5s::{H5S_SIMPLE, H5Sselect_all};
use sieva_types::{Bx, Result, Texts};

use crate::dataset::{self, Dataset, Storage};
use crate::descriptors::Descriptors;
use crate::ffi::{self, Handle, call};
use crate::file;
use crate::leaves::Leaf;
use crate::memory::{self, MemoryType};
use crate::slabs::{BUFFER_LIMIT, slabs};
use crate::stored::check_box;
use crate::types::Kind;
use crate::walk::Tree;

/// Most variable-length texts fetched in one call.
const TEXTS_PER_CALL: u64 = 8192;
/// Most bytes of texts fetched in one call.
const TEXT_BYTES_LIMIT: usize = 512 << 20;

const WHAT: &str = "libhdf5 cannot read it";

/// A dataset open for reading one of its leaves.
struct Reader {
    dataset: Handle,
    stored: Handle,
    memory: MemoryType,
    rank: usize,
}

impl Reader {
    fn open(tree: &Tree, d: &Dataset, leaf: &Leaf) -> Result<Self> {
        let source = &tree.files[d.found.file];
        let dataset = match d.storage {
            Storage::External => source.dataset_beside(d.found.from, &d.found.raw_path)?,
            _ => source.object(d.found.token)?,
        };
        let stored = dataset::stored_type(&dataset)?;
        let memory = memory::of(&stored, &leaf.steps, &leaf.element)?;
        Ok(Self { dataset, stored, memory, rank: d.shape.len() })
    }

    /// Reads the items of `bx` (of the dataset's rank) into `out`.
    fn read(&self, bx: &Bx, transfer: &Handle, out: *mut c_void) -> Result<()> {
        self.read_as(&self.memory, bx, transfer, out)
    }

    /// The same in another memory type.
    fn read_as(&self, memory: &MemoryType, bx: &Bx, transfer: &Handle, out: *mut c_void) -> Result<()> {
        let (in_file, in_memory) = self.select(bx)?;
        call(WHAT, || {
            // SAFETY: the callers hold the lock, all handles are open, and `out` has room for all items of the
            // box in the memory type.
            unsafe {
                H5Dread(
                    self.dataset.id(),
                    memory.handle.id(),
                    in_memory.id(),
                    in_file.id(),
                    transfer.id(),
                    out,
                )
            }
        })
        .map(|_| ())
    }

    /// Reads the elements of `bx` (of the leaf's rank), in the memory type's form.
    fn read_elements(&self, bx: &Bx, transfer: &Handle, out: &mut [u8]) -> Result<()> {
        let (rank, memory) = (self.rank, &self.memory);
        if out.is_empty() {
            return Ok(());
        }
        let outer = Bx::new(bx.start[..rank].to_vec(), bx.shape[..rank].to_vec());
        let inner = Bx::new(bx.start[rank..].to_vec(), bx.shape[rank..].to_vec());
        if inner.rank() == 0 && memory.size == memory.element {
            return self.read(&outer, transfer, out.as_mut_ptr().cast());
        }
        let per_item = memory.element * inner.len() as usize;
        let mut filled = 0;
        for slab in slabs(&outer, (BUFFER_LIMIT / memory.size.max(1) as u64).max(1)) {
            let mut buffer = vec![0_u8; slab.len() as usize * memory.size];
            self.read(&slab, transfer, buffer.as_mut_ptr().cast())?;
            for item in buffer.chunks_exact(memory.size) {
                gather(item, memory, &inner, &mut out[filled..filled + per_item]);
                filled += per_item;
            }
        }
        Ok(())
    }

    fn select(&self, bx: &Bx) -> Result<(Handle, Handle)> {
        // SAFETY: called under the lock with an open dataset.
        let in_file = ffi::open(WHAT, || unsafe { hdf5_metno_sys::h5d::H5Dget_space(self.dataset.id()) })?;
        let count = [bx.len()];
        // SAFETY: as above; one dimension and one length.
        let in_memory = ffi::open(WHAT, || unsafe { H5Screate_simple(1, count.as_ptr(), std::ptr::null()) })?;
        // SAFETY: as above.
        let is_simple = unsafe { H5Sget_simple_extent_type(in_file.id()) } == H5S_SIMPLE;
        call(WHAT, || {
            // SAFETY: as above; start and count hold one entry per dimension of the dataset.
            unsafe {
                if is_simple && self.rank > 0 {
                    let (start, shape) = (bx.start.as_ptr(), bx.shape.as_ptr());
                    H5Sselect_hyperslab(
                        in_file.id(),
                        H5S_SELECT_SET,
                        start,
                        std::ptr::null(),
                        shape,
                        std::ptr::null(),
                    )
                } else {
                    H5Sselect_all(in_file.id())
                }
            }
        })?;
        Ok((in_file, in_memory))
    }
}

/// Fills `out` with box `bx` of a leaf (the dataset's dimensions, then those within an item), native byte order.
pub(crate) fn read(tree: &Tree, d: &Dataset, leaf: &Leaf, bx: &Bx, out: &mut [u8]) -> Result<()> {
    let _guard = ffi::lock();
    let reader = Reader::open(tree, d, leaf)?;
    check_box(bx, &extent(d, leaf), leaf.element_size(), out.len())?;
    let transfer = file::property_list(*H5P_CLS_DATASET_XFER)?;
    match &leaf.element.kind {
        Kind::Odd(number) => {
            number.convert_box(bx, out, |slab, items| reader.read_elements(slab, &transfer, items))
        }
        _ => reader.read_elements(bx, &transfer, out),
    }
}

/// The dataset's shape, then the dimensions within an item.
fn extent(d: &Dataset, leaf: &Leaf) -> Vec<u64> {
    d.shape.iter().copied().chain(leaf.inner.iter().map(|&(len, _)| len)).collect()
}

/// The texts of box `bx` of a leaf whose elements are variable-length texts.
pub(crate) fn read_texts(tree: &Tree, d: &Dataset, leaf: &Leaf, bx: &Bx) -> Result<Texts> {
    let _guard = ffi::lock();
    let reader = Reader::open(tree, d, leaf)?;
    let rank = reader.rank;
    let memory = &reader.memory;
    check_box(bx, &extent(d, leaf), 0, 0)?;
    let outer = Bx::new(bx.start[..rank].to_vec(), bx.shape[..rank].to_vec());
    let inner = Bx::new(bx.start[rank..].to_vec(), bx.shape[rank..].to_vec());
    let per_item = inner.len() as usize;
    let mut out = Texts::new();
    if bx.is_empty() {
        return Ok(out);
    }
    let items = Descriptors::of(&reader.dataset, &reader.stored, &leaf.steps, 1)?;
    let mut pointers = vec![0_u8; per_item * memory.element];
    let mut described = vec![0_u8; per_item * items.memory.element];
    let per_call = (TEXTS_PER_CALL / per_item as u64).max(1);
    for slab in slabs(&outer, per_call.min((BUFFER_LIMIT / memory.size.max(1) as u64).max(1))) {
        let mut arena = Arena::default();
        let transfer = arena.transfer()?;
        let mut buffer = vec![0_u8; slab.len() as usize * items.memory.size];
        reader.read_as(&items.memory, &slab, &transfer, buffer.as_mut_ptr().cast())?;
        for item in buffer.chunks_exact(items.memory.size) {
            gather(item, &items.memory, &inner, &mut described);
            items.check(&described)?;
        }
        let mut buffer = vec![0_u8; slab.len() as usize * memory.size];
        reader.read(&slab, &transfer, buffer.as_mut_ptr().cast())?;
        for item in buffer.chunks_exact(memory.size) {
            gather(item, memory, &inner, &mut pointers);
            for pointer in pointers.chunks_exact(memory.element) {
                let mut raw = [0; size_of::<usize>()];
                raw.copy_from_slice(&pointer[..size_of::<usize>()]);
                let text = std::ptr::with_exposed_provenance(usize::from_ne_bytes(raw));
                // SAFETY: libhdf5 left null or a C string in the arena, which lives until the end of the loop.
                out.push_bytes(&unsafe { ffi::bytes_of(text) });
            }
        }
    }
    Ok(out)
}

/// Copies the elements of `inner` out of one item, in C order.
fn gather(item: &[u8], memory: &MemoryType, inner: &Bx, out: &mut [u8]) {
    let mut index = vec![0_u64; inner.rank()];
    for slot in out.chunks_exact_mut(memory.element) {
        let steps = index.iter().zip(&inner.start).zip(&memory.strides);
        let at = memory.offset + steps.map(|((&i, &s), &stride)| (i + s) as usize * stride).sum::<usize>();
        slot.copy_from_slice(&item[at..at + memory.element]);
        for k in (0..index.len()).rev() {
            index[k] += 1;
            if index[k] < inner.shape[k] {
                break;
            }
            index[k] = 0;
        }
    }
}

/// Memory for variable-length data of one read: freed as a whole, also after an error, and limited, since many
/// elements of a small file can share one long text.
#[derive(Default)]
struct Arena {
    blocks: Vec<(*mut u8, alloc::Layout)>,
    used: usize,
}

impl Arena {
    /// A transfer list that takes memory from here; the arena must not move while it is used.
    fn transfer(&mut self) -> Result<Handle> {
        let list = file::property_list(*H5P_CLS_DATASET_XFER)?;
        let data = std::ptr::from_mut(self).cast::<c_void>();
        call(WHAT, || {
            // SAFETY: called under the lock; the functions match what the library calls, the data outlive the list.
            unsafe { H5Pset_vlen_mem_manager(list.id(), Some(take), data, Some(give_back), data) }
        })?;
        Ok(list)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (block, layout) in self.blocks.drain(..) {
            // SAFETY: each block was allocated with this layout and is freed once.
            unsafe { alloc::dealloc(block, layout) };
        }
    }
}

unsafe extern "C" fn take(size: usize, arena: *mut c_void) -> *mut c_void {
    // SAFETY: the data given with this function are an arena that lives through the read.
    let arena = unsafe { &mut *arena.cast::<Arena>() };
    let layout = alloc::Layout::from_size_align(size.max(1), 16);
    let (Ok(layout), Some(used)) = (layout, arena.used.checked_add(size)) else {
        return std::ptr::null_mut();
    };
    if used > TEXT_BYTES_LIMIT {
        return std::ptr::null_mut();
    }
    // SAFETY: the layout's size is not zero.
    let block = unsafe { alloc::alloc(layout) };
    if !block.is_null() {
        arena.used = used;
        arena.blocks.push((block, layout));
    }
    block.cast()
}

/// Nothing: the arena frees all at once.
unsafe extern "C" fn give_back(_block: *mut c_void, _arena: *mut c_void) {}
