//! Trees of remote objects: over plain HTTP, S3 and Swift, each as a small server of this test speaks it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use server::{Answer, Fault, Request, Server, hasty, noise, ranged};
use sieva_store::{ObjectTree, Span, Want, open, open_tree};
use sieva_types::{Error, ErrorKind};

fn get(tree: &dyn ObjectTree, key: &str, span: Span) -> Result<Option<Vec<u8>>, Error> {
    let mut out = vec![9];
    tree.get(key, &span, &mut out).map(|there| there.then_some(out))
}

#[test]
fn spans_of_objects_over_http() {
    let server = Server::start();
    server.put("/z/a/0.0", b"0123456789".to_vec(), Some("v1"));
    server.put("/z/empty", vec![], Some("v1"));
    let tree = open_tree(&server.url("/z/"), &hasty()).unwrap();
    assert!(tree.is_remote());
    assert_eq!(tree.list("").unwrap(), None);
    let ten = b"0123456789".to_vec();
    assert_eq!(get(&*tree, "a/0.0", Span::All).unwrap(), Some(ten.clone()));
    assert_eq!(get(&*tree, "a/0.0", Span::Range(2..5)).unwrap(), Some(b"234".to_vec()));
    assert_eq!(get(&*tree, "a/0.0", Span::Last(3)).unwrap(), Some(b"789".to_vec()));
    assert_eq!(get(&*tree, "a/0.0", Span::Last(30)).unwrap(), Some(ten));
    assert_eq!(get(&*tree, "a/0.0", Span::Last(0)).unwrap(), Some(vec![]));
    assert_eq!(get(&*tree, "empty", Span::All).unwrap(), Some(vec![]));
    assert_eq!(get(&*tree, "empty", Span::Last(5)).unwrap(), Some(vec![]));
    for span in [Span::All, Span::Range(0..1), Span::Last(1)] {
        assert_eq!(get(&*tree, "a/0.1", span).unwrap(), None);
    }
    for range in [8..11, 100..110, 0..u64::MAX] {
        let kind = get(&*tree, "a/0.0", Span::Range(range.clone())).unwrap_err().kind();
        let expected = if range.end == u64::MAX { ErrorKind::MemoryLimit } else { ErrorKind::CorruptFile };
        assert_eq!(kind, expected, "{range:?}");
    }
    for key in ["../x", "a/../../x", "/etc/passwd", "", "."] {
        assert_eq!(get(&*tree, key, Span::All).unwrap_err().kind(), ErrorKind::LinkRefused, "{key}");
    }
    assert_eq!(tree.open("a/0.0").unwrap().unwrap().len(), 10);
    assert!(tree.open("a/0.1").unwrap().is_none());
}

#[test]
fn ranges_of_one_object_are_of_one_version() {
    let server = Server::start();
    server.put("/z/shard", noise(100_000), Some("v1"));
    let tree = open_tree(&server.url("/z"), &hasty()).unwrap();
    get(&*tree, "shard", Span::Last(100)).unwrap();
    server.put("/z/shard", vec![7; 100_000], Some("v2"));
    for span in [Span::Range(0..10), Span::Last(10), Span::All] {
        assert_eq!(get(&*tree, "shard", span).unwrap_err().kind(), ErrorKind::StaleSource);
    }
}

#[test]
fn announced_objects_are_fetched_at_once_and_given_once() {
    let server = Server::start();
    for i in 0..12 {
        server.put(&format!("/z/c/{i}"), vec![i; 1000], Some("v1"));
    }
    server.put("/z/shard", noise(100_000), Some("v1"));
    let tree = open_tree(&server.url("/z"), &hasty()).unwrap();
    server.delay(Duration::from_millis(50));
    let mut wants: Vec<Want> = (0..13).map(|i| Want { key: format!("c/{i}"), span: Span::All }).collect();
    wants.extend([10..20, 5000..6000].map(|r| Want { key: "shard".into(), span: Span::Range(r) }));
    tree.will_need(&wants);
    for i in 0..12 {
        assert_eq!(get(&*tree, &format!("c/{i}"), Span::All).unwrap(), Some(vec![i; 1000]));
    }
    assert_eq!(get(&*tree, "c/12", Span::All).unwrap(), None);
    assert_eq!(get(&*tree, "shard", Span::Range(5000..6000)).unwrap().unwrap(), noise(6000)[5000..]);
    assert_eq!(get(&*tree, "shard", Span::Range(10..20)).unwrap().unwrap(), noise(20)[10..]);
    assert!(server.most_busy() > 4, "{}", server.most_busy());
    let log: Vec<_> = server.take_log().into_iter().map(|r| r.target).collect();
    assert_eq!(log.len(), 14, "{log:?} {:?}", tree.counters().snapshot());
    server.put("/z/c/3", b"new".to_vec(), Some("v2"));
    assert_eq!(get(&*tree, "c/3", Span::All).unwrap(), Some(b"new".to_vec()));
}

