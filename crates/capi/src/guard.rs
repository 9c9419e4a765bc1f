//! Who decides what may be opened: a function of the program, or a list.

use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sieva::Result;
use sieva::guard::{AllowList, Gate, Guard, Place, Purpose, refusal};

/// `sieva_may_open`
pub type MayOpen = unsafe extern "C" fn(
    context: *mut c_void,
    purpose: i32,
    asked: *const c_char,
    real: *const c_char,
) -> i32;

/// `sieva_purpose`, by the names of the header.
pub const PURPOSES: [(&str, Purpose); 6] = [
    ("SOURCE", Purpose::Source),
    ("LISTING", Purpose::Listing),
    ("MEMBER", Purpose::Member),
    ("LINK", Purpose::Link),
    ("REDIRECT", Purpose::Redirect),
    ("INDEX", Purpose::Index),
];

/// A function of the program as a guard.
#[derive(Debug)]
struct Callback {
    call: MayOpen,
    context: *mut c_void,
}

// SAFETY: the header asks for a function that may be called from any thread, at the same time.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Guard for Callback {
    fn check(&self, place: &Place<'_>, purpose: Purpose) -> Result<()> {
        let (asked, real) = match place {
            Place::File { asked, real } => (
                CString::new(plain(asked).as_os_str().as_bytes()),
                CString::new(real.as_os_str().as_bytes()).ok(),
            ),
            Place::Url(url) => {
                let mut url = (*url).clone();
                let _ = (url.set_username(""), url.set_password(None));
                (CString::new(url.as_str()), None)
            }
        };
        let Ok(asked) = asked else { return Err(refusal(place, purpose)) };
        let real_text = real.as_ref().map_or(std::ptr::null(), |real| real.as_ptr());
        // SAFETY: the program's promise of `sieva_options.may_open`; both texts live until it returns.
        let answer = unsafe { (self.call)(self.context, purpose as i32, asked.as_ptr(), real_text) };
        if answer == 0 { Err(refusal(place, purpose)) } else { Ok(()) }
    }
}

/// An absolute path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

/// The gate of `sieva_options`: a list of places, a line for each, and a function.
///
/// # Errors
/// `invalid-value` for a place that is none.
pub fn gate(allow: Option<&str>, may_open: Option<MayOpen>, context: *mut c_void) -> Result<Gate> {
    let mut gate = Gate::default();
    if let Some(allow) = allow {
        let places = allow.lines().map(str::trim).filter(|line| !line.is_empty());
        gate = gate.and(Arc::new(AllowList::new(places)?));
    }
    Ok(match may_open {
        Some(call) => gate.and(Arc::new(Callback { call, context })),
        None => gate,
    })
}
