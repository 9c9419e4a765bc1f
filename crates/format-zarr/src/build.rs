//! Schema, layouts, and where chunks come from: what opening makes of the metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_format::decoding::Decoding;
use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::schema::{ArrayInfo, GroupInfo, Schema, StorageInfo};
use sieva_types::{DType, Error, Result};

use crate::array::Array;
use crate::attributes::{attributes, of_member};
use crate::dims::Dims;
use crate::discover::{Found, Node, Version};
use crate::element::Kind;
use crate::fill;
use crate::grid::Grid;
use crate::item::Member;
use crate::keys::ChunkKeys;

/// The path of an array that is the root itself.
const ROOT_ARRAY: &str = "data";

/// Where the chunks of an array come from; members of a compound share it.
#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) keys: ChunkKeys,
    pub(crate) grid: Grid,
    /// The text that stands for elements never written, of texts of any length.
    pub(crate) fill_text: String,
}

/// What is known of one array of the schema.
pub(crate) struct Place {
    pub(crate) layout: Result<Arc<Layout>>,
    /// The number of the array in the source, which its members share.
    pub(crate) node: u32,
    pub(crate) chunks: Option<Arc<Chunks>>,
}

/// The schema of what was found, and where each of its arrays is.
pub(crate) fn build(found: &mut Found) -> (Schema, Vec<Place>) {
    let format = match found.version {
        Version::V2 => "Zarr 2",
        Version::V3 => "Zarr 3",
    };
    let schema =
        Schema { format: format.into(), left_out: std::mem::take(&mut found.left_out), ..Schema::default() };
    let mut builder = Builder { schema, dims: Dims::default(), places: Vec::new(), nodes: 0 };
    builder.add_groups(&found.nodes);
    // Outer groups first: their dimensions are seen from within.
    let mut paths: Vec<&String> = found.nodes.keys().collect();
    paths.sort_by_key(|path| path.matches('/').count());
    for path in paths {
        let node = &found.nodes[path];
        let Some(document) = &node.array else { continue };
        let added = Array::parse(path, node, document, found.version)
            .map(|array| builder.add_array(path, node, array));
        if let Err(e) = added {
            builder.schema.left_out.push((array_path(path, ""), e));
        }
    }
    let Builder { mut schema, dims, places, .. } = builder;
    schema.dims = dims.list;
    schema.resolve();
    (schema, places)
}

struct Builder {
    schema: Schema,
    dims: Dims,
    places: Vec<Place>,
    nodes: u32,
}

impl Builder {
    fn add_groups(&mut self, nodes: &BTreeMap<String, Node>) {
        for (path, node) in nodes {
            if path.is_empty() || node.array.is_none() {
                let is_array = node.array.is_some();
                let attrs = if is_array { Vec::new() } else { attributes(&node.attrs) };
                self.schema.groups.push(GroupInfo { path: path.clone(), attrs });
            }
        }
    }

    fn add_array(&mut self, path: &str, node: &Node, array: Array) {
        let group = path.rsplit_once('/').map_or("", |(group, _)| group);
        let dims = self.dims.assign(group, &array.dims, &array.shape);
        let fill_text = array.fill.as_str().unwrap_or_default().to_owned();
        let chunks = match &array.grid {
            Ok(grid) => Some(Arc::new(Chunks { keys: array.keys.clone(), grid: grid.clone(), fill_text })),
            Err(_) => None,
        };
        for (name, e) in &array.item.left_out {
            self.schema.left_out.push((array_path(path, name), e.clone()));
        }
        for member in &array.item.members {
            let inner = self.dims.inner(group, &member.shape, &dims);
            let fill = fill::bytes(&array.fill, &array.item, member);
            let attrs = of_member(&node.attrs, &array, member, fill.as_deref().unwrap_or_default());
            let full = array_path(path, &member.name);
            let layout = fill.and_then(|fill| layout(&array, member, fill));
            self.schema.arrays.push(ArrayInfo {
                dtype: member.element.dtype(),
                dims: dims.iter().chain(&inner).copied().collect(),
                shape: array.shape.iter().chain(&member.shape).copied().collect(),
                attrs,
                enum_names: Vec::new(),
                decoding: Decoding::none(member.element.dtype()),
                storage: storage(&array, member),
                coordinates: Vec::new(),
                path: full,
            });
            let layout = layout.map(Arc::new);
            self.places.push(Place { layout, node: self.nodes, chunks: chunks.clone() });
        }
        self.nodes = self.nodes.saturating_add(1);
    }
}

fn array_path(path: &str, member: &str) -> String {
    let path = if path.is_empty() { ROOT_ARRAY } else { path };
    if member.is_empty() { path.to_owned() } else { format!("{path}.{member}") }
}

fn storage(array: &Array, member: &Member) -> StorageInfo {
    let grid = array.grid.as_ref().ok();
    let with_inner = |shape: &[u64]| shape.iter().chain(&member.shape).copied().collect();
    StorageInfo {
        layout: "chunked",
        chunk_shape: grid.map(|g| with_inner(&g.chunk_shape)),
        filters: grid.map_or_else(Vec::new, Grid::codec_names),
        stored_type: member.element.numpy(),
        stored_bytes: None,
        offset: None,
    }
}

fn layout(array: &Array, member: &Member, fill: Vec<u8>) -> Result<Layout> {
    let grid = array.grid.as_ref().map_err(Error::clone)?;
    grid.check_codecs()?;
    let element = &member.element;
    let is_var_text = element.kind == Kind::VarText;
    let (mut strides, chunk_bytes) = grid.strides((array.item.size as u64).max(u64::from(is_var_text)))?;
    strides.extend(c_strides(&member.shape, element.size as u64));
    let with_inner = |shape: &[u64]| -> Vec<u64> { shape.iter().chain(&member.shape).copied().collect() };
    let placement = match is_var_text {
        true => Placement::Library("texts of any length".into()),
        false => Placement::Objects,
    };
    Ok(Layout {
        dtype: element.dtype(),
        endian: element.endian,
        element_size: element.size,
        extent: with_inner(&array.shape),
        chunk_shape: with_inner(&grid.chunk_shape),
        strides,
        base: member.offset as u64,
        chunk_bytes,
        pipeline: grid.pipeline.clone(),
        placement,
        fill,
        char_dim: false,
        space_padded: false,
    })
}

/// Whether elements of the array are texts that its library placement reads.
pub(crate) fn is_var_text(layout: &Layout) -> bool {
    layout.dtype == DType::Str && matches!(layout.placement, Placement::Library(_))
}
