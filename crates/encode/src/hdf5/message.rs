//! Object headers and their messages (HDF5 File Format Specification Version 3.0, section IV.A.2).

use sieva::{Attr, AttrValue, DType, Number};

use super::UNDEFINED;
use crate::variable::Kind;
use sieva::lookup3;

const DATASPACE: u8 = 0x01;
const LINK_INFO: u8 = 0x02;
const DATATYPE: u8 = 0x03;
const FILL_VALUE: u8 = 0x05;
const LINK: u8 = 0x06;
const LAYOUT: u8 = 0x08;
const GROUP_INFO: u8 = 0x0a;
const FILTERS: u8 = 0x0b;
const ATTRIBUTE: u8 = 0x0c;
/// Longest message: its size has two bytes.
const MAX_MESSAGE: usize = u16::MAX as usize;
const ASCII: u8 = 0;
const UTF8: u8 = 1;
/// Numbers of filters (IV.A.2.l).
const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
/// A chunk may be stored without the filter.
const OPTIONAL: u16 = 1;

/// An object header of version 2 while it is written: one chunk of messages.
#[derive(Default)]
pub(super) struct Header(Vec<u8>);

impl Header {
    /// The header's bytes.
    pub fn finish(self) -> Vec<u8> {
        let mut out = b"OHDR".to_vec();
        // Version 2; flags: the chunk's size has four bytes.
        out.extend([2, 2]);
        out.extend((self.0.len() as u32).to_le_bytes());
        out.extend(self.0);
        let sum = lookup3(&out, 0);
        out.extend(sum.to_le_bytes());
        out
    }

    /// A message; one that is too long is left out.
    fn message(&mut self, kind: u8, body: &[u8]) {
        if body.len() <= MAX_MESSAGE {
            self.0.push(kind);
            self.0.extend((body.len() as u16).to_le_bytes());
            self.0.push(0);
            self.0.extend(body);
        }
    }

    /// A group whose links are messages (IV.A.2.c, IV.A.2.k).
    pub fn empty_group(&mut self) {
        let mut info = vec![0, 0];
        info.extend(UNDEFINED.to_le_bytes());
        info.extend(UNDEFINED.to_le_bytes());
        self.message(LINK_INFO, &info);
        self.message(GROUP_INFO, &[0, 0]);
    }

    /// The same, of links whose order is kept.
    pub fn ordered_group(&mut self, links: u64) {
        let mut info = vec![0, 1];
        for number in [links, UNDEFINED, UNDEFINED] {
            info.extend(number.to_le_bytes());
        }
        self.message(LINK_INFO, &info);
        self.message(GROUP_INFO, &[0, 0]);
    }

    /// A hard link with its place in the order of the links.
    pub fn ordered_link(&mut self, number: u64, name: &str, address: u64) {
        let mut body = vec![1, 0x15];
        body.extend(number.to_le_bytes());
        body.push(UTF8);
        body.extend((name.len() as u16).to_le_bytes());
        body.extend(name.as_bytes());
        body.extend(address.to_le_bytes());
        self.message(LINK, &body);
    }

    /// A hard link (IV.A.2.g): flags say that the character set is told and that the name's length has two bytes.
    pub fn link(&mut self, name: &str, address: u64) {
        let mut body = vec![1, 0x11, UTF8];
        body.extend((name.len() as u16).to_le_bytes());
        body.extend(name.as_bytes());
        body.extend(address.to_le_bytes());
        self.message(LINK, &body);
    }

    /// A dataspace of one dimension.
    pub fn rows(&mut self, n: u64) {
        self.message(DATASPACE, &dataspace(Some(n)));
    }

    /// A dataspace of one dimension that has no rows yet, and could grow.
    pub fn no_rows(&mut self) {
        let mut body = vec![2, 1, 1, 1];
        body.extend(0_u64.to_le_bytes());
        body.extend(u64::MAX.to_le_bytes());
        self.message(DATASPACE, &body);
    }

