//! Few arrays of a manifest, the others passed over: a file may hold hundreds of small objects, of which a query asks for
//! some.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use sieva_store::Striping;
use sieva_types::wire::{Reader, Writer};
use sieva_types::{Error, Result};

use super::{Kept, MAX_DECODED, Manifest, check, container, schema, values};
use crate::schema::{ArrayInfo, Dimension, GroupInfo, Schema};

/// What a manifest tells of some groups, as a manifest in which arrays have numbers of their own.
#[derive(Clone, Debug)]
pub struct Excerpt {
    pub(super) manifest: Manifest,
    /// The numbers of its arrays in the source.
    pub(super) numbers: Arc<[usize]>,
}

impl Excerpt {
    /// The arrays at and below `groups` (paths; the empty one is the root) of a manifest that [`Manifest::encode`] made,
    /// links among them included, with the arrays that those have as coordinates, in the order of the source; and of
    /// dimensions and groups those that they lie in. Takes at most [`MAX_DECODED`] bytes of memory.
    ///
    /// # Errors
    /// `corrupt-index` for anything else. What is passed over is not looked at.
    pub fn decode(bytes: &[u8], groups: &[&str]) -> Result<Self> {
        Self::decode_within(bytes, groups, MAX_DECODED)
    }

    /// As [`Excerpt::decode`], in at most about `limit` bytes of memory.
    ///
    /// # Errors
    /// As [`Excerpt::decode`].
    pub fn decode_within(bytes: &[u8], groups: &[&str], limit: usize) -> Result<Self> {
        let groups: HashSet<&str> = groups.iter().copied().collect();
        container::unpack(bytes, limit, |content, version| {
            if version == container::UNFRAMED {
                let framed = Manifest::decode_within(bytes, limit)?.encode();
                return Self::decode_within(&framed, &Vec::from_iter(groups.iter().copied()), limit);
            }
            let mut r = Reader::new(&super::SUBJECT, content, limit);
            let outline = Outline::read(&mut r, version == container::STRIPED)?;
            let taken = outline.take(&mut r, &|path| self_and_above(path).any(|p| groups.contains(p)))?;
            taken.finish(&mut r, &outline)
        })
    }

    /// What is known of the arrays.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What it tells of fewer groups.
    ///
    /// # Errors
    /// As [`Excerpt::decode`].
    pub fn part(&self, groups: &[&str]) -> Result<Self> {
        let Self { manifest, numbers: own } = Self::decode(&self.manifest.encode(), groups)?;
        let numbers = own.iter().map(|&n| self.numbers.get(n).copied().unwrap_or(usize::MAX)).collect();
        Ok(Self { manifest, numbers })
    }

    /// The excerpt as bytes, for other processes that ask for the same groups.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.indices(&self.numbers);
        w.blob(&self.manifest.encode());
        w.into_bytes()
    }

    /// The excerpt that [`Excerpt::to_bytes`] made.
    ///
    /// # Errors
    /// `corrupt-index` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(&super::SUBJECT, bytes, MAX_DECODED);
        let (numbers, manifest) = (r.indices()?, Manifest::decode(r.blob()?)?);
        let arrays = manifest.schema().arrays.len();
        if numbers.len() != arrays {
            return Err(r.damaged(format!("{} numbers of {arrays} arrays", numbers.len())));
        }
        r.finish()?;
        Ok(Self { manifest, numbers: numbers.into() })
    }
}

/// A path and those of the groups that it lies in, up to the root.
fn self_and_above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |p| above(p))
}

fn above(path: &str) -> Option<&str> {
    (!path.is_empty()).then(|| path.rsplit_once('/').map_or("", |(above, _)| above))
}

