//! HDF-EOS5: the lists of dimensions in its structural metadata, which are ODL (`NAME=value` in nested groups).

use std::collections::HashMap;

use sieva_format::schema::Naming;

use super::{Contents, Names, axis_name, set};

/// Where fields of a kind of structure lie, and what its name is called.
const KINDS: [(&str, &str, &str); 3] = [
    ("SwathStructure", "SwathName", "SWATHS"),
    ("GridStructure", "GridName", "GRIDS"),
    ("ZaStructure", "ZaName", "ZAS"),
];

/// A field of the metadata with the names of its dimensions.
#[derive(Debug, Default, PartialEq)]
struct Field {
    /// Path of the swath or grid.
    structure: String,
    name: String,
    dims: Vec<String>,
}

/// Names the axes of fields.
pub(super) fn name(contents: &Contents<'_>, metadata: &str, names: &mut Names) {
    for field in fields(metadata) {
        for folder in ["Data Fields", "Geolocation Fields"] {
            let path = format!("{}/{folder}/{}", field.structure, field.name);
            let Some(&i) = contents.by_path.get(path.as_str()) else { continue };
            if names[i].len() != field.dims.len() {
                continue;
            }
            for (axis, dim) in names[i].iter_mut().zip(&field.dims) {
                set(axis, axis_name(&field.structure, dim, Naming::HdfEos));
            }
        }
    }
}

/// The fields of all structures. A dimension that is mapped to another one position by position is that one.
fn fields(metadata: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut kind, mut structure) = (None, String::new());
    let mut same: HashMap<(String, String), String> = HashMap::new();
    let mut object: HashMap<&str, String> = HashMap::new();
    for line in metadata.lines() {
        let Some((key, value)) = line.trim().split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        let text = value.trim_matches('"').to_owned();
        match key {
            "GROUP" => {
                kind = KINDS.iter().find(|k| k.0 == value).or(kind);
                if value.ends_with("Structure") && !KINDS.iter().any(|k| k.0 == value) {
                    kind = None;
                }
            }
            "OBJECT" => object.clear(),
            "END_OBJECT" => {
                let take = |keys: [&str; 2]| keys.iter().find_map(|k| object.get(k)).cloned();
                if let (Some(name), Some(dims)) =
                    (take(["GeoFieldName", "DataFieldName"]), object.get("DimList"))
                {
                    let dims = dims.trim_matches(['(', ')']).split(',');
                    let dims = dims.map(|d| d.trim().trim_matches('"').to_owned()).collect();
                    fields.push(Field { structure: structure.clone(), name, dims });
                }
                if let (Some(geo), Some(data), Some("0"), Some("1")) = (
                    object.get("GeoDimension"),
                    object.get("DataDimension"),
                    object.get("Offset").map(String::as_str),
                    object.get("Increment").map(String::as_str),
                ) {
                    same.insert((structure.clone(), data.clone()), geo.clone());
                }
                object.clear();
            }
            _ => {
                if let Some((_, _, folder)) = kind.filter(|k| k.1 == key) {
                    structure = format!("HDFEOS/{folder}/{text}");
                }
                object.insert(key, text);
            }
        }
    }
    for field in &mut fields {
        for dim in &mut field.dims {
            if let Some(geo) = same.get(&(field.structure.clone(), dim.clone())) {
                dim.clone_from(geo);
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = "GROUP=SwathStructure\n\tGROUP=SWATH_1\n\t\tSwathName=\"O3\"\n\t\tGROUP=DimensionMap\n\
        OBJECT=DimensionMap_1\nGeoDimension=\"nGeo\"\nDataDimension=\"nTimes\"\nOffset=0\nIncrement=1\nEND_OBJECT=DimensionMap_1\n\
        OBJECT=DimensionMap_2\nGeoDimension=\"nGeo\"\nDataDimension=\"nFine\"\nOffset=0\nIncrement=2\nEND_OBJECT=DimensionMap_2\n\
        END_GROUP=DimensionMap\nGROUP=GeoField\nOBJECT=GeoField_1\nGeoFieldName=\"Latitude\"\nDimList=(\"nGeo\")\n\
        END_OBJECT=GeoField_1\nEND_GROUP=GeoField\nGROUP=DataField\nOBJECT=DataField_1\nDataFieldName=\"Value\"\n\
        DimList=(\"nTimes\",\"nFine\")\nMaxdimList=(\"a\")\nEND_OBJECT=DataField_1\nEND_GROUP=DataField\nEND_GROUP=SWATH_1\n\
        END_GROUP=SwathStructure\nGROUP=GridStructure\nGROUP=GRID_1\nGridName=\"G\"\nXDim=3\nGROUP=DataField\n\
        OBJECT=DataField_1\nDataFieldName=\"t\"\nDimList=(\"YDim\",\"XDim\")\nEND_OBJECT=DataField_1\nEND_GROUP=DataField\n\
        END_GROUP=GRID_1\nEND_GROUP=GridStructure\nGROUP=PointStructure\nEND_GROUP=PointStructure\nEND\n";

    #[test]
    fn fields_have_their_lists_of_dimensions() {
        let field = |structure: &str, name: &str, dims: &[&str]| Field {
            structure: structure.into(),
            name: name.into(),
            dims: dims.iter().map(|d| (*d).to_owned()).collect(),
        };
        assert_eq!(
            fields(METADATA),
            [
                field("HDFEOS/SWATHS/O3", "Latitude", &["nGeo"]),
                field("HDFEOS/SWATHS/O3", "Value", &["nGeo", "nFine"]),
                field("HDFEOS/GRIDS/G", "t", &["YDim", "XDim"]),
            ]
        );
        assert_eq!(fields("GROUP=\nEND_OBJECT=\n=\nDimList=(\n"), []);
    }
}
