//! Against marking each element.

use proptest::prelude::*;
use sieva_types::Bx;

use super::deal::readers;
use super::*;

const SIDE: u64 = 9;

fn boxes(rank: usize) -> impl Strategy<Value = Vec<Bx>> {
    let edge = (0..SIDE, 0..SIDE).prop_map(|(a, b)| (a.min(b), a.max(b) - a.min(b) + 1));
    let one = prop::collection::vec(edge, rank).prop_map(|edges| {
        let (start, shape) = edges.into_iter().unzip();
        Bx::new(start, shape)
    });
    prop::collection::vec(one, 1..8)
}

/// How many boxes each element of an array of equal sides is in.
fn marked(boxes: &[Bx], rank: usize) -> Vec<u32> {
    let n = SIDE.pow(rank as u32);
    let mut count = vec![0; n as usize];
    for (i, count) in count.iter_mut().enumerate() {
        let mut rest = i as u64;
        let mut at = vec![0; rank];
        for d in (0..rank).rev() {
            (at[d], rest) = (rest % SIDE, rest / SIDE);
        }
        let inside = |bx: &&Bx| (0..rank).all(|d| (bx.start[d]..bx.end(d)).contains(&at[d]));
        *count = boxes.iter().filter(inside).count() as u32;
    }
    count
}

fn piece(asker: usize, server: u64, stripe: u64, bx: (&[u64], &[u64])) -> Piece {
    let bx = Bx::new(bx.0.to_vec(), bx.1.to_vec());
    Piece { array: 0, kind: 0, width: 8, asker, request: 0, server, stripe, block: 0, bx }
}

fn asked(shape: &[u64]) -> Vec<Asked> {
    vec![Asked { shape: shape.to_vec(), is_chunked: false }]
}

proptest! {
    #[test]
    fn a_union_covers_each_element_once(
        (rank, given) in (0_usize..4).prop_flat_map(|rank| (Just(rank), boxes(rank))), is_row: bool
    ) {
        let (count, wanted) = (marked(&disjoint(&given, is_row), rank), marked(&given, rank));
        prop_assert!(count.iter().all(|n| *n <= 1));
        prop_assert!(count.iter().zip(&wanted).all(|(n, w)| *w == 0 || *n == 1));
        if is_row {
            let first = wanted.iter().position(|w| *w > 0);
            let last = wanted.iter().rposition(|w| *w > 0);
            prop_assert!(count.iter().position(|n| *n > 0) >= first && count.iter().rposition(|n| *n > 0) <= last);
        }
    }

    #[test]
    fn every_piece_has_one_reader_and_one_wave(
        pieces in prop::collection::vec((0_usize..5, 0_u64..4, 0_u64..5, 0_u64..3, 0_usize..2, boxes(3)), 0..40),
        extra in 0_usize..3,
        most in 40_u64..5000,
        chunked: bool,
    ) {
        let arrays = vec![
            Asked { shape: vec![SIDE; 3], is_chunked: chunked },
            Asked { shape: vec![SIDE; 3], is_chunked: false },
        ];
        let ranks = 5 + extra;
        let given: Vec<Piece> = pieces
            .into_iter()
            .enumerate()
            .map(|(i, (asker, server, stripe, block, array, mut boxes))| Piece {
                array, kind: 0, width: 4, asker, request: i as u64, server, stripe, block, bx: boxes.remove(0),
            })
            .collect();
        let plan = Plan::of(&arrays, given.clone(), ranks, most).unwrap();
        let mut places = plan.given.clone();
        places.sort_unstable();
        prop_assert_eq!(places, (0..given.len()).collect::<Vec<_>>());
        prop_assert!(plan.given.iter().zip(&plan.pieces).all(|(i, piece)| given[*i] == *piece));
        let ends: Vec<usize> = plan.units.iter().map(|unit| unit.pieces.end).collect();
        prop_assert_eq!(ends.last().copied().unwrap_or(0), given.len());
        let mut sent = std::collections::BTreeMap::<_, Vec<u64>>::new();
        for (i, unit) in plan.units.iter().enumerate() {
            prop_assert_eq!(unit.pieces.start, if i == 0 { 0 } else { ends[i - 1] });
            prop_assert!(unit.reader < ranks && unit.wave < plan.waves);
            let pieces = &plan.pieces[unit.pieces.clone()];
            prop_assert!(pieces.iter().all(|piece| piece.key() == pieces[0].key()));
            let own: Vec<Bx> = pieces.iter().map(|piece| piece.bx.clone()).collect();
            let (count, wanted) = (marked(&plan.reads(i), 3), marked(&own, 3));
            prop_assert!(count.iter().zip(&wanted).all(|(n, w)| *n <= 1 && (*w == 0 || *n == 1)));
            if let Some((first, n)) = plan.run(i) {
                let inside = |at: usize| u32::from((first..first + n).contains(&(at as u64)));
                prop_assert!(plan.is_row(i));
                prop_assert!(count.iter().enumerate().all(|(at, n)| *n == inside(at)));
            }
            let others = pieces.iter().filter(|piece| piece.asker != unit.reader).map(Piece::bytes).sum();
            sent.entry((unit.reader, unit.wave)).or_default().push(others);
            // What two units of one key have is of ranks that read their own, and apart.
            for other in plan.units[..i].iter().filter(|o| plan.pieces[o.pieces.start].key() == pieces[0].key()) {
                prop_assert!(pieces.iter().all(|piece| piece.asker == unit.reader));
                let theirs = &plan.pieces[other.pieces.clone()];
                prop_assert!(theirs.iter().all(|a| pieces.iter().all(|b| a.bx.intersect(&b.bx).is_none())));
            }
        }
        for of in sent.values() {
            let total = of.iter().sum::<u64>();
            prop_assert!(total <= most || of.iter().filter(|n| **n > 0).count() == 1);
            prop_assert!(total <= plan.largest);
        }
    }
}

