//! The schema of the whole, and which file holds which piece of each array.

use std::collections::HashMap;
use std::sync::Arc;

use sieva_types::{DType, Endian, Error, ErrorKind, Result};

use super::axis::{Along, Files};
use super::outline::{Outline, Values};
use super::unpack::Unpack;
use crate::decoding::Decoding;
use crate::filters::Pipeline;
use crate::layout::{Layout, Parts, Placement, c_strides};
use crate::schema::{ArrayInfo, Dimension, Naming, Schema};

/// Attributes that say how stored values become values: not of values that have become so already.
const DECODED: [&str; 8] = [
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "valid_range",
    "valid_min",
    "valid_max",
    "_Unsigned",
];

/// Where an array of the whole is.
#[derive(Debug)]
pub(super) struct Pieces {
    /// File and array of each piece.
    pub of: Vec<(u32, u32)>,
    /// How a piece's values become those of the whole; empty: as they are stored.
    pub unpack: Vec<Option<Unpack>>,
}

/// Many files put together.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub schema: Schema,
    /// Of each array.
    pub layouts: Vec<Arc<Layout>>,
    /// Of each array; none of one whose values are held.
    pub pieces: Vec<Option<Pieces>>,
}

/// Puts files together.
///
/// # Errors
/// `dimension-mismatch` naming files, arrays or dimensions and what differs.
pub(super) fn plan(files: &Files<'_>, wanted: Option<&str>, valid_range: bool) -> Result<Whole> {
    let mut builder =
        Builder { files, valid_range, whole: Whole::default(), coords: HashMap::new(), seen: HashMap::new() };
    for group in groups(files.outlines) {
        let along = if group.len() > 1 { Some(files.along(&group, wanted)?) } else { None };
        if let Some(along) = &along {
            files.check_others(along)?;
        }
        builder.group(&group, along.as_ref())?;
    }
    Ok(builder.finish())
}

/// Files that hold the same arrays, in order of their first one.
fn groups(outlines: &[Outline]) -> Vec<Vec<usize>> {
    let mut number: HashMap<Vec<&str>, usize> = HashMap::new();
    // Files of one schema need not be compared by name.
    let mut known: HashMap<*const Schema, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (file, outline) in outlines.iter().enumerate() {
        let group = *known.entry(Arc::as_ptr(&outline.schema)).or_insert_with(|| {
            let mut paths: Vec<&str> = outline.schema.arrays.iter().map(|a| a.path.as_str()).collect();
            paths.sort_unstable();
            *number.entry(paths).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            })
        });
        groups[group].push(file);
    }
    groups
}

struct Builder<'a> {
    files: &'a Files<'a>,
    valid_range: bool,
    whole: Whole,
    /// Values of the dimensions' coordinates.
    coords: HashMap<usize, Values>,
    /// The file that a dimension was first seen in.
    seen: HashMap<usize, usize>,
}

