//! Batches against reading each request by itself and against arithmetic: values, bytes, chunks, faults.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sieva_store::{Counters, MemoryStore, RangedRead};
use sieva_types::{Bx, DType, Endian, Error, ErrorKind, Result, Selection};

use super::{Alone, Ask, Crew, REQUEST, Wanted, read_together};
use crate::decoding::Decoding;
use crate::filters::{Filter, Pipeline};
use crate::layout::{ChunkIndex, ChunkRef, Layout, Parts, Placement, c_strides};
use crate::read::{BlockReader, ChunkCache, Part, Workspace};
use crate::schema::{ArrayInfo, Schema, StorageInfo};
use crate::{ArraySource, LibraryReader, ObjectChunks, PartOpener};

/// Bytes in memory of which some ranges cannot be read, and the ranges that were.
struct Faulty {
    inner: MemoryStore,
    bad: Vec<Range<u64>>,
    read: Mutex<Vec<Range<u64>>>,
}

impl RangedRead for Faulty {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let range = offset..offset + out.len() as u64;
        if self.bad.iter().any(|bad| bad.start < range.end && range.start < bad.end) {
            return Err(Error::new(ErrorKind::Io, format!("no bytes at {offset}")));
        }
        self.read.lock().unwrap().push(range);
        self.inner.read_exact_at(offset, out)
    }
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

/// Arrays with layouts over such bytes.
pub(super) struct Made {
    pub(super) schema: Schema,
    layouts: Vec<Arc<Layout>>,
    pub(super) store: Arc<dyn RangedRead>,
    faulty: Arc<Faulty>,
    /// The files of an array of many.
    files: Vec<Arc<Made>>,
    boxes: Mutex<Vec<Bx>>,
}

impl ArraySource for Made {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        Ok(Arc::clone(&self.layouts[array]))
    }
    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }
    fn object_chunks(&self) -> Option<&dyn ObjectChunks> {
        Some(self)
    }
    fn parts(&self) -> Option<&dyn PartOpener> {
        Some(self)
    }
    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl ObjectChunks for Made {
    fn fetch_chunk(&self, array: usize, number: u64, _: u64, out: &mut Vec<u8>) -> Result<bool> {
        let bytes = self.layouts[array].chunk_bytes;
        out.resize(bytes as usize, 0);
        self.store.read_exact_at(number * bytes, out)?;
        Ok(number % 5 != 3)
    }
}

impl PartOpener for Made {
    fn part(&self, array: usize, piece: usize) -> Result<Part> {
        let source: Arc<dyn ArraySource> = Arc::clone(&self.files[piece]) as _;
        Ok(Part { source, array, unpack: None, file: piece as u32 + 1 })
    }
}

impl LibraryReader for Made {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        self.boxes.lock().unwrap().push(bx.clone());
        let layout = &self.layouts[array];
        let strides = c_strides(&layout.extent, layout.element_size as u64);
        each_position(bx, &mut |i, at| {
            let place: u64 = at.iter().zip(&strides).map(|(a, s)| a * s).sum();
            out[i * layout.element_size..(i + 1) * layout.element_size].fill(place as u8);
        });
        Ok(())
    }
    fn read_library_strings(&self, _: usize, bx: &Bx) -> Result<sieva_types::Texts> {
        Ok(sieva_types::Texts::repeated("text", bx.len() as usize))
    }
}

fn each_position(bx: &Bx, f: &mut dyn FnMut(usize, &[u64])) {
    for i in 0..bx.len() {
        let (mut at, mut rest) = (bx.start.clone(), i);
        for d in (0..bx.rank()).rev() {
            at[d] += rest % bx.shape[d];
            rest /= bx.shape[d];
        }
        f(i as usize, &at);
    }
}

