//! Schema and layouts from a checked header.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sieva_format::Warnings;
use sieva_format::decoding::Decoding;
use sieva_format::filters::Pipeline;
use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::schema::{ArrayInfo, Dimension, GroupInfo, Naming, Schema, StorageInfo};
use sieva_types::{Endian, Error, Result};

use crate::attributes::{attributes, fill};
use crate::chars::character_dims;
use crate::geometry::Geometry;
use crate::header::{Header, RawVar, few};
use crate::nctype::NcType;

/// The layout of an array, or why it cannot be read.
pub(crate) type LayoutResult = Result<Arc<Layout>>;

/// The schema of a file of `file_len` bytes, and the layouts of its arrays.
pub(crate) fn build(
    header: &Header,
    geometry: &Geometry,
    file_len: u64,
    mut warnings: Warnings,
) -> Result<(Schema, Vec<LayoutResult>)> {
    let schema = root(header, geometry, &mut warnings);
    let dim_names = header.dims.iter().map(|d| d.name.clone());
    let taken = dim_names.chain(header.vars.iter().map(|v| v.name.clone())).collect();
    let characters = character_dims(header, geometry);
    let mut builder =
        Builder { header, geometry, file_len, schema, warnings, characters, twins: HashMap::new(), taken };
    let mut layouts = Vec::new();
    let mut names = HashSet::new();
    for (v, var) in header.vars.iter().enumerate() {
        if names.insert(var.name.as_str()) {
            layouts.push(builder.variable(v, var)?);
        } else {
            builder
                .warnings
                .push(|| format!("two variables are called '{}': the second one is left out", var.name));
        }
    }
    let mut schema = builder.schema;
    schema.warnings = builder.warnings.into_vec();
    schema.resolve();
    Ok((schema, layouts))
}

/// The schema before its arrays.
fn root(header: &Header, geometry: &Geometry, warnings: &mut Warnings) -> Schema {
    let attrs = attributes(&header.attrs, "the file", warnings);
    let dims = header.dims.iter().enumerate().map(|(id, dim)| Dimension {
        name: dim.name.clone(),
        path: dim.name.clone(),
        len: geometry.dim_len(header, id),
        unlimited: geometry.record_dim == Some(id),
        naming: Naming::File,
        coordinate: None,
    });
    Schema {
        format: header.version.format().into(),
        groups: vec![GroupInfo { path: String::new(), attrs }],
        dims: dims.collect(),
        ..Schema::default()
    }
}

struct Builder<'a> {
    header: &'a Header,
    geometry: &'a Geometry,
    file_len: u64,
    schema: Schema,
    warnings: Warnings,
    /// Which dimensions hold the characters of texts.
    characters: Vec<bool>,
    /// The dimension that stands for the n-th further use of a dimension by one variable.
    twins: HashMap<(usize, usize), usize>,
    /// Names of dimensions and variables.
    taken: HashSet<String>,
}

impl Builder<'_> {
    /// Adds the array of variable `v` to the schema.
    fn variable(&mut self, v: usize, var: &RawVar) -> Result<LayoutResult> {
        let extent: Vec<u64> = var.dims.iter().map(|&id| self.geometry.dim_len(self.header, id)).collect();
        let char_dim = var.xtype == NcType::Char && var.dims.last().is_some_and(|&id| self.characters[id]);
        let rank = extent.len() - usize::from(char_dim);
        let owner = format!("variable '{}'", var.name);
        let attrs = attributes(&var.attrs, &owner, &mut self.warnings);
        let slab = self.geometry.slabs[v];
        let stored_bytes = if slab.is_record { self.geometry.records * slab.bytes } else { slab.bytes };
        let dims = self.distinct_dims(&var.dims[..rank])?;
        self.schema.arrays.push(ArrayInfo {
            path: var.name.clone(),
            dtype: var.xtype.dtype(),
            dims,
            shape: extent[..rank].to_vec(),
            attrs,
            enum_names: Vec::new(),
            decoding: Decoding::none(var.xtype.dtype()),
            storage: StorageInfo {
                layout: if slab.is_record { "record" } else { "contiguous" },
                chunk_shape: None,
                filters: Vec::new(),
                stored_type: var.xtype.numpy().into(),
                stored_bytes: Some(stored_bytes),
                offset: Some(var.begin),
            },
            coordinates: Vec::new(),
        });
        let place = self.check_place(v, var, &owner);
        Ok(place.map(|()| Arc::new(self.layout(v, var, extent, char_dim, stored_bytes))))
    }

    /// The dimensions `ids` where each further use of one by the same variable is a dimension of its own, so
    /// that a matrix `m(n, n)` has a row and a column.
    fn distinct_dims(&mut self, ids: &[usize]) -> Result<Vec<usize>> {
        let mut uses: HashMap<usize, usize> = HashMap::new();
        let mut dims = Vec::with_capacity(ids.len());
        for &id in ids {
            let nth = uses.entry(id).and_modify(|n| *n += 1).or_insert(0);
            dims.push(if *nth == 0 { id } else { self.twin(id, *nth)? });
        }
        Ok(dims)
    }

    fn twin(&mut self, id: usize, nth: usize) -> Result<usize> {
        if let Some(&twin) = self.twins.get(&(id, nth)) {
            return Ok(twin);
        }
        few(self.schema.dims.len() as u64 + 1, "dimensions")?;
        let original = &self.schema.dims[id];
        let mut name = format!("{}_{nth}", original.name);
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        let twin = Dimension { path: name.clone(), name, ..original.clone() };
        self.schema.dims.push(twin);
        self.twins.insert((id, nth), self.schema.dims.len() - 1);
        Ok(self.schema.dims.len() - 1)
    }

    /// Data may not begin within the header. Data that end past the end of the file can be read up to there.
    fn check_place(&mut self, v: usize, var: &RawVar, owner: &str) -> Result<()> {
        let span = self.geometry.span(v);
        if span == 0 {
            return Ok(());
        }
        if var.begin < self.header.end {
            let why = format!(
                "{owner} begins at offset {}, inside the header of {} bytes",
                var.begin, self.header.end
            );
            self.warnings.push(|| format!("{why}: it cannot be read"));
            return Err(Error::corrupt(why));
        }
        let end = var.begin + span;
        // Missing records are told once for all record variables.
        if end > self.file_len && !self.geometry.slabs[v].is_record {
            let file_len = self.file_len;
            self.warnings.push(|| {
                format!("{owner} ends at offset {end}, the file at {file_len}: reading what is missing fails")
            });
        }
        Ok(())
    }

    fn layout(&self, v: usize, var: &RawVar, extent: Vec<u64>, char_dim: bool, stored_bytes: u64) -> Layout {
        let element_size = var.xtype.size();
        let mut strides = c_strides(&extent, element_size as u64);
        if self.geometry.slabs[v].is_record {
            strides[0] = self.geometry.stride;
        }
        Layout {
            dtype: var.xtype.dtype(),
            endian: Endian::Big,
            element_size,
            chunk_shape: extent.clone(),
            extent,
            strides,
            base: 0,
            chunk_bytes: stored_bytes,
            pipeline: Pipeline::default(),
            placement: Placement::Direct { offset: var.begin },
            fill: fill(&var.attrs, var.xtype),
            char_dim,
            space_padded: false,
        }
    }
}
