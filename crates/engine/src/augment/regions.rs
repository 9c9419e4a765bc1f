//! Which regions an index of an array has: those that tiles have by themselves, or of a size that was asked for.
//!
//! A store tells the shape of an array's regions, not the size that was asked for. Whoever builds again without a size keeps
//! them; another size builds anew what there is of the array, and what was built of the other regions goes.

use sieva_format::layout::Placement;
use sieva_index::RegionGrid;
use sieva_index::store::{ArrayHeader, Home, Listing, Store};
use sieva_query::exec::{is_of_chunks, region_shape, sized_region_shape};
use sieva_types::{Error, ErrorKind, Result};

use super::BuildOptions;
use crate::open::Source;

/// How an array is cut into regions for an index of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// As the index that it has, else as tiles have them.
    Kept,
    /// Of about so many bytes.
    Size(u64),
    /// Of this shape.
    Shape(Vec<u64>),
}

impl Cut {
    /// What the options of a build ask for.
    ///
    /// # Errors
    /// `invalid-value` for regions of no bytes.
    pub fn of(options: &BuildOptions) -> Result<Self> {
        match options.region_size {
            None => Ok(Self::Kept),
            Some(0) => Err(Error::new(ErrorKind::InvalidValue, "regions of 0 bytes").hint(
                "give a size such as 4MiB (--region-size, region_size=), or none: regions are some 256 KiB then",
            )),
            Some(bytes) => Ok(Self::Size(bytes)),
        }
    }
}

impl Source {
    /// How an array is indexed that is cut like this; `plain` is how it is by itself, `old` how an index has it that there
    /// is, also of another state of the source.
    ///
    /// # Errors
    /// Those of the layout; `invalid-value` for a shape that does not cut the array.
    pub(super) fn header_cut(
        &self,
        array: usize,
        plain: ArrayHeader,
        cut: &Cut,
        old: Option<&ArrayHeader>,
    ) -> Result<ArrayHeader> {
        let layout = self.reader().layout(array)?;
        if matches!(layout.placement, Placement::Parts(_)) {
            // Of joined files each is indexed by itself.
            return Ok(plain);
        }
        let region = match cut {
            Cut::Size(bytes) => sized_region_shape(&layout, &plain.shape, plain.dtype.size(), *bytes),
            Cut::Shape(region) => {
                // As an array's own, of no more regions than any.
                let grid = RegionGrid::new(&plain.shape, region)?;
                if !is_of_chunks(&layout, &plain.shape, region) || !grid.is_bounded() {
                    let message =
                        format!("regions of shape {region:?} are not of whole chunks of '{}'", plain.path);
                    return Err(Error::new(ErrorKind::InvalidValue, message));
                }
                region.clone()
            }
            Cut::Kept => match old {
                // A size was asked for where they are not what they would have been by themselves.
                Some(old)
                    if old.region.len() == plain.shape.len()
                        && old.region != region_shape(&layout, &old.shape)
                        && is_of_chunks(&layout, &plain.shape, &old.region)
                        && RegionGrid::new(&plain.shape, &old.region).is_ok_and(|grid| grid.is_bounded()) =>
                {
                    old.region.clone()
                }
                _ => return Ok(plain),
            },
        };
        Ok(ArrayHeader { region, ..plain })
    }
}

/// Removes from a store what was built of regions that are no more, and what killed builders left. What cannot be removed is
/// left to the next time.
pub(super) fn tidy(home: &Home) {
    let store = Store::open(home.clone()).ok().flatten();
    let gone = store.as_ref().map(Store::superseded).unwrap_or_default();
    if let Some(store) = store.filter(|_| !gone.is_empty()) {
        let keep = |listing: &Listing| {
            let mut listing = listing.clone();
            listing.segments.retain(|s| !gone.iter().any(|name| name == s.name()));
            listing
        };
        // Which sweeps, too.
        let _ = Store::publish(home.clone(), store.fingerprint(), &keep, true);
    } else {
        // A builder that was killed once all was published left what it had not swept, and nothing is published now.
        Store::tidy(home);
    }
}