    /// The type of a variable.
    pub fn datatype(&mut self, kind: Kind) {
        self.message(DATATYPE, &datatype(kind));
    }

    /// A fill value (IV.A.2.f, version 3): space is allocated late, the value written where it is set.
    pub fn fill_value(&mut self, kind: Kind, fill: Option<Number>) {
        let mut body = vec![3, 0x0a];
        if let (Kind::Number(dtype), Some(fill)) = (kind, fill) {
            body[1] |= 0x20;
            let value = number(dtype, fill);
            body.extend((value.len() as u32).to_le_bytes());
            body.extend(value);
        }
        self.message(FILL_VALUE, &body);
    }

    /// Values that lie one behind the other (IV.A.2.i, version 3, class 1).
    pub fn contiguous(&mut self, address: u64, bytes: u64) {
        let mut body = vec![3, 1];
        body.extend(address.to_le_bytes());
        body.extend(bytes.to_le_bytes());
        self.message(LAYOUT, &body);
    }

    /// Values in chunks of so many rows, which a B-tree of version 1 finds (IV.A.2.i, version 3, class 2).
    pub fn chunked(&mut self, tree: u64, rows: u32, width: u32) {
        let mut body = vec![3, 2, 2];
        body.extend(tree.to_le_bytes());
        body.extend(rows.to_le_bytes());
        body.extend(width.to_le_bytes());
        self.message(LAYOUT, &body);
    }

    /// Shuffle, where it is wanted, and deflate (IV.A.2.l, version 2).
    pub fn filters(&mut self, shuffled: Option<u32>, level: u32) {
        let mut body = vec![2, if shuffled.is_some() { 2 } else { 1 }];
        let given = shuffled.map(|width| (SHUFFLE, width)).into_iter().chain([(DEFLATE, level)]);
        for (filter, value) in given {
            for n in [filter, OPTIONAL, 1] {
                body.extend(n.to_le_bytes());
            }
            body.extend(value.to_le_bytes());
        }
        self.message(FILTERS, &body);
    }

    /// A text attribute as the library of dimension scales wants it: ASCII, one NUL behind it.
    pub fn mark(&mut self, name: &str, text: &str) {
        let mut datatype = vec![0x13, 0, 0, 0];
        datatype.extend((text.len() as u32 + 1).to_le_bytes());
        let mut data = text.as_bytes().to_vec();
        data.push(0);
        self.attribute_of(name, ASCII, &datatype, &dataspace(None), &data);
    }

    /// The dimension scales of one dimension: a list of one reference, which object `number` of the global heap at
    /// `heap` holds (IV.A.2.d, classes 7 and 9; VIII.A).
    pub fn dimension_list(&mut self, heap: u64, number: u32) {
        let mut datatype = vec![0x19, 0, 0, 0, 16, 0, 0, 0];
        datatype.extend([0x17, 0, 0, 0, 8, 0, 0, 0]);
        let mut data = 1_u32.to_le_bytes().to_vec();
        data.extend(heap.to_le_bytes());
        data.extend(number.to_le_bytes());
        self.attribute_of("DIMENSION_LIST", ASCII, &datatype, &dataspace(Some(1)), &data);
    }

    /// An attribute (IV.A.2.m, version 3).
    pub fn attribute(&mut self, (name, value): &Attr) {
        let (datatype, dataspace, data) = value_of(value);
        self.attribute_of(name, UTF8, &datatype, &dataspace, &data);
    }

    fn attribute_of(&mut self, name: &str, characters: u8, datatype: &[u8], dataspace: &[u8], data: &[u8]) {
        let mut body = vec![3, 0];
        for n in [name.len() + 1, datatype.len(), dataspace.len()] {
            body.extend((n.min(MAX_MESSAGE) as u16).to_le_bytes());
        }
        body.push(characters);
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(datatype);
        body.extend(dataspace);
        body.extend(data);
        self.message(ATTRIBUTE, &body);
    }
}

