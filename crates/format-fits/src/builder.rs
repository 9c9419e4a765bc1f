//! The schema and the layouts, put together array by array.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sieva_format::decoding::Decoding;
use sieva_format::filters::Pipeline;
use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::schema::{ArrayInfo, Attr, Dimension, GroupInfo, Naming, Schema, StorageInfo};
use sieva_types::{DType, Endian, Error, ErrorKind, Result};

use crate::blocks::Blocks;
use crate::tiled::Tiled;

/// The most arrays of a file that are listed.
const MAX_ARRAYS: usize = 65536;

/// How chunks of an array are fetched.
#[derive(Debug)]
pub(crate) enum Fetch {
    /// The block reader reads them itself.
    Direct,
    /// Blocks of rows.
    Blocks(Blocks),
    /// Compressed tiles.
    Tiles(Box<Tiled>),
}

/// An array's layout, or why it cannot be read, and the way to its chunks.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The layout.
    pub(crate) layout: Result<Arc<Layout>>,
    /// The way to its chunks.
    pub(crate) fetch: Fetch,
}

/// An array to add.
pub(crate) struct NewArray {
    /// Its path.
    pub(crate) path: String,
    /// Its path by the number of its HDU.
    pub(crate) alias: String,
    /// Its dimensions.
    pub(crate) dims: Vec<usize>,
    /// Its attributes.
    pub(crate) attrs: Vec<Attr>,
    /// What its stored values mean.
    pub(crate) decoding: Decoding,
    /// How it is stored.
    pub(crate) storage: StorageInfo,
    /// Where its elements are.
    pub(crate) planned: Planned,
}

/// The schema so far.
pub(crate) struct Builder {
    /// What is known; decodings are kept apart until names are resolved.
    pub(crate) schema: Schema,
    decodings: Vec<Decoding>,
    planned: Vec<Planned>,
    aliases: Vec<(String, usize)>,
    phony: HashMap<(String, u64), Vec<usize>>,
    phony_count: usize,
    dropped: usize,
}

/// A schema whose decodings are those of FITS, and the arrays' plans.
pub(crate) struct Built {
    /// The schema.
    pub(crate) schema: Schema,
    /// One per array.
    pub(crate) planned: Vec<Planned>,
    /// One per array; resolving names again loses them.
    pub(crate) decodings: Vec<Decoding>,
}

impl Builder {
    /// A schema with nothing but its root.
    pub(crate) fn new(attrs: Vec<Attr>) -> Self {
        let groups = vec![GroupInfo { path: String::new(), attrs }];
        Self {
            schema: Schema { format: "FITS".into(), groups, ..Schema::default() },
            decodings: Vec::new(),
            planned: Vec::new(),
            aliases: Vec::new(),
            phony: HashMap::new(),
            phony_count: 0,
            dropped: 0,
        }
    }

    /// Dimensions of these lengths for an array of a group: those that the group has of a length are shared, in
    /// order, as the netCDF library shares them.
    pub(crate) fn phony_dims(&mut self, group: &str, shape: &[u64]) -> Vec<usize> {
        let mut used: HashMap<u64, usize> = HashMap::new();
        let mut dims = Vec::with_capacity(shape.len());
        for &len in shape {
            let nth = *used.entry(len).and_modify(|n| *n += 1).or_insert(0);
            let known = self.phony.get(&(group.to_owned(), len)).and_then(|known| known.get(nth)).copied();
            dims.push(known.unwrap_or_else(|| {
                let name = format!("phony_dim_{}", self.phony_count);
                self.phony_count += 1;
                let dim = self.dim(group, name, len, Naming::Length);
                self.phony.entry((group.to_owned(), len)).or_default().push(dim);
                dim
            }));
        }
        dims
    }

    /// A new dimension.
    pub(crate) fn dim(&mut self, group: &str, name: String, len: u64, naming: Naming) -> usize {
        let path = if group.is_empty() { name.clone() } else { format!("{group}/{name}") };
        self.schema.dims.push(Dimension { name, path, len, unlimited: false, naming, coordinate: None });
        self.schema.dims.len() - 1
    }

    /// Says of a path why there is no array.
    pub(crate) fn leave_out(&mut self, path: String, reason: impl Into<String>) {
        if self.schema.left_out.len() < MAX_ARRAYS {
            self.schema.left_out.push((path, Error::new(ErrorKind::Unsupported, reason)));
        }
    }

    /// Whether there is room for another array.
    pub(crate) fn has_room(&mut self) -> bool {
        let room = self.planned.len() < MAX_ARRAYS;
        self.dropped += usize::from(!room);
        room
    }

    /// Adds an array.
    pub(crate) fn add(&mut self, new: NewArray) {
        let shape = new.dims.iter().map(|&d| self.schema.dims[d].len).collect();
        if new.alias != new.path {
            self.aliases.push((new.alias, self.planned.len()));
        }
        self.schema.arrays.push(ArrayInfo {
            path: new.path,
            dtype: new.decoding.stored,
            dims: new.dims,
            shape,
            attrs: new.attrs,
            enum_names: Vec::new(),
            decoding: Decoding::none(new.decoding.stored),
            storage: new.storage,
            coordinates: Vec::new(),
        });
        self.decodings.push(new.decoding);
        self.planned.push(new.planned);
    }

    /// The finished schema.
    pub(crate) fn finish(mut self, warnings: Vec<String>) -> Built {
        self.schema.warnings = warnings;
        if self.dropped > 0 {
            let message = format!("{} arrays beyond the first {MAX_ARRAYS} are left out", self.dropped);
            self.schema.warnings.push(message);
        }
        let paths: HashSet<&str> = self.schema.arrays.iter().map(|a| a.path.as_str()).collect();
        let mut aliases = self.aliases;
        aliases.retain(|(path, _)| !paths.contains(path.as_str()));
        self.schema.aliases = aliases;
        Built { schema: self.schema, planned: self.planned, decodings: self.decodings }
    }
}

/// A layout of big-endian elements in C order; what differs is for the caller to change.
pub(crate) fn plain_layout(dtype: DType, element_size: usize, extent: Vec<u64>) -> Layout {
    let strides = c_strides(&extent, element_size as u64);
    let bytes = extent.iter().fold(element_size as u64, |n, &len| n.saturating_mul(len));
    Layout {
        dtype,
        endian: Endian::Big,
        element_size,
        chunk_shape: extent.clone(),
        extent,
        strides,
        base: 0,
        chunk_bytes: bytes,
        pipeline: Pipeline::default(),
        placement: Placement::Unallocated,
        fill: vec![0; element_size],
        char_dim: false,
        space_padded: dtype == DType::Str,
    }
}

/// The same cut into chunks of `chunk_shape` that the source fetches.
pub(crate) fn chunked_layout(layout: Layout, chunk_shape: Vec<u64>) -> Layout {
    let strides = c_strides(&chunk_shape, layout.element_size as u64);
    let chunk_bytes = chunk_shape.iter().fold(layout.element_size as u64, |n, &len| n.saturating_mul(len));
    Layout { chunk_shape, strides, chunk_bytes, placement: Placement::Objects, ..layout }
}

/// How numpy writes a big-endian type.
pub(crate) fn numpy_name(dtype: DType, size: usize) -> String {
    match dtype {
        DType::Bool => "|b1".into(),
        DType::Str => format!("|S{size}"),
        DType::U8 => "|u1".into(),
        DType::I8 => "|i1".into(),
        DType::U16 | DType::U32 | DType::U64 => format!(">u{size}"),
        DType::I16 | DType::I32 | DType::I64 => format!(">i{size}"),
        _ => format!(">f{size}"),
    }
}
