//! Columns in memory that a sorted replica is built of.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use sieva_index::RegionGrid;
use sieva_index::sorted::{Column, SortOptions, Table, build};
use sieva_types::{Buffer, Bx, Result};

use crate::Data;

/// Columns of one length in regions of one length.
pub struct Rows<'a> {
    grid: RegionGrid,
    columns: Vec<&'a Data>,
}

impl<'a> Rows<'a> {
    /// A table of `columns`, at least one, the key first.
    pub fn new(columns: Vec<&'a Data>, region: u64) -> Self {
        let len = columns[0].len() as u64;
        Self { grid: RegionGrid::new(&[len], &[region]).expect("a grid"), columns }
    }

    /// Builds the replica in `dir`.
    pub fn build(&self, dir: &Path, threads: usize, memory: u64) -> Result<()> {
        let name = |i| format!("column {i}");
        let columns: Vec<Column> = (self.columns.iter().enumerate())
            .map(|(i, data)| Column { name: name(i), dtype: data.dtype() })
            .collect();
        let cancel = AtomicBool::new(false);
        let options = SortOptions { threads, memory, seal: 7, cancel: &cancel, progress: &|_, _| {} };
        build(dir, self.grid.shape(), &columns, self, &serde_json::Map::new(), &options)
    }
}

impl Table for Rows<'_> {
    fn regions(&self) -> usize {
        self.grid.len()
    }

    fn region(&self, region: usize) -> Bx {
        self.grid.bx(region)
    }

    fn read(&self, region: usize, column: usize, out: &mut Buffer) -> Result<()> {
        let (bx, data) = (self.grid.bx(region), self.columns[column]);
        let size = data.dtype().size();
        let bytes = &data.bytes()[bx.start[0] as usize * size..bx.end(0) as usize * size];
        out.resize(bytes.len());
        out.bytes_mut().copy_from_slice(bytes);
        Ok(())
    }
}
