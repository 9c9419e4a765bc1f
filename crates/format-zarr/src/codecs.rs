//! Codecs by name, as stages of the shared pipeline.
//!
//! Version 2 has the codecs of numcodecs under `id`; version 3 has a few of its own and, with the prefix `numcodecs.`,
//! the others. Of stages that only change what a writer keeps (`quantize`, `bitround`) nothing is left to a reader but a type.

use serde_json::Value;
use sieva_format::filters::{Checksum, ChecksumKind, Computation, Filter, NumberType, Numbers, Zfp};
use sieva_types::{Endian, Error, Result};

use crate::element::Kind;
use crate::item::Item;
use crate::json::{self, member, wrong};

/// A codec as either version writes it: its name and parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codec<'a> {
    pub(crate) name: &'a str,
    pub(crate) parameters: &'a Value,
}

/// What a codec is to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing.
    Nothing,
    /// A stage of the pipeline.
    Filter(Filter),
    /// The framing of texts of any length.
    VarTexts,
}

impl<'a> Codec<'a> {
    /// A codec of version 2.
    pub(crate) fn v2(value: &'a Value) -> Result<Self> {
        let name =
            member(value, "id").as_str().ok_or_else(|| wrong("a codec", "an object with an id", value))?;
        Ok(Self { name, parameters: value })
    }

    /// A codec of version 3.
    pub(crate) fn v3(value: &'a Value) -> Result<Self> {
        let (name, parameters) = json::named(value, "a codec")?;
        Ok(Self { name: name.strip_prefix("numcodecs.").unwrap_or(name), parameters })
    }

    /// The codec as a stage. Numbers are in the byte order `endian` where their type does not say.
    pub(crate) fn stage(&self, endian: Option<Endian>) -> Result<Stage> {
        Ok(Stage::Filter(match self.name {
            "bitround" => return Ok(Stage::Nothing),
            "vlen-utf8" | "vlen-bytes" => return Ok(Stage::VarTexts),
            "gzip" => Filter::Gzip,
            "zlib" => Filter::Deflate,
            "zstd" => Filter::Zstd,
            "blosc" => Filter::Blosc,
            "lz4" => Filter::Lz4Sized,
            "bz2" => Filter::Bzip2,
            // With a header that tells the rest.
            "lzma" if member(self.parameters, "format").as_u64() != Some(LZMA_RAW) => Filter::Lzma,
            "pcodec" => Filter::Pcodec,
            "zfpy" => Filter::Zfp(Zfp::with_header()),
            "fletcher32" => Filter::Fletcher32,
            "packbits" => Filter::PackBits,
            "shuffle" => self.shuffle()?,
            "crc32c" => self.checksum(ChecksumKind::Crc32c, "end")?,
            "crc32" => self.checksum(ChecksumKind::Crc32, "start")?,
            "adler32" => self.checksum(ChecksumKind::Adler32, "start")?,
            "jenkins_lookup3" if member(self.parameters, "prefix").is_null() => {
                let given = member(self.parameters, "initval");
                let initial = if given.is_null() { Some(0) } else { given.as_u64() };
                let initial = initial.and_then(|n| u32::try_from(n).ok());
                let initial = initial
                    .ok_or_else(|| wrong("jenkins_lookup3's initval", "a number of 32 bits", given))?;
                Filter::Checksum(Checksum { kind: ChecksumKind::Lookup3(initial), at_start: false })
            }
            "delta" => self.numbers(Computation::Delta, ("astype", "dtype"), endian)?,
            // What was rounded stays rounded; it may be stored as another type.
            "quantize" => self.numbers(Computation::AsType, ("astype", "dtype"), endian)?,
            "astype" => self.numbers(Computation::AsType, ("encode_dtype", "decode_dtype"), endian)?,
            "fixedscaleoffset" => {
                let bits = |name| {
                    let given = member(self.parameters, name);
                    given
                        .as_f64()
                        .map(f64::to_bits)
                        .ok_or_else(|| wrong(format!("fixedscaleoffset's {name}"), "a number", given))
                };
                let computation = Computation::ScaleOffset { scale: bits("scale")?, offset: bits("offset")? };
                self.numbers(computation, ("astype", "dtype"), endian)?
            }
            other => Filter::Other { id: 0, name: other.to_owned() },
        }))
    }

    fn shuffle(&self) -> Result<Filter> {
        let given = member(self.parameters, "elementsize");
        let size =
            if given.is_null() { Some(4) } else { given.as_u64().and_then(|n| usize::try_from(n).ok()) };
        let element_size = size.filter(|&n| n > 0 && n <= 1 << 16);
        let element_size =
            element_size.ok_or_else(|| wrong("shuffle's elementsize", "a number of bytes", given))?;
        Ok(Filter::Shuffle { element_size })
    }

