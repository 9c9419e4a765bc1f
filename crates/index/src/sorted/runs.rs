//! Where the runs of a partition lie, told to other processes.

use sieva_types::Result;
use sieva_types::wire::{Reader, Writer};

/// What names of spill files begin with.
pub(super) const SPILLS: &str = ".spill-";

/// What one process has partitioned: its batches, in the order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    pub(super) batches: Vec<RunsOf>,
    /// Rows whose key is not NaN.
    pub(super) numbers: u64,
}

/// The runs of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunsOf {
    /// The name of a file in the directory of the build.
    pub file: String,
    /// Where the batch begins in it.
    pub offset: u64,
    /// The first row of each bucket's run, and the number of rows at last.
    pub starts: Vec<u32>,
}

impl Runs {
    /// Rows whose key is not NaN.
    pub fn numbers(&self) -> u64 {
        self.numbers
    }

    /// Number of buckets; 1 where there are no rows.
    pub fn buckets(&self) -> usize {
        self.batches.first().map_or(1, |of| of.starts.len() - 1)
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.batches.iter().filter_map(|of| of.starts.last()).map(|&n| u64::from(n)).sum()
    }

    /// Writes them as bytes.
    pub fn encode(&self, w: &mut Writer) {
        w.uint(self.numbers);
        w.list(&self.batches, |w, of| {
            w.text(&of.file);
            w.uint(of.offset);
            // Numbers of rows are small where first rows are large.
            w.uint(of.starts.len() as u64);
            let mut before = 0;
            for &start in &of.starts {
                w.uint(u64::from(start - before));
                before = start;
            }
        });
    }

    /// Reads what [`Runs::encode`] wrote, for `buckets` buckets.
    ///
    /// # Errors
    /// Those of the subject: files that are none of a build, runs that are not in order.
    pub fn decode(r: &mut Reader<'_>, buckets: usize) -> Result<Self> {
        let numbers = r.uint()?;
        let batches = r.list(|r| {
            let (file, offset, n) = (r.text()?, r.uint()?, r.index()?);
            let token = file.strip_prefix(SPILLS);
            if !token.is_some_and(|t| t.len() == 16 && t.bytes().all(|c| c.is_ascii_hexdigit())) {
                return Err(r.damaged(format!("'{file}' is no spill file")));
            }
            if n != buckets + 1 {
                return Err(r.damaged(format!("runs of {} buckets, not {buckets}", n.saturating_sub(1))));
            }
            r.charge_values::<u32>(n)?;
            let (mut starts, mut sum) = (Vec::with_capacity(n), 0_u64);
            for i in 0..n {
                sum = sum.saturating_add(r.uint()?);
                match u32::try_from(sum) {
                    Ok(start) if i > 0 || start == 0 => starts.push(start),
                    _ => return Err(r.damaged(format!("a run that begins at row {sum}"))),
                }
            }
            Ok(RunsOf { file, offset, starts })
        })?;
        let runs = Self { batches, numbers };
        if numbers > runs.rows() {
            return Err(r.damaged(format!("{numbers} numbers among {} rows", runs.rows())));
        }
        Ok(runs)
    }
}
