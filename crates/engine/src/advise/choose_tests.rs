//! Choices against all subsets, and what rules and budgets do to them.

use super::*;

/// A zone map, bitmap and replica of these bytes; one note of these seconds.
fn case(name: &str, bytes: [u64; 3], scan: f64, by: [f64; 3]) -> Case {
    let mut case = Case::new("/a.nc", name);
    case.kinds = bytes.map(|bytes| Kind { bytes, build_seconds: 0.01, ..Kind::default() });
    case.columns = vec![name.to_string()];
    case.uses = 1;
    case.seconds = vec![(1.0, Seconds { scan, by })];
    case
}

fn verdicts(chosen: &Chosen) -> Vec<(String, &'static str, &'static str)> {
    let shown = chosen.items.iter().map(|i| (i.path.clone(), name_of(i.kind), i.verdict.name()));
    shown.collect()
}

fn bytes(chosen: &Chosen) -> u64 {
    chosen.items.iter().filter(|i| i.is_there_then()).map(|i| i.bytes).sum()
}

#[test]
fn the_hot_array_is_served_and_the_cold_one_is_not() {
    let hot = case("hot", [10, 1000, 8000], 5.0, [4.0, 0.5, 0.4]);
    let cold = case("cold", [10, 1000, 8000], 0.001, [0.001, 0.0005, 0.0004]);
    let chosen = choose(vec![cold, hot], Some(5000));
    let built: Vec<_> = verdicts(&chosen).into_iter().filter(|v| v.2 == "build").collect();
    let hot = |kind| ("hot".to_string(), kind, "build");
    assert_eq!(built, [hot("zonemap"), hot("bitmap")]);
    assert!((chosen.saves - 4.5).abs() < 1e-12);
    // What a replica would save besides is part of what could be saved at best.
    assert!(chosen.bound >= chosen.saves);
}

#[test]
fn every_budget_is_kept_and_the_bound_holds() {
    // A fixed sequence of odd sizes and gains.
    let mut x: u64 = 1;
    let mut next = |n: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % n + 1
    };
    for _ in 0..200 {
        let cases: Vec<Case> = (0..3)
            .map(|i| {
                let size = [next(10), next(100), next(300)];
                let scan = next(1000) as f64;
                case(&format!("a{i}"), size, scan, [next(1000) as f64, next(1000) as f64, next(1000) as f64])
            })
            .collect();
        let budget = next(600);
        let chosen = choose(cases.clone(), Some(budget));
        assert!(bytes(&chosen) <= budget);
        let mut best: f64 = 0.0;
        for subset in 0..512_u32 {
            let has: Vec<[bool; 3]> =
                (0..3).map(|c| std::array::from_fn(|k| subset >> (3 * c + k) & 1 == 1)).collect();
            let legal = has.iter().all(|h| h[ZONEMAP] || !h[BITMAP]);
            let size: u64 = cases
                .iter()
                .zip(&has)
                .map(|(c, h)| (0..3).filter(|&k| h[k]).map(|k| c.kinds[k].bytes).sum::<u64>())
                .sum();
            if legal && size <= budget {
                best = best.max(cases.iter().zip(&has).map(|(c, h)| c.total([false; 3]) - c.total(*h)).sum());
            }
        }
        // What does not pay for its building is not counted: at most that is lost of the bound.
        assert!(best <= chosen.bound + 9.0 * 0.01 + 1e-9, "{best} of at most {}", chosen.bound);
        assert!(chosen.saves <= best + 1e-9);
        assert!(chosen.saves >= 0.31 * best - 9.0 * 0.01, "{} of {best}", chosen.saves);
    }
}

#[test]
fn what_a_later_choice_makes_needless_is_given_back() {
    // The bitmap saves more for a byte, the replica all that it saves.
    let one = case("a", [10, 100, 8000], 5.0, [5.0, 2.0, 0.1]);
    let chosen = choose(vec![one], None);
    assert_eq!(verdicts(&chosen)[0], ("a".into(), "sorted", "build"));
    assert!((chosen.items[0].saves - 4.9).abs() < 1e-12);
    assert!(chosen.items[1..].iter().all(|i| i.verdict == Verdict::Skip));
}

#[test]
fn pinned_is_taken_whatever_the_budget_and_forbidden_never() {
    let mut a = case("a", [10, 1000, 8000], 0.0, [0.0; 3]);
    a.kinds[2].rule = Some(Rule::Pinned);
    let mut b = case("b", [10, 100, 800], 9.0, [8.0, 1.0, 1.0]);
    b.kinds[1].rule = Some(Rule::Forbidden);
    b.kinds[1].bytes_now = 100;
    let chosen = choose(vec![a, b], Some(500));
    let found = verdicts(&chosen);
    assert_eq!(found[0], ("a".into(), "sorted", "build"));
    assert!(found.contains(&("b".into(), "bitmap", "evict")), "{found:?}");
    assert!(!found.iter().any(|v| v.0 == "b" && v.2 == "build"), "the pinned one leaves no room: {found:?}");
}

#[test]
fn what_is_not_used_goes_first_where_room_is_needed() {
    let mut used = case("used", [10, 1000, 0], 5.0, [5.0, 0.5, 5.0]);
    let mut unused = case("unused", [10, 1000, 0], 0.0, [0.0; 3]);
    unused.seconds.clear();
    for k in [0, 1] {
        unused.kinds[k].bytes_now = unused.kinds[k].bytes;
        unused.kinds[k].complete = true;
        used.kinds[k].bytes_now = 0;
    }
    let tight = choose(vec![unused.clone(), used.clone()], Some(1100));
    assert!(verdicts(&tight).contains(&("unused".into(), "bitmap", "evict")));
    assert!(verdicts(&tight).contains(&("unused".into(), "zonemap", "keep")));
    assert!(verdicts(&tight).contains(&("used".into(), "bitmap", "build")));
    let wide = choose(vec![unused, used], None);
    assert!(wide.items.iter().all(|i| i.verdict != Verdict::Evict));
}

#[test]
fn nothing_asked_is_nothing_advised() {
    let chosen = choose(Vec::new(), Some(0));
    assert!(chosen.items.is_empty() && chosen.saves == 0.0 && chosen.bound == 0.0);
}
