//! Reads of remote objects: the bytes are right, and the requests are as few as they can be.
#![allow(clippy::unwrap_used, clippy::panic)]

mod server;

use std::time::Duration;

use server::{Fault, Server, hasty, noise};
use sieva_store::{RangedRead, RemoteOptions, open};
use sieva_types::ErrorKind;

fn read(object: &dyn RangedRead, offset: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    object.read_exact_at(offset, &mut out).unwrap();
    out
}

#[test]
fn an_object_is_opened_by_one_request_and_its_counters_tell_the_truth() {
    let server = Server::start();
    let bytes = noise(300_000);
    server.put("/a.nc", bytes.clone(), Some("v1"));
    let object = open(&server.url("/a.nc"), &hasty()).unwrap();
    assert_eq!((object.len(), object.version()), (300_000, "\"v1\" 300000".into()));
    assert!(object.is_remote() && object.local_path().is_none());
    assert_eq!(read(&*object, 1000, 500), bytes[1000..1500]);
    let log = server.take_log();
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].method.as_str(), log[0].range()), ("GET", Some((0, 65535))));
    assert_eq!(read(&*object, 60_000, 200_000), bytes[60_000..260_000]);
    let log = server.take_log();
    assert_eq!(log.iter().map(|r| r.range().unwrap()).collect::<Vec<_>>(), [(65536, 259_999)]);
    assert_eq!(log[0].headers["if-match"], "\"v1\"");
    let counted = object.counters().snapshot();
    assert_eq!((counted.requests, counted.bytes_read, counted.retries), (2, 260_000, 0));
    assert_eq!(counted.cache_hits, 1);
}

#[test]
fn many_little_reads_take_a_handful_of_requests() {
    let server = Server::start();
    let bytes = noise(3 << 20);
    server.put("/meta", bytes.clone(), Some("v1"));
    let object = open(&server.url("/meta"), &hasty()).unwrap();
    for at in (0..bytes.len() - 64).step_by(700) {
        assert_eq!(read(&*object, at as u64, 64), bytes[at..at + 64]);
    }
    // 64 KiB, 256 KiB, then blocks of 1 MiB.
    assert_eq!(server.take_log().len(), 5);
}

#[test]
fn announced_ranges_come_together_and_bring_no_more_than_gaps() {
    let server = Server::start();
    let bytes = noise(8 << 20);
    server.put("/chunks", bytes.clone(), Some("v1"));
    let object = open(&server.url("/chunks"), &hasty()).unwrap();
    server.take_log();
    let before = object.counters().snapshot();
    // Ten near ones, one far, one twice, one past the end.
    let mut wanted: Vec<_> = (0..10).map(|i| (1 << 20) + i * 2000..(1 << 20) + i * 2000 + 1000).collect();
    wanted.push(5 << 20..(5 << 20) + 3000);
    wanted.push(5 << 20..(5 << 20) + 3000);
    wanted.push(u64::MAX - 5..u64::MAX);
    object.will_need(&wanted);
    for range in &wanted[..12] {
        let at = range.start as usize..range.end as usize;
        assert_eq!(read(&*object, range.start, at.len()), bytes[at]);
    }
    let mut ranges: Vec<_> = server.take_log().iter().map(|r| r.range().unwrap()).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(1 << 20, (1 << 20) + 18_999), (5 << 20, (5 << 20) + 2999)]);
    let counted = object.counters().snapshot().since(before);
    assert_eq!((counted.requests, counted.bytes_read), (2, 22_000));
}

#[test]
fn threads_that_want_one_block_make_one_request() {
    let server = Server::start();
    let bytes = noise(4 << 20);
    server.put("/shared", bytes.clone(), Some("v1"));
    let object = open(&server.url("/shared"), &hasty()).unwrap();
    server.take_log();
    server.delay(Duration::from_millis(100));
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (object, bytes) = (&object, &bytes);
            scope.spawn(move || {
                let at = (2 << 20) + i * 100;
                assert_eq!(read(&**object, at as u64, 50), bytes[at..at + 50]);
            });
        }
    });
    assert_eq!(server.take_log().len(), 1);
}

#[test]
fn announced_ranges_are_fetched_at_once_but_not_too_many() {
    let server = Server::start();
    let bytes = noise(8 << 20);
    server.put("/parallel", bytes.clone(), Some("v1"));
    let options = RemoteOptions { parallel: 4, ..hasty() };
    let object = open(&server.url("/parallel"), &options).unwrap();
    server.delay(Duration::from_millis(60));
    let wanted: Vec<_> = (1..13).map(|i| i * 600_000..i * 600_000 + 1000).collect();
    object.will_need(&wanted);
    for range in wanted {
        let at = range.start as usize;
        assert_eq!(read(&*object, range.start, 1000), bytes[at..at + 1000]);
    }
    assert_eq!((server.most_busy(), server.take_log().len()), (4, 13));
}

