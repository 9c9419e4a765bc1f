//! Trees that lie: errors that say where, and neither a panic nor memory without bounds.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format_zarr::{ZarrOptions, ZarrSource, is_zarr};
use sieva_types::{Bx, ErrorKind};

use crate::tree::{MemoryTree, numbers, open, read_all};

const V2: &str = r#"{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"<i2","compressor":null,"fill_value":7,"order":"C","filters":null}"#;

fn v3(with: &str) -> String {
    let base = r#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int16","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},
        "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}]"#;
    format!("{base}{with}}}")
}

fn sharded() -> String {
    v3("").replace(
        r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#,
        r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":["bytes"],"index_codecs":["bytes"]}}]"#,
    )
}

#[test]
fn chunks_of_another_length_are_corrupt_and_named() {
    let tree = MemoryTree::of(&[(".zarray", V2), ("0", "abcd"), ("1", "abc")]);
    let source = open(tree).unwrap();
    assert_eq!(numbers(&source, 0, &Bx::new(vec![0], vec![2])).unwrap(), b"abcd");
    let e = numbers(&source, 0, &Bx::whole(&[4])).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert_eq!(e.message(), "memory: array 'data': chunk [1]: decoded to 3 bytes, expected 4");
}

#[test]
fn a_huge_object_takes_no_memory() {
    let tree = MemoryTree::new([(".zarray".into(), V2.into()), ("0".into(), vec![0; 1 << 20])]);
    let tree = Arc::new(tree);
    let e = read_all(&open(Arc::clone(&tree) as _).unwrap()).unwrap_err();
    assert!(e.message().contains("expected at most 65572"), "{e}");
    let asked = tree.asked.lock().unwrap();
    assert!(matches!(asked.last().unwrap().1, sieva_store::Span::Last(65573)));
}

#[test]
fn shard_indexes_that_lie_are_refused() {
    let index = |words: [u64; 4]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let none = u64::MAX;
    for words in [
        [none, 1, none, none],
        [1 << 60, 1 << 62, none, none],
        [0, 1 << 40, none, none],
        [30, 4, none, none],
        [0, 3, none, none],
    ] {
        let tree = MemoryTree::new([("zarr.json".into(), sharded().into()), ("c/0".into(), index(words))]);
        let e = read_all(&open(Arc::new(tree)).unwrap()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile, "{words:?}: {e}");
    }
    for short in [0, 31] {
        let tree = MemoryTree::new([("zarr.json".into(), sharded().into()), ("c/0".into(), vec![0; short])]);
        assert_eq!(read_all(&open(Arc::new(tree)).unwrap()).unwrap_err().kind(), ErrorKind::CorruptFile);
    }
    let tree = MemoryTree::new([("zarr.json".into(), sharded().into()), ("c/0".into(), index([none; 4]))]);
    assert_eq!(numbers(&open(Arc::new(tree)).unwrap(), 0, &Bx::whole(&[4])).unwrap(), [0; 8]);
}

#[test]
fn names_that_lead_out_are_left_out() {
    let group = r#"{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2},"../x/.zarray":V2,"a/./b/.zarray":V2,"ok/.zarray":V2}}"#;
    let source = open(MemoryTree::of(&[(".zmetadata", &group.replace("V2", V2))])).unwrap();
    let schema = source.schema();
    assert_eq!(schema.arrays.iter().map(|a| a.path.as_str()).collect::<Vec<_>>(), ["ok"]);
    assert_eq!(
        schema.left_out.iter().map(|(p, e)| (p.as_str(), e.kind())).collect::<Vec<_>>(),
        [("../x", ErrorKind::LinkRefused), ("a/./b", ErrorKind::LinkRefused)]
    );
}

