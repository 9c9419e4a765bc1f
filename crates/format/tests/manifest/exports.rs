//! Reference sets made of manifests, against the text of the Zarr v2 specification.

use sieva_format::filters::{Filter, Pipeline};
use sieva_format::layout::{ChunkIndex, ChunkRef, Layout, Placement};
use sieva_format::manifest::kerchunk::{Reference, export, import};
use sieva_format::manifest::{Layouts, Manifest};
use sieva_format::schema::AttrValue;
use sieva_types::{DType, Endian};

use crate::common::{Made, empty, layout};

fn text(references: &sieva_format::manifest::kerchunk::References, key: &str) -> String {
    match &references.entries[key] {
        Reference::Inline(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{key}: {other:?}"),
    }
}

fn place(references: &sieva_format::manifest::kerchunk::References, key: &str) -> (u64, u64) {
    match &references.entries[key] {
        Reference::Range { offset, len, .. } => (*offset, *len),
        other => panic!("{key}: {other:?}"),
    }
}

#[test]
fn chunks_and_metadata_are_those_of_the_file() {
    let mut made = empty(1000);
    let chunk = |offset| ChunkRef { offset, size: 30, filter_mask: 0 };
    let index = ChunkIndex::new(4, (0..4).map(|n| (n, chunk(100 + 30 * n))).collect());
    let filters = vec![Filter::Shuffle { element_size: 4 }, Filter::Deflate];
    let chunked = layout(DType::F32, &[5, 6], &[3, 4], Placement::Chunks(index));
    let array =
        made.add("g/T", &[5, 6], Layout { pipeline: Pipeline { filters }, endian: Endian::Big, ..chunked });
    array.attrs.push(("_FillValue".into(), AttrValue::Floats(DType::F32, vec![f64::NAN])));
    array.attrs.push(("flag_values".into(), AttrValue::Ints(DType::I8, vec![1, -2])));
    // Records of 40 bytes, of which 8 are this array's.
    let records = layout(DType::I16, &[3, 4], &[3, 4], Placement::Direct { offset: 500 });
    made.add("rec", &[3, 4], Layout { strides: vec![40, 2], ..records }).storage.layout = "record";
    made.add("flat", &[3, 4], layout(DType::I16, &[3, 4], &[3, 4], Placement::Direct { offset: 700 }));
    let out = export(&Manifest::take(&made, Layouts::All).unwrap(), "s3://b/x.nc").unwrap();
    assert!(out.left_out.is_empty() && out.warnings.is_empty(), "{out:?}");
    let refs = &out.references;
    assert_eq!(
        text(refs, "g/T/.zarray"),
        r#"{"zarr_format":2,"shape":[5,6],"chunks":[3,4],"dtype":">f4","order":"C","fill_value":"NaN","compressor":null,"filters":[{"id":"shuffle","elementsize":4},{"id":"zlib","level":1}]}"#
    );
    let attrs = r#"{"units":"K","flag_values":[1,-2],"_ARRAY_DIMENSIONS":["g/T_0","g/T_1"]}"#;
    assert_eq!(text(refs, "g/T/.zattrs"), attrs);
    assert_eq!(text(refs, "g/.zgroup"), r#"{"zarr_format":2}"#);
    assert_eq!(place(refs, "g/T/1.0"), (160, 30));
    let chunks = ["rec/0.0", "rec/1.0", "rec/2.0", "flat/0.0"].map(|key| place(refs, key));
    assert_eq!(chunks, [(500, 8), (540, 8), (580, 8), (700, 24)]);
    assert!(
        text(refs, "rec/.zarray").contains(r#""chunks":[1,4],"dtype":"<i2","order":"C","fill_value":null"#)
    );
    assert_eq!(import(&refs.to_json()).unwrap(), *refs);
}

#[test]
fn what_others_could_not_read_right_is_left_out() {
    let mut made = Made::varied();
    let inline = made.schema.arrays.iter().position(|a| a.path == "inline").unwrap();
    made.schema.arrays[inline].attrs.clear();
    let never = || layout(DType::U8, &[2], &[2], Placement::Unallocated);
    let fill = ("_FillValue".to_owned(), AttrValue::Ints(DType::U8, vec![255]));
    made.add("other fill", &[2], never()).attrs.push(fill.clone());
    made.add("same fill", &[2], Layout { fill: vec![255], ..never() }).attrs.push(fill);
    let lzf = Pipeline { filters: vec![Filter::Lzf] };
    made.add("lzf", &[2], Layout { pipeline: lzf, ..never() });
    let pairs = layout(DType::U8, &[2], &[2], Placement::Chunks(ChunkIndex::new(1, Vec::new())));
    made.add("member", &[2], Layout { strides: vec![2], chunk_bytes: 4, ..pairs });
    let out = export(&Manifest::take(&made, Layouts::All).unwrap(), "x").unwrap();
    let why = |path: &str| out.left_out.iter().find(|(p, _)| p == path).map(|(_, why)| why.as_str());
    assert_eq!(why("library"), Some("it is read by a library: scale-offset filter"));
    assert_eq!(why("broken"), Some("leads out"));
    assert_eq!(why("other fill"), Some("what was never written is 0 in it, its _FillValue is 255"));
    assert_eq!(why("lzf"), Some("numcodecs has no codec for the filter 'lzf'"));
    assert_eq!(why("member"), Some("it is a member of a compound"));
    for kept in ["direct", "inline", "never", "same fill"] {
        assert_eq!(why(kept), None, "{kept}");
    }
    assert_eq!(out.warnings.len(), 2, "{:?}", out.warnings);
    assert_eq!(out.references.entries["inline/0"], Reference::Inline(vec![1, 2, 3, 4, 5, 6, 7, 8]));
    assert!(text(&out.references, "direct/.zattrs").contains(r#""odd":[NaN,-0.0,Infinity,1e-300]"#));
    assert_eq!(import(&out.references.to_json()).unwrap(), out.references);
    assert!(export(&Manifest::take(&made, Layouts::None).unwrap(), "x").is_err());
}

#[test]
fn tables_hold_the_same_references() {
    let mut made = empty(1000);
    let chunk = |offset| ChunkRef { offset, size: 30, filter_mask: 0 };
    let index = ChunkIndex::new(6, vec![(1, chunk(100)), (5, chunk(7))]);
    made.add("g/T", &[4, 6], layout(DType::F32, &[4, 6], &[2, 2], Placement::Chunks(index)));
    made.add("one", &[], layout(DType::F32, &[], &[], Placement::Direct { offset: 4 }));
    let out = export(&Manifest::take(&made, Layouts::All).unwrap(), "x").unwrap();
    let tables = out.references.to_tables().unwrap();
    let columns = &tables.arrays["g/T"];
    assert_eq!(columns.offset, [0, 100, 0, 0, 0, 7]);
    assert_eq!(columns.path[1].as_deref(), Some("x"));
    assert!(columns.path[0].is_none() && columns.raw[0].is_none());
    assert_eq!(sieva_format::manifest::kerchunk::References::from_tables(&tables).unwrap(), out.references);
}
