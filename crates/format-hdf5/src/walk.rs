//! What is in a file: its groups and datasets, each once, and the other paths that lead to them.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};

use hdf5_metno_sys::h5::{H5_INDEX_CRT_ORDER, H5_INDEX_NAME, H5_ITER_INC, herr_t, hsize_t};
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{
    H5L_TYPE_EXTERNAL, H5L_TYPE_HARD, H5L_TYPE_SOFT, H5L_info2_t, H5Lget_val, H5Literate2,
};
use hdf5_metno_sys::h5o::H5O_token_t;
use hdf5_metno_sys::h5p::{H5P_CRT_ORDER_TRACKED, H5P_DEFAULT, H5Pget_link_creation_order};
use sieva_types::{Error, ErrorKind, Result};

use crate::bounds::{Bounds, ENTRY};
use crate::ffi::{self, Handle, Token, call};
use crate::file::{File, ObjectKind};
use crate::links::{self, Policy};

/// Most links of one file that are followed.
const LINK_LIMIT: usize = 4 << 20;
/// Longest value of a soft or external link.
const LINK_VALUE_LIMIT: usize = 1 << 20;
/// Most paths that are remembered for what other names lead to.
const ALIAS_LIMIT: usize = 1 << 16;
/// Most other names of groups that are looked at for these.
const GROUP_ALIAS_LIMIT: usize = 4096;

/// Deepest group that is listed: each more takes a longer path for all that is in it.
const DEPTH_LIMIT: u32 = 1024;

/// A file of the walk, by its place in [`Tree::files`]; 0 is the one that was opened.
pub(crate) type FileNumber = usize;

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) path: String,
    pub(crate) file: FileNumber,
    pub(crate) token: Token,
    /// The group that it is in; its own number for the root.
    pub(crate) parent: usize,
    /// How many groups it is in.
    depth: u32,
}

/// A dataset.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) path: String,
    /// How libhdf5 finds it within its file: a group there, and the path from it.
    pub(crate) from: Token,
    pub(crate) raw_path: CString,
    /// Place of its group in [`Tree::groups`].
    pub(crate) group: usize,
    pub(crate) file: FileNumber,
    pub(crate) token: Token,
}

/// The objects of a file, and of those that its external links lead into.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) groups: Vec<Group>,
    pub(crate) datasets: Vec<Found>,
    /// Other paths: of a dataset (its number in `datasets`).
    pub(crate) aliases: Vec<(String, usize)>,
    pub(crate) warnings: Vec<String>,
    /// Paths that lead to nothing that can be listed, with the reason.
    pub(crate) left_out: Vec<(String, Error)>,
}

/// A link as the group holds it.
struct Link {
    name: Vec<u8>,
    kind: LinkKind,
}

impl Link {
    /// Bytes that it takes.
    fn size(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }

    /// The object of a hard link.
    fn object(&self) -> Option<Token> {
        match self.kind {
            LinkKind::Hard(token) => Some(token),
            _ => None,
        }
    }
}

enum LinkKind {
    Hard(Token),
    Soft(usize),
    External(usize),
    Other,
}

/// A soft or external link, followed once every object has its first path.
struct Pending {
    group: usize,
    link: Link,
}

/// An object as a link leads to it.
struct Reached {
    file: FileNumber,
    token: Token,
    kind: ObjectKind,
    /// Its path, and how libhdf5 finds it in its file.
    path: String,
    from: Token,
    raw_path: Vec<u8>,
}

struct Walk<'a> {
    tree: Tree,
    policy: &'a Policy,
    bounds: &'a Bounds,
    seen_groups: HashMap<(FileNumber, Token), usize>,
    seen_datasets: HashMap<(FileNumber, Token), usize>,
    group_aliases: Vec<(String, usize)>,
    links: usize,
}

/// Walks `file` from its root; no recursion, so that no depth of groups can exhaust the stack.
pub(crate) fn walk(file: File, policy: &Policy, bounds: &Bounds) -> Result<Tree> {
    // Kept throughout where nothing waits for a network: taking it anew for each link costs time.
    let _guard = (!file.is_remote()).then(ffi::lock);
    let mut walk = Walk {
        tree: Tree::default(),
        policy,
        bounds,
        seen_groups: HashMap::new(),
        seen_datasets: HashMap::new(),
        group_aliases: Vec::new(),
        links: 0,
    };
    let (_, root) = File::identify(file.handle())?;
    walk.tree.files.push(file);
    walk.tree.groups.push(Group { path: String::new(), file: 0, token: root, parent: 0, depth: 0 });
    walk.seen_groups.insert((0, root), 0);
    let pending = walk.descend(0)?;
    walk.follow(pending)?;
    walk.expand_group_aliases()?;
    bounds.check()?;
    Ok(walk.tree)
}

