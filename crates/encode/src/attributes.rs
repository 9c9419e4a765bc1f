//! Attributes of the file and of its variables: what the source says, as far as it is true of decoded rows.

use sieva::{ArrayInfo, Attr, AttrValue, DType, FieldSource, Query, RowField};

/// How stored values become values: not true of decoded ones.
const PACKING: [&str; 6] =
    ["scale_factor", "add_offset", "_Unsigned", "valid_range", "valid_min", "valid_max"];
/// What is said anew, or means other variables by their place.
const REPLACED: [&str; 4] = ["_FillValue", "missing_value", "coordinates", "_Encoding"];
/// What HDF5 and netCDF keep in attributes for themselves.
const INTERNAL: [&str; 5] = ["DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "DIMENSION_LABELS"];
const INTERNAL_HEADS: [&str; 3] = ["_Netcdf4", "_NC", "_nc3"];
/// What holds of values in the unit of an array.
const ABOUT: [&str; 4] = ["units", "long_name", "standard_name", "calendar"];

/// A text attribute.
pub(crate) fn text(name: &str, value: impl Into<String>) -> Attr {
    (name.to_string(), AttrValue::Text(value.into()))
}

/// The attributes of the file. Nothing of them depends on when or where it is made.
pub(crate) fn of_file(query: &Query) -> Vec<Attr> {
    // An address is shown without what it may hold of secrets.
    let whole = query.source().name();
    let name = whole.trim_end_matches("?...").rsplit('/').find(|part| !part.is_empty()).unwrap_or(&whole);
    vec![
        text("Conventions", "CF-1.8"),
        text("source", name),
        text("query", query.text()),
        text("history", format!("rows of {name} selected by sieva {}", sieva::VERSION)),
    ]
}

/// The attributes of a column that hold of its values, without a fill value.
pub(crate) fn of_field(query: &Query, field: &RowField) -> Vec<Attr> {
    let arrays = &query.source().schema().arrays;
    match field.source {
        FieldSource::None => Vec::new(),
        FieldSource::About(index) => {
            let told = |(name, value): &&Attr| ABOUT.contains(&name.as_str()) && value.as_text().is_some();
            arrays[index].attrs.iter().filter(told).cloned().collect()
        }
        FieldSource::Array(index) => {
            let info = &arrays[index];
            let packed = PACKING[..3].iter().any(|p| info.attrs.iter().any(|(name, _)| name == p));
            let mut attrs: Vec<Attr> = info.attrs.iter().filter(|a| is_kept(a, packed)).cloned().collect();
            attrs.extend(flags(info, field.dtype));
            attrs
        }
    }
}

fn is_kept((name, value): &Attr, packed: bool) -> bool {
    let dropped = REPLACED.contains(&name.as_str())
        || INTERNAL.contains(&name.as_str())
        || INTERNAL_HEADS.iter().any(|head| name.starts_with(head))
        || packed && PACKING.contains(&name.as_str());
    let writable = !name.is_empty() && !name.contains(['/', '\0']) && !matches!(value, AttrValue::Other(_));
    !dropped && writable
}

/// CF's attributes for the names of an enumeration (CF conventions 3.5).
fn flags(info: &ArrayInfo, dtype: DType) -> Vec<Attr> {
    let is_integer = !matches!(dtype, DType::F16 | DType::F32 | DType::F64 | DType::Str | DType::Bool);
    if info.enum_names.is_empty() || !is_integer {
        return Vec::new();
    }
    let values = info.enum_names.iter().map(|(value, _)| *value).collect();
    let names: Vec<String> = info.enum_names.iter().map(|(_, name)| name.replace(' ', "_")).collect();
    flag_attrs(dtype, values, &names.join(" "))
}

/// `flag_values` and `flag_meanings`.
pub(crate) fn flag_attrs(dtype: DType, values: Vec<i128>, meanings: &str) -> Vec<Attr> {
    vec![("flag_values".into(), AttrValue::Ints(dtype, values)), text("flag_meanings", meanings)]
}
