//! What a worker does when this program is one.

use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use sieva_format::layout::Layout;
use sieva_format::{ArraySource, LibraryReader, Wrapped};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source, is_hdf5};
use sieva_format_netcdf3::{Netcdf3Source, is_netcdf3};
use sieva_isolate::OpenRequest;
use sieva_store::FileStore;
use sieva_types::{Bx, Error, ErrorKind, Result, Texts};

/// Opens a file as it should be.
pub fn open(request: &OpenRequest) -> Result<Arc<dyn ArraySource>> {
    let store = FileStore::open(&request.path)?;
    if is_netcdf3(&store) {
        return Ok(Arc::new(Netcdf3Source::open(Arc::new(store))?));
    }
    if is_hdf5(&store) {
        let options = Hdf5Options {
            external_roots: request.external_roots.clone(),
            dims: request.dims.clone(),
            ..Hdf5Options::default()
        };
        return Ok(Arc::new(Hdf5Source::open(&request.path, &options)?));
    }
    Err(Error::new(ErrorKind::UnknownFormat, format!("'{}' is none of them", request.path.display())))
}

/// Serves, or misbehaves.
pub fn work(deed: &str) -> ExitCode {
    match deed {
        "exit" => {
            eprintln!("no module named sieva");
            return ExitCode::from(3);
        }
        "huge" => send(&u64::MAX.to_le_bytes()),
        "cut" => send(&[100, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]),
        "junk" => send(&[b'x'; 100]),
        "no-manifest" => send(&[&[9, 0, 0, 0, 0, 0, 0, 0, 0][..], b"manifest"].concat()),
        "empty" => send(&[0; 8]),
        "sleep" => std::thread::sleep(std::time::Duration::from_secs(3600)),
        _ => {
            let served = sieva_isolate::serve(|request| misbehave(deed, request));
            return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    }
    ExitCode::SUCCESS
}

/// Bytes of no protocol.
fn send(bytes: &[u8]) {
    // SAFETY: descriptor 0 is the socket that this process was started with; nothing else uses it.
    let mut stream = unsafe { UnixStream::from_raw_fd(0) };
    stream.write_all(bytes).unwrap();
    // What was asked is taken, so that closing does not cut off what was sent.
    let mut asked = [0; 4096];
    std::io::Read::read(&mut stream, &mut asked).unwrap();
}

fn misbehave(deed: &str, request: &OpenRequest) -> Result<Arc<dyn ArraySource>> {
    match deed {
        "abort" => std::process::abort(),
        // SAFETY: none; the test is that this kills the process.
        "segv" => unsafe { std::ptr::null_mut::<u8>().wrapping_add(8).write_volatile(1) },
        "spin" => loop {
            std::hint::spin_loop();
        },
        "eat" => {
            let mut eaten = Vec::new();
            loop {
                eaten.push(vec![1_u8; 16 << 20]);
                std::hint::black_box(&eaten);
            }
        }
        "panic" => panic!("by design"),
        "noise" => {
            for _ in 0..100_000 {
                // To where nobody listens, and to where somebody does: more than a pipe holds.
                std::io::stdout().write_all(b"junk on standard output\n").ok();
                std::io::stderr().write_all(b"junk on standard error\n").ok();
            }
        }
        "confined" => return Err(Error::new(ErrorKind::Unsupported, confinement())),
        "layout-abort" | "library-abort" | "library-short" => {
            return Ok(Arc::new(Bad { inner: open(request)?, deed: deed.to_owned() }));
        }
        _ => {}
    }
    open(request)
}

/// What this process still may.
fn confinement() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = |text: &str, name: &str| {
        let found = text.lines().find(|l| l.starts_with(name)).unwrap_or("?");
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let fds = (3..1024).filter(|fd| std::path::Path::new(&format!("/proc/self/fd/{fd}")).exists()).count();
    let lines = [
        line(&limits, "Max address space"),
        line(&limits, "Max core file size"),
        line(&limits, "Max file size"),
        line(&status, "NoNewPrivs"),
    ];
    format!("{}; {fds} files", lines.join("; "))
}

/// A source that fails where a library would.
struct Bad {
    inner: Arc<dyn ArraySource>,
    deed: String,
}

impl Wrapped for Bad {
    fn inner(&self) -> &dyn ArraySource {
        &*self.inner
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        if self.deed == "layout-abort" && array == 0 {
            std::process::abort();
        }
        self.inner.layout(array)
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl LibraryReader for Bad {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        self.inner.needs_library(array)?.read_library(array, bx, out)
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts> {
        match self.deed.as_str() {
            "library-abort" => std::process::abort(),
            "library-short" => Ok(Texts::new()),
            _ => self.inner.needs_library(array)?.read_library_strings(array, bx),
        }
    }
}
