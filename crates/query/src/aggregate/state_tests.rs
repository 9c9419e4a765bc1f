//! Tests of [`State`]: exact values, and the laws of merging.

use super::*;
use crate::values::testing::*;
use proptest::prelude::*;

/// All aggregates, with parameters that fit the values drawn below.
fn all() -> Vec<Aggregate> {
    use Aggregate::*;
    vec![
        Count,
        CountValues,
        CountDistinct,
        Min,
        Max,
        Sum,
        Avg,
        StddevSamp,
        StddevPop,
        VarSamp,
        VarPop,
        Quantile(0.3),
        Median,
        Histogram { bins: 7, range: Some((-100.0, 100.0)) },
    ]
}

fn state(aggregate: Aggregate, values: &Vector, rows: Rows<'_>) -> State {
    let mut state = State::new(&aggregate, values.value_type()).unwrap();
    state.update(values, rows).unwrap();
    state
}

fn of(aggregate: Aggregate, values: &Vector) -> Scalar {
    state(aggregate, values, Rows::All(values.len())).finish().unwrap()
}

#[test]
fn missing_values_are_passed_over() {
    use Aggregate::*;
    let v = without(floats(&[1.0, f64::NAN, 3.0, 100.0, 8.0]), &[3]);
    assert_eq!(of(Count, &v), Scalar::I64(5));
    assert_eq!(of(CountValues, &v), Scalar::I64(3));
    assert_eq!(of(Min, &v), Scalar::F64(1.0));
    assert_eq!(of(Max, &v), Scalar::F64(8.0));
    assert_eq!(of(Sum, &v), Scalar::F64(12.0));
    assert_eq!(of(Avg, &v), Scalar::F64(4.0));
    assert_eq!(of(VarPop, &v), Scalar::F64(26.0 / 3.0));
    assert_eq!(of(VarSamp, &v), Scalar::F64(13.0));
    assert_eq!(of(StddevSamp, &v), Scalar::F64(13.0_f64.sqrt()));
    assert_eq!(of(Median, &v), Scalar::F64(3.0));
    assert_eq!(of(Quantile(0.75), &v), Scalar::F64(5.5));
    let edges = vec![0.0, 4.0, 8.0];
    let histogram = Histogram { bins: 2, range: Some((0.0, 8.0)) };
    assert_eq!(of(histogram, &v), Scalar::Histogram { edges, counts: vec![2, 1] });
}

#[test]
fn of_nothing_all_but_counts_are_null() {
    for aggregate in all() {
        let expected = match aggregate {
            Aggregate::Count | Aggregate::CountValues | Aggregate::CountDistinct => Scalar::I64(0),
            Aggregate::Histogram { .. } => continue,
            _ => Scalar::Null,
        };
        assert_eq!(of(aggregate, &floats(&[])), expected, "{aggregate:?}");
        assert_eq!(of(aggregate, &ints(&[])), expected, "{aggregate:?}");
    }
    assert_eq!(of(Aggregate::VarSamp, &ints(&[5])), Scalar::Null);
    assert_eq!(of(Aggregate::VarPop, &ints(&[5])), Scalar::F64(0.0));
}

#[test]
fn integers_are_summed_exactly_or_refused() {
    let near = (1_i64 << 53) + 1;
    assert_eq!(of(Aggregate::Sum, &ints(&[near, -1, 1])), Scalar::I64(near));
    assert_eq!(of(Aggregate::Sum, &ints(&[i64::MAX, i64::MAX, -i64::MAX])), Scalar::I64(i64::MAX));
    assert_eq!(of(Aggregate::Sum, &unsigned(&[u64::MAX])), Scalar::U64(u64::MAX));
    assert_eq!(of(Aggregate::Sum, &bools(&[Some(true), None, Some(true)])), Scalar::I64(2));
    assert_eq!(of(Aggregate::Avg, &ints(&[i64::MAX, i64::MAX])), Scalar::F64(i64::MAX as f64));
    let v = ints(&[i64::MAX, 1]);
    let e = state(Aggregate::Sum, &v, Rows::All(2)).finish().unwrap_err();
    assert_eq!(
        (e.kind(), e.message(), e.hint_text()),
        (
            ErrorKind::Overflow,
            "the sum 9223372036854775808 does not fit in int64",
            Some("sum in floating point: sum(float64(x))")
        )
    );
}

