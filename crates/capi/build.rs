//! Keeps what libraries of ours export to C out of `libsieva_c.so`: its interface is `sieva.h`, and nothing else. Names
//! the library as programs ask for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // Programs ask for this name; `make install` makes it. It counts changes that old programs do not run with.
        let major = env!("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsieva_c.so.{major}");
    }
}
