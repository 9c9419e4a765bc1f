//! TFORM and TDIM of binary tables (FITS standard 4.0, sections 7.3.1 and 7.3.2).

use sieva_types::DType;

use crate::scan::MAX_RANK;

/// What a TFORM says: `rTa`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tform {
    /// How many elements a row has.
    pub(crate) repeat: u64,
    /// The type's letter.
    pub(crate) code: char,
    /// What follows the letter.
    pub(crate) rest: String,
}

impl Tform {
    /// Parses a TFORM; `None` where its type is unknown or it is no TFORM.
    pub(crate) fn parse(text: &str) -> Option<Tform> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let repeat = if digits == 0 { 1 } else { text[..digits].parse().ok().filter(|&r| r < 1 << 40)? };
        let mut rest = text[digits..].chars();
        let code = rest.next()?.to_ascii_uppercase();
        "LXBIJKAEDCMPQ".contains(code).then(|| Tform { repeat, code, rest: rest.as_str().trim().into() })
    }

    /// Bytes that the column takes in a row.
    pub(crate) fn bytes(&self) -> u64 {
        let size = match self.code {
            'X' => return self.repeat.div_ceil(8),
            'I' => 2,
            'J' | 'E' => 4,
            'K' | 'D' | 'C' | 'P' => 8,
            'M' | 'Q' => 16,
            _ => 1,
        };
        self.repeat * size
    }

    /// The stored type of its elements, `None` for those without plain values.
    pub(crate) fn dtype(&self) -> Option<DType> {
        Some(match self.code {
            'L' | 'X' => DType::Bool,
            'B' => DType::U8,
            'I' => DType::I16,
            'J' => DType::I32,
            'K' => DType::I64,
            'A' => DType::Str,
            'E' => DType::F32,
            'D' => DType::F64,
            _ => return None,
        })
    }

    /// The width of texts where a row has several: `rAw` holds r / w of w characters.
    pub(crate) fn text_width(&self) -> Option<u64> {
        let width = self.rest.parse().ok().filter(|&w| w > 0)?;
        (width < self.repeat && self.repeat.is_multiple_of(width)).then_some(width)
    }
}

/// The lengths in a TDIM `(a,b,...)`, fastest first; `None` where it is none or does not make `elements`.
pub(crate) fn tdim(text: &str, elements: u64) -> Option<Vec<u64>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let lengths: Vec<u64> = inner.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    let product = lengths.iter().try_fold(1_u64, |n, &len| n.checked_mul(len))?;
    // A writer may leave elements at the end of the cell unused; all others are as the standard wants them.
    (product <= elements && (1..MAX_RANK).contains(&lengths.len()) && product > 0).then_some(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let form = |t| Tform::parse(t).unwrap();
        assert_eq!((form("E").repeat, form("E").bytes()), (1, 4));
        assert_eq!(form("20X").bytes(), 3);
        assert_eq!(form("3D").bytes(), 24);
        assert_eq!(form("0J").bytes(), 0);
        assert_eq!(form("60A12").text_width(), Some(12));
        assert_eq!(form("60A").text_width(), None);
        assert_eq!(form("1PE(7)").rest, "E(7)");
        assert_eq!(form("1PE(7)").dtype(), None);
        for wrong in ["", "12", "1Z", "99999999999999999999E"] {
            assert_eq!(Tform::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dimensions_must_fit_the_cell() {
        assert_eq!(tdim("(3, 2)", 6), Some(vec![3, 2]));
        assert_eq!(tdim("(3,2)", 5), None);
        assert_eq!(tdim("(4294967296,4294967296)", 6), None);
        assert_eq!(tdim("3,2", 6), None);
    }
}
