//! Workers that crash, hang, eat, lie: each an error, none more.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sieva_format::ArraySource;
use sieva_format::layout::Placement;
use sieva_isolate::{IsolateOptions, IsolatedSource, WorkerLimits};
use sieva_types::{Error, ErrorKind, Result};

/// A small netCDF classic file: one dimension, two variables of bytes (its header by hand, from the standard).
fn small() -> (PathBuf, impl Drop) {
    struct Gone(PathBuf);
    impl Drop for Gone {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).ok();
        }
    }
    let word = |n: u32| n.to_be_bytes();
    let mut bytes = b"CDF\x01".to_vec();
    let head = [0, 0xA, 1, 1, u32::from_be_bytes(*b"x\0\0\0"), 4, 0, 0, 0xB, 2];
    head.iter().for_each(|&n| bytes.extend(word(n)));
    for (name, begin) in [(*b"a\0\0\0", 120), (*b"b\0\0\0", 124)] {
        let var = [1, u32::from_be_bytes(name), 1, 0, 0, 0, 1, 4, begin];
        var.iter().for_each(|&n| bytes.extend(word(n)));
    }
    assert!(bytes.len() <= 120, "{}", bytes.len());
    bytes.resize(120, 0);
    bytes.extend([1, 2, 3, 4, 5, 6, 7, 8]);
    let path = std::env::temp_dir().join(format!("sieva-isolate-{}.nc", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    (path.clone(), Gone(path))
}

fn limits() -> WorkerLimits {
    WorkerLimits { memory: 512 << 20, cpu_seconds: 20, wall: Duration::from_secs(20), answer: 1 << 20 }
}

fn open(deed: &str, limits: WorkerLimits) -> Result<Arc<dyn ArraySource>> {
    let (path, _file) = small();
    IsolatedSource::open(&crate::command(deed), &path, &IsolateOptions::default(), limits)
}

fn error(deed: &str, limits: WorkerLimits) -> Error {
    open(deed, limits).err().unwrap_or_else(|| panic!("{deed} went well"))
}

pub fn a_worker_that_misbehaves_is_an_error() {
    let slow = WorkerLimits { wall: Duration::from_millis(1500), ..limits() };
    let short = WorkerLimits { cpu_seconds: 1, ..limits() };
    let corrupt = ErrorKind::CorruptFile;
    let cases = [
        ("abort", limits(), corrupt, "killed by SIGABRT"),
        ("segv", limits(), corrupt, "killed by SIGSEGV"),
        ("spin", short, corrupt, "ran over 1 s of processor time"),
        ("spin", slow, corrupt, "ran over 1.5 s"),
        ("sleep", slow, corrupt, "ran over 1.5 s"),
        ("eat", limits(), corrupt, "ran over 512 MiB"),
        ("panic", limits(), corrupt, "the reader of the format failed"),
        ("huge", limits(), corrupt, "answered with 18446744073709551615 bytes"),
        ("junk", limits(), corrupt, "answered with"),
        ("empty", limits(), corrupt, "answered with nonsense"),
        ("no-manifest", limits(), corrupt, "answered with nonsense"),
        ("cut", limits(), ErrorKind::Io, "ended with code 0 without an answer"),
        ("exit", limits(), ErrorKind::Io, "ended with code 3 without an answer; it printed: no module"),
    ];
    for (deed, limits, kind, message) in cases {
        let e = error(deed, limits);
        assert_eq!(e.kind(), kind, "{deed}: {e}");
        assert!(e.message().contains(message) && e.message().contains(".nc"), "{deed}: {e}");
        assert!(e.hint_text().is_some(), "{deed}: {e}");
    }
    let nowhere = IsolatedSource::open(
        &["/nonexistent/worker".into()],
        &std::env::current_exe().unwrap(),
        &IsolateOptions::default(),
        limits(),
    );
    assert_eq!(nowhere.err().unwrap().kind(), ErrorKind::FileNotFound);
    let noisy = open("noise", limits()).unwrap();
    assert_eq!(noisy.schema().arrays.len(), 2);
}

pub fn the_next_request_starts_a_new_worker() {
    let (path, _file) = small();
    let source =
        IsolatedSource::open(&crate::command("layout-abort"), &path, &IsolateOptions::default(), limits())
            .unwrap();
    for _ in 0..2 {
        let e = source.layout(0).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        assert!(e.message().contains("SIGABRT"), "{e}");
    }
    let layout = source.layout(1).unwrap();
    assert!(matches!(layout.placement, Placement::Direct { offset: 124 }), "{layout:?}");
    let values = crate::answers::elements(&source, 1).unwrap().0;
    assert_eq!(values, [5, 6, 7, 8]);
    assert!(source.layout(0).is_err());
    for deed in ["library-abort", "library-short"] {
        let source =
            IsolatedSource::open(&crate::command(deed), &path, &IsolateOptions::default(), limits()).unwrap();
        let e = source
            .needs_library(0)
            .unwrap()
            .read_library_strings(0, &sieva_types::Bx::whole(&[4]))
            .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile, "{e}");
        assert!(source.layout(1).is_ok());
    }
}

pub fn a_worker_is_confined() {
    let e = error("confined", limits());
    let wanted = [
        "Max address space 536870912 536870912 bytes",
        "Max core file size 0 0 bytes",
        "Max file size 0 0 bytes",
        "NoNewPrivs: 1",
    ];
    // The one file is that of the listing itself, or none.
    for wanted in wanted {
        assert!(e.message().contains(wanted), "{wanted}: {e}");
    }
    assert!(e.message().ends_with("; 0 files"), "{e}");
}

pub fn no_process_is_left() {
    let sources =
        [open("good", limits()), open("sleep", WorkerLimits { wall: Duration::from_secs(1), ..limits() })];
    let children = || {
        let own = std::process::id();
        let list = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
        list.map(|l| l.split_whitespace().count()).unwrap_or(0)
    };
    let before = children();
    drop(sources);
    assert_eq!(children(), 0, "of {before}");
}
