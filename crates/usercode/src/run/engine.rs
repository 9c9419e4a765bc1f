//! The engines that compile, and the clock of those that run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};
use wasmtime::{Config, Engine, OptLevel};

/// Bytes of the machine's stack that code may use.
const STACK: usize = 512 << 10;
/// How often somebody looks whether a run has taken too long.
const TICK: Duration = Duration::from_millis(5);

/// Ticks without code that runs after which the clock sleeps: calls often follow one another.
const PATIENCE: u32 = 20;

/// Where a module comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// We wrote it: a NaN leaves it in one form only.
    Own,
    /// Others did: each operation gives one form of NaN.
    Foreign,
}

/// The engine for modules of a kind.
pub(crate) fn engine(kind: Kind) -> Result<&'static Engine> {
    static ENGINES: [OnceLock<std::result::Result<Engine, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let made = ENGINES[usize::from(kind == Kind::Foreign)].get_or_init(|| {
        let mut config = Config::new();
        config
            .cranelift_opt_level(OptLevel::Speed)
            .cranelift_nan_canonicalization(kind == Kind::Foreign)
            .epoch_interruption(true)
            .max_wasm_stack(STACK)
            .wasm_relaxed_simd(false)
            .wasm_memory64(false)
            .wasm_multi_memory(false)
            .wasm_tail_call(false);
        Engine::new(&config).map_err(|e| format!("{e:#}"))
    });
    made.as_ref()
        .map_err(|e| Error::new(ErrorKind::Unsupported, format!("code cannot be run on this machine: {e}")))
}

/// Lets runs look at their clock. A thread of its own that sleeps while no code runs; a process that was forked off has none.
pub(super) struct Ticker {
    process: u32,
    of: Arc<Of>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Of {
    /// Calls of code that have not come back.
    running: AtomicUsize,
    /// Whether the thread has to be woken.
    asleep: AtomicBool,
    over: AtomicBool,
}

impl Ticker {
    pub fn start(engine: &Engine) -> Result<Arc<Self>> {
        let of = Arc::new(Of::default());
        let (engine, told) = (engine.clone(), Arc::clone(&of));
        let ticks = move || {
            let mut idle = 0;
            while !told.over.load(Ordering::SeqCst) {
                idle = if told.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
                if idle < PATIENCE {
                    thread::park_timeout(TICK);
                    engine.increment_epoch();
                    continue;
                }
                told.asleep.store(true, Ordering::SeqCst);
                // Who began meanwhile may not have seen that it sleeps.
                if told.running.load(Ordering::SeqCst) == 0 && !told.over.load(Ordering::SeqCst) {
                    thread::park();
                }
                told.asleep.store(false, Ordering::SeqCst);
                idle = 0;
            }
        };
        let thread = thread::Builder::new()
            .name("sieva-code-clock".to_owned())
            .spawn(ticks)
            .map_err(|e| Error::io("cannot start a thread for the clock of code", &e))?;
        Ok(Arc::new(Self { process: std::process::id(), of, thread: Some(thread) }))
    }

    /// Whether it ticks in this process.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Ticks while a call runs.
    pub fn during<R>(&self, call: impl FnOnce() -> R) -> R {
        self.of.running.fetch_add(1, Ordering::SeqCst);
        if self.of.asleep.load(Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        let result = call();
        self.of.running.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !self.is_here() {
            // It did not come along into this process: there is nothing to wait for.
            std::mem::forget(thread);
            return;
        }
        self.of.over.store(true, Ordering::SeqCst);
        thread.thread().unpark();
        // It does nothing that could fail.
        let _ = thread.join();
    }
}
