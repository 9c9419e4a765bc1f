//! The pipeline: stages in a row, and the buffers that they share.

use super::bytes::at_least;
use super::{Filter, zstd};
use sieva_types::{Error, ErrorKind, Result};

/// Slack for the headers of stages whose output length no later stage tells.
const INTERMEDIATE_SLACK: usize = 64 * 1024;

/// Filters in the order of writing; decoding runs backwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipeline {
    /// The stages.
    pub filters: Vec<Filter>,
}

impl Pipeline {
    /// Whether every stage can be decoded.
    pub fn is_supported(&self) -> bool {
        self.unsupported().is_none()
    }

    /// The first stage that cannot be decoded.
    pub fn unsupported(&self) -> Option<&Filter> {
        self.filters.iter().find(|filter| !filter.is_supported())
    }

    /// Decodes one stored chunk into `out`, whose length is the exact decoded size.
    ///
    /// Bit i of `filter_mask` says that stage i was skipped when this chunk was written. The last stage decodes
    /// straight into `out`; what is between stages lies in `scratch`, which keeps its memory from call to call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CorruptFile`] if the bytes are damaged or decode to any other length,
    /// [`ErrorKind::FilterUnavailable`] if a stage that was not skipped cannot be decoded. `out` is then of
    /// arbitrary content.
    pub fn decode(
        &self,
        filter_mask: u32,
        input: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let skipped = |stage: usize| stage < 32 && filter_mask >> stage & 1 == 1;
        let Scratch { front, back, tools } = scratch;
        let (mut front, mut back) = (front, back);
        // The data so far: these bytes of `input` or, after a stage has moved them, of `front`.
        let (mut is_moved, mut place) = (false, 0..input.len());
        let first = (0..self.filters.len()).find(|stage| !skipped(*stage));
        for (stage, filter) in self.filters.iter().enumerate().rev().filter(|(stage, _)| !skipped(*stage)) {
            let whole = if is_moved { &front[..] } else { input };
            let data = &whole[place.clone()];
            if let Some(verified) = filter.verified(data) {
                // A checksum lies before or after the data, which stay where they are.
                let verified = verified?;
                let start = place.start + (verified.as_ptr() as usize - data.as_ptr() as usize);
                place = start..start + verified.len();
            } else if Some(stage) == first {
                let written = filter.decode(data, out, tools)?;
                return check_length(written, out.len());
            } else {
                let room = intermediate_room(&self.filters[..stage], out.len());
                place = 0..filter.decode(data, at_least(back, room), tools)?;
                is_moved = true;
                std::mem::swap(&mut front, &mut back);
            }
        }
        check_length(place.len(), out.len())?;
        out.copy_from_slice(if is_moved { &front[place] } else { &input[place] });
        Ok(())
    }
}

fn check_length(given: usize, expected: usize) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    Err(Error::new(ErrorKind::CorruptFile, format!("decoded to {given} bytes, expected {expected}")))
}

/// Room for the data before the stages `inner` are undone: exact where these keep lengths, else an upper bound for
/// what any compressor makes of `out_len` bytes.
fn intermediate_room(inner: &[Filter], out_len: usize) -> usize {
    let exact = inner.iter().try_fold(out_len, |len, filter| filter.stored_len(len));
    exact.unwrap_or_else(|| out_len.saturating_mul(2).saturating_add(INTERMEDIATE_SLACK))
}

/// Buffers and codec contexts that decoding reuses. One per thread; new ones are empty and cost nothing.
#[derive(Default)]
pub struct Scratch {
    front: Vec<u8>,
    back: Vec<u8>,
    tools: Tools,
}

impl Scratch {
    /// What single codecs reuse.
    pub(super) fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch")
            .field("bytes", &(self.front.len() + self.back.len()))
            .finish_non_exhaustive()
    }
}

/// What single codecs reuse.
#[derive(Default)]
pub(super) struct Tools {
    inflate: Option<libdeflater::Decompressor>,
    zstd: Option<::zstd::bulk::Decompressor<'static>>,
    /// One block of a blocked container, between its codec and its filter.
    pub(super) block: Vec<u8>,
    /// The same, between two filters.
    pub(super) other_block: Vec<u8>,
    /// Byte planes between bit and byte transposition.
    pub(super) planes: Vec<u8>,
    /// A whole decoded container that is still to be rearranged.
    pub(super) whole: Vec<u8>,
}

impl Tools {
    /// The deflate decoder.
    pub(super) fn inflate(&mut self) -> &mut libdeflater::Decompressor {
        self.inflate.get_or_insert_with(libdeflater::Decompressor::new)
    }

    /// The Zstandard decoder.
    pub(super) fn zstd(&mut self) -> Result<&mut ::zstd::bulk::Decompressor<'static>> {
        if self.zstd.is_none() {
            self.zstd = Some(zstd::context()?);
        }
        self.zstd.as_mut().ok_or_else(|| Error::new(ErrorKind::Internal, "no zstd context"))
    }
}
