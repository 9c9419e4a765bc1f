//! Lustre: the attribute `lustre.lov` of a file, little-endian (`lustre_user.h`, `struct lov_user_md` and
//! `struct lov_comp_md_v1`).
//!
//! | offset | size | of a plain layout |
//! |---|---|---|
//! | 0 | 4 | magic: 0x0BD10BD0 (v1), 0x0BD30BD0 (v3), 0x0BD50BD0 (as v3) |
//! | 4 | 4 | pattern: 1 is RAID-0, 0x100 data on the metadata server, 0x200 more stripes than servers; the upper half are flags |
//! | 8 | 16 | the object's id |
//! | 24 | 4 | bytes of a stripe |
//! | 28 | 2 | stripes |
//! | 30 | 2 | the layout's generation |
//! | 32 | 16 | v3 alone: name of the pool |
//! | 32, 48 | 24 each | of each stripe: id (16), generation (4), number of its OST (4) |
//!
//! | offset | size | of a composite layout |
//! |---|---|---|
//! | 0 | 4 | magic: 0x0BD60BD0, 0x0BD80BD0 (extends itself) |
//! | 4 | 4 | bytes of all |
//! | 14 | 2 | components |
//! | 32 | 48 each | id (4: mirror in the upper half), flags (4), first byte (8), last + 1 (8), offset (4) and size (4) of its plain layout |
//!
//! Stripes are counted from the beginning of the file in every component (`lov_stripe_number`), not from the component's.
//! Of mirrors the first one is taken that is not behind.

use sieva_types::Result;

use super::{METADATA_SERVER, Striping, Turns, wrong};

const V1: u32 = 0x0BD1_0BD0;
const V3: u32 = 0x0BD3_0BD0;
const SPECIFIC: u32 = 0x0BD5_0BD0;
const COMPOSITE: u32 = 0x0BD6_0BD0;
const SELF_EXTENDING: u32 = 0x0BD8_0BD0;

const RAID0: u32 = 0x001;
const ON_METADATA_SERVER: u32 = 0x100;
const OVERSTRIPED: u32 = 0x200;
const RELEASED: u32 = 0x8000_0000;

/// Flags of components: behind its mirror, out of reach, has objects, only a place for what may come.
const STALE: u32 = 0x01;
const OFFLINE: u32 = 0x08;
const INSTANTIATED: u32 = 0x10;
const EXTENSION: u32 = 0x40;

/// The layout that an attribute describes.
///
/// # Errors
/// `invalid-value`, saying what the bytes contradict.
pub(super) fn parse(bytes: &[u8]) -> Result<Striping> {
    let turns = match u32_at(bytes, 0)? {
        COMPOSITE | SELF_EXTENDING => composite(bytes)?,
        _ => vec![plain(bytes, 0)?],
    };
    Striping::by_turns(turns, "OST", Vec::new(), "Lustre".into())
}

fn plain(bytes: &[u8], from: u64) -> Result<Turns> {
    let objects = match u32_at(bytes, 0)? {
        V1 => 32,
        V3 | SPECIFIC => 48,
        magic => return Err(wrong(format!("magic {magic:#010x}: expected that of a layout of Lustre"))),
    };
    let (pattern, size, count) = (u32_at(bytes, 4)?, u32_at(bytes, 24)?, usize::from(u16_at(bytes, 28)?));
    if pattern & RELEASED != 0 {
        return Err(wrong("the data were released to an archive".into()));
    }
    match pattern & 0xffff & !OVERSTRIPED {
        RAID0 => {}
        // One stripe, as long as the component.
        ON_METADATA_SERVER => return Ok(Turns { from, unit: u64::MAX, on: vec![METADATA_SERVER] }),
        other => {
            return Err(wrong(format!("pattern {other:#x}: expected RAID-0 or data on the metadata server")));
        }
    }
    let on =
        (0..count).map(|stripe| u32_at(bytes, objects + 24 * stripe + 20)).collect::<Result<Vec<u32>>>()?;
    if let Some(ost) = on.iter().find(|ost| **ost == METADATA_SERVER) {
        return Err(wrong(format!("OST {ost}: expected the number of one")));
    }
    Ok(Turns { from, unit: size.into(), on })
}

fn composite(bytes: &[u8]) -> Result<Vec<Turns>> {
    let entries = (0..usize::from(u16_at(bytes, 14)?)).map(|i| Entry::parse(bytes, 32 + 48 * i));
    let entries = entries.collect::<Result<Vec<Entry>>>()?;
    // Of a mirror that is behind no component is taken, whatever the others are.
    let is_behind =
        |mirror: u32| entries.iter().any(|e| e.mirror == mirror && e.flags & (STALE | OFFLINE) != 0);
    let mirror = entries.iter().map(|e| e.mirror).find(|&m| !is_behind(m));
    let mirror = mirror.ok_or_else(|| wrong("no component, or no mirror that is up to date".into()))?;
    let mut turns: Vec<Turns> = Vec::new();
    let mut end = 0;
    for entry in entries.iter().filter(|e| e.mirror == mirror && e.start != e.end) {
        if entry.start != end || entry.end < entry.start {
            return Err(wrong(format!(
                "a component from byte {} to {}: expected one from {end}",
                entry.start, entry.end
            )));
        }
        end = entry.end;
        if entry.flags & INSTANTIATED == 0 || entry.flags & EXTENSION != 0 {
            // Nothing was written there: it belongs to nobody, and the one before may have it.
            continue;
        }
        let own = bytes.get(entry.offset..entry.offset.saturating_add(entry.size));
        let own =
            own.ok_or_else(|| wrong(format!("a component's layout at {} + {}", entry.offset, entry.size)))?;
        // What is missing before it has no data either.
        turns.push(plain(own, if turns.is_empty() { 0 } else { entry.start })?);
    }
    Ok(turns)
}

struct Entry {
    mirror: u32,
    flags: u32,
    start: u64,
    end: u64,
    offset: usize,
    size: usize,
}

impl Entry {
    fn parse(bytes: &[u8], at: usize) -> Result<Self> {
        Ok(Self {
            mirror: u32_at(bytes, at)? >> 16,
            flags: u32_at(bytes, at + 4)?,
            start: u64_at(bytes, at + 8)?,
            end: u64_at(bytes, at + 16)?,
            offset: u32_at(bytes, at + 24)? as usize,
            size: u32_at(bytes, at + 28)? as usize,
        })
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().ok_or_else(|| wrong(format!("{} bytes: expected {N} more at {at}", bytes.len())))
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}
