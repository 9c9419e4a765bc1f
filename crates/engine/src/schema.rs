//! The three descriptors of a source (SDQuery, Su et al., SC13, section 3.3): where arrays lie, how they are
//! laid out along dimensions and coordinates, and what is known of their values.

use serde_json::{Map, Value as Json, json};
use sieva_format::decoding::Number;
use sieva_format::schema::{ArrayInfo, Attr, AttrValue};
use sieva_query::exec::{Column, Data};
use sieva_types::{Bx, DType, Result};

use crate::open::Source;

/// Coordinate arrays of at most this many values are given in full.
const MAX_COORDINATES: u64 = 1 << 20;

impl Source {
    /// The descriptors as JSON text. Reads coordinate arrays, nothing else.
    ///
    /// # Errors
    /// Reading errors of coordinate arrays.
    pub fn schema_json(&self) -> Result<String> {
        let schema = self.schema();
        let arrays = || schema.arrays.iter();
        let groups: Vec<Json> = schema
            .groups
            .iter()
            .map(|g| json!({"path": g.path, "attributes": attributes(&g.attrs)}))
            .collect();
        let out = json!({
            "source": {
                "path": self.path().display().to_string(),
                "format": schema.format,
                "bytes": self.reader().store().len(),
                "attributes": attributes(schema.attrs()),
                "groups": groups,
                "warnings": schema.warnings,
            },
            "physical": arrays().enumerate().map(|(i, a)| self.physical(i, a)).collect::<Vec<_>>(),
            "logical": {
                "dimensions": self.dimensions(),
                "arrays": arrays().map(|a| self.logical(a)).collect::<Vec<_>>(),
                "coordinates": self.coordinates()?,
            },
            "values": arrays().map(values).collect::<Vec<_>>(),
        });
        Ok(out.to_string())
    }

    fn physical(&self, array: usize, a: &ArrayInfo) -> Json {
        let pieces = self.pieces_of(array);
        let file = match &pieces[..] {
            [(file, ..)] => file.clone(),
            _ => self.path().display().to_string(),
        };
        let parts: Vec<Json> = pieces
            .iter()
            .map(|(file, start, count)| json!({"file": file, "start": start, "count": count}))
            .collect();
        json!({
            "array": a.path,
            "file": file,
            "parts": if parts.len() > 1 { Json::Array(parts) } else { Json::Null },
            "layout": a.storage.layout,
            "chunk_shape": a.storage.chunk_shape,
            "filters": a.storage.filters,
            "stored_type": a.storage.stored_type,
            "stored_bytes": a.storage.stored_bytes,
            "offset": a.storage.offset,
        })
    }

    fn dimensions(&self) -> Vec<Json> {
        let schema = self.schema();
        let each = schema.dims.iter().map(|d| {
            json!({
                "name": d.name,
                "path": d.path,
                "length": d.len,
                "unlimited": d.unlimited,
                "named": d.named,
                "coordinate": d.coordinate.map(|c| schema.arrays[c].path.as_str()),
            })
        });
        each.collect()
    }

    fn logical(&self, a: &ArrayInfo) -> Json {
        let schema = self.schema();
        json!({
            "path": a.path,
            "dtype": a.dtype.name(),
            "decoded_dtype": a.decoding.decoded().name(),
            "dimensions": a.dims.iter().map(|&d| schema.dims[d].name.as_str()).collect::<Vec<_>>(),
            "shape": a.shape,
            "coordinates": a.coordinates.iter().map(|&c| schema.arrays[c].path.as_str()).collect::<Vec<_>>(),
            "enumeration": a.enum_names.iter().map(|(v, n)| (n.clone(), json_int(*v))).collect::<Map<_, _>>(),
            "attributes": attributes(&a.attrs),
        })
    }