#[test]
fn a_long_read_is_split_and_whole() {
    let server = Server::start();
    let bytes = noise(40 << 20);
    server.put("/long", bytes.clone(), None);
    let object = open(&server.url("/long"), &hasty()).unwrap();
    assert!(object.version().is_empty());
    let got = read(&*object, 3, bytes.len() - 3);
    assert!(got == bytes[3..], "bytes differ");
    assert!(server.take_log().iter().all(|r| r.range().is_none_or(|(a, b)| b - a < 8 << 20)));
}

#[test]
fn announced_bytes_come_in_few_requests_and_segments_before_their_end() {
    let server = Server::start();
    let bytes = noise(40 << 20);
    server.put("/ahead", bytes.clone(), Some("v1"));
    let options = RemoteOptions { retries: 0, first_bytes: 100, ..hasty() };
    let object = open(&server.url("/ahead"), &options).unwrap();
    assert_eq!(server.take_log()[0].range(), Some((0, 99)));
    object.will_need(std::slice::from_ref(&(5..bytes.len() as u64)));
    assert!(read(&*object, 100, bytes.len() - 100) == bytes[100..], "bytes differ");
    let mut ranges: Vec<_> = server.take_log().iter().map(|r| r.range().unwrap()).collect();
    ranges.sort_unstable();
    let half = (bytes.len() as u64 - 100) / 2;
    assert_eq!(ranges, [(100, 99 + half), (100 + half, 2 * half + 99)]);
    // A little that is there already does not cut a request in two; what was read of it stays as it was.
    server.put("/holes", bytes.clone(), Some("v1"));
    let object = open(&server.url("/holes"), &options).unwrap();
    object.will_need(&[2_000_000..2_010_000, 3_500_000..4_000_000]);
    assert_eq!(read(&*object, 2_000_000, 10_000), bytes[2_000_000..2_010_000]);
    assert_eq!(read(&*object, 3_500_000, 10), bytes[3_500_000..3_500_010]);
    server.take_log();
    object.will_need(std::slice::from_ref(&(1_000_000..5_000_000)));
    assert!(read(&*object, 1_000_000, 4_000_000) == bytes[1_000_000..5_000_000], "bytes differ");
    let mut ranges: Vec<_> = server.take_log().iter().map(|r| r.range().unwrap()).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(1_000_000, 3_499_999), (4_000_000, 4_999_999)]);
    // A body that ends in the middle has brought what came before.
    server.put("/cut", bytes.clone(), Some("v2"));
    let object = open(&server.url("/cut"), &options).unwrap();
    server.take_log();
    server.fail([Fault::Truncate(5 << 20)]);
    object.will_need(std::slice::from_ref(&((1 << 20)..(8 << 20))));
    assert!(read(&*object, 1 << 20, 5 << 20) == bytes[1 << 20..6 << 20], "bytes differ");
    assert_eq!(server.take_log().len(), 1);
}

#[test]
fn a_second_open_of_the_same_version_uses_what_the_first_brought() {
    let server = Server::start();
    let bytes = noise(1 << 20);
    server.put("/again", bytes.clone(), Some("v1"));
    let first = open(&server.url("/again"), &hasty()).unwrap();
    read(&*first, 300_000, 100_000);
    let second = open(&server.url("/again"), &hasty()).unwrap();
    server.take_log();
    assert_eq!(read(&*second, 300_000, 100_000), bytes[300_000..400_000]);
    assert_eq!(server.take_log().len(), 0);
    server.put("/again", noise(2 << 20)[1 << 20..].to_vec(), Some("v2"));
    let third = open(&server.url("/again"), &hasty()).unwrap();
    assert_eq!(read(&*third, 300_000, 10), noise(2 << 20)[(1 << 20) + 300_000..][..10]);
}

