//! Damaged and hostile files: errors at most.

use std::time::Duration;

use sieva_isolate::{IsolateOptions, IsolatedSource, WorkerLimits};

pub fn odd_files_neither_crash_nor_hang() {
    let Some(root) = crate::shared("odd") else { return };
    let limits = WorkerLimits { cpu_seconds: 10, wall: Duration::from_secs(20), ..WorkerLimits::default() };
    let (mut opened, mut refused, mut crashed) = (0, 0, Vec::new());
    for path in crate::files(&root) {
        let mut note = |e: &sieva_types::Error| {
            assert!(!e.message().contains("without an answer"), "{}: {e}", path.display());
            if e.message().contains("the process that parsed it") {
                crashed.push(e.to_string());
            }
        };
        let options = IsolateOptions::default();
        match IsolatedSource::open(&crate::command("good"), &path, &options, limits) {
            Err(e) => {
                refused += 1;
                note(&e);
            }
            Ok(source) => {
                opened += 1;
                for array in 0..source.schema().arrays.len().min(200) {
                    if let Err(e) = crate::answers::elements(&source, array) {
                        note(&e);
                    }
                }
            }
        }
    }
    println!("{opened} odd files opened, {refused} refused; workers lost: {crashed:#?}");
    assert!(opened > 0 && refused > 0);
}
