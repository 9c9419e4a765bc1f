//! The list of stores: which addresses are whose.

use std::fmt;

use sieva_types::{Error, ErrorKind, Result};

use crate::location::Location;
use crate::{file, remote};

/// All stores, in the order in which messages list them.
static STORES: [&Store; 4] = [&file::STORE, &remote::web::STORE, &remote::s3::STORE, &remote::swift::STORE];

/// A place where bytes are kept, known by the schemes of its addresses.
///
/// A new one is a file with such a constant and a line of the list. If a network lies between, it has a `Service`, which
/// knows how its servers are addressed; the cache, retries and requests at once are the same for all of them.
pub struct Store {
    /// The schemes of its addresses, in lower case, without `://`.
    pub schemes: &'static [&'static str],
    /// Its addresses, as messages show them.
    pub form: &'static str,
    /// Variables of the environment that say where it is and who asks; none: the address says it.
    pub variables: &'static [&'static str],
    /// The place that an address leads to: the whole of it, and what follows `://`.
    pub(crate) locate: fn(&str, &str) -> Result<Location>,
}

impl Store {
    /// All stores.
    ///
    /// ```
    /// let schemes: Vec<&str> = sieva_store::Store::all().flat_map(|store| store.schemes).copied().collect();
    /// assert!(schemes.contains(&"s3"));
    /// ```
    pub fn all() -> impl Iterator<Item = &'static Self> {
        STORES.into_iter()
    }

    /// The store of addresses with this scheme, in letters of either case.
    ///
    /// # Errors
    /// `unsupported`, with the addresses that there are.
    pub fn of_scheme(scheme: &str) -> Result<&'static Self> {
        let known = Self::all().find(|store| store.schemes.iter().any(|s| s.eq_ignore_ascii_case(scheme)));
        known.ok_or_else(|| {
            let forms: Vec<&str> = Self::all().map(|store| store.form).collect();
            Error::new(ErrorKind::Unsupported, format!("no storage of scheme '{}://'", scheme.to_lowercase()))
                .hint(format!("use a local path, {}", forms.join(", ")))
        })
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("schemes", &self.schemes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_stores_share_a_scheme_and_each_takes_its_own() {
        let schemes: Vec<&str> = Store::all().flat_map(|store| store.schemes).copied().collect();
        assert_eq!(schemes.iter().collect::<HashSet<_>>().len(), schemes.len());
        for store in Store::all() {
            for scheme in store.schemes {
                assert!(store.form.contains(&format!("{scheme}://")), "{}", store.form);
                let found = Store::of_scheme(&scheme.to_uppercase()).unwrap();
                assert_eq!(found.schemes, store.schemes);
            }
        }
    }

    #[test]
    fn an_unknown_scheme_is_told_with_those_that_there_are() {
        let e = Store::of_scheme("Gopher").unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::Unsupported, "no storage of scheme 'gopher://'"));
        let forms = "use a local path, file:///directory/file, http:// or https://host/object, s3://bucket/key, \
                     swift://container/object";
        assert_eq!(e.hint_text(), Some(forms));
    }
}
