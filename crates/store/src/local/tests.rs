//! Pipes, links, lengths and lists: what is refused, and who may read what is made.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sieva-local-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .unwrap();
}

#[test]
fn a_pipe_is_refused_at_once() {
    let dir = Scratch::new("pipe");
    let path = dir.0.join("a.nc");
    pipe(&path);
    assert_eq!(open_regular(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(read(&path, 10).unwrap_err().kind(), ErrorKind::InvalidData);
    let opened = Dir::open(&dir.0).unwrap();
    assert_eq!(opened.open_regular(Path::new("a.nc")).unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn more_bytes_than_allowed_are_not_read() {
    let dir = Scratch::new("long");
    let path = dir.0.join("sparse");
    fs::File::create(&path).unwrap().set_len(3 << 30).unwrap();
    let e = read(&path, 1 << 20).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::FileTooLarge);
    let told = error("cannot read", &path, &e);
    assert_eq!(told.kind(), sieva_types::ErrorKind::MemoryLimit);
    assert!(told.message().contains("3221225472 bytes, at most 1048576 are read"), "{told}");
    fs::write(&path, b"12345").unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"12345");
}

#[test]
fn nothing_leads_out_of_a_directory() {
    let dir = Scratch::new("beneath");
    fs::create_dir_all(dir.0.join("in/sub")).unwrap();
    fs::write(dir.0.join("secret"), b"s").unwrap();
    fs::write(dir.0.join("in/sub/a"), b"a").unwrap();
    symlink("../secret", dir.0.join("in/link")).unwrap();
    symlink("..", dir.0.join("in/up")).unwrap();
    let opened = Dir::open(&dir.0.join("in")).unwrap();
    for open in [Dir::open_file, Dir::open_by_parts_for_test] {
        let get = |name: &str| open(&opened, Path::new(name), OFlags::RDONLY, Mode::empty());
        get("sub/a").unwrap();
        for name in ["link", "up/secret", "../secret", "sub/../../secret"] {
            get(name).unwrap_err();
        }
    }
    assert!(Dir::open_no_link(&dir.0.join("in/up")).is_err());
}

#[test]
fn a_file_appears_complete_or_not_at_all() {
    let dir = Scratch::new("aside");
    let target = dir.0.join("out.csv");
    let mut aside = Aside::new(&target, 0o600).unwrap();
    aside.file().unwrap().write_all(b"x").unwrap();
    assert!(!target.exists() && aside.path().exists());
    drop(aside);
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 0);

    symlink("/nonexistent/elsewhere", &target).unwrap();
    let mut aside = Aside::new(&target, 0o600).unwrap();
    aside.file().unwrap().write_all(b"y").unwrap();
    aside.publish(true).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"y");
    assert_eq!(fs::symlink_metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 1);
}

#[test]
fn the_path_of_an_open_file_is_that_of_what_a_link_leads_to() {
    let dir = Scratch::new("real");
    fs::write(dir.0.join("a"), b"").unwrap();
    symlink("a", dir.0.join("b")).unwrap();
    let file = open_regular(&dir.0.join("b")).unwrap();
    assert_eq!(real_path(&file).unwrap(), dir.0.join("a").canonicalize().unwrap());
}

/// An access control list as Linux keeps it: tag, rights and number of each entry.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

const NAME: &str = "system.posix_acl_access";
const NO_ID: u32 = u32::MAX;

fn acl_of(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 200];
    let n = rustix::fs::getxattr(path, NAME, &mut bytes[..]).ok()?;
    bytes.truncate(n);
    Some(bytes)
}

#[test]
fn an_access_control_list_is_that_of_the_source_without_writing() {
    let dir = Scratch::new("acl");
    let (source, made, inner) = (dir.0.join("a.nc"), dir.0.join("made"), dir.0.join("inner"));
    fs::write(&source, b"").unwrap();
    // The owner, user 1234, the group, the mask, others.
    let list = acl(&[(1, 6, NO_ID), (2, 7, 1234), (4, 0, NO_ID), (16, 7, NO_ID), (32, 0, NO_ID)]);
    if rustix::fs::setxattr(&source, NAME, &list, rustix::fs::XattrFlags::empty()).is_err() {
        eprintln!("skipped: this file system has no access control lists");
        return;
    }
    let readers = Readers::of(&source);
    for _ in 0..2 {
        let file = fs::File::create(&made).unwrap();
        readers.give_file(&file).unwrap();
        let wanted = acl(&[(1, 6, NO_ID), (2, 4, 1234), (4, 0, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID)]);
        assert_eq!(acl_of(&made).unwrap(), wanted);
        Trust::default().check(&file.metadata().unwrap()).unwrap();
    }
    fs::create_dir(&inner).unwrap();
    readers.give_dir(Dir::open(&inner).unwrap()).unwrap();
    let wanted = acl(&[(1, 7, NO_ID), (2, 5, 1234), (4, 0, NO_ID), (16, 5, NO_ID), (32, 0, NO_ID)]);
    assert_eq!(acl_of(&inner).unwrap(), wanted);
    // A list that the directory hands down says nothing of the source.
    let plain = dir.0.join("plain.nc");
    fs::write(&plain, b"").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o640)).unwrap();
    let down = acl(&[(1, 7, NO_ID), (2, 7, 1234), (4, 5, NO_ID), (16, 7, NO_ID), (32, 5, NO_ID)]);
    rustix::fs::setxattr(&dir.0, "system.posix_acl_default", &down, rustix::fs::XattrFlags::empty()).unwrap();
    let below = dir.0.join("below");
    let file = fs::File::create(&below).unwrap();
    assert!(acl_of(&below).is_some());
    Readers::of(&plain).give_file(&file).unwrap();
    assert_eq!(acl_of(&below), None);
    assert_eq!(fs::metadata(&below).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_list_that_writes_is_not_trusted() {
    let dir = Scratch::new("writes");
    let path = dir.0.join("manifest.json");
    fs::write(&path, b"").unwrap();
    let check = || Trust::default().check(&fs::metadata(&path).unwrap());
    check().unwrap();
    let list = acl(&[(1, 6, NO_ID), (2, 6, 1234), (4, 0, NO_ID), (16, 6, NO_ID), (32, 0, NO_ID)]);
    if rustix::fs::setxattr(&path, NAME, &list, rustix::fs::XattrFlags::empty()).is_ok() {
        assert_eq!(check().unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
}
