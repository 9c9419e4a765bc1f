//! A stored selection of any bytes, with a checksum that fits: what is read is written and read again alike, and
//! all ways to look at it agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_types::{ErrorKind, Selection};

/// Positions that are looked at one by one.
const MOST: u64 = 2000;

fuzz_target!(|bytes: &[u8]| {
    let sum = crc32fast::hash(bytes);
    let mut signed = bytes.to_vec();
    signed.extend_from_slice(&sum.to_le_bytes());
    for file in [bytes, &signed] {
        match Selection::read_from(&mut &*file) {
            Ok(selection) => check(&selection),
            Err(e) => {
                check_error(&e);
                assert!(matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::Unsupported), "{e}");
            }
        }
    }
});

fn check(selection: &Selection) {
    let mut bytes = Vec::new();
    selection.write_to(&mut bytes).expect("to be written");
    let again = Selection::read_from(&mut bytes.as_slice()).expect("what was written");
    let positions: Vec<u64> = selection.iter().take(MOST as usize).collect();
    assert_eq!(positions, again.iter().take(MOST as usize).collect::<Vec<_>>());
    assert_eq!((selection.len(), selection.shape()), (again.len(), again.shape()));
    assert_eq!(positions.len() as u64, selection.len().min(MOST));
    assert!(positions.is_sorted_by(|a, b| a < b) && positions.iter().all(|&p| p < selection.n_rows()));
    assert!(positions.iter().all(|&p| selection.contains(p)));
    for rank in [0, 1, positions.len() / 2, positions.len()] {
        let at = selection.select(rank as u64);
        assert_eq!(at, selection.iter_from(rank as u64).next());
        assert!(rank >= positions.len() || at == Some(positions[rank]));
    }
    let from_runs = selection.runs().take(MOST as usize).flat_map(|r| r.0..r.0 + r.1.min(MOST));
    assert_eq!(positions, from_runs.take(positions.len()).collect::<Vec<_>>());
    check_algebra(selection);
    if selection.n_rows() <= 1 << 16 && selection.len() <= MOST {
        let mask = selection.mask().expect("a small mask");
        assert_eq!(mask.iter().map(|&m| u64::from(m)).sum::<u64>(), selection.len());
        let coords = selection.coords().expect("a few coordinates");
        assert_eq!(coords.len() as u64, selection.len() * selection.shape().len() as u64);
    }
    selection.bounding_box();
}

fn check_algebra(selection: &Selection) {
    let complement = selection.complement();
    assert_eq!(complement.len(), selection.n_rows() - selection.len());
    assert!(complement.intersection(selection).expect("of one shape").is_empty());
    let all = complement.union(selection).expect("of one shape");
    assert_eq!(all.len(), selection.n_rows());
    assert!(all.difference(&complement).expect("of one shape").len() == selection.len());
    let half = selection.slice(selection.len() / 3, selection.len() / 2);
    assert_eq!(half.len(), selection.len() / 2);
    assert_eq!(half.iter().next(), selection.select(selection.len() / 3).filter(|_| !half.is_empty()));
}