    /// The values of all coordinate arrays: those of dimensions, and auxiliary ones.
    fn coordinates(&self) -> Result<Json> {
        let schema = self.schema();
        let mut wanted: Vec<usize> = schema.dims.iter().filter_map(|d| d.coordinate).collect();
        wanted.extend(schema.arrays.iter().flat_map(|a| &a.coordinates));
        wanted.sort_unstable();
        wanted.dedup();
        let mut out = Map::new();
        for c in wanted {
            let info = &schema.arrays[c];
            if info.shape.iter().product::<u64>() <= MAX_COORDINATES {
                // A coordinate that cannot be read says why, and does not hide the rest of the schema.
                let value = match self.read_box(c, &Bx::whole(&info.shape), false) {
                    Ok(column) => column_json(&column),
                    Err(e) => json!({"error": e.to_string()}),
                };
                out.insert(info.path.clone(), value);
            }
        }
        Ok(Json::Object(out))
    }
}

/// What is known of an array's values without reading them.
fn values(a: &ArrayInfo) -> Json {
    let d = &a.decoding;
    let number = |n: &Option<Number>| n.map(json_number);
    json!({
        "array": a.path,
        "missing_values": d.missing.iter().map(|&n| json_number(n)).collect::<Vec<_>>(),
        "scale_factor": d.packing.map(|p| json_float(p.0)),
        "add_offset": d.packing.map(|p| json_float(p.1)),
        "valid_min": number(&d.valid.0),
        "valid_max": number(&d.valid.1),
        "distribution": Json::Null,
    })
}

/// Attributes as a JSON object: one value, or a list of several.
pub fn attributes(attrs: &[Attr]) -> Json {
    let one_or_list = |mut v: Vec<Json>| if v.len() == 1 { v.swap_remove(0) } else { Json::Array(v) };
    let value = |v: &AttrValue| match v {
        AttrValue::Text(s) | AttrValue::Other(s) => json!(s),
        AttrValue::Texts(v) => json!(v),
        AttrValue::Ints(DType::Bool, v) => one_or_list(v.iter().map(|&i| json!(i != 0)).collect()),
        AttrValue::Ints(_, v) => one_or_list(v.iter().map(|&i| json_int(i)).collect()),
        AttrValue::Floats(DType::F32 | DType::F16, v) => {
            one_or_list(v.iter().map(|&f| json_f32(f as f32)).collect())
        }
        AttrValue::Floats(_, v) => one_or_list(v.iter().map(|&f| json_float(f)).collect()),
    };
    Json::Object(attrs.iter().map(|(n, v)| (n.clone(), value(v))).collect())
}

fn json_int(i: i128) -> Json {
    i64::try_from(i)
        .map(Json::from)
        .or_else(|_| u64::try_from(i).map(Json::from))
        .unwrap_or_else(|_| json!(i.to_string()))
}

/// JSON has no NaN and no infinities: they are text.
fn json_float(f: f64) -> Json {
    serde_json::Number::from_f64(f).map_or_else(|| json!(float_word(f)), Json::Number)
}

/// A float32 as the shortest decimal that reads back to it.
fn json_f32(f: f32) -> Json {
    f.to_string().parse::<f64>().map_or_else(|_| json!(float_word(f.into())), json_float)
}

fn float_word(f: f64) -> &'static str {
    if f.is_nan() {
        "NaN"
    } else if f > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn json_number(n: Number) -> Json {
    match n {
        Number::Int(i) => json_int(i),
        Number::Float(f) => json_float(f),
    }
}

fn column_json(column: &Column) -> Json {
    let valid = |i: usize| column.valid.as_ref().is_none_or(|v| v[i]);
    macro_rules! list {
        ($v:expr, $f:expr) => {
            Json::Array(
                $v.iter().enumerate().map(|(i, x)| if valid(i) { $f(x) } else { Json::Null }).collect(),
            )
        };
    }
    match &column.data {
        Data::F32(v) => list!(v, |x: &f32| json_f32(*x)),
        Data::F64(v) => list!(v, |x: &f64| json_float(*x)),
        other => sieva_query::with_data!(other, v => list!(v, |x| json!(x))),
    }
}
