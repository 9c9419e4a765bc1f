//! An open BP file: the calls of the library, each checked.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use sieva_types::{Error, ErrorKind, Result};

use crate::abi::{Opaque, READ_RANDOM_ACCESS, SYNC};
use crate::library::{Api, api};

/// What the library handed out for one file. All of it is used under the lock of [`Api`] only.
pub struct File {
    adios: *mut Opaque,
    io: *mut Opaque,
    engine: *mut Opaque,
    shown: String,
}

// SAFETY: the pointers are used by whoever holds the lock of the library, which wants one thread at a time, not always the
// same.
unsafe impl Send for File {}
// SAFETY: as above; nothing is read or written through them without the lock.
unsafe impl Sync for File {}

/// A variable of an open file, while the library is locked.
#[derive(Clone, Copy)]
pub struct Handle(pub *mut Opaque);

impl File {
    /// Opens the file for reading any step of it.
    ///
    /// # Errors
    /// `unsupported` without the library; `corrupt-file` where it cannot read the file.
    pub fn open(path: &Path) -> Result<Self> {
        if std::env::var_os("HOME").is_none() {
            let message = format!(
                "'{}' is a BP file: the library of ADIOS2, which reads it, ends processes without the variable HOME",
                path.display()
            );
            return Err(Error::new(ErrorKind::Unsupported, message).hint("set HOME to any directory"));
        }
        let api = api().map_err(|e| e.at(format!("'{}'", path.display())))?;
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::new(ErrorKind::InvalidValue, "a path with a zero byte"))?;
        let mut file =
            Self { adios: null_mut(), io: null_mut(), engine: null_mut(), shown: path.display().to_string() };
        // SAFETY: the names end in a zero; each handle is used only if there is one.
        unsafe {
            file.adios = (api.init_serial)();
            if !file.adios.is_null() {
                file.io = (api.declare_io)(file.adios, c"sieva".as_ptr());
            }
            if !file.io.is_null() && (api.set_engine)(file.io, c"BPFile".as_ptr()) == 0 {
                file.engine = (api.open)(file.io, name.as_ptr(), READ_RANDOM_ACCESS);
            }
        }
        let opened = !file.engine.is_null();
        // Where it could not be opened, dropping it takes the lock again.
        drop(api);
        if opened { Ok(file) } else { Err(file.failed("opened")) }
    }

    /// The library, for as long as something is asked of this file.
    ///
    /// # Errors
    /// None, in a file that is open.
    pub fn lock(&self) -> Result<Api> {
        api()
    }

    /// How many steps there are.
    pub fn steps(&self, api: &Api) -> Result<usize> {
        let mut steps = 0;
        // SAFETY: the engine is open.
        self.check(unsafe { (api.steps)(&raw mut steps, self.engine) }, "asked for its steps")?;
        Ok(steps)
    }

    /// The name of the reader: `BP5Reader`.
    pub fn reader(&self, api: &Api) -> Result<String> {
        // SAFETY: the engine is open.
        self.text(|text, len| unsafe { (api.engine_get_type)(text, len, self.engine) })
    }

    /// The names of variables, or of attributes; `None` where one is not UTF-8.
    pub fn names(
        &self,
        of: unsafe extern "C" fn(*mut Opaque, *mut usize) -> *mut *mut c_char,
    ) -> Vec<Option<String>> {
        let mut count = 0;
        // SAFETY: the IO is open; the array and the names in it are the caller's, and are freed once each.
        unsafe {
            let names = of(self.io, &raw mut count);
            if names.is_null() {
                return Vec::new();
            }
            let found = (0..count).map(|i| {
                let name = *names.add(i);
                let text = CStr::from_ptr(name).to_str().ok().map(String::from);
                libc::free(name.cast());
                text
            });
            let found = found.collect();
            libc::free(names.cast());
            found
        }
    }

    /// The variable of this name.
    pub fn variable(&self, api: &Api, name: &str) -> Result<Handle> {
        let name = CString::new(name).map_err(|_| self.failed("asked for a name with a zero byte"))?;
        // SAFETY: the IO is open, the name ends in a zero.
        let found = unsafe { (api.inquire_variable)(self.io, name.as_ptr()) };
        if found.is_null() {
            Err(self.failed("asked for a variable that it lists"))
        } else {
            Ok(Handle(found))
        }
    }

    /// The attribute of this name.
    pub fn attribute(&self, api: &Api, name: &str) -> Option<Handle> {
        let name = CString::new(name).ok()?;
        // SAFETY: the IO is open, the name ends in a zero.
        let found = unsafe { (api.inquire_attribute)(self.io, name.as_ptr()) };
        (!found.is_null()).then_some(Handle(found))
    }

    /// A text that `get` gives in two calls: its length, and its bytes.
    pub fn text(&self, get: impl Fn(*mut c_char, *mut usize) -> c_int) -> Result<String> {
        let mut len = 0;
        self.check(get(null_mut(), &raw mut len), "asked for a text")?;
        let mut bytes = vec![0_u8; len.checked_add(1).ok_or_else(|| self.failed("asked for a text"))?];
        self.check(get(bytes.as_mut_ptr().cast(), &raw mut len), "asked for a text")?;
        bytes.truncate(len.min(bytes.len() - 1));
        String::from_utf8(bytes).map_err(|_| self.failed("asked for a text: it is not UTF-8"))
    }

    /// Selects one step of a variable, or several.
    pub fn select_steps(&self, api: &Api, variable: Handle, first: usize, count: usize) -> Result<()> {
        // SAFETY: the variable is one of this file.
        self.check(unsafe { (api.set_step_selection)(variable.0, first, count) }, "asked for a step")
    }

    /// Selects a box of a step.
    pub fn select_box(&self, api: &Api, variable: Handle, start: &[usize], count: &[usize]) -> Result<()> {
        // SAFETY: the variable is one of this file; both have as many entries as is said.
        let done = unsafe { (api.set_selection)(variable.0, start.len(), start.as_ptr(), count.as_ptr()) };
        self.check(done, "asked for a box")
    }

    /// Fills `out`, of elements of so many bytes, with what was selected.
    pub fn get(&self, api: &Api, variable: Handle, out: &mut [u8], element: usize) -> Result<()> {
        let mut elements = 0;
        // SAFETY: the variable is one of this file.
        let sized = unsafe { (api.selection_size)(&raw mut elements, variable.0) };
        self.check(sized, "asked for a box")?;
        if elements.checked_mul(element) != Some(out.len()) {
            return Err(self.failed("asked for a box: it would give another number of elements"));
        }
        // SAFETY: the library writes what is selected, which is as long as `out`.
        let got = unsafe { (api.get)(self.engine, variable.0, out.as_mut_ptr().cast(), SYNC) };
        self.check(got, "read")
    }

    /// The text that a variable has in the step that is selected.
    pub fn get_text(&self, api: &Api, variable: Handle) -> Result<String> {
        let get = api.get_string.ok_or_else(|| {
            let message =
                format!("'{}' has texts, which this version of ADIOS2 does not hand out", self.shown);
            Error::new(ErrorKind::Unsupported, message).hint("ADIOS2 2.12 does")
        })?;
        // SAFETY: both are of this file; the text is as long as was told.
        self.text(|text, len| unsafe { get(self.engine, variable.0, text, len) })
    }

    /// The engine, for calls that are made elsewhere.
    pub fn engine(&self) -> *mut Opaque {
        self.engine
    }

    /// An error where the library told one. It prints why to standard error itself: its C interface does not hand the
    /// reason over.
    pub fn check(&self, told: c_int, what: &str) -> Result<()> {
        if told == 0 { Ok(()) } else { Err(self.failed(what)) }
    }

    /// The error of what could not be done.
    pub fn failed(&self, what: &str) -> Error {
        Error::corrupt(format!("'{}': ADIOS2 cannot read it: it failed when {what}", self.shown))
            .hint("is it whole, and is nothing writing it? bpls, of ADIOS2, reads it the same way")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let Ok(api) = api() else { return };
        // SAFETY: nobody else has these handles, and they are not used again.
        unsafe {
            if !self.engine.is_null() {
                (api.close)(self.engine);
            }
            if !self.adios.is_null() {
                (api.finalize)(self.adios);
            }
        }
    }
}
