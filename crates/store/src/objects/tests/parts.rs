//! Long bodies, put in parts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use sieva_types::{Error, ErrorKind, Result};

use super::bucket_within;
use super::server::{Answer, Fault, Request, Server, hasty, md5_hex};
use crate::RemoteOptions;
use crate::guard::Gate;
use crate::objects::Body;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 70 * MIB + 5;

/// A body that is made when it is read; the last byte may be out of reach.
struct Made<'a> {
    fails: bool,
    longest: AtomicU64,
    /// A server whose next requests fail, from the first read on.
    faults: Option<(&'a Server, Vec<Fault>)>,
}

impl Made<'_> {
    fn new(fails: bool) -> Self {
        Self { fails, longest: AtomicU64::new(0), faults: None }
    }
}

fn byte(at: u64) -> u8 {
    (at / 7 + at / MIB) as u8
}

impl Body for Made<'_> {
    fn size(&self) -> u64 {
        SIZE
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.longest.fetch_max(out.len() as u64, SeqCst);
        if let (0, Some((server, faults))) = (offset, &self.faults) {
            server.fail(faults.clone());
        }
        let end = offset + out.len() as u64;
        if end > SIZE || (self.fails && end == SIZE) {
            return Err(Error::new(ErrorKind::Io, "the disk is gone"));
        }
        (offset..).zip(out).for_each(|(at, out)| *out = byte(at));
        Ok(())
    }
}

#[derive(Default)]
struct Uploads {
    parts: BTreeMap<u32, Vec<u8>>,
    whole: Option<(Vec<u8>, String)>,
    aborted: usize,
}

/// A server that puts parts together. It finishes an upload once, and does not know it then.
fn speak(uploads: &Mutex<Uploads>, request: &Request) -> Option<Answer> {
    let mut uploads = uploads.lock().unwrap();
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    let xml = |text: String| Some((200, vec!["Content-Type: application/xml".into()], text.into_bytes()));
    match request.method.as_str() {
        "POST" if query == "uploads=" => xml("<R><UploadId>u-1</UploadId></R>".into()),
        "PUT" if query.contains("uploadId=u-1") => {
            let number = query.strip_prefix("partNumber=")?.split('&').next()?.parse().ok()?;
            uploads.parts.insert(number, request.body.clone());
            Some((200, vec![format!("ETag: \"{}\"", md5_hex(&request.body))], vec![]))
        }
        "POST" if query == "uploadId=u-1" => {
            if uploads.whole.is_some() {
                return Some((404, vec![], vec![]));
            }
            let told = String::from_utf8(request.body.clone()).unwrap();
            let sums: Vec<String> = uploads.parts.values().map(|part| md5_hex(part)).collect();
            let mut at = 0;
            for (number, sum) in uploads.parts.keys().zip(&sums) {
                let part = format!("<PartNumber>{number}</PartNumber><ETag>\"{sum}\"</ETag>");
                at += told[at..].find(&part).unwrap();
            }
            let raw: Vec<u8> = sums
                .concat()
                .as_bytes()
                .chunks(2)
                .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
                .collect();
            let tag = format!("{}-{}", md5_hex(&raw), sums.len());
            uploads.whole =
                Some((std::mem::take(&mut uploads.parts).into_values().flatten().collect(), tag.clone()));
            xml(format!("<R><ETag>&quot;{tag}&quot;</ETag></R>"))
        }
        "DELETE" if query == "uploadId=u-1" => {
            uploads.aborted += 1;
            Some((204, vec![], vec![]))
        }
        "GET" => {
            let (bytes, tag) = uploads.whole.as_ref()?;
            let headers =
                vec![format!("ETag: \"{tag}\""), format!("Content-Range: bytes 0-0/{}", bytes.len())];
            Some((206, headers, bytes[..1].to_vec()))
        }
        _ => None,
    }
}

fn started() -> (Server, Arc<Mutex<Uploads>>) {
    let (server, uploads) = (Server::start(), Arc::<Mutex<Uploads>>::default());
    let shared = Arc::clone(&uploads);
    server.handle(move |request| speak(&shared, request));
    (server, uploads)
}

fn is_whole(uploads: &Mutex<Uploads>) -> bool {
    let uploads = uploads.lock().unwrap();
    let Some((bytes, _)) = &uploads.whole else { return false };
    bytes.len() as u64 == SIZE && (0..).zip(bytes).all(|(at, found)| *found == byte(at))
}

/// What readers of the whole are told.
fn version_of(uploads: &Mutex<Uploads>) -> Option<String> {
    let uploads = uploads.lock().unwrap();
    uploads.whole.as_ref().map(|(_, tag)| format!("\"{tag}\" {SIZE}"))
}

#[test]
fn a_long_body_goes_in_parts_of_which_few_are_held() {
    for parallel in [1, 16] {
        let (server, uploads) = started();
        let objects = bucket_within(&server, &RemoteOptions { parallel, ..hasty() }, &Gate::default());
        let body = Made::new(false);
        let version = objects.put_version("k", &body).unwrap();
        assert!(is_whole(&uploads));
        assert_eq!(version, version_of(&uploads));
        assert_eq!((body.longest.load(SeqCst), uploads.lock().unwrap().aborted), (16 * MIB, 0));
        assert_eq!(server.take_log().len(), 1 + 5 + 1);
        assert!(server.most_busy() <= parallel.min(4), "{}", server.most_busy());
    }
}

