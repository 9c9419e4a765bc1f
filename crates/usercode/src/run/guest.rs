//! An instance of a module: its memory, its functions, its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sieva_types::{Error, ErrorKind, Result, large};
use wasmtime::{
    Instance, Memory, ResourceLimiter, Store, TypedFunc, UpdateDeadline, WasmParams, WasmResults,
};

use super::engine::Ticker;
use super::failure::{self, Ended, Known};
use crate::c::ROW_REACHED;
use crate::code::{Function, Language};
use crate::element::Element;
use crate::limits::Limits;

/// Elements of a table: references to functions.
const MOST_TABLE: usize = 10_000;
/// Bytes of the description of a column.
pub(super) const COLUMN: usize = 16;

/// What belongs to an instance.
struct Owned {
    limits: Limits,
    refused: bool,
    /// The processor's time of this thread at which the call that runs is over.
    until: Duration,
    /// When the call began, and how long it may take by the clock on the wall.
    begun: Instant,
    elapsed: Duration,
}

impl ResourceLimiter for Owned {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired as u64 <= self.limits.memory;
        self.refused |= !fits;
        Ok(fits)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MOST_TABLE)
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        4
    }

    fn memories(&self) -> usize {
        1
    }
}

/// The processor's time that this thread has taken.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    Duration::new(seconds, nanos)
}

/// Of the time that code may take what is left: of the processor, and by the clock on the wall.
struct Left {
    time: Duration,
    elapsed: Duration,
}

impl Left {
    fn of(limits: &Limits) -> Self {
        Self { time: limits.time, elapsed: limits.elapsed }
    }
}

pub(super) struct Guest {
    function: Function,
    store: Store<Owned>,
    instance: Instance,
    memory: Memory,
    alloc: TypedFunc<u32, u32>,
    left: Left,
    ticker: Arc<Ticker>,
}

/// What a function says comes out.
pub(super) struct Described {
    pub element: Element,
    pub data: usize,
    /// 0: all values are there.
    pub valid: usize,
    pub count: usize,
}

impl Guest {
    pub fn start(function: &Function, limits: &Limits, ticker: Arc<Ticker>) -> Result<Self> {
        let engine = function.0.module.engine();
        let (begun, elapsed) = (Instant::now(), limits.elapsed);
        let owned = Owned { limits: limits.clone(), refused: false, until: Duration::ZERO, begun, elapsed };
        let mut store = Store::new(engine, owned);
        store.limiter(|owned| owned);
        store.epoch_deadline_callback(|context| {
            let owned = context.data();
            if owned.limits.cancel.load(Ordering::Relaxed) {
                return Err(Ended::Cancelled.into());
            }
            if thread_time() >= owned.until {
                return Err(Ended::Time.into());
            }
            if owned.begun.elapsed() >= owned.elapsed {
                return Err(Ended::Elapsed.into());
            }
            Ok(UpdateDeadline::Continue(1))
        });
        let mut left = Left::of(limits);
        let made =
            timed(&ticker, &mut store, &mut left, |store| Instance::new(store, &function.0.module, &[]));
        let made = made.and_then(|instance| {
            let alloc = instance.get_typed_func(&mut store, "sieva_alloc")?;
            let memory = instance.get_memory(&mut store, "memory");
            Ok((instance, alloc, memory))
        });
        let (instance, alloc, memory) = match made {
            Ok((instance, alloc, Some(memory))) => (instance, alloc, memory),
            Ok(_) => return Err(Error::new(ErrorKind::Internal, "the memory of code is not exported")),
            Err(e) => return Err(failed(&e, &store, function)),
        };
        Ok(Self { function: function.clone(), store, instance, memory, alloc, left, ticker })
    }

    /// Gives it as much time again.
    pub fn rewind(&mut self) {
        self.left = Left::of(&self.store.data().limits);
    }

    /// What ends it from outside from now on.
    pub fn cancelled_by(&mut self, flag: &Arc<AtomicBool>) {
        self.store.data_mut().limits.cancel = Arc::clone(flag);
    }

    /// The row that a text of each row had come to where it failed, or one of those behind it that are done with it.
    pub fn row_reached(&mut self) -> Option<usize> {
        let reached = self.instance.get_global(&mut self.store, ROW_REACHED)?;
        usize::try_from(reached.get(&mut self.store).i32()?).ok()
    }

    /// Whether its time is over.
    pub fn is_out_of_time(&self) -> bool {
        self.left.time.is_zero() || self.left.elapsed.is_zero()
    }

