//! Reference sets that others made, and the tree that they are opened as.

use std::sync::Arc;

use sieva_format::manifest::kerchunk::{Opener, Reference, ReferenceTree, References, import};
use sieva_store::{MemoryStore, ObjectTree, RangedRead, Span};
use sieva_types::ErrorKind;

/// The example of the specification, in spirit.
const SET: &str = r#"{"version": 1, "templates": {"u": "mem://bucket/path", "x": "dir"},
    "refs": {"key0": "data", "key1": ["mem://target", 2, 3], "key2": ["{{u}}"], "key3": ["{{ u }}/{{x}}/f", 1, 2],
             "a/b64": "base64://79", "a/.zarray": {"chunks": [1]}}}"#;

fn opener() -> Opener {
    Box::new(|url| {
        let store: Arc<dyn RangedRead> = Arc::new(MemoryStore::new(url, url.as_bytes().to_vec()));
        Ok(store)
    })
}

fn tree(set: &str) -> ReferenceTree {
    ReferenceTree::new("set", import(set).unwrap(), opener(), &|_| true).unwrap()
}

#[test]
fn keys_lead_to_their_bytes() {
    let tree = tree(SET);
    let mut out = Vec::new();
    let mut get = |key: &str, span: Span| {
        let there = tree.get(key, &span, &mut out).unwrap();
        there.then(|| String::from_utf8_lossy(&out).into_owned())
    };
    assert_eq!(get("key0", Span::All).as_deref(), Some("data"));
    assert_eq!(get("key0", Span::Last(2)).as_deref(), Some("ta"));
    assert_eq!(get("key1", Span::All).as_deref(), Some("m:/"));
    assert_eq!(get("key1", Span::Range(1..2)).as_deref(), Some(":"));
    assert_eq!(get("key2", Span::Last(4)).as_deref(), Some("path"));
    assert_eq!(get("key3", Span::All).as_deref(), Some("em"));
    assert_eq!(get("a/.zarray", Span::All).as_deref(), Some(r#"{"chunks":[1]}"#));
    assert_eq!(get("nothing", Span::All), None);
    assert!(tree.get("key1", &Span::Range(2..4), &mut out).is_err());
    assert!(tree.get("a/b64", &Span::All, &mut out).unwrap() && out == [0xff, 0xfe, 0xfd]);
    let listed: Vec<_> = tree.list("key").unwrap().unwrap().into_iter().map(|e| (e.key, e.size)).collect();
    assert_eq!(listed, [("key0".into(), 4), ("key1".into(), 3), ("key2".into(), 17), ("key3".into(), 2)]);
    let object = tree.open("key1").unwrap().unwrap();
    let mut bytes = [0; 2];
    object.read_exact_at(1, &mut bytes).unwrap();
    assert_eq!((object.len(), &bytes), (3, b":/"));
    assert!(object.read_exact_at(2, &mut bytes).is_err());
    assert!(tree.open("key9").unwrap().is_none());
}

#[test]
fn urls_out_of_the_roots_are_refused() {
    let inside = |url: &str| url.starts_with("mem://bucket/");
    let e = ReferenceTree::new("set", import(SET).unwrap(), opener(), &inside).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::LinkRefused);
    assert!(e.message().contains("'mem://target'"), "{e}");
}

#[test]
fn a_range_past_the_end_is_damage() {
    let tree = tree(r#"{"k": ["mem://x", 5, 100]}"#);
    let e = tree.get("k", &Span::All, &mut Vec::new()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(tree.get("k", &Span::Range(0..1), &mut Vec::new()).is_err());
}

#[test]
fn what_is_no_set_or_a_program_is_told() {
    let cases = [
        ("{", ErrorKind::CorruptFile),
        ("[]", ErrorKind::CorruptFile),
        (r#"{"version": 2, "refs": {}}"#, ErrorKind::Unsupported),
        (r#"{"version": 1}"#, ErrorKind::CorruptFile),
        (r#"{"version": 1, "refs": {}, "gen": [{"key": "a"}]}"#, ErrorKind::Unsupported),
        (r#"{"version": 1, "templates": {"f": "{{c}}"}, "refs": {}}"#, ErrorKind::Unsupported),
        (r#"{"version": 1, "refs": {"a": ["{{f(c='x')}}"]}}"#, ErrorKind::Unsupported),
        (r#"{"version": 1, "refs": {"a": ["{{f"]}}"#, ErrorKind::Unsupported),
        (r#"{"a": ["u", -1, 2]}"#, ErrorKind::CorruptFile),
        (r#"{"a": ["u", 18446744073709551615, 2]}"#, ErrorKind::CorruptFile),
        (r#"{"a": ["u", 1]}"#, ErrorKind::CorruptFile),
        (r#"{"a": 7}"#, ErrorKind::CorruptFile),
        (r#"{"a": "base64:%"}"#, ErrorKind::CorruptFile),
    ];
    for (set, kind) in cases {
        assert_eq!(import(set).unwrap_err().kind(), kind, "{set}");
    }
    let deep = "[".repeat(100_000);
    assert!(import(&deep).is_err());
}

#[test]
fn json_brings_back_what_it_was_made_of() {
    let entries = [
        ("text", Reference::Inline(b"{\"a\": \"\\n\"}".to_vec())),
        ("bytes", Reference::Inline(vec![0, 255, 1])),
        ("prefix", Reference::Inline(b"base64:no".to_vec())),
        ("\u{e9}/\u{1f600}", Reference::Inline("\u{e9}".into())),
        ("range", Reference::Range { url: "a \"b\"".into(), offset: u64::MAX - 9, len: 9 }),
        ("whole", Reference::Whole { url: "x".into() }),
    ];
    let references = References { entries: entries.into_iter().map(|(k, r)| (k.to_owned(), r)).collect() };
    assert_eq!(import(&references.to_json()).unwrap(), references);
}

#[test]
fn the_state_of_what_is_referred_to_is_part_of_the_listing() {
    let noted = |version: &str| {
        let version = version.to_owned();
        tree(SET).noting(&move |url| url.starts_with("mem://target").then(|| (12, version.clone())))
    };
    let versions = |tree: &ReferenceTree| -> Vec<String> {
        tree.list("key").unwrap().unwrap().into_iter().map(|e| e.version).collect()
    };
    assert_eq!(versions(&noted("5 ns")), ["", "12 bytes 5 ns", "", ""]);
    let mut out = Vec::new();
    // Not the version that the store has when it is opened.
    let e = noted("5 ns").get("key1", &Span::All, &mut out).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::StaleSource);
    let version = MemoryStore::new("", Vec::new()).version();
    assert!(noted(&version).get("key1", &Span::All, &mut out).unwrap());
}

/// A hundred thousand references that share a URL of 8 KiB ask for it once.
#[test]
fn a_url_that_many_share_is_asked_for_once() {
    let url = format!("mem://{}", "x".repeat(8000));
    let refs: Vec<String> = (0..1000).map(|i| format!("\"k{i}\": [\"{{{{u}}}}\", {i}, 1]")).collect();
    let set = format!(r#"{{"version": 1, "templates": {{"u": "{url}"}}, "refs": {{{}}}}}"#, refs.join(","));
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let allowed = |_: &str| asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
    let tree = ReferenceTree::new("set", import(&set).unwrap(), opener(), &allowed).unwrap();
    assert!(tree.is_remote());
}
