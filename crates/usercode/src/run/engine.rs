//! The engines that compile, and the clock of those that run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};
use wasmtime::{Config, Engine, OptLevel};

/// Bytes of the machine's stack that code may use.
const STACK: usize = 512 << 10;
/// How often somebody looks whether a run has taken too long.
const TICK: Duration = Duration::from_millis(5);

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

/// Lets a run look at its clock, as long as this lives. A thread of its own, so that a forked process has one, too.
pub(super) struct Ticker {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub fn start(engine: &Engine) -> Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let (engine, ended) = (engine.clone(), Arc::clone(&over));
        let ticks = move || {
            while !ended.load(Ordering::Acquire) {
                thread::park_timeout(TICK);
                engine.increment_epoch();
            }
        };
        let thread = thread::Builder::new()
            .name("sieva-code-clock".to_owned())
            .spawn(ticks)
            .map_err(|e| Error::io("cannot start a thread for the clock of code", &e))?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}
