//! A writer of netCDF classic files for tests, written from the specification and apart from the reader,
//! and the simplest way to read data by a layout.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::layout::{Layout, Placement};
use sieva_format_netcdf3::Netcdf3Source;
use sieva_store::{MemoryStore, RangedRead};
use sieva_types::{Error, Result};

/// External types by code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum X {
    Byte = 1,
    Char,
    Short,
    Int,
    Float,
    Double,
    UByte,
    UShort,
    UInt,
    Int64,
    UInt64,
}

impl X {
    pub const ALL: [X; 11] = [
        X::Byte,
        X::Char,
        X::Short,
        X::Int,
        X::Float,
        X::Double,
        X::UByte,
        X::UShort,
        X::UInt,
        X::Int64,
        X::UInt64,
    ];

    pub fn size(self) -> usize {
        [1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8][self as usize - 1]
    }
}

#[derive(Clone, Debug)]
pub struct Attr {
    pub name: Vec<u8>,
    pub xtype: X,
    pub bytes: Vec<u8>,
}

pub fn attr(name: &str, xtype: X, bytes: &[u8]) -> Attr {
    Attr { name: name.into(), xtype, bytes: bytes.to_vec() }
}

#[derive(Clone, Debug)]
pub struct Var {
    pub name: Vec<u8>,
    pub dims: Vec<u64>,
    pub attrs: Vec<Attr>,
    pub xtype: X,
    /// As stored, records without padding one after the other.
    pub data: Vec<u8>,
    /// Written instead of the true one.
    pub begin: Option<u64>,
    /// Written instead of the true one.
    pub vsize: Option<u64>,
}

/// A file to be written. `numrecs` counts the records that are written; the header may say otherwise.
#[derive(Clone, Debug)]
pub struct File {
    pub version: u8,
    pub numrecs: u64,
    pub said_numrecs: Option<u64>,
    pub dims: Vec<(Vec<u8>, u64)>,
    pub attrs: Vec<Attr>,
    pub vars: Vec<Var>,
    /// What padding is made of.
    pub padding: u8,
}

impl File {
    pub fn new(version: u8) -> Self {
        let (dims, attrs, vars) = (Vec::new(), Vec::new(), Vec::new());
        Self { version, numrecs: 0, said_numrecs: None, dims, attrs, vars, padding: 0 }
    }

    /// Adds a dimension and tells its id.
    pub fn dim(&mut self, name: &str, len: u64) -> u64 {
        self.dims.push((name.into(), len));
        self.dims.len() as u64 - 1
    }

    /// Adds a variable whose data are bytes counted up from a start of its own.
    pub fn var(&mut self, name: &str, xtype: X, dims: &[u64]) -> &mut Var {
        let mut n = xtype.size() as u64;
        for &d in dims {
            let len = self.dims[d as usize].1;
            n *= if len == 0 { self.numrecs } else { len };
        }
        let seed = 31 * self.vars.len() as u64;
        let data = (0..n).map(|i| (seed + i) as u8).collect();
        let (name, dims) = (name.into(), dims.to_vec());
        self.vars.push(Var { name, dims, attrs: Vec::new(), xtype, data, begin: None, vsize: None });
        self.vars.last_mut().unwrap()
    }

    fn is_record(&self, var: &Var) -> bool {
        var.dims.first().is_some_and(|&d| self.dims[d as usize].1 == 0)
    }

    /// Bytes of a variable's data, of a record variable in one record.
    fn slab(&self, var: &Var) -> u64 {
        let lens = var.dims.iter().map(|&d| self.dims[d as usize].1).filter(|&n| n != 0);
        lens.fold(var.xtype.size() as u64, |a, b| a.wrapping_mul(b))
    }

    /// The bytes of the file.
    pub fn build(&self) -> Vec<u8> {
        let mut begin = self.header(&vec![0; self.vars.len()]).len() as u64;
        let mut begins = vec![0; self.vars.len()];
        let alone = self.vars.iter().filter(|v| self.is_record(v)).count() == 1;
        for is_record in [false, true] {
            for (v, var) in self.vars.iter().enumerate().filter(|(_, v)| self.is_record(v) == is_record) {
                begins[v] = begin;
                let len = if is_record { self.slab(var) } else { var.data.len() as u64 };
                begin += if is_record && alone { len } else { len.next_multiple_of(4) };
            }
        }
        let mut out = self.header(&begins);
        for var in self.vars.iter().filter(|v| !self.is_record(v)) {
            self.padded(&mut out, &var.data);
        }
        for r in 0..self.numrecs as usize {
            for var in self.vars.iter().filter(|v| self.is_record(v)) {
                let n = self.slab(var) as usize;
                let slab = &var.data[r * n..(r + 1) * n];
                if alone { out.extend_from_slice(slab) } else { self.padded(&mut out, slab) }
            }
        }
        out
    }

