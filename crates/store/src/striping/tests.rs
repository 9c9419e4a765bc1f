//! Stripings against the file systems' own descriptions, byte by byte, and attributes that are damaged.

use super::*;
use crate::{FileStore, MemoryStore};

/// A small generator of numbers that look random (Marsaglia's xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Pieces of a range, and the stripes of all servers, say of each byte what `server` says, and nothing twice.
fn check(striping: &Striping, len: u64, server: impl Fn(u64) -> u32) {
    let mut by_server: Vec<Option<(u32, u64)>> = vec![None; len as usize];
    for s in 0..striping.servers() as u32 {
        let mut last = None;
        for piece in striping.stripes_on(s, 0..len) {
            assert!(last.is_none_or(|l| l < piece.stripe), "{striping}: stripes ascend");
            last = Some(piece.stripe);
            assert_eq!(piece.server, s);
            for at in piece.range {
                assert_eq!(
                    by_server[at as usize].replace((s, piece.stripe)),
                    None,
                    "{striping}: byte {at} twice"
                );
            }
        }
        assert!(striping.on_server(s, len).eq(striping.stripes_on(s, 0..len).map(|p| p.range)));
    }
    let mut draw = Draw(len + 1);
    for _ in 0..20 {
        let start = draw.below(len);
        let end = start + 1 + draw.below(len - start);
        let mut at = start;
        for piece in striping.pieces(start..end) {
            assert_eq!(piece.range.start, at, "{striping}");
            assert!(piece.range.end > at && piece.range.end - at <= striping_unit(striping, at));
            for byte in piece.range.clone() {
                assert_eq!(piece.server, server(byte), "{striping}: byte {byte}");
                assert_eq!(
                    by_server[byte as usize],
                    Some((piece.server, piece.stripe)),
                    "{striping}: byte {byte}"
                );
            }
            at = piece.range.end;
        }
        assert_eq!(at, end);
    }
    assert_eq!(striping.pieces(5..5).count(), 0);
}

fn striping_unit(striping: &Striping, at: u64) -> u64 {
    striping.parts.iter().find(|p| p.range.contains(&at)).unwrap().rule.unit
}

#[test]
fn servers_by_turns_have_the_bytes_that_raid_0_gives_them() {
    let mut draw = Draw(7);
    for _ in 0..200 {
        let (size, count) = (1 + draw.below(40), 1 + draw.below(7));
        let offset = draw.below(count);
        let striping = Striping::given(size, count as u32, offset as u32).unwrap();
        check(&striping, 1 + draw.below(600), |byte| ((byte / size % count + offset) % count) as u32);
        assert_eq!((striping.servers() as u64, striping.stripe_size()), (count, size));
    }
}

#[test]
fn objects_have_the_bytes_that_ceph_gives_them() {
    let mut draw = Draw(9);
    for _ in 0..200 {
        let (unit, count, per) = (1 + draw.below(9), 1 + draw.below(5), 1 + draw.below(4));
        let (object_size, len) = (unit * per, 1 + draw.below(600));
        let text = format!("stripe_unit={unit} stripe_count={count} object_size={object_size} pool=data\0");
        let striping = ceph::parse(text.as_bytes(), len).unwrap();
        // As the Ceph documentation computes it.
        let object = |byte: u64| {
            let (block, per_object) = (byte / unit, object_size / unit);
            let (row, column) = (block / count, block % count);
            (row / per_object * count + column) as u32
        };
        check(&striping, len, object);
        let most = (0..len).map(object).max().unwrap() + 1;
        assert_eq!(striping.servers(), most as usize, "{striping} {len}");
    }
}

#[test]
fn parts_of_lists_follow_one_another() {
    let text = "from=0,stripe_size=10,on=3;from=25,stripe_size=7,on=5+3+9;from=60,stripe_size=16,on=9+5";
    let striping = Striping::parse(text).unwrap();
    let ids = [3, 5, 9];
    check(&striping, 300, |byte| {
        let id = match byte {
            0..25 => 3,
            25..60 => [5, 3, 9][(byte / 7 % 3) as usize],
            _ => [9, 5][(byte / 16 % 2) as usize],
        };
        ids.iter().position(|i| *i == id).unwrap() as u32
    });
    assert_eq!((striping.to_string(), striping.stripe_size()), (text.to_string(), 7));
    assert_eq!(striping.server_name(2), "server 9");
}

