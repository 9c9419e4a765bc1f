//! `sieva._native.Group`: sharing through a store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sieva::{Error, ErrorKind};
use sieva_share::{
    Asking, CalibrateOptions, Config, Convert, FollowOptions, Followed, Follower, Followers, GroupKey,
    GroupOptions, OnProgress, Packing, PlannedStep, Prices, Producer, ProducerOptions, Rate,
};

use crate::errors::to_python;
use crate::foreign::native_error;
use crate::index::{Teller, tell};
use crate::interrupt::interruptible;
use crate::query::price_dict;

#[pyclass(module = "sieva._native", frozen)]
pub struct Group(pub(crate) sieva_share::Group);

/// How a pass is made: a dict of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    /// Seconds.
    settle: f64,
    memory: Option<u64>,
    threads: Option<usize>,
    bp_worker: Vec<OsString>,
    spool: PathBuf,
    ask_memory: Option<u64>,
    /// Seconds.
    ask_time: Option<f64>,
    result_size: Option<u64>,
    /// files, partial or whole.
    objects: String,
    object_size: Option<u64>,
    /// Of storage, of transfer into the store and out of it.
    prices: Option<(f64, f64, f64)>,
}

#[pymethods]
impl Group {
    #[staticmethod]
    #[pyo3(signature = (place, sources, expires=None, strict_code=false, key=None, makes_key=false))]
    fn create(
        py: Python<'_>,
        place: &str,
        sources: Vec<String>,
        expires: Option<u64>,
        strict_code: bool,
        key: Option<PathBuf>,
        makes_key: bool,
    ) -> PyResult<Self> {
        let create = || {
            if !sources.is_empty() {
                Producer::check_sources(&sources)?;
            }
            let read = |path: &PathBuf| match makes_key {
                true => GroupKey::read_or_make(path),
                false => GroupKey::read(path),
            };
            let options = GroupOptions { expires, strict_code, key: key.as_ref().map(read).transpose()? };
            sieva_share::Group::create(place, &options)
        };
        asked(py, create).map(Self)
    }

    #[staticmethod]
    #[pyo3(signature = (place, key=None))]
    fn open(py: Python<'_>, place: &str, key: Option<PathBuf>) -> PyResult<Self> {
        let open = || {
            let key = key.as_deref().map(GroupKey::read).transpose()?;
            sieva_share::Group::open(place, key.as_ref())
        };
        asked(py, open).map(Self)
    }

    fn register(&self, py: Python<'_>, producer: &str, sources: Vec<String>) -> PyResult<()> {
        asked(py, || Producer::register(&self.0, producer, &sources).map(drop))
    }

    fn join(&self, py: Python<'_>, user: &str) -> PyResult<()> {
        asked(py, || self.0.join(user))
    }

    fn leave(&self, py: Python<'_>, user: &str) -> PyResult<()> {
        asked(py, || self.0.leave(user))
    }

    #[pyo3(signature = (user, name, sql, format, only_new, code=None))]
    #[expect(clippy::too_many_arguments, reason = "those of the Python method")]
    fn ask(
        &self,
        py: Python<'_>,
        user: &str,
        name: &str,
        sql: &str,
        format: &str,
        only_new: bool,
        code: Option<Vec<u8>>,
    ) -> PyResult<String> {
        let asking = Asking { sql, format, only_new };
        let ask = asked(py, || match &code {
            Some(code) => self.0.ask_code(user, name, &asking, code),
            None => self.0.ask(user, name, &asking),
        })?;
        serde_json::to_string(&ask).map_err(|e| to_python(unprintable(&e)))
    }

