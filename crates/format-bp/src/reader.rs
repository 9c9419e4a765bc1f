//! Boxes of the arrays of a BP file.

use std::collections::HashMap;

use sieva_format::foreign::ForeignReader;
use sieva_types::{Bx, DType, Error, ErrorKind, Result, Texts};

use crate::file::File;
use crate::variable::Variable;

/// What fills boxes of an open file.
pub struct BpReader {
    pub file: File,
    /// By path.
    pub variables: HashMap<String, Variable>,
}

impl BpReader {
    fn of(&self, path: &str) -> Result<&Variable> {
        let none = || Error::new(ErrorKind::Internal, format!("no variable '{path}'"));
        self.variables.get(path).ok_or_else(none)
    }

    /// The steps of a box, and its place in each.
    fn places(variable: &Variable, bx: &Bx) -> (usize, usize, Vec<usize>, Vec<usize>) {
        let lead = usize::from(variable.has_steps());
        let (first, count) = if lead == 1 { (bx.start[0] as usize, bx.shape[0] as usize) } else { (0, 1) };
        let narrow = |places: &[u64]| places[lead..].iter().map(|&n| n as usize).collect();
        (first, count, narrow(&bx.start), narrow(&bx.shape))
    }

    fn fill(&self, path: &str, bx: &Bx, out: &mut [u8]) -> Result<()> {
        let variable = self.of(path)?;
        // What no block covers is left as it is: zero, as for all who read with this library.
        out.fill(0);
        if out.is_empty() {
            return Ok(());
        }
        let element = variable.dtype.size();
        let (first, count, start, shape) = Self::places(variable, bx);
        let api = self.file.lock()?;
        let handle = self.file.variable(&api, &variable.name)?;
        let bytes = out.len() / count;
        // Of blocks that overlap, which one is read depends on how many steps are asked for: one it is.
        for (step, part) in out.chunks_exact_mut(bytes).enumerate() {
            self.file.select_steps(&api, handle, first + step, 1)?;
            if !shape.is_empty() {
                self.file.select_box(&api, handle, &start, &shape)?;
            }
            self.file.get(&api, handle, part, element)?;
        }
        Ok(())
    }
}

impl ForeignReader for BpReader {
    fn read(&self, path: &str, bx: &Bx, out: &mut [u8]) -> Result<()> {
        self.fill(path, bx, out).map_err(|e| e.at(format!("array '{path}'")))
    }

    fn read_texts(&self, path: &str, bx: &Bx) -> Result<Texts> {
        let variable = self.of(path)?;
        if variable.dtype != DType::Str {
            return Err(Error::new(ErrorKind::Internal, format!("'{path}' has no texts")));
        }
        let (first, count, ..) = Self::places(variable, bx);
        let api = self.file.lock()?;
        let handle = self.file.variable(&api, &variable.name)?;
        (first..first + count)
            .map(|step| {
                self.file.select_steps(&api, handle, step, 1)?;
                self.file.get_text(&api, handle)
            })
            .collect::<Result<Vec<String>>>()
            .map(|texts| texts.into_iter().collect())
            .map_err(|e| e.at(format!("array '{path}'")))
    }
}
