//! Sizes as people write them.

use crate::{Error, ErrorKind, Result};

/// Bytes of a size as text: `512MiB`, `2GB`, `1g`, `4096`. KiB, MiB, GiB, TiB and the bare letters are powers of 1024;
/// KB, MB, GB, TB powers of 1000.
///
/// # Errors
/// `invalid-value`, saying what is expected.
///
/// ```
/// assert_eq!(sieva_types::parse_size("1.5 KiB")?, 1536);
/// assert!(sieva_types::parse_size("lots").is_err());
/// # Ok::<(), sieva_types::Error>(())
/// ```
pub fn parse_size(text: &str) -> Result<u64> {
    let wrong = || {
        let message =
            format!("'{text}' is no size: expected a number of bytes, or one with KiB, MiB, GiB, KB, MB, GB");
        Error::new(ErrorKind::InvalidValue, message)
    };
    let beyond = || {
        Error::new(ErrorKind::InvalidValue, format!("'{text}' is too large: expected less than 2^64 bytes"))
    };
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !number.split_once('.').map_or(digits(number), |(whole, part)| digits(whole) && digits(part)) {
        return Err(wrong());
    }
    let unit = factor(&unit.trim_start().to_ascii_lowercase()).ok_or_else(wrong)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(beyond);
    }
    let bytes = number.parse::<f64>().map_err(|_| wrong())? * unit as f64;
    // 2^64: what is not less has no u64.
    if bytes < 18_446_744_073_709_551_616.0 { Ok(bytes as u64) } else { Err(beyond()) }
}

fn factor(unit: &str) -> Option<u64> {
    let Some(power) = unit.chars().next().and_then(|c| "kmgt".find(c)) else {
        return matches!(unit, "" | "b").then_some(1);
    };
    let base: u64 = match &unit[1..] {
        "" | "ib" => 1024,
        "b" => 1000,
        _ => return None,
    };
    Some(base.pow(power as u32 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_people() {
        let of = |text| parse_size(text).unwrap();
        assert_eq!(of("512MiB"), 512 << 20);
        assert_eq!(of("2GB"), 2_000_000_000);
        assert_eq!((of("1g"), of(" 4096 "), of("0"), of("7 b")), (1 << 30, 4096, 0, 7));
        assert_eq!(
            (of("0.5TiB"), of("1.5k"), of("9007199254740993")),
            (1 << 39, 1536, 9_007_199_254_740_993)
        );
        for wrong in ["", "lots", "-1", "1e3", "1.", ".5", "1.2.3", "5 XiB", "5kk", "é", "5é"] {
            assert!(parse_size(wrong).unwrap_err().message().contains("is no size"), "{wrong}");
        }
        for large in ["20000000000TB", "18446744073709551616", "16777216.5TiB"] {
            assert!(parse_size(large).unwrap_err().message().contains("too large"), "{large}");
        }
    }
}