    fn ask_many(
        &self,
        py: Python<'_>,
        user: &str,
        asks: Vec<(String, String)>,
        format: &str,
        only_new: bool,
    ) -> PyResult<String> {
        let askings = asks.iter().map(|(name, sql)| (name.as_str(), Asking { sql, format, only_new }));
        let askings: Vec<(&str, Asking<'_>)> = askings.collect();
        let asks = asked(py, || self.0.ask_many(user, &askings))?;
        serde_json::to_string(&asks).map_err(|e| to_python(unprintable(&e)))
    }

    fn ask_document(
        &self,
        py: Python<'_>,
        user: &str,
        document: &str,
        is_toml: bool,
        format: &str,
        only_new: bool,
    ) -> PyResult<String> {
        let read = || if is_toml { Config::from_toml(document) } else { Config::from_xml(document) };
        let asks = asked(py, || self.0.ask_all(user, &read()?, format, only_new))?;
        serde_json::to_string(&asks).map_err(|e| to_python(unprintable(&e)))
    }

    fn document(&self, py: Python<'_>, producer: &str, is_toml: bool) -> PyResult<String> {
        let made = || {
            let document = self.0.document(producer)?;
            if is_toml { document.to_toml() } else { document.to_xml() }
        };
        asked(py, made)
    }

    fn withdraw(&self, py: Python<'_>, user: &str, name: &str) -> PyResult<()> {
        asked(py, || self.0.withdraw(user, name))
    }

    fn asks(&self, py: Python<'_>, user: &str) -> PyResult<String> {
        let asks = asked(py, || self.0.asks(user))?;
        serde_json::to_string(&asks).map_err(|e| to_python(unprintable(&e)))
    }

    fn producers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        asked(py, || self.0.producers())
    }

    fn schema(&self, py: Python<'_>, producer: &str) -> PyResult<Option<String>> {
        asked(py, || self.0.schema(producer))
    }

    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let status = asked(py, || self.0.status())?;
        serde_json::to_string(&status).map_err(|e| to_python(unprintable(&e)))
    }

    fn plan<'py>(&self, py: Python<'py>, producer: &str, options: Options) -> PyResult<Bound<'py, PyList>> {
        let (options, cancel) = pass_options(options)?;
        let planned = interruptible(py, &cancel, || Producer::open(&self.0, producer)?.plan(&options))?;
        let steps = planned.iter().map(|step| step_dict(py, step)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, steps)
    }

    #[pyo3(signature = (producer, options, progress=None))]
    fn produce<'py>(
        &self,
        py: Python<'py>,
        producer: &str,
        options: Options,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (mut options, cancel) = pass_options(options)?;
        let teller = looked_on(progress, &cancel, &mut options.progress);
        let done = interruptible(py, &cancel, || Producer::open(&self.0, producer)?.pass(&options));
        let done = teller.outcome(done)?;
        let out = PyDict::new(py);
        out.set_item("steps", done.steps)?;
        out.set_item("answers", done.entries)?;
        out.set_item("failed", done.failed)?;
        out.set_item("objects", done.objects)?;
        out.set_item("bytes", done.bytes)?;
        out.set_item("deleted", done.deleted)?;
        out.set_item("waiting", done.waiting)?;
        out.set_item("deferred", done.deferred)?;
        let troubles = done.troubles.into_iter();
        let told: Vec<_> = troubles.map(|t| (t.step, to_python(t.error).into_value(py))).collect();
        out.set_item("troubles", told)?;
        Ok(out)
    }

    #[pyo3(signature = (user, ask, folder, convert=None, progress=None))]
    fn follow<'py>(
        &self,
        py: Python<'py>,
        user: &str,
        ask: &str,
        folder: PathBuf,
        convert: Option<(String, Py<PyAny>)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let cancel = Arc::new(AtomicBool::new(false));
        let convert = convert.map(|(suffix, call)| Arc::new(Converter { suffix, call }) as Arc<dyn Convert>);
        let cancelled = Arc::clone(&cancel);
        let mut options = FollowOptions { cancel: cancelled, convert, ..FollowOptions::default() };
        let teller = looked_on(progress, &cancel, &mut options.progress);
        let done = interruptible(py, &cancel, || Follower::new(&self.0, user, ask, &folder)?.pass(&options));
        followed_dict(py, teller.outcome(done)?)
    }

    fn follow_many<'py>(
        &self,
        py: Python<'py>,
        user: &str,
        folders: Vec<(String, PathBuf)>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let cancel = Arc::new(AtomicBool::new(false));
        let options = FollowOptions { cancel: Arc::clone(&cancel), ..FollowOptions::default() };
        let wanted: Vec<(&str, &PathBuf)> =
            folders.iter().map(|(ask, folder)| (ask.as_str(), folder)).collect();
        let done = interruptible(py, &cancel, || Followers::new(&self.0, user, &wanted)?.pass(&options))?;
        done.into_iter().map(|one| followed_dict(py, one)).collect()
    }
}

/// Has a function of Python told how far something is; no function looks on at nothing.
pub(crate) fn looked_on(
    progress: Option<Py<PyAny>>,
    cancel: &Arc<AtomicBool>,
    on: &mut OnProgress,
) -> Teller {
    let is_wanted = progress.is_some();
    let (teller, told) = tell(progress, cancel);
    if is_wanted {
        *on = OnProgress::new(told);
    }
    teller
}

