//! Results of queries as the bytes of files.

use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use sieva::{QueryOptions, Result};
use sieva_encode::{EncodeOptions, Encoded, Format};

use crate::asked::{Asked, Bound};
use crate::given::{self, Out, check_room};
use crate::logical::PlanHandle;
use crate::options::{self, Options};
use crate::source::{SourceHandle, opened};
use crate::status::guarded;

/// `sieva_result`.
pub struct ResultHandle(pub Arc<Encoded>);

impl ResultHandle {
    /// The rows of a query in a format.
    ///
    /// # Errors
    /// As [`Bound::encoded`].
    pub fn of(query: &Bound, how: &(Format, EncodeOptions)) -> Result<Box<Self>> {
        Ok(Box::new(Self(Arc::new(query.encoded(how)?))))
    }
}

/// `sieva_result_options`. New fields come at the end; 0 always means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResultOptions {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Name of a format, or NULL.
    pub format: *const c_char,
    /// Directory for what must be written first, or NULL.
    pub spool: *const c_char,
    /// Bytes that may be written there.
    pub spool_limit: u64,
    /// Level of deflate.
    pub deflate: u32,
    /// 0.
    pub reserved: u32,
}

impl ResultOptions {
    /// What NULL stands for.
    const DEFAULT: Self = Self {
        size: size_of::<Self>() as u64,
        format: std::ptr::null(),
        spool: std::ptr::null(),
        spool_limit: 0,
        deflate: 0,
        reserved: 0,
    };

    /// Reads the caller's options.
    ///
    /// # Safety
    /// A pointer that is not NULL must lead to as many bytes as its first field says, its texts must end with a NUL.
    pub unsafe fn read(pointer: *const Self) -> Result<(Format, EncodeOptions)> {
        // SAFETY: the caller's promise.
        let given = unsafe { given::growing(pointer, Self::DEFAULT, "sieva_result_options") }?;
        // SAFETY: as above.
        let (format, spool) = unsafe {
            let format = given::optional_text(given.format, "result_options.format")?;
            (format, given::optional_text(given.spool, "result_options.spool")?)
        };
        let default = EncodeOptions::default();
        let limit = if given.spool_limit == 0 { default.spool_limit } else { given.spool_limit };
        if given.reserved != 0 {
            return Err(crate::status::invalid("result_options.reserved is not 0"));
        }
        let spool = spool.map(PathBuf::from);
        let options = EncodeOptions { spool, spool_limit: limit, deflate: given.deflate };
        Ok((format.map_or(Ok(Format::default()), Format::named)?, options))
    }
}

/// The names of formats as C reads them.
static NAMES: LazyLock<Vec<(Format, CString)>> = LazyLock::new(|| {
    // No name has a NUL.
    Format::all().map(|format| (format, CString::new(format.name()).unwrap_or_default())).collect()
});

/// `sieva_result_format`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_format(
    name: *const c_char,
    format: *mut *const c_char,
    laid_out: *mut i32,
) -> i32 {
    guarded(|| {
        let out = Out::new(format, "format")?;
        // SAFETY: the promises of sieva.h.
        let name = unsafe { given::optional_text(name, "name") }?;
        let found = name.map_or(Ok(Format::default()), Format::of_name_or_suffix)?;
        let text = NAMES.iter().find(|(format, _)| *format == found).map(|(_, text)| text.as_ptr());
        // SAFETY: as above.
        unsafe {
            out.set(text.unwrap_or(std::ptr::null()));
            if !laid_out.is_null() {
                laid_out.write_unaligned(found.is_laid_out().into());
            }
        }
        Ok(())
    })
}

/// `sieva_result_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_open(
    source: *const SourceHandle,
    sql: *const c_char,
    options: *const Options,
    result_options: *const ResultOptions,
    result: *mut *mut ResultHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(result, "result")?;
        // SAFETY: the promises of sieva.h.
        let (source, sql, how) = unsafe {
            (
                &given::handle(source, "source")?.0,
                given::text(sql, "sql")?,
                ResultOptions::read(result_options)?,
            )
        };
        // SAFETY: as above.
        let options = unsafe { own_or(source, options) }?;
        let made = ResultHandle::of(&source.ask(sql, &options)?, &how)?;
        // SAFETY: as above.
        unsafe { out.set(made) };
        Ok(())
    })
}

/// The caller's options, those of the source in the place of none.
///
/// # Safety
/// As [`options::query_options`].
pub unsafe fn own_or(source: &Asked, options: *const Options) -> Result<QueryOptions> {
    if options.is_null() {
        return Ok(source.options().clone());
    }
    // SAFETY: the caller's promise.
    unsafe { options::query_options(options) }
}

/// `sieva_result_of_plan`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_of_plan(
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    result_options: *const ResultOptions,
    result: *mut *mut ResultHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(result, "result")?;
        // SAFETY: the promises of sieva.h.
        let (source, plan, how) = unsafe {
            (
                &given::handle(source, "source")?.0,
                &given::handle(plan, "plan")?.0,
                ResultOptions::read(result_options)?,
            )
        };
        // SAFETY: as above.
        let options = unsafe { own_or(source, options) }?;
        let made = ResultHandle::of(&source.query(plan, &options)?, &how)?;
        // SAFETY: as above.
        unsafe { out.set(made) };
        Ok(())
    })
}

/// `sieva_result_size`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_size(result: *const ResultHandle, bytes: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(bytes, "bytes")?;
        // SAFETY: the promises of sieva.h.
        let size = unsafe { given::handle(result, "result") }?.0.size()?;
        // SAFETY: as above.
        unsafe { out.set(size) };
        Ok(())
    })
}

/// `sieva_result_rows`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_rows(result: *const ResultHandle, rows: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(rows, "rows")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(result, "result")?.0.rows()) };
        Ok(())
    })
}

/// `sieva_result_id`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_id(
    result: *const ResultHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::put_text(given::handle(result, "result")?.0.id(), text, capacity, needed) }
    })
}

/// `sieva_result_read`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_read(
    result: *const ResultHandle,
    offset: u64,
    buffer: *mut c_void,
    capacity: u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let encoded = &unsafe { given::handle(result, "result") }?.0;
        let wanted = capacity.min(encoded.size()?.saturating_sub(offset));
        // SAFETY: as above.
        let buffer = unsafe { bytes(buffer, wanted) }?;
        let n = encoded.read_at(offset, buffer)?;
        // SAFETY: as above.
        unsafe { out.set(n as u64) };
        Ok(())
    })
}

/// The first `n` bytes of the caller's buffer.
///
/// # Errors
/// `invalid-value` for NULL where `n` is not 0, and for more than memory has.
///
/// # Safety
/// The buffer must be valid for reading and writing `n` bytes, and nobody else may use it meanwhile.
pub unsafe fn bytes<'a>(buffer: *mut c_void, n: u64) -> Result<&'a mut [u8]> {
    let length = given::in_memory::<u8>(n, "buffer")?;
    check_room(n, n, buffer.is_null(), "buffer")?;
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not NULL; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) })
}

/// `sieva_result_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_result_free(result: *mut ResultHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(result) }
}

/// `sieva_source_schema`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_source_schema(
    source: *const SourceHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let schema = unsafe { opened(source) }?.source.schema_json()?;
        // SAFETY: as above.
        unsafe { given::put_text(&schema, text, capacity, needed) }
    })
}
