//! A flag that ends queries from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::given::{self, Out};
use crate::status::guarded;

/// `sieva_stop`. Queries keep what it leads to.
pub struct StopHandle(pub Arc<AtomicBool>);

/// `sieva_stop_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_stop_create(stop: *mut *mut StopHandle) -> i32 {
    guarded(|| {
        let out = Out::handle(stop, "stop")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(Box::new(StopHandle(Arc::default()))) };
        Ok(())
    })
}

/// `sieva_stop_set`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_stop_set(stop: *const StopHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::handle(stop, "stop") }?.0.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// `sieva_stop_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_stop_free(stop: *mut StopHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(stop) }
}
