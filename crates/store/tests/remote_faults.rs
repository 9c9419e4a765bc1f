//! Failures of servers and networks: what passes is sat out, what does not is told, and no secret is.
#![allow(clippy::unwrap_used, clippy::panic)]

mod server;

use std::time::{Duration, Instant};

use server::{Fault, Server, hasty, noise};
use sieva_store::{RangedRead, RemoteOptions, open};
use sieva_types::{Error, ErrorKind};

fn read(object: &dyn RangedRead, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; len];
    object.read_exact_at(offset, &mut out).map(|()| out)
}

fn refusal(url: &str) -> Error {
    open(url, &hasty()).map(|_| ()).unwrap_err()
}

#[test]
fn what_passes_is_sat_out() {
    let bytes = noise(1 << 20);
    let cases: [(&str, Vec<Fault>); 6] = [
        ("503", vec![Fault::Status(503, ""), Fault::Status(500, "")]),
        ("429", vec![Fault::Status(429, "Retry-After: 0"), Fault::Status(408, "")]),
        ("reset", vec![Fault::Reset, Fault::Reset]),
        ("nothing", vec![Fault::Truncate(0)]),
        ("slow", vec![Fault::Slow(Duration::from_secs(3))]),
        ("mixed", vec![Fault::Truncate(100), Fault::Status(502, ""), Fault::Truncate(200)]),
    ];
    for (case, faults) in cases {
        let server = Server::start();
        server.put("/f", bytes.clone(), Some("v1"));
        server.fail(faults.clone());
        let read_timeout = Duration::from_secs(if case == "slow" { 1 } else { 30 });
        let options = RemoteOptions { read_timeout, ..hasty() };
        let object = open(&server.url("/f"), &options).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_eq!(read(&*object, 10, 100).unwrap(), bytes[10..110], "{case}");
        server.fail(faults.clone());
        assert_eq!(read(&*object, 500_000, 200_000).unwrap(), bytes[500_000..700_000], "{case}");
        let retries = object.counters().snapshot().retries;
        // The client itself repeats on a new connection what an idle one lost.
        let least = if case == "reset" { 2 } else { 2 * faults.len() as u64 };
        assert!(retries >= least, "{case}: {retries}");
    }
}

#[test]
fn a_body_that_is_cut_off_goes_on_where_it_ended() {
    let server = Server::start();
    let bytes = noise(1 << 20);
    server.put("/f", bytes.clone(), Some("v1"));
    let object = open(&server.url("/f"), &hasty()).unwrap();
    server.take_log();
    server.fail([Fault::Truncate(60_000), Fault::Truncate(50_000)]);
    assert_eq!(read(&*object, 200_000, 200_000).unwrap(), bytes[200_000..400_000]);
    let ranges: Vec<_> = server.take_log().iter().map(|r| r.range().unwrap()).collect();
    assert_eq!(ranges, [(200_000, 399_999), (260_000, 399_999), (310_000, 399_999)]);
    assert_eq!(object.counters().snapshot().bytes_read, 65_536 + 200_000);
}

#[test]
fn a_line_that_breaks_from_time_to_time_brings_a_long_range() {
    let server = Server::start();
    let bytes = noise(12 << 20);
    server.put("/f", bytes.clone(), Some("v1"));
    let object = open(&server.url("/f"), &RemoteOptions { retries: 2, ..hasty() }).unwrap();
    server.take_log();
    let mut faults = vec![Fault::Truncate(1_500_000); 4];
    faults.push(Fault::Status(503, ""));
    server.fail(faults);
    object.will_need(std::slice::from_ref(&(1_000_000..8_000_000)));
    assert!(read(&*object, 1_000_000, 7_000_000).unwrap() == bytes[1_000_000..8_000_000], "bytes differ");
    let starts: Vec<_> = server.take_log().iter().map(|r| r.range().unwrap().0).collect();
    assert_eq!(starts, [1_000_000, 2_500_000, 4_000_000, 5_500_000, 7_000_000, 7_000_000]);
}