#[test]
fn an_empty_object_and_reads_past_the_end() {
    let server = Server::start();
    server.put("/empty", vec![], Some("v1"));
    server.put("/short", noise(10), Some("v1"));
    let empty = open(&server.url("/empty"), &hasty()).unwrap();
    assert!(empty.is_empty());
    assert!(read(&*empty, 0, 0).is_empty());
    empty.check_unchanged().unwrap();
    let short = open(&server.url("/short"), &hasty()).unwrap();
    assert_eq!(read(&*short, 4, 6), noise(10)[4..]);
    for (offset, len) in [(5, 6), (u64::MAX, 1), (11, 1)] {
        let e = short.read_exact_at(offset, &mut vec![0; len]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        assert!(e.message().contains("the object has 10"), "{e}");
    }
}

#[test]
fn a_server_without_ranges_is_used_where_the_object_is_small() {
    for fault in [Fault::IgnoreRange, Fault::IgnoreRangeUnsized] {
        let server = Server::start();
        let bytes = noise(500_000);
        server.put("/plain", bytes.clone(), Some("v1"));
        server.always(fault);
        let object = open(&server.url("/plain"), &hasty()).unwrap();
        assert_eq!(object.len(), 500_000);
        assert_eq!(read(&*object, 400_000, 1000), bytes[400_000..401_000]);
        assert_eq!(server.take_log().len(), 1);
        let options = RemoteOptions { cache_bytes: 100_000, ..hasty() };
        server.put("/plain2", bytes, Some("v1"));
        let e = open(&server.url("/plain2"), &options).map(|_| ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.message().contains("gives no byte ranges"), "{e}");
        assert!(e.hint_text().unwrap().contains("copy the file"), "{e}");
    }
}

#[test]
fn a_disk_cache_answers_the_next_process_and_damage_is_noticed() {
    let server = Server::start();
    let bytes = noise(2 << 20);
    server.put("/disk", bytes.clone(), None);
    server.put("/disk", bytes.clone(), Some("v1"));
    let dir = std::env::temp_dir().join(format!("sieva-remote-disk-{}", std::process::id()));
    let options = RemoteOptions { cache_dir: Some(dir.clone()), ..hasty() };
    let first = open(&server.url("/disk?X-Amz-Signature=1"), &options).unwrap();
    assert_eq!(read(&*first, 1 << 20, 200_000), bytes[1 << 20..(1 << 20) + 200_000]);
    let mut files = Vec::new();
    let mut dirs = vec![dir.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let known = if entry.file_type().unwrap().is_dir() { &mut dirs } else { &mut files };
            known.push(entry.path());
        }
    }
    assert_eq!(files.len(), 1);
    let mut written = std::fs::read(&files[0]).unwrap();
    assert!(written.ends_with(&bytes[1 << 20..(1 << 20) + 200_000]));
    let half = written.len() / 2;
    written[half] ^= 1;
    std::fs::write(&files[0], written).unwrap();
    // The memory of this process still has it; a child's has not, and finds the file damaged.
    let child = |requests: &str| {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["child_reads_through_the_disk_cache", "--exact", "--ignored", "--nocapture"])
            .env("SIEVA_TEST_URL", server.url("/disk?X-Amz-Signature=2"))
            .env("SIEVA_TEST_DIR", &dir)
            .env("SIEVA_TEST_REQUESTS", requests)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    };
    child("2");
    child("1");
    std::fs::remove_dir_all(dir).unwrap();
}

/// The child of the test above, which gives it its work by the environment.
#[test]
#[ignore = "is run by a_disk_cache_answers_the_next_process_and_damage_is_noticed"]
fn child_reads_through_the_disk_cache() {
    let of = |name: &str| std::env::var(name).unwrap();
    let options = RemoteOptions { cache_dir: Some(of("SIEVA_TEST_DIR").into()), ..hasty() };
    let object = open(&of("SIEVA_TEST_URL"), &options).unwrap();
    assert_eq!(read(&*object, 1 << 20, 200_000), noise(2 << 20)[1 << 20..(1 << 20) + 200_000]);
    assert_eq!(object.counters().snapshot().requests.to_string(), of("SIEVA_TEST_REQUESTS"));
}

#[test]
fn memory_stays_within_its_limit_and_what_went_comes_again() {
    // In a child, as the limit is the process's.
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["child_reads_with_a_small_cache", "--exact", "--ignored"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// The child of the test above.
#[test]
#[ignore = "is run by memory_stays_within_its_limit_and_what_went_comes_again"]
fn child_reads_with_a_small_cache() {
    let server = Server::start();
    let bytes = noise(4 << 20);
    server.put("/small", bytes.clone(), Some("v1"));
    let object = open(&server.url("/small"), &RemoteOptions { cache_bytes: 1 << 20, ..hasty() }).unwrap();
    let at = |i: u64| (i << 20) as usize;
    for i in [1, 2, 3, 1] {
        assert_eq!(read(&*object, i << 20, 500_000), bytes[at(i)..at(i) + 500_000]);
    }
    assert_eq!(server.take_log().len(), 5);
    // Half of the cache is the most that is fetched before anybody asks.
    object.will_need(&[0..400_000, 600_000..1_000_000, (2 << 20) + 1..(2 << 20) + 400_000]);
    assert_eq!(read(&*object, 0, 400_000), bytes[..400_000]);
    assert!(server.take_log().len() <= 2);
}
