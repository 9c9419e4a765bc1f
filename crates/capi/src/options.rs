//! `sieva_options`: a struct that may grow.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use sieva::{
    Functions, Identity, Learn, OpenOptions, QueryOptions, RemoteOptions, Result, SharedManifest, Striping,
};

use crate::given;
use crate::guard::{self, MayOpen};
use crate::status::invalid;
use crate::stop::StopHandle;
use crate::types::{access_of, fetch_of};

/// The program that parses files that nobody vouches for, unless another is given: found as programs are.
const WORKER: &str = "sieva-worker";

/// `sieva_options`. New fields come at the end; 0 always means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Bytes that reading may take.
    pub memory: u64,
    /// Threads.
    pub threads: u32,
    /// `sieva_access`.
    pub access: i32,
    /// A directory for stores, or NULL.
    pub store: *const c_char,
    /// A directory that links out of the file may lead to, or NULL.
    pub external_root: *const c_char,
    /// Whether values outside of `valid_range` are missing.
    pub valid_range: i32,
    /// Whether scans leave no statistics behind.
    pub no_learning: i32,
    /// Names of arrays' dimensions, or NULL.
    pub dims: *const c_char,
    /// Whether a worker process parses the file.
    pub isolated: i32,
    /// Whether arrays that do not line up make a product.
    pub cross: i32,
    /// The worker's program, or NULL.
    pub worker: *const c_char,
    /// The account that the client of a server has, or NULL.
    pub user: *const c_char,
    /// What it proved to be, or NULL.
    pub subject: *const c_char,
    /// What ends queries, or NULL.
    pub stop: *const StopHandle,
    /// Places that may be opened, a line for each, or NULL.
    pub allow: *const c_char,
    /// Who decides what may be opened, or NULL.
    pub may_open: Option<MayOpen>,
    /// What that is called with.
    pub may_open_context: *mut c_void,
    /// Whether hosts of networks that are not public are refused.
    pub public_only: i32,
    /// Nothing.
    pub reserved2: i32,
    /// Bytes that sorting may write to temporary files.
    pub spill: u64,
    /// `sieva_fetch`.
    pub fetch: i32,
    /// Nothing.
    pub reserved3: i32,
    /// The dimension along which several files are joined, or NULL.
    pub join: *const c_char,
    /// What opening the source learnt elsewhere, or NULL.
    pub manifest: *const u8,
    /// Its length.
    pub manifest_bytes: u64,
    /// Where the bytes of the file lie, or NULL.
    pub striping: *const c_char,
    /// Functions that come as code, or NULL.
    pub functions: *const FunctionOf,
    /// How many they are.
    pub function_count: u64,
}

/// `sieva_function`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FunctionOf {
    /// Its name in SQL.
    pub name: *const c_char,
    /// Text of the C subset, or a WebAssembly module.
    pub code: *const u8,
    /// Bytes of it.
    pub bytes: u64,
}

impl Options {
    /// What NULL stands for.
    pub const DEFAULT: Self = Self {
        size: size_of::<Self>() as u64,
        memory: 0,
        threads: 0,
        access: 0,
        store: std::ptr::null(),
        external_root: std::ptr::null(),
        valid_range: 0,
        no_learning: 0,
        dims: std::ptr::null(),
        isolated: 0,
        cross: 0,
        worker: std::ptr::null(),
        user: std::ptr::null(),
        subject: std::ptr::null(),
        stop: std::ptr::null(),
        allow: std::ptr::null(),
        may_open: None,
        may_open_context: std::ptr::null_mut(),
        public_only: 0,
        reserved2: 0,
        spill: 0,
        fetch: 0,
        reserved3: 0,
        join: std::ptr::null(),
        manifest: std::ptr::null(),
        manifest_bytes: 0,
        striping: std::ptr::null(),
        functions: std::ptr::null(),
        function_count: 0,
    };

