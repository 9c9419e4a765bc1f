//! May this place be opened for whoever asks? One question, asked before every open.
//!
//! A server answers for others than its own account, and a file may name further files. So whatever is opened because
//! somebody named it (in a query, in a file, by a link) passes a [`Gate`]. It looks where a name really leads before a
//! byte is read, by descriptor, so that nothing can be put in its place between the question and the opening.

mod allow;
mod gate;
mod one;

use std::fmt::Debug;
use std::path::Path;

use sieva_types::{Error, ErrorKind, Result};
use url::Url;

pub use allow::AllowList;
pub use gate::Gate;
pub use one::OneFile;

/// What is about to be opened.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A local file or directory.
    File {
        /// As it was named.
        asked: &'a Path,
        /// Where that leads, links resolved; of what is not there, where it would be.
        real: &'a Path,
    },
    /// An object behind a network, in normal form: `s3://bucket/key` with a percent-encoded key for S3.
    Url(&'a Url),
}

/// Why a place is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Purpose {
    /// A query or a caller names it as a source: FROM, a subquery, one file of many.
    Source = 0,
    /// Its names are listed, to find the files that match a pattern.
    Listing = 1,
    /// It is an object of a source that is open: metadata or a chunk of a Zarr hierarchy.
    Member = 2,
    /// A source leads to it: an external link, raw data kept elsewhere, virtual data, a reference.
    Link = 3,
    /// A server sends on to it.
    Redirect = 4,
    /// It holds what is known of a source: the store of indexes beside it.
    Index = 5,
}

/// Who decides what may be opened.
///
/// ```
/// use sieva_store::guard::{Gate, Guard, Place, Purpose, refusal};
///
/// #[derive(Debug)]
/// struct NoNetwork;
///
/// impl Guard for NoNetwork {
///     fn check(&self, place: &Place<'_>, purpose: Purpose) -> sieva_types::Result<()> {
///         match place {
///             Place::File { .. } => Ok(()),
///             Place::Url(_) => Err(refusal(place, purpose)),
///         }
///     }
/// }
///
/// let gate = Gate::of(std::sync::Arc::new(NoNetwork));
/// let e = gate.check_url("http://h/a.nc", Purpose::Source).unwrap_err();
/// assert_eq!(e.to_string(), "'http://h/a.nc' is outside of what may be opened");
/// ```
pub trait Guard: Debug + Send + Sync {
    /// Whether the place may be opened.
    ///
    /// # Errors
    /// [`refusal`] where it may not: the words must not tell whether there is anything.
    fn check(&self, place: &Place<'_>, purpose: Purpose) -> Result<()>;
}

/// The error for a place that may not be opened, whether there is something or not: `link-refused` where something that is
/// open leads to it, `permission-denied` where somebody names it.
pub fn refusal(place: &Place<'_>, purpose: Purpose) -> Error {
    let kind = match purpose {
        Purpose::Member | Purpose::Link | Purpose::Redirect => ErrorKind::LinkRefused,
        Purpose::Source | Purpose::Listing | Purpose::Index => ErrorKind::PermissionDenied,
    };
    let shown = match place {
        Place::File { asked, .. } => asked.display().to_string(),
        Place::Url(url) => crate::redacted(url.as_str()),
    };
    Error::new(kind, format!("'{shown}' is outside of what may be opened"))
}
