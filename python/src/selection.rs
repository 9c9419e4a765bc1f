//! `sieva._native.Selection`.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sieva::local::{Aside, open_regular};

use crate::convert::{matrix, positions};
use crate::errors::to_python;
use crate::interrupt::interruptible;

#[pyclass(module = "sieva._native", frozen)]
pub struct Selection(pub Arc<sieva::Selection>);

#[pymethods]
impl Selection {
    #[getter]
    fn dims(&self) -> Vec<String> {
        self.0.dims().to_vec()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.0.shape())
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    fn __len__(&self) -> usize {
        self.0.len() as usize
    }

    fn __bool__(&self) -> bool {
        !self.0.is_empty()
    }

    fn coords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let coords = py.detach(|| self.0.coords()).map_err(to_python)?;
        matrix(py, coords, self.0.len() as usize, self.0.shape().len())
    }

    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = py.detach(|| self.0.mask()).map_err(to_python)?;
        let shape: Vec<usize> = self.0.shape().iter().map(|&n| n as usize).collect();
        // The bytes are 0 and 1: the same memory seen as bools.
        bytes.into_pyarray(py).reshape(shape)?.call_method1("view", ("bool",))
    }

    fn bounding_box(&self) -> Option<(Vec<u64>, Vec<u64>)> {
        self.0.bounding_box().map(|b| (b.start, b.shape))
    }

    fn __and__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        py.detach(|| self.0.intersection(&other.0)).map(Self::from).map_err(to_python)
    }

    fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        py.detach(|| self.0.union(&other.0)).map(Self::from).map_err(to_python)
    }

    fn __sub__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        py.detach(|| self.0.difference(&other.0)).map(Self::from).map_err(to_python)
    }

    fn __xor__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        py.detach(|| self.0.symmetric_difference(&other.0)).map(Self::from).map_err(to_python)
    }

    fn __invert__(&self, py: Python<'_>) -> Self {
        py.detach(|| self.0.complement()).into()
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let equal = *self.0 == *other.get().0;
        match op {
            CompareOp::Eq => Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!equal).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __repr__(&self) -> String {
        let of: Vec<String> =
            self.0.dims().iter().zip(self.0.shape()).map(|(d, n)| format!("{d}: {n}")).collect();
        format!("<sieva.Selection {} of ({})>", self.0.len(), of.join(", "))
    }

    /// How many of them stand before a position of the rows.
    fn rank(&self, position: u64) -> u64 {
        self.0.rank(position)
    }

    /// Those of rank `start` up to `stop`, in C order.
    fn part(&self, py: Python<'_>, start: u64, stop: u64) -> Self {
        py.detach(|| self.0.slice(start, stop.saturating_sub(start))).into()
    }

    /// What `save` writes.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::new();
        py.detach(|| self.0.write_to(&mut out)).map_err(to_python)?;
        Ok(PyBytes::new(py, &out))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let read = || {
            let mut rest = data;
            let found = sieva::Selection::read_from(&mut rest)?;
            if rest.is_empty() {
                return Ok(found);
            }
            let message = format!("{} bytes behind the end of a selection", rest.len());
            Err(sieva::Error::new(sieva::ErrorKind::CorruptFile, message))
        };
        py.detach(read).map(Self::from).map_err(to_python)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().__bytes__(slf.py())?,)))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        sieva::check_name(&path, "the name of a selection").map_err(to_python)?;
        py.detach(|| replaceable(&path)).map_err(to_python)?;
        let write = || {
            let mut aside = Aside::new(&path, 0o666)?;
            let mut file = BufWriter::new(aside.file()?);
            self.0.write_to(&mut file).map_err(std::io::Error::other)?;
            file.flush()?;
            drop(file);
            aside.publish(true)
        };
        py.detach(write).map_err(|e| {
            to_python(sieva::Error::io(format!("cannot save the selection as '{}'", path.display()), &e))
        })
    }

    #[staticmethod]
    fn from_positions(
        py: Python<'_>,
        #[pyo3(from_py_with = positions)] positions: PyReadonlyArrayDyn<'_, u64>,
        dims: Vec<String>,
        shape: Vec<u64>,
    ) -> PyResult<Self> {
        let positions = positions.as_array();
        let make = || match positions.ndim() {
            1 => sieva::Selection::from_positions(dims, shape, positions.iter().copied()),
            // Coordinates: a row for each position.
            2 if positions.shape()[1] == shape.len() => {
                let coords: Vec<u64> = positions.iter().copied().collect();
                sieva::Selection::from_coords(dims, shape, &coords)
            }
            _ => Err(sieva::Error::new(
                sieva::ErrorKind::DimensionMismatch,
                format!("positions of shape {:?} for rows of shape {shape:?}", positions.shape()),
            )
            .hint(format!("give linear positions (n), or coordinates (n, {})", shape.len()))),
        };
        py.detach(make).map(Self::from).map_err(to_python)
    }

    #[staticmethod]
    fn from_boxes(
        py: Python<'_>,
        boxes: Vec<(Vec<u64>, Vec<u64>)>,
        dims: Vec<String>,
        shape: Vec<u64>,
    ) -> PyResult<Self> {
        let boxes: Vec<sieva::Bx> =
            boxes.into_iter().map(|(start, shape)| sieva::Bx { start, shape }).collect();
        let cancel = Arc::new(AtomicBool::new(false));
        let within = (sieva::Session::default().query_memory(), &*cancel);
        let made = interruptible(py, &cancel, || sieva::Selection::from_boxes(dims, shape, &boxes, within));
        made.map(Self::from)
    }

    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let positions = py.detach(|| self.0.positions()).map_err(to_python)?;
        Ok(positions.into_pyarray(py).into_any())
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        sieva::check_name(&path, "the name of a selection").map_err(to_python)?;
        let read = || {
            let shown = path.display();
            let file =
                open_regular(&path).map_err(|e| sieva::Error::io(format!("cannot open '{shown}'"), &e))?;
            sieva::Selection::read_from(&mut BufReader::new(file)).map_err(|e| e.at(format!("'{shown}'")))
        };
        py.detach(read).map(Self::from).map_err(to_python)
    }
}

/// Raises where something else than a selection would be replaced: the data that were asked, for one.
fn replaceable(path: &Path) -> sieva::Result<()> {
    let refused = |what: &str| {
        let message = format!("cannot save the selection as '{}': {what}", path.display());
        Err(sieva::Error::new(sieva::ErrorKind::InvalidValue, message).hint("choose another name"))
    };
    match std::fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        // It is replaced, not followed: what it leads to stays.
        Ok(found) if found.is_symlink() => return Ok(()),
        Ok(found) if !found.is_file() => return refused("it is no regular file"),
        Ok(found) if found.len() == 0 => return Ok(()),
        Ok(_) => {}
    }
    // What cannot be read cannot be told from the data.
    let mut head = [0; 4];
    let read = open_regular(path).and_then(|mut file| file.read_exact(&mut head));
    match read {
        Ok(()) if head == *b"\x89SEL" => Ok(()),
        _ => refused("there is a file of something else than a selection"),
    }
}

impl From<sieva::Selection> for Selection {
    fn from(selection: sieva::Selection) -> Self {
        Self(Arc::new(selection))
    }
}
