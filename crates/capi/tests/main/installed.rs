//! What `make install` puts there: found by pkg-config and by CMake, used by a program, removed again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::write_ocean;
use crate::toolchain::{C99, has, libraries, root, run, scratch};

/// `make install` or `uninstall` of the libraries under test.
fn make(goal: &str, prefix: &Path, destdir: Option<&Path>) {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-C"]).arg(root()).arg(goal);
    make.arg(format!("PREFIX={}", prefix.display())).arg(format!("BUILT={}", libraries().display()));
    make.arg(concat!("WORKER=", env!("CARGO_BIN_EXE_sieva-worker")));
    if let Some(dir) = destdir {
        make.arg(format!("DESTDIR={}", dir.display()));
    }
    // What make is run by, if it is, says nothing to this one.
    run(make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL"));
}

/// All files below a directory, by their paths from there.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the example of the guide, compiled against what is installed under `prefix`.
fn runs(program: &Path, prefix: &Path, dir: &Path) {
    let file = dir.join("ocean.nc");
    let warm = write_ocean(&file);
    let mut command = Command::new(program);
    command.arg(&file).arg("25").env("LD_LIBRARY_PATH", prefix.join("lib"));
    command.env("SIEVA_STORE", dir.join("store"));
    assert_eq!(run(&mut command), format!("{warm} of 24000 points are warm\n"));
}

#[test]
fn pkg_config_finds_what_is_installed() {
    if !has("make") || !has("pkg-config") {
        return;
    }
    let dir = scratch("installed");
    let prefix = dir.join("prefix");
    make("install", &prefix, None);
    let config = || {
        let mut config = Command::new("pkg-config");
        config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        config
    };
    assert_eq!(run(config().args(["--modversion", "sieva"])).trim(), VERSION);
    for how in [&["--cflags", "--libs"][..], &["--static", "--cflags", "--libs"]] {
        let flags = run(config().args(how).arg("sieva"));
        let mut cc = Command::new("cc");
        cc.args(C99).arg(root().join("examples/warm.c")).args(flags.split_whitespace());
        run(cc.arg("-o").arg(dir.join("warm")));
        runs(&dir.join("warm"), &prefix, &dir);
    }
    if has("readelf") {
        let needed = run(Command::new("readelf").arg("-d").arg(dir.join("warm")));
        let soname = concat!("[libsieva_c.so.", env!("CARGO_PKG_VERSION_MAJOR"), "]");
        assert!(needed.lines().any(|l| l.contains("NEEDED") && l.contains(soname)), "{needed}");
    }
    make("uninstall", &prefix, None);
    assert_eq!(files(&prefix), Vec::<PathBuf>::new());
}

#[test]
fn cmake_finds_what_is_installed_and_moved() {
    let cmake = std::env::var("CMAKE").unwrap_or_else(|_| "cmake".into());
    if !has("make") || !has(&cmake) {
        return;
    }
    let dir = scratch("installed-cmake");
    make("install", &dir.join("first"), None);
    // The package finds the libraries from where it lies.
    let prefix = dir.join("moved");
    std::fs::rename(dir.join("first"), &prefix).unwrap();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(warm C)\nfind_package(sieva {VERSION} REQUIRED)\n\
         foreach(kind sieva static)\n    add_executable(warm-${{kind}} {})\n    \
         target_link_libraries(warm-${{kind}} PRIVATE sieva::${{kind}})\nendforeach()\n",
        root().join("examples/warm.c").display()
    );
    std::fs::write(dir.join("CMakeLists.txt"), lists).unwrap();
    let build = dir.join("build");
    let mut configure = Command::new(&cmake);
    configure.arg("-S").arg(&dir).arg("-B").arg(&build);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new(&cmake).arg("--build").arg(&build).env_remove("MAKEFLAGS"));
    for kind in ["sieva", "static"] {
        runs(&build.join(format!("warm-{kind}")), &prefix, &dir);
    }
    // A version that is not there is not found.
    let lists = "cmake_minimum_required(VERSION 3.10)\nproject(none C)\nfind_package(sieva 99 REQUIRED)\n";
    std::fs::write(dir.join("CMakeLists.txt"), lists).unwrap();
    let mut newer = Command::new(&cmake);
    newer.arg("-S").arg(&dir).arg("-B").arg(dir.join("newer"));
    let refused = newer.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains(VERSION));
}

#[test]
fn a_package_is_put_below_destdir() {
    if !has("make") {
        return;
    }
    let dir = scratch("installed-destdir");
    make("install", Path::new("/opt/sieva"), Some(&dir));
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let mut expected: Vec<PathBuf> = [
        "bin/sieva-worker",
        "include/sieva.h",
        "lib/cmake/sieva/sieva-config-version.cmake",
        "lib/cmake/sieva/sieva-config.cmake",
        "lib/libsieva_c.a",
        "lib/libsieva_c.so",
        &format!("lib/libsieva_c.so.{major}"),
        &format!("lib/libsieva_c.so.{VERSION}"),
        "lib/pkgconfig/sieva.pc",
    ]
    .iter()
    .map(|name| Path::new("opt/sieva").join(name))
    .collect();
    expected.sort();
    assert_eq!(files(&dir), expected);
    // What is put there says where it will be.
    let found = std::fs::read_to_string(dir.join("opt/sieva/lib/pkgconfig/sieva.pc")).unwrap();
    assert!(found.contains("libdir=/opt/sieva/lib\n") && !found.contains(dir.to_str().unwrap()), "{found}");
    make("uninstall", Path::new("/opt/sieva"), Some(&dir));
    assert_eq!(files(&dir), Vec::<PathBuf>::new());
}
