//! One array, as both versions describe it.

use serde_json::{Map, Value};
use sieva_format::filters::Filter;
use sieva_types::{Endian, Error, ErrorKind, Result, checked_len};

use crate::codecs::{Chain, Codec, Stage};
use crate::discover::Version;
use crate::element::{Kind, unsupported};
use crate::grid::Grid;
use crate::item::Item;
use crate::json::{self, member, wrong};
use crate::keys::ChunkKeys;

/// The name of a dimension as the array's metadata give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DimName {
    /// None.
    Unnamed,
    /// As seen from the array's group.
    Name(String),
    /// With the path of the group that defines it (NCZarr).
    Path(String, String),
}

/// One array.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<u64>,
    pub(crate) dims: Vec<DimName>,
    pub(crate) item: Item,
    /// The fill value as it is written; null where there is none.
    pub(crate) fill: Value,
    /// Whether the fill value means "missing", as xarray takes it.
    pub(crate) fill_is_missing: bool,
    pub(crate) keys: ChunkKeys,
    /// How it is divided and encoded, or why it cannot be read.
    pub(crate) grid: Result<Grid>,
}

impl Array {
    /// Parses the document of the array at `path`.
    pub(crate) fn parse(
        path: &str,
        attrs: &Map<String, Value>,
        document: &Value,
        version: Version,
    ) -> Result<Self> {
        match version {
            Version::V2 => Self::parse_v2(path, attrs, document),
            Version::V3 => Self::parse_v3(path, document),
        }
    }

    fn parse_v2(path: &str, attrs: &Map<String, Value>, document: &Value) -> Result<Self> {
        if member(document, "zarr_format").as_u64() != Some(2) {
            return Err(wrong("zarr_format", "2", member(document, "zarr_format")));
        }
        let shape = shape(document)?;
        let item = Item::parse_v2(member(document, "dtype"))?;
        let chunks = json::lengths(member(document, "chunks"), "chunks")?;
        let mut chain = chain_v2(document, shape.len())?;
        for filter in &mut chain.filters {
            if let Filter::Other { name, .. } = filter
                && item.members.iter().any(|m| m.element.kind == Kind::VarText)
            {
                let message = format!("no decoder for objects of the codec '{name}'");
                return Err(Error::new(ErrorKind::FilterUnavailable, message));
            }
        }
        prepare_texts(&item, &mut chain)?;
        let grid = Grid::new(&shape, &chunks, chain);
        let keys = ChunkKeys::v2(path, member(document, "dimension_separator"))?;
        let dims = dims_v2(attrs, document, shape.len());
        let fill = member(document, "fill_value").clone();
        Ok(Self { shape, dims, item, fill_is_missing: !fill.is_null(), fill, keys, grid })
    }

    fn parse_v3(path: &str, document: &Value) -> Result<Self> {
        refuse_unknown(document)?;
        let shape = shape(document)?;
        let chain = Chain::parse(member(document, "codecs"), shape.len(), 0);
        let item = Item::parse_v3(
            member(document, "data_type"),
            chain.as_ref().map_or(Endian::Little, innermost_endian),
        )?;
        let grid = chain.and_then(|mut chain| {
            prepare_texts(&item, &mut chain)?;
            let (name, configuration) = json::named(member(document, "chunk_grid"), "chunk_grid")?;
            if name != "regular" {
                return Err(unsupported(format!("chunk_grid '{name}': only regular grids are read")));
            }
            let chunks = json::lengths(member(configuration, "chunk_shape"), "chunk_shape")?;
            Grid::new(&shape, &chunks, chain)
        });
        let keys = ChunkKeys::v3(path, member(document, "chunk_key_encoding"))?;
        let dims = dims_v3(member(document, "dimension_names"), shape.len())?;
        let fill = member(document, "fill_value").clone();
        Ok(Self { shape, dims, item, fill, fill_is_missing: false, keys, grid })
    }
}

/// The byte order of the numbers in the chunks that are decoded.
fn innermost_endian(chain: &Chain) -> Endian {
    chain.shards.as_ref().map_or(chain.endian, |shards| innermost_endian(&shards.inner))
}

fn shape(document: &Value) -> Result<Vec<u64>> {
    let shape = json::lengths(member(document, "shape"), "shape")?;
    checked_len(&shape)?;
    Ok(shape)
}

