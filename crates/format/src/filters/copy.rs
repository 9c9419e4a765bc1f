//! The two copies that every Lempel-Ziv decoder is made of, checked and still fast.
//!
//! Most literals and matches are short, and a call of `memcpy` costs more than they do: where there is room, 16 bytes
//! are copied whatever the length, which is one load and one store. The bytes after the copy are overwritten by the
//! decoder's next step, or left over at the end of a stream that was too short and is an error.

/// Bytes that are copied at once where there is room.
const SHORT: usize = 16;

/// Copies `len` bytes from `input` at `from` to `out` at `at`. None where either range is outside.
#[inline(always)]
pub(super) fn copy_literals(input: &[u8], from: usize, out: &mut [u8], at: usize, len: usize) -> Option<()> {
    if len <= SHORT
        && let (Some(src), Some(dst)) = (input.get(from..from + SHORT), out.get_mut(at..at + SHORT))
    {
        dst.copy_from_slice(src);
        return Some(());
    }
    let src = input.get(from..from.checked_add(len)?)?;
    out.get_mut(at..at.checked_add(len)?)?.copy_from_slice(src);
    Some(())
}

/// Repeats in `out` at `at` the `len` bytes from `distance` before; the two may overlap. None where either range is
/// outside.
#[inline(always)]
pub(super) fn copy_match(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(distance).filter(|from| *from < at)?;
    if len <= SHORT && distance >= SHORT && at + SHORT <= out.len() {
        let (before, after) = out.split_at_mut(at);
        after[..SHORT].copy_from_slice(&before[from..from + SHORT]);
        return Some(());
    }
    let end = at.checked_add(len).filter(|end| *end <= out.len())?;
    if len <= SHORT {
        for i in at..end {
            out[i] = out[i - distance];
        }
    } else {
        copy_period(out, from, at, end);
    }
    Some(())
}

/// Continues the period `from..at` up to `end`: what is there doubles with every copy.
fn copy_period(out: &mut [u8], from: usize, at: usize, end: usize) {
    if at - from == 1 {
        let byte = out[from];
        return out[at..end].fill(byte);
    }
    let mut done = at;
    while done < end {
        let len = (done - from).min(end - done);
        out.copy_within(from..from + len, done);
        done += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_of_all_distances_and_lengths_equal_the_byte_loop() {
        for distance in 1..40 {
            for len in 0..100 {
                let mut out: Vec<u8> = (0..160).collect();
                let mut expected = out.clone();
                for i in 50..50 + len {
                    expected[i] = expected[i - distance];
                }
                copy_match(&mut out, 50, distance, len).unwrap();
                assert_eq!(out[..50 + len], expected[..50 + len], "distance {distance}, length {len}");
            }
        }
    }

    #[test]
    fn ranges_outside_are_refused() {
        let mut out = [0; 20];
        assert_eq!(copy_match(&mut out, 4, 0, 2), None);
        assert_eq!(copy_match(&mut out, 4, 5, 2), None);
        assert_eq!(copy_match(&mut out, 4, 4, 17), None);
        assert_eq!(copy_match(&mut out, 18, 17, 3), None);
        assert_eq!(copy_match(&mut out, 4, 4, usize::MAX), None);
        assert_eq!(copy_literals(&[1; 20], 18, &mut out, 0, 3), None);
        assert_eq!(copy_literals(&[1; 20], 0, &mut out, 19, 2), None);
        assert_eq!(copy_literals(&[1; 20], 18, &mut out, 18, 2), Some(()));
    }
}