    /// Calls an exported function.
    pub fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, params: P) -> Result<R> {
        let function = self.instance.get_typed_func::<P, R>(&mut self.store, name);
        let called = match function {
            Ok(function) => {
                timed(&self.ticker, &mut self.store, &mut self.left, |store| function.call(store, params))
            }
            Err(e) => Err(e),
        };
        called.map_err(|e| failed(&e, &self.store, &self.function))
    }

    /// Room for bytes in the memory of the code.
    pub fn alloc(&mut self, bytes: usize) -> Result<usize> {
        let limit = self.store.data().limits.memory;
        let too_much = || {
            let message = format!("the data take {bytes} bytes, and code may have {limit} of memory");
            Error::new(ErrorKind::MemoryLimit, message)
                .hint("ask for fewer values, or raise the memory limit")
        };
        let Some(wanted) = u32::try_from(bytes).ok().filter(|_| bytes as u64 <= limit) else {
            return Err(too_much());
        };
        let alloc = self.alloc.clone();
        let given = timed(&self.ticker, &mut self.store, &mut self.left, |store| alloc.call(store, wanted));
        let address = given.map_err(|e| failed(&e, &self.store, &self.function))? as usize;
        if address == 0 {
            return Err(too_much());
        }
        let end = address.checked_add(bytes);
        if !address.is_multiple_of(16) || end.is_none_or(|end| end > self.memory.data_size(&self.store)) {
            let message = format!(
                "'sieva_alloc' gave {bytes} bytes at {address}, outside of the memory or not aligned"
            );
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint("it returns an address that 16 divides, or 0"));
        }
        Ok(address)
    }

    /// Prepares for many values: memory that nobody has written to so far comes in large pages, and of a text, which takes what
    /// it needs from the end, so many bytes more are there at once. They cost nothing until they are written to.
    pub fn expect(&mut self, more: usize) {
        let left = self.store.data().limits.memory.saturating_sub(self.memory.data_size(&self.store) as u64);
        // What comes out is held once more when it is taken.
        let pages = (left / 2).min(more as u64) / self.memory.page_size(&self.store);
        if self.function.0.language == Language::C {
            // Where there is no more, the code is told when it asks.
            let _ = self.memory.grow(&mut self.store, pages);
        }
        large::in_large_pages(self.memory.data_mut(&mut self.store));
    }

    /// Bytes of the memory that it has.
    pub fn size(&self) -> usize {
        self.memory.data_size(&self.store)
    }

    /// Bytes of the memory, at an address that [`Guest::alloc`] gave.
    pub fn write(&mut self, address: usize, bytes: &[u8]) -> Result<()> {
        self.place(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Makes those of some values zero that are missing, by a byte of each.
    pub fn clear(&mut self, address: usize, size: usize, valid: &[u8]) -> Result<()> {
        let values = self.place(address, size.saturating_mul(valid.len()))?.chunks_exact_mut(size);
        values.zip(valid).filter(|(_, valid)| **valid == 0).for_each(|(value, _)| value.fill(0));
        Ok(())
    }

    fn place(&mut self, address: usize, bytes: usize) -> Result<&mut [u8]> {
        let end = address.checked_add(bytes);
        let place = end.and_then(|end| self.memory.data_mut(&mut self.store).get_mut(address..end));
        place.ok_or_else(|| Error::new(ErrorKind::Internal, "data beyond the memory of code"))
    }

    /// Descriptions of columns: type, address, validity, rows.
    pub fn describe(
        &mut self,
        address: usize,
        columns: &[(Element, usize, usize)],
        rows: usize,
    ) -> Result<()> {
        let mut bytes = Vec::with_capacity(columns.len() * COLUMN);
        for (element, data, valid) in columns {
            for field in [element.code() as usize, *data, *valid, rows] {
                bytes.extend(u32::try_from(field).unwrap_or(u32::MAX).to_le_bytes());
            }
        }
        self.write(address, &bytes)
    }

    /// The description at an address that the code gave, of which nothing is believed.
    pub fn described(&self, address: u32) -> Result<Described> {
        let address = address as usize;
        let Some(bytes) = self.bytes(address, COLUMN) else {
            let message =
                format!("the code says that its result is described at {address}, outside of its memory");
            return Err(Error::new(ErrorKind::InvalidValue, message));
        };
        let mut fields = [0_u32; 4];
        for (field, bytes) in fields.iter_mut().zip(bytes.chunks_exact(4)) {
            *field = u32::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        let [code, data, valid, count] = fields;
        let Some(element) = Element::of_code(code) else {
            let message = format!("the code gives values of type {code}, which there is not");
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("types are 1 (int8) to 10 (float64)")
            );
        };
        let of = Described { element, data: data as usize, valid: valid as usize, count: count as usize };
        let outside = self.bytes(of.data, of.count.saturating_mul(element.size())).is_none()
            || (of.valid != 0 && self.bytes(of.valid, of.count).is_none());
        if outside {
            let message =
                format!("the code gives {count} values of type {} outside of its memory", element.name());
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        Ok(of)
    }

    /// Bytes of the memory.
    pub fn bytes(&self, address: usize, length: usize) -> Option<&[u8]> {
        self.memory.data(&self.store).get(address..address.checked_add(length)?)
    }
}

/// A call, of which the time counts.
fn timed<R>(
    ticker: &Ticker,
    store: &mut Store<Owned>,
    left: &mut Left,
    call: impl FnOnce(&mut Store<Owned>) -> wasmtime::Result<R>,
) -> wasmtime::Result<R> {
    let (before, begun) = (thread_time(), Instant::now());
    let owned = store.data_mut();
    (owned.until, owned.begun, owned.elapsed) = (before + left.time, begun, left.elapsed);
    store.set_epoch_deadline(1);
    let result = ticker.during(|| call(store));
    left.time = left.time.saturating_sub(thread_time().saturating_sub(before));
    left.elapsed = left.elapsed.saturating_sub(begun.elapsed());
    result
}

fn failed(e: &wasmtime::Error, store: &Store<Owned>, function: &Function) -> Error {
    let owned = store.data();
    let known = Known { limits: &owned.limits, refused: owned.refused, emitted: function.0.emitted.as_ref() };
    failure::of(e, &known)
}