    /// The options of the caller: those that its struct has, and the defaults of the others.
    ///
    /// # Errors
    /// `invalid-value` where the size is impossible, or a newer program asks for what is not known here.
    ///
    /// # Safety
    /// A pointer that is not NULL must lead to as many bytes as its first field says.
    unsafe fn read(pointer: *const Options) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { given::growing(pointer, Self::DEFAULT, "sieva_options") }
    }

    /// The functions that come as code.
    ///
    /// # Safety
    /// Pointers must lead to as much as is said, texts must end with a NUL.
    unsafe fn functions(&self) -> Result<Functions> {
        if self.functions.is_null() && self.function_count == 0 {
            return Ok(Functions::default());
        }
        // SAFETY: the caller's promise.
        let all = unsafe { given::values(self.functions, self.function_count, "options.functions") }?;
        let each = all.iter().map(|function| {
            // SAFETY: as above.
            let name = unsafe { given::text(function.name, "options.functions[].name") }?;
            // SAFETY: as above.
            let code = unsafe { given::values(function.code, function.bytes, "options.functions[].code") }?;
            Ok((name, code.to_vec()))
        });
        Functions::new(each.collect::<Result<Vec<_>>>()?)
    }

    /// # Safety
    /// `stop` must be NULL or a live handle; what `functions` needs.
    unsafe fn query(&self) -> Result<QueryOptions> {
        // SAFETY: the caller's promise.
        let stop = unsafe { self.stop.as_ref() };
        Ok(QueryOptions {
            access: access_of(self.access)?,
            fetch: fetch_of(self.fetch)?,
            memory: Some(self.memory).filter(|&m| m > 0),
            threads: Some(self.threads as usize).filter(|&t| t > 0),
            cancel: stop.map(|s| Arc::clone(&s.0)),
            // Servers ask through this, too: what they may write is theirs to say.
            spill: Some(self.spill),
            cross: self.cross != 0,
            // SAFETY: the caller's promise.
            functions: unsafe { self.functions() }?,
        })
    }
}

/// What a query is run with.
///
/// # Errors
/// `invalid-value`.
///
/// # Safety
/// As `Options::read`; its handle must be live.
pub unsafe fn query_options(pointer: *const Options) -> Result<QueryOptions> {
    // SAFETY: the caller's promise.
    unsafe { Options::read(pointer)?.query() }
}

/// What a source is opened with, and its queries are run with.
///
/// # Errors
/// `invalid-value`.
///
/// # Safety
/// As `Options::read`; its texts must end with a NUL, its handle must be live.
pub unsafe fn open_options(pointer: *const Options) -> Result<(OpenOptions, QueryOptions)> {
    // SAFETY: the caller's promise.
    let options = unsafe { Options::read(pointer) }?;
    // SAFETY: the caller's promise.
    let text = |text: *const c_char, what: &str| unsafe { given::optional_text(text, what) };
    let path = |pointer, what: &str| text(pointer, what).map(|p| p.map(PathBuf::from));
    let learn = Learn::default();
    let dims = text(options.dims, "options.dims")?.map(named_dims).transpose()?.unwrap_or_default();
    let worker = text(options.worker, "options.worker")?.unwrap_or(WORKER);
    let isolated = if options.isolated != 0 { vec![worker.into()] } else { Vec::new() };
    let (user, subject) = (text(options.user, "options.user")?, text(options.subject, "options.subject")?);
    let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let identity = (user.is_some() || subject.is_some())
        .then(|| Identity { user: owned(user), subject: owned(subject) });
    let allow = text(options.allow, "options.allow")?;
    let remote = RemoteOptions { public_only: options.public_only != 0, ..RemoteOptions::default() };
    // SAFETY: as above.
    let query = unsafe { options.query() }?;
    // It may get fields that C has no use for.
    #[allow(clippy::needless_update)]
    let open = OpenOptions {
        dims,
        store: path(options.store, "options.store")?,
        external_roots: path(options.external_root, "options.external_root")?.into_iter().collect(),
        valid_range: options.valid_range != 0,
        join: text(options.join, "options.join")?.map(str::to_owned),
        isolated,
        identity,
        gate: guard::gate(allow, options.may_open, options.may_open_context)?,
        remote,
        memory: Some(options.memory).filter(|&m| m > 0),
        // SAFETY: as above.
        manifest: unsafe { manifest(&options) }?,
        striping: text(options.striping, "options.striping")?.map(Striping::parse).transpose()?,
        cancel: query.cancel.clone().unwrap_or_default(),
        learn: if options.no_learning != 0 { Learn { share: 0.0, ..learn } } else { learn },
        ..OpenOptions::default()
    };
    Ok((open, query))
}

/// The manifest that the source is opened with.
///
/// # Safety
/// A pointer that is not NULL must lead to as many bytes as are said.
unsafe fn manifest(options: &Options) -> Result<Option<Arc<SharedManifest>>> {
    if options.manifest.is_null() && options.manifest_bytes == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { given::values(options.manifest, options.manifest_bytes, "options.manifest") }?;
    SharedManifest::from_bytes(&bytes).map(|m| Some(Arc::new(m)))
}

