//! Some arrays of a manifest: the same as of the whole one, under other numbers.

use std::sync::Arc;

use proptest::prelude::*;
use sieva_format::layout::Placement;
use sieva_format::manifest::{Excerpt, Layouts, Manifest, ManifestSource};
use sieva_format::schema::{AttrValue, GroupInfo};
use sieva_format::{ArraySource, LibraryReader};
use sieva_store::Striping;
use sieva_types::{Bx, DType, ErrorKind, Result};

use crate::common::{Made, empty, layout};

/// Spectra in groups: `0/57/flux` along the coordinate `0/57/wave`, which lies along itself.
fn spectra(n: u64) -> Made {
    let mut made = empty(4000);
    for i in 0..n {
        let plain = |offset| layout(DType::F32, &[i + 1], &[i + 1], Placement::Direct { offset });
        made.schema.groups.push(GroupInfo { path: format!("{i}"), attrs: Vec::new() });
        let attrs = vec![("plate".into(), AttrValue::Ints(DType::I64, vec![i.into()]))];
        made.schema.groups.push(GroupInfo { path: format!("{i}/57"), attrs });
        made.add(&format!("{i}/57/flux"), &[i + 1], plain(100 * i));
        made.add(&format!("{i}/57/wave"), &[i + 1], plain(100 * i + 50));
        let (flux, wave) = (2 * i as usize, 2 * i as usize + 1);
        made.schema.arrays[flux].dims = vec![wave];
        made.schema.dims[wave].coordinate = Some(wave);
    }
    made
}

fn paths(manifest: &Manifest) -> Vec<&str> {
    manifest.schema().arrays.iter().map(|a| a.path.as_str()).collect()
}

/// Every array of an excerpt is what the whole manifest says of the array of that path.
fn is_part_of(part: &Manifest, whole: &Manifest) {
    let (few, all) = (part.schema(), whole.schema());
    for (n, array) in few.arrays.iter().enumerate() {
        let old = all.array(&array.path).unwrap();
        let full = &all.arrays[old];
        assert_eq!((array.dtype, &array.shape), (full.dtype, &full.shape));
        assert_eq!(format!("{:?}", array.attrs), format!("{:?}", full.attrs));
        let dims = |s: &sieva_format::schema::Schema, d: &[usize]| -> Vec<String> {
            let of = |c: Option<usize>| c.map(|c| s.arrays[c].path.clone());
            d.iter().map(|&d| format!("{:?} {:?}", s.dims[d].path, of(s.dims[d].coordinate))).collect()
        };
        assert_eq!(dims(few, &array.dims), dims(all, &full.dims));
        assert_eq!(format!("{:?}", part.layout(n)), format!("{:?}", whole.layout(old)));
        assert_eq!(part.values(n), whole.values(old));
    }
}

#[test]
fn groups_come_with_what_they_lead_to() {
    let made = spectra(9);
    let mut whole = Manifest::take(&made, Layouts::All).unwrap();
    let source: Arc<dyn ArraySource> = Arc::new(made);
    whole.keep_values(&source, 100).unwrap();
    let bytes = whole.encode();
    let part = Excerpt::decode(&bytes, &["3/57", "7"]).unwrap();
    assert_eq!(paths(part.manifest()), ["3/57/flux", "3/57/wave", "7/57/flux", "7/57/wave"]);
    let groups: Vec<&str> = part.manifest().schema().groups.iter().map(|g| g.path.as_str()).collect();
    assert_eq!(groups, ["", "3", "3/57", "7", "7/57"]);
    assert!(part.manifest().values(1).is_some());
    is_part_of(part.manifest(), &whole);
    let (all, none) =
        (Excerpt::decode(&bytes, &[""]).unwrap(), Excerpt::decode(&bytes, &["3/5", "33"]).unwrap());
    assert_eq!(paths(all.manifest()), paths(&whole));
    is_part_of(all.manifest(), &whole);
    assert!(paths(none.manifest()).is_empty());
}

#[test]
fn links_and_coordinates_elsewhere_are_followed() {
    let mut made = Made::varied();
    made.schema.aliases.push(("h/link".into(), 0));
    let bytes = Manifest::take(&made, Layouts::All).unwrap().encode();
    let part = Excerpt::decode(&bytes, &["h"]).unwrap();
    // `direct` by the link, `inline` as its coordinate.
    assert_eq!(paths(part.manifest()), ["direct", "inline"]);
    let schema = part.manifest().schema();
    assert_eq!(
        (schema.arrays[0].coordinates.as_slice(), schema.aliases.as_slice()),
        (&[1][..], &[("h/link".into(), 0)][..])
    );
}

#[test]
fn the_source_itself_is_asked_by_its_own_numbers() {
    let made = Made::varied();
    let bytes = Manifest::take(&made, Layouts::Some(&[])).unwrap().encode();
    let part = Excerpt::decode(&bytes, &["g"]).unwrap();
    let store = Arc::clone(made.store());
    let source: Arc<dyn ArraySource> = Arc::new(made);
    let open = move || -> Result<Arc<dyn ArraySource>> { Ok(Arc::clone(&source)) };
    let few = ManifestSource::of_excerpt(part, store).unwrap().with_fallback(Box::new(open));
    assert_eq!(few.schema().arrays[0].path, "g/chunks");
    assert!(matches!(few.layout(0).unwrap().placement, Placement::Chunks(_)));
    let mut out = [0];
    few.read_library(0, &Bx::whole(&[1]), &mut out).unwrap();
    assert_eq!(out, [2], "array number 1 there");
    assert_eq!(few.layout(1).unwrap_err().kind(), ErrorKind::StaleSource);
}

