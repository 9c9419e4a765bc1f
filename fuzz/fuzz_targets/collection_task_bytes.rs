//! Tasks, partial results and selections of collections of any bytes: what is read is written again as itself, and is merged once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

use sieva::{
    Collection, CollectionPartial, CollectionSelection, CollectionTask, ErrorKind, OpenOptions, Plan,
    QueryOptions,
};
use sieva_fuzz::check_error;
use sieva_index::content_hash;

const MEMORY: u64 = 32 << 20;

/// The bytes as the body of what begins so: with its version and its checksum.
fn framed(magic: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&magic[..], &[1], &content_hash(body).to_le_bytes(), body].concat()
}

/// A plan of a collection.
static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let text = r#"{"sieva_plan": 1, "source": {"collection": "c"}, "rows": [], "cross": false,
        "columns": [{"id": 0, "path": "flux", "kind": "value", "type": "any", "dims": []}],
        "steps": [{"project": [{"name": "flux", "value": {"column": 0}}]}]}"#;
    Plan::from_json(text).expect("a plan")
});

/// The bytes as a selection of that plan.
fn selection(bytes: &[u8]) {
    let (collection, options) =
        (Collection::without_catalog("c", &OpenOptions::default()), QueryOptions::default());
    let id = PLAN.id().expect("a name");
    let body = [&[id.len() as u8], id.as_bytes(), bytes].concat();
    match CollectionSelection::from_bytes(&collection, &PLAN, &framed(b"SVCS", &body), &options) {
        Ok(hits) => {
            assert_eq!(hits.objects().map(|o| o.found.len()).sum::<u64>(), hits.len());
            let once = hits.to_bytes().expect("what was read");
            let again = CollectionSelection::from_bytes(&collection, &PLAN, &once, &options)
                .expect("what was written");
            assert_eq!(again.to_bytes().expect("what was read"), once);
        }
        Err(e) => {
            check_error(&e);
            assert!(matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::MemoryLimit), "{e}");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    match CollectionTask::from_bytes(&framed(b"SVCT", bytes)) {
        Ok(task) => {
            let once = task.to_bytes().expect("what was read");
            assert!(CollectionTask::from_bytes(&once).expect("what was written").objects() == task.objects());
            assert!(task.objects().end <= task.object_count());
        }
        Err(e) => {
            check_error(&e);
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
        }
    }
    selection(bytes);
    let mut partial = match CollectionPartial::from_bytes_within(&framed(b"SVCP", bytes), MEMORY) {
        Ok(partial) => partial,
        Err(e) => {
            check_error(&e);
            assert!(matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::MemoryLimit), "{e}");
            return;
        }
    };
    let once = partial.to_bytes().expect("what was read");
    let again = CollectionPartial::from_bytes_within(&once, MEMORY).expect("what was written");
    assert_eq!(again.to_bytes().expect("what was read"), once);
    let (seen, all) = partial.looked_at();
    assert!(seen <= all);
    let merged = partial.merge(again);
    assert!(seen == 0 || merged.is_err_and(|e| e.kind() == ErrorKind::InvalidValue));
});
