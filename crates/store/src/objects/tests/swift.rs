//! Objects of a Swift container, by its own protocol.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

use super::server::{Answer, Fault, Request, Server, hasty, md5_hex};
use crate::guard::{Gate, Purpose};
use crate::objects::{Body, Objects};
use crate::remote::objects_of;
use crate::remote::swift::Swift;

/// An account that has no containers yet; a token is good for `uses` requests.
fn account(address: String, uses: usize) -> impl Fn(&Request) -> Option<Answer> {
    let (tokens, used, has_box) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    move |request| {
        if request.target == "/auth/v1.0" {
            used.store(0, SeqCst);
            let token = tokens.fetch_add(1, SeqCst) + 1;
            let storage = format!("X-Storage-Url: {address}/v1/A");
            return Some((200, vec![storage, format!("X-Auth-Token: t{token}")], vec![]));
        }
        let known = format!("t{}", tokens.load(SeqCst));
        if request.headers["x-auth-token"] != known || used.fetch_add(1, SeqCst) >= uses {
            return Some((401, vec![], vec![]));
        }
        match (request.method.as_str(), request.path()) {
            ("PUT", "/v1/A/box") => {
                has_box.store(1, SeqCst);
                Some((201, vec![], vec![]))
            }
            _ if has_box.load(SeqCst) == 0 => Some((404, vec![], vec![])),
            ("PUT", _) if request.headers["etag"] != md5_hex(&request.body) => Some((422, vec![], vec![])),
            ("GET", "/v1/A/box") => {
                let is_first = !request.target.contains("marker=");
                let page = if is_first { r#"[{"name":"p/k","bytes":4,"hash":"h"}]"# } else { "[]" };
                Some((200, vec![], page.into()))
            }
            _ => None,
        }
    }
}

fn container(server: &Server) -> Arc<dyn Objects> {
    let service = Box::new(Swift::at(&server.url(""), "box"));
    objects_of(service, "p", &hasty(), &Gate::default(), Purpose::Member).unwrap()
}

#[test]
fn the_first_object_makes_the_container_and_tokens_are_renewed() {
    for is_created in [false, true] {
        let server = Server::start();
        server.handle(account(server.url(""), 3));
        let objects = container(&server);
        assert_eq!(objects.list("").unwrap(), []);
        assert_eq!(objects.get("k", 9).unwrap(), None);
        objects.delete("k").unwrap();
        match is_created {
            true => assert!(objects.create("k", b"four").unwrap()),
            false => objects.put("k", &b"four".to_vec()).unwrap(),
        }
        assert_eq!(server.kept("/v1/A/box/p/k").unwrap(), b"four");
        let log = server.take_log();
        let made = log.iter().filter(|r| r.method == "PUT" && r.path() == "/v1/A/box").count();
        let logins = log.iter().filter(|r| r.path() == "/auth/v1.0").count();
        assert_eq!((made, logins > 1), (1, true));
        assert!(!objects.create("k", b"five").unwrap());
        assert_eq!(
            objects.list("").unwrap().iter().map(|e| (&*e.key, e.size)).collect::<Vec<_>>(),
            [("k", 4)]
        );
        assert_eq!(objects.location("k"), "swift://box/p/k");
    }
}

#[test]
fn one_that_came_later_and_was_complete_before_is_told() {
    let server = Server::start();
    let known = account(server.url(""), 100);
    server.handle(move |request| match (request.method.as_str(), request.path()) {
        ("PUT", "/v1/A/box/p/k") => Some((202, vec!["X-Trans-Id: tx1".into()], vec![])),
        _ => known(request),
    });
    let objects = container(&server);
    assert!(objects.put_version("other", &b"x".to_vec()).unwrap().is_some());
    // Nobody says which one is there now.
    assert_eq!(objects.put_version("k", &b"mine".to_vec()).unwrap(), None);
    server.fail([Fault::Status(404, "")]);
    server.put("/v1/A/box/p/k", b"theirs".to_vec(), Some("t"));
    assert!(!objects.create("k", b"mine").unwrap());
}

#[test]
fn an_answer_that_is_not_the_stores_is_no_success() {
    let server = Server::start();
    let known = account(server.url(""), 100);
    let page = || b"<html><body>Please log in</body></html>".to_vec();
    server.handle(move |request| match (request.method.as_str(), request.path()) {
        ("PUT", "/v1/A/box/p/k") => Some((201, vec![], page())),
        ("PUT", "/v1/A/box/p/later") => Some((202, vec![], page())),
        _ => known(request),
    });
    let objects = container(&server);
    for (key, said) in [("k", "201 Created without the ETag"), ("later", "202 Accepted without the ETag")] {
        let e = objects.put(key, &b"x".to_vec()).unwrap_err();
        assert!(e.kind() == ErrorKind::Io && e.message().contains(said), "{e}");
    }
}

/// What a server tells of itself.
fn links_of(info: &'static str) -> (Server, Arc<dyn Objects>) {
    let server = Server::start();
    let known = account(server.url(""), 100);
    let kept = Mutex::new(Vec::new());
    server.handle(move |request| match (request.method.as_str(), request.path()) {
        ("POST", "/v1/A/box") => {
            let key = &request.headers["x-container-meta-temp-url-key"];
            *kept.lock().unwrap() = vec![format!("X-Container-Meta-Temp-URL-Key: {key}")];
            Some((204, vec![], vec![]))
        }
        ("HEAD", "/v1/A/box") => Some((204, kept.lock().unwrap().clone(), vec![])),
        ("GET", "/info") if info.is_empty() => Some((403, vec![], vec![])),
        ("GET", "/info") => Some((200, vec![], info.into())),
        _ => known(request),
    });
    let objects = container(&server);
    (server, objects)
}

#[test]
fn a_container_gets_a_key_for_links_once() {
    let (server, objects) =
        links_of(r#"{"swift": {}, "tempurl": {"allowed_digests": ["sha512", "sha256"]}}"#);
    let links = [60, 120].map(|time| objects.link("k", Duration::from_secs(time)).unwrap());
    let posts: Vec<Request> = server.take_log().into_iter().filter(|r| r.method == "POST").collect();
    let [post] = &posts[..] else { panic!("{} keys", posts.len()) };
    assert_eq!(post.headers["x-container-meta-temp-url-key"].len(), 64);
    let until = |link: &crate::objects::Link| {
        let url = url::Url::parse(&link.url).unwrap();
        assert_eq!(url.path(), "/v1/A/box/p/k");
        let value = |name: &str| url.query_pairs().find(|(n, _)| n == name).unwrap().1.into_owned();
        assert_eq!(value("temp_url_sig").len(), 64);
        value("temp_url_expires").parse::<u64>().unwrap()
    };
    let later = until(&links[1]) - until(&links[0]);
    assert!((60..70).contains(&later) && links[0].expires, "{later}");
}

#[test]
fn the_sum_of_a_link_is_one_that_the_server_takes() {
    for (info, digits) in [
        ("", 64),
        (r#"{"tempurl": {}}"#, 40),
        (r#"{"tempurl": {"allowed_digests": ["sha1"]}}"#, 40),
        (r#"{"tempurl": {"allowed_digests": ["sha512"]}}"#, 128),
    ] {
        let link = links_of(info).1.link("k", Duration::from_secs(60)).unwrap();
        let sum = link.url.split("temp_url_sig=").nth(1).unwrap().split('&').next().unwrap();
        assert_eq!(sum.len(), digits, "{info}");
    }
    for (info, said) in [
        (r#"{"swift": {}}"#, "makes no temporary addresses"),
        (r#"{"tempurl": {"allowed_digests": ["sha3"]}}"#, "signs by sha3"),
    ] {
        let e = links_of(info).1.link("k", Duration::from_secs(60)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.message().contains(said), "{e}");
    }
}

/// Zeros, which nobody holds.
struct Zeros {
    size: u64,
    longest: Mutex<usize>,
    /// Reads that succeed.
    reads: AtomicUsize,
}

impl Zeros {
    fn new(size: u64, reads: usize) -> Self {
        Self { size, longest: Mutex::default(), reads: AtomicUsize::new(reads) }
    }
}

impl Body for Zeros {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut longest = self.longest.lock().unwrap();
        *longest = out.len().max(*longest);
        assert!(offset + out.len() as u64 <= self.size);
        if self.reads.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err() {
            return Err(Error::new(ErrorKind::Io, "the disk is gone"));
        }
        out.fill(0);
        Ok(())
    }
}

#[test]
fn a_long_body_is_read_while_it_goes_and_too_long_a_one_is_refused() {
    let server = Server::start();
    server.handle(account(server.url(""), 100));
    let objects = container(&server);
    let size = (20 << 20) + 3;
    let body = Zeros::new(size, usize::MAX);
    objects.put("k", &body).unwrap();
    server.fail([Fault::Half, Fault::Lost, Fault::Status(503, "")]);
    objects.put("k", &body).unwrap();
    assert_eq!(*body.longest.lock().unwrap(), 1 << 20);
    assert!(
        server.kept("/v1/A/box/p/k").is_some_and(|k| k.len() as u64 == size && k.iter().all(|b| *b == 0))
    );
    server.take_log();
    // While it is looked through, and while it is sent.
    for reads in [10, 21 + 10] {
        let e = objects.put("other", &Zeros::new(size, reads)).unwrap_err();
        assert_eq!((e.message(), e.kind()), ("the disk is gone", ErrorKind::Io));
        assert_eq!((server.take_log().len(), server.kept("/v1/A/box/p/other")), (0, None));
    }
    let e = objects.put("k", &Zeros::new((5 << 30) + 1, usize::MAX)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("would have 5368709121 bytes, and 5368709120 can be put there"), "{e}");
    assert_eq!(server.take_log().len(), 0);
}
