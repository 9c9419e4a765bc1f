//! Options of Python as those of the engine: the one place that reads them, by the engine's table.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyMapping, PyString};
use sieva::guard::{AllowList, Gate};
use sieva::options::{Call, Form, OPTIONS, OptionSpec, Stage, ValueKind, parse_size};
use sieva::{Access, FetchWay, Functions, Learn, OpenOptions, QueryOptions, SharedManifest, Striping};

use crate::catalog::Catalog;
use crate::errors::to_python;
use crate::remote::remote_options;

type Given<'a, 'py> = Option<&'a Bound<'py, PyDict>>;

/// The options that were given, with their rows of the table; None is the default of each.
fn checked<'py>(
    given: Given<'_, 'py>,
    call: Call,
) -> PyResult<Vec<(&'static OptionSpec, Bound<'py, PyAny>)>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let mut out = Vec::with_capacity(given.len());
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        let option = call.option(&name).map_err(unknown)?;
        if !value.is_none() {
            out.push((option, value));
        }
    }
    Ok(out)
}

/// An argument that there is not is a `TypeError`, as of any function.
fn unknown(e: sieva::Error) -> PyErr {
    PyTypeError::new_err(match e.hint_text() {
        Some(hint) => format!("{}: {hint}", e.message()),
        None => e.message().to_string(),
    })
}

/// A value as what an option is, or what is expected of it.
fn value<'py, T>(option: &OptionSpec, given: &Bound<'py, PyAny>, expected: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    given.extract().map_err(|_| {
        let kind = given.get_type().name().map_or_else(|_| String::new(), |n| format!(" ({n})"));
        let shown = given.repr().map_or_else(|_| String::from("?"), |r| r.to_string());
        PyTypeError::new_err(format!("{}= is {expected}, got {shown}{kind}", option.name))
    })
}

fn flag(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    value(option, given, "True or False")
}

/// How a query is run.
pub fn query_options(given: Given<'_, '_>, call: Call) -> PyResult<QueryOptions> {
    let mut out = QueryOptions::default();
    for (option, given) in checked(given, call)? {
        let word = || value::<String>(option, &given, "a word");
        match option.name {
            "access" => out.access = Access::parse(&word()?).map_err(to_python)?,
            "fetch" => out.fetch = FetchWay::parse(&word()?).map_err(to_python)?,
            "memory" | "spill" => {
                let zero = option.kind == ValueKind::Size { zero: true };
                let bytes = Some(size(&given, zero)?);
                if zero { out.spill = bytes } else { out.memory = bytes }
            }
            "threads" => out.threads = Some(count(option, &given)?),
            "cross" => out.cross = flag(option, &given)?,
            "functions" => out.functions = functions(option, &given)?,
            other => return Err(PyTypeError::new_err(format!("{other}= is not read"))),
        }
    }
    Ok(out)
}

