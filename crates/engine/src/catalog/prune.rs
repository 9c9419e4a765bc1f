//! Sources whose files are gone.

use std::path::Path;

use sieva_catalog::Catalog;
use sieva_types::{Error, ErrorKind, Result};

/// Sources that are asked of the catalog at a time.
const PAGE: usize = 1000;

/// The known sources at or under a local directory (or of a file) that are not there any more, in order.
///
/// # Errors
/// `file-not-found` where the directory itself is not there: a disk that is not mounted has lost nothing. Those of
/// [`Catalog::list`].
pub fn vanished(catalog: &Catalog, directory: &str) -> Result<Vec<String>> {
    if sieva_store::is_url(directory) {
        let message = format!("'{directory}' is a URL: only local files are looked for");
        return Err(Error::new(ErrorKind::Unsupported, message).hint("name a local directory"));
    }
    let prefix = super::location(directory)?;
    let folder = Path::new(&prefix);
    if !folder.is_dir() {
        let message = format!("'{directory}' is not there: what vanished under it cannot be told");
        return Err(Error::new(ErrorKind::FileNotFound, message)
            .hint("mount it, or forget what is known: sieva catalog remove PREFIX"));
    }
    let prefix = format!("{}/", prefix.trim_end_matches('/'));
    let (mut gone, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = catalog.list(&prefix, PAGE, after.as_deref())?;
        for source in &page {
            let found = std::fs::symlink_metadata(&source.location);
            if found.is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
                gone.push(source.location.clone());
            }
        }
        match page.into_iter().next_back() {
            Some(last) => after = Some(last.location),
            None => return Ok(gone),
        }
    }
}
