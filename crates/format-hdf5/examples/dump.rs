//! Prints the schema of an HDF5 or netCDF-4 file and where the bytes of its arrays lie.
//!
//! `cargo run --release -p sieva-format-hdf5 --example dump -- FILE [--read]`: with `--read`, what only libhdf5
//! can decode is read too.

use std::path::Path;
use std::process::ExitCode;

use sieva_format::layout::{Layout, Placement};
use sieva_format::{ArraySource, LibraryReader};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_types::{Bx, DType, Result};

/// Largest box that `--read` reads.
const READ_LIMIT: u64 = 64 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.iter().find(|a| !a.starts_with("--")) else {
        eprintln!("usage: dump FILE [--read]");
        return ExitCode::from(2);
    };
    match dump(Path::new(path), args.iter().any(|a| a == "--read")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}{}", e.hint_text().map(|h| format!(" ({h})")).unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn dump(path: &Path, read: bool) -> Result<()> {
    let source = Hdf5Source::open(path, &Hdf5Options::default())?;
    let schema = source.schema();
    println!("format {}", schema.format);
    for d in &schema.dims {
        let coordinate = d.coordinate.map(|c| schema.arrays[c].path.as_str());
        println!(
            "dim {} = {} unlimited={} named={} {coordinate:?}",
            d.path,
            d.len,
            d.unlimited,
            d.is_named()
        );
    }
    for (i, a) in schema.arrays.iter().enumerate() {
        let dims: Vec<_> = a.dims.iter().map(|&d| schema.dims[d].path.as_str()).collect();
        println!("array {} {} {:?} {dims:?} attrs={}", a.path, a.dtype, a.shape, a.attrs.len());
        println!("  {:?}", a.storage);
        match source.layout(i) {
            Ok(layout) => {
                println!("  {}", describe(&layout));
                if read && matches!(layout.placement, Placement::Library(_)) {
                    println!("  read: {}", read_all(&source, i, &layout));
                }
            }
            Err(e) => println!("  layout error [{}]: {e}", e.kind().code()),
        }
    }
    for (path, array) in &schema.aliases {
        println!("alias {path} -> {}", schema.arrays[*array].path);
    }
    for warning in &schema.warnings {
        println!("warning {warning}");
    }
    Ok(())
}

fn describe(layout: &Layout) -> String {
    let place = match &layout.placement {
        Placement::Direct { offset } => format!("direct at {offset}"),
        Placement::Inline(bytes) => format!("inline, {} bytes", bytes.len()),
        Placement::Chunks(index) => format!("{} chunks", index.stored()),
        Placement::Unallocated => "never written".into(),
        Placement::Objects | Placement::Parts(_) | Placement::Foreign(_) => "elsewhere".into(),
        Placement::Library(reason) => format!("by libhdf5: {reason}"),
    };
    format!(
        "{place}; {} {:?} size {} base {} strides {:?} fill {:02x?} char_dim {}",
        layout.dtype,
        layout.endian,
        layout.element_size,
        layout.base,
        layout.strides,
        &layout.fill[..layout.fill.len().min(16)],
        layout.char_dim
    )
}

fn read_all(source: &Hdf5Source, array: usize, layout: &Layout) -> String {
    let bx = Bx::whole(&layout.extent);
    let Some(bytes) =
        layout.extent.iter().try_fold(layout.element_size.max(1) as u64, |n, &s| n.checked_mul(s))
    else {
        return "too large".into();
    };
    if bytes > READ_LIMIT {
        return format!("{bytes} bytes, not tried");
    }
    if layout.dtype == DType::Str && layout.element_size == 0 {
        return match source.read_library_strings(array, &bx) {
            Ok(texts) => format!("{} texts, first {:?}", texts.len(), texts.get(0)),
            Err(e) => format!("error [{}]: {e}", e.kind().code()),
        };
    }
    let mut out = vec![0; bytes as usize];
    match source.read_library(array, &bx, &mut out) {
        Ok(()) => format!("{bytes} bytes, first {:02x?}", &out[..out.len().min(16)]),
        Err(e) => format!("error [{}]: {e}", e.kind().code()),
    }
}
