//! The C compiler, the libraries under test, and directories for what comes of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Flags for code that any C99 compiler takes.
pub const C99: [&str; 6] = ["-std=c99", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"];

/// The crate's directory.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header.
pub fn header() -> String {
    std::fs::read_to_string(root().join("include/sieva.h")).unwrap()
}

/// The directory of the libraries: they are built with this test, beside it.
pub fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let beside = test.parent().unwrap().to_path_buf();
    for name in ["libsieva_c.so", "libsieva_c.a"] {
        assert!(beside.join(name).is_file(), "no {name} in {}", beside.display());
    }
    // Programs ask for the name that installing makes.
    let asked = beside.join(concat!("libsieva_c.so.", env!("CARGO_PKG_VERSION_MAJOR")));
    if let Err(e) = std::os::unix::fs::symlink("libsieva_c.so", asked) {
        assert_eq!(e.kind(), std::io::ErrorKind::AlreadyExists, "{e}");
    }
    beside
}

/// An empty directory for one test.
pub fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Whether a program is there; says so if it is not.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: no {program}");
    }
    found
}

/// Runs a command, which must end well; its output.
pub fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}\n{out}{err}");
    out.into_owned()
}

/// How a program is linked.
#[derive(Clone, Copy)]
pub enum Link {
    /// With libsieva_c.so.
    Shared,
    /// With libsieva_c.a, as docs/guides/c.md says.
    Static,
}

/// Compiles C files to a program.
pub fn compile(sources: &[PathBuf], link: Link, program: &Path) {
    compile_with(sources, link, &[], program);
}

/// Compiles C files to a program that uses other libraries, too.
pub fn compile_with(sources: &[PathBuf], link: Link, flags: &[&str], program: &Path) {
    let libraries = libraries();
    let mut cc = Command::new("cc");
    cc.args(C99).arg("-I").arg(root().join("include")).args(sources).arg("-o").arg(program);
    match link {
        Link::Shared => {
            let rpath = format!("-Wl,-rpath,{}", libraries.display());
            cc.arg("-L").arg(&libraries).arg(rpath).args(["-lsieva_c", "-lpthread", "-lm"]);
        }
        Link::Static => {
            cc.arg(libraries.join("libsieva_c.a")).args(["-lpthread", "-ldl", "-lm"]);
        }
    }
    run(cc.args(flags));
}
