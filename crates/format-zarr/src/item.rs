//! Types of items: one element, or a compound of members.

use serde_json::Value;
use sieva_types::{Endian, Error, Result};

use crate::element::{Element, Kind, simple_v2, simple_v3, unsupported};
use crate::json::{self, member};

/// A member of a compound, or the whole item where it has no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Bytes before it in an item.
    pub(crate) offset: usize,
    pub(crate) element: Element,
    /// Its own dimensions.
    pub(crate) shape: Vec<u64>,
}

/// The type of an array's items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    /// Bytes of one item.
    pub(crate) size: usize,
    pub(crate) members: Vec<Member>,
    /// Members that have no plain values, with the reason.
    pub(crate) left_out: Vec<(String, Error)>,
}

/// The largest item; numpy's limit.
const MAX_ITEM: usize = i32::MAX as usize;
/// The deepest nesting of compounds.
const MAX_DEPTH: usize = 8;
/// The most members of a compound.
const MAX_MEMBERS: usize = 4096;

impl Item {
    /// An item that is one element.
    pub(crate) fn simple(element: Element) -> Self {
        let member = Member { name: String::new(), offset: 0, element, shape: Vec::new() };
        Self { size: element.size, members: vec![member], left_out: Vec::new() }
    }

    /// The type of a version 2 array: a text of numpy's, or a list of members.
    pub(crate) fn parse_v2(value: &Value) -> Result<Self> {
        let mut item = Self::default();
        match value {
            Value::String(text) => return simple_v2(text).map(Self::simple),
            _ => item.add_fields(json::list(value, "dtype")?, "", 0, &parse_field_v2)?,
        }
        Ok(item)
    }

    /// The type of a version 3 array whose numbers are stored in the byte order `endian`.
    pub(crate) fn parse_v3(value: &Value, endian: Endian) -> Result<Self> {
        let (name, configuration) = json::named(value, "data_type")?;
        if !matches!(name, "struct" | "structured") {
            return simple_v3(name, configuration, endian).map(Self::simple);
        }
        let mut item = Self::default();
        let fields = json::list(member(configuration, "fields"), "fields of a struct")?;
        item.add_fields(fields, "", 0, &|field| parse_field_v3(field, endian))?;
        Ok(item)
    }

    fn add_fields(
        &mut self,
        fields: &[Value],
        prefix: &str,
        depth: usize,
        parse: &dyn Fn(&Value) -> Result<Field>,
    ) -> Result<()> {
        if depth > MAX_DEPTH || fields.len().saturating_add(self.members.len()) > MAX_MEMBERS {
            return Err(unsupported(format!(
                "a compound of more than {MAX_MEMBERS} members or {MAX_DEPTH} levels"
            )));
        }
        for field in fields {
            let Field { name, shape, kind } = parse(field)?;
            let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            let copies = shape.iter().try_fold(1_usize, |n, &len| n.checked_mul(usize::try_from(len).ok()?));
            let start = self.size;
            match kind {
                FieldKind::Fields(inner) => {
                    self.add_fields(&inner, &name, depth + 1, parse)?;
                    if !shape.is_empty() {
                        self.members.retain(|m| m.offset < start);
                        self.left_out.push((name, unsupported("an array of compounds within a compound")));
                    }
                }
                FieldKind::Element(element) => {
                    self.size = start.saturating_add(element.size);
                    self.members.push(Member { name, offset: start, element, shape });
                }
                FieldKind::Opaque(size, why) => {
                    self.size = start.saturating_add(size);
                    self.left_out.push((name, why));
                }
            }
            let one = self.size - start;
            let end = copies.and_then(|n| n.checked_mul(one)).and_then(|n| n.checked_add(start));
            self.size = end
                .filter(|&n| n <= MAX_ITEM)
                .ok_or_else(|| Error::corrupt(format!("items of more than {MAX_ITEM} bytes")))?;
        }
        Ok(())
    }
}

struct Field {
    name: String,
    shape: Vec<u64>,
    kind: FieldKind,
}

enum FieldKind {
    Element(Element),
    Fields(Vec<Value>),
    /// Bytes without plain values.
    Opaque(usize, Error),
}

