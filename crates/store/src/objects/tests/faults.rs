//! What goes wrong while something is written: what passes is sat out, what does not is told.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use sieva_types::ErrorKind;

use super::server::{Fault, Server, hasty, noise};
use super::{bucket, bucket_within, kinds};
use crate::RemoteOptions;
use crate::guard::Gate;

const PATH: &str = "/data/set%201/k";

#[test]
fn what_passes_is_sat_out() {
    let bytes = noise(1 << 20);
    let cases: [(&str, Vec<Fault>); 7] = [
        ("503", vec![Fault::Status(503, ""), Fault::Status(500, "")]),
        ("429", vec![Fault::Status(429, "Retry-After: 0"), Fault::Status(408, "")]),
        ("reset", vec![Fault::Reset, Fault::Reset]),
        ("half", vec![Fault::Half, Fault::Half]),
        ("lost", vec![Fault::Lost, Fault::Lost]),
        ("damaged", vec![Fault::Status(422, "")]),
        ("slow", vec![Fault::Slow(Duration::from_secs(3))]),
    ];
    for (case, faults) in cases {
        let server = Server::start();
        let read_timeout = Duration::from_secs(if case == "slow" { 1 } else { 30 });
        let objects = bucket_within(&server, &RemoteOptions { read_timeout, ..hasty() }, &Gate::default());
        server.fail(faults.clone());
        objects.put("k", &bytes).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert!(server.kept(PATH).unwrap() == bytes, "{case}");
        if case == "damaged" {
            continue;
        }
        server.fail(faults.clone());
        assert!(objects.get("k", 1 << 20).unwrap().unwrap() == bytes, "{case}");
        server.fail(faults);
        objects.delete("k").unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_eq!(server.kept(PATH), None, "{case}");
    }
}

#[test]
fn a_create_whose_answer_got_lost_knows_its_own() {
    let server = Server::start();
    let objects = bucket(&server);
    server.fail([Fault::Status(404, ""), Fault::Lost]);
    assert!(objects.create("k", b"mine").unwrap());
    assert_eq!(kinds(&server.take_log()), ["GET", "PUT", "PUT", "GET"]);
    // Another was first, whose object is there when the one that got lost is sent again.
    for theirs in [b"theirs".to_vec(), b"mina".to_vec(), b"longer than mine".to_vec(), vec![]] {
        server.put(PATH, theirs.clone(), Some("other"));
        server.fail([Fault::Status(404, ""), Fault::Status(503, "")]);
        assert!(!objects.create("k", b"mine").unwrap());
        assert_eq!(server.kept(PATH).unwrap(), theirs);
    }
    // It was refused at once: whatever is there is not this one's.
    server.put(PATH, b"mine".to_vec(), Some("other"));
    server.fail([Fault::Status(404, "")]);
    assert!(!objects.create("k", b"mine").unwrap());
}

#[test]
fn servers_that_do_not_know_the_condition_are_asked_first() {
    let server = Server::start();
    let objects = bucket(&server);
    server.fail([Fault::Status(404, ""), Fault::Status(501, "")]);
    assert!(objects.create("k", b"mine").unwrap());
    let log = server.take_log();
    assert_eq!(kinds(&log), ["GET", "PUT", "PUT"]);
    assert!(log[1].headers.contains_key("if-none-match") && !log[2].headers.contains_key("if-none-match"));
    // One that ignores it would have put the other in its place.
    server.handle(|request| (request.method == "PUT").then(|| panic!("it is there")));
    assert!(!objects.create("k", b"other").unwrap());
    assert_eq!(server.kept(PATH).unwrap(), b"mine");
}

#[test]
fn a_damaged_body_is_sent_again_and_never_taken() {
    let server = Server::start();
    let objects = bucket(&server);
    let count = AtomicUsize::new(0);
    server.handle(move |request| {
        let is_first = request.method == "PUT" && count.fetch_add(1, SeqCst) == 0;
        is_first.then(|| (200, vec![format!("ETag: \"{}\"", "0".repeat(32))], vec![]))
    });
    objects.put("k", &b"abc".to_vec()).unwrap();
    assert_eq!((server.take_log().len(), server.kept(PATH).unwrap()), (2, b"abc".to_vec()));
    for (code, sends) in [("BadDigest", 4), ("XAmzContentSHA256Mismatch", 4), ("InvalidArgument", 1)] {
        server.handle(move |_| {
            let body = format!("<Error><Code>{code}</Code></Error>").into_bytes();
            Some((400, vec!["Content-Type: application/xml".into()], body))
        });
        let e = objects.put("k", &b"abc".to_vec()).unwrap_err();
        assert_eq!((e.kind(), server.take_log().len()), (ErrorKind::Io, sends), "{code}");
        assert!(e.message().contains(&format!("400 Bad Request ({code})")), "{e}");
    }
    server.handle(|_| Some((200, vec![format!("ETag: {}", "0".repeat(32))], vec![])));
    let e = objects.put("k", &b"abc".to_vec()).unwrap_err();
    let start = "cannot write 's3://data/set 1/k': other bytes came than were sent; gave up after 4 attempts";
    assert!(e.message().starts_with(start), "{e}");
    // Tags of another kind say nothing.
    for tag in ["\"v7\"", "W/\"x\"", &format!("\"{}-2\"", "0".repeat(32))] {
        let header = format!("ETag: {tag}");
        server.handle(move |_| Some((200, vec![header.clone()], vec![])));
        objects.put("k", &b"abc".to_vec()).unwrap();
    }
    server.handle(|_| {
        let tag = format!("ETag: {}", "0".repeat(32));
        Some((200, vec![tag, "x-amz-server-side-encryption: aws:kms".into()], vec![]))
    });
    objects.put("k", &b"abc".to_vec()).unwrap();
}