#[test]
fn what_does_not_pass_ends_in_a_clear_error() {
    let server = Server::start();
    server.put("/f", noise(100_000), Some("v1"));
    server.always(Fault::Status(503, ""));
    let e = refusal(&server.url("/f?X-Amz-Signature=s3cret"));
    assert_eq!(e.kind(), ErrorKind::Io);
    let name = server.url("/f?...");
    assert!(e.message().starts_with(&format!("cannot read '{name}': the server answers 503")), "{e}");
    assert!(e.message().contains("gave up after 4 attempts"), "{e}");
    assert!(e.hint_text().unwrap().contains("retries"), "{e}");
    assert_eq!(server.take_log().len(), 4);
    let down = Server::start().url("/f");
    let e = refusal(&down);
    assert_eq!(e.kind(), ErrorKind::Io);
    assert!(e.message().contains("cannot connect"), "{e}");
}

#[test]
fn one_that_is_down_for_long_is_given_up_at_the_deadline() {
    let server = Server::start();
    server.put("/f", noise(100_000), Some("v1"));
    server.always(Fault::Status(503, "Retry-After: 3600"));
    let options = RemoteOptions { deadline: Duration::from_millis(300), retries: 1000, ..hasty() };
    let started = Instant::now();
    let e = open(&server.url("/f"), &options).map(|_| ()).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10), "the server's wish was followed");
    assert!(e.message().contains("gave up after"), "{e}");
}

#[test]
fn a_read_fails_for_all_who_wait_and_the_next_one_tries_anew() {
    let server = Server::start();
    let bytes = noise(1 << 20);
    server.put("/f", bytes.clone(), Some("v1"));
    let object = open(&server.url("/f"), &RemoteOptions { retries: 0, ..hasty() }).unwrap();
    server.fail([Fault::Status(503, "")]);
    object.will_need(std::slice::from_ref(&(500_000..600_000)));
    let first = read(&*object, 500_000, 10);
    assert!(first.is_ok() || first.unwrap_err().kind() == ErrorKind::Io);
    assert_eq!(read(&*object, 500_000, 100_000).unwrap(), bytes[500_000..600_000]);
}

#[test]
fn a_replaced_object_is_stale_and_never_mixed() {
    for tag in [Some("v1"), Some("W/1"), None] {
        let server = Server::start();
        server.put("/f", noise(1 << 20), tag);
        let object = open(&server.url("/f"), &hasty()).unwrap();
        object.check_unchanged().unwrap();
        server.put("/f", vec![7; 900_000], tag.map(|_| "v2"));
        let e = read(&*object, 500_000, 100_000).unwrap_err();
        assert_eq!((e.kind(), e.hint_text()), (ErrorKind::StaleSource, Some("open it again")));
        assert_eq!(object.check_unchanged().unwrap_err().kind(), ErrorKind::StaleSource);
        server.put("/f", vec![7; 100], tag.map(|_| "v3"));
        assert_eq!(read(&*object, 500_000, 100_000).unwrap_err().kind(), ErrorKind::StaleSource);
        server.remove("/f");
        assert_eq!(read(&*object, 500_000, 100_000).unwrap_err().kind(), ErrorKind::StaleSource);
    }
}

#[test]
fn a_replacement_between_two_attempts_is_noticed() {
    let server = Server::start();
    server.put("/f", noise(1 << 20), Some("v1"));
    let object = open(&server.url("/f"), &hasty()).unwrap();
    server.fail([Fault::Truncate(1000), Fault::Slow(Duration::from_millis(50))]);
    let swap = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&*object, 500_000, 100_000));
        while server.take_log().iter().all(|r| r.range().is_none_or(|(a, _)| a != 500_000)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.put("/f", vec![7; 1 << 20], Some("v2"));
        reader.join().unwrap()
    });
    // Either all came before the replacement, or none of it is given.
    assert!(swap.is_err_and(|e| e.kind() == ErrorKind::StaleSource));
}

