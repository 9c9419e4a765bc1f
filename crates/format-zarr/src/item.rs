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
    /// Bytes from one of its elements to the next.
    pub(crate) step: usize,
    /// Which part of a complex number it is: 0 the real one, 1 the imaginary one.
    pub(crate) part: Option<usize>,
}

/// What the parts of complex numbers are called, as h5py calls them.
pub(crate) const PARTS: [&str; 2] = ["r", "i"];

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
        let mut item = Self::default();
        item.add_element(String::new(), element, Vec::new());
        item
    }

    /// An item that is a complex number of two such elements.
    fn complex(of: Element) -> Self {
        let mut item = Self::default();
        item.add_complex("", of, &[]);
        item
    }

    /// The type of a version 2 array: a text of numpy's, or a list of members.
    pub(crate) fn parse_v2(value: &Value) -> Result<Self> {
        let mut item = Self::default();
        match value {
            Value::String(text) => {
                return match complex_v2(text) {
                    Some(of) => Ok(Self::complex(of)),
                    None => simple_v2(text).map(Self::simple),
                };
            }
            _ => item.add_fields(json::list(value, "dtype")?, "", 0, &parse_field_v2)?,
        }
        Ok(item)
    }

    /// The type of a version 3 array whose numbers are stored in the byte order `endian`.
    pub(crate) fn parse_v3(value: &Value, endian: Endian) -> Result<Self> {
        let (name, configuration) = json::named(value, "data_type")?;
        if let Some(of) = complex_v3(name, endian) {
            return Ok(Self::complex(of));
        }
        if !matches!(name, "struct" | "structured") {
            return simple_v3(name, configuration, endian).map(Self::simple);
        }
        let mut item = Self::default();
        let fields = json::list(member(configuration, "fields"), "fields of a struct")?;
        item.add_fields(fields, "", 0, &|field| parse_field_v3(field, endian))?;
        Ok(item)
    }

    /// Adds an element, or `shape` of them.
    fn add_element(&mut self, name: String, element: Element, shape: Vec<u64>) {
        let (offset, step) = (self.size, element.size);
        self.size = offset.saturating_add(step);
        self.members.push(Member { name, offset, element, shape, step, part: None });
    }

    /// Adds the two parts of a complex number, or of `shape` of them.
    fn add_complex(&mut self, name: &str, of: Element, shape: &[u64]) {
        let start = self.size;
        for (number, part) in PARTS.into_iter().enumerate() {
            let name = if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
            let (offset, step) = (start.saturating_add(number * of.size), 2 * of.size);
            let shape = shape.to_vec();
            self.members.push(Member { name, offset, element: of, shape, step, part: Some(number) });
        }
        self.size = start.saturating_add(2 * of.size);
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
                FieldKind::Element(element) => self.add_element(name, element, shape),
                FieldKind::Complex(of) => self.add_complex(&name, of, &shape),
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
    /// A complex number of two such elements.
    Complex(Element),
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
        Value::String(text) => match complex_v2(text) {
            Some(of) => FieldKind::Complex(of),
            None => within_compound(simple_v2(text), opaque_v2(text))?,
        },
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
    } else if let Some(of) = complex_v3(type_name, endian) {
        FieldKind::Complex(of)
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

/// The parts of numpy's complex numbers of this text, `<c8` or `<c16`.
fn complex_v2(text: &str) -> Option<Element> {
    let (order, size) = text.split_once('c').filter(|(order, _)| order.len() == 1)?;
    let half = match size {
        "8" => 4,
        "16" => 8,
        _ => return None,
    };
    simple_v2(&format!("{order}f{half}")).ok()
}

/// The parts of complex numbers of this name.
fn complex_v3(name: &str, endian: Endian) -> Option<Element> {
    let part = match name {
        "complex64" | "complex_float32" => "float32",
        "complex128" | "complex_float64" => "float64",
        _ => return None,
    };
    simple_v3(part, &Value::Null, endian).ok()
}

/// Bytes of a type of numpy's that has no plain values.
fn opaque_v2(text: &str) -> Option<usize> {
    let size: usize = text.get(2..)?.split('[').next()?.parse().ok()?;
    matches!(text.get(1..2)?, "c" | "V" | "M" | "m").then_some(size)
}

fn opaque_v3(name: &str) -> Option<usize> {
    match name {
        "numpy.datetime64" | "numpy.timedelta64" => Some(8),
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
            json!([["a", "<i2"], ["b", [["x", "|u1"], ["y", ">f8"]]], ["c", "|V8"], ["d", "<f4", [2, 3]]]);
        let item = Item::parse_v2(&dtype).unwrap();
        let places: Vec<_> = item.members.iter().map(|m| (m.name.as_str(), m.offset)).collect();
        assert_eq!(places, [("a", 0), ("b.x", 2), ("b.y", 3), ("d", 19)]);
        assert_eq!((item.size, item.left_out.len()), (43, 1));
        assert_eq!(item.members[3].shape, [2, 3]);
    }

    #[test]
    fn complex_numbers_are_two_members() {
        let places = |item: &Item| {
            item.members.iter().map(|m| (m.name.clone(), m.offset, m.step, m.part)).collect::<Vec<_>>()
        };
        let item = Item::parse_v2(&json!(">c16")).unwrap();
        assert_eq!(places(&item), [("r".into(), 0, 16, Some(0)), ("i".into(), 8, 16, Some(1))]);
        assert_eq!((item.size, item.members[1].element.numpy()), (16, ">f8".into()));
        let item = Item::parse_v3(&json!("complex64"), Endian::Little).unwrap();
        assert_eq!((item.size, item.members[0].element.numpy()), (8, "<f4".into()));
        let item = Item::parse_v2(&json!([["a", "|u1"], ["z", "<c8", [3]], ["b", "<i2"]])).unwrap();
        let expected =
            [("a".into(), 0, 1, None), ("z.r".into(), 1, 8, Some(0)), ("z.i".into(), 5, 8, Some(1))];
        assert_eq!(places(&item)[..3], expected);
        assert_eq!((item.members[3].offset, item.size), (25, 27));
        assert!(Item::parse_v2(&json!("<c32")).is_err());
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
