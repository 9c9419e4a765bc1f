//! A guard for a process that has one file to open.

use std::os::unix::fs::MetadataExt;

use sieva_types::Result;

use super::{Guard, Place, Purpose, refusal};

/// Allows one file, by what it is and not by its name: device and number. Nothing else, wherever it leads to.
#[derive(Clone, Copy, Debug)]
pub struct OneFile {
    device: u64,
    number: u64,
}

impl OneFile {
    /// The file that has this identity ([`FileStore::id`](crate::FileStore::id)).
    pub fn new((device, number): (u64, u64)) -> Self {
        Self { device, number }
    }
}

impl Guard for OneFile {
    fn check(&self, place: &Place<'_>, purpose: Purpose) -> Result<()> {
        // The path is that of what is open by now: to be taken for another, that one would have to lie there.
        let found = match place {
            Place::File { real, .. } => std::fs::symlink_metadata(real).ok(),
            Place::Url(_) => None,
        };
        match found {
            Some(meta) if (meta.dev(), meta.ino()) == (self.device, self.number) => Ok(()),
            _ => Err(refusal(place, purpose)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::FileStore;
    use crate::guard::Gate;

    #[test]
    fn a_file_in_the_place_of_another_is_not_it() {
        let base = std::env::temp_dir().join(format!("sieva-one-file-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        let [one, other, link] = ["one", "other", "link"].map(|name| base.join(name));
        std::fs::write(&one, b"a").unwrap();
        std::fs::write(&other, b"b").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let identity = FileStore::open(&one).unwrap().id();
        let gate = Gate::of(Arc::new(OneFile::new(identity)));
        let open = |path: &Path| FileStore::open_within(path, &gate, Purpose::Source);
        assert!(open(&one).is_ok() && open(&link).is_ok());
        for path in [&other, &base.join("none"), &base] {
            let shown = path.display();
            let said = open(path).unwrap_err().to_string();
            assert_eq!(said, format!("'{shown}' is outside of what may be opened"));
        }
        std::fs::rename(&other, &one).unwrap();
        assert!(open(&one).is_err() && open(&link).is_err());
        assert!(gate.check_url("https://h/a", Purpose::Source).is_err());
        std::fs::remove_dir_all(base).unwrap();
    }
}
