//! A hash of single numbers that is a multiplication: of what is chosen at random at the start of the process, so that nobody
//! can make a file whose values all have one hash.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// An odd number that no pattern of bits is a multiple of.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Makes hashers with the seed of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(u64, u64);

impl Default for Seeded {
    fn default() -> Self {
        static SEEDS: LazyLock<(u64, u64)> = LazyLock::new(|| {
            let random = RandomState::new();
            (random.hash_one(0_u8), random.hash_one(1_u8) | 1)
        });
        Self(SEEDS.0, SEEDS.1)
    }
}

impl BuildHasher for Seeded {
    type Hasher = Multiplied;

    fn build_hasher(&self) -> Multiplied {
        Multiplied { hash: self.0, factor: self.1 }
    }
}

/// The hash so far.
pub(super) struct Multiplied {
    hash: u64,
    factor: u64,
}

/// Both halves of a product.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        folded(self.hash, FACTOR)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.hash = folded(self.hash ^ value, self.factor);
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_pattern_are_spread() {
        let of = Seeded::default();
        for step in [1_u64, 1 << 20, 1 << 52, 3 << 40] {
            // Places in a table of 4096, and its marks of 7 bits.
            let (mut places, mut marks) = (vec![0_u32; 4096], vec![0_u32; 128]);
            for i in 0..4096_u64 {
                let hash = of.hash_one(i.wrapping_mul(step));
                places[hash as usize % 4096] += 1;
                marks[(hash >> 57) as usize] += 1;
            }
            assert!(places.iter().all(|&n| n < 16) && marks.iter().all(|&n| n < 128), "{step}");
        }
    }
}
