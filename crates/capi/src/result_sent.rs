//! Results as bytes that travel.

use std::sync::Arc;

use sieva_encode::Encoded;

use crate::given::{self, Out};
use crate::result::{ResultHandle, ResultOptions};
use crate::status::guarded;

/// `sieva_result_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_bytes(
    result: *const ResultHandle,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let encoded = &unsafe { given::handle(result, "result") }?.0;
        if bytes.is_null() && capacity == 0 {
            let length = encoded.bytes_len()?;
            // SAFETY: as above.
            unsafe { place.set(length) };
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { given::put_bytes(&encoded.to_bytes()?, (bytes, capacity), place) }
    })
}

/// `sieva_result_from_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_from_bytes(
    bytes: *const u8,
    count: u64,
    result_options: *const ResultOptions,
    result: *mut *mut ResultHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(result, "result")?;
        // SAFETY: the promises of sieva.h.
        let (bytes, (_, how)) =
            unsafe { (given::values(bytes, count, "bytes")?, ResultOptions::read(result_options)?) };
        let read = Encoded::from_bytes(&bytes, &how)?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(ResultHandle(Arc::new(read)))) };
        Ok(())
    })
}