/// Names of dimensions, a line for each array: `ARRAY=NAME,NAME`.
fn named_dims(text: &str) -> Result<Vec<(String, Vec<String>)>> {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let each = lines.map(|line| {
        let (array, names) = line.split_once('=').unwrap_or((line, ""));
        let names: Vec<String> = names.split(',').map(|n| n.trim().to_string()).collect();
        if array.trim().is_empty() || names.iter().any(String::is_empty) {
            return Err(invalid(format!("options.dims: '{line}' is not ARRAY=NAME,NAME")));
        }
        Ok((array.trim().to_string(), names))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sieva::options::{OPTIONS, Stage, ValueKind};

    use super::*;
    use crate::types::{ACCESS, FETCH};

    /// The names of all fields; a field more or less does not compile.
    macro_rules! fields {
        ($name:ident { $($field:ident),* }) => {{
            let $name { $($field: _),* } = $name::DEFAULT;
            vec![$(stringify!($field)),*]
        }};
    }

    #[test]
    fn fields_are_those_of_the_table() {
        let all = fields!(Options {
            size,
            memory,
            threads,
            access,
            store,
            external_root,
            valid_range,
            no_learning,
            dims,
            isolated,
            cross,
            worker,
            user,
            subject,
            stop,
            allow,
            may_open,
            may_open_context,
            public_only,
            reserved2,
            spill,
            fetch,
            reserved3,
            join,
            manifest,
            manifest_bytes,
            striping,
            functions,
            function_count
        });
        let options: BTreeSet<&str> =
            all.iter().copied().filter(|f| *f != "size" && !f.starts_with("reserved")).collect();
        let table: BTreeSet<&str> = OPTIONS
            .iter()
            .filter(|o| o.stage != Stage::Building)
            .flat_map(|o| o.c.names())
            .copied()
            .collect();
        assert_eq!(options, table);
        // Programs that were compiled before have their fields where they were.
        let header = include_str!("../include/sieva.h");
        let (_, fields) = header.split_once("typedef struct sieva_options {").unwrap();
        let (fields, _) = fields.split_once("} sieva_options;").unwrap();
        let code: String =
            fields.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect();
        let declared = code.split(';').map(str::trim).filter(|field| !field.is_empty());
        let in_c: Vec<&str> = declared.filter_map(|field| field.rsplit([' ', '*']).next()).collect();
        assert_eq!(in_c, all);
    }

    #[test]
    fn functions_are_taken_over_and_wrong_ones_told() {
        let (name, code) = (c"Warm", "double map(double x) { return x * 1.8 + 32; }");
        let of = |code: &str, bytes: usize| {
            let all = [FunctionOf { name: name.as_ptr(), code: code.as_ptr(), bytes: bytes as u64 }];
            let options = Options { functions: all.as_ptr(), function_count: 1, ..Options::DEFAULT };
            // SAFETY: all pointers lead to what lives as long.
            unsafe { query_options(&options) }
        };
        assert!(of(code, code.len()).unwrap().functions.identity("warm").is_some());
        let e = of(code, code.len() - 1).unwrap_err();
        assert!(e.message().contains("function 'warm'"), "{e}");
        let none = Options { function_count: 1, ..Options::DEFAULT };
        // SAFETY: as above.
        let e = unsafe { query_options(&none) }.unwrap_err();
        assert!(e.message().contains("options.functions is NULL"), "{e}");
        // SAFETY: as above.
        assert!(unsafe { query_options(&Options::DEFAULT) }.unwrap().functions.is_empty());
    }

    #[test]
    fn words_have_numbers() {
        let words = |name: &str| match OPTIONS.iter().find(|o| o.name == name).unwrap().kind {
            ValueKind::Word(words) => words.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((words("access"), words("fetch")), (ACCESS.len(), FETCH.len()));
    }

    #[test]
    fn dimensions_are_named_line_by_line() {
        let named = named_dims("exchange/theta = angle\n\ng/map=y, x\n").unwrap();
        let names = |n: &[&str]| n.iter().map(|s| (*s).to_string()).collect::<Vec<_>>();
        assert_eq!(
            named,
            [("exchange/theta".into(), names(&["angle"])), ("g/map".into(), names(&["y", "x"]))]
        );
        for wrong in ["theta", "=x", "theta=", "theta=x,,y"] {
            assert!(named_dims(wrong).unwrap_err().message().contains(wrong));
        }
    }
}