impl Walk<'_> {
    /// Lists everything that hard links reach from group `start`; gives back the other links.
    fn descend(&mut self, start: usize) -> Result<Vec<Pending>> {
        let mut pending = Vec::new();
        let mut todo = vec![start];
        while let Some(group) = todo.pop() {
            let links = self.links_of(group);
            self.bounds.check()?;
            let links = match links {
                Ok(links) => links,
                // A damaged group must not hide the rest of the file; a damaged root leaves nothing to show.
                Err(e) if group != 0 => {
                    let path = self.tree.groups[group].path.clone();
                    self.leave_out(path, e);
                    continue;
                }
                Err(e) => return Err(e),
            };
            let objects: Vec<Token> = links.iter().filter_map(Link::object).collect();
            self.tree.files[self.tree.groups[group].file].fetch_objects(&objects)?;
            let mut inner = Vec::new();
            let _guard = ffi::lock();
            for link in links {
                self.bounds.check()?;
                if let LinkKind::Hard(token) = link.kind {
                    inner.extend(self.hard(group, &link.name, token));
                    self.bounds.give_back(link.size());
                } else {
                    pending.push(Pending { group, link });
                }
            }
            todo.extend(inner.into_iter().rev());
        }
        Ok(pending)
    }

    /// The links of a group, in creation order where the file tracks it, else by name.
    fn links_of(&mut self, group: usize) -> Result<Vec<Link>> {
        let _guard = ffi::lock();
        let Group { file, token, .. } = self.tree.groups[group];
        let handle = self.tree.files[file].object(token)?;
        let tracked = tracks_order(&handle);
        let mut links = iterate(&handle, tracked, self.bounds)?;
        if self.links + links.len() > LINK_LIMIT {
            self.tree.warnings.push(format!("links beyond the first {LINK_LIMIT} left out"));
            links.truncate(LINK_LIMIT.saturating_sub(self.links));
        }
        self.links += links.len();
        Ok(links)
    }

    /// Notes what a hard link leads to; a group not met before is given back to be listed.
    fn hard(&mut self, group: usize, name: &[u8], token: Token) -> Option<usize> {
        let Group { file, token: from, .. } = self.tree.groups[group];
        let path = join(&self.tree.groups[group].path, name);
        let known =
            self.seen_groups.contains_key(&(file, token)) || self.seen_datasets.contains_key(&(file, token));
        let kind = match known {
            true => Ok(ObjectKind::Other),
            false => {
                self.tree.files[file].object(token).and_then(|object| File::identify(&object)).map(|o| o.0)
            }
        };
        match kind {
            Ok(kind) => self.reach(group, Reached { file, token, kind, path, from, raw_path: name.to_vec() }),
            Err(e) => {
                self.leave_out(path, e);
                None
            }
        }
    }

    /// Notes that a path leads to an object: an alias where it has a path already, else its first path. A group not met
    /// before is given back to be listed.
    fn reach(&mut self, parent: usize, found: Reached) -> Option<usize> {
        let Reached { file, token, kind, path, from, raw_path } = found;
        if let Some(&known) = self.seen_groups.get(&(file, token)) {
            self.bounds.take(ENTRY + path.len());
            self.group_aliases.push((path, known));
            return None;
        }
        if let Some(&known) = self.seen_datasets.get(&(file, token)) {
            self.bounds.take(ENTRY + 2 * path.len());
            self.tree.aliases.push((path, known));
            return None;
        }
        match kind {
            ObjectKind::Group => self.add_group(path, file, token, parent),
            ObjectKind::Dataset => {
                let Ok(raw_path) = CString::new(raw_path) else { return None };
                self.bounds.take(ENTRY + 2 * path.len() + raw_path.count_bytes());
                self.seen_datasets.insert((file, token), self.tree.datasets.len());
                self.tree.datasets.push(Found { path, from, raw_path, group: parent, file, token });
                None
            }
            ObjectKind::Other => None,
        }
    }

    fn add_group(&mut self, path: String, file: FileNumber, token: Token, parent: usize) -> Option<usize> {
        let depth = self.tree.groups[parent].depth + 1;
        if depth > DEPTH_LIMIT {
            let what = format!("it is more than {DEPTH_LIMIT} groups deep, and is not looked into");
            self.leave_out(path, Error::new(ErrorKind::Unsupported, what));
            return None;
        }
        self.bounds.take(ENTRY + 2 * path.len());
        let number = self.tree.groups.len();
        self.seen_groups.insert((file, token), number);
        self.tree.groups.push(Group { path, file, token, parent, depth });
        Some(number)
    }

    /// Says of a path why there is nothing to list.
    fn leave_out(&mut self, path: String, e: Error) {
        self.bounds.take(ENTRY + 4 * path.len());
        self.tree.warnings.push(format!("'{path}' left out: {e}"));
        self.tree.left_out.push((path, e));
    }

    /// Follows soft and external links, and those that these bring in.
    fn follow(&mut self, mut pending: Vec<Pending>) -> Result<()> {
        while !pending.is_empty() {
            let mut next = Vec::new();
            for p in std::mem::take(&mut pending) {
                self.bounds.check()?;
                let path = join(&self.tree.groups[p.group].path, &p.link.name);
                let followed = match p.link.kind {
                    LinkKind::Soft(len) => self.soft(&p, len, &path),
                    LinkKind::External(len) => self.external(&p, len, &path),
                    LinkKind::Hard(_) | LinkKind::Other => Err(Error::corrupt("a link of an unknown kind")),
                };
                self.bounds.give_back(p.link.size());
                match followed.map(|found| self.reach(p.group, found)) {
                    Ok(Some(group)) => next.extend(self.descend(group)?),
                    Ok(None) => {}
                    Err(e) => {
                        self.bounds.take(ENTRY + 4 * path.len());
                        let hint = e.hint_text().map(|h| format!(" ({h})")).unwrap_or_default();
                        self.tree.warnings.push(format!("link '{path}' not followed: {e}{hint}"));
                        self.tree.left_out.push((path, e));
                    }
                }
            }
            pending = next;
        }
        Ok(())
    }

    fn soft(&self, p: &Pending, len: usize, path: &str) -> Result<Reached> {
        let _guard = ffi::lock();
        let Group { file, token: from, .. } = self.tree.groups[p.group];
        let group = self.tree.files[file].object(from)?;
        let name = c_name(&p.link.name)?;
        let target = match self.tree.files[file].object_at(&group, &name) {
            Ok(target) => target,
            Err(e) => {
                let value = link_value(&group, &name, len)?;
                let target = String::from_utf8_lossy(&value);
                let target = target.trim_end_matches('\0');
                return Err(match links::is_refusal(&e) {
                    true => Error::new(
                        ErrorKind::LinkRefused,
                        format!("its target '{target}' lies behind an external link"),
                    ),
                    false => {
                        Error::new(ErrorKind::UnknownArray, format!("its target '{target}' is not there"))
                    }
                });
            }
        };
        let (kind, token) = File::identify(&target)?;
        Ok(Reached { file, token, kind, path: path.to_owned(), from, raw_path: p.link.name.clone() })
    }

    fn external(&mut self, p: &Pending, len: usize, path: &str) -> Result<Reached> {
        let _guard = ffi::lock();
        let Group { file, token, .. } = self.tree.groups[p.group];
        let group = self.tree.files[file].object(token)?;
        let value = link_value(&group, &c_name(&p.link.name)?, len)?;
        drop(group);
        // One byte of version and flags, then two C strings: the file and the path in it.
        let mut parts = value.get(1..).unwrap_or_default().split(|&b| b == 0);
        let (Some(name), Some(inner)) = (parts.next(), parts.next()) else {
            return Err(Error::corrupt("an external link without a target"));
        };
        let real = self.policy.external(&self.tree.files[file], name)?;
        let number = match self.tree.files.iter().position(|f| f.is_at(&real)) {
            Some(number) => number,
            None => {
                self.tree.files.push(File::open(&real, self.policy.gate())?);
                self.tree.files.len() - 1
            }
        };
        let file = &self.tree.files[number];
        let target = file.object_at(file.handle(), &c_name(inner)?)?;
        let (kind, token) = File::identify(&target)?;
        let (_, from) = File::identify(file.handle())?;
        // From the root, which a path without a slash starts from as well.
        Ok(Reached { file: number, token, kind, path: path.to_owned(), from, raw_path: inner.to_vec() })
    }

    /// Gives each dataset below a group a path for each other name of the group: once, so that a cycle of
    /// groups ends.
    fn expand_group_aliases(&mut self) -> Result<()> {
        let mut more = Vec::new();
        for (alias, group) in std::mem::take(&mut self.group_aliases).into_iter().take(GROUP_ALIAS_LIMIT) {
            self.bounds.check()?;
            let prefix = &self.tree.groups[group].path;
            // Datasets under the group by any name: their own, and other links to them.
            let own = self.tree.datasets.iter().enumerate().map(|(number, found)| (&found.path, number));
            let links = self.tree.aliases.iter().map(|(path, number)| (path, *number));
            for (path, number) in own.chain(links) {
                let rest = if prefix.is_empty() {
                    Some(path.as_str())
                } else {
                    path.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('/'))
                };
                let Some(rest) = rest else { continue };
                if self.tree.aliases.len() + more.len() >= ALIAS_LIMIT || self.bounds.is_over() {
                    self.tree.warnings.push(format!("other names beyond the first {ALIAS_LIMIT} left out"));
                    self.tree.aliases.append(&mut more);
                    return Ok(());
                }
                self.bounds.take(ENTRY + 2 * (alias.len() + rest.len()));
                more.push((format!("{alias}/{rest}"), number));
            }
        }
        self.tree.aliases.append(&mut more);
        Ok(())
    }
}

