//! Which striping a file has, as its file system tells it.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use sieva_types::Result;

use super::{Striping, beegfs, ceph, fiemap, gluster, lustre, uploaded, wrong};
use crate::RangedRead;
use crate::local::network_name;

/// The longest extended attribute that Linux has.
const MOST_BYTES: usize = 64 << 10;

/// An extended attribute that tells a layout, and who reads it.
struct Attribute {
    name: &'static str,
    /// The layout by its bytes, of a file of so many bytes.
    read: fn(&[u8], u64) -> Result<Striping>,
}

const ATTRIBUTES: [Attribute; 4] = [
    Attribute { name: "lustre.lov", read: |bytes, _| lustre::parse(bytes) },
    // The same for root, and on file systems that keep it for a Lustre server.
    Attribute { name: "trusted.lov", read: |bytes, _| lustre::parse(bytes) },
    Attribute { name: "ceph.file.layout", read: ceph::parse },
    Attribute { name: "trusted.glusterfs.shard.block-size", read: gluster::parse },
];

/// What a file system says of a file.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// An extended attribute: its name and value.
    Attribute(&'a str, &'a [u8]),
    /// The option `shard-block-size` of a volume of GlusterFS.
    ShardSize(&'a str),
    /// The answers of BeeGFS's client: pattern, bytes of a chunk, and targets.
    Targets(u32, u32, &'a [u32]),
}

impl Striping {
    /// What a file system's words mean, of a file of `len` bytes, whoever asked it.
    ///
    /// # Errors
    /// `invalid-value` where they are not understood.
    ///
    /// ```
    /// use sieva_store::{Striping, Told};
    ///
    /// let layout = b"stripe_unit=4096 stripe_count=2 object_size=8192 pool=data";
    /// let striping = Striping::told(Told::Attribute("ceph.file.layout", layout), 16384)?;
    /// assert_eq!((striping.servers(), striping.stripe_size()), (2, 4096));
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn told(what: Told<'_>, len: u64) -> Result<Self> {
        match what {
            Told::Attribute(name, bytes) => {
                let known = ATTRIBUTES.iter().find(|attribute| attribute.name == name);
                let known = known.ok_or_else(|| wrong(format!("no layout is in '{name}'")))?;
                (known.read)(bytes, len)
            }
            Told::ShardSize(text) => gluster::of_option(text, len),
            Told::Targets(pattern, size, targets) => {
                beegfs::striping(pattern, size, targets.to_vec()).map_err(wrong)
            }
        }
    }

    /// Where the bytes of an object lie, as far as its storage tells. Never fails: what is not told is one server, and
    /// [`Striping::describe`] says why.
    pub fn of(store: &dyn RangedRead) -> Self {
        if let Some(file) = store.descriptor() {
            return of_file(file, store.len());
        }
        match uploaded::parse(store.name(), &store.version(), store.len()) {
            Ok(striping) => striping,
            Err(why) => Self::single_as(why),
        }
    }
}

fn of_file(file: BorrowedFd<'_>, len: u64) -> Striping {
    for attribute in &ATTRIBUTES {
        let Some(bytes) = value_of(file, attribute.name) else { continue };
        return match (attribute.read)(&bytes, len) {
            Ok(striping) => striping,
            Err(e) => Striping::single_as(&format!("{} is not understood: {}", attribute.name, e.message())),
        };
    }
    if value_of(file, gluster::ATTRIBUTE).is_some() {
        return match gluster::ask(file, len) {
            Ok(striping) => striping,
            Err(e) => Striping::single_as(&format!("GlusterFS: {}", e.message())),
        };
    }
    let kind = rustix::fs::fstatfs(file).map_or(0, |found| found.f_type as u32);
    if kind == beegfs::FILE_SYSTEM {
        return match beegfs::ask(file) {
            Ok(striping) => striping,
            Err(why) => Striping::single_as(&format!("BeeGFS does not tell: {why}")),
        };
    }
    if let Some(network) = network_name(kind) {
        return Striping::single_as(&format!("{network} tells no layout"));
    }
    match fiemap::ask(file, len) {
        Ok(disk) => Striping { disk: Some(disk), ..Striping::single_as("a disk that tells its extents") },
        Err(why) => Striping::single_as(&format!("a local file system that tells no extents: {why}")),
    }
}

/// The value of an extended attribute; `None` where there is none.
fn value_of(file: BorrowedFd<'_>, name: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 512];
    loop {
        match rustix::fs::fgetxattr(file, name, bytes.as_mut_slice()) {
            Ok(n) => {
                bytes.truncate(n);
                return Some(bytes);
            }
            Err(Errno::RANGE) if bytes.len() < MOST_BYTES => bytes.resize(MOST_BYTES, 0),
            Err(_) => return None,
        }
    }
}
