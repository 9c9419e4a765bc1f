//! Arrays of all types with values that are likely to harm.

use arbitrary::Arbitrary;
use sieva_index::{Elements, each};
use sieva_types::keys::{f32_key, f64_key};
use sieva_types::{Buffer, DType};

/// Elements of an array at most.
pub const LONGEST: usize = 6000;

/// The types that stored elements have.
pub const STORED: [DType; 10] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F32,
    DType::F64,
];

/// How an array is made.
#[derive(Arbitrary, Clone, Debug)]
pub struct ValuesRecipe {
    dtype: u8,
    order: Order,
    parts: Vec<Part>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Order {
    AsMade,
    Ascending,
    Mixed(u64),
}

/// Some elements in a row.
#[derive(Arbitrary, Clone, Debug)]
enum Part {
    One(Value),
    Run {
        value: Value,
        len: u8,
    },
    /// Bits of a linear congruential generator, shifted to the right: many distinct values.
    Noise {
        seed: u64,
        shift: u8,
        len: u16,
    },
    /// Decimal numbers such as people write, spread over `span` steps.
    Decimals {
        from: i16,
        span: u8,
        power: i8,
        len: u16,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Bits(u64),
    Small(i8),
    Special(u8),
    Decimal { digits: i16, power: i8 },
}

/// A value before it has a type.
#[derive(Clone, Copy)]
enum Raw {
    Bits(u64),
    Number(f64),
}

/// Elements with an owner.
#[derive(Debug)]
pub struct Data {
    dtype: DType,
    buffer: Buffer,
}

impl ValuesRecipe {
    /// The array.
    pub fn make(&self) -> Data {
        let mut raw = Vec::new();
        for part in &self.parts {
            part.put(&mut raw);
            raw.truncate(LONGEST);
        }
        let dtype = STORED[usize::from(self.dtype) % STORED.len()];
        let mut bytes: Vec<Vec<u8>> = raw.into_iter().map(|value| value.bytes(dtype)).collect();
        match self.order {
            Order::AsMade => {}
            Order::Ascending => bytes.sort_by_key(|b| key(dtype, b).map_or((true, 0), |k| (false, k))),
            Order::Mixed(seed) => {
                for i in (1..bytes.len()).rev() {
                    bytes.swap(i, (noise(seed, i as u64) % (i as u64 + 1)) as usize);
                }
            }
        }
        Data::new(dtype, &bytes.concat())
    }
}

impl Part {
    fn put(&self, out: &mut Vec<Raw>) {
        match *self {
            Self::One(value) => out.push(value.raw()),
            Self::Run { value, len } => out.extend(std::iter::repeat_n(value.raw(), len.into())),
            Self::Noise { seed, shift, len } => out.extend(
                (0..u64::from(len) % LONGEST as u64)
                    .map(|i| Raw::Bits(noise(seed, i).checked_shr(shift.into()).unwrap_or(i))),
            ),
            Self::Decimals { from, span, power, len } => {
                out.extend((0..u64::from(len) % LONGEST as u64).map(|i| {
                    let step = noise(from as u64, i) % (u64::from(span) + 1);
                    Raw::Number((f64::from(from) + step as f64) * 10_f64.powi(power.into()))
                }));
            }
        }
    }
}

impl Value {
    fn raw(self) -> Raw {
        const SPECIAL: [f64; 12] = [
            f64::NAN,
            -f64::NAN,
            0.0,
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
            9.969_209_968_386_869e36,
        ];
        match self {
            Self::Bits(bits) => Raw::Bits(bits),
            Self::Small(n) => Raw::Number(n.into()),
            Self::Special(n) => Raw::Number(SPECIAL[usize::from(n) % SPECIAL.len()]),
            Self::Decimal { digits, power } => Raw::Number(f64::from(digits) * 10_f64.powi(power.into())),
        }
    }
}

impl Raw {
    fn bytes(self, dtype: DType) -> Vec<u8> {
        let (bits, number) = match self {
            Self::Bits(bits) => (bits, None),
            // Of integers the nearest, which for what is not finite is an extreme one or 0.
            Self::Number(x) if dtype == DType::U64 => (x as u64, Some(x)),
            Self::Number(x) => (x as i64 as u64, Some(x)),
        };
        match dtype {
            DType::F32 => number.map_or(f32::from_bits(bits as u32), |x| x as f32).to_ne_bytes().to_vec(),
            DType::F64 => number.unwrap_or(f64::from_bits(bits)).to_ne_bytes().to_vec(),
            DType::I8 | DType::U8 => vec![bits as u8],
            DType::I16 | DType::U16 => (bits as u16).to_ne_bytes().to_vec(),
            DType::I32 | DType::U32 => (bits as u32).to_ne_bytes().to_vec(),
            _ => bits.to_ne_bytes().to_vec(),
        }
    }
}

impl Data {
    /// The elements of these bytes.
    pub fn new(dtype: DType, bytes: &[u8]) -> Self {
        let mut buffer = Buffer::default();
        buffer.resize(bytes.len());
        buffer.bytes_mut().copy_from_slice(bytes);
        Self { dtype, buffer }
    }

    /// Their type, which is never bool, float16 or text.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The elements.
    pub fn all(&self) -> Elements<'_> {
        Elements::new(self.dtype, &self.buffer).expect("numbers")
    }

    /// Elements `from..to`.
    pub fn part(&self, from: usize, to: usize) -> Data {
        let size = self.dtype.size();
        Self::new(self.dtype, &self.buffer.bytes()[from * size..to * size])
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys of all elements that are not NaN.
    pub fn keys(&self) -> Vec<i128> {
        self.bytes().chunks_exact(self.dtype.size()).filter_map(|raw| key(self.dtype, raw)).collect()
    }

    /// The bytes of the elements.
    pub fn bytes(&self) -> &[u8] {
        self.all().bytes()
    }
}

/// The key of an element; NaN has none.
pub fn key(dtype: DType, raw: &[u8]) -> Option<i128> {
    let mut buffer = Buffer::default();
    buffer.resize(raw.len());
    buffer.bytes_mut().copy_from_slice(raw);
    let elements = Elements::new(dtype, &buffer)?;
    each!(elements, v => v.first().and_then(|x| x.key()))
}

trait Keyed {
    fn key(&self) -> Option<i128>;
}

macro_rules! keyed {
    ($($t:ty),*) => {$(
        impl Keyed for $t {
            fn key(&self) -> Option<i128> {
                Some((*self).into())
            }
        }
    )*};
}
keyed!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Keyed for f32 {
    fn key(&self) -> Option<i128> {
        (!self.is_nan()).then(|| f32_key(*self))
    }
}

impl Keyed for f64 {
    fn key(&self) -> Option<i128> {
        (!self.is_nan()).then(|| f64_key(*self))
    }
}

/// The `i`-th of the numbers that look random for a seed (splitmix64).
pub fn noise(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