/// Of a file by h5py, which told the places: `flux` and `wave` contiguous, `packed` in two deflated chunks, in the groups
/// `a` (fiber 0, of length 3) and `b/c` (fiber 1, of length 4).
const VERSION_1: &[u8] = include_bytes!("version1.manifest");

fn places(manifest: &Manifest) -> Vec<(&str, Vec<(u64, u64)>)> {
    let place = |n: usize| match &manifest.layout(n).unwrap().unwrap().placement {
        Placement::Direct { offset } => vec![(*offset, 0)],
        Placement::Chunks(index) => {
            [0, 1].map(|i| index.get(i).unwrap()).map(|c| (c.offset, c.size)).to_vec()
        }
        other => panic!("{other:?}"),
    };
    paths(manifest).into_iter().enumerate().map(|(n, path)| (path, place(n))).collect()
}

#[test]
fn a_striping_is_kept_and_of_one_server_nothing() {
    let made = Made::varied();
    let plain = Manifest::take(&made, Layouts::All).unwrap();
    let striping = Striping::parse("stripe_size=100,on=7+3+9").unwrap();
    let bytes = plain.clone().with_striping(&striping).encode();
    assert_eq!((bytes[4], plain.encode()[4]), (3, 2), "versions");
    let pieces = |kept: Option<&Striping>| kept.unwrap().pieces(0..500).collect::<Vec<_>>();
    let whole = Manifest::decode(&bytes).unwrap();
    assert_eq!(pieces(whole.striping()), pieces(Some(&striping)));
    assert_eq!(whole.encode(), bytes);
    let part = Excerpt::decode(&bytes, &["g"]).unwrap();
    assert_eq!(pieces(part.manifest().striping()), pieces(Some(&striping)));
    assert_eq!(
        pieces(Excerpt::from_bytes(&part.to_bytes()).unwrap().manifest().striping()),
        pieces(Some(&striping))
    );
    assert_eq!(plain.clone().with_striping(&Striping::single()).encode(), plain.encode());
    assert!(Manifest::decode(&plain.encode()).unwrap().striping().is_none());
}

#[test]
fn version_1_is_read_wholly_and_in_part() {
    let whole = Manifest::decode(VERSION_1).unwrap();
    let of_c = vec![
        ("b/c/flux", vec![(2580, 0)]),
        ("b/c/packed", vec![(2628, 16), (2644, 16)]),
        ("b/c/wave", vec![(2596, 0)]),
    ];
    assert_eq!(whole.object_len(), 17760);
    assert_eq!(
        places(&whole)[..3],
        [
            ("a/flux", vec![(2512, 0)]),
            ("a/packed", vec![(2548, 16), (2564, 16)]),
            ("a/wave", vec![(2524, 0)]),
        ]
    );
    assert_eq!(places(&whole)[3..], of_c);
    let part = Excerpt::decode(VERSION_1, &["b/c"]).unwrap();
    assert_eq!(places(part.manifest()), of_c);
    is_part_of(part.manifest(), &whole);
    let schema = part.manifest().schema();
    assert_eq!(schema.groups[2].attrs, [("fiber".into(), AttrValue::Ints(DType::I64, vec![1]))]);
    let wave: Vec<u8> = [0_f64, 1.0, 2.0, 3.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    assert_eq!(part.manifest().values(2), Some(&wave[..]));
    let mut newer = VERSION_1.to_vec();
    newer[4] = 4;
    let e = Manifest::decode(&newer).unwrap_err();
    assert!(e.message().contains("version 4, this program reads versions 1 to 3"), "{e}");
}

proptest! {
    #[test]
    fn any_groups_are_as_in_the_whole(n in 1_u64..12, picked in proptest::collection::vec(0_u64..14, 0..5)) {
        let whole = Manifest::take(&spectra(n), Layouts::All).unwrap();
        let groups: Vec<String> = picked.iter().map(|p| format!("{p}/57")).collect();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let part = Excerpt::decode(&whole.encode(), &groups).unwrap();
        let within = |p: &&&str| groups.iter().any(|g| p.starts_with(&format!("{g}/")));
        let expected: Vec<&str> = paths(&whole).iter().filter(within).copied().collect();
        prop_assert_eq!(paths(part.manifest()), expected);
        is_part_of(part.manifest(), &whole);
    }

    /// Content of any bytes, behind a checksum that fits, is refused or read.
    #[test]
    fn any_change_is_refused_or_harmless(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let bytes = Manifest::take(&Made::varied(), Layouts::All).unwrap().encode();
        let content = content_of(&bytes);
        let mut hostile = content;
        *at.get_mut(&mut hostile) = to;
        for groups in [&["g"][..], &[""], &["no/such"]] {
            if let Err(e) = Excerpt::decode(&packed(&hostile), groups) {
                prop_assert_eq!(e.kind(), ErrorKind::CorruptIndex);
            }
        }
    }
}

/// The content of a manifest that is stored as it is, or compressed.
fn content_of(bytes: &[u8]) -> Vec<u8> {
    use sieva_format::manifest::SUBJECT;
    use sieva_types::wire::Reader;
    let mut r = Reader::new(&SUBJECT, &bytes[14..], 0);
    let len = r.index().unwrap();
    let stored = r.take(r.left()).unwrap();
    if bytes[5] == 0 { stored.to_vec() } else { zstd::bulk::decompress(stored, len).unwrap() }
}

fn packed(content: &[u8]) -> Vec<u8> {
    use sieva_types::wire::Writer;
    let mut length = Writer::default();
    length.uint(content.len() as u64);
    let sum = xxhash_rust::xxh3::xxh3_64(content).to_le_bytes();
    [&b"SVMF\x02\x00"[..], &sum, &length.into_bytes(), content].concat()
}
