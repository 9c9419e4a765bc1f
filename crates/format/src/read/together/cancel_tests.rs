//! Requests that are given up while a slow store answers: little more is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use sieva_store::{Counters, MemoryStore, RangedRead};
use sieva_types::{Bx, DType, ErrorKind, Result, Selection};

use super::tests::{Several, boxed, layout, made_of, reader};
use super::{Alone, Ask, Crew, Wanted, read_together};
use crate::filters::{Filter, Pipeline};
use crate::layout::{ChunkIndex, ChunkRef, Layout, Placement};

/// Elements of 4 bytes of each array.
const N: u64 = 3 << 20;
/// Elements of a chunk.
const CHUNK: u64 = 1 << 15;

/// A store of which somebody gives up while it answers for the n-th time.
struct Slow {
    inner: MemoryStore,
    answers: AtomicUsize,
    last: usize,
    cancel: Arc<AtomicBool>,
}

impl RangedRead for Slow {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if self.answers.fetch_add(1, Relaxed) + 1 >= self.last {
            self.cancel.store(true, Relaxed);
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

/// Plain elements, and the same bytes as chunks that are decoded.
fn layouts() -> Vec<(Vec<u64>, Layout)> {
    let plain = layout(DType::I32, &[N], &[N], Placement::Direct { offset: 0 });
    let size = CHUNK * 4;
    let chunk = |n| (n, ChunkRef { offset: n * size, size, filter_mask: 0 });
    let index = ChunkIndex::new(N / CHUNK, (0..N / CHUNK).map(chunk).collect());
    let pipeline = Pipeline { filters: vec![Filter::Shuffle { element_size: 4 }] };
    let chunked = Layout { pipeline, ..layout(DType::I32, &[N], &[CHUNK], Placement::Chunks(index)) };
    vec![(vec![N], plain), (vec![N], chunked)]
}

fn every(step: u64) -> Wanted<'static> {
    let positions = (0..N).step_by(step as usize);
    Wanted::Positions(Arc::new(Selection::from_positions(vec!["0".into()], vec![N], positions).unwrap()))
}

/// How often the store was asked where a request is given up at the `last` answer, and how often where it never is.
fn asked(array: usize, wanted: &Wanted<'static>, last: usize, crew: &dyn Crew) -> usize {
    let cancel = Arc::new(AtomicBool::new(last == 0));
    let inner = MemoryStore::new("slow", vec![7; N as usize * 4]);
    let store = Arc::new(Slow { inner, answers: AtomicUsize::new(0), last, cancel: Arc::clone(&cancel) });
    let source = made_of(layouts(), Arc::clone(&store) as _);
    let reader = reader(&source, array);
    let ask = Ask { reader: &reader, wanted: wanted.clone(), cancel: &cancel };
    let [got] = <[_; 1]>::try_from(read_together(&[ask], 1 << 30, crew)).unwrap();
    match got {
        Ok(got) => assert!(last == usize::MAX && got.bytes().iter().all(|b| *b == 7)),
        Err(e) => assert_eq!(e.kind(), ErrorKind::Cancelled),
    }
    store.answers.load(Relaxed)
}

#[test]
fn nothing_more_is_read_for_who_has_given_up() {
    let whole = boxed(Bx::whole(&[N]));
    // Of plain elements so far apart each is read by itself.
    for (array, wanted) in [(0, whole.clone()), (0, every(20_000)), (1, whole), (1, every(3))] {
        let all = asked(array, &wanted, usize::MAX, &Alone);
        assert!(all >= 3, "{all} requests of array {array}");
        for last in 0..3 {
            assert_eq!(asked(array, &wanted, last, &Alone), last, "array {array}");
            // Threads that have begun end what they do.
            let several = asked(array, &wanted, last, &Several);
            assert!((last..=last + Several.threads()).contains(&several), "{several} after {last}");
        }
    }
}

#[test]
fn who_has_given_up_takes_no_memory_and_is_not_planned() {
    let gone = AtomicBool::new(true);
    let vast = 1_u64 << 50;
    let never = || layout(DType::F64, &[vast], &[vast], Placement::Unallocated);
    let source = made_of(vec![(vec![vast], never())], Arc::new(MemoryStore::new("none", Vec::new())));
    let reader = reader(&source, 0);
    let all = Wanted::Positions(Arc::new(Selection::all(vec!["0".into()], vec![vast]).unwrap()));
    for wanted in [boxed(Bx::whole(&[vast])), all] {
        let got = read_together(&[Ask { reader: &reader, wanted, cancel: &gone }], 1 << 20, &Alone);
        assert_eq!(got[0].as_ref().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
