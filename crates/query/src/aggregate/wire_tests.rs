//! States that went through bytes are the states that they were, on hostile values; damaged bytes do no harm.

use proptest::prelude::*;

use super::accumulator::with_piece;
use super::*;
use crate::mask::Mask;
use crate::values::{Scalar, Values, Vector};
use sieva_types::wire::{Reader, Subject, Writer};

const SUBJECT: Subject =
    Subject { name: "partial result", kind: ErrorKind::InvalidValue, hint: "make it anew" };
const GROUPS: usize = 5;
const ROWS: u64 = i64::MAX as u64;

const ALL: [Aggregate; 15] = [
    Aggregate::Count,
    Aggregate::CountValues,
    Aggregate::CountDistinct,
    Aggregate::Min,
    Aggregate::Max,
    Aggregate::Sum,
    Aggregate::Avg,
    Aggregate::StddevSamp,
    Aggregate::StddevPop,
    Aggregate::VarSamp,
    Aggregate::VarPop,
    Aggregate::Median,
    Aggregate::Quantile(0.3),
    Aggregate::Quantile(1.0),
    Aggregate::Histogram { bins: 3, range: Some((-10.0, 1e9)) },
];

fn empty(aggregate: &Aggregate, input: ValueType) -> Box<dyn Accumulator> {
    let mut made = accumulator(aggregate, Some(input)).unwrap();
    made.resize(GROUPS);
    made
}

fn bytes_of(state: &dyn Accumulator) -> Vec<u8> {
    let mut w = Writer::default();
    state.encode(GROUPS, &mut w);
    w.into_bytes()
}

fn read(bytes: &[u8], aggregate: &Aggregate, input: ValueType, rows: u64) -> Result<Box<dyn Accumulator>> {
    let mut r = Reader::new(&SUBJECT, bytes, 1 << 24);
    let mut made = accumulator(aggregate, Some(input))?;
    made.resize(GROUPS);
    made.decode(GROUPS, rows, &mut r)?;
    r.finish()?;
    Ok(made)
}

/// Its values as debug text, which tells -0.0 from 0.0, and errors.
fn outcome(mut state: Box<dyn Accumulator>) -> String {
    let order: Vec<usize> = (0..GROUPS).collect();
    format!(
        "{:?}",
        state.finish(&order, 1).map(|f| order.iter().map(|&g| f.scalar(g)).collect::<Vec<Scalar>>())
    )
}

/// What is odd of each type, and what is usual.
fn hostile() -> impl Strategy<Value = Vector> {
    let floats = prop_oneof![
        4 => any::<f64>(), 4 => -1e3..1e3_f64, 2 => any::<f32>().prop_map(f64::from),
        1 => prop_oneof![
            Just(0.0), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::MAX), Just(-f64::MAX),
            Just(5e-324), Just(1e-300), Just(1e300), Just(2.0_f64.powi(53)),
        ],
    ];
    let ints = prop_oneof![any::<i64>(), -9..9_i64, Just(i64::MIN), Just(i64::MAX)];
    let unsigned = prop_oneof![any::<u64>(), 0..9_u64, Just(u64::MAX)];
    let text = prop_oneof!["[a-c]{0,2}", any::<String>()];
    let values = prop_oneof![
        4 => prop::collection::vec(floats, 0..200).prop_map(Values::F64),
        2 => prop::collection::vec(ints, 0..200).prop_map(Values::I64),
        2 => prop::collection::vec(unsigned, 0..200).prop_map(Values::U64),
        1 => prop::collection::vec(any::<bool>(), 0..200).prop_map(Values::Bool),
        1 => prop::collection::vec(text, 0..50).prop_map(|v| Values::Str(v.iter().collect())),
    ];
    (values, any::<u64>(), any::<bool>()).prop_map(|(values, seed, all)| {
        let valid = Mask::from_fn(values.len(), |i| all || seed.rotate_left(i as u32) & 3 != 0);
        Vector::new(values, Some(valid)).unwrap()
    })
}

fn group(seed: u64, i: usize) -> u32 {
    (seed.rotate_left(7 * i as u32) % (GROUPS as u64 + 1)) as u32
}

/// The state of the rows that `is_in` says.
fn state(
    aggregate: &Aggregate,
    v: &Vector,
    seed: u64,
    is_in: impl Fn(usize) -> bool,
) -> Box<dyn Accumulator> {
    let mut made = empty(aggregate, v.values.value_type());
    let of = |i: usize| if is_in(i) && group(seed, i) < GROUPS as u32 { group(seed, i) } else { NO_GROUP };
    let groups: Vec<u32> = (0..v.len()).map(of).collect();
    with_piece(v, v.values.value_type(), v.len(), |piece| made.update(Target::Each(&groups), piece)).unwrap();
    made
}