/// Functions by name: text, the bytes of a module, or the path of a file with either. As text, which goes to other processes, a
/// module is "wasm:" and the hexadecimal digits of its bytes.
fn functions(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<Functions> {
    let expected = "a mapping of names to code: text, bytes or a path";
    let items = value::<Bound<'_, PyMapping>>(option, given, expected)?.items()?;
    let mut all = Vec::with_capacity(items.len());
    for item in items.iter() {
        let (name, code): (String, Bound<'_, PyAny>) = item.extract()?;
        let code = if let Ok(text) = code.cast::<PyString>() {
            bytes_of_text(text.to_str()?)?
        } else if let Ok(bytes) = code.extract::<PyBackedBytes>() {
            bytes.to_vec()
        } else {
            let path: PathBuf = value(option, &code, expected)?;
            std::fs::read(&path).map_err(|e| {
                let what = format!("cannot read the function '{name}' from {}", path.display());
                to_python(sieva::Error::io(what, &e))
            })?
        };
        all.push((name, code));
    }
    Functions::new(all).map_err(to_python)
}

/// Code in text: a module by its digits.
fn bytes_of_text(text: &str) -> PyResult<Vec<u8>> {
    let Some(digits) = text.strip_prefix("wasm:") else { return Ok(text.as_bytes().to_vec()) };
    let digit = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(digit).collect();
    bytes.ok_or_else(|| PyValueError::new_err("the module of a function is no text of hexadecimal digits"))
}

/// How a source is opened.
pub fn open_options(given: Given<'_, '_>, call: Call) -> PyResult<OpenOptions> {
    let mut out = OpenOptions::default();
    if call == Call::OpenCollection {
        // Scans of small arrays leave nothing.
        out.learn = Learn { share: 0.0, from: 0 };
    }
    for (option, given) in checked(given, call)? {
        match option.name {
            "dims" => out.dims = dims(option, &given)?,
            "external" => out.external_roots = value(option, &given, "a list of directories")?,
            "valid_range" => out.valid_range = flag(option, &given)?,
            "store" => out.store = Some(value::<PathBuf>(option, &given, "a directory")?),
            "learn" => out.learn = learn(option, &given)?,
            "join" => out.join = Some(value(option, &given, "the name of a dimension")?),
            "isolated" => out.isolated = value(option, &given, "the command of a worker")?,
            "storage_options" => out.remote = remote_options(&given)?,
            "catalog" => {
                let catalog: PyRef<'_, Catalog> = given.extract()?;
                out.catalog = Some(Arc::clone(&catalog.0));
            }
            "manifest" => out.manifest = Some(manifest(option, &given)?),
            "striping" => out.striping = Some(striping(option, &given)?),
            "allow" => out.gate = gate(value(option, &given, "a list of places")?)?,
            "memory" => out.memory = Some(size(&given, false)?),
            other => return Err(PyTypeError::new_err(format!("{other}= is not read"))),
        }
    }
    Ok(out)
}

fn manifest(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<Arc<SharedManifest>> {
    let bytes: PyBackedBytes = value(option, given, "the bytes that Source.manifest() gave")?;
    SharedManifest::from_bytes(&bytes).map(Arc::new).map_err(to_python)
}

fn striping(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<Striping> {
    Striping::parse(&value::<String>(option, given, "text such as 'stripe_size=1MiB,stripe_count=4'")?)
        .map_err(to_python)
}

fn dims(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Vec<String>)>> {
    let expected = "a mapping of arrays to lists of names";
    let items = value::<Bound<'_, PyMapping>>(option, given, expected)?.items()?;
    let mut out = Vec::with_capacity(items.len());
    for item in items.iter() {
        let (array, names): (String, Bound<'_, PyAny>) = item.extract()?;
        out.push((array, names.try_iter()?.map(|n| n?.extract()).collect::<PyResult<_>>()?));
    }
    out.sort();
    Ok(out)
}

/// True or False, or the share of a scan's time and the least size of an array.
fn learn(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<Learn> {
    if let Ok((share, from)) = given.extract::<(f64, u64)>() {
        return Ok(Learn { share, from });
    }
    Ok(if flag(option, given)? { Learn::default() } else { Learn { share: 0.0, from: 0 } })
}

fn count(option: &OptionSpec, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    value(option, given, "a whole number, not negative")
}

/// The gate that lets what lies below these places.
pub fn gate(places: Vec<PathBuf>) -> PyResult<Gate> {
    let places = places.into_iter().map(|p| p.to_string_lossy().into_owned());
    let list = AllowList::new(places).map_err(to_python)?;
    Ok(Gate::of(Arc::new(
        list.with_hint("name its directory or address in allow= (--allow) if it may be opened"),
    )))
}

/// Bytes of a size: a number or text; 0 where `zero` says that there is such a thing.
#[pyfunction(name = "size_bytes")]
#[pyo3(signature = (size, zero=false))]
pub fn size(size: &Bound<'_, PyAny>, zero: bool) -> PyResult<u64> {
    let not_positive =
        |shown: &str| PyValueError::new_err(format!("a size of {shown} bytes: expected a positive one"));
    let bytes = if let Ok(text) = size.cast::<PyString>() {
        parse_size(text.to_str()?).map_err(|e| PyValueError::new_err(e.message().to_string()))?
    } else if size.is_instance_of::<PyInt>() && !size.is_instance_of::<PyBool>() {
        size.extract::<u64>().map_err(|_| not_positive(&size.to_string()))?
    } else {
        let message = format!("a size is a number of bytes or text such as '512MiB', got {}", size.repr()?);
        return Err(PyTypeError::new_err(message));
    };
    if bytes == 0 && !zero { Err(not_positive("0")) } else { Ok(bytes) }
}

/// Refuses options that a call does not take.
#[pyfunction]
pub fn check_options(call: &str, names: Vec<String>) -> PyResult<()> {
    let call = Call::parse(call).map_err(to_python)?;
    names.iter().try_for_each(|name| call.option(name).map(|_| ()).map_err(unknown))
}

/// The table of options, a dict for each.
#[pyfunction]
pub fn options(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for o in OPTIONS {
        let row = PyDict::new(py);
        row.set_item("name", o.name)?;
        let stage = match o.stage {
            Stage::Opening => "opening",
            Stage::Running => "running",
            Stage::Building => "building",
        };
        row.set_item("stage", stage)?;
        row.set_item("kind", o.kind.name())?;
        let words = match o.kind {
            ValueKind::Word(words) | ValueKind::Words(words) => words,
            _ => &[],
        };
        row.set_item("words", words)?;
        row.set_item("zero", o.kind == ValueKind::Size { zero: true })?;
        row.set_item("default", o.default)?;
        row.set_item("means", o.means)?;
        for (language, form) in [("python", o.python), ("command_line", o.command_line), ("c", o.c)] {
            row.set_item(language, form.names())?;
            if let Form::None(why) = form {
                row.set_item(format!("no_{language}"), why)?;
            }
        }
        let calls = Call::ALL.into_iter().filter(|&c| o.is_of(c)).map(Call::name).collect::<Vec<_>>();
        row.set_item("calls", calls)?;
        let not_of = PyDict::new(py);
        for (call, why) in o.not_of {
            not_of.set_item(call.name(), why)?;
        }
        row.set_item("not_of", not_of)?;
        rows.append(row)?;
    }
    Ok(rows)
}