fn join(group: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if group.is_empty() { name.into_owned() } else { format!("{group}/{name}") }
}

fn c_name(name: &[u8]) -> Result<CString> {
    CString::new(name).map_err(|_| Error::corrupt("a name with a NUL in it"))
}

/// Whether the links of a group can be had in the order of their creation.
fn tracks_order(group: &Handle) -> bool {
    // SAFETY: called under the lock with an open group.
    let Ok(creation) = ffi::open("cannot look at a group", || unsafe { H5Gget_create_plist(group.id()) })
    else {
        return false;
    };
    let mut flags = 0;
    // SAFETY: as above; the pointer is to a local.
    let status = unsafe { H5Pget_link_creation_order(creation.id(), &mut flags) };
    status >= 0 && flags & H5P_CRT_ORDER_TRACKED != 0
}

/// The links of a group as they are listed.
struct Listed<'a> {
    links: Vec<Link>,
    bounds: &'a Bounds,
}

fn iterate(group: &Handle, by_creation: bool, bounds: &Bounds) -> Result<Vec<Link>> {
    let index = if by_creation { H5_INDEX_CRT_ORDER } else { H5_INDEX_NAME };
    let mut listed = Listed { links: Vec::new(), bounds };
    let mut position: hsize_t = 0;
    let done = call("cannot list a group", || {
        // SAFETY: called under the lock with an open group; the callback only writes to `listed`.
        unsafe {
            H5Literate2(
                group.id(),
                index,
                H5_ITER_INC,
                &mut position,
                Some(keep_link),
                (&raw mut listed).cast::<c_void>(),
            )
        }
    });
    if done.is_err() {
        bounds.give_back(listed.links.iter().map(Link::size).sum());
    }
    done.map(|_| listed.links)
}

