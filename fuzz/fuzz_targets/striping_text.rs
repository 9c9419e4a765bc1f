//! What file systems tell of where a file's bytes lie: attributes of Lustre, CephFS and GlusterFS, a volume's option, answers
//! of BeeGFS, and the text that users write. What is understood cuts the file into pieces without gap or overlap, says of
//! each server the same stripes as of the whole, and is understood again when it is printed or kept.
//!
//! A byte chooses whose words the rest is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_store::{Piece, Striping, Told};

/// Pieces that are looked at.
const MOST: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[which, a, b, c], rest)) = bytes.split_first_chunk() else { return };
    let len = u64::from(a) << (b % 57) | u64::from(c);
    let text = std::str::from_utf8(rest).unwrap_or("");
    let words: Vec<u32> = rest.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let told = match which % 6 {
        0 => Striping::told(Told::Attribute("lustre.lov", rest), len),
        1 => Striping::told(Told::Attribute("ceph.file.layout", rest), len),
        2 => Striping::told(Told::Attribute("trusted.glusterfs.shard.block-size", rest), len),
        3 => Striping::told(Told::ShardSize(text), len),
        4 => match words.split_first_chunk() {
            Some((&[pattern, size], targets)) => Striping::told(Told::Targets(pattern, size, targets), len),
            None => return,
        },
        _ => text.parse().map(|striping: Striping| striping.for_length(len)),
    };
    match told {
        Ok(striping) => check(&striping, len),
        Err(e) => check_error(&e),
    }
});

fn check(striping: &Striping, len: u64) {
    let pieces: Vec<Piece> = striping.pieces(0..len).take(MOST).collect();
    let mut end = 0;
    for piece in &pieces {
        assert!(piece.range.start == end && piece.range.end > end && piece.range.end <= len, "{piece:?}");
        assert!((piece.server as usize) < striping.servers(), "{piece:?} of {} servers", striping.servers());
        end = piece.range.end;
    }
    assert!(end == len || pieces.len() == MOST, "{end} of {len}");
    striping.describe();
    // Of the servers of the first pieces: what they have there.
    for server in pieces.iter().map(|piece| piece.server).take(3) {
        let own: Vec<&Piece> = pieces.iter().filter(|piece| piece.server == server).collect();
        let found: Vec<Piece> = striping.stripes_on(server, 0..end).take(MOST).collect();
        assert!(found.iter().eq(own), "server {server}: {found:?}, {pieces:?}");
        striping.server_name(server);
    }
    let again: Striping = striping.to_string().parse().expect("what is printed is understood");
    same(&again.for_length(len), striping, len);
    if let Some((rule, kind)) = striping.to_kept() {
        let kept = Striping::of_kept(&rule, kind, len).expect("what is kept is understood");
        same(&kept, striping, len);
        assert_eq!(kept.server_name(0), striping.server_name(0));
    }
}

fn same(a: &Striping, b: &Striping, len: u64) {
    assert!(a.pieces(0..len).take(MOST).eq(b.pieces(0..len).take(MOST)), "{a} {b}");
}