/// Runs the ignored test `name` of this file as a child, where the environment can be set without harm to others.
fn child(name: &str, variables: &[(&str, &str)]) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    let inherited = std::env::vars().map(|(name, _)| name);
    for name in inherited.filter(|n| ["AWS_", "ST_", "OS_"].iter().any(|p| n.starts_with(p))) {
        command.env_remove(name);
    }
    let done = command.envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// A bucket of 25 objects, listed ten at a time.
fn bucket(request: &Request) -> Option<Answer> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let missing = b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>".to_vec();
    if path != "/data" {
        let number: Option<usize> = path.strip_prefix("/data/set%201/c/").and_then(|n| n.parse().ok());
        let bytes = number.filter(|n| *n < 25).map(|n| noise(100 + n));
        let Some(bytes) = bytes else {
            return Some((404, vec!["Content-Type: application/xml".into()], missing));
        };
        return Some(match request.headers.get("range") {
            Some(range) => ranged(range, bytes, vec!["ETag: \"e\"".into()], false),
            None => (200, vec!["ETag: \"e\"".into()], bytes),
        });
    }
    assert!(query.contains("list-type=2") && query.contains("prefix=set%201%2Fc%2F"), "{query}");
    let from: usize = query
        .split("continuation-token=at%2B")
        .nth(1)
        .map_or(0, |t| t.split('&').next().unwrap().parse().unwrap());
    let mut keys: Vec<usize> = (0..25).collect();
    keys.sort_by_key(|n| n.to_string());
    let mut xml =
        "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
            .to_owned();
    for n in keys.iter().skip(from).take(10) {
        xml +=
            &format!("<Contents><Key>set 1/c/{n}</Key><Size>{}</Size><ETag>\"e\"</ETag></Contents>", 100 + n);
    }
    if from + 10 < 25 {
        xml += &format!("<NextContinuationToken>at+{}</NextContinuationToken>", from + 10);
    }
    Some((200, vec![], (xml + "</ListBucketResult>").into_bytes()))
}

#[test]
fn a_bucket_is_listed_and_read() {
    let server = Server::start();
    server.handle(bucket);
    let endpoint = server.url("");
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "s3cret")];
    child("child_of_a_bucket", &[("AWS_ENDPOINT_URL", &endpoint)]);
    let log = server.take_log();
    assert!(log.iter().all(|r| !r.headers.contains_key("authorization")), "anonymous without keys");
    assert_eq!(log.iter().filter(|r| r.target.contains("list-type")).count(), 3);
    child("child_of_a_bucket", &[("AWS_ENDPOINT_URL", &endpoint), keys[0], keys[1]]);
    for request in server.take_log() {
        let signature = &request.headers["authorization"];
        assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{signature}");
        assert!(signature.contains("/us-east-1/s3/aws4_request"), "{signature}");
        assert!(!signature.contains("s3cret"));
    }
}

/// The child of the test above.
#[test]
#[ignore = "is run by a_bucket_is_listed_and_read"]
fn child_of_a_bucket() {
    let tree = open_tree("s3://data/set 1", &hasty()).unwrap();
    let entries = tree.list("c/").unwrap().unwrap();
    assert_eq!(entries.len(), 25);
    assert!(entries.windows(2).all(|w| w[0].key < w[1].key));
    assert_eq!((entries[2].key.as_str(), entries[2].size), ("c/10", 110));
    assert_eq!(get(&*tree, "c/7", Span::Range(3..50)).unwrap().unwrap(), noise(50)[3..]);
    assert_eq!(get(&*tree, "c/77", Span::All).unwrap(), None);
    let object = open("s3://data/set 1/c/24", &hasty()).unwrap();
    assert_eq!((object.len(), object.name()), (124, "s3://data/set 1/c/24"));
    let e = open("s3://data/set 1/nothing", &hasty()).map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::FileNotFound);
    assert!(e.message().contains("NoSuchKey"), "{e}");
}