    fn checksum(&self, kind: ChecksumKind, default: &str) -> Result<Filter> {
        let given = member(self.parameters, "location");
        match given.as_str().unwrap_or(default) {
            "start" => Ok(Filter::Checksum(Checksum { kind, at_start: true })),
            "end" => Ok(Filter::Checksum(Checksum { kind, at_start: false })),
            _ => Err(wrong(format!("{}'s location", self.name), "\"start\" or \"end\"", given)),
        }
    }

    fn numbers(
        &self,
        computation: Computation,
        (stored, decoded): (&str, &str),
        endian: Option<Endian>,
    ) -> Result<Filter> {
        let number_type = |name: &str| {
            let given = member(self.parameters, name);
            // Where the stored type is not given it is the decoded one.
            let given = if given.is_null() { member(self.parameters, decoded) } else { given };
            let element = Item::parse_v2(given)?.members.first().map(|m| m.element);
            match element.map(|e| (e, e.kind)) {
                Some((e, Kind::Number(dtype))) => {
                    Ok(NumberType { dtype, endian: endian.unwrap_or(e.endian) })
                }
                _ => Err(wrong(format!("{}'s {name}", self.name), "a type of numbers", given)),
            }
        };
        let (stored, decoded) = (number_type(stored)?, number_type(decoded)?);
        Ok(Filter::Numbers(Numbers { computation, stored, decoded }))
    }
}

/// The codecs of a version 3 array, put in order.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// For each dimension of the encoded array, the dimension of the decoded one.
    pub(crate) axes: Vec<usize>,
    /// Stages in the order of writing.
    pub(crate) filters: Vec<Filter>,
    /// Byte order of the stored numbers.
    pub(crate) endian: Endian,
    /// Whether chunks hold framed texts.
    pub(crate) is_var_text: bool,
    /// What the chunk is divided into.
    pub(crate) shards: Option<Box<Sharding>>,
}

/// The codec `sharding_indexed`.
#[derive(Clone, Debug)]
pub(crate) struct Sharding {
    /// Shape of an inner chunk, in the dimensions of the encoded array.
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) inner: Chain,
    pub(crate) index: IndexCodecs,
}

/// How the index of a shard is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexCodecs {
    pub(crate) endian: Endian,
    pub(crate) has_checksum: bool,
    pub(crate) at_start: bool,
}

/// The number that numcodecs has for LZMA without a header, whose filters are written down beside it.
const LZMA_RAW: u64 = 3;
/// The deepest nesting of shards.
const MAX_SHARD_DEPTH: usize = 4;
/// The most codecs of an array.
const MAX_CODECS: usize = 64;

impl Chain {
    /// Parses the list `codecs` of an array of `rank` dimensions; `depth` counts the shards around it.
    pub(crate) fn parse(codecs: &Value, rank: usize, depth: usize) -> Result<Self> {
        let list = json::list(codecs, "codecs")?;
        if list.len() > MAX_CODECS || depth > MAX_SHARD_DEPTH {
            let message = format!("more than {MAX_CODECS} codecs or {MAX_SHARD_DEPTH} levels of shards");
            return Err(crate::element::unsupported(message));
        }
        let codecs: Vec<Codec> = list.iter().map(Codec::v3).collect::<Result<_>>()?;
        let endian = codecs.iter().find(|c| c.name == "bytes").map_or(Ok(Endian::Little), endian)?;
        let mut chain =
            Self { axes: (0..rank).collect(), filters: Vec::new(), endian, is_var_text: false, shards: None };
        let mut is_bytes = false;
        for codec in &codecs {
            match codec.name {
                "transpose" if !is_bytes => chain.transpose(member(codec.parameters, "order"))?,
                "bytes" | "endian" if !is_bytes => is_bytes = true,
                "sharding_indexed" if !is_bytes => {
                    chain.shards = Some(Box::new(sharding(codec.parameters, rank, depth)?));
                    is_bytes = true;
                }
                "transpose" | "bytes" | "endian" | "sharding_indexed" => {
                    return Err(Error::corrupt(format!(
                        "codec '{}' after the array was made bytes",
                        codec.name
                    )));
                }
                _ => is_bytes |= chain.add(codec)?,
            }
        }
        if !is_bytes {
            return Err(Error::corrupt("no codec makes bytes of the array: 'bytes' or another is expected"));
        }
        Ok(chain)
    }