#[test]
fn one_server_has_all() {
    let single = Striping::single();
    check(&single, 100, |_| 0);
    assert_eq!((single.servers(), single.stripe_size()), (1, u64::MAX));
    let piece = Piece { server: 0, stripe: 0, range: 3..u64::MAX };
    assert_eq!(single.pieces(3..u64::MAX).collect::<Vec<_>>(), [piece]);
    assert_eq!(single.on_server(0, 0).count() + single.on_server(1, 9).count(), 0);
}

#[test]
fn a_great_file_is_told_by_divisions_alone() {
    let striping = Striping::given(100 << 20, 40, 3).unwrap();
    let end = u64::MAX - 1;
    let last = striping.pieces(end - 1..end).next().unwrap();
    assert_eq!((last.stripe, u64::from(last.server)), (end / (100 << 20), (end / (100 << 20) + 3) % 40));
    let of = striping.on_server(last.server, end).next().unwrap();
    assert_eq!(of.end - of.start, 100 << 20);
}

#[test]
fn texts_are_read_as_they_are_written() {
    for text in [
        "single",
        "stripe_size=1MiB,stripe_count=4,stripe_offset=0",
        "stripe_size=1048577,stripe_count=4,stripe_offset=3",
        "stripe_size=4KiB,stripe_count=2,stripe_offset=39,servers=40",
        "stripe_size=64KiB,stripe_count=4,object_size=1MiB",
        "stripe_size=1GiB,on=7+3+1+7",
    ] {
        assert_eq!(Striping::parse(text).unwrap().to_string(), text);
    }
    let alike = Striping::parse(" stripe_size = 1024KiB , stripe_count=4 ").unwrap();
    assert_eq!(alike, Striping::given(1 << 20, 4, 0).unwrap());
    let wraps = Striping::parse("stripe_size=1,stripe_count=3,stripe_offset=38,servers=40").unwrap();
    let servers: Vec<u32> = wraps.pieces(0..4).map(|p| p.server).collect();
    assert_eq!((servers, wraps.servers()), (vec![38, 39, 0, 38], 40));
    let objects = Striping::parse("stripe_size=1KiB,stripe_count=2,object_size=2KiB").unwrap();
    assert_eq!((objects.servers(), objects.for_length(9 << 10).servers()), (u32::MAX as usize, 5));
}

#[test]
fn wrong_texts_are_told_with_what_is_expected() {
    for (text, said) in [
        ("", "no stripe_size"),
        ("stripe_size=lots", "'lots' is no size"),
        ("stripe_size=0", "at least one of each"),
        ("stripe_size=1MiB,stripe_count=0", "stripe_count 0: expected at least 1"),
        ("stripe_size=1MiB,stripe_count=4,stripe_offset=4", "expected less than the 4 servers"),
        ("stripe_size=1MiB,stripe_count=4,servers=3", "no more than the 3 servers"),
        ("stripe_size=1MiB,stripe_count=4000000000", "at most 65536"),
        ("from=0,stripe_size=1MiB,stripe_count=4000000000", "more than 65536"),
        ("stripe_size=1MiB,stripe_count=-1", "'-1' is no whole number"),
        ("stripe_size=1MiB,stripe_size=2MiB", "given twice"),
        ("stripe_size=1MiB,color=red", "'color' is not one of stripe_size, stripe_count"),
        ("stripe_size", "expected key=value"),
        ("stripe_size=3,object_size=4", "expected a multiple"),
        ("stripe_size=4,object_size=0", "none 0"),
        ("stripe_size=4,object_size=8,stripe_offset=1", "no stripe_offset"),
        ("stripe_size=4,on=1+2,stripe_count=2", "on= says"),
        ("stripe_size=4,on=1+x", "'x' is no whole number"),
        ("from=1,stripe_size=4", "in order from byte 0"),
        ("from=0,stripe_size=4;from=0,stripe_size=4", "in order from byte 0"),
        ("from=0,stripe_size=4;stripe_size=4,object_size=8", "no object_size"),
    ] {
        let e = Striping::parse(text).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{text}");
        assert!(e.message().contains(said), "{text}: {e}");
        assert!(e.hint_text().is_some(), "{text}");
    }
}

