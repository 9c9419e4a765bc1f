//! A date and time of day in some calendar.

use std::fmt;

use sieva_types::{Error, ErrorKind, Result};

use super::{Calendar, MICROSECONDS_PER_DAY};

/// A date and time, to the microsecond, in a calendar that the holder knows (that of its [`super::TimeUnits`]).
///
/// Order is chronological between dates of one calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    year: i64,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    microsecond: u32,
}

/// Day number (see [`Calendar::day_number`]) of 1970-01-01.
const UNIX_EPOCH_DAY: i64 = 719_162;

impl DateTime {
    /// Midnight of a date.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`] if `calendar` has no such date.
    pub fn from_date(calendar: Calendar, year: i64, month: u8, day: u8) -> Result<Self> {
        calendar.check_date(year, month, day)?;
        Ok(Self { year, month, day, hour: 0, minute: 0, second: 0, microsecond: 0 })
    }

    /// The same date at another time of day.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`] unless the time is from 00:00:00 to 23:59:59.999999.
    pub fn with_time(self, hour: u8, minute: u8, second: u8, microsecond: u32) -> Result<Self> {
        if hour > 23 || minute > 59 || second > 59 || microsecond > 999_999 {
            let message = format!(
                "no time {hour:02}:{minute:02}:{second:02}.{microsecond:06}: hours are 0 to 23, minutes and seconds 0 to 59"
            );
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        Ok(Self { hour, minute, second, microsecond, ..self })
    }

    /// The date and time that lies `microseconds` after 0001-01-01 of `calendar`; `None` beyond
    /// [`super::MAX_YEAR`].
    pub(super) fn from_microseconds(calendar: Calendar, microseconds: i128) -> Option<Self> {
        let day_number = i64::try_from(microseconds.div_euclid(MICROSECONDS_PER_DAY)).ok()?;
        let of_day = u64::try_from(microseconds.rem_euclid(MICROSECONDS_PER_DAY)).ok()?;
        let (year, month, day) = calendar.date_of(day_number)?;
        let part = |divisor: u64, modulus: u64| u8::try_from(of_day / divisor % modulus).ok();
        Some(Self {
            year,
            month,
            day,
            hour: part(3_600_000_000, 24)?,
            minute: part(60_000_000, 60)?,
            second: part(1_000_000, 60)?,
            microsecond: u32::try_from(of_day % 1_000_000).ok()?,
        })
    }

    /// Microseconds since 0001-01-01; `None` if `calendar` has no such date.
    pub(super) fn to_microseconds(self, calendar: Calendar) -> Option<i128> {
        let day_number = calendar.day_number(self.year, self.month, self.day)?;
        Some(i128::from(day_number) * MICROSECONDS_PER_DAY + i128::from(self.microsecond_of_day()))
    }

    /// The year; without a year 0 in the calendars that have none.
    pub fn year(&self) -> i64 {
        self.year
    }

    /// The month, 1 to 12.
    pub fn month(&self) -> u8 {
        self.month
    }

    /// The day of the month, from 1.
    pub fn day(&self) -> u8 {
        self.day
    }

    /// The hour, 0 to 23.
    pub fn hour(&self) -> u8 {
        self.hour
    }

    /// The minute, 0 to 59.
    pub fn minute(&self) -> u8 {
        self.minute
    }

    /// The second, 0 to 59.
    pub fn second(&self) -> u8 {
        self.second
    }

    /// The microsecond, 0 to 999,999.
    pub fn microsecond(&self) -> u32 {
        self.microsecond
    }

    /// Microseconds since midnight.
    pub fn microsecond_of_day(&self) -> u64 {
        let seconds = u64::from(self.hour) * 3600 + u64::from(self.minute) * 60 + u64::from(self.second);
        seconds * 1_000_000 + u64::from(self.microsecond)
    }

    /// The day of the year, 1 for 1 January.
    pub fn day_of_year(&self, calendar: Calendar) -> i64 {
        calendar.day_of_year(self.year, self.month, self.day)
    }

    /// The quarter of the year by month: 1 for January to March.
    pub fn quarter(&self) -> u8 {
        (self.month - 1) / 3 + 1
    }

    /// The meteorological season: 1 for December to February, 2 March to May, 3 June to August, 4 the rest.
    pub fn season(&self) -> u8 {
        self.month % 12 / 3 + 1
    }

    /// The day of the week, 0 for Monday; `None` in the model calendars, which have no weeks.
    pub fn day_of_week(&self, calendar: Calendar) -> Option<u8> {
        match calendar {
            Calendar::Standard | Calendar::ProlepticGregorian | Calendar::Julian => {
                let day = calendar.day_number(self.year, self.month, self.day)?;
                u8::try_from(day.rem_euclid(7)).ok()
            }
            Calendar::NoLeap | Calendar::AllLeap | Calendar::Day360 => None,
        }
    }

    /// Microseconds since 1970-01-01, as Arrow timestamps count them: for proleptic Gregorian dates and for
    /// standard ones from 1582-10-15 on. `None` for other dates and beyond the range of 64 bits.
    pub fn to_unix_microseconds(&self, calendar: Calendar) -> Option<i64> {
        let is_gregorian = match calendar {
            Calendar::ProlepticGregorian => true,
            Calendar::Standard => (self.year, self.month, self.day) >= (1582, 10, 15),
            _ => false,
        };
        if is_gregorian { self.instant_microseconds(calendar) } else { None }
    }

    /// Microseconds since 1970-01-01 of the same instant in the real world: a Julian date has another name as a
    /// timestamp, which is proleptic Gregorian. `None` in the model calendars and beyond the range of 64 bits.
    pub fn instant_microseconds(&self, calendar: Calendar) -> Option<i64> {
        // The three count the same days.
        let is_real =
            matches!(calendar, Calendar::Standard | Calendar::ProlepticGregorian | Calendar::Julian);
        let since_year_one = is_real.then(|| self.to_microseconds(calendar))??;
        i64::try_from(since_year_one - i128::from(UNIX_EPOCH_DAY) * MICROSECONDS_PER_DAY).ok()
    }
}

/// ISO 8601: `2000-01-16T12:00:00`, with six decimals of the second where they are not zero.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.year < 0 { "-" } else { "" };
        let (year, month, day) = (self.year.unsigned_abs(), self.month, self.day);
        write!(f, "{sign}{year:04}-{month:02}-{day:02}T")?;
        write!(f, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second)?;
        if self.microsecond != 0 {
            write!(f, ".{:06}", self.microsecond)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(calendar: Calendar, year: i64, month: u8, day: u8) -> DateTime {
        DateTime::from_date(calendar, year, month, day).unwrap()
    }

    #[test]
    fn is_shown_as_iso() {
        let noon = date(Calendar::NoLeap, 2000, 1, 16).with_time(12, 0, 0, 0).unwrap();
        assert_eq!(noon.to_string(), "2000-01-16T12:00:00");
        assert_eq!(noon.with_time(0, 0, 1, 250_000).unwrap().to_string(), "2000-01-16T00:00:01.250000");
        assert_eq!(date(Calendar::Standard, -44, 3, 15).to_string(), "-0044-03-15T00:00:00");
        assert_eq!(date(Calendar::Day360, 12_000, 2, 30).to_string(), "12000-02-30T00:00:00");
    }

    #[test]
    fn times_out_of_range_are_refused() {
        let midnight = date(Calendar::Standard, 2000, 1, 1);
        for (h, m, s, us) in [(24, 0, 0, 0), (0, 60, 0, 0), (0, 0, 60, 0), (0, 0, 0, 1_000_000)] {
            let error = midnight.with_time(h, m, s, us).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidValue);
            assert!(error.message().contains("hours are 0 to 23"), "{error}");
        }
    }

