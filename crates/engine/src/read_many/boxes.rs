//! Boxes that several threads read of one source at the same time.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sieva_format::layout::{Layout, Placement};
use sieva_format::read::ChunkCache;
use sieva_query::exec::Column;
use sieva_types::{Bx, Result};

use super::window::{Caller, Want, Window};
use super::{Part, Request};
use crate::open::{BOX_MEMORY, Source};

/// Where the readers of boxes of a source meet, and the chunks that they decoded while there are any.
#[derive(Default)]
pub(crate) struct BoxWindow {
    window: Window<WantedBox, Column>,
    chunks: Mutex<Weak<ChunkCache>>,
}

/// A box, and the box of whole chunks around it, of which it costs the decoding.
#[derive(Clone)]
struct WantedBox {
    array: usize,
    bx: Bx,
    around: Bx,
    raw: bool,
}

impl Want for WantedBox {
    fn overlaps(&self, other: &Self) -> bool {
        self.array == other.array && self.around.intersect(&other.around).is_some()
    }
}

impl Source {
    /// Reads a box, with others that are asked for at the same time where that reads less: by `alone` where it reads alone.
    /// Both are to be of arrays whose bytes this crate reads itself.
    ///
    /// # Errors
    /// Those of reading; `cancelled`.
    pub(crate) fn read_box_in_window(
        &self,
        (array, bx, raw): (usize, &Bx, bool),
        (memory, need): (u64, u64),
        cancel: &Arc<AtomicBool>,
        alone: impl FnOnce(&Arc<ChunkCache>) -> Result<Column>,
    ) -> Result<Column> {
        let layout = self.reader().layout(array)?;
        let state = self.session().state_of(self, &[array]);
        let make = || self.session().chunks(state, memory.min(BOX_MEMORY));
        // Held while this caller waits, so that what was decoded meanwhile is there.
        let chunks = if state.is_some() { make() } else { self.window().chunks(make) };
        let Some(around) = around(&layout, bx) else { return alone(&chunks) };
        let caller = Caller {
            want: WantedBox { array, bx: bx.clone(), around, raw },
            need,
            cancel: Arc::clone(cancel),
        };
        let limits = (self.session().threads(), memory);
        self.window().window.read(
            caller,
            limits,
            || alone(&chunks),
            |callers| {
                let request = |caller: &Caller<WantedBox>| Request {
                    array: caller.want.array,
                    part: Part::Box(caller.want.bx.clone()),
                    raw: caller.want.raw,
                    cancel: Arc::clone(&caller.cancel),
                };
                let requests: Vec<Request> = callers.iter().map(request).collect();
                let needs = callers.iter().map(|caller| Ok(caller.need)).collect();
                let need = callers.iter().fold(0_u64, |sum, caller| sum.saturating_add(caller.need));
                self.read_batch(&requests, needs, (memory, need), Some(&chunks))
            },
        )
    }
}

impl BoxWindow {
    /// The decoded chunks that those who read now share; made where nobody reads.
    fn chunks(&self, make: impl FnOnce() -> Arc<ChunkCache>) -> Arc<ChunkCache> {
        let mut known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let made = make();
            *known = Arc::downgrade(&made);
            made
        })
    }
}

/// The box of whole chunks around a box; `None` where readings are not put together: of what a library or other code reads,
/// and of what is not read at all.
fn around(layout: &Layout, bx: &Bx) -> Option<Bx> {
    let is_chunked = match &layout.placement {
        Placement::Chunks(_) | Placement::Objects => true,
        Placement::Direct { .. } | Placement::Parts(_) => false,
        Placement::Library(_) | Placement::Foreign(_) | Placement::Inline(_) | Placement::Unallocated => {
            return None;
        }
    };
    if bx.is_empty() {
        return None;
    }
    if !is_chunked {
        return Some(bx.clone());
    }
    let mut around = bx.clone();
    for (d, chunk) in layout.chunk_shape.iter().enumerate().take(bx.rank()) {
        let chunk = (*chunk).max(1);
        around.start[d] = bx.start[d] / chunk * chunk;
        around.shape[d] = bx.end(d).div_ceil(chunk).saturating_mul(chunk) - around.start[d];
    }
    Some(around)
}