#[test]
fn infinities_of_both_signs_have_no_sum() {
    let v = floats(&[f64::INFINITY, 1.0]);
    assert_eq!(of(Aggregate::Sum, &v), Scalar::F64(f64::INFINITY));
    let v = floats(&[f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(of(Aggregate::Sum, &v), Scalar::Null);
    assert_eq!(of(Aggregate::Avg, &v), Scalar::Null);
}

#[test]
fn extremes_and_distinct_keep_their_type() {
    let t = texts(&["b", "a", "b", "ab"]);
    assert_eq!(of(Aggregate::Min, &t), Scalar::Str("a".into()));
    assert_eq!(of(Aggregate::Max, &t), Scalar::Str("b".into()));
    assert_eq!(of(Aggregate::CountDistinct, &t), Scalar::I64(3));
    assert_eq!(of(Aggregate::Max, &unsigned(&[1, u64::MAX])), Scalar::U64(u64::MAX));
    assert_eq!(of(Aggregate::Min, &bools(&[Some(true), Some(false)])), Scalar::Bool(false));
    assert_eq!(of(Aggregate::CountDistinct, &floats(&[0.0, -0.0, 1.0, f64::NAN])), Scalar::I64(2));
    assert!(State::new(&Aggregate::Sum, Some(ValueType::Str)).is_err());
}

#[test]
fn constants_count_for_each_row() {
    let mut sum = State::new(&Aggregate::Sum, Some(ValueType::I64)).unwrap();
    sum.update(&constant(Scalar::I64(2)), Rows::All(5)).unwrap();
    sum.update(&constant(Scalar::I64(2)), Rows::Mask(&[true, false, true])).unwrap();
    sum.update(&constant(Scalar::Null), Rows::All(9)).unwrap();
    assert_eq!(sum.finish().unwrap(), Scalar::I64(14));
    let mut count = State::new(&Aggregate::Count, None).unwrap();
    count.update(&constant(Scalar::Null), Rows::Mask(&[true, false])).unwrap();
    assert_eq!(count.finish().unwrap(), Scalar::I64(1));
}

#[test]
fn groups_out_of_range_are_refused() {
    let mut states = vec![State::new(&Aggregate::Sum, Some(ValueType::I64)).unwrap()];
    let e = State::update_grouped(&mut states, &[0, 1], &ints(&[1, 2])).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::Internal, "row of group 1 of 1"));
    assert!(State::update_grouped(&mut [], &[NO_GROUP], &ints(&[1])).is_ok());
}

#[test]
fn states_of_different_aggregates_do_not_merge() {
    let mut a = State::new(&Aggregate::Sum, Some(ValueType::I64)).unwrap();
    assert!(a.merge(State::new(&Aggregate::Avg, Some(ValueType::I64)).unwrap()).is_err());
    assert!(a.merge(State::new(&Aggregate::Sum, Some(ValueType::F64)).unwrap()).is_err());
    assert!(a.update_f64(&[1.0]).is_err());
}

#[test]
fn kept_values_show_in_the_memory() {
    let v = floats(&vec![1.0; 10_000]);
    assert!(state(Aggregate::Median, &v, Rows::All(10_000)).memory_bytes() >= 80_000);
    assert!(state(Aggregate::Sum, &v, Rows::All(10_000)).memory_bytes() < 1_000);
    let different: Vec<i64> = (0..10_000).collect();
    assert!(state(Aggregate::CountDistinct, &ints(&different), Rows::All(10_000)).memory_bytes() >= 90_000);
}

/// Values of one type, some of them missing, near enough to each other for the bounds on variances to hold.
fn vectors() -> impl Strategy<Value = Vector> {
    fn valid(n: usize) -> impl Strategy<Value = Option<Vec<bool>>> {
        prop::option::of(prop::collection::vec(prop::bool::weighted(0.8), n))
    }
    let lengths = prop_oneof![0..20_usize, 0..3000_usize];
    lengths.prop_flat_map(|n| {
        let ints = prop::collection::vec(-100_i64..100, n).prop_map(Values::I64);
        let unsigned = prop::collection::vec(0_u64..100, n).prop_map(Values::U64);
        let floats = prop::collection::vec(
            prop_oneof![9 => -100.0..100.0, 1 => Just(f64::NAN), 1 => Just(-0.0), 1 => Just(0.0)],
            n,
        )
        .prop_map(Values::F64);
        let bools = prop::collection::vec(any::<bool>(), n).prop_map(Values::Bool);
        (prop_oneof![ints, unsigned, floats, bools], valid(n))
            .prop_map(|(values, valid)| Vector::new(values, valid).unwrap())
    })
}

