//! Which dimensions hold the characters of texts.

use std::collections::HashSet;

use crate::geometry::Geometry;
use crate::header::Header;
use crate::nctype::NcType;

/// For each dimension, whether it counts the characters of texts and not things.
///
/// The format has letters only, no texts. xarray's rule is used: a dimension without a coordinate variable,
/// used by char variables only and always as their last one, is one of characters. So `name(station, len)`
/// holds a text per station, and `quality(station)` a letter per station as soon as anything else
/// is measured there. Unlike xarray, the record dimension never is one: records are things.
pub(crate) fn character_dims(header: &Header, geometry: &Geometry) -> Vec<bool> {
    let variables: HashSet<&str> = header.vars.iter().map(|v| v.name.as_str()).collect();
    let mut counts: Vec<bool> = header
        .dims
        .iter()
        .enumerate()
        .map(|(id, dim)| geometry.record_dim != Some(id) && !variables.contains(dim.name.as_str()))
        .collect();
    for var in &header.vars {
        for &id in &var.dims {
            counts[id] &= var.xtype == NcType::Char && var.dims.last() == Some(&id);
        }
    }
    counts
}
