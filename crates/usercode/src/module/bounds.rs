//! What of a module is bounded before it is compiled, so that the compiler's time and memory are.

use sieva_types::{Error, ErrorKind, Result};
use wasmparser::{Parser, Payload, Validator, WasmFeatures};

/// Bytes of a module.
pub(crate) const MOST_BYTES: usize = 1 << 20;
const MOST_FUNCTIONS: u32 = 4096;
/// Bytes of a function: registers are allotted in more than linear time.
const MOST_BODY: usize = 64 << 10;
const MOST_LOCALS: u64 = 2000;
const MOST_OTHER: u32 = 4096;

/// The WebAssembly that is run: nothing whose result depends on the machine, and memories of 32 bits.
fn features() -> WasmFeatures {
    WasmFeatures::MUTABLE_GLOBAL
        | WasmFeatures::SATURATING_FLOAT_TO_INT
        | WasmFeatures::SIGN_EXTENSION
        | WasmFeatures::REFERENCE_TYPES
        | WasmFeatures::MULTI_VALUE
        | WasmFeatures::BULK_MEMORY
        | WasmFeatures::SIMD
        | WasmFeatures::FLOATS
        | WasmFeatures::EXTENDED_CONST
        | WasmFeatures::GC_TYPES
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}

/// Looks whether a module is one, imports nothing, and is small enough to be compiled.
pub(crate) fn bounded(bytes: &[u8]) -> Result<()> {
    if bytes.len() > MOST_BYTES {
        return Err(refused(format!("a module of {} bytes: at most {MOST_BYTES}", bytes.len())));
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(Error::new(ErrorKind::UnknownFormat, "the code is no WebAssembly module")
            .hint("it begins with the bytes 00 61 73 6d; text of C is compiled by sieva itself"));
    }
    let broken = |e: wasmparser::BinaryReaderError| {
        let message =
            format!("the WebAssembly module is not valid: {} (at byte {})", e.message(), e.offset());
        Error::new(ErrorKind::CorruptFile, message)
    };
    for payload in Parser::new(0).parse_all(bytes) {
        let count = |what: &str, count: u32, most: u32| {
            let message = || refused(format!("a module with {count} {what}: at most {most}"));
            if count > most { Err(message()) } else { Ok(()) }
        };
        match payload.map_err(broken)? {
            Payload::ImportSection(imports) => {
                if let Some(import) = imports.into_iter().next() {
                    let import = import.map_err(broken)?;
                    let message = format!("the module imports '{}.{}'", import.module, import.name);
                    return Err(Error::new(ErrorKind::Unsupported, message)
                        .hint("there is nothing to import: build it without WASI and without a host"));
                }
            }
            Payload::TypeSection(of) => count("types", of.count(), MOST_OTHER)?,
            Payload::FunctionSection(of) => count("functions", of.count(), MOST_FUNCTIONS)?,
            Payload::TableSection(of) => count("tables", of.count(), 4)?,
            Payload::GlobalSection(of) => count("globals", of.count(), MOST_OTHER)?,
            Payload::ExportSection(of) => count("exports", of.count(), MOST_OTHER)?,
            Payload::ElementSection(of) => count("element segments", of.count(), MOST_OTHER)?,
            Payload::DataSection(of) => count("data segments", of.count(), MOST_OTHER)?,
            Payload::CodeSectionEntry(body) => {
                let size = body.range().len();
                if size > MOST_BODY {
                    return Err(refused(format!("a function of {size} bytes: at most {MOST_BODY}")));
                }
                let mut locals = 0_u64;
                for local in body.get_locals_reader().map_err(broken)? {
                    locals += u64::from(local.map_err(broken)?.0);
                }
                if locals > MOST_LOCALS {
                    return Err(refused(format!("a function of {locals} locals: at most {MOST_LOCALS}")));
                }
            }
            _ => {}
        }
    }
    Validator::new_with_features(features()).validate_all(bytes).map(drop).map_err(broken)
}
