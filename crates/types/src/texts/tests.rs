//! Texts are a list, whatever the width of their offsets.

use super::*;
use proptest::prelude::*;

fn list(texts: &Texts) -> Vec<String> {
    texts.iter().map(str::to_owned).collect()
}

fn is_large(texts: &Texts) -> bool {
    matches!(texts.offsets, TextOffsets::Large(_))
}

#[test]
fn texts_are_found_by_their_numbers() {
    let mut texts = Texts::from_iter(["a", "", "é\0"]);
    texts.push_chars("日b".chars());
    assert_eq!(texts.iter().rev().collect::<Vec<_>>(), ["日b", "é\0", "", "a"]);
    assert_eq!((texts.len(), texts.get(2), texts.get(4)), (4, Some("é\0"), None));
    assert_eq!((&texts[0], texts.part(1..3).as_str()), ("a", "é\0"));
    assert!(Texts::new().is_empty() && Texts::default().get(0).is_none());
    assert_eq!(Texts::repeated("xy", 3).as_str(), "xyxyxy");
}

#[test]
fn the_parts_are_those_of_arrow() {
    let (TextOffsets::Small(offsets), bytes) = Texts::from_iter(["ab", "", "c"]).into_parts() else {
        panic!("short texts have 32-bit offsets")
    };
    assert_eq!((offsets, bytes), (vec![0, 2, 2, 3], b"abc".to_vec()));
    let (TextOffsets::Large(offsets), bytes) = Texts::repeated(&"x".repeat(60), 2).into_parts() else {
        panic!("long texts have 64-bit offsets")
    };
    assert_eq!((offsets, bytes.len()), (vec![0, 60, 120], 120));
}

#[test]
fn offsets_get_wide_with_the_first_byte_that_they_do_not_reach() {
    let mut texts = Texts::repeated(&"a".repeat(50), 2);
    assert!(!is_large(&texts));
    texts.push("");
    assert!(!is_large(&texts));
    texts.push("b");
    assert!(is_large(&texts));
    assert_eq!((texts.len(), &texts[1], &texts[3]), (4, &*"a".repeat(50), "b"));
    // A part that is short has short offsets, and equals one that was short ever since.
    assert!(!is_large(&texts.slice(2..4)));
    assert_eq!(texts.slice(2..4), Texts::from_iter(["", "b"]));
    let mut appended = Texts::from_iter(["c"]);
    appended.append(texts.all());
    assert!(is_large(&appended));
    assert_eq!(&appended[4], "b");
    let mut wide = Texts::repeated(&"a".repeat(101), 1);
    wide = wide.take([].into_iter());
    wide.extend(["x"]);
    assert_eq!(wide, Texts::from_iter(["x"]));
}

#[test]
fn equal_are_those_of_equal_texts() {
    assert_ne!(Texts::from_iter(["ab", ""]), Texts::from_iter(["a", "b"]));
    assert_ne!(Texts::from_iter(["a"]), Texts::from_iter(["a", ""]));
    assert_eq!(Texts::from_iter(["a", "b"]), Texts::from_iter(["x", "a", "b"]).slice(1..3));
}

#[test]
fn room_is_what_was_asked_for() {
    let mut texts = Texts::new();
    texts.reserve_exact(1000, 16_000).unwrap();
    let (room, held) = (texts.room(), texts.memory_bytes());
    assert!(room >= 1000 && (20_000..21_000).contains(&held), "{room} {held}");
    texts.extend((0..5).map(|i| format!("{i:016}")));
    assert_eq!((texts.memory_bytes(), texts.used_bytes()), (held, 5 * 20));
    assert_eq!(texts.part(1..3).used_bytes(), 40);
    assert_eq!(texts.reserve_exact(usize::MAX / 16, 0).unwrap_err().kind(), ErrorKind::MemoryLimit);
}

#[test]
#[should_panic(expected = "3..4 of 3 texts")]
fn a_part_beyond_the_end_is_a_bug() {
    Texts::from_iter(["a", "b", "c"]).part(3..4);
}

#[test]
fn texts_in_order_are_not_moved() {
    let mut placed = PlacedTexts::new(4);
    placed.put(0, "a");
    placed.put(1, "b");
    assert!(placed.from.is_none());
    assert_eq!(list(&placed.clone().finish("-")), ["a", "b", "-", "-"]);
    placed.put(3, "d");
    placed.put(1, "again");
    assert_eq!(list(&placed.finish("-")), ["a", "again", "-", "d"]);
    assert_eq!(list(&PlacedTexts::new(2).finish("")), ["", ""]);
}

proptest! {
    /// All that is asked of them is what a list of strings answers.
    #[test]
    fn texts_are_a_list(
        texts in prop::collection::vec("[aé日\0]{0,9}", 0..20),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        cut in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let all: Texts = texts.iter().collect();
        prop_assert_eq!(list(&all), texts.clone());
        let n = texts.len();
        let (a, b) = (cut.0.index(n + 1), cut.1.index(n + 1));
        let rows = a.min(b)..a.max(b);
        let part = all.slice(rows.clone());
        prop_assert_eq!(list(&part), &texts[rows.clone()]);
        prop_assert_eq!(all.part(0..rows.end).part(rows.clone()).iter().collect::<Vec<_>>(), &texts[rows.clone()]);
        let mut twice = all.clone();
        twice.append(part.all());
        prop_assert_eq!(list(&twice), [&texts[..], &texts[rows]].concat());
        let keep: Vec<bool> = texts.iter().map(|t| t.len() % 2 == 0).collect();
        let kept: Vec<String> = texts.iter().filter(|t| t.len() % 2 == 0).cloned().collect();
        prop_assert_eq!(list(&all.filter(&keep)), kept);
        if n > 0 {
            let order: Vec<usize> = picks.iter().map(|i| i.index(n)).collect();
            let taken: Vec<String> = order.iter().map(|&i| texts[i].clone()).collect();
            prop_assert_eq!(list(&all.take(order.iter().copied())), taken);
            let mut placed = PlacedTexts::new(n);
            let mut expected = vec!["fill".to_owned(); n];
            for &i in &order {
                placed.put(i, &texts[i]);
                expected[i].clone_from(&texts[i]);
            }
            prop_assert_eq!(list(&placed.finish("fill")), expected);
        }
    }
}
