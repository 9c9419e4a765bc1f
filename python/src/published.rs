//! What is published in a group: functions that `sieva.share.Group` calls with its native part.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use sieva::{Error, ErrorKind};
use sieva_encode::Format;
use sieva_share::{FetchOptions, PublishOptions};

use crate::errors::to_python;
use crate::interrupt::interruptible;
use crate::query::Query;
use crate::share::{Group, asked, looked_on, unprintable};

/// Publishes a file; returns what was published as JSON.
#[pyfunction]
#[pyo3(signature = (group, user, name, path, keep=None, zone_maps=true))]
pub fn publish_file(
    py: Python<'_>,
    group: &Group,
    user: &str,
    name: &str,
    path: PathBuf,
    keep: Option<u64>,
    zone_maps: bool,
) -> PyResult<String> {
    let options = options(keep, zone_maps);
    let done = interruptible(py, &options.cancel, || group.0.publish(user, name, &path, &options))?;
    serde_json::to_string(&done).map_err(|e| to_python(unprintable(&e)))
}

/// Publishes the result of a query as a file of a format.
#[pyfunction]
#[pyo3(signature = (group, user, name, query, kind, spool, keep=None, zone_maps=true))]
#[expect(clippy::too_many_arguments, reason = "those of the Python method")]
pub fn publish_query(
    py: Python<'_>,
    group: &Group,
    user: &str,
    name: &str,
    query: &Query,
    kind: &str,
    spool: PathBuf,
    keep: Option<u64>,
    zone_maps: bool,
) -> PyResult<String> {
    let format = Format::named(kind).map_err(to_python)?;
    let query = Arc::clone(&query.0);
    let options = PublishOptions { cancel: query.cancel_flag(), ..options(keep, zone_maps) };
    let done = interruptible(py, &options.cancel, || {
        group.0.publish_result(user, name, &query, format, &spool, &options)
    })?;
    serde_json::to_string(&done).map_err(|e| to_python(unprintable(&e)))
}

/// Takes back what a user published.
#[pyfunction]
pub fn unpublish_named(py: Python<'_>, group: &Group, user: &str, name: &str) -> PyResult<()> {
    asked(py, || group.0.unpublish(user, name))
}

/// What is published, and what is wrong, as JSON.
#[pyfunction]
pub fn list_published(py: Python<'_>, group: &Group) -> PyResult<String> {
    let (found, _) = asked(py, || group.0.published())?;
    serde_json::to_string(&found).map_err(|e| to_python(unprintable(&e)))
}

/// Puts what a name leads to into a file; returns its bytes, and how many came.
#[pyfunction]
#[pyo3(signature = (group, name, path, progress=None))]
pub fn fetch_named(
    py: Python<'_>,
    group: &Group,
    name: &str,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64)> {
    let mut options = FetchOptions::default();
    let cancel = Arc::clone(&options.cancel);
    let teller = looked_on(progress, &cancel, &mut options.progress);
    let done = interruptible(py, &cancel, || group.0.fetch(name, &path, &options));
    let done = teller.outcome(done)?;
    Ok((done.size, done.came))
}

/// An address that takes no key, and whether it expires.
#[pyfunction]
pub fn link_named(py: Python<'_>, group: &Group, name: &str, expires: f64) -> PyResult<(String, bool)> {
    let time = Duration::try_from_secs_f64(expires).map_err(|_| {
        let message = format!("expires={expires}: expected seconds above 0");
        to_python(Error::new(ErrorKind::InvalidValue, message))
    })?;
    let link = asked(py, || group.0.link(name, time))?;
    Ok((link.url, link.expires))
}

fn options(keep: Option<u64>, zone_maps: bool) -> PublishOptions {
    let default = PublishOptions::default();
    let zone_maps_from = default.zone_maps_from.filter(|_| zone_maps);
    PublishOptions { keep: keep.map(Duration::from_secs), zone_maps_from, ..default }
}
