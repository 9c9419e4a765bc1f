//! Tests of all accumulators: exact values, and the laws of merging.

use super::accumulator::with_piece;
use super::*;
use crate::mask::Mask;
use crate::values::testing::*;
use crate::values::{Scalar, Values, Vector};
use proptest::prelude::*;
use sieva_types::Texts;

/// An accumulator of one group, the second of two.
struct State {
    aggregate: Aggregate,
    input: Option<ValueType>,
    held: Box<dyn Accumulator>,
}

/// Which rows of a piece go into a state.
enum Rows<'a> {
    All(usize),
    Mask(&'a [bool]),
}

impl State {
    fn new(aggregate: &Aggregate, input: Option<ValueType>) -> Result<Self> {
        let mut held = accumulator(aggregate, input)?;
        held.resize(2);
        Ok(Self { aggregate: *aggregate, input, held })
    }

    fn type_of(&self) -> ValueType {
        self.input.unwrap_or(ValueType::F64)
    }

    fn update(&mut self, values: &Vector, rows: Rows<'_>) -> Result<()> {
        let input = self.type_of();
        let (n, groups) = match rows {
            Rows::All(n) => return feed(&mut *self.held, input, Target::One(1), values, n),
            Rows::Mask(m) => (m.len(), m.iter().map(|&m| if m { 1 } else { NO_GROUP }).collect::<Vec<_>>()),
        };
        feed(&mut *self.held, input, Target::Each(&groups), values, n)
    }

    fn update_repeated(&mut self, one: &Vector, n: u64) -> Result<()> {
        let input = self.type_of();
        with_piece(one, input, 1, |one| self.held.repeat(1, one, n))
    }

    fn merge(&mut self, other: State) -> Result<()> {
        self.held.merge(&*other.held, &[NO_GROUP, 1])
    }

    fn finish(mut self) -> Result<Scalar> {
        let peeked = self.held.value(1);
        let finished = self.held.finish(&[1], 2)?.scalar(0);
        assert_eq!(format!("{finished:?}"), format!("{:?}", peeked?));
        Ok(finished)
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        let mut copy = Self::new(&self.aggregate, self.input).unwrap();
        copy.held.merge(&*self.held, &[0, 1]).unwrap();
        copy
    }
}

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
    let edges = [0.0, 4.0, 8.0].into();
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
fn states_of_different_aggregates_do_not_merge() {
    let mut a = State::new(&Aggregate::Sum, Some(ValueType::I64)).unwrap();
    assert!(a.merge(State::new(&Aggregate::Avg, Some(ValueType::I64)).unwrap()).is_err());
    assert!(a.merge(State::new(&Aggregate::Sum, Some(ValueType::F64)).unwrap()).is_err());
    assert!(a.held.update(Target::One(0), &Piece::F64(&[1.0])).is_err());
}

#[test]
fn kept_values_show_in_the_memory() {
    let v = floats(&vec![1.0; 10_000]);
    assert!(state(Aggregate::Median, &v, Rows::All(10_000)).held.memory_bytes() >= 80_000);
    assert!(state(Aggregate::Sum, &v, Rows::All(10_000)).held.memory_bytes() < 1_000);
    let different: Vec<i64> = (0..10_000).collect();
    assert!(
        state(Aggregate::CountDistinct, &ints(&different), Rows::All(10_000)).held.memory_bytes() >= 90_000
    );
}