    /// Adds a stage; whether it is one that makes bytes of an array.
    fn add(&mut self, codec: &Codec) -> Result<bool> {
        match codec.stage(Some(self.endian))? {
            Stage::Nothing => Ok(false),
            Stage::VarTexts => {
                self.is_var_text = true;
                Ok(true)
            }
            Stage::Filter(filter) => {
                let is_array_to_bytes = match &filter {
                    Filter::Pcodec | Filter::Zfp(_) => true,
                    Filter::Other { name, .. } => matches!(name.as_str(), "zfp" | "vlen-array"),
                    _ => false,
                };
                self.filters.push(filter);
                Ok(is_array_to_bytes)
            }
        }
    }

    fn transpose(&mut self, order: &Value) -> Result<()> {
        if !self.filters.is_empty() {
            return Err(crate::element::unsupported(
                "codec 'transpose' after one that computes with numbers",
            ));
        }
        let rank = self.axes.len();
        let order: Vec<usize> = match order.as_str() {
            Some("C") => (0..rank).collect(),
            Some("F") => (0..rank).rev().collect(),
            _ => json::lengths(order, "transpose's order")?
                .into_iter()
                .map(|d| usize::try_from(d).unwrap_or(rank))
                .collect(),
        };
        let mut seen = vec![false; rank];
        let is_permutation =
            order.len() == rank && order.iter().all(|&d| d < rank && !std::mem::replace(&mut seen[d], true));
        if !is_permutation {
            return Err(Error::corrupt(format!(
                "transpose's order is {order:?}, expected a permutation of {rank} dimensions"
            )));
        }
        self.axes = order.iter().map(|&d| self.axes[d]).collect();
        Ok(())
    }
}

fn endian(codec: &Codec) -> Result<Endian> {
    match member(codec.parameters, "endian") {
        Value::Null => Ok(Endian::Little),
        given => match given.as_str() {
            Some("little") => Ok(Endian::Little),
            Some("big") => Ok(Endian::Big),
            _ => Err(wrong("the codec bytes' endian", "\"little\" or \"big\"", given)),
        },
    }
}

fn sharding(parameters: &Value, rank: usize, depth: usize) -> Result<Sharding> {
    let chunk_shape = json::lengths(member(parameters, "chunk_shape"), "chunk_shape of a shard")?;
    let inner = Chain::parse(member(parameters, "codecs"), rank, depth + 1)?;
    let location = member(parameters, "index_location");
    let at_start = match location.as_str() {
        Some("start") => true,
        Some("end") => false,
        None if location.is_null() => false,
        _ => return Err(wrong("index_location", "\"start\" or \"end\"", location)),
    };
    let mut index = IndexCodecs { endian: Endian::Little, has_checksum: false, at_start };
    for codec in json::list(member(parameters, "index_codecs"), "index_codecs")? {
        let codec = Codec::v3(codec)?;
        match codec.name {
            "bytes" if !index.has_checksum => index.endian = endian(&codec)?,
            "crc32c" if !index.has_checksum => index.has_checksum = true,
            other => return Err(crate::element::unsupported(format!("codec '{other}' of a shard's index"))),
        }
    }
    Ok(Sharding { chunk_shape, inner, index })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn transpositions_compose() {
        let codecs = json!([
            {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
            {"name": "transpose", "configuration": {"order": [1, 0, 2]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
            {"name": "numcodecs.crc32", "configuration": {"location": "end"}}
        ]);
        let chain = Chain::parse(&codecs, 3, 0).unwrap();
        assert_eq!(chain.axes, [0, 2, 1]);
        assert_eq!(chain.endian, Endian::Big);
        assert_eq!(
            chain.filters,
            [Filter::Checksum(Checksum { kind: ChecksumKind::Crc32, at_start: false })]
        );
        for order in [json!([0, 0, 1]), json!([0, 1]), json!([0, 1, 3]), json!(null)] {
            let codecs = json!([{"name": "transpose", "configuration": {"order": order}}, {"name": "bytes"}]);
            assert!(Chain::parse(&codecs, 3, 0).is_err());
        }
    }

    #[test]
    fn endless_shards_are_refused() {
        let mut codecs = json!([{"name": "bytes"}]);
        for _ in 0..10 {
            codecs = json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": codecs,
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]);
        }
        assert!(Chain::parse(&codecs, 1, 0).is_err());
    }

    #[test]
    fn an_array_must_become_bytes_once() {
        for codecs in
            [json!([]), json!(["gzip"]), json!(["bytes", "bytes"]), json!(["gzip", "bytes", "transpose"])]
        {
            assert!(Chain::parse(&codecs, 1, 0).is_err(), "{codecs}");
        }
    }
}
