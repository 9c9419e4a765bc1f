//! Batches of a file on several servers, and threads that decode the same chunks at once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use sieva_store::{Counters, MemoryStore, RangedRead, Striping};
use sieva_types::{Bx, DType, Error, ErrorKind, Result};

use super::servers::PER_SERVER;
use super::tests::{Draw, Drawn, Made, Several, boxed, drawn, layout, made, made_of, reader};
use super::{Alone, Ask, Crew, Wanted, read_together};
use crate::buffer::Buffer;
use crate::filters::{Filter, Pipeline};
use crate::layout::{ChunkIndex, ChunkRef, Layout, Placement};
use crate::read::{BlockReader, ChunkCache, Workspace};

const SERVERS: u32 = 4;
const STRIPE: u64 = 64 << 10;
/// Elements, of four bytes, of a file of 37 stripes and a bit.
const N: u64 = (37 * STRIPE + 1000) / 4;

/// Bytes on servers of which one may be slow, stripes that cannot be read, and what was asked of whom.
struct Striped {
    inner: MemoryStore,
    striping: Striping,
    bad: Vec<u64>,
    /// This one answers when the others have been asked for so many bytes.
    slow: Option<(u32, u64)>,
    seen: Mutex<Seen>,
    asked: Condvar,
}

#[derive(Default)]
struct Seen {
    ranges: Vec<Range<u64>>,
    busy: HashMap<u32, usize>,
    most: usize,
    /// Bytes that other servers than the slow one gave, and whether it waited for them in vain.
    given: u64,
    held_up: bool,
}

impl RangedRead for Striped {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let range = offset..offset + out.len() as u64;
        let mut servers: Vec<u32> = self.striping.pieces(range.clone()).map(|piece| piece.server).collect();
        servers.sort_unstable();
        servers.dedup();
        let mut seen = self.seen.lock().unwrap();
        seen.ranges.push(range.clone());
        for server in &servers {
            let busy = seen.busy.entry(*server).or_default();
            *busy += 1;
            seen.most = seen.most.max(seen.busy[server]);
        }
        if let Some((slow, others)) = self.slow {
            if servers.contains(&slow) {
                let wait = Duration::from_secs(20);
                let (after, timeout) =
                    self.asked.wait_timeout_while(seen, wait, |seen| seen.given < others).unwrap();
                seen = after;
                seen.held_up |= timeout.timed_out();
            } else {
                seen.given += out.len() as u64;
            }
        }
        drop(seen);
        thread::yield_now();
        let mut seen = self.seen.lock().unwrap();
        servers.iter().for_each(|server| *seen.busy.get_mut(server).unwrap() -= 1);
        self.asked.notify_all();
        drop(seen);
        if self.striping.pieces(range).any(|piece| self.bad.contains(&piece.stripe)) {
            return Err(Error::new(ErrorKind::Io, format!("no bytes at {offset}")));
        }
        self.inner.read_exact_at(offset, out)
    }
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

/// A crew that knows the servers.
struct Knows<'a>(&'a dyn Crew, &'a Striping);

impl Crew for Knows<'_> {
    fn threads(&self) -> usize {
        self.0.threads()
    }
    fn striping(&self, _: &Arc<dyn RangedRead>) -> Option<Striping> {
        Some(self.1.clone())
    }
    fn each(&self, jobs: usize, threads: usize, work: &(dyn Fn(usize) + Sync)) {
        self.0.each(jobs, threads, work);
    }
}

