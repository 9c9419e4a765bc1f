//! Numbers and times as text.

use std::fmt::LowerExp;
use std::io::Write;

/// Exponents of ten from which on, and up to which, floats are written without an exponent.
const PLAIN: std::ops::Range<i32> = -6..10;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// A float: the shortest digits that read back to it; `5.0`, `0.000001`, `1e-7`, `1.5e+10`, `inf`, `nan`.
pub(crate) fn float<T: LowerExp + Copy + Into<f64>>(value: T, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    if !wide.is_finite() {
        let name: &[u8] = match wide {
            f64::INFINITY => b"inf",
            f64::NEG_INFINITY => b"-inf",
            _ => b"nan",
        };
        return out.extend(name);
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !PLAIN.contains(&exponent) {
        out.extend(mantissa.as_bytes());
        out.extend(if exponent < 0 { "e" } else { "e+" }.as_bytes());
        let _ = write!(out, "{exponent}");
        return;
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    out.extend(sign.as_bytes());
    match usize::try_from(exponent) {
        Ok(point) => {
            // Digits before the point, as many as there are, then zeros.
            let whole = point + 1;
            out.extend(digits.iter().copied().chain(std::iter::repeat(b'0')).take(whole));
            out.push(b'.');
            out.extend(digits.get(whole..).filter(|rest| !rest.is_empty()).unwrap_or(b"0"));
        }
        Err(_) => {
            out.extend(b"0.");
            out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
            out.extend(digits);
        }
    }
}

/// A float in JSON as Python writes it: `0.0`, `1e-05`, `1e+16`, `NaN`, `Infinity`.
pub(crate) fn json(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text,
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
            format!("{mantissa}e{sign}{digits:0>2}")
        }
    }
}

/// Microseconds since 1970 as ISO 8601: `2000-01-16T12:00:00`, with as many decimals of the second as are not zero.
pub(crate) fn timestamp(microseconds: i64, out: &mut Vec<u8>) {
    let (days, rest) =
        (microseconds.div_euclid(MICROSECONDS_PER_DAY), microseconds.rem_euclid(MICROSECONDS_PER_DAY));
    let (year, month, day) = date(days);
    let seconds = rest / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    let decimals = rest % 1_000_000;
    if decimals > 0 {
        let text = format!("{decimals:06}");
        out.push(b'.');
        out.extend(text.trim_end_matches('0').as_bytes());
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar: by years that begin in
/// March, so that the leap day is the last (E. G. Richards, "Calendars", 2013, section 15.11).
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // From 0000-03-01 on.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let january = i64::from(month >= 10);
    (400 * era + year + january, if month < 10 { month + 3 } else { month - 9 }, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: LowerExp + Copy + Into<f64>>(value: T) -> String {
        let mut out = Vec::new();
        float(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_short_and_say_that_they_are_floats() {
        // What pyarrow 25 casts to text, with `.0` behind whole numbers.
        let cases = [
            (1e-3, "0.001"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (1e9, "1000000000.0"),
            (1e10, "1e+10"),
            (1_234_567_890.5, "1234567890.5"),
            (123_456_789_012_345.0, "1.23456789012345e+14"),
            (1.5e300, "1.5e+300"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
            (-0.0, "-0.0"),
            (5e-324, "5e-324"),
            (0.1, "0.1"),
            (100.0, "100.0"),
            (-7.25, "-7.25"),
            (0.0, "0.0"),
        ];
        cases.iter().for_each(|(value, text)| assert_eq!(of(*value), *text));
        assert_eq!(
            (of(0.1_f32), of(1_234_567_890_f32), of(1e-45_f32)),
            ("0.1".into(), "1234568000.0".into(), "1e-45".into())
        );
    }

    #[test]
    fn times_are_iso() {
        let of = |v| {
            let mut out = Vec::new();
            timestamp(v, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of(0), "1970-01-01T00:00:00");
        assert_eq!(of(-1), "1969-12-31T23:59:59.999999");
        assert_eq!(of(951_782_400_500_000), "2000-02-29T00:00:00.5");
        assert_eq!(of(-62_135_596_800_000_001), "0000-12-31T23:59:59.999999");
        assert_eq!(of(253_402_300_800_000_000), "10000-01-01T00:00:00");
    }

    #[test]
    fn json_is_that_of_python() {
        let cases =
            [(0.0, "0.0"), (1e-5, "1e-05"), (1e16, "1e+16"), (1.5e300, "1.5e+300"), (0.0001, "0.0001")];
        cases.iter().for_each(|(value, text)| assert_eq!(json(*value), *text));
    }
}
