//! HDF5: each column a data set of one dimension, the metadata written by hand; contiguous here, in deflated chunks in
//! `chunked.rs`.
//!
//! Metadata come first, in the newer form of HDF5 1.8 ("HDF5 File Format Specification Version 3.0"; sections in
//! parentheses), little-endian:
//!
//! ```text
//! offset  bytes
//!      0     48  superblock version 2 (II.A)
//!     48      .  object header version 2 of the root group (IV.A.1.b): link info, group info, links, attributes
//!      .      .  object header of each data set: dataspace, datatype, fill value, layout, attributes
//!      .      .  values of each data set, from a multiple of 8 on
//! ```

pub(crate) mod chunked;
mod message;
mod scale;

use sieva::{Attr, Error, ErrorKind, Result, lookup3};

use crate::elements::Order;
use crate::file_layout::{FileLayout, Place};
use crate::variable::Variable;
use crate::writer::{Making, ResultWriter};
use message::Header;

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
const SUPERBLOCK_LEN: u64 = 48;
/// An address that leads nowhere.
const UNDEFINED: u64 = u64::MAX;
const ALIGNMENT: u64 = 8;

/// The format.
pub(crate) struct Hdf5;

impl ResultWriter for Hdf5 {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["h5", "hdf5"]
    }

    fn making(&self) -> Making {
        Making::LaidOut { plan, has_dimension: false }
    }

    fn is_for_pipes(&self) -> bool {
        false
    }
}

/// The layout of a file of `rows` rows.
///
/// # Errors
/// `arithmetic-overflow` where it would have more than 2^63 bytes.
fn plan(variables: &[Variable], rows: u64, attrs: &[Attr]) -> Result<FileLayout> {
    // Addresses take the same room whatever they are: the first pass finds out where everything lies.
    let nowhere = Addresses { headers: vec![0; variables.len()], values: vec![0; variables.len()], end: 0 };
    let mut at = SUPERBLOCK_LEN + root(variables, attrs, &nowhere).len() as u64;
    let mut addresses = nowhere;
    for (variable, address) in variables.iter().zip(&mut addresses.headers) {
        *address = at;
        at += data_set(variable, rows, 0).len() as u64;
    }
    let mut places = Vec::with_capacity(variables.len());
    for (column, variable) in variables.iter().enumerate() {
        let (begin, width) = (at.next_multiple_of(ALIGNMENT), variable.width() as u64);
        at = rows.checked_mul(width).and_then(|n| n.checked_add(begin)).filter(|&e| e < 1 << 62).ok_or_else(
            || {
                Error::new(
                    ErrorKind::Overflow,
                    format!("a file of {rows} rows would have more than 2^62 bytes"),
                )
            },
        )?;
        addresses.values[column] = if rows == 0 { UNDEFINED } else { begin };
        places.push(Place { column, begin, width });
    }
    addresses.end = at;
    let mut head = superblock(at);
    head.extend(root(variables, attrs, &addresses));
    for (variable, values) in variables.iter().zip(&addresses.values) {
        head.extend(data_set(variable, rows, *values));
    }
    Ok(FileLayout { head, places, rows, len: at, order: Order::Little })
}

/// Where things lie.
struct Addresses {
    headers: Vec<u64>,
    values: Vec<u64>,
    end: u64,
}

fn superblock(end: u64) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    // Version, bytes of offsets, bytes of lengths, flags.
    out.extend([2, 8, 8, 0]);
    for address in [0, UNDEFINED, end, SUPERBLOCK_LEN] {
        out.extend(address.to_le_bytes());
    }
    let sum = lookup3(&out, 0);
    out.extend(sum.to_le_bytes());
    out
}

fn root(variables: &[Variable], attrs: &[Attr], addresses: &Addresses) -> Vec<u8> {
    let mut header = Header::default();
    header.empty_group();
    for (variable, address) in variables.iter().zip(&addresses.headers) {
        header.link(&variable.name, *address);
    }
    attrs.iter().for_each(|attr| header.attribute(attr));
    header.finish()
}

fn data_set(variable: &Variable, rows: u64, values: u64) -> Vec<u8> {
    let mut header = Header::default();
    header.rows(rows);
    header.datatype(variable.kind);
    header.fill_value(variable.kind, variable.fill);
    header.contiguous(values, rows * variable.width() as u64);
    // That texts are UTF-8 is said by their type.
    variable.attrs.iter().filter(|(name, _)| name != "_Encoding").for_each(|attr| header.attribute(attr));
    header.finish()
}