fn element(i: u64) -> [u8; 4] {
    (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()
}

/// An array that lies plainly, and one in chunks of 3000 elements that end where no stripe does, over the same bytes.
fn striped(bad: Vec<u64>, slow: Option<(u32, u64)>) -> (Arc<Made>, Arc<Striped>) {
    let bytes: Vec<u8> = (0..N).flat_map(element).collect();
    let plain = layout(DType::I32, &[N], &[N], Placement::Direct { offset: 0 });
    let chunks = N / 3000;
    let place = |n| (n, ChunkRef { offset: n * 12_000, size: 12_000, filter_mask: 0 });
    let index = ChunkIndex::new(chunks, (0..chunks).map(place).collect());
    // A filter that changes nothing: bytes as they are, that have to be decoded all the same.
    let shuffle = Pipeline { filters: vec![Filter::Shuffle { element_size: 1 }] };
    let chunked = Layout {
        pipeline: shuffle,
        ..layout(DType::I32, &[chunks * 3000], &[3000], Placement::Chunks(index))
    };
    let store = Arc::new(Striped {
        inner: MemoryStore::new("striped", bytes),
        striping: Striping::given(STRIPE, SERVERS, 1).unwrap(),
        bad,
        slow,
        seen: Mutex::default(),
        asked: Condvar::new(),
    });
    let layouts = vec![(vec![N], plain), (vec![chunks * 3000], chunked)];
    (made_of(layouts, Arc::clone(&store) as _), store)
}

fn native(range: Range<u64>) -> Vec<u8> {
    range.flat_map(|i| u32::from_be_bytes(element(i)).to_ne_bytes()).collect()
}

fn some_of(
    draw: &mut Draw,
    source: &Made,
    array: usize,
    n: u64,
) -> Vec<(usize, Wanted<'static>, Range<u64>)> {
    let len = source.schema.arrays[array].shape[0];
    let one = |draw: &mut Draw| {
        let start = draw.below(len);
        let n = 1 + draw.below((len - start).min(200_000));
        (array, boxed(Bx::new(vec![start], vec![n])), start..start + n)
    };
    (0..n).map(|_| one(draw)).collect()
}

fn read(
    source: &Arc<Made>,
    wanted: &[(usize, Wanted<'static>, Range<u64>)],
    crew: &dyn Crew,
) -> Vec<Result<Buffer>> {
    let (readers, never) = ([reader(source, 0), reader(source, 1)], AtomicBool::new(false));
    let ask = |(array, wanted, _): &(usize, Wanted<'static>, Range<u64>)| Ask {
        reader: &readers[*array],
        wanted: wanted.clone(),
        cancel: &never,
    };
    let asks: Vec<Ask<'_>> = wanted.iter().map(ask).collect();
    read_together(&asks, 1 << 30, crew)
}

#[test]
fn no_server_has_more_requests_than_a_few_and_no_byte_is_read_twice() {
    let mut draw = Draw(23);
    for round in 0..12 {
        let (source, store) = striped(vec![], None);
        let wanted = some_of(&mut draw, &source, round % 2, 40);
        let got = read(&source, &wanted, &Knows(&Several, &store.striping));
        for ((_, _, range), got) in wanted.iter().zip(got) {
            assert!(got.unwrap().bytes() == native(range.clone()), "round {round}: {range:?}");
        }
        let mut seen = store.seen.lock().unwrap();
        assert!((1..=PER_SERVER).contains(&seen.most), "{}", seen.most);
        seen.ranges.sort_by_key(|range| range.start);
        assert!(seen.ranges.windows(2).all(|two| two[0].end <= two[1].start));
        let within = |range: &Range<u64>| store.striping.pieces(range.clone()).nth(1).is_none();
        // Plain bytes are cut where stripes end, chunks are whole.
        assert!(round % 2 == 1 || seen.ranges.iter().all(within));
    }
}

#[test]
fn servers_are_asked_by_turns_each_in_the_order_of_its_bytes() {
    for array in [0, 1] {
        let (source, store) = striped(vec![], None);
        let len = source.schema.arrays[array].shape[0];
        let whole = [(array, boxed(Bx::new(vec![0], vec![len])), 0..len)];
        let got = read(&source, &whole, &Knows(&Alone, &store.striping));
        assert!(got.into_iter().all(|got| got.unwrap().bytes() == native(0..len)));
        let seen = store.seen.lock().unwrap();
        let first = |range: &Range<u64>| store.striping.pieces(range.clone()).next().unwrap().server;
        let servers: Vec<u32> = seen.ranges.iter().map(first).collect();
        assert_eq!(servers[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
        for server in 0..SERVERS {
            let is_its_alone = |range: &&Range<u64>| {
                first(range) == server && store.striping.pieces((*range).clone()).nth(1).is_none()
            };
            let own: Vec<u64> = seen.ranges.iter().filter(is_its_alone).map(|range| range.start).collect();
            assert!(own.is_sorted() && own.len() >= 9, "{own:?}");
        }
    }
}

#[test]
fn a_slow_server_does_not_hold_up_the_others() {
    for array in [0, 1] {
        let len = striped(vec![], None).0.schema.arrays[array].shape[0];
        // What the other servers have, or what they have at least without chunks that lie on two servers.
        let others = if array == 0 { len * 4 - 9 * STRIPE - 1000 } else { 15 * STRIPE };
        let (source, store) = striped(vec![], Some((2, others)));
        let whole = [(array, boxed(Bx::new(vec![0], vec![len])), 0..len)];
        let got = read(&source, &whole, &Knows(&Several, &store.striping));
        assert!(got.into_iter().all(|got| got.unwrap().bytes() == native(0..len)));
        let seen = store.seen.lock().unwrap();
        assert!(!seen.held_up && seen.most <= PER_SERVER);
    }
}

#[test]
fn stripes_that_cannot_be_read_fail_those_alone_who_need_them() {
    let mut draw = Draw(5);
    for round in 0..10 {
        let bad = vec![draw.below(37), draw.below(37)];
        let (source, store) = striped(bad.clone(), None);
        let array = round % 2;
        let wanted = some_of(&mut draw, &source, array, 30);
        let got = read(&source, &wanted, &Knows(&Several, &store.striping));
        for ((_, _, range), got) in wanted.iter().zip(got) {
            // Of chunks all bytes are needed.
            let unit = if array == 0 { 1 } else { 3000 };
            let bytes = range.start / unit * unit * 4..range.end.div_ceil(unit) * unit * 4;
            let fails = store.striping.pieces(bytes).any(|piece| bad.contains(&piece.stripe));
            match got {
                Ok(got) => assert!(!fails && got.bytes() == native(range.clone())),
                Err(e) => assert!(fails && e.kind() == ErrorKind::Io, "{e}"),
            }
        }
        assert!(store.seen.lock().unwrap().most <= PER_SERVER);
    }
}

#[test]
fn drawn_batches_of_all_layouts_are_the_same_on_any_servers() {
    let mut draw = Draw(31);
    for round in 0..40 {
        let source = super::tests::varied(&mut draw);
        let wanted: Vec<Drawn> = drawn(&mut draw, &source, 20);
        let unit = [7, 100, STRIPE][draw.below(3) as usize];
        let striping = Striping::given(unit, 1 + draw.below(5) as u32, 0).unwrap();
        let crew: &dyn Crew = if round % 2 == 0 { &Alone } else { &Several };
        let got = super::tests::read(&source, &wanted, &Knows(crew, &striping));
        for ((array, what, want), got) in wanted.iter().zip(got) {
            assert_eq!(got.unwrap(), *want, "round {round}, array {array}: {what:?} on {striping:?}");
        }
    }
}

/// Boxes of 64 threads, and an array of 12 x 4 chunks of which chunk 9 is damaged or not.
fn overlapping(is_damaged: bool) -> (Arc<Made>, Vec<Bx>) {
    let index = (0..48).map(|n| (n, ChunkRef { offset: n * 256, size: 256, filter_mask: 0 })).collect();
    let chunks = Placement::Chunks(ChunkIndex::new(48, index));
    let shuffle = Pipeline { filters: vec![Filter::Shuffle { element_size: 4 }] };
    let array = Layout { pipeline: shuffle, ..layout(DType::I32, &[48, 64], &[4, 16], chunks) };
    let bad = if is_damaged { std::iter::once(9 * 256 + 5..9 * 256 + 6).collect() } else { vec![] };
    let bytes = (0..48 * 256_u32).map(|i| (i * 7 % 253) as u8).collect();
    let boxes = (0..64_u64).map(|i| Bx::new(vec![i / 2, i % 20], vec![16, 40])).collect();
    (made(vec![(vec![48, 64], array)], bytes, bad), boxes)
}

#[test]
fn threads_that_read_alone_or_together_decode_each_chunk_once() {
    let (whole, _) = overlapping(false);
    for is_damaged in [false, true] {
        let (source, boxes) = overlapping(is_damaged);
        let (cache, begin) = (Arc::new(ChunkCache::new(1 << 20)), Barrier::new(64));
        let needs_damaged = |bx: &Bx| bx.start[0] < 12 && bx.end(0) > 8 && bx.start[1] < 32 && bx.end(1) > 16;
        let one = |i: usize, bx: &Bx| {
            let source: Arc<dyn crate::ArraySource> = Arc::clone(&source) as _;
            let reader = BlockReader::new(source, 0, Arc::clone(&cache), 1 << 30).unwrap();
            let never = AtomicBool::new(false);
            begin.wait();
            if i.is_multiple_of(2) {
                let mut out = Buffer::default();
                return reader.read(bx, &mut out, &mut Workspace::default()).map(|()| out);
            }
            let asks = [Ask { reader: &reader, wanted: boxed(bx.clone()), cancel: &never }];
            read_together(&asks, 1 << 20, &Alone).remove(0)
        };
        let got: Vec<Result<Buffer>> = thread::scope(|scope| {
            let threads: Vec<_> =
                boxes.iter().enumerate().map(|(i, bx)| scope.spawn(move || one(i, bx))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (bx, got) in boxes.iter().zip(got) {
            match got {
                Err(e) => assert!(is_damaged && needs_damaged(bx) && e.kind() == ErrorKind::Io, "{e}"),
                Ok(got) => {
                    assert!(!(is_damaged && needs_damaged(bx)));
                    let mut want = Buffer::default();
                    reader(&whole, 0).read(bx, &mut want, &mut Workspace::default()).unwrap();
                    assert_eq!(got.bytes(), want.bytes());
                }
            }
        }
        let chunk = |n: u64| Bx::new(vec![n / 4 * 4, n % 4 * 16], vec![4, 16]);
        let is_touched = |n: &u64| boxes.iter().any(|bx| bx.intersect(&chunk(*n)).is_some());
        let touched = (0..48).filter(is_touched).count() as u64;
        let decoded = source.store.counters().snapshot().chunks_decoded;
        // Who meets the damaged one reads no further: what only such readers want is not decoded.
        assert!(if is_damaged { decoded < touched } else { decoded == touched }, "{decoded} of {touched}");
    }
}
