//! Pcodec in its standalone form: numbers of a type that the stored bytes name.

use half::f16;
use pco::data_types::{Number, NumberType};
use pco::standalone::{FileDecompressor, simple_decompress_into};
use sieva_types::{Error, ErrorKind, Result};

/// Decodes the numbers of `input` into the start of `out`, little-endian, and returns the length in bytes.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let (file, rest) = FileDecompressor::new(input).map_err(|e| damaged(&e))?;
    let Some(kind) = file.peek_number_type_or_termination(rest).map_err(|e| damaged(&e))? else {
        return Ok(0);
    };
    match kind {
        NumberType::F16 => into(input, out, f16::to_le_bytes),
        NumberType::F32 => into(input, out, f32::to_le_bytes),
        NumberType::F64 => into(input, out, f64::to_le_bytes),
        NumberType::I8 => into(input, out, i8::to_le_bytes),
        NumberType::I16 => into(input, out, i16::to_le_bytes),
        NumberType::I32 => into(input, out, i32::to_le_bytes),
        NumberType::I64 => into(input, out, i64::to_le_bytes),
        NumberType::U8 => into(input, out, u8::to_le_bytes),
        NumberType::U16 => into(input, out, u16::to_le_bytes),
        NumberType::U32 => into(input, out, u32::to_le_bytes),
        NumberType::U64 => into(input, out, u64::to_le_bytes),
        other => {
            let message = format!("no decoder for pcodec's numbers of type {other:?}");
            Err(Error::new(ErrorKind::FilterUnavailable, message))
        }
    }
}

fn into<T: Number, const N: usize>(
    input: &[u8],
    out: &mut [u8],
    bytes: impl Fn(T) -> [u8; N],
) -> Result<usize> {
    let mut numbers = vec![T::default(); out.len() / N];
    let progress = simple_decompress_into(input, &mut numbers).map_err(|e| damaged(&e))?;
    if !progress.finished {
        return Err(Error::corrupt(format!(
            "pcodec: {} stored bytes hold more than the expected {} bytes",
            input.len(),
            out.len()
        )));
    }
    let (places, _) = out.as_chunks_mut::<N>();
    for (place, number) in places.iter_mut().zip(&numbers[..progress.n_processed]) {
        *place = bytes(*number);
    }
    Ok(progress.n_processed * N)
}

fn damaged(e: &pco::errors::PcoError) -> Error {
    Error::corrupt(format!("pcodec: {e}"))
}

#[cfg(test)]
mod tests {
    use pco::ChunkConfig;
    use pco::standalone::simple_compress;

    use super::*;

    #[test]
    fn numbers_come_back_bit_for_bit() {
        let floats: Vec<f32> = (0..3000_i16)
            .map(f32::from)
            .chain([f32::NAN, -0.0, f32::INFINITY, f32::MIN_POSITIVE / 3.0])
            .collect();
        let wanted: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        let stored = simple_compress(&floats, &ChunkConfig::default()).unwrap();
        let mut out = vec![0; wanted.len()];
        assert_eq!(decode(&stored, &mut out).unwrap(), wanted.len());
        assert_eq!(out, wanted);
        let integers = [i64::MIN, -1, 0, i64::MAX];
        let stored = simple_compress(&integers, &ChunkConfig::default()).unwrap();
        let mut out = [0; 32];
        assert_eq!(decode(&stored, &mut out).unwrap(), 32);
        assert_eq!(out[24..], i64::MAX.to_le_bytes());
    }

    #[test]
    fn damage_and_a_wrong_length_are_errors() {
        let stored = simple_compress(&[1_u16; 5000], &ChunkConfig::default()).unwrap();
        let kind = |input: &[u8], room| decode(input, &mut vec![0; room]).map_err(|e| e.kind());
        assert_eq!(kind(&stored, 10_000), Ok(10_000));
        assert_eq!(kind(&stored, 9_998), Err(ErrorKind::CorruptFile));
        for cut in 0..stored.len() {
            assert_eq!(kind(&stored[..cut], 10_000), Err(ErrorKind::CorruptFile), "{cut}");
        }
    }
}
