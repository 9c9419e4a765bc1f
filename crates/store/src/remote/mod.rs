//! Objects behind a network: web servers, S3, Swift.
//!
//! From the outside in: [`open`] and [`open_tree`] make a `RemoteObject` or `RemoteTree`; a `Target` is one object, whose
//! bytes are in the cache, on their way or asked for; a `Transport` is one server and repeats what fails; an `Attempt` is one
//! request and what it brought, which a `Landing` hands on while it comes; a `Service` knows how a kind of server is addressed.

mod address;
mod attempt;
mod coalesce;
mod failure;
mod landing;
mod list;
mod object;
mod options;
mod redirect;
mod retry;
mod runtime;
mod s3;
mod service;
mod swift;
mod target;
mod transport;
mod tree;
mod validator;

use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};

pub use options::RemoteOptions;

use crate::guard::{Gate, Purpose};
use crate::location::{Location, redacted};
use crate::{DirTree, FileStore, ObjectTree, RangedRead};
use object::RemoteObject;
use service::Service;
use transport::Transport;
use tree::RemoteTree;

/// Opens the object at a path or URL: `file://`, `http://`, `https://`, `s3://bucket/key` (the `AWS_*` variables of the
/// environment say where and who, requests are unsigned without keys), `swift://container/object` (`ST_AUTH`, `ST_USER`,
/// `ST_KEY`, or `OS_STORAGE_URL`, `OS_AUTH_TOKEN`).
///
/// A remote object is read through the process's cache; every byte is of the version that was opened.
///
/// # Errors
/// `unsupported` for another scheme, and for a server that gives no ranges of an object that is larger than the cache;
/// `invalid-value` for an address that is none; `file-not-found`, `permission-denied`, `io-error`.
pub fn open(location: &str, options: &RemoteOptions) -> Result<Arc<dyn RangedRead>> {
    open_within(location, options, &Gate::default(), Purpose::Source)
}

/// The same, if `gate` lets it: it is asked for the object, and for each place that a server sends on to.
///
/// # Errors
/// As [`open`]; the gate's refusal.
pub fn open_within(
    location: &str,
    options: &RemoteOptions,
    gate: &Gate,
    purpose: Purpose,
) -> Result<Arc<dyn RangedRead>> {
    let (service, key) = match Location::parse(location)? {
        Location::Local(path) => return Ok(Arc::new(FileStore::open_within(&path, gate, purpose)?)),
        Location::Http(url) => (Service::Http(url), String::new()),
        Location::S3 { bucket, key } => (Service::S3(s3::S3::from_env(&bucket)?), object_key(location, key)?),
        Location::Swift { container, key } => {
            (Service::Swift(swift::Swift::from_env(&container)?), object_key(location, key)?)
        }
    };
    Ok(Arc::new(RemoteObject::open(&Transport::new(service, options, gate, purpose)?, &key)?))
}

/// Opens the tree of objects below a directory, a URL, `s3://bucket/prefix` or `swift://container/prefix`; see [`open`].
/// Nothing is asked of a server yet. A web server's tree cannot be listed.
///
/// # Errors
/// As [`open`].
pub fn open_tree(location: &str, options: &RemoteOptions) -> Result<Arc<dyn ObjectTree>> {
    open_tree_within(location, options, &Gate::default(), Purpose::Source)
}

/// The same, if `gate` lets it: it is asked for each object, and for each place that a server sends on to.
///
/// # Errors
/// As [`open`]; the gate's refusal of the root itself.
pub fn open_tree_within(
    location: &str,
    options: &RemoteOptions,
    gate: &Gate,
    purpose: Purpose,
) -> Result<Arc<dyn ObjectTree>> {
    let (service, prefix) = match Location::parse(location)? {
        Location::Local(path) => return Ok(Arc::new(DirTree::open_within(&path, gate, purpose)?)),
        Location::Http(url) => (Service::Http(url), String::new()),
        Location::S3 { bucket, key } => (Service::S3(s3::S3::from_env(&bucket)?), key),
        Location::Swift { container, key } => (Service::Swift(swift::Swift::from_env(&container)?), key),
    };
    gate.check_url(location, purpose)?;
    Ok(Arc::new(RemoteTree::new(Transport::new(service, options, gate, Purpose::Member)?, &prefix)?))
}

fn object_key(location: &str, key: String) -> Result<String> {
    if key.is_empty() {
        let message = format!("'{}' names no object", redacted(location));
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("write scheme://container/object"));
    }
    Ok(key)
}
