//! A checksum: `hashlittle` of lookup3 (Bob Jenkins, 2006, public domain).

/// The checksum of some bytes from an initial value on, which is 0 for HDF5's metadata.
pub fn lookup3(bytes: &[u8], initial: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(initial);
    let (mut a, mut b, mut c) = (start, start, start);
    if bytes.is_empty() {
        return c;
    }
    // The last one to twelve bytes are mixed in another way than those before.
    let (blocks, last) = bytes.split_at((bytes.len() - 1) / 12 * 12);
    for block in blocks.chunks_exact(12) {
        (a, b, c) = add(block, a, b, c);
        (a, b, c) = mix(a, b, c);
    }
    let mut padded = [0; 12];
    padded[..last.len()].copy_from_slice(last);
    (a, b, c) = add(&padded, a, b, c);
    finish(a, b, c)
}

fn add(block: &[u8], a: u32, b: u32, c: u32) -> (u32, u32, u32) {
    let word = |i: usize| u32::from_le_bytes([block[i], block[i + 1], block[i + 2], block[i + 3]]);
    (a.wrapping_add(word(0)), b.wrapping_add(word(4)), c.wrapping_add(word(8)))
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    for (x, y) in [(4, 6), (8, 16), (19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(x);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(y);
        a = a.wrapping_add(c);
        (a, b, c) = (c, a, b);
    }
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    let step = |x: u32, y: u32, by: u32| (x ^ y).wrapping_sub(y.rotate_left(by));
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    step(c, b, 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_its_author() {
        // The values that the driver of lookup3.c prints.
        assert_eq!(lookup3(b"", 0), 0xdead_beef);
        assert_eq!(lookup3(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(lookup3(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(lookup3(b"Four score and seven years ago", 1), 0xcd62_8161);
    }
}