/// An account whose tokens are good for three requests each.
fn account(address: String) -> impl Fn(&Request) -> Option<Answer> {
    let (tokens, uses) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    move |request| {
        if request.target == "/auth/v1.0" {
            let is_known =
                request.headers["x-auth-user"] == "me" && request.headers["x-auth-key"] == "s3cret";
            let token = tokens.fetch_add(1, SeqCst) + 1;
            uses.store(0, SeqCst);
            let storage = format!("X-Storage-Url: {address}/v1/A");
            return Some(match is_known {
                true => (200, vec![storage, format!("X-Auth-Token: t{token}")], vec![]),
                false => (401, vec![], vec![]),
            });
        }
        let expected = format!("t{}", tokens.load(SeqCst));
        if request.headers["x-auth-token"] != expected || uses.fetch_add(1, SeqCst) >= 3 {
            return Some((401, vec![], vec![]));
        }
        let listing = request.target.strip_prefix("/v1/A/box?format=json&prefix=p%2F");
        if let Some(rest) = listing {
            let json = match rest {
                "" => r#"[{"name":"p/a","bytes":4,"hash":"h"},{"name":"p/b","bytes":5,"hash":"i"}]"#,
                "&marker=p%2Fb" => r#"[{"name":"p/c","bytes":6,"hash":"j"}]"#,
                _ => "[]",
            };
            return Some((200, vec![], json.into()));
        }
        let name = request.target.strip_prefix("/v1/A/box/p/")?;
        let bytes = format!("object {name}").into_bytes();
        Some(match request.headers.get("range") {
            Some(range) => ranged(range, bytes, vec!["Etag: h".into()], false),
            None => (200, vec!["Etag: h".into()], bytes),
        })
    }
}

#[test]
fn a_container_is_listed_and_read_and_tokens_are_renewed() {
    let server = Server::start();
    server.handle(account(server.url("")));
    let auth = server.url("/auth/v1.0");
    child("child_of_a_container", &[("ST_AUTH", &auth), ("ST_USER", "me"), ("ST_KEY", "s3cret")]);
    let log = server.take_log();
    let logins = log.iter().filter(|r| r.target == "/auth/v1.0").count();
    assert!((4..=6).contains(&logins), "{logins}");
    child("child_that_is_refused", &[("ST_AUTH", &auth), ("ST_USER", "me"), ("ST_KEY", "wr0ng")]);
    child("child_that_is_refused", &[]);
    let (url, token) = (server.url("/v1/A"), "0ld");
    child("child_that_is_refused", &[("OS_STORAGE_URL", &url), ("OS_AUTH_TOKEN", token)]);
}

/// The child of the test above.
#[test]
#[ignore = "is run by a_container_is_listed_and_read_and_tokens_are_renewed"]
fn child_of_a_container() {
    let tree = open_tree("swift://box/p", &hasty()).unwrap();
    let entries = tree.list("").unwrap().unwrap();
    assert_eq!(entries.iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    for i in 0..5 {
        let object = open(&format!("swift://box/p/{i}"), &hasty()).unwrap();
        assert_eq!((object.len(), object.name()), (8, format!("swift://box/p/{i}").as_str()));
        let said = get(&*tree, &i.to_string(), Span::Range(0..8)).unwrap().unwrap();
        assert_eq!(said, format!("object {i}").into_bytes());
    }
}

/// A child of the test above.
#[test]
#[ignore = "is run by a_container_is_listed_and_read_and_tokens_are_renewed"]
fn child_that_is_refused() {
    let e = open("swift://box/p/a", &hasty()).map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{e}");
    assert!(e.hint_text().unwrap().contains("ST_USER"), "{e}");
    assert!(!format!("{e:?}").contains("wr0ng") && !format!("{e:?}").contains("0ld"), "{e:?}");
}

#[test]
fn local_places_go_the_same_way() {
    let dir = std::env::temp_dir().join(format!("sieva-open-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("a b"), b"0123").unwrap();
    let url = format!("file://{}/a%20b", dir.display());
    for location in [dir.join("a b").display().to_string(), url] {
        let object = open(&location, &hasty()).unwrap();
        assert!(!object.is_remote() && object.len() == 4, "{location}");
    }
    let tree = open_tree(dir.to_str().unwrap(), &hasty()).unwrap();
    assert_eq!(tree.list("").unwrap().unwrap().len(), 1);
    let e = open("ftp://h/f", &hasty()).map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_faulty_server_of_a_tree_is_sat_out() {
    let server = Server::start();
    server.put("/z/a", noise(50_000), Some("v1"));
    let tree = open_tree(&server.url("/z"), &hasty()).unwrap();
    server.fail([Fault::Truncate(10_000), Fault::Status(503, "")]);
    assert_eq!(get(&*tree, "a", Span::All).unwrap().unwrap(), noise(50_000));
    server.fail([Fault::Truncate(10), Fault::Reset]);
    assert_eq!(get(&*tree, "a", Span::Last(100)).unwrap().unwrap(), noise(50_000)[49_900..]);
}
