//! The three descriptors of a source (SDQuery, Su et al., SC13, section 3.3): where arrays lie, how they are
//! laid out along dimensions and coordinates, and what is known of their values.

use serde_json::{Map, Value as Json, json};
use sieva_format::decoding::Number;
use sieva_format::schema::{ArrayInfo, Attr, AttrValue};
use sieva_query::exec::{Column, Data};
use sieva_types::{Bx, DType, Error, ErrorKind, Result};

use crate::augment::GlobalHistogram;
use crate::open::Source;

/// Coordinate arrays of at most this many values are given in full.
const MAX_COORDINATES: u64 = 1 << 20;

impl Source {
    /// The descriptors as JSON text. Reads coordinate arrays, and what an index beside the source knows of values.
    ///
    /// # Errors
    /// `memory-limit` where the text would take more than a quarter of [`crate::OpenOptions::memory`]: who parses it needs
    /// some four times as much.
    pub fn schema_json(&self) -> Result<String> {
        let schema = self.schema();
        let arrays = || schema.arrays.iter();
        let mut out = Text { text: String::from("{\"source\":{"), most: self.memory() / 4 };
        out.member("path", json!(self.name()))?;
        out.member("format", json!(schema.format))?;
        out.member("bytes", json!(self.reader().store().len()))?;
        out.member("attributes", attributes(schema.attrs()))?;
        let groups = schema.groups.iter();
        out.list("groups", groups.map(|g| json!({"path": g.path, "attributes": attributes(&g.attrs)})))?;
        out.list("warnings", schema.warnings.iter().map(|w| json!(w)))?;
        out.close();
        out.list("physical", arrays().enumerate().map(|(i, a)| self.physical(i, a)))?;
        out.open("logical");
        out.list("dimensions", self.dimensions())?;
        out.list("arrays", arrays().map(|a| self.logical(a)))?;
        out.open("coordinates");
        for c in self.coordinates() {
            out.member(&schema.arrays[c].path, self.coordinate(c))?;
        }
        out.close();
        out.close();
        out.list("values", arrays().enumerate().map(|(i, a)| values(a, self.known_values(i))))?;
        out.text.push('}');
        Ok(out.text)
    }

    fn physical(&self, array: usize, a: &ArrayInfo) -> Json {
        let pieces = self.pieces_of(array);
        let file = match &pieces[..] {
            [(file, ..)] => file.clone(),
            _ => self.name(),
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

    fn dimensions(&self) -> impl Iterator<Item = Json> {
        let schema = self.schema();
        schema.dims.iter().map(|d| {
            json!({
                "name": d.name,
                "path": d.path,
                "length": d.len,
                "unlimited": d.unlimited,
                "named": d.is_named(),
                "coordinate": d.coordinate.map(|c| schema.arrays[c].path.as_str()),
            })
        })
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

    /// All coordinate arrays that are given in full: those of dimensions, and auxiliary ones.
    fn coordinates(&self) -> Vec<usize> {
        let schema = self.schema();
        let mut wanted: Vec<usize> = schema.dims.iter().filter_map(|d| d.coordinate).collect();
        wanted.extend(schema.arrays.iter().flat_map(|a| &a.coordinates));
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|&c| Bx::whole(&schema.arrays[c].shape).len() <= MAX_COORDINATES);
        wanted
    }

    /// The values of a coordinate. One that cannot be read says why, and does not hide the rest of the schema.
    fn coordinate(&self, array: usize) -> Json {
        match self.read_box(array, &Bx::whole(&self.schema().arrays[array].shape), false) {
            Ok(column) => column_json(&column),
            Err(e) => json!({"error": e.to_string()}),
        }
    }
}

/// JSON text of an object that is written member by member: as one value a schema of many arrays would take ten times as much.
struct Text {
    text: String,
    most: u64,
}

impl Text {
    /// Begins a member.
    fn key(&mut self, key: &str) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
        self.text.push_str(&Json::from(key).to_string());
        self.text.push(':');
    }

    fn member(&mut self, key: &str, value: Json) -> Result<()> {
        self.key(key);
        self.value(&value)
    }

    fn list(&mut self, key: &str, values: impl Iterator<Item = Json>) -> Result<()> {
        self.key(key);
        self.text.push('[');
        for (i, value) in values.enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            self.value(&value)?;
        }
        self.text.push(']');
        Ok(())
    }

    fn value(&mut self, value: &Json) -> Result<()> {
        self.text.push_str(&value.to_string());
        if self.text.len() as u64 <= self.most {
            return Ok(());
        }
        let message = format!(
            "the descriptors of the source take more than {} bytes as text, a quarter of its memory limit",
            self.most
        );
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("open the source with more (memory= in Python), or ask for one array: source[name]"))
    }

    /// Begins an object, which [`Text::close`] ends.
    fn open(&mut self, key: &str) {
        self.key(key);
        self.text.push('{');
    }

    fn close(&mut self) {
        self.text.push('}');
    }
}

/// What is known of an array's values without reading them.
fn values(a: &ArrayInfo, known: Option<GlobalHistogram>) -> Json {
    let d = &a.decoding;
    let number = |n: &Option<Number>| n.map(json_number);
    json!({
        "array": a.path,
        "missing_values": d.missing.iter().map(|&n| json_number(n)).collect::<Vec<_>>(),
        "scale_factor": d.packing.map(|p| json_float(p.0)),
        // An offset that is not given is -0.0.
        "add_offset": d.packing.map(|p| json_float(p.1 + 0.0)),
        "valid_min": number(&d.valid.0),
        "valid_max": number(&d.valid.1),
        "distribution": known.map(|known| distribution(&known)),
    })
}

/// How values are spread: of integers that are not packed, bounds are exact.
fn distribution(known: &GlobalHistogram) -> Json {
    let (low, high) = match (known.whole_range(), known.range()) {
        (Some((low, high)), _) => (json_int(low), json_int(high)),
        (None, Some((low, high))) => (json_float(low), json_float(high)),
        (None, None) => (Json::Null, Json::Null),
    };
    let histogram = known.has_bins().then(|| {
        let edges: Vec<Json> = match known.whole_edges() {
            Some(edges) => edges.into_iter().map(json_int).collect(),
            None => known.edges().into_iter().map(json_float).collect(),
        };
        let infinite = known.infinities();
        json!({"edges": edges, "counts": known.counts(), "infinite": [infinite.0, infinite.1]})
    });
    json!({
        "count": known.rows(), "missing": known.missing(), "min": low, "max": high, "histogram": histogram,
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
    let valid = |i: usize| column.valid.as_ref().is_none_or(|v| v.get(i));
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
