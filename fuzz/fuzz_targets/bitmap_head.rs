//! Bitmap indexes of any bytes: no panic, and what is evaluated agrees with what the head announces.
//!
//! Heads are either foreign bytes, or made from values and then changed, with checksums of blocks that fit the
//! changed body, so that what lies behind the checksums is met too.
#![no_main]

use std::ops::Range;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sieva_fuzz::{Change, SetRecipe, ValuesRecipe, bits};
use sieva_index::bitmap::{RegionBitmap, Workspace, build};
use sieva_types::wire::DTYPES;
use sieva_types::{DType, ErrorKind, KeySet};
use xxhash_rust::xxh3::xxh3_64;

/// Rows up to which a head is evaluated: its caller takes memory for a bit of each row, by the grid of the array.
const MOST_ROWS: u64 = 1 << 20;

#[derive(Arbitrary, Debug)]
enum Source {
    Foreign { version: u8, dtype: u8, head: Vec<u8>, body: Vec<u8> },
    Made(Made),
}

#[derive(Arbitrary, Debug)]
struct Made {
    values: ValuesRecipe,
    missing: SetRecipe,
    precision: u8,
    damage: Damage,
}

#[derive(Arbitrary, Debug)]
enum Damage {
    Bins(Vec<Change>),
    /// Numbers of blocks, and what happens to them.
    Blocks([(u16, Change); 2]),
}

#[derive(Arbitrary, Debug)]
struct Input {
    set: SetRecipe,
    source: Source,
}

fuzz_target!(|input: Input| {
    let (dtype, head, body) = match &input.source {
        Source::Foreign { version, dtype, head, body } => {
            let mut versioned = head.clone();
            versioned.insert(0, 1 + version % 3);
            (DTYPES[usize::from(*dtype) % DTYPES.len()], versioned, body.clone())
        }
        Source::Made(made) => made.bytes(),
    };
    match RegionBitmap::parse(&head, body.len() as u64, dtype) {
        Ok(bitmap) => check(&bitmap, &input.set, dtype, &body),
        Err(e) => assert_eq!(e.kind(), ErrorKind::CorruptIndex),
    }
});

impl Made {
    fn bytes(&self) -> (DType, Vec<u8>, Vec<u8>) {
        let data = self.values.make();
        let missing = self.missing.missing(data.dtype(), &data.keys());
        let (mut head, mut body) = (Vec::new(), Vec::new());
        let precision = u32::from(self.precision) % 4;
        build(data.all(), &missing, precision, &mut Workspace::default(), &mut head, &mut body);
        let (bins, mut blocks) = cut(&head, &body).expect("a head that was just made");
        let mut head = head[..bins].to_vec();
        match &self.damage {
            Damage::Bins(changes) => changes.iter().for_each(|change| change.apply(&mut head)),
            Damage::Blocks(changes) => changes.iter().for_each(|(number, change)| {
                let n = blocks.len().max(1);
                if let Some(block) = blocks.get_mut(usize::from(*number) % n) {
                    change.apply(block);
                }
            }),
        }
        for block in &blocks {
            put(block.len() as u64, &mut head);
            head.extend_from_slice(&(xxh3_64(block) as u32).to_le_bytes());
        }
        (data.dtype(), head, blocks.concat())
    }
}

/// The length of a head without its blocks, and the blocks of the body.
fn cut(head: &[u8], body: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let mut rest = head.get(1..)?;
    let (_, _, missing, present) = (take(&mut rest)?, take(&mut rest)?, take(&mut rest)?, take(&mut rest)?);
    for _ in 0..3 * (missing + present) {
        take(&mut rest)?;
    }
    // Groups of bins whose rows are listed.
    let groups = if head.first() == Some(&1) { 0 } else { take(&mut rest)? };
    for _ in 0..2 * groups {
        take(&mut rest)?;
    }
    let (bins, mut blocks, mut at) = (head.len() - rest.len(), Vec::new(), 0);
    while !rest.is_empty() {
        let len = take(&mut rest)? as usize;
        rest = rest.get(4..)?;
        blocks.push(body.get(at..at + len)?.to_vec());
        at += len;
    }
    Some((bins, blocks))
}

/// Takes a number in LEB128.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn check(bitmap: &RegionBitmap, recipe: &SetRecipe, dtype: DType, body: &[u8]) {
    assert_eq!(bitmap.nan() + bitmap.bins().iter().map(|b| b.count).sum::<u64>(), bitmap.rows());
    let keys: Vec<i128> = bitmap.bins().iter().flat_map(|bin| [bin.low, bin.high]).collect();
    let mut sets = vec![recipe.condition(dtype, &keys), KeySet { nan: true, ..KeySet::EMPTY }];
    // Of damaged blocks most are read for one of these.
    if let Some(middle) = bitmap.bins().get(bitmap.bins().len() / 2) {
        sets.extend([i128::MIN, middle.low].map(|low| KeySet::interval(low, middle.high)));
    }
    for set in sets {
        let (cover, cost) = (bitmap.cover(&set), bitmap.cost(&set));
        assert!(cover.inside + cover.edge <= bitmap.rows() && cost <= body.len() as u64);
        if bitmap.rows() <= MOST_ROWS {
            evaluate(bitmap, &set, body);
        }
    }
}

fn evaluate(bitmap: &RegionBitmap, set: &KeySet, body: &[u8]) {
    let rows = bitmap.rows() as usize;
    let (mut sure, mut check) = (vec![0; bits::words(rows)], vec![0; bits::words(rows)]);
    let mut fetched = 0;
    let mut fetch = |range: Range<u64>, out: &mut Vec<u8>| {
        assert!(out.is_empty() && range.start <= range.end);
        fetched += range.end - range.start;
        out.extend_from_slice(&body[range.start as usize..range.end as usize]);
        Ok(())
    };
    match bitmap.evaluate(set, &mut fetch, &mut Workspace::default(), &mut sure, &mut check) {
        Ok(()) => {
            let cover = bitmap.cover(set);
            assert_eq!((bits::ones(&sure), bits::ones(&check)), (cover.inside, cover.edge));
            assert!(bits::disjoint(&sure, &check) && bits::ends(&sure, rows) && bits::ends(&check, rows));
            assert_eq!(fetched, bitmap.cost(set));
        }
        Err(e) => assert_eq!(e.kind(), ErrorKind::CorruptIndex),
    }
}