pub(super) fn made(layouts: Vec<(Vec<u64>, Layout)>, bytes: Vec<u8>, bad: Vec<Range<u64>>) -> Arc<Made> {
    let faulty = Arc::new(Faulty { inner: MemoryStore::new("made", bytes), bad, read: Mutex::default() });
    let made = made_of(layouts, Arc::clone(&faulty) as _);
    Arc::new(Made { faulty, ..Arc::into_inner(made).unwrap() })
}

/// The same over a store of another kind.
pub(super) fn made_of(layouts: Vec<(Vec<u64>, Layout)>, store: Arc<dyn RangedRead>) -> Arc<Made> {
    let none = MemoryStore::new("none", Vec::new());
    let faulty = Arc::new(Faulty { inner: none, bad: Vec::new(), read: Mutex::default() });
    let info = |(n, (shape, layout)): (usize, &(Vec<u64>, Layout))| ArrayInfo {
        path: format!("a{n}"),
        dtype: layout.dtype,
        dims: Vec::new(),
        shape: shape.clone(),
        attrs: Vec::new(),
        enum_names: Vec::new(),
        decoding: Decoding::none(layout.dtype),
        storage: StorageInfo::default(),
        coordinates: Vec::new(),
    };
    let schema = Schema { arrays: layouts.iter().enumerate().map(info).collect(), ..Schema::default() };
    let layouts = layouts.into_iter().map(|(_, layout)| Arc::new(layout)).collect();
    Arc::new(Made { schema, layouts, store, faulty, files: Vec::new(), boxes: Mutex::default() })
}

pub(super) fn layout(dtype: DType, extent: &[u64], chunk: &[u64], placement: Placement) -> Layout {
    let size = dtype.size();
    Layout {
        dtype,
        endian: Endian::Big,
        element_size: size,
        extent: extent.to_vec(),
        chunk_shape: chunk.to_vec(),
        strides: c_strides(chunk, size as u64),
        base: 0,
        chunk_bytes: chunk.iter().product::<u64>() * size as u64,
        pipeline: Pipeline::default(),
        placement,
        fill: (1..=size as u8).collect(),
        char_dim: false,
        space_padded: false,
    }
}

pub(super) fn reader(source: &Arc<Made>, array: usize) -> BlockReader {
    BlockReader::new(Arc::clone(source) as _, array, Arc::new(ChunkCache::new(0)), 1 << 30).unwrap()
}

/// Several threads, which take jobs from both ends: the order is about that of the layout, not exactly.
pub(super) struct Several;

impl Crew for Several {
    fn threads(&self) -> usize {
        3
    }
    fn each(&self, jobs: usize, threads: usize, work: &(dyn Fn(usize) + Sync)) {
        let left = Mutex::new((0..jobs).collect::<Vec<_>>());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(job) = { left.lock().unwrap().pop() } {
                        work(job);
                    }
                });
            }
        });
    }
}

pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    fn bx(&mut self, shape: &[u64]) -> Bx {
        let start: Vec<u64> = shape.iter().map(|n| self.below(*n)).collect();
        let shape = shape.iter().zip(&start).map(|(n, s)| self.below(n - s + 1)).collect();
        Bx::new(start, shape)
    }
    fn selection(&mut self, shape: &[u64]) -> Selection {
        let n: u64 = shape.iter().product();
        let one_of = 1 + self.below(6);
        let positions: Vec<u64> = (0..n).filter(|_| self.below(one_of) == 0).collect();
        let dims = (0..shape.len()).map(|d| d.to_string()).collect();
        let mut builder = sieva_types::SelectionBuilder::new(dims, shape.to_vec()).unwrap();
        builder.push_positions(positions).unwrap();
        builder.finish()
    }
}

/// A request: the array, what of it, and what that is.
pub(super) type Drawn = (usize, Wanted<'static>, Vec<u8>);

pub(super) fn boxed(bx: Bx) -> Wanted<'static> {
    Wanted::Box(Cow::Owned(bx))
}

