//! In which boxes an array that lies in blocks is read.

/// A box of fewer elements than this costs more to ask for than to read.
const FEW: u64 = 1 << 16;
/// A box of more than this holds up memory without being any cheaper.
const MANY: u64 = 1 << 20;

/// The shape of boxes that lie along blocks of shape `block` (entries of at least 1): whole multiples of small blocks,
/// whole parts of large ones, as far as there are any.
pub(super) fn read_shape(shape: &[u64], block: &[u64]) -> Vec<u64> {
    let lengths: Vec<u64> = shape.iter().map(|&n| n.max(1)).collect();
    let mut out: Vec<u64> = block.iter().zip(&lengths).map(|(&b, &n)| b.clamp(1, n)).collect();
    for d in 0..out.len() {
        let n = elements(&out);
        if n > MANY {
            out[d] = part(out[d], n.div_ceil(MANY));
        }
    }
    for d in (0..out.len()).rev() {
        let blocks = lengths[d].div_ceil(out[d]);
        let times = (FEW / elements(&out)).clamp(1, blocks);
        out[d] *= times;
        if times < blocks {
            break;
        }
    }
    out
}

/// The largest divisor of `n` that cuts it into at least `pieces`, or near to it where all are small.
fn part(n: u64, pieces: u64) -> u64 {
    let wanted = (n / pieces).max(1);
    let divisor = (wanted.div_ceil(2)..=wanted).rev().take(4096).find(|c| n.is_multiple_of(*c));
    divisor.unwrap_or(wanted)
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n: u64, &s| n.saturating_mul(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_are_read_several_at_once_from_the_inner_axes() {
        assert_eq!(read_shape(&[6, 150, 160], &[1, 50, 40]), [2, 150, 160]);
        assert_eq!(read_shape(&[20, 20], &[10, 10]), [20, 20]);
        assert_eq!(read_shape(&[1 << 30], &[10]), [65_530]);
    }

    #[test]
    fn large_blocks_are_read_in_parts_that_divide_them() {
        let shape = read_shape(&[4, 1024, 1024, 1024], &[1, 512, 512, 512]);
        assert_eq!(shape, [1, 4, 512, 512]);
        assert_eq!(read_shape(&[9, 512, 128, 1], &[9, 128, 128, 1]), [9, 128, 128, 1]);
        assert!(elements(&read_shape(&[1 << 40, 3], &[(1 << 40) - 1, 3])) <= MANY);
    }

    #[test]
    fn arrays_without_dimensions_or_elements() {
        assert_eq!(read_shape(&[], &[]), [0_u64; 0]);
        assert_eq!(read_shape(&[0, 5], &[3, 5]), [1, 5]);
    }
}