#[test]
fn parts_and_answers_that_get_lost_are_sent_again() {
    let (server, uploads) = started();
    let objects = bucket_within(&server, &RemoteOptions { parallel: 1, ..hasty() }, &Gate::default());
    // The beginning; then a part that is cut off, whose answer is lost, and that is refused for now.
    server.fail([Fault::Lost, Fault::Status(503, "")]);
    let faults = Some((&server, vec![Fault::Half, Fault::Lost, Fault::Status(500, "")]));
    objects.put("k", &Made { faults, ..Made::new(false) }).unwrap();
    assert!(is_whole(&uploads));
    // The end, twice: the second answer says that there is no such upload.
    let shared = Arc::clone(&uploads);
    *shared.lock().unwrap() = Uploads::default();
    let objects = bucket_within(&server, &RemoteOptions { parallel: 1, ..hasty() }, &Gate::default());
    let ends = Mutex::new(0);
    server.handle(move |request| {
        let answer = speak(&shared, request);
        let is_end = request.method == "POST" && request.target.contains("uploadId=");
        let mut ends = ends.lock().unwrap();
        *ends += usize::from(is_end);
        let failed =
            || (200, vec![], b"<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>".to_vec());
        if is_end && *ends == 1 { Some(failed()) } else { answer }
    });
    let version = objects.put_version("k", &Made::new(false)).unwrap();
    assert!(is_whole(&uploads));
    assert_eq!(version, version_of(&uploads));
    assert_eq!(uploads.lock().unwrap().aborted, 0);
}

#[test]
fn parts_of_what_fails_are_removed() {
    let (server, uploads) = started();
    let objects = bucket_within(&server, &hasty(), &Gate::default());
    let e = objects.put("k", &Made::new(true)).unwrap_err();
    assert_eq!((e.message(), uploads.lock().unwrap().aborted), ("the disk is gone", 1));
    assert!(uploads.lock().unwrap().whole.is_none());
    let shared = Arc::clone(&uploads);
    server.handle(move |request| match request.method.as_str() {
        "PUT" => Some((403, vec![], vec![])),
        _ => speak(&shared, request),
    });
    let e = objects.put("k", &Made::new(false)).unwrap_err();
    assert_eq!((e.kind(), uploads.lock().unwrap().aborted), (ErrorKind::PermissionDenied, 2));
    let shared = Arc::clone(&uploads);
    server.handle(move |request| {
        let other = format!("<R><ETag>\"{}-5\"</ETag></R>", "0".repeat(32)).into_bytes();
        let is_end = request.method == "POST" && request.target.contains("uploadId=");
        if is_end { Some((200, vec![], other)) } else { speak(&shared, request) }
    });
    let e = objects.put("k", &Made::new(false)).unwrap_err();
    assert!(e.message().contains("made other bytes of the parts than were sent"), "{e}");
    let shared = Arc::clone(&uploads);
    server.handle(move |request| {
        let is_end = request.method == "POST" && request.target.contains("uploadId=");
        if is_end { Some((200, vec![], b"<html>log in</html>".to_vec())) } else { speak(&shared, request) }
    });
    let e = objects.put("k", &Made::new(false)).unwrap_err();
    assert!(e.message().contains("does not say what it made of the parts"), "{e}");
}

#[test]
fn uploads_of_killed_writers_are_removed_when_they_are_old() {
    let server = Server::start();
    let removed = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&removed);
    server.handle(move |request| {
        let query = request.target.split_once('?')?.1;
        if request.method == "DELETE" {
            told.lock().unwrap().push(format!("{} {query}", request.path()));
            return Some((204, vec![], vec![]));
        }
        let page = match query.contains("key-marker=") {
            false => "<NextKeyMarker>set 1/a/x</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker>\
                <IsTruncated>true</IsTruncated>\
                <Upload><Key>set 1/a/x</Key><UploadId>1</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>",
            true => "<IsTruncated>false</IsTruncated>\
                <Upload><Key>set 1/a/y</Key><UploadId>2</UploadId><Initiated>2999-01-01T00:00:00.000Z</Initiated></Upload>\
                <Upload><Key>other</Key><UploadId>3</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>\
                <Upload><Key>set 1/a/z</Key><UploadId>4</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>",
        };
        assert!(query.starts_with("uploads=&prefix=set%201%2Fa%2F"), "{query}");
        Some((200, vec![], format!("<ListMultipartUploadsResult>{page}</ListMultipartUploadsResult>").into_bytes()))
    });
    super::bucket(&server).tidy("a/").unwrap();
    let removed = removed.lock().unwrap();
    assert_eq!(*removed, ["/data/set%201/a/x uploadId=1", "/data/set%201/a/z uploadId=4"]);
}