/// Requests of all arrays, and what each gives when it is read by itself: a box by the reader of boxes, a selection cut
/// out of the whole.
pub(super) fn drawn(draw: &mut Draw, source: &Arc<Made>, n: usize) -> Vec<Drawn> {
    let mut ws = Workspace::default();
    let mut all = Vec::new();
    for _ in 0..n {
        let array = draw.below(source.layouts.len() as u64) as usize;
        let (shape, reader) = (source.schema.arrays[array].shape.clone(), reader(source, array));
        let mut out = crate::buffer::Buffer::default();
        if draw.below(3) > 0 {
            let bx = draw.bx(&shape);
            reader.read(&bx, &mut out, &mut ws).unwrap();
            all.push((array, boxed(bx), out.bytes().to_vec()));
            continue;
        }
        let selection = draw.selection(&shape);
        reader.read(&Bx::whole(&shape), &mut out, &mut ws).unwrap();
        let size = reader.element_dtype().size();
        let each = |p: u64| out.bytes()[p as usize * size..(p as usize + 1) * size].to_vec();
        let want = selection.iter().flat_map(each).collect();
        all.push((array, Wanted::Positions(Arc::new(selection)), want));
    }
    all
}

pub(super) fn read(source: &Arc<Made>, wanted: &[Drawn], crew: &dyn Crew) -> Vec<Result<Vec<u8>>> {
    let (readers, never): (Vec<_>, _) =
        ((0..source.layouts.len()).map(|a| reader(source, a)).collect(), AtomicBool::new(false));
    let ask =
        |(array, wanted, _): &Drawn| Ask { reader: &readers[*array], wanted: wanted.clone(), cancel: &never };
    let asks: Vec<Ask<'_>> = wanted.iter().map(ask).collect();
    source.faulty.read.lock().unwrap().clear();
    read_together(&asks, 1 << 20, crew).into_iter().map(|r| r.map(|b| b.bytes().to_vec())).collect()
}

fn no_byte_was_read_twice(source: &Made) {
    let mut read = source.faulty.read.lock().unwrap().clone();
    read.sort_by_key(|range| range.start);
    assert!(read.windows(2).all(|two| two[0].end <= two[1].start), "{read:?}");
}

pub(super) fn varied(draw: &mut Draw) -> Arc<Made> {
    let bytes: Vec<u8> = (0..40_000_u32).map(|i| (i * 31 % 251) as u8).collect();
    let rank = draw.below(4) as usize;
    let extent: Vec<u64> = (0..rank).map(|_| 1 + draw.below(9)).collect();
    let chunk: Vec<u64> = extent.iter().map(|n| 1 + draw.below(*n + 2)).collect();
    let dtype = [DType::I16, DType::F32, DType::F64, DType::F16, DType::U8][draw.below(5) as usize];
    let mut shape = extent.clone();
    if rank > 0 {
        shape[0] += draw.below(3);
    }
    let plain = layout(dtype, &extent, &extent, Placement::Direct { offset: 100 });
    // Members of a compound of 13 bytes, and records.
    let item = |base, strides: Vec<u64>| Layout { base, strides, ..plain.clone() };
    let first = item(1, c_strides(&extent, 13));
    let second = item(4, c_strides(&extent, 13));
    let mut strides = plain.strides.clone();
    if let Some(record) = strides.first_mut() {
        *record += 300;
    }
    let records = item(0, strides);
    let grid = layout(dtype, &extent, &chunk, Placement::Unallocated).grid();
    let chunk_bytes = chunk.iter().product::<u64>() * dtype.size() as u64;
    let stored = |n: u64| {
        (n % 4 != 1).then_some((
            n,
            ChunkRef { offset: 7 + n * (chunk_bytes + 2) - n % 3, size: chunk_bytes, filter_mask: 0 },
        ))
    };
    let index =
        || ChunkIndex::new(grid.iter().product(), (0..grid.iter().product()).filter_map(stored).collect());
    let raw = layout(dtype, &extent, &chunk, Placement::Chunks(index()));
    let shuffled = Pipeline { filters: vec![Filter::Shuffle { element_size: dtype.size() }] };
    let encoded = Layout { pipeline: shuffled, ..raw.clone() };
    let objects = layout(dtype, &extent, &chunk, Placement::Objects);
    let inline = layout(dtype, &extent, &extent, Placement::Inline(bytes[..8000].into()));
    let never = layout(dtype, &extent, &extent, Placement::Unallocated);
    let library = layout(dtype, &extent, &chunk, Placement::Library("numbers".into()));
    let all = [plain, first, second, records, raw, encoded, objects, inline, never, library];
    made(all.map(|layout| (shape.clone(), layout)).into(), bytes, vec![])
}

