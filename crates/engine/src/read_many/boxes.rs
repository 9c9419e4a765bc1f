//! Boxes that several threads read of one source at the same time.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sieva_format::layout::{Layout, Placement};
use sieva_format::read::{ChunkCache, is_of_one_file};
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
        // Locks of the parent may be held by threads that are not here, and what is kept with them.
        let own_chunks = || Arc::new(ChunkCache::new((memory.min(BOX_MEMORY) / 4) as usize));
        if self.windows().0.window.is_of_parent() {
            return alone(&own_chunks());
        }
        let layout = self.reader().layout(array)?;
        let state = self.session().state_of(self, &[array]);
        let make = || self.session().chunks(state, memory.min(BOX_MEMORY));
        let window = self.box_window(Some((array, &*layout)));
        if window.window.is_of_parent() {
            return alone(&own_chunks());
        }
        // Held while this caller waits, so that what was decoded meanwhile is there.
        let chunks = if state.is_some() { make() } else { window.chunks(make) };
        let Some(around) = around(&layout, bx) else { return alone(&chunks) };
        let caller = Caller {
            want: WantedBox { array, bx: bx.clone(), around, raw },
            need,
            cancel: Arc::clone(cancel),
        };
        let limits = (self.session().threads(), memory);
        window.window.read(
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

    /// Where readers of an array meet: those of all sources of the session that were opened of the same file in the same state,
    /// and understand it in the same way; or, where a change of the file might not be noticed or its bytes are elsewhere, too,
    /// those of this source. Without an array where the readers of most arrays meet.
    pub(super) fn box_window(&self, of: Option<(usize, &Layout)>) -> &BoxWindow {
        let (own, joined) = self.windows();
        if of.is_some_and(|(_, layout)| !is_of_one_file(&layout.placement)) {
            return own;
        }
        if let Some(joined) = joined.get() {
            return joined;
        }
        // Not kept where it is its own: once the file was not changed for a while it may be that of others.
        let arrays: Vec<usize> = of.into_iter().map(|(array, _)| array).collect();
        match self.session().number_of(self, &arrays) {
            Some(number) => joined.get_or_init(|| self.session().windows().of(number, own)),
            None => own,
        }
    }
}

/// Where the readers of the sources of a session meet, by the states of their files.
#[derive(Default)]
pub(crate) struct Windows(Mutex<HashMap<u64, Weak<BoxWindow>>>);

impl Windows {
    /// The window of this state: that of the first source that asks, as long as there is one.
    fn of(&self, number: u64, own: &Arc<BoxWindow>) -> Arc<BoxWindow> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = known.get(&number).and_then(Weak::upgrade) {
            return window;
        }
        known.retain(|_, window| window.strong_count() > 0);
        known.insert(number, Arc::downgrade(own));
        Arc::clone(own)
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

    /// The same for who has so many bytes for them: made where that is enough, else those that there are.
    pub(super) fn chunks_within(
        &self,
        spare: u64,
        make: impl FnOnce() -> Arc<ChunkCache>,
    ) -> Option<Arc<ChunkCache>> {
        if spare >= BOX_MEMORY {
            return Some(self.chunks(make));
        }
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{OpenOptions, Session, SessionOptions};

    /// A netCDF-3 file of nothing that was changed so many seconds ago.
    fn written(path: &Path, ago: u64) {
        std::fs::write(path, [b"CDF\x01".as_slice(), &[0; 28]].concat()).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(ago)).unwrap();
    }

    fn is_one(a: &Source, b: &Source) -> bool {
        std::ptr::eq(a.box_window(None), b.box_window(None))
    }

    #[test]
    fn sources_of_a_session_meet_where_they_are_of_one_state_of_a_file() {
        let dir = std::env::temp_dir().join(format!("sieva-windows-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (path, other) = (dir.join("a.nc"), dir.join("b.nc"));
        written(&path, 100);
        written(&other, 100);
        let name = |path: &Path| path.to_str().unwrap().to_owned();
        let (at, beside) = (name(&path), name(&other));
        let options = OpenOptions::default();
        for cache in [0, 1 << 20] {
            let of = || SessionOptions { memory: Some(1 << 30), cache: Some(cache), ..Default::default() };
            let (session, elsewhere) = (Session::new(&of()).unwrap(), Session::new(&of()).unwrap());
            let first = session.open(&at, &options).unwrap();
            let again = session.open(&at, &options).unwrap();
            assert!(is_one(&first, &again) && is_one(&first, &first.clone()));
            // Other files, other sessions, and other meanings of values have windows of their own.
            let ranged = OpenOptions { valid_range: true, ..options.clone() };
            assert!(!is_one(&first, &session.open(&beside, &options).unwrap()));
            assert!(!is_one(&first, &elsewhere.open(&at, &options).unwrap()));
            assert!(!is_one(&first, &session.open(&at, &ranged).unwrap()));
            // So has another state of the file, and one of which a change might not be noticed.
            written(&path, 50);
            assert!(!is_one(&first, &session.open(&at, &options).unwrap()));
            written(&path, 0);
            let (fresh, too) = (session.open(&at, &options).unwrap(), session.open(&at, &options).unwrap());
            assert!(!is_one(&fresh, &too) && is_one(&fresh, &fresh.clone()));
            written(&path, 100);
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
