//! Schema, layouts, and where chunks come from: what opening makes of the metadata.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use sieva_format::decoding::Decoding;
use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::schema::{ArrayInfo, Attr, AttrValue, GroupInfo, Schema, StorageInfo};
use sieva_types::{DType, Error, ErrorKind, Result};

use crate::array::Array;
use crate::attributes::{attributes, of_member};
use crate::budget::Budget;
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
    pub(crate) grid: Arc<Grid>,
    /// The text that stands for elements never written, of texts of any length.
    pub(crate) fill_text: Arc<str>,
}

/// What is known of one array of the schema.
pub(crate) struct Place {
    pub(crate) layout: Result<Arc<Layout>>,
    /// The number of the array in the source, which its members share.
    pub(crate) node: u32,
    pub(crate) chunks: Option<Arc<Chunks>>,
}

/// The schema of what was found, and where each of its arrays is.
///
/// # Errors
/// `memory-limit`.
pub(crate) fn build(found: &mut Found) -> Result<(Schema, Vec<Place>)> {
    let format = match found.version {
        Version::V2 => "Zarr 2",
        Version::V3 => "Zarr 3",
    };
    let schema =
        Schema { format: format.into(), left_out: std::mem::take(&mut found.left_out), ..Schema::default() };
    let dims = Dims::default();
    let mut builder = Builder { schema, dims, places: Vec::new(), nodes: 0, alike: HashMap::new() };
    let nodes = std::mem::take(&mut found.nodes);
    builder.add_groups(found, &nodes)?;
    // Outer groups first: their dimensions are seen from within.
    let mut paths: Vec<&String> = nodes.keys().collect();
    paths.sort_by_key(|path| path.matches('/').count());
    for path in paths {
        let (Some(document), attrs) = found.parse(&nodes[path])? else { continue };
        match Array::parse(path, &attrs, &document, found.version) {
            Ok(array) => builder.add_array(&mut found.documents.budget, path, &attrs, &array, &document)?,
            Err(e) => builder.leave_out(&mut found.documents.budget, array_path(path, ""), e)?,
        }
    }
    let Builder { mut schema, dims, places, .. } = builder;
    schema.dims = dims.list;
    schema.resolve();
    Ok((schema, places))
}

/// What arrays have in common whose documents are alike but for their attributes.
struct Alike {
    grid: Option<Arc<Grid>>,
    fill_text: Arc<str>,
    /// Of each member.
    layouts: Vec<Result<Arc<Layout>>>,
}

struct Builder {
    schema: Schema,
    dims: Dims,
    places: Vec<Place>,
    nodes: u32,
    /// By document without attributes: most arrays of a large group are alike.
    alike: HashMap<String, Arc<Alike>>,
}

impl Builder {
    fn add_groups(&mut self, found: &mut Found, nodes: &BTreeMap<String, Node>) -> Result<()> {
        for (path, node) in nodes {
            if path.is_empty() || node.array.is_none() {
                let is_array = node.array.is_some();
                let attrs = if is_array { Vec::new() } else { attributes(&found.parse(node)?.1) };
                found.documents.budget.hold(path.len() + size_of::<GroupInfo>() + size_of_attrs(&attrs))?;
                self.schema.groups.push(GroupInfo { path: path.clone(), attrs });
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, budget: &mut Budget, path: String, e: Error) -> Result<()> {
        if e.kind() == ErrorKind::MemoryLimit {
            return Err(e);
        }
        budget.hold(path.len() + e.message().len() + size_of::<(String, Error)>())?;
        self.schema.left_out.push((path, e));
        Ok(())
    }

    fn alike(&mut self, budget: &mut Budget, array: &Array, document: &Value) -> Result<Arc<Alike>> {
        let mut document = document.clone();
        if let Some(map) = document.as_object_mut() {
            map.remove("attributes");
        }
        let text = document.to_string();
        if let Some(known) = self.alike.get(&text) {
            return Ok(Arc::clone(known));
        }
        let grid = array.grid.as_ref().ok().map(|grid| Arc::new(grid.clone()));
        let fill_text = array.fill.as_str().unwrap_or_default().into();
        let layout = |member| {
            let fill = fill::bytes(&array.fill, &array.item, member)?;
            Ok(Arc::new(layout(array, member, fill)?))
        };
        let layouts: Vec<_> = array.item.members.iter().map(layout).collect();
        let rank = array.shape.len() + 4;
        budget
            .hold(text.len() + ALIKE + layouts.len() * (size_of::<Layout>() + rank * 3 * size_of::<u64>()))?;
        let made = Arc::new(Alike { grid, fill_text, layouts });
        self.alike.insert(text, Arc::clone(&made));
        Ok(made)
    }

    fn add_array(
        &mut self,
        budget: &mut Budget,
        path: &str,
        given: &Map<String, Value>,
        array: &Array,
        document: &Value,
    ) -> Result<()> {
        let group = path.rsplit_once('/').map_or("", |(group, _)| group);
        let dims = self.dims.assign(group, &array.dims, &array.shape);
        let alike = self.alike(budget, array, document)?;
        let chunks = alike.grid.as_ref().map(|grid| {
            let (grid, fill_text) = (Arc::clone(grid), Arc::clone(&alike.fill_text));
            Arc::new(Chunks { keys: array.keys.clone(), grid, fill_text })
        });
        for (name, e) in &array.item.left_out {
            self.leave_out(budget, array_path(path, name), e.clone())?;
        }
        for (member, layout) in array.item.members.iter().zip(&alike.layouts) {
            let inner = self.dims.inner(group, &member.shape, &dims);
            let fill = fill::bytes(&array.fill, &array.item, member);
            let attrs = of_member(given, array, member, fill.as_deref().unwrap_or_default());
            let rank = array.shape.len() + member.shape.len();
            budget.hold(2 * path.len() + ARRAY + rank * 4 * size_of::<u64>() + size_of_attrs(&attrs))?;
            self.schema.arrays.push(ArrayInfo {
                path: array_path(path, &member.name),
                dtype: member.element.dtype(),
                dims: dims.iter().chain(&inner).copied().collect(),
                shape: array.shape.iter().chain(&member.shape).copied().collect(),
                attrs,
                enum_names: Vec::new(),
                decoding: Decoding::none(member.element.dtype()),
                storage: storage(array, member),
                coordinates: Vec::new(),
            });
            let layout = layout.clone();
            self.places.push(Place { layout, node: self.nodes, chunks: chunks.clone() });
        }
        self.nodes = self.nodes.saturating_add(1);
        Ok(())
    }
}

/// About what one array takes besides its name, its numbers for each dimension and its attributes: they are small pieces of
/// memory, which take 32 bytes each.
const ARRAY: usize = size_of::<ArrayInfo>() + size_of::<Place>() + size_of::<Chunks>() + 10 * 32;
/// About what arrays have in common.
const ALIKE: usize = size_of::<Alike>() + size_of::<Grid>() + 10 * 32;

/// About what attributes take.
fn size_of_attrs(attrs: &[Attr]) -> usize {
    let size = |(name, value): &Attr| {
        let value = match value {
            AttrValue::Text(text) | AttrValue::Other(text) => text.len(),
            AttrValue::Texts(texts) => texts.iter().map(|t| t.len() + size_of::<String>() + 16).sum(),
            AttrValue::Ints(_, numbers) => size_of_val(&numbers[..]),
            AttrValue::Floats(_, numbers) => size_of_val(&numbers[..]),
        };
        name.len() + value + size_of::<Attr>() + 32
    };
    attrs.iter().map(size).sum()
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
    strides.extend(c_strides(&member.shape, member.step as u64));
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