#[test]
fn batches_give_what_each_request_gives_by_itself() {
    let mut draw = Draw(7);
    for round in 0..120 {
        let source = varied(&mut draw);
        let n = 1 + draw.below(30) as usize;
        let wanted = drawn(&mut draw, &source, n);
        let crew: &dyn Crew = if round % 2 == 0 { &Alone } else { &Several };
        for ((array, what, want), got) in wanted.iter().zip(read(&source, &wanted, crew)) {
            assert_eq!(
                got.unwrap(),
                *want,
                "round {round}, array {array}: {what:?} of {:?}",
                source.layouts[*array]
            );
        }
    }
}

#[test]
fn no_stored_byte_is_read_twice() {
    let mut draw = Draw(11);
    for _ in 0..40 {
        let varied = varied(&mut draw);
        for array in 0..7 {
            let mut own = Draw(draw.below(1 << 30));
            let one = (varied.schema.arrays[array].shape.clone(), (*varied.layouts[array]).clone());
            let source = made(vec![one], varied.faulty.inner.bytes().to_vec(), vec![]);
            let wanted = drawn(&mut own, &source, 20);
            let got = read(&source, &wanted, &Several);
            assert!(got.into_iter().zip(&wanted).all(|(got, (_, _, want))| got.unwrap() == *want));
            no_byte_was_read_twice(&source);
        }
    }
}

#[test]
fn plain_bytes_of_many_requests_are_read_in_few_requests_across_blocks() {
    let n = 3 * REQUEST / 4 + 1000;
    let bytes: Vec<u8> = (0..n * 4 + 24).map(|i| (i % 251) as u8).collect();
    let plain = layout(DType::I32, &[n], &[n], Placement::Direct { offset: 22 });
    let source = made(vec![(vec![n], plain)], bytes.clone(), vec![]);
    let mut wanted = Vec::new();
    for i in 0..50 {
        let bx = Bx::new(vec![i * 40_000], vec![n - i * 41_000]);
        let (from, to) = (22 + bx.start[0] as usize * 4, 22 + bx.end(0) as usize * 4);
        let mut want = bytes[from..to].to_vec();
        crate::buffer::swap_bytes(&mut want, 4);
        wanted.push((0, boxed(bx), want));
    }
    let got = read(&source, &wanted, &Several);
    assert!(got.into_iter().zip(&wanted).all(|(got, (_, _, want))| got.unwrap() == *want));
    no_byte_was_read_twice(&source);
    // The blocks of the store that are touched, each by one request, and every byte once.
    let read = source.faulty.read.lock().unwrap();
    assert_eq!(read.len() as u64, (22 + n * 4).div_ceil(REQUEST));
    assert_eq!(read.iter().map(|r| r.end - r.start).sum::<u64>(), n * 4);
}

