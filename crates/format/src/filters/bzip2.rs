//! bzip2, HDF5 filter 307.

use ::bzip2::{Decompress, Status};
use sieva_types::{Error, Result};

/// Decodes the one stream of `input` into the start of `out` and returns the length.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut stream = Decompress::new(false);
    loop {
        let (read, written) = (position(stream.total_in()), position(stream.total_out()));
        let status = stream
            .decompress(input.get(read..).unwrap_or_default(), out.get_mut(written..).unwrap_or_default())
            .map_err(|e| Error::corrupt(format!("bzip2: {e}")))?;
        let written_now = position(stream.total_out());
        if status == Status::StreamEnd {
            return Ok(written_now);
        }
        if position(stream.total_in()) == read && written_now == written {
            return Err(Error::corrupt(format!(
                "bzip2: {} stored bytes are cut off or hold more than the expected {} bytes",
                input.len(),
                out.len()
            )));
        }
    }
}

/// A count of bytes inside of a slice, which fits by construction.
fn position(total: u64) -> usize {
    usize::try_from(total).unwrap_or(usize::MAX)
}