    #[test]
    fn parts_of_a_date() {
        let leap_day = date(Calendar::Standard, 2000, 2, 29);
        assert_eq!(leap_day.day_of_year(Calendar::Standard), 60);
        assert_eq!(leap_day.day_of_week(Calendar::Standard), Some(1));
        assert_eq!((leap_day.season(), leap_day.quarter()), (1, 1));
        let seasons: Vec<u8> = (1..=12).map(|m| date(Calendar::Day360, 1, m, 30).season()).collect();
        assert_eq!(seasons, [1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 1]);
        assert_eq!(date(Calendar::Day360, 1, 3, 1).day_of_year(Calendar::Day360), 61);
        assert_eq!(date(Calendar::NoLeap, 2000, 3, 1).day_of_week(Calendar::NoLeap), None);
        // 1582-10-04 was a Thursday, and the day after it a Friday.
        assert_eq!(date(Calendar::Standard, 1582, 10, 4).day_of_week(Calendar::Standard), Some(3));
        assert_eq!(date(Calendar::Standard, 1582, 10, 15).day_of_week(Calendar::Standard), Some(4));
    }

    #[test]
    fn unix_time_is_given_for_gregorian_dates_only() {
        let at = |c: Calendar, y, m, d| date(c, y, m, d).to_unix_microseconds(c);
        assert_eq!(at(Calendar::Standard, 1970, 1, 1), Some(0));
        assert_eq!(at(Calendar::Standard, 1582, 10, 15), Some(-12_219_292_800_000_000));
        assert_eq!(at(Calendar::Standard, 1582, 10, 4), None);
        assert_eq!(at(Calendar::ProlepticGregorian, 1, 1, 1), Some(-62_135_596_800_000_000));
        assert_eq!(at(Calendar::ProlepticGregorian, 300_000, 1, 1), None);
        assert_eq!(at(Calendar::Julian, 1970, 1, 1), None);
        assert_eq!(at(Calendar::NoLeap, 1970, 1, 1), None);
        // The day before 1582-10-15, which is 1582-10-14 of the proleptic Gregorian calendar.
        let instant = |c: Calendar, y, m, d| date(c, y, m, d).instant_microseconds(c);
        assert_eq!(instant(Calendar::Standard, 1582, 10, 4), Some(-12_219_379_200_000_000));
        assert_eq!(instant(Calendar::ProlepticGregorian, 1582, 10, 14), Some(-12_219_379_200_000_000));
        assert_eq!(instant(Calendar::NoLeap, 1970, 1, 1), None);
    }
}
