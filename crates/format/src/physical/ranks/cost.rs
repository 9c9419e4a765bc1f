//! What it takes to read a box from a parallel file system, and to send it: by the model that `docs/reproduction/hila.md` fits
//! to CephFS, of which only the ratios matter.

use sieva_types::Bx;

use super::Asked;
use crate::read::{MAX_SPAN, MIN_DENSITY};

/// Nanoseconds of a request, of the server and of who asks.
const REQUEST: u64 = 190_000;
/// Picoseconds of a byte that is read, and of one that is sent or received.
const READ: u64 = 3_600;
const SENT: u64 = 1_200;
/// Bytes of one request at most, of what is read without gaps.
const LARGEST: u64 = 4 << 20;

/// Nanoseconds that reading a box takes.
pub(super) fn reading(array: &Asked, bx: &Bx, width: u64) -> u64 {
    if array.is_chunked {
        return REQUEST.saturating_add(bytes(bx.len().saturating_mul(width), READ));
    }
    // What lies together: dimensions that are whole, and a part of one more.
    let (mut outer, mut row) = (bx.rank(), width);
    while outer > 0 && bx.shape[outer - 1] == array.shape[outer - 1] {
        outer -= 1;
        row = row.saturating_mul(array.shape[outer]);
    }
    let mut run = row;
    if outer > 0 {
        outer -= 1;
        run = row.saturating_mul(bx.shape[outer]);
        row = row.saturating_mul(array.shape[outer]);
    }
    let mut requests = run.div_ceil(LARGEST);
    if outer > 0 && row.saturating_add(run) <= MAX_SPAN && run.saturating_mul(MIN_DENSITY) >= row {
        // Rows that lie close to one another are read with what is between them.
        outer -= 1;
        run = run.saturating_add(row.saturating_mul(bx.shape[outer].saturating_sub(1)));
        requests = run.div_ceil(MAX_SPAN);
    }
    let runs = bx.shape[..outer].iter().fold(1_u64, |n, s| n.saturating_mul(*s));
    let asking = runs.saturating_mul(requests).saturating_mul(REQUEST);
    asking.saturating_add(bytes(runs.saturating_mul(run), READ))
}

/// Nanoseconds that sending or receiving bytes takes.
pub(super) fn sending(n: u64) -> u64 {
    bytes(n, SENT)
}

fn bytes(n: u64, picoseconds: u64) -> u64 {
    u64::try_from(u128::from(n) * u128::from(picoseconds) / 1000).unwrap_or(u64::MAX)
}
