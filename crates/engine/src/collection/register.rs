//! What a catalog is told of a source: its groups and arrays with their attributes, and its manifest.

use sieva_catalog::{ObjectRecord, SourceRecord, Value};
use sieva_format::manifest::{Layouts, Manifest};
use sieva_format::schema::{Attr, AttrValue};
use sieva_types::{DType, Result};

use crate::open::Source;

/// The record of an open source under its path, with the layouts of all of its arrays.
///
/// # Errors
/// `stale-source` where it was changed since it was opened.
pub fn record_of(source: &Source) -> Result<SourceRecord> {
    let manifest = Manifest::take(&**source.reader(), Layouts::All)?;
    let location = source.path().display().to_string();
    let (schema, len) = (source.schema(), manifest.object_len());
    let mut record = SourceRecord::new(location, &schema.format, len, manifest.object_version());
    for group in &schema.groups {
        let mut object = ObjectRecord::group(&group.path);
        object.attributes = attributes(&group.attrs);
        record = record.object(object);
    }
    for array in &schema.arrays {
        let mut object = ObjectRecord::array(&array.path, &array.storage.stored_type, &array.shape);
        object.attributes = attributes(&array.attrs);
        object.stored_bytes = array.storage.stored_bytes;
        record = record.object(object);
    }
    record.manifest = Some(manifest.encode());
    Ok(record)
}

/// The attributes that are one value.
fn attributes(attrs: &[Attr]) -> Vec<(String, Value)> {
    attrs.iter().filter_map(|(key, value)| Some((key.clone(), one(value)?))).collect()
}

fn one(value: &AttrValue) -> Option<Value> {
    match value {
        AttrValue::Text(text) => Some(Value::Text(text.clone())),
        AttrValue::Ints(DType::Bool, all) => match all[..] {
            [one] => Some(Value::Bool(one != 0)),
            _ => None,
        },
        AttrValue::Ints(_, all) => match all[..] {
            [one] => i64::try_from(one).map(Value::Int).or_else(|_| u64::try_from(one).map(Value::UInt)).ok(),
            _ => None,
        },
        AttrValue::Floats(_, all) => match all[..] {
            [one] => Some(Value::Float(one)),
            _ => None,
        },
        AttrValue::Texts(_) | AttrValue::Other(_) => None,
    }
}
