//! The dimension of the rows, as netCDF-4 has it: a scale without values, to which each variable refers ("NetCDF-4 file
//! format", in the netCDF user's guide; HDF5 File Format Specification Version 3.0, sections in parentheses).

use sieva::{AttrValue, DType, Error, ErrorKind, Result};

use super::message::Header;
use super::{ALIGNMENT, UNDEFINED};
use crate::variable::Kind;

/// A collection has at least so many bytes.
const SMALLEST_HEAP: usize = 4096;
/// Head of a collection, and of an object in it.
const HEAD: usize = 16;
const REFERENCE: usize = 8;

/// The object header of the scale.
pub(super) fn scale(rows: u64) -> Vec<u8> {
    let mut header = Header::default();
    if rows == 0 {
        header.no_rows();
        header.datatype(Kind::Number(DType::F32));
        header.fill_value(Kind::Number(DType::F32), None);
        header.chunked(UNDEFINED, 1, DType::F32.size() as u32);
    } else {
        header.rows(rows);
        header.datatype(Kind::Number(DType::F32));
        header.fill_value(Kind::Number(DType::F32), None);
        header.contiguous(UNDEFINED, rows.saturating_mul(DType::F32.size() as u64));
    }
    header.mark("CLASS", "DIMENSION_SCALE");
    header.mark("NAME", &format!("This is a netCDF dimension but not a netCDF variable.{rows:10}"));
    header.attribute(&("_Netcdf4Dimid".into(), AttrValue::Ints(DType::I32, vec![0])));
    header.finish()
}

/// A collection of the global heap (III.E) with a reference to the scale for each variable, numbered from 1.
pub(super) fn references(variables: usize, scale: u64) -> Result<Vec<u8>> {
    let numbers = u16::try_from(variables).map_err(|_| {
        let message = format!("netCDF-4 of {variables} columns: at most {} have room", u16::MAX);
        Error::new(ErrorKind::Unsupported, message).hint("select fewer, or take HDF5")
    })?;
    // What is free at the end is an object, too.
    let size = (HEAD + variables * (HEAD + REFERENCE) + HEAD).next_multiple_of(ALIGNMENT as usize);
    let size = size.max(SMALLEST_HEAP);
    let mut out = b"GCOL\x01\0\0\0".to_vec();
    out.extend((size as u64).to_le_bytes());
    for number in 1..=numbers {
        object(&mut out, number, REFERENCE as u64);
        out.extend(scale.to_le_bytes());
    }
    let free = (size - out.len()) as u64;
    object(&mut out, 0, free);
    out.resize(size, 0);
    Ok(out)
}

fn object(out: &mut Vec<u8>, number: u16, size: u64) {
    out.extend(number.to_le_bytes());
    out.extend([0; 6]);
    out.extend(size.to_le_bytes());
}