#[test]
fn what_is_not_understood_is_named() {
    let grid = v3("").replace("regular", "rectilinear");
    let codec = v3("").replace(r#"}}]"#, r#"}},"numcodecs.lzma2"]"#);
    let around = sharded()
        .replace(r#""index_codecs":["bytes"]}}]"#, r#""index_codecs":["bytes"]}},"numcodecs.lzma2"]"#);
    for (document, kind, word) in [
        (grid, ErrorKind::Unsupported, "rectilinear"),
        (codec, ErrorKind::FilterUnavailable, "'lzma2'"),
        (around, ErrorKind::Unsupported, "codec 'lzma2' over whole shards"),
    ] {
        let source = open(MemoryTree::of(&[("zarr.json", &document)])).unwrap();
        let e = source.layout(0).unwrap_err();
        assert_eq!(e.kind(), kind);
        assert!(e.message().contains(word), "{e}");
    }
    for (with, word) in [
        (r#","storage_transformers":[{"name":"x"}]"#, "storage transformer"),
        (r#","other":{"name":"y"}"#, "extension 'other'"),
    ] {
        let source = open(MemoryTree::of(&[("zarr.json", &v3(with))])).unwrap();
        let (path, e) = &source.schema().left_out[0];
        assert!(path == "data" && e.message().contains(word), "{e}");
    }
    let ignored = v3(r#","other":{"name":"y","must_understand":false},"storage_transformers":[]"#);
    assert_eq!(open(MemoryTree::of(&[("zarr.json", &ignored)])).unwrap().schema().arrays.len(), 1);
}

#[test]
fn without_listing_metadata_have_to_be_consolidated() {
    let tree = MemoryTree::of(&[(".zgroup", r#"{"zarr_format":2}"#), ("a/.zarray", V2)]);
    let tree = MemoryTree { cannot_list: true, is_remote: true, ..Arc::into_inner(tree).unwrap() };
    let e = open(Arc::new(tree)).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("cannot be listed") && e.hint_text().unwrap().contains("consolidate"));
    let empty = MemoryTree::of(&[("x", "")]);
    assert!(!is_zarr(&*empty).unwrap());
    assert_eq!(open(empty).err().unwrap().kind(), ErrorKind::UnknownFormat);
}

#[test]
fn references_in_parquet_are_refused() {
    let tree = MemoryTree::of(&[(".zmetadata", r#"{"metadata":{".zgroup":{}},"record_size":10}"#)]);
    assert_eq!(open(tree).err().unwrap().kind(), ErrorKind::Unsupported);
}

#[test]
fn changed_metadata_are_noticed() {
    let tree = MemoryTree::of(&[(".zarray", V2), ("0", "abcd")]);
    let source = open(Arc::clone(&tree) as _).unwrap();
    source.store().check_unchanged().unwrap();
    let before = source.store().version();
    let mut bytes = vec![0; usize::try_from(source.store().len()).unwrap()];
    source.store().read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, V2.as_bytes());
    tree.objects.lock().unwrap().insert("1".into(), b"efgh".to_vec());
    source.store().check_unchanged().unwrap();
    assert_ne!(open(Arc::clone(&tree) as _).unwrap().store().version(), before);
    tree.objects.lock().unwrap().insert(".zarray".into(), V2.replace('7', "8").into());
    assert_eq!(source.store().check_unchanged().unwrap_err().kind(), ErrorKind::StaleSource);
}

#[test]
fn given_names_line_dimensions_up() {
    let group = r#"{"metadata":{"a/.zarray":V2,"b/c/.zarray":V2}}"#.replace("V2", V2);
    let names = |path: &str| (path.to_owned(), vec!["n".to_owned()]);
    let options = ZarrOptions { dims: vec![names("a"), names("b/c")], ..ZarrOptions::default() };
    let source = ZarrSource::open(MemoryTree::of(&[(".zmetadata", &group)]), &options).unwrap();
    let arrays = &source.schema().arrays;
    assert_eq!(arrays[0].dims, arrays[1].dims);
    let options = ZarrOptions { dims: vec![("x".into(), vec!["n".into()])], ..ZarrOptions::default() };
    let e = ZarrSource::open(MemoryTree::of(&[(".zmetadata", &group)]), &options).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::UnknownArray);
}

/// Options that let metadata take so many bytes.
fn within(memory: u64) -> ZarrOptions {
    ZarrOptions { memory: Some(memory), ..ZarrOptions::default() }
}

/// Many small arrays, consolidated and by listing, of both versions.
#[test]
fn metadata_that_would_take_more_than_the_limit_are_refused() {
    let names: Vec<String> = (0..2000).map(|i| format!("a{i:04}")).collect();
    let all = |key: &str, document: &str| {
        names.iter().map(|n| format!("\"{n}{key}\":{document}")).collect::<Vec<_>>().join(",")
    };
    let v2 = format!(r#"{{"metadata":{{".zgroup":{{"zarr_format":2}},{}}}}}"#, all("/.zarray", V2));
    let root = r#"{"zarr_format":3,"node_type":"group","attributes":{"a":1}"#;
    let v3_ = format!(r#"{root},"consolidated_metadata":{{"metadata":{{{}}}}}}}"#, all("", &v3("")));
    let listed = |root: (&str, String), name: &str, document: &str| {
        let arrays = names.iter().map(|n| (format!("{n}/{name}"), document.as_bytes().to_vec()));
        MemoryTree::new(arrays.chain([(root.0.to_owned(), root.1.into_bytes())]))
    };
    for tree in [
        MemoryTree::new([(".zmetadata".into(), v2.into_bytes())]),
        MemoryTree::new([("zarr.json".into(), v3_.into_bytes())]),
        listed((".zgroup", r#"{"zarr_format":2}"#.into()), ".zarray", V2),
        listed(("zarr.json", format!("{root}}}")), "zarr.json", &v3("")),
    ] {
        let tree: Arc<MemoryTree> = Arc::new(tree);
        let e = ZarrSource::open(Arc::clone(&tree) as _, &within(1 << 20)).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit, "{e}");
        let source = ZarrSource::open(Arc::clone(&tree) as _, &within(8 << 20)).unwrap();
        assert_eq!(source.schema().arrays.len(), 2000);
        // What arrays that are alike have in common is there once.
        assert!(Arc::ptr_eq(&source.layout(0).unwrap(), &source.layout(1999).unwrap()));
    }
}

/// A list of 2 MB that takes a hundred as values.
#[test]
fn a_document_that_takes_more_than_the_limit_when_it_is_parsed_is_refused() {
    let list = format!("[{}0]", "0,".repeat(1 << 20));
    for (key, document) in [
        ("zarr.json", v3(&format!(r#","attributes":{{"a":{list}}}"#))),
        (".zmetadata", format!(r#"{{"metadata":{{".zgroup":{{}},".zattrs":{{"a":{list}}}}}}}"#)),
        (".zmetadata", format!(r#"{{"metadata":{{".zgroup":{{}}}},"a":{list}}}"#)),
    ] {
        let tree = MemoryTree::of(&[(key, &document)]);
        let e = ZarrSource::open(Arc::clone(&tree) as _, &within(64 << 20)).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit, "{e}");
        assert!(ZarrSource::open(tree, &within(1 << 30)).is_ok());
    }
}

#[test]
fn consolidated_metadata_of_any_spelling() {
    let spelled = r#"{"zarr_format":3,"consolidated_metadata":{"kind":"inline","metadata":{"g\u002fx":ARRAY,"g":{"zarr_format":3,"node_type":"group",
        "attributes":{"n":NaN}}},"must_understand":false},"node_type":"group","attributes":{"t":"}{\"","v":Infinity}}"#;
    let source = open(MemoryTree::of(&[("zarr.json", &spelled.replace("ARRAY", &v3("")))])).unwrap();
    let schema = source.schema();
    assert_eq!(schema.arrays.iter().map(|a| a.path.as_str()).collect::<Vec<_>>(), ["g/x"]);
    let names = |i: usize| schema.groups[i].attrs.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["t", "v"], vec!["n"]));
    for (metadata, kind) in
        [("null", ErrorKind::CorruptFile), ("[]", ErrorKind::CorruptFile), ("{", ErrorKind::CorruptFile)]
    {
        let document = format!(r#"{{"metadata":{metadata}}}"#);
        assert_eq!(open(MemoryTree::of(&[(".zmetadata", &document)])).err().unwrap().kind(), kind);
    }
}

/// Metadata with any byte changed or cut off: an error or other values, never a panic.
#[test]
fn damaged_metadata_never_panic() {
    for (key, document, chunk) in [(".zarray", V2.to_owned(), "0"), ("zarr.json", sharded(), "c/0")] {
        let bytes = document.as_bytes();
        for i in 0..bytes.len() {
            for replaced in [b'0', b'9', b'-', b'"', b'[', b'}', b' '] {
                let mut damaged = bytes.to_vec();
                damaged[i] = replaced;
                let cut = bytes[..i].to_vec();
                for metadata in [damaged, cut] {
                    let tree = MemoryTree::new([(key.into(), metadata), (chunk.into(), vec![1; 40])]);
                    if let Ok(source) = open(Arc::new(tree)) {
                        let shape = source.schema().arrays.first().map(|a| a.shape.iter().product::<u64>());
                        if shape.is_some_and(|n| n < 1 << 16) {
                            let _ = read_all(&source);
                        }
                    }
                }
            }
        }
    }
}
