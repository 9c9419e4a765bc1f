//! External types: their codes, sizes and default fill values (netcdf.h, `NC_FILL_*`).

use sieva_types::DType;

/// An external type. The last five came with CDF-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NcType {
    Byte,
    Char,
    Short,
    Int,
    Float,
    Double,
    UByte,
    UShort,
    UInt,
    Int64,
    UInt64,
}

impl NcType {
    /// The type of code `code`.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Byte,
            2 => Self::Char,
            3 => Self::Short,
            4 => Self::Int,
            5 => Self::Float,
            6 => Self::Double,
            7 => Self::UByte,
            8 => Self::UShort,
            9 => Self::UInt,
            10 => Self::Int64,
            11 => Self::UInt64,
            _ => return None,
        })
    }

    /// Whether only CDF-5 defines it.
    pub(crate) fn is_cdf5(self) -> bool {
        matches!(self, Self::UByte | Self::UShort | Self::UInt | Self::Int64 | Self::UInt64)
    }

    /// Bytes of one value.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Byte | Self::Char | Self::UByte => 1,
            Self::Short | Self::UShort => 2,
            Self::Int | Self::UInt | Self::Float => 4,
            Self::Double | Self::Int64 | Self::UInt64 => 8,
        }
    }

    /// What a program sees.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::Byte => DType::I8,
            Self::Char => DType::Str,
            Self::Short => DType::I16,
            Self::Int => DType::I32,
            Self::Float => DType::F32,
            Self::Double => DType::F64,
            Self::UByte => DType::U8,
            Self::UShort => DType::U16,
            Self::UInt => DType::U32,
            Self::Int64 => DType::I64,
            Self::UInt64 => DType::U64,
        }
    }

    /// The stored type as numpy writes it.
    pub(crate) fn numpy(self) -> &'static str {
        match self {
            Self::Byte => "|i1",
            Self::Char => "|S1",
            Self::Short => ">i2",
            Self::Int => ">i4",
            Self::Float => ">f4",
            Self::Double => ">f8",
            Self::UByte => "|u1",
            Self::UShort => ">u2",
            Self::UInt => ">u4",
            Self::Int64 => ">i8",
            Self::UInt64 => ">u8",
        }
    }

    /// What stands for a value never written, as it is stored.
    pub(crate) fn default_fill(self) -> Vec<u8> {
        match self {
            Self::Byte => (-127_i8).to_be_bytes().to_vec(),
            Self::Char => vec![0],
            Self::Short => (-32767_i16).to_be_bytes().to_vec(),
            Self::Int => (-2_147_483_647_i32).to_be_bytes().to_vec(),
            Self::Float => FILL_FLOAT.to_be_bytes().to_vec(),
            Self::Double => f64::from(FILL_FLOAT).to_be_bytes().to_vec(),
            Self::UByte => vec![255],
            Self::UShort => u16::MAX.to_be_bytes().to_vec(),
            Self::UInt => u32::MAX.to_be_bytes().to_vec(),
            Self::Int64 => (-9_223_372_036_854_775_806_i64).to_be_bytes().to_vec(),
            Self::UInt64 => (u64::MAX - 1).to_be_bytes().to_vec(),
        }
    }
}

/// 9.96921e36: 15 * 2^119, exact in both float types.
const FILL_FLOAT: f32 = f32::from_bits(0x7cf0_0000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_agree_with_names_dtypes_and_fills() {
        assert_eq!(NcType::from_code(0), None);
        assert_eq!(NcType::from_code(12), None);
        for t in (1..=11).filter_map(NcType::from_code) {
            assert!(t.numpy().ends_with(&t.size().to_string()), "{t:?}");
            assert_eq!(t.default_fill().len(), t.size(), "{t:?}");
            if t != NcType::Char {
                assert_eq!(t.dtype().size(), t.size(), "{t:?}");
            }
        }
    }

    #[test]
    fn the_float_fill_is_that_of_netcdf_h() {
        assert_eq!(f64::from(FILL_FLOAT), 9.969_209_968_386_869e36);
        assert_eq!(NcType::Double.default_fill(), [0x47, 0x9e, 0, 0, 0, 0, 0, 0]);
    }
}