#[test]
fn a_stripe_that_begins_and_ends_within_rows_is_one_run() {
    let of = |asker, start: [u64; 2], shape: [u64; 2]| piece(asker, 0, 1, (&start, &shape));
    // Of rows of 4: the last two, two whole ones, the first.
    let given = vec![of(0, [1, 2], [1, 2]), of(0, [2, 0], [2, 4]), of(0, [4, 0], [1, 1])];
    let plan = Plan::of(&asked(&[9, 4]), given.clone(), 1, 1 << 20).unwrap();
    assert_eq!((plan.reads(0).len(), plan.run(0), plan.run(1)), (3, Some((6, 11)), None));
    let apart = vec![given[0].clone(), given[2].clone()];
    assert_eq!(Plan::of(&asked(&[9, 4]), apart, 1, 1 << 20).unwrap().run(0), None);
}

#[test]
fn readers_are_balanced_by_weight() {
    // More servers than ranks: the heaviest first, to whoever has the least.
    assert_eq!(readers(&[(0, 9), (1, 5), (2, 4), (3, 1)], 2), [0, 1, 1, 0]);
    // Fewer: each has readers by its weight, who divide its units in their order.
    let units: Vec<(u64, u64)> = (0..10).map(|i| (u64::from(i >= 8), 3)).collect();
    assert_eq!(readers(&units, 5), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(readers(&[], 3), [0_usize; 0]);
}

#[test]
fn who_asks_for_much_that_nobody_else_wants_reads_it() {
    // Whole rows of 8 MB, one after the other, of four ranks on two servers: nothing is sent.
    let pieces: Vec<Piece> =
        (0..8).map(|i| piece(i % 4, i as u64 % 2, i as u64, (&[i as u64, 0], &[1, 1 << 20]))).collect();
    let plan = Plan::of(&asked(&[8, 1 << 20]), pieces, 4, 1 << 20).unwrap();
    assert_eq!((plan.largest, plan.waves), (0, 1));
    assert!(plan.units.iter().all(|unit| plan.pieces[unit.pieces.start].asker == unit.reader));
    // One rank wants all of it: the others help.
    let pieces: Vec<Piece> = (0..8).map(|i| piece(1, i % 2, i, (&[i, 0], &[1, 1 << 20]))).collect();
    let plan = Plan::of(&asked(&[8, 1 << 20]), pieces, 4, 1 << 30).unwrap();
    let mut readers: Vec<usize> = plan.units.iter().map(|unit| unit.reader).collect();
    readers.sort_unstable();
    readers.dedup();
    assert_eq!(readers, [0, 1, 2, 3]);
}

#[test]
fn who_asks_for_narrow_columns_has_them_sent() {
    // Each rank wants a quarter of every row: reading them alone would take a request for each, or all bytes four times.
    let quarter = |asker: u64| piece(asker as usize, 0, 0, (&[0, asker * 250], &[1000, 250]));
    let plan = Plan::of(&asked(&[1000, 1000]), (0..4).map(quarter).collect(), 4, 1 << 30).unwrap();
    assert_eq!(plan.units.len(), 1);
    assert_eq!(plan.reads(0), [Bx::new(vec![0, 0], vec![1000, 1000])]);
    // Halves of the rows lie in one piece each.
    let half = |asker: u64| piece(asker as usize, 0, 0, (&[asker * 500, 0], &[500, 1000]));
    let plan = Plan::of(&asked(&[1000, 1000]), (0..2).map(half).collect(), 4, 1 << 30).unwrap();
    assert_eq!((plan.units.len(), plan.largest), (2, 0));
    // What two want is read by one of them.
    let more = |asker: u64| piece(asker as usize, 0, 0, (&[asker * 400, 0], &[600, 1000]));
    let plan = Plan::of(&asked(&[1000, 1000]), (0..2).map(more).collect(), 4, 1 << 30).unwrap();
    assert_eq!((plan.units.len(), plan.reads(0)), (1, vec![Bx::new(vec![0, 0], vec![1000, 1000])]));
}

#[test]
fn numbers_that_are_no_pieces_are_refused() {
    let arrays = asked(&[10, 10]);
    let row = [0, 0, 8, 3, 1, 2, 5, 1, 2, 3, 4];
    let found = pieces_of(&arrays, 2, &[row, row].concat()).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[1].asker, found[1].request, found[1].block), (2, 3, 5));
    assert_eq!(found[1].bx, Bx::new(vec![1, 2], vec![3, 4]));
    assert!(Plan::of(&arrays, found.clone(), 3, 1).is_ok());
    assert!(Plan::of(&arrays, found.clone(), 2, 1).is_err(), "a rank that there is not");
    for n in 1..row.len() {
        assert!(pieces_of(&arrays, 0, &row[..n]).is_err(), "{n} numbers");
    }
    assert!(pieces_of(&arrays, 0, &[1, 0, 8, 3, 1, 2, 5, 1, 2, 3, 4]).is_err(), "an array that there is not");
    for bx in [([8, 0], [3, 1]), ([u64::MAX, 0], [2, 1]), ([0, 0], [0, 1])] {
        let beyond = Piece { bx: Bx::new(bx.0.to_vec(), bx.1.to_vec()), ..found[0].clone() };
        assert!(Plan::of(&arrays, vec![beyond], 3, 1).is_err(), "{bx:?}");
    }
}

#[test]
fn many_pieces_are_planned_at_once() {
    // 1e5 requests of 8 ranks: those of one block are one unit.
    let pieces: Vec<Piece> = (0..100_000_u64)
        .map(|i| Piece {
            block: i % 500,
            ..piece(i as usize % 8, i % 4, i % 40, (&[i % 1000, i % 7], &[1, 100]))
        })
        .collect();
    let plan = Plan::of(&asked(&[1000, 200]), pieces, 8, 1 << 20).unwrap();
    assert_eq!(plan.pieces.len(), 100_000);
    assert!(plan.units.len() <= 1000 * 8);
}
