//! Types of values: those of columns and those of the C subset.

/// The type of the values of a column. The numbers are those of the columnar interface of modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Element {
    /// Signed, 8 bits.
    I8 = 1,
    /// Unsigned, 8 bits.
    U8 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Unsigned, 16 bits.
    U16 = 4,
    /// Signed, 32 bits.
    I32 = 5,
    /// Unsigned, 32 bits.
    U32 = 6,
    /// Signed, 64 bits.
    I64 = 7,
    /// Unsigned, 64 bits.
    U64 = 8,
    /// IEEE 754, 32 bits.
    F32 = 9,
    /// IEEE 754, 64 bits.
    F64 = 10,
}

impl Element {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// Its number in the columnar interface.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The type of a number of the interface.
    pub fn of_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.code() == code)
    }

    /// Bytes of a value.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it is an integer type without a sign.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Its name in C.
    pub fn c_name(self) -> &'static str {
        match self {
            Self::I8 => "char",
            Self::U8 => "unsigned char",
            Self::I16 => "short",
            Self::U16 => "unsigned short",
            Self::I32 => "int",
            Self::U32 => "unsigned int",
            Self::I64 => "long",
            Self::U64 => "unsigned long",
            Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    /// Its name as that of an array's values.
    pub fn name(self) -> &'static str {
        match self {
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The type that C computes in: nothing smaller than `int`.
    pub(crate) fn promoted(self) -> Self {
        match self {
            Self::I8 | Self::U8 | Self::I16 | Self::U16 => Self::I32,
            other => other,
        }
    }

    /// The type in which C computes with values of two types (the usual arithmetic conversions).
    pub(crate) fn common(self, other: Self) -> Self {
        let (a, b) = (self.promoted(), other.promoted());
        let rank = |e: Self| e.code();
        // The numbers rise as the conversions go: int, unsigned, long, unsigned long, float, double.
        if rank(a) >= rank(b) { a } else { b }
    }
}
