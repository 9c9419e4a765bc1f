//! Objects behind a network: web servers, S3, Swift.
//!
//! From the outside in: [`open`] and [`open_tree`] make a `RemoteObject` or `RemoteTree`; a `Target` is one object, whose
//! bytes are in the cache, on their way or asked for; a `Transport` is one server and repeats what fails; an `Attempt` is one
//! request and what it brought, which a `Landing` hands on while it comes; a `Service` knows how a kind of server is addressed.
//! What is written: `RemoteObjects` are the objects under a root; a `Sending` is one request that changes something, with a
//! `Payload`; `parts` are those of a long body.

mod address;
mod attempt;
mod coalesce;
mod failure;
mod landing;
mod list;
mod object;
mod options;
mod parts;
mod redirect;
mod retry;
mod runtime;
pub(crate) mod s3;
mod sending;
mod sent;
pub(crate) mod service;
pub(crate) mod swift;
mod target;
mod temp_url;
mod transport;
mod tree;
mod validator;
pub(crate) mod web;
mod written;

use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};

pub use options::{RemoteOption, RemoteOptions, RemoteValue};

use crate::guard::{Gate, Purpose};
use crate::location::{Location, Remote, redacted};
use crate::objects::Objects;
use crate::{DirTree, FileStore, ObjectTree, RangedRead};
use object::RemoteObject;
use service::Service;
use transport::Transport;
use tree::RemoteTree;
use written::RemoteObjects;

/// Opens the object at a path, or at a URL of one of the stores ([`crate::Store`]): `file://`, `http://`, `https://`,
/// `s3://bucket/key` (the `AWS_*` variables of the environment say where and who, requests are unsigned without keys),
/// `swift://container/object` (`ST_AUTH`, `ST_USER`, `ST_KEY`, or `OS_STORAGE_URL`, `OS_AUTH_TOKEN`).
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
    let place = match Location::parse(location)? {
        Location::Local(path) => return Ok(Arc::new(FileStore::open_within(&path, gate, purpose)?)),
        Location::Remote(place) => place,
    };
    let key = place.key.as_deref().unwrap_or_default();
    if place.key.is_some() && key.is_empty() {
        let message = format!("'{}' names no object", redacted(location));
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("write scheme://container/object"));
    }
    let service = (place.connect)(&place)?;
    Ok(Arc::new(RemoteObject::open(&Transport::new(service, options, gate, purpose)?, key)?))
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
    let place = match Location::parse(location)? {
        Location::Local(path) => return Ok(Arc::new(DirTree::open_within(&path, gate, purpose)?)),
        Location::Remote(place) => place,
    };
    let service = (place.connect)(&place)?;
    gate.check_url(location, purpose)?;
    let prefix = place.key.as_deref().unwrap_or_default();
    Ok(Arc::new(RemoteTree::new(Transport::new(service, options, gate, Purpose::Member)?, prefix)?))
}

/// The objects that can be written under a place of an object store; see [`crate::objects::open_objects_within`].
pub(crate) fn open_objects(
    place: &Remote,
    options: &RemoteOptions,
    gate: &Gate,
    purpose: Purpose,
) -> Result<Arc<dyn Objects>> {
    gate.check_parsed(&place.url, purpose)?;
    objects_of((place.connect)(place)?, place.key.as_deref().unwrap_or_default(), options, gate, purpose)
}

/// The objects under a prefix of a server.
pub(crate) fn objects_of(
    service: Box<dyn Service>,
    prefix: &str,
    options: &RemoteOptions,
    gate: &Gate,
    purpose: Purpose,
) -> Result<Arc<dyn Objects>> {
    let Some(writing) = service.writing() else {
        let message = format!("'{}' cannot be written to", service.root());
        return Err(Error::new(ErrorKind::Unsupported, message)
            .hint("use a directory, s3://bucket/prefix or swift://container/prefix"));
    };
    Ok(Arc::new(RemoteObjects::new(Transport::new(service, options, gate, purpose)?, writing, prefix)?))
}