impl Builder<'_> {
    fn group(&mut self, group: &[usize], along: Option<&Along>) -> Result<()> {
        let first = along.map_or(group[0], |a| a.order[0]);
        let outline = &self.files.outlines[first];
        let schema = Arc::clone(&outline.schema);
        if self.whole.schema.format.is_empty() {
            self.whole.schema.format.clone_from(&schema.format);
        }
        for g in &schema.groups {
            if !self.whole.schema.groups.iter().any(|known| known.path == g.path) {
                self.whole.schema.groups.push(g.clone());
            }
        }
        let new = along.filter(|a| a.is_new);
        let new_dim = new.map(|a| self.new_dimension(a)).transpose()?;
        let dims =
            (0..schema.dims.len()).map(|d| self.dimension(first, d, along)).collect::<Result<Vec<_>>>()?;
        for (i, info) in schema.arrays.iter().enumerate() {
            if self.whole.schema.array(&info.path).is_none() {
                self.array(first, i, along, &dims, new_dim)?;
            }
        }
        for (path, i) in &schema.aliases {
            if let Some(index) = self.whole.schema.array(&schema.arrays[*i].path) {
                self.whole.schema.aliases.push((path.clone(), index));
            }
        }
        for (d, &index) in dims.iter().enumerate() {
            let path = schema.dims[d].coordinate.map(|c| schema.arrays[c].path.as_str());
            let whole = &mut self.whole.schema;
            whole.dims[index].coordinate = whole.dims[index].coordinate.or(path.and_then(|p| whole.array(p)));
        }
        self.whole.schema.left_out.extend(schema.left_out.iter().cloned());
        let name = &self.files.names[first];
        self.whole.schema.warnings.extend(schema.warnings.iter().map(|w| format!("{name}: {w}")));
        Ok(())
    }

    fn new_dimension(&mut self, along: &Along) -> Result<usize> {
        let len = along.order.len() as u64;
        let whole = &mut self.whole.schema;
        if let Some(d) = whole.dims.iter().position(|d| d.path == along.dim) {
            if whole.dims[d].len == len {
                return Ok(d);
            }
            let message = format!(
                "{len} files with '{}' are stacked along '{}', which has length {} elsewhere",
                self.files.names[along.order[0]], along.dim, whole.dims[d].len
            );
            return Err(Error::new(ErrorKind::DimensionMismatch, message));
        }
        let (name, path) = (along.dim.clone(), along.dim.clone());
        whole.dims.push(Dimension {
            name,
            path,
            len,
            unlimited: false,
            naming: Naming::File,
            coordinate: None,
        });
        Ok(whole.dims.len() - 1)
    }

    /// The dimension of the whole that dimension `d` of file `first` is, or of the files that follow it.
    fn dimension(&mut self, first: usize, d: usize, along: Option<&Along>) -> Result<usize> {
        let outline = &self.files.outlines[first];
        let dim = &outline.schema.dims[d];
        let joined = along.filter(|a| !a.is_new && a.dim == dim.path);
        let len = match joined {
            Some(along) => along.order.iter().map(|&f| self.len_along(f, &along.dim)).sum(),
            None => outline.lens[d],
        };
        let values = match joined {
            Some(along) => self.joined_values(along)?,
            None => outline.coords[d].clone(),
        };
        let mut path = dim.path.clone();
        while let Some(known) = self.whole.schema.dims.iter().position(|k| k.path == path) {
            let other = self.coords.get(&known);
            if self.whole.schema.dims[known].len == len
                && other.is_none_or(|v| values.as_ref().is_none_or(|own| own.same(v)))
            {
                return Ok(known);
            }
            if dim.is_named() {
                return Err(self.differs(first, known, len));
            }
            path.push('_');
        }
        let name = crate::schema::leaf(&path).to_string();
        self.whole.schema.dims.push(Dimension { name, path, len, coordinate: None, ..dim.clone() });
        let index = self.whole.schema.dims.len() - 1;
        self.seen.insert(index, first);
        if let Some(values) = values {
            self.coords.insert(index, values);
        }
        Ok(index)
    }

    /// Files of different arrays whose dimensions do not agree; one array too many may be all that parts them.
    fn differs(&self, file: usize, known: usize, len: u64) -> Error {
        let dim = &self.whole.schema.dims[known];
        let name = &self.files.names[file];
        let other = self.seen.get(&known).copied().unwrap_or_default();
        let elsewhere = &self.files.names[other];
        let what = if dim.len == len {
            format!("'{name}' and '{elsewhere}' have different values of '{}'", dim.path)
        } else {
            format!("dimension '{}' has length {len} in '{name}' and {} in '{elsewhere}'", dim.path, dim.len)
        };
        let only = |a: usize, b: usize| {
            let (a, b) = (&self.files.outlines[a].schema, &self.files.outlines[b].schema);
            a.arrays.iter().find(|i| b.array(&i.path).is_none()).map(|i| i.path.clone())
        };
        let each = [(file, other), (other, file)]
            .map(|(a, b)| only(a, b).map(|array| format!("'{array}' is in '{}' only", self.files.names[a])));
        let each: Vec<String> = each.into_iter().flatten().collect();
        Error::new(ErrorKind::DimensionMismatch, format!("{what}; {}", each.join(", ")))
            .hint("files follow one another where they hold the same arrays, and lie side by side where their dimensions agree")
    }

    fn len_along(&self, file: usize, dim: &str) -> u64 {
        let outline = &self.files.outlines[file];
        outline.dim(dim).map_or(0, |d| outline.lens[d])
    }

    /// The coordinate's values of all files in order, counted from the first one's date; `None` where there is none.
    fn joined_values(&self, along: &Along) -> Result<Option<Values>> {
        let first = along.order[0];
        let each = |file: usize| {
            let o = &self.files.outlines[file];
            o.dim(&along.dim).and_then(|d| o.coords[d].as_ref())
        };
        let Some(Values::Numbers(dtype, _)) = each(first) else { return Ok(None) };
        let (mut bytes, mut floats, mut uniform) = (Vec::new(), Vec::new(), true);
        for &file in &along.order {
            let Some(values) = each(file) else { return Ok(None) };
            let Values::Numbers(own, held) = values else { return Ok(None) };
            let rebase = self.files.times(first, file, &along.dim)?;
            uniform &= own == dtype && rebase.is_none();
            bytes.extend_from_slice(held);
            for i in 0..self.len_along(file, &along.dim) as usize {
                let v = values.number(i).unwrap_or(f64::NAN);
                floats.push(match &rebase {
                    Some((from, to)) => from.to_datetime(v).map_or(f64::NAN, |date| to.to_number(&date)),
                    None => v,
                });
            }
        }
        if uniform {
            return Ok(Some(Values::Numbers(*dtype, bytes.into())));
        }
        let bytes: Vec<u8> = floats.iter().flat_map(|f| f.to_ne_bytes()).collect();
        Ok(Some(Values::Numbers(DType::F64, bytes.into())))
    }

    /// Adds array `i` of file `first`, and what follows it in other files.
    fn array(
        &mut self,
        first: usize,
        i: usize,
        along: Option<&Along>,
        dims: &[usize],
        new_dim: Option<usize>,
    ) -> Result<()> {
        let schema = &self.files.outlines[first].schema;
        let info = &schema.arrays[i];
        let is_coordinate = schema.dims.iter().any(|d| d.coordinate == Some(i));
        let mut own: Vec<usize> = info.dims.iter().map(|&d| dims[d]).collect();
        let axis = along.and_then(|a| info.dims.iter().position(|&d| schema.dims[d].path == a.dim));
        let stacked = new_dim.filter(|_| !is_coordinate);
        if let Some(d) = stacked {
            own.insert(0, d);
        }
        let shape: Vec<u64> = own.iter().map(|&d| self.whole.schema.dims[d].len).collect();
        let held = axis.filter(|_| is_coordinate).and_then(|_| self.coords.get(&own[0]).cloned());
        if let Some(Values::Numbers(dtype, bytes)) = held {
            self.push(info, own, shape.clone(), dtype, true);
            self.whole.layouts.push(Arc::new(inline(dtype, shape, bytes)));
            self.whole.pieces.push(None);
            return Ok(());
        }
        let joined = along.filter(|_| axis.is_some() || stacked.is_some());
        let Some(along) = joined else {
            let starts = vec![0, shape.first().copied().unwrap_or(1)];
            let of = vec![(first as u32, i as u32)];
            self.push(info, own, shape.clone(), info.dtype, false);
            self.put(info, shape, 0, starts, false, Pieces { of, unpack: Vec::new() });
            return Ok(());
        };
        let joint = self.files.joint(along, &info.path, self.valid_range)?;
        let mut starts = vec![0];
        let mut of = Vec::with_capacity(along.order.len());
        for &file in &along.order {
            let len = if stacked.is_some() { 1 } else { self.len_along(file, &along.dim) };
            starts.push(starts[starts.len() - 1] + len);
            let array = if self.files.alike(along, first, file) {
                Some(i)
            } else {
                self.files.outlines[file].schema.array(&info.path)
            };
            of.push((file as u32, array.unwrap_or(i) as u32));
        }
        self.push(info, own, shape.clone(), joint.dtype, !joint.unpack.is_empty());
        let pieces = Pieces { of, unpack: joint.unpack };
        self.put(info, shape, axis.unwrap_or(0), starts, stacked.is_some(), pieces);
        Ok(())
    }

    fn push(&mut self, info: &ArrayInfo, dims: Vec<usize>, shape: Vec<u64>, dtype: DType, decoded: bool) {
        let mut array = ArrayInfo { dtype, dims, shape, coordinates: Vec::new(), ..info.clone() };
        if decoded {
            array.attrs.retain(|(name, _)| !DECODED.contains(&name.as_str()));
            array.decoding = Decoding::none(dtype);
        }
        array.storage.layout = "parts";
        (array.storage.stored_bytes, array.storage.offset) = (None, None);
        self.whole.schema.arrays.push(array);
    }

    fn put(
        &mut self,
        info: &ArrayInfo,
        shape: Vec<u64>,
        axis: usize,
        starts: Vec<u64>,
        is_new: bool,
        pieces: Pieces,
    ) {
        let array = &self.whole.schema.arrays[self.whole.schema.arrays.len() - 1];
        let chunked = info.storage.chunk_shape.is_some();
        let mut chunk = info.storage.chunk_shape.clone().unwrap_or_else(|| info.shape.clone());
        chunk.truncate(info.shape.len());
        if is_new {
            chunk.insert(0, 1);
        }
        let size = if array.dtype == DType::Str { 1 } else { array.dtype.size() };
        let item = size as u64;
        let layout = Layout {
            dtype: array.dtype,
            endian: Endian::NATIVE,
            element_size: size,
            strides: c_strides(&shape, item),
            base: 0,
            chunk_bytes: chunk.iter().fold(item, |n, &c| n.saturating_mul(c.max(1))),
            chunk_shape: chunk.iter().map(|&c| c.max(1)).collect(),
            extent: shape,
            pipeline: Pipeline::default(),
            placement: Placement::Parts(Arc::new(Parts { axis, starts, is_new, chunked })),
            fill: vec![0; size],
            char_dim: false,
            space_padded: false,
        };
        self.whole.layouts.push(Arc::new(layout));
        self.whole.pieces.push(Some(pieces));
    }

    /// Finds what names refer to in the whole; how values are decoded stays as the files' readers found it.
    fn finish(self) -> Whole {
        let mut whole = self.whole;
        let decodings: Vec<Decoding> = whole.schema.arrays.iter().map(|a| a.decoding.clone()).collect();
        let warnings = std::mem::take(&mut whole.schema.warnings);
        whole.schema.resolve();
        whole.schema.warnings = warnings;
        for (array, decoding) in whole.schema.arrays.iter_mut().zip(decodings) {
            array.decoding = decoding;
        }
        whole
    }
}

/// The layout of values that are held.
fn inline(dtype: DType, shape: Vec<u64>, bytes: Arc<[u8]>) -> Layout {
    let size = dtype.size();
    Layout {
        dtype,
        endian: Endian::NATIVE,
        element_size: size,
        strides: c_strides(&shape, size as u64),
        base: 0,
        chunk_bytes: bytes.len() as u64,
        chunk_shape: shape.clone(),
        extent: shape,
        pipeline: Pipeline::default(),
        placement: Placement::Inline(bytes),
        fill: vec![0; size],
        char_dim: false,
        space_padded: false,
    }
}
