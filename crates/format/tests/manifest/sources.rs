//! Sources made of manifests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sieva_format::layout::Placement;
use sieva_format::manifest::{Layouts, Manifest, ManifestSource};
use sieva_format::{ArraySource, LibraryReader};
use sieva_types::{Bx, ErrorKind, Result};

use crate::common::{Made, object};

#[test]
fn another_object_is_stale() {
    let source = Made::varied();
    let manifest = Manifest::take(&source, Layouts::All).unwrap();
    let e = ManifestSource::new(manifest.clone(), object(3999)).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::StaleSource);
    assert!(e.message().contains("3999 bytes, it had 4000"), "{e}");
    assert!(ManifestSource::new(manifest, source.store).is_ok());
}

#[test]
fn what_is_not_known_is_asked_of_the_source_once() {
    let source = Made::varied();
    let manifest = Manifest::take(&source, Layouts::Some(&[0])).unwrap();
    let store = Arc::clone(&source.store);
    let alone = ManifestSource::new(manifest.clone(), Arc::clone(&store)).unwrap();
    assert!(alone.layout(0).is_ok());
    let e = alone.layout(1).unwrap_err();
    assert_eq!((e.kind(), e.hint_text()), (ErrorKind::Unsupported, Some("open the file itself")));
    let opened = Arc::new(AtomicU32::new(0));
    let (count, source): (_, Arc<dyn ArraySource>) = (Arc::clone(&opened), Arc::new(source));
    let open = move || -> Result<Arc<dyn ArraySource>> {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(&source))
    };
    let backed = ManifestSource::new(manifest, store).unwrap().with_fallback(Box::new(open));
    assert!(backed.layout(0).is_ok());
    assert_eq!(opened.load(Ordering::Relaxed), 0);
    assert!(matches!(backed.layout(1).unwrap().placement, Placement::Chunks(_)));
    let mut out = [0; 4];
    backed.read_library(4, &Bx::whole(&[2]), &mut out).unwrap();
    assert_eq!(out, [5; 4]);
    assert_eq!(backed.read_library_strings(4, &Bx::whole(&[2])).unwrap(), ["text", "text"]);
    assert_eq!(opened.load(Ordering::Relaxed), 1);
}

#[test]
fn a_source_that_says_otherwise_is_stale() {
    let manifest = Manifest::take(&Made::varied(), Layouts::None).unwrap();
    let open = || -> Result<Arc<dyn ArraySource>> {
        let mut other = Made::varied();
        other.schema.arrays[0].path = "renamed".into();
        Ok(Arc::new(other))
    };
    let source = ManifestSource::new(manifest, object(4000)).unwrap().with_fallback(Box::new(open));
    assert_eq!(source.layout(0).unwrap_err().kind(), ErrorKind::StaleSource);
    assert!(source.layout(1).is_ok());
}
