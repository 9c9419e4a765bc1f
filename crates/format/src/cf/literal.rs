//! Dates as text: ISO 8601 literals of queries and the looser epochs of units attributes.

use sieva_types::{Error, ErrorKind, Result};

use super::{Calendar, DateTime};

/// Reads an ISO 8601 date of `calendar`: `2000`, `2000-01`, `2000-01-15`, `2000-01-15T06`, `2000-01-15 06:30`,
/// `2000-01-15T06:30:30.25`, each time with `Z`, `UTC`, `GMT` or an offset (`+01:00`, `-6`) after it.
///
/// Parts that are left out are the first of their range. An offset is applied: the result is in UTC.
///
/// # Errors
/// [`ErrorKind::InvalidValue`] that names the text, the calendar and the expected form, or says which part
/// does not exist in the calendar. A fraction finer than a microsecond is refused, not rounded.
pub fn parse_date(text: &str, calendar: Calendar) -> Result<DateTime> {
    parse(text, calendar, Fraction::Exact)
}

/// What to do with decimals of the second beyond the sixth.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fraction {
    /// Refuse them unless they are zero.
    Exact,
    /// Cut them off, as cftime does in an epoch.
    Truncated,
}

/// Reads a date; the forms of [`parse_date`], and one-digit parts.
pub(super) fn parse(text: &str, calendar: Calendar, fraction: Fraction) -> Result<DateTime> {
    let place = |e: Error| e.at(format_args!("date {text:?}"));
    let fields = Fields::read(text.trim(), fraction).ok_or_else(|| malformed(text, calendar))?;
    let date = DateTime::from_date(calendar, fields.year, fields.month, fields.day).map_err(place)?;
    let date =
        date.with_time(fields.hour, fields.minute, fields.second, fields.microsecond).map_err(place)?;
    if fields.offset_minutes == 0 {
        return Ok(date);
    }
    date.to_microseconds(calendar)
        .and_then(|at| {
            DateTime::from_microseconds(calendar, at - i128::from(fields.offset_minutes) * 60_000_000)
        })
        .ok_or_else(|| malformed(text, calendar))
}

fn malformed(text: &str, calendar: Calendar) -> Error {
    let name = calendar.name();
    Error::new(
        ErrorKind::InvalidValue,
        format!(
            "{text:?} is not a date of the {name} calendar: expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ss[.ffffff][Z]"
        ),
    )
}

/// The parts of a date as they are written, not yet checked against a calendar.
#[derive(Default)]
struct Fields {
    year: i64,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    microsecond: u32,
    offset_minutes: i64,
}

impl Fields {
    fn read(text: &str, fraction: Fraction) -> Option<Self> {
        let mut cursor = Cursor(text.as_bytes());
        let mut fields = Self { month: 1, day: 1, ..Self::default() };
        let has_day = fields.read_date(&mut cursor)?;
        if cursor.0.is_empty() {
            return Some(fields);
        }
        if !has_day {
            return None;
        }
        if let Some(time) = cursor.time_follows() {
            cursor = time;
            fields.read_time(&mut cursor, fraction)?;
        }
        fields.offset_minutes = cursor.offset()?;
        cursor.0.is_empty().then_some(fields)
    }

    /// Reads year, month and day as far as they go; true if the day is among them.
    fn read_date(&mut self, cursor: &mut Cursor<'_>) -> Option<bool> {
        let is_negative = cursor.take(b'-');
        if !is_negative {
            cursor.take(b'+');
        }
        let before = cursor.0.len();
        let year = cursor.number(18)?;
        let digits = before - cursor.0.len();
        self.year = if is_negative { -year } else { year };
        if !cursor.take(b'-') {
            // A longer number may be 20000115 without separators: not to be taken for a year.
            return (digits <= 4).then_some(false);
        }
        self.month = cursor.two_digits()?;
        if !cursor.take(b'-') {
            return Some(false);
        }
        self.day = cursor.two_digits()?;
        Some(true)
    }

    fn read_time(&mut self, cursor: &mut Cursor<'_>, fraction: Fraction) -> Option<()> {
        self.hour = cursor.two_digits()?;
        if !cursor.take(b':') {
            return Some(());
        }
        self.minute = cursor.two_digits()?;
        if !cursor.take(b':') {
            return Some(());
        }
        self.second = cursor.two_digits()?;
        if cursor.take(b'.') {
            self.microsecond = cursor.microseconds(fraction)?;
        }
        Some(())
    }
}

