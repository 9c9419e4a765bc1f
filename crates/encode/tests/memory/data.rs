//! A source that is small as a file and large as rows: arrays of one dimension each, which broadcast, and some of
//! millions of elements.

use std::path::{Path, PathBuf};

use sieva::{OpenOptions, Source};

/// A Zarr group in a directory that is removed with it.
pub struct Data(pub PathBuf);

impl Data {
    /// Rows over (x, y, z) are 2^20 times `steps`, and there are 2^15 times `steps` along `p`.
    pub fn new(steps: usize) -> Self {
        let dir = std::env::temp_dir().join(format!("sieva-memory-{}-{steps}", std::process::id()));
        let data = Self(dir);
        std::fs::create_dir_all(&data.0).unwrap();
        std::fs::write(data.0.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
        for (name, dim, n) in [("a", "x", 1024), ("b", "y", 1024), ("c", "z", steps)] {
            data.floats(name, dim, n, n, |i| i as f64 * 1.25 + 0.1);
        }
        data.array("t", "x", (1024, 1024), "|S16", |i, out| {
            out.extend(format!("station {:08}", i % 1000).bytes())
        });
        data.array("k", "x", (1024, 1024), "<i4", |i, out| out.extend((i as i32 % 7).to_le_bytes()));
        for (name, dim) in [("iv", "i"), ("jv", "j"), ("lv", "l")] {
            data.floats(name, dim, 100_000, 100_000, |i| (i * 37 % 100_000) as f64);
        }
        let long = steps << 15;
        data.floats("u", "q", 1 << 22, 1 << 22, |i| i as f64);
        // Neighbours have nothing in common, and no value comes twice.
        let scattered = |i: usize| (i.wrapping_mul(2_654_435_761) % (1 << 32)) as f64;
        data.floats("v", "p", long, long / 8, scattered);
        data.array("name", "p", (long, long / 8), "|S16", |i, out| {
            out.extend(format!("{:016x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).bytes());
        });
        data
    }

    pub fn open(&self) -> Source {
        Source::open(&self.0, &OpenOptions::default()).unwrap()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.with_extension(name)
    }

    fn floats(&self, name: &str, dim: &str, n: usize, chunk: usize, value: impl Fn(usize) -> f64) {
        self.array(name, dim, (n, chunk), "<f8", |i, out| out.extend(value(i).to_le_bytes()));
    }

    fn array(
        &self,
        name: &str,
        dim: &str,
        (n, chunk): (usize, usize),
        dtype: &str,
        put: impl Fn(usize, &mut Vec<u8>),
    ) {
        let dir = self.0.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let meta = format!(
            r#"{{"zarr_format": 2, "shape": [{n}], "chunks": [{chunk}], "dtype": "{dtype}", "compressor": null,
                "fill_value": null, "order": "C", "filters": null}}"#
        );
        std::fs::write(dir.join(".zarray"), meta).unwrap();
        std::fs::write(dir.join(".zattrs"), format!(r#"{{"_ARRAY_DIMENSIONS": ["{dim}"]}}"#)).unwrap();
        for number in 0..n.div_ceil(chunk) {
            let mut bytes = Vec::new();
            (number * chunk..(number + 1) * chunk).for_each(|i| put(i, &mut bytes));
            std::fs::write(dir.join(number.to_string()), bytes).unwrap();
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let removed = |path: &Path| std::fs::remove_dir_all(path);
        removed(&self.0).unwrap();
    }
}