#[test]
fn chunks_are_decoded_once_whoever_wants_them_and_by_many_arrays() {
    let shuffle = Pipeline { filters: vec![Filter::Shuffle { element_size: 1 }] };
    let index = (0..9).map(|n| (n, ChunkRef { offset: n * 240, size: 240, filter_mask: 0 })).collect();
    let chunks = Placement::Chunks(ChunkIndex::new(9, index));
    let member = |base, dtype| Layout {
        base,
        strides: c_strides(&[4, 5], 12),
        chunk_bytes: 240,
        pipeline: shuffle.clone(),
        ..layout(dtype, &[12, 15], &[4, 5], chunks.clone())
    };
    let members = vec![(vec![12, 15], member(0, DType::F64)), (vec![12, 15], member(8, DType::I32))];
    let source = made(members, (0..2160_u32).map(|i| (i % 249) as u8).collect(), vec![]);
    let boxes = [(0, [0, 0], [5, 6]), (1, [0, 0], [12, 5]), (0, [3, 4], [2, 2]), (1, [11, 14], [1, 1])];
    let mut wanted: Vec<Drawn> = Vec::new();
    for (array, start, shape) in boxes {
        let (bx, mut out) = (Bx::new(start.into(), shape.into()), crate::buffer::Buffer::default());
        reader(&source, array).read(&bx, &mut out, &mut Workspace::default()).unwrap();
        wanted.push((array, boxed(bx), out.bytes().to_vec()));
    }
    let before = source.store.counters().snapshot();
    let got = read(&source, &wanted, &Several);
    assert!(got.into_iter().zip(&wanted).all(|(got, (_, _, want))| got.unwrap() == *want));
    let did = source.store.counters().snapshot().since(before);
    // Chunks 0 and 1, 3 and 4, 6, 8: four runs.
    assert_eq!((did.chunks_decoded, did.bytes_read, did.requests), (6, 6 * 240, 4));
}

#[test]
fn an_error_reaches_those_who_need_what_fails() {
    let n = 30_000;
    let bytes: Vec<u8> = (0..n * 4).map(|i| (i % 251) as u8).collect();
    let plain = layout(DType::I32, &[n], &[n], Placement::Direct { offset: 0 });
    let index = (0..30).map(|n| (n, ChunkRef { offset: n * 4000, size: 4000, filter_mask: 0 })).collect();
    let shuffle = Pipeline { filters: vec![Filter::Shuffle { element_size: 4 }] };
    let chunked = Layout {
        pipeline: shuffle,
        ..layout(DType::I32, &[n], &[1000], Placement::Chunks(ChunkIndex::new(30, index)))
    };
    let source =
        made(vec![(vec![n], plain), (vec![n], chunked)], bytes, std::iter::once(40_400..40_401).collect());
    let boxes =
        [(0, 0, 10_000), (0, 10_000, 200), (0, 10_101, 9), (1, 9_999, 2), (1, 0, 10_000), (1, 11_000, 5000)];
    let wanted: Vec<_> =
        boxes.map(|(a, start, len)| (a, boxed(Bx::new(vec![start], vec![len])), Vec::new())).into();
    for crew in [&Alone as &dyn Crew, &Several] {
        let got = read(&source, &wanted, crew);
        let is_good: Vec<bool> = got.iter().map(Result::is_ok).collect();
        assert_eq!(is_good, [true, false, true, false, true, true]);
        for i in [1, 3] {
            let e = got[i].as_ref().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Io);
            assert!(
                e.message().contains("made") && e.message().contains(&format!("'a{}'", boxes[i].0)),
                "{e}"
            );
        }
        assert!(got[3].as_ref().unwrap_err().message().contains("chunk [10]"));
    }
}

