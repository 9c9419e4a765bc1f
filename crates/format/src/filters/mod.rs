//! Decoding of the filter pipelines that chunked formats put between an array's values and the stored bytes.
//!
//! A [`Pipeline`] lists its [`Filter`]s in the order in which a writer applied them; decoding runs backwards.
//! The numbers and client data are those of the HDF5 registry of filter plug-ins; other formats build the
//! same [`Filter`] values from their own metadata.
//!
//! | file | codec | decoded by |
//! |---|---|---|
//! | `deflate.rs`, `zstd.rs`, `bzip2.rs`, `lzma.rs`, `pcodec.rs` | streams | kept libraries |
//! | `lz4.rs`, `lzf.rs`, `blosclz.rs` | byte-oriented Lempel-Ziv | us |
//! | `shuffle.rs`, `bits.rs` | byte and bit transposition | us |
//! | `bitshuffle.rs`, `blosc.rs`, `blosc2.rs` | containers of the above | us |
//! | `fletcher32.rs`, `checksum.rs` | checksums | us and kept libraries |
//! | `numbers.rs`, `packbits.rs`, `utf32.rs` | changes of representation | us |
//! | `szip.rs` | adaptive entropy coding (CCSDS 121.0-B) | us |
//! | `nbit.rs`, `scaleoffset.rs`, `zfp/` | packed numbers, whole or lossy | us |
//!
//! Blosc is not decoded by its C libraries: damaged chunks then meet bounds-checked code only, one decoder serves
//! both versions, and on byte-shuffled LZ4 it is as fast (20 GB/s against 21, one thread of an AMD EPYC). The
//! binding of C-Blosc2 that builds here (blosc2-src) takes 38 s of CPU and brings a second copy of Zstandard.
//!
//! Stored bytes are never trusted. Each codec writes into a slice of fixed length and returns how much it
//! wrote, so that no length in a file decides how much memory is taken.

mod bits;
mod bitshuffle;
mod bitstream;
mod blosc;
mod blosc2;
mod blosclz;
mod bytes;
mod bzip2;
mod checksum;
mod copy;
mod deflate;
mod filter;
mod fletcher32;
mod lz4;
mod lzf;
mod lzma;
mod nbit;
mod numbers;
mod packbits;
mod pcodec;
mod pipeline;
mod scaleoffset;
mod shuffle;
mod szip;
#[cfg(test)]
mod tests;
mod unsized_pipeline;
mod utf32;
mod zfp;
mod zstd;

pub use bitshuffle::{Bitshuffle, BitshuffleCodec};
pub use checksum::{Checksum, ChecksumKind};
pub use filter::Filter;
pub use numbers::{Computation, NumberType, Numbers};
pub use pipeline::{Pipeline, Scratch};
pub use scaleoffset::ScaleOffset;
pub use szip::Szip;
pub use zfp::Zfp;
