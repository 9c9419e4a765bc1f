//! The CF calendars: their years and months, and the number of each of their days.
//!
//! Day numbers count from 0001-01-01. Those of the three real-world calendars are one count of the same
//! physical days (day 0 is Monday, 0001-01-01 of the proleptic Gregorian calendar), so they may be compared.

use sieva_types::{Error, ErrorKind, Result};

/// The largest absolute value of a year that is computed with; anything beyond is an error, never an overflow.
pub const MAX_YEAR: i64 = 1_000_000_000;

/// A calendar of the CF conventions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Calendar {
    /// Julian to 1582-10-04, Gregorian from 1582-10-15; no year 0. The default of CF.
    #[default]
    Standard,
    /// Gregorian at all times; with a year 0 (ISO 8601).
    ProlepticGregorian,
    /// Julian at all times; no year 0.
    Julian,
    /// Every year has 365 days.
    NoLeap,
    /// Every year has 366 days.
    AllLeap,
    /// Every month has 30 days.
    Day360,
}

const DAYS_BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS_IN_MONTH: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Day number of 1582-10-15, the first Gregorian day of the mixed calendar.
pub(super) const GREGORIAN_START: i64 = 577_735;
/// Day number of 0001-01-01 of the Julian calendar: it falls on 0000-12-30 of the proleptic Gregorian one.
const JULIAN_START: i64 = -2;

impl Calendar {
    /// All calendars.
    pub const ALL: [Calendar; 6] =
        [Self::Standard, Self::ProlepticGregorian, Self::Julian, Self::NoLeap, Self::AllLeap, Self::Day360];