    /// Length of the header.
    pub fn header_len(&self) -> usize {
        self.header(&vec![0; self.vars.len()]).len()
    }

    fn header(&self, begins: &[u64]) -> Vec<u8> {
        let mut out = vec![b'C', b'D', b'F', self.version];
        self.count(&mut out, self.said_numrecs.unwrap_or(self.numrecs));
        self.list(&mut out, 10, self.dims.len());
        for (name, len) in &self.dims {
            self.name(&mut out, name);
            self.count(&mut out, *len);
        }
        self.attributes(&mut out, &self.attrs);
        self.list(&mut out, 11, self.vars.len());
        for (var, &begin) in self.vars.iter().zip(begins) {
            self.name(&mut out, &var.name);
            self.count(&mut out, var.dims.len() as u64);
            for &d in &var.dims {
                self.count(&mut out, d);
            }
            self.attributes(&mut out, &var.attrs);
            out.extend((var.xtype as u32).to_be_bytes());
            self.count(&mut out, var.vsize.unwrap_or(self.slab(var).next_multiple_of(4)));
            let begin = var.begin.unwrap_or(begin);
            if self.version == 1 {
                out.extend((begin as u32).to_be_bytes());
            } else {
                out.extend(begin.to_be_bytes());
            }
        }
        out
    }

    fn count(&self, out: &mut Vec<u8>, n: u64) {
        if self.version == 5 { out.extend(n.to_be_bytes()) } else { out.extend((n as u32).to_be_bytes()) }
    }

    fn list(&self, out: &mut Vec<u8>, tag: u32, n: usize) {
        out.extend(if n == 0 { 0 } else { tag }.to_be_bytes());
        self.count(out, n as u64);
    }

    fn padded(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend_from_slice(bytes);
        out.resize(out.len() + (4 - bytes.len() % 4) % 4, self.padding);
    }

    fn name(&self, out: &mut Vec<u8>, name: &[u8]) {
        self.count(out, name.len() as u64);
        self.padded(out, name);
    }

    fn attributes(&self, out: &mut Vec<u8>, attrs: &[Attr]) {
        self.list(out, 12, attrs.len());
        for attr in attrs {
            self.name(out, &attr.name);
            out.extend((attr.xtype as u32).to_be_bytes());
            self.count(out, (attr.bytes.len() / attr.xtype.size()) as u64);
            self.padded(out, &attr.bytes);
        }
    }
}

pub fn store(bytes: Vec<u8>) -> Arc<dyn RangedRead> {
    Arc::new(MemoryStore::new("test.nc", bytes))
}

pub fn open(file: &File) -> Netcdf3Source {
    Netcdf3Source::open(store(file.build())).unwrap()
}

/// The error of opening these bytes.
pub fn refused(bytes: Vec<u8>) -> Error {
    Netcdf3Source::open(store(bytes)).err().expect("opened")
}

/// All elements of an array as stored, in C order, one read per element.
pub fn read(source: &Netcdf3Source, path: &str) -> Result<Vec<u8>> {
    let array = source.schema().array(path).unwrap();
    let layout = source.layout(array)?;
    let Placement::Direct { offset } = layout.placement else { panic!("{:?}", layout.placement) };
    let mut out = Vec::new();
    for i in 0..layout.extent.iter().product() {
        let mut element = vec![0; layout.element_size];
        source.store().read_exact_at(offset + element_offset(&layout, i), &mut element)?;
        out.extend(element);
    }
    Ok(out)
}

fn element_offset(layout: &Layout, mut i: u64) -> u64 {
    let mut offset = layout.base;
    for d in (0..layout.extent.len()).rev() {
        offset += i % layout.extent[d] * layout.strides[d];
        i /= layout.extent[d];
    }
    offset
}