fn parse_field_v2(field: &Value) -> Result<Field> {
    let parts = json::list(field, "a member of dtype")?;
    let (Some(name), Some(dtype)) = (parts.first(), parts.get(1)) else {
        return Err(json::wrong("a member of dtype", "[name, type] or [name, type, shape]", field));
    };
    // [title, name] where it has both.
    let name = name.as_str().or_else(|| name.get(1)?.as_str());
    let name = name.ok_or_else(|| json::wrong("a member's name", "text", field))?.to_owned();
    let shape = match parts.get(2) {
        None => Vec::new(),
        Some(n) if n.is_u64() => json::lengths(&Value::Array(vec![n.clone()]), "a member's shape")?,
        Some(shape) => json::lengths(shape, "a member's shape")?,
    };
    let kind = match dtype {
        Value::Array(fields) => FieldKind::Fields(fields.clone()),
        Value::String(text) => within_compound(simple_v2(text), opaque_v2(text))?,
        other => return Err(json::wrong("a member's type", "text or a list", other)),
    };
    Ok(Field { name, shape, kind })
}

fn parse_field_v3(field: &Value, endian: Endian) -> Result<Field> {
    let name = field.get(0).unwrap_or_else(|| member(field, "name"));
    let data_type = field.get(1).unwrap_or_else(|| member(field, "data_type"));
    let name = name.as_str().ok_or_else(|| json::wrong("a member's name", "text", field))?.to_owned();
    let (type_name, configuration) = json::named(data_type, "a member's data_type")?;
    let kind = if matches!(type_name, "struct" | "structured") {
        FieldKind::Fields(json::list(member(configuration, "fields"), "fields of a struct")?.to_vec())
    } else {
        within_compound(simple_v3(type_name, configuration, endian), opaque_v3(type_name))?
    };
    Ok(Field { name, shape: Vec::new(), kind })
}

/// Texts of UTF-32 and of any length are decoded for whole chunks only.
fn within_compound(element: Result<Element>, opaque: Option<usize>) -> Result<FieldKind> {
    match (element, opaque) {
        (Ok(e), _) if e.kind == Kind::Utf32 => {
            Ok(FieldKind::Opaque(e.size, unsupported("UTF-32 texts within a compound")))
        }
        (Ok(e), _) if e.kind == Kind::VarText => Err(unsupported("texts of any length within a compound")),
        (Ok(e), _) => Ok(FieldKind::Element(e)),
        (Err(why), Some(size)) => Ok(FieldKind::Opaque(size, why)),
        (Err(why), None) => Err(why),
    }
}

/// Bytes of a type of numpy's that has no plain values.
fn opaque_v2(text: &str) -> Option<usize> {
    let size: usize = text.get(2..)?.split('[').next()?.parse().ok()?;
    matches!(text.get(1..2)?, "c" | "V" | "M" | "m").then_some(size)
}

fn opaque_v3(name: &str) -> Option<usize> {
    match name {
        "complex64" | "complex_float32" | "numpy.datetime64" | "numpy.timedelta64" => Some(8),
        "complex128" | "complex_float64" => Some(16),
        _ => name.strip_prefix('r')?.parse::<usize>().ok().filter(|n| n % 8 == 0).map(|n| n / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn compounds_are_packed() {
        let dtype =
            json!([["a", "<i2"], ["b", [["x", "|u1"], ["y", ">f8"]]], ["c", "<c8"], ["d", "<f4", [2, 3]]]);
        let item = Item::parse_v2(&dtype).unwrap();
        let places: Vec<_> = item.members.iter().map(|m| (m.name.as_str(), m.offset)).collect();
        assert_eq!(places, [("a", 0), ("b.x", 2), ("b.y", 3), ("d", 19)]);
        assert_eq!((item.size, item.left_out.len()), (43, 1));
        assert_eq!(item.members[3].shape, [2, 3]);
    }

    #[test]
    fn huge_compounds_are_refused() {
        let dtype = json!([["a", "<i8", [4_000_000_000_u64, 4_000_000_000_u64, 8]]]);
        assert!(Item::parse_v2(&dtype).is_err());
        let mut nested = json!("<i2");
        for _ in 0..20 {
            nested = json!([["a", nested]]);
        }
        assert!(Item::parse_v2(&nested).is_err());
    }
}