#[test]
fn who_gives_up_costs_the_others_nothing_and_gets_nothing() {
    let plain = layout(DType::U8, &[64], &[64], Placement::Direct { offset: 0 });
    let source = made(vec![(vec![64], plain)], (0..64).collect(), std::iter::once(40..64).collect());
    let (reader, gone, never) = (reader(&source, 0), AtomicBool::new(false), AtomicBool::new(false));
    gone.store(true, Ordering::Relaxed);
    let ask = |start, cancel| Ask { reader: &reader, wanted: boxed(Bx::new(vec![start], vec![20])), cancel };
    let got = read_together(&[ask(44, &gone), ask(20, &never)], 1 << 20, &Alone);
    assert_eq!(got[0].as_ref().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(got[1].as_ref().unwrap().bytes(), (20..40).collect::<Vec<u8>>());
    assert_eq!(*source.faulty.read.lock().unwrap(), std::slice::from_ref(&(20..40)));
}

#[test]
fn arrays_of_many_files_are_read_file_by_file() {
    let mut draw = Draw(3);
    for (axis, is_new) in [(0, false), (1, false), (0, true), (2, true)] {
        for big in [false, true] {
            let own = [3_u64, 4];
            let files: Vec<Arc<Made>> = (0..5_u8)
                .map(|f| {
                    let bytes: Vec<u8> = (0..60).map(|i| i * 3 + f * 17).collect();
                    let plain = layout(DType::F32, &own, &own, Placement::Direct { offset: 5 });
                    // Some lie otherwise than the whole has them, and are turned.
                    let endian = if big && f % 2 == 0 { Endian::Little } else { Endian::NATIVE };
                    made(vec![(own.into(), Layout { endian, ..plain })], bytes, vec![])
                })
                .collect();
            let mut shape = own.to_vec();
            let starts: Vec<u64> = if is_new {
                shape.insert(axis, 5);
                (0..=5).collect()
            } else {
                shape[axis] *= 5;
                (0..=5).map(|i| i * own[axis]).collect()
            };
            let parts = Parts { axis, starts, is_new, chunked: false };
            let joined = Layout {
                endian: Endian::NATIVE,
                ..layout(DType::F32, &shape, &shape, Placement::Parts(Arc::new(parts)))
            };
            let mut source = Arc::into_inner(made(vec![(shape, joined)], vec![], vec![])).unwrap();
            source.files = files;
            let source = Arc::new(source);
            let mut wanted = drawn(&mut draw, &source, 25);
            wanted.retain(|(_, what, _)| axis == 0 || matches!(what, Wanted::Box(_)));
            source.files.iter().for_each(|file| file.faulty.read.lock().unwrap().clear());
            for crew in [&Alone as &dyn Crew, &Several] {
                source.files.iter().for_each(|file| file.faulty.read.lock().unwrap().clear());
                for ((_, what, want), got) in wanted.iter().zip(read(&source, &wanted, crew)) {
                    assert_eq!(got.unwrap(), *want, "axis {axis}, new {is_new}: {what:?}");
                }
                source.files.iter().for_each(|file| no_byte_was_read_twice(file));
            }
        }
    }
}

#[test]
fn boxes_of_a_library_are_read_once_where_they_overlap() {
    let library = layout(DType::U8, &[10, 10], &[5, 10], Placement::Library("numbers".into()));
    let source = made(vec![(vec![10, 10], library)], vec![], vec![]);
    let boxes = [([0, 0], [4, 10]), ([1, 2], [2, 3]), ([0, 0], [4, 10]), ([8, 9], [1, 1])];
    let wanted: Vec<_> = boxes
        .map(|(start, shape): ([u64; 2], [u64; 2])| {
            let bx = Bx::new(start.into(), shape.into());
            let mut want = vec![0; bx.len() as usize];
            each_position(&bx, &mut |i, at| want[i] = (at[0] * 10 + at[1]) as u8);
            (0, boxed(bx), want)
        })
        .into();
    let got = read(&source, &wanted, &Alone);
    assert!(got.into_iter().zip(&wanted).all(|(got, (_, _, want))| got.unwrap() == *want));
    let read = source.boxes.lock().unwrap();
    assert_eq!(*read, [Bx::new(vec![0, 0], vec![4, 10]), Bx::new(vec![8, 9], vec![1, 1])]);
}