/// Has Python make something else of a file that came.
struct Converter {
    suffix: String,
    /// Called with the paths of what came, and of what is made.
    call: Py<PyAny>,
}

impl Convert for Converter {
    fn suffix(&self) -> &str {
        &self.suffix
    }

    fn convert(&self, from: &Path, to: &Path) -> sieva::Result<()> {
        Python::attach(|py| self.call.call1(py, (from, to)).map(drop).map_err(|e| native_error(py, &e)))
    }
}

fn followed_dict(py: Python<'_>, done: Followed) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("files", done.files)?;
    out.set_item("bytes", done.bytes)?;
    let failures = done.failures.into_iter().filter_map(|entry| {
        let failure = entry.failure?;
        Some((entry.step.name, failure.code, failure.message))
    });
    out.set_item("failures", failures.collect::<Vec<_>>())?;
    let troubles = done.troubles.into_iter();
    out.set_item("troubles", troubles.map(|e| to_python(e).into_value(py)).collect::<Vec<_>>())?;
    Ok(out)
}

/// Measures a place of a store: of each way and point the bytes of objects, threads, bytes in a second.
#[pyfunction]
#[pyo3(signature = (place, sizes=None, threads=None))]
pub fn calibrate_store<'py>(
    py: Python<'py>,
    place: &str,
    sizes: Option<Vec<u64>>,
    threads: Option<Vec<u32>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut options = CalibrateOptions::default();
    options.sizes = sizes.unwrap_or(options.sizes);
    options.threads = threads.unwrap_or(options.threads);
    let cancel = Arc::clone(&options.cancel);
    let found = interruptible(py, &cancel, || sieva_share::calibrate(place, &options))?;
    let points = |rates: &[Rate]| rates.iter().map(|r| (r.size, r.threads, r.rate)).collect::<Vec<_>>();
    let out = PyDict::new(py);
    out.set_item("place", &found.place)?;
    out.set_item("put", points(&found.put))?;
    out.set_item("get", points(&found.get))?;
    Ok(out)
}

/// Asks the store without the GIL, so that Ctrl-C is heard.
pub(crate) fn asked<T: Send>(py: Python<'_>, f: impl FnOnce() -> sieva::Result<T> + Send) -> PyResult<T> {
    interruptible(py, &Arc::new(AtomicBool::new(false)), f)
}

pub(crate) fn unprintable(e: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("as JSON: {e}"))
}

fn pass_options(given: Options) -> PyResult<(ProducerOptions, Arc<AtomicBool>)> {
    let cancel = Arc::new(AtomicBool::new(false));
    let options = ProducerOptions {
        settle: duration("settle", given.settle)?,
        memory: given.memory,
        ask_memory: given.ask_memory,
        ask_time: given.ask_time.map(|seconds| duration("ask_time", seconds)).transpose()?,
        result_size: given.result_size,
        packing: Packing::named(&given.objects).map_err(to_python)?,
        prices: given.prices.map(|(s, i, o)| Prices::new(s, i, o)).transpose().map_err(to_python)?,
        object_size: given.object_size,
        threads: given.threads,
        bp_worker: given.bp_worker,
        spool: given.spool,
        cancel: Arc::clone(&cancel),
        ..ProducerOptions::default()
    };
    Ok((options, cancel))
}

fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("{name}={seconds}: expected seconds, 0 or more");
        to_python(Error::new(ErrorKind::InvalidValue, message))
    })
}

fn step_dict<'py>(py: Python<'py>, step: &PlannedStep) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("step", &step.step.name)?;
    out.set_item("size", step.step.size)?;
    let units = step.units.iter().map(|unit| {
        let out = PyDict::new(py);
        out.set_item("sql", &unit.sql)?;
        out.set_item("stage", unit.stage)?;
        out.set_item("given", &unit.given)?;
        out.set_item("price", price_dict(py, &unit.price)?)?;
        Ok(out)
    });
    out.set_item("results", units.collect::<PyResult<Vec<_>>>()?)?;
    let refused = step.refused.iter();
    let refused: Vec<_> =
        refused.map(|(user, ask, e)| (user, ask, to_python(e.clone()).into_value(py))).collect();
    out.set_item("refused", refused)?;
    Ok(out)
}