    /// The calendar that a `calendar` attribute names, in any case; `None` if CF has no such calendar.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Day360,
            _ => return None,
        })
    }

    /// The name in CF.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ProlepticGregorian => "proleptic_gregorian",
            Self::Julian => "julian",
            Self::NoLeap => "noleap",
            Self::AllLeap => "all_leap",
            Self::Day360 => "360_day",
        }
    }

    /// True if year 0 exists; otherwise year 1 follows year -1.
    pub fn has_year_zero(self) -> bool {
        !matches!(self, Self::Standard | Self::Julian)
    }

    /// True if `year` has a 29 February beside its 28 others.
    pub fn is_leap_year(self, year: i64) -> bool {
        let julian = |y: i64| y.rem_euclid(4) == 0;
        let gregorian = |y: i64| julian(y) && (y.rem_euclid(100) != 0 || y.rem_euclid(400) == 0);
        let y = self.astronomical(year);
        match self {
            Self::Standard if year < 1582 => julian(y),
            Self::Standard | Self::ProlepticGregorian => gregorian(y),
            Self::Julian => julian(y),
            Self::NoLeap | Self::Day360 => false,
            Self::AllLeap => true,
        }
    }

    /// The number of the last day of a month (1 to 12); 0 for any other month.
    pub fn last_day_of_month(self, year: i64, month: u8) -> u8 {
        match (self, month) {
            (_, 0 | 13..) => 0,
            (Self::Day360, _) => 30,
            (_, 2) if self.is_leap_year(year) => 29,
            _ => DAYS_IN_MONTH[usize::from(month) - 1],
        }
    }

    /// Checks that a date exists.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`] that names the date, the calendar and what is wrong.
    pub fn check_date(self, year: i64, month: u8, day: u8) -> Result<()> {
        let name = self.name();
        let reason = if !(-MAX_YEAR..=MAX_YEAR).contains(&year) {
            format!("years must be within +-{MAX_YEAR}")
        } else if year == 0 && !self.has_year_zero() {
            format!("there is no year 0 in the {name} calendar (year 1 follows year -1)")
        } else if !(1..=12).contains(&month) {
            "months are 1 to 12".to_owned()
        } else if !(1..=self.last_day_of_month(year, month)).contains(&day) {
            let last = self.last_day_of_month(year, month);
            format!("this month has days 1 to {last} in the {name} calendar")
        } else if self == Self::Standard && (year, month) == (1582, 10) && (5..=14).contains(&day) {
            "in the standard calendar 1582-10-15 follows 1582-10-04".to_owned()
        } else {
            return Ok(());
        };
        let message = format!("no date {year:04}-{month:02}-{day:02} in the {name} calendar: {reason}");
        Err(Error::new(ErrorKind::InvalidValue, message))
    }

    /// The number of a date's day; `None` if the date does not exist (see [`Calendar::check_date`]).
    pub fn day_number(self, year: i64, month: u8, day: u8) -> Option<i64> {
        self.check_date(year, month, day).ok()?;
        let rule = self.rule_of(|| (year, month, day) >= (1582, 10, 15));
        Some(
            rule.start()
                + rule.days_before_year(self.astronomical(year))
                + self.day_of_year(year, month, day)
                - 1,
        )
    }

    /// Year, month and day of a day number; `None` beyond [`MAX_YEAR`].
    pub fn date_of(self, day_number: i64) -> Option<(i64, u8, u8)> {
        let rule = self.rule_of(|| day_number >= GREGORIAN_START);
        let day = day_number.checked_sub(rule.start())?;
        if !(-367 * MAX_YEAR..=367 * MAX_YEAR).contains(&day) {
            return None;
        }
        // The mean length of a year is within a day of every year's, so the estimate is off by one at most.
        let (cycle_days, cycle_years) = rule.cycle();
        let mut year = day * cycle_years / cycle_days + 1;
        while rule.days_before_year(year) > day {
            year -= 1;
        }
        while rule.days_before_year(year + 1) <= day {
            year += 1;
        }
        let in_year = day - rule.days_before_year(year);
        let year = if !self.has_year_zero() && year <= 0 { year - 1 } else { year };
        let month = (2..=12).rev().find(|&m| self.days_before_month(year, m) <= in_year).unwrap_or(1);
        let day = u8::try_from(in_year - self.days_before_month(year, month) + 1).ok()?;
        (-MAX_YEAR..=MAX_YEAR).contains(&year).then_some((year, month, day))
    }

    /// 1 for 1 January. In the mixed calendar's 1582 the ten dropped days are counted, as cftime counts them.
    pub fn day_of_year(self, year: i64, month: u8, day: u8) -> i64 {
        self.days_before_month(year, month) + i64::from(day)
    }

    fn days_before_month(self, year: i64, month: u8) -> i64 {
        let index = usize::from(month.clamp(1, 12)) - 1;
        match self {
            Self::Day360 => 30 * index as i64,
            _ => DAYS_BEFORE_MONTH[index] + i64::from(index >= 2 && self.is_leap_year(year)),
        }
    }

    /// The year counted with a year 0.
    fn astronomical(self, year: i64) -> i64 {
        if year < 0 && !self.has_year_zero() { year + 1 } else { year }
    }

    /// The calendar whose leap rule holds at a date: the mixed calendar has two.
    fn rule_of(self, is_gregorian: impl FnOnce() -> bool) -> Self {
        match self {
            Self::Standard if is_gregorian() => Self::ProlepticGregorian,
            Self::Standard => Self::Julian,
            other => other,
        }
    }

    /// The day number of 0001-01-01.
    fn start(self) -> i64 {
        if self == Self::Julian { JULIAN_START } else { 0 }
    }

    /// Days from 0001-01-01 to the first day of an astronomical year, by the Gregorian rule in `Standard`.
    fn days_before_year(self, year: i64) -> i64 {
        let y = year - 1;
        let julian = 365 * y + y.div_euclid(4);
        match self {
            Self::Standard | Self::ProlepticGregorian => julian - y.div_euclid(100) + y.div_euclid(400),
            Self::Julian => julian,
            Self::NoLeap => 365 * y,
            Self::AllLeap => 366 * y,
            Self::Day360 => 360 * y,
        }
    }

    /// The cycle after which leap years repeat: its days and years.
    fn cycle(self) -> (i64, i64) {
        match self {
            Self::Standard | Self::ProlepticGregorian => (146_097, 400),
            Self::Julian => (1461, 4),
            Self::NoLeap => (365, 1),
            Self::AllLeap => (366, 1),
            Self::Day360 => (360, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case_and_by_alias() {
        for calendar in Calendar::ALL {
            assert_eq!(Calendar::parse(&calendar.name().to_uppercase()), Some(calendar));
        }
        assert_eq!(Calendar::parse(" Gregorian "), Some(Calendar::Standard));
        assert_eq!(Calendar::parse("365_day"), Some(Calendar::NoLeap));
        assert_eq!(Calendar::parse("366_DAY"), Some(Calendar::AllLeap));
        assert_eq!(Calendar::parse("tai"), None);
    }

    #[test]
    fn the_mixed_calendar_drops_ten_days() {
        let standard = Calendar::Standard;
        assert_eq!(standard.day_number(1582, 10, 15), Some(GREGORIAN_START));
        assert_eq!(standard.day_number(1582, 10, 4), Some(GREGORIAN_START - 1));
        assert_eq!(standard.date_of(GREGORIAN_START - 1), Some((1582, 10, 4)));
        assert_eq!(standard.date_of(GREGORIAN_START), Some((1582, 10, 15)));
        assert_eq!(Calendar::ProlepticGregorian.day_number(1582, 10, 15), Some(GREGORIAN_START));
        let error = standard.check_date(1582, 10, 5).unwrap_err();
        assert_eq!(
            error.message(),
            "no date 1582-10-05 in the standard calendar: in the standard calendar 1582-10-15 follows 1582-10-04"
        );
    }

    #[test]
    fn dates_that_do_not_exist_say_why() {
        let message = |c: Calendar, y, m, d| c.check_date(y, m, d).unwrap_err().message().to_owned();
        assert_eq!(
            message(Calendar::NoLeap, 2000, 2, 29),
            "no date 2000-02-29 in the noleap calendar: this month has days 1 to 28 in the noleap calendar"
        );
        assert!(message(Calendar::Day360, 2000, 1, 31).contains("days 1 to 30 in the 360_day calendar"));
        assert!(message(Calendar::Julian, 0, 1, 1).contains("there is no year 0 in the julian calendar"));
        assert!(message(Calendar::AllLeap, 2001, 13, 1).contains("months are 1 to 12"));
        assert!(message(Calendar::AllLeap, i64::MAX, 1, 1).contains("years must be within"));
        assert!(Calendar::ProlepticGregorian.check_date(0, 2, 29).is_ok());
        assert!(Calendar::Day360.check_date(2001, 2, 30).is_ok());
    }

    #[test]
    fn day_numbers_and_dates_are_inverse_and_consecutive() {
        for calendar in Calendar::ALL {
            let mut before = None;
            for day in (-800_000..800_000).chain(-350_000_000_000..-349_999_999_000) {
                let (y, m, d) = calendar.date_of(day).unwrap();
                assert_eq!(calendar.day_number(y, m, d), Some(day), "{calendar:?} {y}-{m}-{d}");
                let date = (y, m, d);
                assert!(before < Some(date) || day == -350_000_000_000, "{calendar:?} {before:?} {date:?}");
                before = Some(date);
            }
        }
    }

    #[test]
    fn far_days_are_refused() {
        for calendar in Calendar::ALL {
            for day in [i64::MIN, i64::MIN + 1, -368 * MAX_YEAR, 368 * MAX_YEAR, i64::MAX] {
                assert_eq!(calendar.date_of(day), None);
            }
            for year in [-MAX_YEAR, MAX_YEAR] {
                let day = calendar.day_number(year, 12, 30).unwrap();
                assert_eq!(calendar.date_of(day), Some((year, 12, 30)));
            }
        }
    }
}
