//! Decoding where nothing tells how long the result is: chunks of variable-length texts.

use super::{Filter, Pipeline, Scratch};
use sieva_types::{Error, ErrorKind, Result};

/// Room that a codec without a hint is first given, in multiples of its input.
const FIRST_GUESS: usize = 4;

impl Pipeline {
    /// Decodes stored bytes to however many they make, `limit` at most.
    ///
    /// Stages that do not tell how long their output is are given twice the room until it is enough.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptFile`] if the bytes are damaged, [`ErrorKind::FilterUnavailable`] if a stage cannot be
    /// decoded, [`ErrorKind::MemoryLimit`] if the result would be longer than `limit`.
    pub fn decode_unsized(&self, input: &[u8], limit: usize, scratch: &mut Scratch) -> Result<Vec<u8>> {
        let mut data = input.to_vec();
        for filter in self.filters.iter().rev() {
            data = decode_stage(filter, &data, limit, scratch)?;
        }
        Ok(data)
    }
}

fn decode_stage(filter: &Filter, input: &[u8], limit: usize, scratch: &mut Scratch) -> Result<Vec<u8>> {
    if !filter.is_supported() {
        filter.decode(input, &mut [], scratch.tools())?;
    }
    let told = told_len(filter, input);
    let mut room = told.unwrap_or_else(|| input.len().saturating_mul(FIRST_GUESS)).clamp(64, limit.max(64));
    if told.is_some_and(|len| len > limit) {
        return Err(too_long(limit));
    }
    loop {
        let mut out = vec![0; room];
        match filter.decode(input, &mut out, scratch.tools()) {
            Ok(len) => {
                out.truncate(len);
                return Ok(out);
            }
            Err(e) if told.is_some() => return Err(e),
            // No codec here makes more than some thousand bytes of one; beyond, it is damage and not length.
            Err(e) if room >= limit.min(input.len().saturating_mul(1 << 13)) => {
                return Err(if room >= limit { too_long(limit) } else { e });
            }
            Err(_) => room = room.saturating_mul(2).min(limit),
        }
    }
}

fn too_long(limit: usize) -> Error {
    Error::new(ErrorKind::MemoryLimit, format!("a chunk decodes to more than {limit} bytes, or is damaged"))
}

/// The decoded length that the stored bytes tell, where their format does.
fn told_len(filter: &Filter, input: &[u8]) -> Option<usize> {
    let le_u32 = |at: usize| {
        let bytes = input.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    };
    match filter {
        Filter::Gzip => le_u32(input.len().checked_sub(4)?),
        Filter::Lz4Sized => le_u32(0),
        Filter::Blosc => le_u32(4),
        Filter::Zstd => {
            let len = ::zstd::zstd_safe::get_frame_content_size(input).ok().flatten()?;
            usize::try_from(len).ok()
        }
        Filter::Shuffle { .. } | Filter::Fletcher32 | Filter::Checksum(_) | Filter::Utf32 { .. } => {
            Some(input.len())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(data: &[u8]) -> Vec<u8> {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut out = vec![0; compressor.zlib_compress_bound(data.len())];
        let len = compressor.zlib_compress(data, &mut out).unwrap();
        out.truncate(len);
        out
    }

    #[test]
    fn a_codec_without_a_hint_is_given_room_until_it_is_enough() {
        let data = vec![b'a'; 100_000];
        let pipeline = Pipeline { filters: vec![Filter::Deflate] };
        let out = pipeline.decode_unsized(&packed(&data), 1 << 20, &mut Scratch::default()).unwrap();
        assert_eq!(out, data);
    }

    #[test]
    fn a_told_length_is_taken_and_checked() {
        let data = b"0123456789".repeat(50);
        let stored = ::zstd::bulk::compress(&data, 3).unwrap();
        let pipeline = Pipeline { filters: vec![Filter::Zstd] };
        let scratch = &mut Scratch::default();
        assert_eq!(pipeline.decode_unsized(&stored, 1 << 20, scratch).unwrap(), data);
        let e = pipeline.decode_unsized(&stored, 499, scratch).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    }

    #[test]
    fn damage_ends_in_an_error() {
        let pipeline = Pipeline { filters: vec![Filter::Deflate] };
        assert!(pipeline.decode_unsized(&[7; 40], 1 << 20, &mut Scratch::default()).is_err());
        let other = Pipeline { filters: vec![Filter::Other { id: 0, name: "lzma".into() }] };
        let e = other.decode_unsized(&[7; 40], 1 << 20, &mut Scratch::default()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::FilterUnavailable);
    }
}
