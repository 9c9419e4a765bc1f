//! LZMA as numcodecs writes it: an .xz file, or one of the older .lzma form.

use liblzma::stream::{Action, Status, Stream};
use sieva_types::{Error, Result};

/// Bytes that a decoder may take: the greatest preset needs 65 MiB, while a damaged header may ask for 4 GiB.
const MEMORY: u64 = 256 << 20;

/// Decodes the one stream of `input` into the start of `out` and returns the length.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let damaged = |e: liblzma::stream::Error| Error::corrupt(format!("lzma: {e}"));
    let mut stream = Stream::new_auto_decoder(MEMORY, 0).map_err(damaged)?;
    loop {
        let (read, written) = (position(stream.total_in()), position(stream.total_out()));
        let rest = input.get(read..).unwrap_or_default();
        // An .xz file ends where it says so; of an .lzma file without a length only the input's end tells.
        let action = if rest.is_empty() { Action::Finish } else { Action::Run };
        let status =
            stream.process(rest, out.get_mut(written..).unwrap_or_default(), action).map_err(damaged)?;
        let written_now = position(stream.total_out());
        if status == Status::StreamEnd {
            return Ok(written_now);
        }
        if position(stream.total_in()) == read && written_now == written {
            return Err(Error::corrupt(format!(
                "lzma: {} stored bytes are cut off or hold more than the expected {} bytes",
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

#[cfg(test)]
mod tests {
    use liblzma::stream::{Check, LzmaOptions};
    use sieva_types::ErrorKind;

    use super::*;

    fn encoded(mut stream: Stream, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 * data.len() + 1000);
        let status = stream.process_vec(data, &mut out, Action::Finish).unwrap();
        assert_eq!(status, Status::StreamEnd);
        out
    }

    #[test]
    fn both_forms_come_back_and_damage_does_not() {
        let data: Vec<u8> = (0..20_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let options = LzmaOptions::new_preset(3).unwrap();
        for stream in [Stream::new_easy_encoder(6, Check::Crc64), Stream::new_lzma_encoder(&options)] {
            let stored = encoded(stream.unwrap(), &data);
            let mut out = vec![0; data.len()];
            assert_eq!(decode(&stored, &mut out).unwrap(), data.len());
            assert_eq!(out, data);
            for (input, room) in [(&stored[..stored.len() / 2], data.len()), (&stored[..], data.len() - 1)] {
                assert_eq!(decode(input, &mut vec![0; room]).unwrap_err().kind(), ErrorKind::CorruptFile);
            }
        }
    }

    #[test]
    fn a_dictionary_of_gigabytes_is_refused() {
        // An .lzma header: properties, a dictionary of 2 GiB, a length.
        let mut stored = vec![0x5d, 0, 0, 0, 0x80];
        stored.extend([0xff; 8]);
        stored.extend([0; 32]);
        assert_eq!(decode(&stored, &mut [0; 64]).unwrap_err().kind(), ErrorKind::CorruptFile);
    }
}