/// The rest of the text. Every reader leaves it unchanged or takes what it has read.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, byte: u8) -> bool {
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn digits(&mut self) -> &'a [u8] {
        let length = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        digits
    }

    /// An unsigned number of at most `longest` digits (18 fit 64 bits).
    fn number(&mut self, longest: usize) -> Option<i64> {
        let digits = self.digits();
        let is_right = (1..=longest).contains(&digits.len());
        is_right.then(|| digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
    }

    fn two_digits(&mut self) -> Option<u8> {
        u8::try_from(self.number(2)?).ok()
    }

    fn spaces(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// The decimals of a second; none at all are allowed (`12:00:00.`).
    fn microseconds(&mut self, fraction: Fraction) -> Option<u32> {
        let digits = self.digits();
        let is_exact = digits.iter().skip(6).all(|&d| d == b'0');
        let value = (0..6).fold(0, |n, i| n * 10 + digits.get(i).map_or(0, |d| u32::from(d - b'0')));
        (is_exact || fraction == Fraction::Truncated).then_some(value)
    }

    /// What follows the separator of date and time, if a digit does: `T`, `_` or spaces.
    fn time_follows(mut self) -> Option<Self> {
        if !(self.take(b'T') || self.take(b't') || self.take(b'_')) {
            let before = self.0.len();
            self.spaces();
            if self.0.len() == before {
                return None;
            }
        }
        self.0.first()?.is_ascii_digit().then_some(self)
    }

    /// The offset from UTC in minutes: nothing, `Z`, `UTC`, `GMT`, or `+h`, `+hh`, `+hhmm`, `+hh:mm` east of it.
    fn offset(&mut self) -> Option<i64> {
        self.spaces();
        let names: [&[u8]; 3] = [b"Z", b"UTC", b"GMT"];
        if self.0.is_empty() || names.iter().any(|name| self.0.eq_ignore_ascii_case(name)) {
            self.0 = &[];
            return Some(0);
        }
        let is_west = self.take(b'-');
        if !is_west && !self.take(b'+') {
            return None;
        }
        let before = self.0.len();
        let number = self.number(4)?;
        let (hours, minutes) = match before - self.0.len() {
            1 | 2 if self.take(b':') => (number, i64::from(self.two_digits()?)),
            1 | 2 => (number, 0),
            _ => (number / 100, number % 100),
        };
        let total = hours * 60 + minutes;
        (hours < 24 && minutes < 60).then_some(if is_west { -total } else { total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(text: &str) -> String {
        parse_date(text, Calendar::Standard).unwrap().to_string()
    }

    #[test]
    fn parts_may_be_left_out() {
        assert_eq!(iso("2000"), "2000-01-01T00:00:00");
        assert_eq!(iso("2000-02"), "2000-02-01T00:00:00");
        assert_eq!(iso("2000-1-5"), "2000-01-05T00:00:00");
        assert_eq!(iso(" 2000-01-15T06 "), "2000-01-15T06:00:00");
        assert_eq!(iso("2000-01-15 06:30"), "2000-01-15T06:30:00");
        assert_eq!(iso("2000-01-15_06:30:30.25"), "2000-01-15T06:30:30.250000");
        assert_eq!(iso("-4713-01-01 12:00:0.0"), "-4713-01-01T12:00:00");
        assert_eq!(iso("12000-01-01"), "12000-01-01T00:00:00");
    }

    #[test]
    fn offsets_are_applied() {
        for text in
            ["2000-01-01T00:00Z", "2000-01-01 0:0:0 utc", "2000-01-01 00:00:00.000 GMT", "2000-01-01Z"]
        {
            assert_eq!(iso(text), "2000-01-01T00:00:00");
        }
        assert_eq!(iso("2000-01-01T00:30:00+01:00"), "1999-12-31T23:30:00");
        assert_eq!(iso("1992-10-8 15:15:42.5 -6:00"), "1992-10-08T21:15:42.500000");
        assert_eq!(iso("2000-01-01 +0530"), "1999-12-31T18:30:00");
        assert_eq!(iso("2000-01-01T12-3"), "2000-01-01T15:00:00");
    }

    #[test]
    fn a_fraction_finer_than_a_microsecond_is_not_rounded() {
        assert_eq!(iso("2000-01-01T00:00:00.0000010"), "2000-01-01T00:00:00.000001");
        assert!(parse_date("2000-01-01T00:00:00.0000011", Calendar::Standard).is_err());
        let epoch = parse("2000-01-01T00:00:00.0000019", Calendar::Standard, Fraction::Truncated).unwrap();
        assert_eq!(epoch.microsecond(), 1);
    }

    #[test]
    fn other_text_is_refused_with_the_expected_form() {
        let bad = [
            "",
            "-",
            "yesterday",
            "20000115",
            "2000-",
            "2000-01-",
            "2000-01-001",
            "2000 06:00",
            "2000-01-15T",
            "2000-01-15X06",
            "2000-01-15T06:30:00 PST",
            "2000-01-15T06:30:00+24:00",
            "2000-01-15T06:30:00+01:60",
            "2000-01-15T06:30:00+",
            "99999999999999999999-01-01",
            "２０００-01-01",
        ];
        for text in bad {
            let error = parse_date(text, Calendar::NoLeap).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidValue, "{text}");
            assert!(
                error.message().ends_with("expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ss[.ffffff][Z]"),
                "{error}"
            );
            assert!(error.message().contains("noleap"), "{error}");
        }
    }

    #[test]
    fn dates_missing_from_the_calendar_say_so() {
        let error = parse_date("2001-02-30", Calendar::NoLeap).unwrap_err();
        assert_eq!(
            error.message(),
            "date \"2001-02-30\": no date 2001-02-30 in the noleap calendar: \
             this month has days 1 to 28 in the noleap calendar"
        );
        assert!(parse_date("2001-02-30", Calendar::Day360).is_ok());
        let error = parse_date("2001-02-03T25:00", Calendar::Day360).unwrap_err();
        assert!(error.message().contains("no time 25:00:00"), "{error}");
        assert!(parse_date("1000000000-01-01T00:00+23:00", Calendar::NoLeap).is_ok());
        assert!(parse_date("1000000000-12-31T23:00-23:00", Calendar::NoLeap).is_err());
    }
}
