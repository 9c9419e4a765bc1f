//! Objects on servers that keep what is put, and fail where they are told to.

mod faults;
mod parts;
#[path = "../../../tests/server/mod.rs"]
mod server;
mod swift;

use std::sync::Arc;
use std::time::Duration;

use server::{Answer, Request, Server, hasty};
use sieva_types::ErrorKind;

use super::Objects;
use crate::RemoteOptions;
use crate::guard::{AllowList, Gate, Purpose};
use crate::remote::objects_of;
use crate::remote::s3::S3;

fn bucket_within(server: &Server, options: &RemoteOptions, gate: &Gate) -> Arc<dyn Objects> {
    let service = Box::new(S3::at(&server.url(""), "data"));
    objects_of(service, "set 1/", options, gate, Purpose::Member).unwrap()
}

fn bucket(server: &Server) -> Arc<dyn Objects> {
    bucket_within(server, &hasty(), &Gate::default())
}

fn kinds(log: &[Request]) -> Vec<&str> {
    log.iter().map(|request| request.method.as_str()).collect()
}

#[test]
fn objects_of_a_bucket_are_put_read_and_deleted() {
    let server = Server::start();
    let objects = bucket(&server);
    assert_eq!(
        (objects.name(), objects.location("a/b")),
        ("s3://data/set 1".into(), "s3://data/set 1/a/b".into())
    );
    assert_eq!(objects.get("a/b", 10).unwrap(), None);
    objects.put("a/b", &b"one".to_vec()).unwrap();
    let version = objects.put_version("a/b", &b"three".to_vec()).unwrap();
    assert_eq!(version.unwrap(), format!("\"{}\" 5", server::md5_hex(b"three")));
    assert_eq!(server.kept("/data/set%201/a/b").unwrap(), b"three");
    assert_eq!(objects.get("a/b", 5).unwrap().unwrap(), b"three");
    let e = objects.get("a/b", 4).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (ErrorKind::CorruptFile, "'s3://data/set 1/a/b' has more than 4 bytes")
    );
    let mut two = [0; 2];
    assert!(objects.get_range("a/b", 3, &mut two).unwrap());
    assert_eq!(&two, b"ee");
    for offset in [4, 5, 100, u64::MAX - 1] {
        let e = objects.get_range("a/b", offset, &mut two).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile, "{offset}: {e}");
    }
    assert!(!objects.get_range("a/x", 0, &mut two).unwrap());
    assert!(objects.get_range("a/b", 0, &mut []).unwrap() && !objects.get_range("a/x", 0, &mut []).unwrap());
    objects.put("empty", &Vec::new()).unwrap();
    assert_eq!(objects.get("empty", 0).unwrap().unwrap(), b"");
    assert!(objects.get_range("empty", 0, &mut []).unwrap());
    assert_eq!(objects.get_range("empty", 0, &mut two).unwrap_err().kind(), ErrorKind::CorruptFile);
    objects.delete("a/b").unwrap();
    objects.delete("a/b").unwrap();
    assert_eq!(server.kept("/data/set%201/a/b"), None);
}

