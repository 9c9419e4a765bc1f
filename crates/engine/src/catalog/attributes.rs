//! Attributes of a file as values of the catalog.

use sieva_catalog::{Attribute, Value};
use sieva_format::schema::{Attr, AttrValue};
use sieva_types::DType;

/// Numbers of a longer list are kept as text up to so many.
const MAX_LIST: usize = 16;
/// Bytes of a name, and of the texts of one object, that the catalog keeps.
const MAX_NAME: usize = 512;
const MAX_TEXT: usize = 64 << 10;
const MAX_TEXTS: usize = 8 << 20;
/// Attributes of one object that the catalog keeps.
const MAX_ATTRIBUTES: usize = 4096;

/// The attributes that can be asked for, and how many are left out: long lists, and what has no plain value.
pub(super) fn values(attrs: &[Attr]) -> (Vec<Attribute>, u64) {
    let usable = |(name, _): &&Attr| name.len() <= MAX_NAME && !name.contains('\0') && !name.is_empty();
    let found = attrs.iter().filter(usable).take(MAX_ATTRIBUTES);
    let mut left = MAX_TEXTS;
    let fits = |(_, value): &Attribute| {
        let Value::Text(text) = value else { return true };
        let fits = text.len() <= left;
        left = left.saturating_sub(text.len());
        fits
    };
    let kept = found.filter_map(|(name, v)| Some((name.clone(), value(v)?)));
    let kept: Vec<Attribute> = kept.filter(fits).collect();
    let left_out = attrs.len() - kept.len();
    (kept, left_out as u64)
}

/// An attribute's value: one number or text as it is, few numbers as the text of a list.
fn value(attr: &AttrValue) -> Option<Value> {
    match attr {
        AttrValue::Text(text) => short(text.clone()),
        AttrValue::Texts(texts) => match &texts[..] {
            [] => None,
            [one] => short(one.clone()),
            many if many.len() <= MAX_LIST => short(many.join(", ")),
            _ => None,
        },
        AttrValue::Ints(DType::Bool, numbers) if numbers.len() == 1 => Some(Value::Bool(numbers[0] != 0)),
        AttrValue::Ints(_, numbers) => match &numbers[..] {
            [one] => {
                i64::try_from(*one).map(Value::Int).or_else(|_| u64::try_from(*one).map(Value::UInt)).ok()
            }
            many => list(many.iter().map(i128::to_string)),
        },
        AttrValue::Floats(_, numbers) => match &numbers[..] {
            [one] => Some(Value::Float(*one)),
            many => list(many.iter().map(|x| format!("{x:?}"))),
        },
        AttrValue::Other(_) => None,
    }
}

fn short(text: String) -> Option<Value> {
    (text.len() <= MAX_TEXT).then_some(Value::Text(text))
}

fn list(numbers: impl ExactSizeIterator<Item = String>) -> Option<Value> {
    let is_kept = (1..=MAX_LIST).contains(&numbers.len());
    is_kept.then(|| Value::Text(format!("[{}]", numbers.collect::<Vec<_>>().join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: AttrValue) -> Option<Value> {
        values(&[("a".into(), value)]).0.pop().map(|(_, v)| v)
    }

    #[test]
    fn values_keep_their_types() {
        let f32 = f64::from(153.17f32);
        assert_eq!(one(AttrValue::Floats(DType::F32, vec![f32])), Some(Value::Float(f32)));
        assert_eq!(one(AttrValue::Ints(DType::U64, vec![u64::MAX.into()])), Some(Value::UInt(u64::MAX)));
        assert_eq!(one(AttrValue::Ints(DType::I8, vec![-3])), Some(Value::Int(-3)));
        assert_eq!(one(AttrValue::Ints(DType::Bool, vec![1])), Some(Value::Bool(true)));
        assert_eq!(one(AttrValue::Texts(vec!["x".into()])), Some(Value::Text("x".into())));
        let text = |text: &str| Some(Value::Text(text.into()));
        assert_eq!(one(AttrValue::Floats(DType::F64, vec![0.5, 2.0])), text("[0.5, 2.0]"));
        assert_eq!(one(AttrValue::Ints(DType::I32, vec![1, 2])), text("[1, 2]"));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let attrs: Vec<Attr> = vec![
            ("long".into(), AttrValue::Floats(DType::F64, vec![0.0; 17])),
            ("none".into(), AttrValue::Ints(DType::I32, vec![])),
            ("other".into(), AttrValue::Other("a reference".into())),
            ("x".repeat(600), AttrValue::Text("t".into())),
            ("kept".into(), AttrValue::Text(String::new())),
        ];
        assert_eq!(values(&attrs), (vec![("kept".into(), Value::Text(String::new()))], 4));
    }
}