/// Where everything stands.
struct Outline<'a> {
    len: u64,
    version: String,
    format: String,
    /// Path; place of the attributes.
    groups: Vec<(&'a str, usize)>,
    dims: Vec<usize>,
    /// Path; places of what the array is, and of its layout.
    arrays: Vec<(&'a str, usize, usize)>,
    aliases: Vec<(&'a str, usize)>,
    left_out: Vec<(String, Error)>,
    warnings: Vec<String>,
    values: Vec<(usize, usize)>,
    striping: Option<Striping>,
}

/// What was taken, by number in the source.
#[derive(Default)]
struct Taken {
    arrays: BTreeMap<usize, (ArrayInfo, Kept)>,
    dims: BTreeMap<usize, Dimension>,
    groups: Vec<GroupInfo>,
}

impl<'a> Outline<'a> {
    fn read(r: &mut Reader<'a>, is_striped: bool) -> Result<Self> {
        let mut outline = Self {
            len: r.uint()?,
            version: r.text()?,
            format: r.text()?,
            groups: r.list(|r| Ok((r.text_here()?, r.skip()?)))?,
            dims: r.list(Reader::skip)?,
            arrays: r.list(|r| Ok((r.text_here()?, r.skip()?, r.skip()?)))?,
            aliases: r.list(|r| Ok((r.text_here()?, r.index()?)))?,
            left_out: schema::read_left_out(r)?,
            warnings: r.list(Reader::text)?,
            values: r.list(|r| Ok((r.index()?, r.skip()?)))?,
            striping: None,
        };
        if is_striped {
            outline.striping = Some(super::read_striping(r, outline.len)?);
        }
        match r.left() {
            0 => Ok(outline),
            more => Err(r.damaged(format!("{more} bytes too many"))),
        }
    }

    /// Takes what lies in the groups, and what that leads to.
    fn take(&self, r: &mut Reader<'a>, is_within: &dyn Fn(&str) -> bool) -> Result<Taken> {
        let own = (0..self.arrays.len()).filter(|&i| is_within(self.arrays[i].0));
        let linked = self.aliases.iter().filter(|(path, _)| is_within(path)).map(|&(_, array)| array);
        let mut next: Vec<usize> = own.chain(linked).collect();
        let mut taken = Taken::default();
        while let Some(array) = next.pop() {
            if taken.arrays.contains_key(&array) {
                continue;
            }
            let none = || r.damaged(format!("no array {array}"));
            let &(path, is, lies) = self.arrays.get(array).ok_or_else(none)?;
            r.charge(path.len())?;
            r.seek(is);
            let info = r.framed(|r| schema::read_array(r, path.to_owned()))?;
            r.seek(lies);
            let kept = r.framed(|r| Kept::read(r, &info))?;
            for &dim in &info.dims {
                if taken.dims.contains_key(&dim) {
                    continue;
                }
                let place = self.dims.get(dim).copied();
                r.seek(place.ok_or_else(|| r.damaged(format!("no dimension {dim}")))?);
                let found = r.framed(schema::read_dimension)?;
                next.extend(found.coordinate);
                taken.dims.insert(dim, found);
            }
            next.extend(&info.coordinates);
            taken.arrays.insert(array, (info, kept));
        }
        let above: BTreeSet<&str> =
            taken.arrays.keys().flat_map(|&a| self_and_above(self.arrays[a].0)).collect();
        for &(path, attrs) in &self.groups {
            if path.is_empty() || above.contains(path) || is_within(path) {
                r.charge(path.len())?;
                r.seek(attrs);
                taken.groups.push(GroupInfo { path: path.to_owned(), attrs: r.framed(schema::read_attrs)? });
            }
        }
        Ok(taken)
    }
}

impl Taken {
    /// Gives arrays and dimensions their own numbers.
    fn finish(self, r: &mut Reader<'_>, outline: &Outline<'_>) -> Result<Excerpt> {
        let numbers: Arc<[usize]> = self.arrays.keys().copied().collect();
        let dim_numbers: Vec<usize> = self.dims.keys().copied().collect();
        // What leads elsewhere than to what was taken cannot be: `take` follows all.
        let array = |old: usize| numbers.binary_search(&old).unwrap_or(usize::MAX);
        let dim = |old: usize| dim_numbers.binary_search(&old).unwrap_or(usize::MAX);
        let mut kept_values = BTreeMap::new();
        for &(old, place) in &outline.values {
            if let Some((info, _)) = self.arrays.get(&old) {
                r.seek(place);
                kept_values.insert(array(old), values::read_one(r, info)?);
            }
        }
        let (mut arrays, layouts): (Vec<ArrayInfo>, Vec<Kept>) = self.arrays.into_values().unzip();
        for info in &mut arrays {
            info.dims.iter_mut().for_each(|d| *d = dim(*d));
            info.coordinates.iter_mut().for_each(|c| *c = array(*c));
        }
        let mut dims: Vec<Dimension> = self.dims.into_values().collect();
        dims.iter_mut().for_each(|d| d.coordinate = d.coordinate.map(array));
        let aliases = outline.aliases.iter().filter(|(_, old)| numbers.binary_search(old).is_ok());
        let aliases = aliases.map(|&(path, old)| (path.to_owned(), array(old))).collect();
        let schema = Schema {
            format: outline.format.clone(),
            groups: self.groups,
            dims,
            arrays,
            aliases,
            left_out: outline.left_out.clone(),
            warnings: outline.warnings.clone(),
        };
        check::schema(&schema)?;
        let (len, version, striping) = (outline.len, outline.version.clone(), outline.striping.clone());
        let (schema, values) = (Arc::new(schema), kept_values);
        let manifest = Manifest { schema, len, version, layouts, values, striping };
        Ok(Excerpt { manifest, numbers })
    }
}