fn part(v: &Vector, is_in: impl Fn(usize) -> bool) -> Vector {
    v.filter(&(0..v.len()).map(is_in).collect::<Vec<_>>()).unwrap()
}

/// Equal to the bit; variances to a few units in the last place.
fn assert_same(aggregate: Aggregate, a: &Scalar, b: &Scalar) {
    use Aggregate::{StddevPop, StddevSamp, VarPop, VarSamp};
    match (a, b) {
        (Scalar::F64(x), Scalar::F64(y))
            if matches!(aggregate, StddevSamp | StddevPop | VarSamp | VarPop) =>
        {
            assert!((x - y).abs() <= 1e-12 * x.abs(), "{aggregate:?}: {x} and {y}");
        }
        (Scalar::F64(x), Scalar::F64(y)) => assert_eq!(x.to_bits(), y.to_bits(), "{aggregate:?}"),
        _ => assert_eq!(a, b, "{aggregate:?}"),
    }
}

proptest! {
    #[test]
    fn merged_parts_are_the_whole(v in vectors(), cut in 0.0..1.0) {
        let cut = (v.len() as f64 * cut) as usize;
        for aggregate in all() {
            let whole = of(aggregate, &v);
            let (head, tail) = (part(&v, |i| i < cut), part(&v, |i| i >= cut));
            let head = state(aggregate, &head, Rows::All(cut));
            let tail = state(aggregate, &tail, Rows::All(v.len() - cut));
            let (mut forward, mut backward) = (head.clone(), tail.clone());
            forward.merge(tail).unwrap();
            backward.merge(head).unwrap();
            assert_same(aggregate, &forward.finish().unwrap(), &whole);
            assert_same(aggregate, &backward.finish().unwrap(), &whole);
        }
    }

    #[test]
    fn merging_is_associative(v in vectors()) {
        for aggregate in all() {
            let parts: Vec<_> = (0..3).map(|k| part(&v, |i| i % 3 == k)).collect();
            let [a, b, c] = [0, 1, 2].map(|k| state(aggregate, &parts[k], Rows::All(parts[k].len())));
            let (mut left, mut right, mut all) = (a.clone(), b.clone(), a);
            left.merge(b).unwrap();
            left.merge(c.clone()).unwrap();
            right.merge(c).unwrap();
            all.merge(right).unwrap();
            assert_same(aggregate, &left.finish().unwrap(), &all.finish().unwrap());
        }
    }

    #[test]
    fn a_mask_is_a_filter(v in vectors(), seed in any::<u64>()) {
        let keep: Vec<bool> = (0..v.len()).map(|i| seed.rotate_left(i as u32) & 1 == 1).collect();
        let kept = v.filter(&keep).unwrap();
        for aggregate in all() {
            let masked = state(aggregate, &v, Rows::Mask(&keep)).finish().unwrap();
            assert_same(aggregate, &masked, &of(aggregate, &kept));
        }
    }

    #[test]
    fn groups_are_filters(v in vectors(), seed in any::<u64>()) {
        let groups: Vec<u32> = (0..v.len())
            .map(|i| match (seed.rotate_left(i as u32) ^ i as u64) % 4 {
                3 => NO_GROUP,
                g => g as u32,
            })
            .collect();
        for aggregate in all() {
            let mut states = vec![State::new(&aggregate, v.value_type()).unwrap(); 3];
            State::update_grouped(&mut states, &groups, &v).unwrap();
            for (g, state) in states.into_iter().enumerate() {
                let members = part(&v, |i| groups[i] == g as u32);
                assert_same(aggregate, &state.finish().unwrap(), &of(aggregate, &members));
            }
        }
    }

    #[test]
    fn raw_floats_are_floats(v in prop::collection::vec(prop_oneof![8 => -1e3_f32..1e3, 1 => Just(f32::NAN)], 0..3000)) {
        let wide: Vec<f64> = v.iter().map(|&x| f64::from(x)).collect();
        for aggregate in all() {
            let mut states = vec![State::new(&aggregate, Some(ValueType::F64)).unwrap(); 2];
            states[0].update_f32(&v).unwrap();
            states[1].update_f64(&wide).unwrap();
            for state in states {
                assert_same(aggregate, &state.finish().unwrap(), &of(aggregate, &floats(&wide)));
            }
        }
    }
}