/// A plain layout of Lustre as bytes.
fn plain(magic: u32, pattern: u32, size: u32, osts: &[u32]) -> Vec<u8> {
    let mut out = [magic, pattern].map(u32::to_le_bytes).concat();
    out.extend([0xee; 16]);
    out.extend(size.to_le_bytes());
    out.extend((osts.len() as u16).to_le_bytes());
    out.extend([7, 0]);
    if magic != 0x0BD1_0BD0 {
        out.extend(b"pool\0\0\0\0\0\0\0\0\0\0\0\0");
    }
    for ost in osts {
        out.extend([0xdd; 20]);
        out.extend(ost.to_le_bytes());
    }
    out
}

/// A composite one, of components: mirror, flags, start, end, layout.
fn composite(components: &[(u32, u32, u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = 0x0BD6_0BD0_u32.to_le_bytes().to_vec();
    out.extend([0; 10]);
    out.extend((components.len() as u16).to_le_bytes());
    out.extend([0; 16]);
    let mut offset = 32 + 48 * components.len();
    for (i, (mirror, flags, start, end, layout)) in components.iter().enumerate() {
        out.extend((mirror << 16 | (i as u32 + 1)).to_le_bytes());
        out.extend(flags.to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend(end.to_le_bytes());
        out.extend((offset as u32).to_le_bytes());
        out.extend((layout.len() as u32).to_le_bytes());
        out.extend([0; 16]);
        offset += layout.len();
    }
    components.iter().for_each(|c| out.extend(&c.4));
    out
}

#[test]
fn layouts_of_lustre_are_read() {
    let of = |bytes: &[u8]| lustre::parse(bytes).unwrap().to_string();
    assert_eq!(of(&plain(0x0BD1_0BD0, 1, 1 << 20, &[3, 1, 2])), "stripe_size=1MiB,on=3+1+2");
    assert_eq!(
        of(&plain(0x0BD3_0BD0, 1, 65536, &[0, 1])),
        "stripe_size=64KiB,stripe_count=2,stripe_offset=0"
    );
    // More stripes than servers, in a file with holes.
    let overstriped = plain(0x0BD3_0BD0, 0x4000_0201, 65536, &[4, 5, 4]);
    assert_eq!(of(&overstriped), "stripe_size=64KiB,on=4+5+4");
    check(&lustre::parse(&plain(0x0BD1_0BD0, 0x201, 16, &[4, 5, 4])).unwrap(), 200, |b| {
        [0, 1, 0][(b / 16 % 3) as usize]
    });
    let dom = plain(0x0BD1_0BD0, 0x100, 1 << 20, &[]);
    let wide = plain(0x0BD3_0BD0, 1, 4 << 20, &[7, 8]);
    let one = plain(0x0BD1_0BD0, 1, 1 << 20, &[9]);
    let eof = u64::MAX;
    let layered = composite(&[
        (1, 0x10, 0, 1 << 20, dom),
        (1, 0x10, 1 << 20, 1 << 30, one.clone()),
        (1, 0, 1 << 30, eof, wide.clone()),
    ]);
    let found = lustre::parse(&layered).unwrap();
    let names: Vec<String> = (0..2).map(|s| found.server_name(s)).collect();
    assert_eq!(names, ["OST 9", "metadata server"]);
    let pieces: Vec<(u32, u64)> = found.pieces(0..3 << 20).map(|p| (p.server, p.range.end >> 20)).collect();
    assert_eq!(pieces, [(1, 1), (0, 2), (0, 3)]);
    // The first mirror is behind.
    let mirrored = composite(&[(1, 0x11, 0, eof, one), (2, 0x10, 0, eof, wide)]);
    assert_eq!(of(&mirrored), "stripe_size=4MiB,on=7+8");
}

#[test]
fn damaged_layouts_of_lustre_are_refused() {
    let one = plain(0x0BD1_0BD0, 1, 1 << 20, &[9]);
    let eof = u64::MAX;
    for (bytes, said) in [
        (vec![], "expected 4 more"),
        (plain(0x0BD0_0BD1, 1, 1, &[1]), "magic"),
        (plain(0x0BD1_0BD0, 1, 0, &[1]), "stripes of 0 bytes"),
        (plain(0x0BD1_0BD0, 1, 1, &[]), "on 0 servers"),
        (plain(0x0BD1_0BD0, 1, 1, &[u32::MAX]), "expected the number"),
        (plain(0x0BD1_0BD0, 2, 1, &[1]), "pattern 0x2"),
        (plain(0x0BD1_0BD0, 0x8000_0001, 1, &[1]), "released"),
        (composite(&[]), "no component"),
        (composite(&[(1, 0x11, 0, eof, one.clone())]), "no mirror"),
        (composite(&[(1, 0x10, 5, eof, one.clone())]), "expected one from 0"),
        (composite(&[(1, 0x10, 0, 9, one.clone()), (1, 0x10, 8, eof, one.clone())]), "expected one from 9"),
        (composite(&[(1, 0, 0, eof, one.clone())]), "no stripes at all"),
    ] {
        let e = lustre::parse(&bytes).unwrap_err();
        assert!(e.message().contains(said), "{said}: {e}");
    }
    // Cut off anywhere, and with more stripes or components than there are bytes.
    let whole = composite(&[(1, 0x10, 0, 1 << 20, one.clone()), (1, 0x10, 1 << 20, eof, one)]);
    for n in 0..whole.len() {
        assert!(lustre::parse(&whole[..n]).is_err(), "{n}");
    }
    let mut many = whole.clone();
    many[14..16].fill(0xff);
    assert!(lustre::parse(&many).unwrap_err().message().contains("expected"));
    let mut wide = plain(0x0BD1_0BD0, 1, 1, &[1, 2]);
    wide[28..30].fill(0xff);
    assert!(lustre::parse(&wide).unwrap_err().message().contains("more at"));
    // Any byte damaged: read or refused, without a panic.
    let mut read = 0;
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(striping) = lustre::parse(&bytes) {
                read += usize::from(striping.pieces(0..1 << 22).take(9).count() > 0);
            }
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn damaged_attributes_of_ceph_and_gluster_are_refused() {
    for (text, said) in [
        ("stripe_count=4 object_size=1048576", "no stripe_unit"),
        ("stripe_unit=x stripe_count=4 object_size=1048576", "'x' is no number"),
        ("stripe_unit=0 stripe_count=1 object_size=0", "none 0"),
        ("stripe_unit=3 stripe_count=4 object_size=4", "a multiple"),
        ("stripe_unit=4 stripe_count=0 object_size=4", "none 0"),
        ("stripe_unit=1 stripe_count=99999999999 object_size=4", "none 0"),
        ("stripe_unit=1 stripe_count=2 object_size=1", "less than 2^32"),
    ] {
        let e = ceph::parse(text.as_bytes(), 1 << 40).unwrap_err();
        assert!(e.message().contains(said), "{text}: {e}");
    }
    assert!(ceph::parse(&[0xff], 1).unwrap_err().message().contains("no text"));
    let found = gluster::parse(&(4_u64 << 20).to_be_bytes(), 10 << 20).unwrap();
    assert_eq!(found.describe(), "3 shards, stripe_size=4MiB,stripe_count=1,object_size=4MiB (GlusterFS)");
    assert!(gluster::parse(&[0; 8], 1).unwrap_err().message().contains("none 0"));
    assert!(gluster::parse(&[1; 7], 1).unwrap_err().message().contains("expected 8"));
}

#[test]
fn what_is_not_told_is_one_server_and_says_why() {
    let memory = MemoryStore::new("memory", vec![0; 10]);
    assert_eq!(Striping::of(&memory).describe(), "one server (nothing is known of it)");
    let path = std::env::temp_dir().join(format!("sieva-striping-{}", std::process::id()));
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    let of = || Striping::of(&FileStore::open(&path).unwrap());
    assert!(of().describe().starts_with("one server (a "), "{}", of().describe());
    // Where the file system lets us, a file that says what a file on Lustre says.
    let lov = plain(0x0BD1_0BD0, 1, 65536, &[3, 1]);
    let set = |bytes: &[u8]| {
        rustix::fs::setxattr(&path, "trusted.lov", bytes, rustix::fs::XattrFlags::empty()).is_ok()
    };
    if set(&lov) {
        assert_eq!(of().describe(), "2 OSTs, stripe_size=64KiB,on=3+1 (Lustre)");
        set(&lov[..40]);
        assert!(of().describe().starts_with("one server (trusted.lov is not understood: striping: 40 bytes"));
    }
    std::fs::remove_file(path).unwrap();
}
