//! Requests of many processes as one plan: `sieva._native.RankPlan`.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sieva::Bx;
use sieva::ranks::{Asked, Plan, pieces_of};

use crate::errors::to_python;
use crate::source::Source;

/// The boxes of one array that this rank asks for, as rows that ranks tell one another.
#[pyfunction]
#[pyo3(signature = (source, path, boxes, *, array, width, most))]
pub fn rank_pieces<'py>(
    source: PyRef<'py, Source>,
    path: &str,
    boxes: Vec<(u64, Vec<u64>, Vec<u64>)>,
    array: u64,
    width: u64,
    most: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, opened) = (source.py(), &source.0);
    let rows = py.detach(|| {
        let index = opened.resolve(path)?;
        let mut rows = Vec::new();
        for (request, start, shape) in boxes {
            for part in opened.parts_of_box(index, &Bx { start, shape }, most)? {
                rows.extend([array, 0, width, request, part.server.into(), part.stripe, part.block]);
                rows.extend(part.bx.start);
                rows.extend(part.bx.shape);
            }
        }
        Ok(rows.into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())
    });
    Ok(PyBytes::new(py, &rows.map_err(to_python)?))
}

#[pyclass(module = "sieva._native", frozen)]
pub struct RankPlan(Plan);

#[pymethods]
impl RankPlan {
    #[new]
    fn new(py: Python<'_>, arrays: Vec<(Vec<u64>, bool)>, told: Vec<Vec<u8>>, most: u64) -> PyResult<Self> {
        let plan = py.detach(|| {
            let arrays: Vec<Asked> =
                arrays.into_iter().map(|(shape, is_chunked)| Asked { shape, is_chunked }).collect();
            let mut pieces = Vec::new();
            for (rank, bytes) in told.iter().enumerate() {
                let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
                pieces.extend(pieces_of(&arrays, rank, &words.collect::<Vec<u64>>())?);
            }
            Plan::of(&arrays, pieces, told.len(), most)
        });
        plan.map(Self).map_err(to_python)
    }

    #[getter]
    fn waves(&self) -> u64 {
        self.0.waves
    }

    #[getter]
    fn units(&self) -> usize {
        self.0.units.len()
    }

    /// Array, request, asker, reader, wave, unit and bytes of each piece, as bytes of 64-bit integers.
    fn pieces<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let plan = &self.0;
        let rows = plan.units.iter().enumerate().flat_map(|(number, unit)| {
            plan.pieces[unit.pieces.clone()].iter().flat_map(move |piece| {
                let who = [piece.array as u64, piece.request, piece.asker as u64, unit.reader as u64];
                who.into_iter().chain([unit.wave, number as u64, piece.bytes()])
            })
        });
        PyBytes::new(py, &rows.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>())
    }

    /// The start and shape of a piece.
    fn piece(&self, number: usize) -> PyResult<(Vec<u64>, Vec<u64>)> {
        let piece = self.0.pieces.get(number).ok_or_else(|| PyIndexError::new_err("no such piece"))?;
        Ok((piece.bx.start.clone(), piece.bx.shape.clone()))
    }

    /// The first position and the number of elements that the reader of a unit reads, where that is one run in C order.
    fn run(&self, unit: usize) -> Option<(u64, u64)> {
        self.0.run(unit)
    }

    /// The start and shape of each box that the reader of a unit reads.
    fn reads(&self, unit: usize) -> Vec<(Vec<u64>, Vec<u64>)> {
        self.0.reads(unit).into_iter().map(|bx| (bx.start, bx.shape)).collect()
    }
}
