//! The groups of a query of a collection: those of its objects, put together.

use super::*;

impl Inner {
    /// Puts the groups of all objects together and gives them to the template, once.
    pub(super) fn make_groups(&self, cancel: &Arc<AtomicBool>) -> Result<()> {
        let mut done = self.grouped.lock().unwrap_or_else(PoisonError::into_inner);
        if *done {
            return Ok(());
        }
        let groups = self.gather(cancel, &mut |_| Ok(()))?;
        self.template.set_groups(finish_groups(self.template.execution()?, groups)?);
        *done = true;
        Ok(())
    }

    /// The groups of all objects. `note` is told how many rows each object has, `None` of one that lacks an array.
    pub(super) fn gather(
        &self,
        cancel: &Arc<AtomicBool>,
        note: &mut dyn FnMut(Option<u64>) -> Result<()>,
    ) -> Result<Groups> {
        let mut groups = Groups::start(self.template.execution()?)?;
        let (options, limit, mut need) = (self.object_options(cancel), self.memory(), 0);
        self.each_found(cancel, &|at| self.groups_at(at, &options), &mut |part| {
            note(part.as_ref().map(|(rows, _)| *rows))?;
            let Some((_, part)) = part else { return Ok(()) };
            // An upper bound is enough until it is near the limit.
            need += part.memory_bytes();
            groups.merge(part)?;
            if need > limit {
                need = groups.memory_bytes();
            }
            if need <= limit {
                return Ok(());
            }
            Err(Error::new(
                ErrorKind::MemoryLimit,
                format!("the groups take {need} bytes, the limit is {limit}"),
            )
            .hint("group by fewer values, or raise the limit with --memory (memory= in Python)"))
        })?;
        Ok(groups)
    }

    /// Bytes that groups may take.
    pub(super) fn memory(&self) -> u64 {
        self.options.memory.unwrap_or(1 << 30)
    }
}