unsafe extern "C" fn keep_link(
    _group: hid_t,
    name: *const c_char,
    info: *const H5L_info2_t,
    data: *mut c_void,
) -> herr_t {
    // SAFETY: libhdf5 passes valid pointers for the length of the call, and `data` is the caller's list. The
    // link type is read as a plain integer, since user-defined types have numbers that the enum lacks; the
    // union's field is the one that the type says is set.
    let (listed, name, kind) = unsafe {
        let value = &raw const (*info).u;
        let kind = match info.cast::<i32>().read() {
            t if t == H5L_TYPE_HARD as i32 => {
                LinkKind::Hard(Token::from_raw(value.cast::<H5O_token_t>().read()))
            }
            t if t == H5L_TYPE_SOFT as i32 => LinkKind::Soft(value.cast::<usize>().read()),
            t if t == H5L_TYPE_EXTERNAL as i32 => LinkKind::External(value.cast::<usize>().read()),
            _ => LinkKind::Other,
        };
        (&mut *data.cast::<Listed<'_>>(), CStr::from_ptr(name), kind)
    };
    let link = Link { name: name.to_bytes().to_vec(), kind };
    listed.bounds.take(link.size());
    listed.links.push(link);
    herr_t::from(listed.links.len() > LINK_LIMIT || listed.bounds.is_over())
}

fn link_value(group: &Handle, name: &CStr, len: usize) -> Result<Vec<u8>> {
    if len > LINK_VALUE_LIMIT {
        return Err(Error::corrupt(format!("a link whose value takes {len} bytes")));
    }
    let mut value = vec![0_u8; len];
    call("cannot read a link", || {
        // SAFETY: called under the lock with an open group and a C string; the buffer is as long as said.
        unsafe { H5Lget_val(group.id(), name.as_ptr(), value.as_mut_ptr().cast(), len, H5P_DEFAULT) }
    })?;
    Ok(value)
}