#[test]
fn what_somebody_else_answers_is_no_success() {
    let server = Server::start();
    let objects = bucket(&server);
    let page = || b"<!DOCTYPE html><html><body>Please log in</body></html>".to_vec();
    // Once: it is put again.
    let count = AtomicUsize::new(0);
    server.handle(move |request| {
        let is_first = request.method == "PUT" && count.fetch_add(1, SeqCst) == 0;
        is_first.then(|| (200, vec!["Content-Type: text/html".into()], page()))
    });
    objects.put("k", &b"abc".to_vec()).unwrap();
    assert_eq!((server.take_log().len(), server.kept(PATH).unwrap()), (2, b"abc".to_vec()));
    // Again and again, with an empty tag, and of one that is to be new: it is told.
    for headers in [vec!["Content-Type: text/html".to_owned()], vec!["ETag: \"\"".to_owned()]] {
        server.handle(move |request| (request.method == "PUT").then(|| (200, headers.clone(), page())));
        for done in [objects.put("k", &b"new".to_vec()), objects.create("new", b"x").map(drop)] {
            let e = done.unwrap_err();
            let said = "the server answers 200 OK without the ETag of what it keeps, as no store does";
            assert!(e.kind() == ErrorKind::Io && e.message().contains(said), "{e}");
            assert!(e.message().contains("gave up after 4 attempts"), "{e}");
        }
    }
    assert_eq!(server.kept(PATH).unwrap(), b"abc");
}

#[test]
fn what_does_not_pass_is_told_without_secrets() {
    let server = Server::start();
    let objects = bucket(&server);
    server.handle(|_| {
        let body = b"<Error><Code>NoSuchBucket</Code></Error>".to_vec();
        Some((404, vec!["Content-Type: application/xml".into()], body))
    });
    for done in
        [objects.put("k", &b"x".to_vec()), objects.create("k", b"x").map(drop), objects.list("").map(drop)]
    {
        let e = done.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::FileNotFound);
        assert!(e.message().starts_with("there is no bucket for 's3://data"), "{e}");
        assert!(e.hint_text().unwrap().contains("aws s3 mb"), "{e}");
    }
    server.handle(|_| Some((403, vec![], vec![])));
    let e = objects.put("k", &b"x".to_vec()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    assert_eq!(e.message(), "the server refuses 's3://data/set 1/k': 403 Forbidden");
    assert!(!format!("{e:?} {objects}", objects = objects.name()).contains("s3cret"));
    server.always(Fault::Status(503, ""));
    let e = objects.delete("k").unwrap_err();
    assert!(e.message().starts_with("cannot delete 's3://data/set 1/k': the server answers 503"), "{e}");
    let down = Server::start().url("");
    let gone = crate::remote::s3::S3::at(&down, "data");
    let purpose = crate::guard::Purpose::Source;
    let gone = crate::remote::objects_of(Box::new(gone), "", &hasty(), &Gate::default(), purpose).unwrap();
    let e = gone.put("k", &b"x".to_vec()).unwrap_err();
    assert!(e.message().contains("cannot connect") && e.kind() == ErrorKind::Io, "{e}");
}

#[test]
fn a_range_is_of_one_object_and_a_whole_one_is_as_it_is_now() {
    let server = Server::start();
    let objects = bucket(&server);
    server.put(PATH, noise(33 << 20), Some("v1"));
    let mut out = vec![0; 33 << 20];
    assert!(objects.get_range("k", 0, &mut out).unwrap() && out == noise(33 << 20));
    assert_eq!(server.take_log().iter().map(|r| r.range().unwrap().0).collect::<Vec<_>>(), [0, 32 << 20]);
    // Replaced between the two requests of one range.
    let (count, new) = (AtomicUsize::new(0), noise(100));
    server.handle(move |request| {
        let is_second = request.headers.contains_key("if-match") && count.fetch_add(1, SeqCst) == 0;
        is_second.then(|| {
            (
                206,
                vec!["ETag: \"v2\"".into(), "Content-Range: bytes 33554432-33554531/33554532".into()],
                new.clone(),
            )
        })
    });
    assert_eq!(objects.get_range("k", 0, &mut out).unwrap_err().kind(), ErrorKind::StaleSource);
    let (count, new) = (AtomicUsize::new(0), noise(1000));
    server.handle(move |request| match count.fetch_add(1, SeqCst) {
        0 => None,
        _ if request.headers.get("if-match").is_some_and(|tag| tag != "\"v2\"") => {
            Some((412, vec![], vec![]))
        }
        _ => Some((200, vec!["ETag: \"v2\"".into()], new.clone())),
    });
    server.fail([Fault::Truncate(500)]);
    assert!(objects.get("k", 64 << 20).unwrap().unwrap() == noise(1000));
}
