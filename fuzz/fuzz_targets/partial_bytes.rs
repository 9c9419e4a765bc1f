//! Groups of a partial result of any bytes: what is read is written again as itself, is merged, and has values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_query::exec::Groups;
use sieva_query::values::Scalar;
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{ErrorKind, Result};

const SUBJECT: Subject =
    Subject { name: "partial result", kind: ErrorKind::InvalidValue, hint: "make it anew" };
/// Rows that were looked at; with those of a few others they can still be counted.
const ROWS: u64 = 1 << 60;
const MEMORY: u64 = 32 << 20;

fn read(bytes: &[u8]) -> Result<Groups> {
    let mut r = Reader::new(&SUBJECT, bytes, MEMORY as usize);
    let groups = Groups::decode(&mut r, ROWS, MEMORY)?;
    r.finish()?;
    Ok(groups)
}

fn written(groups: &Groups) -> Vec<u8> {
    let mut w = Writer::default();
    groups.encode(&mut w);
    w.into_bytes()
}

fuzz_target!(|bytes: &[u8]| {
    let mut groups = match read(bytes) {
        Ok(groups) => groups,
        Err(e) => {
            check_error(&e);
            assert!(matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::MemoryLimit), "{e}");
            return;
        }
    };
    let once = written(&groups);
    let again = read(&once).expect("what was written");
    assert_eq!(written(&again), once);
    assert!(groups.is_like(&again));
    if let Err(e) = groups.merge(again) {
        assert_eq!(e.kind(), ErrorKind::MemoryLimit, "{e}");
        return;
    }
    // The value of every state; sums of integers may not fit.
    let kept = groups.rekeyed(&[], |key, value| {
        for number in 0..bytes.len().min(64) {
            match value(number) {
                Ok(Scalar::F64(x)) => assert!(!x.is_nan()),
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::Overflow, "{e}"),
            }
        }
        Ok(Some(key))
    });
    if let Err(e) = kept {
        check_error(&e);
    }
});