#[test]
fn refusals_say_what_to_do() {
    let server = Server::start();
    for (status, kind) in [
        (401, ErrorKind::PermissionDenied),
        (403, ErrorKind::PermissionDenied),
        (404, ErrorKind::FileNotFound),
        (410, ErrorKind::FileNotFound),
        (400, ErrorKind::Io),
        (501, ErrorKind::Io),
    ] {
        server.take_log();
        server.fail([Fault::Status(status, "")]);
        let e = refusal(&server.url("/f"));
        assert_eq!(e.kind(), kind, "{status}: {e}");
        assert!(e.message().contains(&status.to_string()) && e.message().contains("/f'"), "{e}");
        assert_eq!(server.take_log().len(), 1, "{status} is not repeated");
    }
}

#[test]
fn no_message_has_a_secret() {
    let server = Server::start();
    let url = |user: &str| format!("http://{user}@{}/f?sig=s3cret&X-Amz-Signature=s3cret", server.address);
    let mut said = Vec::new();
    for fault in
        [Fault::Status(403, ""), Fault::Status(404, ""), Fault::WrongRange, Fault::Redirect("/g?s3cret")]
    {
        server.put("/f", noise(100_000), None);
        server.fail([fault]);
        said.push(refusal(&url("me:s3cret")));
    }
    server.always(Fault::Reset);
    said.push(refusal(&url("me:s3cret")));
    server.always(Fault::Redirect("/f?s3cret"));
    said.push(refusal(&url("s3cret")));
    for e in said {
        assert!(!format!("{e} {:?} {e:?}", e.hint_text()).contains("s3cret"), "{e}");
        assert!(e.message().contains("/f?...'"), "{e}");
    }
}

#[test]
fn user_query_and_redirects_reach_the_server() {
    let server = Server::start();
    let bytes = noise(200_000);
    server.put("/real", bytes.clone(), Some("v1"));
    server.handle(|request| {
        let to = "Location: /real?b=2".to_owned();
        request.target.starts_with("/moved").then(|| (302, vec![to], vec![]))
    });
    let url = format!("http://me:pw@{}/moved?a=1", server.address);
    let object = open(&url, &hasty()).unwrap();
    assert_eq!(read(&*object, 100_000, 1000).unwrap(), bytes[100_000..101_000]);
    let log = server.take_log();
    assert_eq!(log.iter().map(|r| r.target.as_str()).collect::<Vec<_>>()[..2], ["/moved?a=1", "/real?b=2"]);
    assert_eq!(log[0].headers["authorization"], "Basic bWU6cHc=");
    assert_eq!(log[1].range(), Some((0, 65535)));
}

#[test]
fn nonsense_of_a_server_is_an_error() {
    let server = Server::start();
    server.put("/f", noise(100_000), Some("v1"));
    server.fail([Fault::WrongRange]);
    let e = refusal(&server.url("/f"));
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("other bytes (1-65536)"), "{e}");
    for range in ["bytes 0-65535/*", "bytes 5-3/10", "x", "bytes 0-18446744073709551615/18446744073709551615"]
    {
        let header = format!("Content-Range: {range}");
        server.handle(move |_| Some((206, vec![header.clone()], vec![0; 65_536])));
        assert_eq!(refusal(&server.url("/f")).kind(), ErrorKind::Unsupported, "{range}");
    }
}

#[test]
fn a_total_length_that_no_memory_holds_does_no_harm() {
    let server = Server::start();
    server.handle(|request| {
        let (first, last) = request.range()?;
        let len = (last - first + 1).min(1 << 20) as usize;
        let end = first + len as u64 - 1;
        let header = format!("Content-Range: bytes {first}-{end}/{}", u64::MAX);
        Some((206, vec![header, "ETag: \"v1\"".into()], vec![1; len]))
    });
    let object = open(&server.url("/huge"), &hasty()).unwrap();
    assert_eq!(object.len(), u64::MAX);
    assert_eq!(read(&*object, u64::MAX - 100, 50).unwrap(), vec![1; 50]);
    object.will_need(&[0..u64::MAX, 5..u64::MAX - 1]);
    assert_eq!(read(&*object, 1 << 40, 10).unwrap(), vec![1; 10]);
}
