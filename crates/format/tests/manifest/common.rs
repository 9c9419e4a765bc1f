//! A source made up for tests.

use std::sync::Arc;

use sieva_format::decoding::Decoding;
use sieva_format::filters::Pipeline;
use sieva_format::layout::{ChunkIndex, ChunkRef, Layout, Placement, c_strides};
use sieva_format::schema::{ArrayInfo, AttrValue, Dimension, GroupInfo, Naming, Schema, StorageInfo};
use sieva_format::{ArraySource, LibraryReader};
use sieva_store::{MemoryStore, RangedRead};
use sieva_types::{Bx, DType, Endian, Error, ErrorKind, Result, Texts};

/// A schema and layouts over bytes in memory.
pub struct Made {
    pub schema: Schema,
    pub layouts: Vec<Result<Arc<Layout>>>,
    pub store: Arc<dyn RangedRead>,
}

impl ArraySource for Made {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        self.layouts[array].clone()
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl LibraryReader for Made {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        out.fill(array as u8 + bx.rank() as u8);
        Ok(())
    }

    fn read_library_strings(&self, _: usize, bx: &Bx) -> Result<Texts> {
        Ok(Texts::repeated("text", bx.len() as usize))
    }
}

/// An empty object of so many bytes, counted up.
pub fn object(len: usize) -> Arc<dyn RangedRead> {
    Arc::new(MemoryStore::new("made", (0..len).map(|i| i as u8).collect::<Vec<_>>()))
}

/// A source of no arrays yet.
pub fn empty(len: usize) -> Made {
    let groups = vec![GroupInfo { path: String::new(), attrs: Vec::new() }];
    Made { schema: Schema { groups, ..Schema::default() }, layouts: Vec::new(), store: object(len) }
}

/// A dense little-endian layout of numbers.
pub fn layout(dtype: DType, extent: &[u64], chunk_shape: &[u64], placement: Placement) -> Layout {
    let size = dtype.size();
    Layout {
        dtype,
        endian: Endian::Little,
        element_size: size,
        extent: extent.to_vec(),
        chunk_shape: chunk_shape.to_vec(),
        strides: c_strides(chunk_shape, size as u64),
        base: 0,
        chunk_bytes: chunk_shape.iter().product::<u64>() * size as u64,
        pipeline: Pipeline::default(),
        placement,
        fill: vec![0; size],
        char_dim: false,
        space_padded: false,
    }
}

impl Made {
    /// Adds an array with dimensions of its own.
    pub fn add(&mut self, path: &str, shape: &[u64], layout: Layout) -> &mut ArrayInfo {
        let first = self.schema.dims.len();
        for (d, &len) in shape.iter().enumerate() {
            let name = format!("{path}_{d}");
            let path = name.clone();
            self.schema.dims.push(Dimension {
                name,
                path,
                len,
                unlimited: d == 0,
                naming: Naming::File,
                coordinate: None,
            });
        }
        self.schema.arrays.push(ArrayInfo {
            path: path.into(),
            dtype: layout.dtype,
            dims: (first..self.schema.dims.len()).collect(),
            shape: shape.to_vec(),
            attrs: vec![("units".into(), AttrValue::Text("K".into()))],
            enum_names: Vec::new(),
            decoding: Decoding::none(layout.dtype),
            storage: StorageInfo { layout: "chunked", ..StorageInfo::default() },
            coordinates: Vec::new(),
        });
        self.layouts.push(Ok(Arc::new(layout)));
        self.schema.arrays.last_mut().unwrap()
    }

    /// A little of everything: placements, errors, links.
    pub fn varied() -> Self {
        let mut made = empty(4000);
        let direct = layout(DType::I32, &[3, 4], &[3, 4], Placement::Direct { offset: 16 });
        made.add("direct", &[3, 4], direct)
            .attrs
            .push(("odd".into(), AttrValue::Floats(DType::F32, vec![f64::NAN, -0.0, f64::INFINITY, 1e-300])));
        let chunk = |offset, size| ChunkRef { offset, size, filter_mask: 0 };
        let index =
            ChunkIndex::new(4, vec![(0, chunk(100, 48)), (3, ChunkRef { filter_mask: 5, ..chunk(20, 7) })]);
        made.add("g/chunks", &[5, 6], layout(DType::F32, &[5, 6], &[3, 4], Placement::Chunks(index)));
        let inline = Placement::Inline(Arc::from([1, 2, 3, 4, 5, 6, 7, 8]));
        made.add("inline", &[1], layout(DType::F64, &[1], &[1], inline));
        made.add("never", &[2], layout(DType::U8, &[2], &[2], Placement::Unallocated));
        let library = Placement::Library("scale-offset filter".into());
        made.add("library", &[2], layout(DType::I16, &[2], &[2], library));
        made.add("broken", &[2], layout(DType::I16, &[2], &[2], Placement::Unallocated));
        let refused = Error::new(ErrorKind::LinkRefused, "leads out").hint("do not follow");
        *made.layouts.last_mut().unwrap() = Err(refused.clone());
        made.schema.left_out.push(("link".into(), refused));
        made.schema.warnings.push("said".into());
        made.schema.aliases.push(("other".into(), 1));
        made.schema.arrays[0].coordinates.push(2);
        made.schema.arrays[0].enum_names.push((-1, "minus".into()));
        made
    }
}
