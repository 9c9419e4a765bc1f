//! Parts of results as blocks that are made ahead.

use std::ffi::c_void;

use sieva_encode::EncodedStream;

use crate::given::{self, Out};
use crate::result::{ResultHandle, bytes};
use crate::status::guarded;

/// `sieva_stream`.
pub struct StreamHandle {
    stream: EncodedStream,
    /// Bytes of a block.
    block: u64,
}

/// `sieva_result_stream`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_stream(
    result: *const ResultHandle,
    offset: u64,
    length: u64,
    block: u64,
    stream: *mut *mut StreamHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(stream, "stream")?;
        // SAFETY: the promises of sieva.h.
        let encoded = &unsafe { given::handle(result, "result") }?.0;
        let block = if block == 0 { sieva_encode::BLOCK as u64 } else { block };
        let size = given::in_memory::<u8>(block, "block")?;
        let stream = encoded.stream(offset..offset.saturating_add(length), size)?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(StreamHandle { stream, block })) };
        Ok(())
    })
}

/// `sieva_result_stream_any_order`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_stream_any_order(
    result: *const ResultHandle,
    block: u64,
    stream: *mut *mut StreamHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(stream, "stream")?;
        // SAFETY: the promises of sieva.h.
        let encoded = &unsafe { given::handle(result, "result") }?.0;
        let block = if block == 0 { sieva_encode::BLOCK as u64 } else { block };
        let stream = encoded.stream_any_order(given::in_memory::<u8>(block, "block")?)?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(StreamHandle { stream, block })) };
        Ok(())
    })
}

/// `sieva_stream_next`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_stream_next(
    stream: *mut StreamHandle,
    buffer: *mut c_void,
    capacity: u64,
    offset: *mut u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let (place, out) = (Out::new(offset, "offset")?, Out::new(count, "count")?);
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(stream.cast_const(), "stream") }?;
        if capacity == 0 {
            return Err(crate::status::invalid("capacity is 0: no block fits"));
        }
        // SAFETY: as above.
        let buffer = unsafe { bytes(buffer, capacity.min(handle.block)) }?;
        let (at, n) = handle.stream.next_block(buffer)?;
        // SAFETY: as above.
        unsafe {
            place.set(at);
            out.set(n as u64);
        }
        Ok(())
    })
}

/// `sieva_stream_ready`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_stream_ready(stream: *const StreamHandle, ready: *mut i32) -> i32 {
    guarded(|| {
        let out = Out::new(ready, "ready")?;
        // SAFETY: the promises of sieva.h.
        let is_ready = unsafe { given::handle(stream, "stream") }?.stream.is_ready();
        // SAFETY: as above.
        unsafe { out.set(is_ready.into()) };
        Ok(())
    })
}

/// `sieva_stream_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_stream_free(stream: *mut StreamHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(stream) }
}