/// Datatype, dataspace and bytes of an attribute's value.
fn value_of(value: &AttrValue) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    match value {
        AttrValue::Text(text) | AttrValue::Other(text) => {
            let (kind, data) = texts(std::slice::from_ref(text));
            (kind, dataspace(None), data)
        }
        AttrValue::Texts(all) => {
            let (kind, data) = texts(all);
            (kind, dataspace(Some(all.len() as u64)), data)
        }
        AttrValue::Ints(dtype, values) => {
            let dtype = if *dtype == DType::Bool { DType::I8 } else { *dtype };
            let data = values.iter().flat_map(|v| number(dtype, Number::Int(*v))).collect();
            (datatype(Kind::Number(dtype)), dataspace(Some(values.len() as u64)), data)
        }
        AttrValue::Floats(dtype, values) => {
            let dtype = if *dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let data = values.iter().flat_map(|v| number(dtype, Number::Float(*v))).collect();
            (datatype(Kind::Number(dtype)), dataspace(Some(values.len() as u64)), data)
        }
    }
}

/// Datatype and bytes of texts, all of the length of the longest.
fn texts(all: &[String]) -> (Vec<u8>, Vec<u8>) {
    let width = all.iter().map(String::len).max().unwrap_or(0).max(1);
    let mut data = Vec::with_capacity(width * all.len());
    for (i, text) in all.iter().enumerate() {
        data.extend(text.as_bytes());
        data.resize(width * (i + 1), 0);
    }
    (datatype(Kind::Text(width)), data)
}

/// A number as little-endian bytes of a type.
fn number(dtype: DType, value: Number) -> Vec<u8> {
    match (dtype, value) {
        (DType::F64, Number::Float(f)) => f.to_le_bytes().to_vec(),
        (_, Number::Float(f)) => (f as f32).to_le_bytes().to_vec(),
        (_, Number::Int(i)) => i.to_le_bytes()[..dtype.size()].to_vec(),
    }
}

/// A dataspace (IV.A.2.b, version 2): of one dimension, or a scalar.
fn dataspace(n: Option<u64>) -> Vec<u8> {
    match n {
        None => vec![2, 0, 0, 0],
        Some(n) => {
            let mut body = vec![2, 1, 0, 1];
            body.extend(n.to_le_bytes());
            body
        }
    }
}

/// A datatype (IV.A.2.d, version 1), little-endian: a text of fixed length (class 3: UTF-8, NULs behind it), a float
/// (class 1) or an integer (class 0).
fn datatype(kind: Kind) -> Vec<u8> {
    let head = |class: u8, bits: [u8; 3], size: usize| {
        let mut body = vec![0x10 | class];
        body.extend(bits);
        body.extend((size as u32).to_le_bytes());
        body
    };
    let dtype = match kind {
        Kind::Text(width) => return head(3, [0x11, 0, 0], width),
        Kind::Number(dtype) => dtype,
    };
    let size = dtype.size();
    let precision = 8 * size as u16;
    // Sign, exponent and mantissa of IEEE 754: places and lengths in bits, and the exponent's bias.
    let float = match dtype {
        DType::F32 => Some((31, [23, 8, 0, 23], 127_u32)),
        DType::F64 => Some((63, [52, 11, 0, 52], 1023)),
        _ => None,
    };
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let mut body = match float {
        // The mantissa's highest bit is not stored.
        Some((sign, _, _)) => head(1, [0x20, sign, 0], size),
        None => head(0, [if signed { 0x08 } else { 0 }, 0, 0], size),
    };
    body.extend([0, 0]);
    body.extend(precision.to_le_bytes());
    if let Some((_, parts, bias)) = float {
        body.extend(parts);
        body.extend(bias.to_le_bytes());
    }
    body
}