/// Values of one type, some of them missing.
fn vectors() -> impl Strategy<Value = Vector> {
    fn valid(n: usize) -> impl Strategy<Value = Option<Mask>> {
        let flags = prop::collection::vec(prop::bool::weighted(0.8), n);
        prop::option::of(flags.prop_map(|flags| Mask::from(&flags[..])))
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

/// Equal to the bit.
fn assert_same(aggregate: Aggregate, a: &Scalar, b: &Scalar) {
    match (a, b) {
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
            let mut states = accumulator(&aggregate, v.value_type()).unwrap();
            states.resize(3);
            let input = v.value_type().unwrap_or(ValueType::F64);
            feed(&mut *states, input, Target::Each(&groups), &v, v.len()).unwrap();
            let finished = states.finish(&[2, 0, 1], 2).unwrap();
            for (i, g) in [2, 0, 1].into_iter().enumerate() {
                let members = part(&v, |i| groups[i] == g);
                assert_same(aggregate, &finished.scalar(i), &of(aggregate, &members));
            }
        }
    }

    /// Rows of neighbouring groups are the same as rows of groups that are told one by one.
    #[test]
    fn runs_are_rows(v in vectors(), width in 1..70_usize) {
        for aggregate in all() {
            let input = v.value_type().unwrap_or(ValueType::F64);
            let [mut runs, mut each] = [0, 1].map(|_| accumulator(&aggregate, v.value_type()).unwrap());
            runs.resize(width);
            each.resize(width);
            let groups: Vec<u32> = (0..v.len()).map(|i| (i % width) as u32).collect();
            feed(&mut *each, input, Target::Each(&groups), &v, v.len()).unwrap();
            with_piece(&v, input, v.len(), |all| {
                (0..v.len()).step_by(width).try_for_each(|at| {
                    runs.update(Target::From(0), &all.part(at, width.min(v.len() - at)))
                })
            }).unwrap();
            let order: Vec<usize> = (0..width).collect();
            let (runs, each) = (runs.finish(&order, 3).unwrap(), each.finish(&order, 1).unwrap());
            (0..width).for_each(|g| assert_same(aggregate, &runs.scalar(g), &each.scalar(g)));
        }
    }

    #[test]
    fn raw_floats_are_floats(v in prop::collection::vec(prop_oneof![8 => -1e3_f32..1e3, 1 => Just(f32::NAN)], 0..3000)) {
        let wide: Vec<f64> = v.iter().map(|&x| f64::from(x)).collect();
        for aggregate in all() {
            let mut states = accumulator(&aggregate, Some(ValueType::F64)).unwrap();
            states.resize(2);
            states.update(Target::One(0), &Piece::F32(&v)).unwrap();
            states.update(Target::One(1), &Piece::F64(&wide)).unwrap();
            let expected = of(aggregate, &floats(&wide));
            (0..2).for_each(|g| assert_same(aggregate, &states.value(g).unwrap(), &expected));
        }
    }
}

/// Rows that are taken in at once, as if they had been fed one by one.
mod repeated {
    use super::Aggregate::*;
    use super::*;

    const ALL: [Aggregate; 13] = [
        Count,
        CountValues,
        CountDistinct,
        Min,
        Max,
        Sum,
        Avg,
        StddevSamp,
        VarPop,
        Median,
        Quantile(0.3),
        Aggregate::Histogram { bins: 3, range: Some((-1.0, 10.0)) },
        Aggregate::Histogram { bins: 2, range: Some((0.0, 1.0)) },
    ];

    fn column(values: Values) -> Vector {
        Vector::new(values, None).unwrap()
    }

    /// As the debug text, which tells -0.0 from 0.0 and shows histograms.
    fn outcome(state: State) -> String {
        format!("{:?}", state.finish())
    }

    fn check(values: Values, before: Values, n: u64) {
        let input = values.value_type();
        let one = column(values);
        for aggregate in ALL.iter().filter(|a| a.result_type(Some(input)).is_ok()) {
            let mut at_once = State::new(aggregate, Some(input)).unwrap();
            at_once.update(&column(before.clone()), Rows::All(before.len())).unwrap();
            let mut one_by_one = at_once.clone();
            at_once.update_repeated(&one, n).unwrap();
            (0..n).for_each(|_| one_by_one.update(&one, Rows::All(1)).unwrap());
            assert_eq!(outcome(at_once), outcome(one_by_one), "{aggregate:?} of {n} times {one:?}");
        }
    }

    proptest! {
        #[test]
        fn at_once_is_as_one_by_one(x: f64, i: i64, u: u64, b: bool, t: String, n in 0_u64..200) {
            check(Values::F64(vec![x]), Values::F64(vec![0.1, -7.5]), n);
            check(Values::F64(vec![f64::NAN]), Values::F64(vec![2.0]), n);
            check(Values::F64(vec![-0.0]), Values::F64(vec![]), n);
            check(Values::I64(vec![i]), Values::I64(vec![3, i64::MIN]), n);
            check(Values::U64(vec![u]), Values::U64(vec![u64::MAX]), n);
            check(Values::Bool(vec![b]), Values::Bool(vec![false]), n);
            check(Values::Str(Texts::repeated(&t, 1)), Values::Str(Texts::new()), n);
        }
    }

    #[test]
    fn as_many_rows_as_there_can_be() {
        let n = i64::MAX as u64;
        let finish = |aggregate: Aggregate, values: Values| {
            let mut state = State::new(&aggregate, Some(values.value_type())).unwrap();
            state.update_repeated(&column(values), n).unwrap();
            state.finish()
        };
        assert_eq!(finish(Count, Values::F64(vec![1.0])).unwrap(), Scalar::I64(i64::MAX));
        assert_eq!(finish(CountValues, Values::U64(vec![1])).unwrap(), Scalar::I64(i64::MAX));
        assert_eq!(finish(Sum, Values::I64(vec![-1])).unwrap(), Scalar::I64(-i64::MAX));
        // 0.1 is 3602879701896397 / 2^55; Python: float(fractions.Fraction(0.1) * (2**63 - 1)).
        assert_eq!(finish(Sum, Values::F64(vec![0.1])).unwrap(), Scalar::F64(9.223_372_036_854_776e17));
        assert_eq!(finish(Sum, Values::F64(vec![f64::MAX])).unwrap(), Scalar::F64(f64::INFINITY));
        assert_eq!(finish(VarPop, Values::F64(vec![0.1])).unwrap(), Scalar::F64(0.0));
        assert_eq!(
            finish(Avg, Values::U64(vec![u64::MAX])).unwrap(),
            Scalar::F64(18_446_744_073_709_551_616.0)
        );
        let e = finish(Sum, Values::U64(vec![u64::MAX])).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Overflow);
        assert!(e.message().starts_with("the sum 170141183460469231704017187605319778305 "), "{e}");
        let missing = Vector::new(Values::I64(vec![1]), Some(Mask::zeros(1))).unwrap();
        let mut median = State::new(&Median, Some(ValueType::I64)).unwrap();
        assert!(median.held.growth(1 << 40) >= 9 << 40);
        median.update_repeated(&missing, n).unwrap();
        assert_eq!(median.finish().unwrap(), Scalar::Null);
    }
}