#[test]
fn requests_are_signed_with_what_they_send() {
    let server = Server::start();
    bucket(&server).put("k", &b"abc".to_vec()).unwrap();
    let [put] = &server.take_log()[..] else { panic!("one request") };
    assert_eq!(
        (put.method.as_str(), put.target.as_str(), &*put.body),
        ("PUT", "/data/set%201/k", &b"abc"[..])
    );
    let header = |name: &str| put.headers[name].as_str();
    assert_eq!((header("content-length"), header("content-md5")), ("3", "kAFQmDzST7DWlj99KOF/cg=="));
    assert_eq!(
        header("x-amz-content-sha256"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    let signed = "SignedHeaders=content-md5;host;x-amz-content-sha256;x-amz-date";
    assert!(header("authorization").contains(signed), "{}", header("authorization"));
    bucket(&server).put("empty", &Vec::new()).unwrap();
    assert_eq!(server.take_log()[0].headers["content-length"], "0");
}

#[test]
fn a_link_is_signed_without_a_request() {
    let server = Server::start();
    let objects = bucket(&server);
    let link = objects.link("a/b.nc", Duration::from_secs(3600)).unwrap();
    let url = url::Url::parse(&link.url).unwrap();
    assert_eq!((url.path(), link.expires), ("/data/set%201/a/b.nc", true));
    assert!(link.url.starts_with(&server.url("/")));
    let value = |name: &str| url.query_pairs().find(|(n, _)| n == name).unwrap().1.into_owned();
    assert_eq!((value("X-Amz-Expires"), value("X-Amz-SignedHeaders")), ("3600".into(), "host".into()));
    assert_eq!((value("X-Amz-Signature").len(), &value("X-Amz-Credential")[..12]), (64, "AKIDEXAMPLE/"));
    for (expires, said) in [(0, "that leads nowhere from the first"), (7 * 86_400 + 1, "for 604801 s")] {
        let e = objects.link("a/b.nc", Duration::from_secs(expires)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue);
        assert!(e.message().contains(said), "{e}");
    }
    let gate = Gate::of(Arc::new(AllowList::new(["s3://data/set 1/in"]).unwrap()));
    let e = bucket_within(&server, &hasty(), &gate).link("out", Duration::from_secs(1)).unwrap_err();
    assert_eq!(e.message(), "'s3://data/set%201/out' is outside of what may be opened");
    assert_eq!(server.take_log().len(), 0);
}

#[test]
fn one_of_two_creates_an_object() {
    let server = Server::start();
    let objects = bucket(&server);
    assert!(objects.create("k", b"mine").unwrap());
    let log = server.take_log();
    assert_eq!(kinds(&log), ["GET", "PUT"]);
    assert_eq!(log[1].headers["if-none-match"], "*");
    assert!(!objects.create("k", b"mine").unwrap() && !objects.create("k", b"other").unwrap());
    assert_eq!(server.kept("/data/set%201/k").unwrap(), b"mine");
}

#[test]
fn keys_stay_below_the_root_and_within_the_gate() {
    let server = Server::start();
    let objects = bucket(&server);
    for key in ["", "..", "../a", "/a", "a//b", "a/./b", ".a", "a\0", "a b", "a/-b"] {
        assert_eq!(objects.put(key, &b"x".to_vec()).unwrap_err().kind(), ErrorKind::LinkRefused, "{key:?}");
        assert_eq!(objects.get(key, 9).unwrap_err().kind(), ErrorKind::LinkRefused, "{key:?}");
    }
    let gate = Gate::of(Arc::new(AllowList::new(["s3://data/set 1/in"]).unwrap()));
    let objects = bucket_within(&server, &hasty(), &gate);
    let refused = [
        objects.put("out", &b"x".to_vec()),
        objects.create("out", b"x").map(drop),
        objects.get("out", 9).map(drop),
        objects.get_range("out", 0, &mut [0]).map(drop),
        objects.delete("out"),
        objects.list("out").map(drop),
        objects.tidy("out"),
    ];
    for done in refused {
        let e = done.unwrap_err();
        assert_eq!(e.message(), "'s3://data/set%201/out' is outside of what may be opened");
    }
    assert_eq!(server.take_log().len(), 0);
    objects.put("in/k", &b"x".to_vec()).unwrap();
    assert_eq!(server.kept("/data/set%201/in/k").unwrap(), b"x");
}

/// A listing of 25 objects and one whose name is none of ours, ten at a time.
fn pages(request: &Request) -> Option<Answer> {
    let query = request.target.split_once('?')?.1;
    assert!(query.starts_with("list-type=2&prefix=set%201%2Fc%2F"), "{query}");
    let from: usize = query.split("token=").nth(1).map_or(0, |from| from.parse().unwrap());
    let mut xml = "<ListBucketResult>".to_owned();
    for n in (from..26).take(10) {
        let name = if n == 13 { "of%me".to_owned() } else { format!("{:02}", 25 - n) };
        xml += &format!("<Contents><Key>set 1/c/{name}</Key><Size>{n}</Size></Contents>");
    }
    if from + 10 < 26 {
        xml += &format!("<NextContinuationToken>{}</NextContinuationToken>", from + 10);
    }
    Some((200, vec![], (xml + "</ListBucketResult>").into_bytes()))
}

#[test]
fn listings_of_many_pages_are_in_order_and_of_keys_only() {
    let server = Server::start();
    server.handle(pages);
    server.fail([server::Fault::Status(503, "")]);
    let listed = bucket(&server).list("c/").unwrap();
    assert_eq!((listed.len(), server.take_log().len()), (25, 4));
    assert!(listed.windows(2).all(|pair| pair[0].key < pair[1].key));
    assert_eq!((listed[0].key.as_str(), listed[0].size), ("c/00", 25));
}