/// Extensions that have to be understood; others say `must_understand: false`.
fn refuse_unknown(document: &Value) -> Result<()> {
    const KNOWN: [&str; 13] = [
        "zarr_format",
        "node_type",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "fill_value",
        "codecs",
        "attributes",
        "storage_transformers",
        "dimension_names",
        "consolidated_metadata",
        "_nczarr_array",
    ];
    if let Some(first) = member(document, "storage_transformers").as_array().and_then(|list| list.first()) {
        let message = format!("storage transformer {}", json::shown(first));
        return Err(unsupported(message));
    }
    for (name, value) in json::object(document, "zarr.json")? {
        let may_be_ignored = member(value, "must_understand") == &Value::Bool(false) || value.is_null();
        if !KNOWN.contains(&name.as_str()) && !may_be_ignored {
            return Err(unsupported(format!("extension '{name}', which has to be understood")));
        }
    }
    Ok(())
}

/// Filters and compressor of a version 2 array.
fn chain_v2(document: &Value, rank: usize) -> Result<Chain> {
    let axes = match member(document, "order") {
        Value::String(order) if order == "F" => (0..rank).rev().collect(),
        Value::String(order) if order == "C" => (0..rank).collect(),
        other => return Err(wrong("order", "\"C\" or \"F\"", other)),
    };
    let (filters, endian) = (Vec::new(), Endian::Little);
    let mut chain = Chain { axes, filters, endian, is_var_text: false, shards: None };
    let filters = member(document, "filters").as_array().map_or(&[][..], Vec::as_slice);
    let compressor = member(document, "compressor");
    if filters.len() > 64 {
        return Err(unsupported("more than 64 filters"));
    }
    for codec in filters.iter().chain((!compressor.is_null()).then_some(compressor)) {
        match Codec::v2(codec)?.stage(None)? {
            Stage::Nothing => {}
            Stage::VarTexts if chain.filters.is_empty() => chain.is_var_text = true,
            Stage::VarTexts => return Err(unsupported("texts of any length behind another filter")),
            Stage::Filter(filter) => chain.filters.push(filter),
        }
    }
    Ok(chain)
}

/// Texts become UTF-8 by a stage of their own; those of any length need a codec that frames them.
fn prepare_texts(item: &Item, chain: &mut Chain) -> Result<()> {
    if let Some(shards) = &mut chain.shards {
        return prepare_texts(item, &mut shards.inner);
    }
    let Some(first) = item.members.first() else { return Ok(()) };
    let element = first.element;
    let is_var_text = element.kind == Kind::VarText;
    let is_known = chain.filters.iter().all(Filter::is_supported);
    if is_var_text != chain.is_var_text && is_known {
        let message = format!(
            "elements of type '{}' and a codec that frames {}",
            element.numpy(),
            if chain.is_var_text { "texts" } else { "none" }
        );
        return Err(Error::corrupt(message));
    }
    if element.kind == Kind::Utf32 && element.size > 0 && first.name.is_empty() {
        let stage = Filter::Utf32 { text_size: element.size, endian: element.endian };
        chain.filters.insert(0, stage);
    }
    Ok(())
}

/// xarray's attribute, else NCZarr's references.
fn dims_v2(attrs: &Map<String, Value>, document: &Value, rank: usize) -> Vec<DimName> {
    if let Some(names) = attrs.get("_ARRAY_DIMENSIONS").and_then(Value::as_array).filter(|n| n.len() == rank)
    {
        return names.iter().map(dim_name).collect();
    }
    let nczarr = attrs.get("_nczarr_array").or_else(|| attrs.get("_NCZARR_ARRAY"));
    let nczarr = nczarr.unwrap_or_else(|| member(document, "_NCZARR_ARRAY"));
    let references =
        ["dimension_references", "dimrefs"].iter().find_map(|key| member(nczarr, key).as_array());
    match references.filter(|r| r.len() == rank) {
        Some(references) => references.iter().map(dim_reference).collect(),
        None => vec![DimName::Unnamed; rank],
    }
}

fn dim_name(name: &Value) -> DimName {
    match name.as_str().filter(|n| !n.is_empty() && !n.contains(['/', '\0'])) {
        Some(name) => DimName::Name(name.to_owned()),
        None => DimName::Unnamed,
    }
}

fn dim_reference(path: &Value) -> DimName {
    let path = path.as_str().and_then(|p| p.strip_prefix('/')).unwrap_or_default();
    let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
    // NCZarr calls a dimension without a name by its length.
    let is_named = !name.is_empty() && !name.starts_with("_Anonymous_Dim_") && !name.starts_with("_zdim");
    if is_named { DimName::Path(group.to_owned(), name.to_owned()) } else { DimName::Unnamed }
}

fn dims_v3(names: &Value, rank: usize) -> Result<Vec<DimName>> {
    match names {
        Value::Null => Ok(vec![DimName::Unnamed; rank]),
        Value::Array(names) if names.len() == rank => Ok(names.iter().map(dim_name).collect()),
        other => Err(wrong("dimension_names", &format!("{rank} names"), other)),
    }
}
