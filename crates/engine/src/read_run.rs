//! Elements that follow one another in C order, whatever boxes they are of.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_format::buffer::Buffer;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_query::bind::stored_domain;
use sieva_query::exec::Column;
use sieva_types::{Bx, DType, Error, ErrorKind, Result};

use crate::open::Source;
use crate::read_many::check_room;

impl Source {
    /// `n` elements of an array, decoded, from the position `start` on, in C order, by one request of the storage: what a stripe has of
    /// it, which begins and ends within rows. `None` where the elements do not lie so: of chunks, texts, files joined, or
    /// records among which others lie.
    ///
    /// # Errors
    /// `invalid-value` where there are fewer elements, and reading errors; `stale-source`, `memory-limit`, `cancelled`.
    pub fn read_run(
        &self,
        array: usize,
        (start, n): (u64, u64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<Option<Column>> {
        self.check_file()?;
        let info = &self.schema().arrays[array];
        if info.dtype == DType::Str {
            return Ok(None);
        }
        let (memory, cache) = (self.memory(), Arc::new(ChunkCache::new(0)));
        let reader = BlockReader::new(Arc::clone(self.reader()), array, cache, memory)?;
        let Some(flat) = reader.flat().filter(BlockReader::is_dense) else { return Ok(None) };
        let len: u64 = info.shape.iter().product();
        if start.checked_add(n).is_none_or(|end| end > len) {
            let message = format!("{n} elements from {start} on of '{}', which has {len}", info.path);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        check_room(info, n, memory)?;
        flat.check_stored(&Bx::new(vec![start], vec![n]))?;
        let mut buffer = Buffer::default();
        let count = usize::try_from(n).unwrap_or(usize::MAX);
        flat.read_run(start, count, &mut buffer, &mut Workspace::cancelled_by(cancel))?;
        let stored = stored_domain(info, false, self.valid_range())?;
        Ok(Some(Column::decode(&buffer, count, &stored)))
    }
}