proptest! {
    #[test]
    fn parts_through_bytes_are_the_whole(v in hostile(), seed in any::<u64>(), parts in 1..6_usize) {
        let input = v.values.value_type();
        for aggregate in ALL.iter().filter(|a| a.result_type(Some(input)).is_ok()) {
            let whole = state(aggregate, &v, seed, |_| true);
            let same: Vec<u32> = (0..GROUPS as u32).collect();
            let (mut forward, mut backward) = (empty(aggregate, input), empty(aggregate, input));
            let cut = |k: usize| state(aggregate, &v, seed, |i| i * 7 % parts == k);
            for k in 0..parts {
                let bytes = bytes_of(&*cut(k));
                let part = read(&bytes, aggregate, input, ROWS).unwrap();
                prop_assert_eq!(&bytes_of(&*part), &bytes);
                prop_assert_eq!(outcome(read(&bytes, aggregate, input, ROWS).unwrap()), outcome(cut(k)));
                forward.merge(&*part, &same).unwrap();
                let part = read(&bytes_of(&*cut(parts - 1 - k)), aggregate, input, ROWS).unwrap();
                backward.merge(&*part, &same).unwrap();
            }
            if !matches!(aggregate, Aggregate::Median | Aggregate::Quantile(_)) {
                prop_assert_eq!(bytes_of(&*forward), bytes_of(&*whole), "{:?}", aggregate);
            }
            let expected = outcome(whole);
            prop_assert_eq!(outcome(forward), &expected[..], "{:?}", aggregate);
            prop_assert_eq!(outcome(backward), &expected[..], "{:?}", aggregate);
        }
    }

    /// Damage is an error, or states that can be merged and finished.
    #[test]
    fn damaged_states_do_no_harm(v in hostile(), seed in any::<u64>(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4), cut in any::<usize>()) {
        let input = v.values.value_type();
        for aggregate in ALL.iter().filter(|a| a.result_type(Some(input)).is_ok()) {
            let mut bytes = bytes_of(&*state(aggregate, &v, seed, |_| true));
            let n = bytes.len();
            for &(at, to) in changes.iter().filter(|_| n > 0) {
                bytes[at % n] = to;
            }
            for bytes in [&bytes[..], &bytes[..cut % (bytes.len() + 1)]] {
                let Ok(state) = read(bytes, aggregate, input, 1 << 40) else { continue };
                let same: Vec<u32> = (0..GROUPS as u32).collect();
                let mut twice = read(bytes, aggregate, input, 1 << 40).unwrap();
                twice.merge(&*state, &same).unwrap();
                read(&bytes_of(&*twice), aggregate, input, ROWS).unwrap();
                outcome(state);
                outcome(twice);
            }
        }
    }
}

/// The ends of what sums hold: more rows of the largest value than there can be.
#[test]
fn giant_sums_fit() {
    for aggregate in ALL {
        for x in [f64::MAX, -f64::MAX, 5e-324, f64::INFINITY] {
            let mut held = empty(&aggregate, ValueType::F64);
            if held.growth(ROWS) == 0 {
                held.repeat(1, &Piece::F64(&[x]), ROWS).unwrap();
            }
            let read = read(&bytes_of(&*held), &aggregate, ValueType::F64, ROWS).unwrap();
            assert_eq!(outcome(read), outcome(held), "{aggregate:?} of {x}");
        }
        let mut held = empty(&aggregate, ValueType::U64);
        if held.growth(ROWS) == 0 {
            held.repeat(1, &Piece::U64(&[u64::MAX], None), ROWS).unwrap();
        }
        let read = read(&bytes_of(&*held), &aggregate, ValueType::U64, ROWS).unwrap();
        assert_eq!(outcome(read), outcome(held), "{aggregate:?}");
    }
}

#[test]
fn more_than_the_rows_is_refused() {
    let mut held = empty(&Aggregate::Sum, ValueType::I64);
    held.update(Target::One(0), &Piece::I64(&[7, 9], None)).unwrap();
    let bytes = bytes_of(&*held);
    assert!(read(&bytes, &Aggregate::Sum, ValueType::I64, 2).is_ok());
    let e = read(&bytes, &Aggregate::Sum, ValueType::I64, 1).unwrap_err();
    assert_eq!(e.message(), "damaged partial result: 2 values of 1 rows, at byte 1");
    assert!(read(&bytes, &Aggregate::Avg, ValueType::F64, 2).is_err());
}

#[test]
fn kinds_come_back() {
    let types = [None, Some(ValueType::Bool), Some(ValueType::U64), Some(ValueType::Str)];
    for (aggregate, input) in ALL.iter().flat_map(|a| types.iter().map(move |t| (a, t))) {
        let mut w = Writer::default();
        wire::write_kind(&mut w, aggregate, *input);
        let bytes = w.into_bytes();
        let mut r = Reader::new(&SUBJECT, &bytes, 1 << 10);
        assert_eq!(wire::read_kind(&mut r).unwrap(), (*aggregate, *input));
        assert_eq!(r.left(), 0);
    }
    for bytes in [&[14, 0][..], &[12, 0, 0, 0, 0, 0, 0, 0, 64, 0], &[13, 0, 0, 0], &[5, 1, 5]] {
        assert!(wire::read_kind(&mut Reader::new(&SUBJECT, bytes, 1 << 10)).is_err());
    }
}
