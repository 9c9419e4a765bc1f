//! Takes out what is known of sources.

use sieva_types::{ErrorKind, Result};

use crate::backend::{Pool, Session};
use crate::known::{self, Stored, Which};
use crate::terms;

pub(crate) fn forget(pool: &Pool, which: &Which<'_>) -> Result<u64> {
    pool.write(|session| {
        let sources = known::which(session, which)?;
        for source in &sources {
            objects(session, source)?;
            for table in ["manifests", "tags", "members"] {
                session.run(&format!("DELETE FROM {table} WHERE source = $1"), &[source.id.into()])?;
            }
            for table in ["augmentations", "rules"] {
                session.run(
                    &format!("DELETE FROM {table} WHERE location = $1"),
                    &[source.location.as_str().into()],
                )?;
            }
            session.run("DELETE FROM sources WHERE id = $1", &[source.id.into()])?;
        }
        Ok(sources.len() as u64)
    })
}

/// Takes out the objects of a source; its tags stay.
pub(crate) fn objects(session: &mut dyn Session, source: &Stored) -> Result<()> {
    let span = [source.first.into(), source.last.into()];
    match terms::holders(session, source.first, source.last) {
        Ok(holders) => {
            let mut rows = terms::of(&holders, None);
            rows.sort_unstable();
            terms::remove(session, &rows)?;
        }
        // Damaged attributes do not say where their rows are, and must not keep the source from being replaced.
        Err(e) if e.kind() == ErrorKind::CorruptFile => {
            session.run("DELETE FROM terms WHERE first BETWEEN $1 AND $2", &span)?;
        }
        Err(e) => return Err(e),
    }
    session.run("DELETE FROM stats WHERE object BETWEEN $1 AND $2", &span)?;
    crate::statistics::remove_arrays(session, source.first, source.last)?;
    session.run("DELETE FROM objects WHERE id BETWEEN $1 AND $2", &span)?;
    Ok(())
}
