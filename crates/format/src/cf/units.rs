//! Units of reference time: `days since 1850-01-01`, and the exact way between their numbers and dates.

use sieva_types::{Error, ErrorKind, Result};

use super::literal::{self, Fraction};
use super::{Calendar, DateTime};

/// A unit of time, an epoch and a calendar: what turns the numbers of a time coordinate into dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnits {
    calendar: Calendar,
    epoch: DateTime,
    /// The epoch in microseconds since 0001-01-01.
    epoch_microseconds: i128,
    unit: Unit,
}

/// The length of a unit, exactly: `numerator / denominator` microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    numerator: i64,
    denominator: i64,
    /// Numbers of this unit are drawn to the whole second next to them (see [`TimeUnits::to_datetime`]).
    snaps_to_second: bool,
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Epochs and offsets beyond this many microseconds lie outside of the years that are computed with.
const MAX_MICROSECONDS: f64 = 1e23;

impl Unit {
    /// The unit of a (lower-case) name, or why there is none.
    fn parse(name: &str, calendar: Calendar) -> std::result::Result<Self, String> {
        let whole = |numerator| Ok(Self { numerator, denominator: 1, snaps_to_second: numerator >= SECOND });
        let calendar_name = calendar.name();
        match name {
            "ns" | "nsec" | "nsecs" | "nanosec" | "nanosecs" | "nanosecond" | "nanoseconds" => {
                Ok(Self { numerator: 1, denominator: 1000, snaps_to_second: false })
            }
            "us" | "µs" | "usec" | "usecs" | "microsec" | "microsecs" | "microsecond" | "microseconds" => {
                whole(1)
            }
            "ms" | "msec" | "msecs" | "millisec" | "millisecs" | "millisecond" | "milliseconds" => {
                whole(1000)
            }
            "s" | "sec" | "secs" | "second" | "seconds" => whole(SECOND),
            "min" | "mins" | "minute" | "minutes" => whole(60 * SECOND),
            "h" | "hr" | "hrs" | "hour" | "hours" => whole(3600 * SECOND),
            "d" | "day" | "days" => whole(DAY),
            "week" | "weeks" => whole(7 * DAY),
            "month" | "months" => match calendar {
                Calendar::Day360 => whole(30 * DAY),
                _ => Err(format!(
                    "a month has no fixed length in the {calendar_name} calendar, only in 360_day"
                )),
            },
            "common_year" | "common_years" => match calendar {
                Calendar::NoLeap => whole(365 * DAY),
                _ => Err(format!("{name} goes with the noleap calendar only, and this is {calendar_name}")),
            },
            "y" | "yr" | "yrs" | "year" | "years" => match calendar {
                Calendar::NoLeap => whole(365 * DAY),
                Calendar::AllLeap => whole(366 * DAY),
                Calendar::Day360 => whole(360 * DAY),
                _ => Err(format!("a year has no fixed length in the {calendar_name} calendar")),
            },
            _ => Err(format!("{name:?} is no unit of time: expected one from nanoseconds to weeks")),
        }
    }
}

impl TimeUnits {
    /// True if `units` has the form of a reference time (`... since ...`), supported or not: what tells a time
    /// coordinate from any other.
    pub fn is_reference_time(units: &str) -> bool {
        split(units).is_some()
    }

    /// Reads a units attribute such as `days since 1850-01-01 00:00:00`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the unit has no fixed length in `calendar` or is unknown, and
    /// [`ErrorKind::InvalidValue`] if the form or the epoch is wrong.
    pub fn parse(units: &str, calendar: Calendar) -> Result<Self> {
        let place = |e: Error| e.at(format_args!("time units {units:?}"));
        let invalid = |message: &str| place(Error::new(ErrorKind::InvalidValue, message));
        let (name, epoch) = split(units)
            .ok_or_else(|| invalid("expected a unit and a date: <unit> since <YYYY-MM-DD hh:mm:ss>"))?;
        let unit = Unit::parse(&name.to_lowercase(), calendar)
            .map_err(|reason| place(Error::new(ErrorKind::Unsupported, reason)))?;
        let epoch = literal::parse(epoch, calendar, Fraction::Truncated).map_err(place)?;
        let epoch_microseconds =
            epoch.to_microseconds(calendar).ok_or_else(|| invalid("the epoch is out of range"))?;
        Ok(Self { calendar, epoch, epoch_microseconds, unit })
    }

    /// The calendar.
    pub fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// The date of the number 0, in UTC.
    pub fn epoch(&self) -> DateTime {
        self.epoch
    }

    /// The length of the unit in microseconds, as numerator and denominator.
    pub fn microseconds_per_unit(&self) -> (i64, i64) {
        (self.unit.numerator, self.unit.denominator)
    }

    /// The date of a number, rounded once to the nearest microsecond (ties to even).
    ///
    /// As in cftime's `num2date`, a number of seconds or of a longer unit whose offset lies between half a
    /// microsecond and one from a whole second is taken for that second. `None` for NaN, infinities and dates
    /// beyond [`super::MAX_YEAR`].
    pub fn to_datetime(&self, value: f64) -> Option<DateTime> {
        let offset = self.microseconds_of(value)?;
        self.at_offset(offset.rounded(self.unit.snaps_to_second))
    }

    /// The date of an integer: exact, but for nanoseconds, which are rounded to the nearest microsecond.
    /// `None` beyond [`super::MAX_YEAR`].
    pub fn to_datetime_i64(&self, value: i64) -> Option<DateTime> {
        let product = i128::from(value) * i128::from(self.unit.numerator);
        self.at_offset(Quotient::new(product, i128::from(self.unit.denominator)).rounded(false))
    }

    /// The number of a date: the exact one, rounded once to the nearest `f64`. NaN, which compares with
    /// nothing, if the calendar has no such date.
    pub fn to_number(&self, date: &DateTime) -> f64 {
        let Some(at) = date.to_microseconds(self.calendar) else { return f64::NAN };
        let offset = at - self.epoch_microseconds;
        nearest_f64(offset * i128::from(self.unit.denominator), self.unit.numerator.unsigned_abs())
    }

    /// The number of a date if it is an integer, for comparison beyond 2^53.
    pub fn to_integer(&self, date: &DateTime) -> Option<i64> {
        let offset = date.to_microseconds(self.calendar)? - self.epoch_microseconds;
        let (product, numerator) =
            (offset * i128::from(self.unit.denominator), i128::from(self.unit.numerator));
        i64::try_from(product / numerator).ok().filter(|_| product % numerator == 0)
    }

    fn at_offset(&self, microseconds: i128) -> Option<DateTime> {
        DateTime::from_microseconds(self.calendar, self.epoch_microseconds.checked_add(microseconds)?)
    }

    /// `value` in microseconds, exactly: the product of its 53-bit significand with the unit, shifted.
    fn microseconds_of(&self, value: f64) -> Option<Quotient> {
        let (numerator, denominator) = (self.unit.numerator, self.unit.denominator);
        let estimate = value * numerator as f64 / denominator as f64;
        if !estimate.is_finite() || estimate.abs() >= MAX_MICROSECONDS {
            return None;
        }
        let (significand, exponent) = decompose(value);
        let product = i128::from(significand) * i128::from(numerator);
        if exponent >= 0 {
            // The estimate holds the product, shifted, under 1e26.
            return Some(Quotient::new(product << exponent, i128::from(denominator)));
        }
        // The product has at most 93 bits: beyond a shift of 116 it is next to zero, wherever exactly.
        let shift = exponent.unsigned_abs().min(116);
        Some(Quotient::new(product, i128::from(denominator) << shift))
    }
}

/// The unit and the epoch of `unit since epoch`.
fn split(units: &str) -> Option<(&str, &str)> {
    let (name, rest) = units.trim().split_once(char::is_whitespace)?;
    let (since, epoch) = rest.trim_start().split_once(char::is_whitespace)?;
    since.eq_ignore_ascii_case("since").then(|| (name, epoch.trim()))
}

/// A finite `value` as `significand * 2^exponent`.
fn decompose(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let biased = (bits >> 52 & 0x7ff) as i32;
    let magnitude = if biased == 0 { fraction } else { fraction | 1 << 52 };
    (if value.is_sign_negative() { -magnitude } else { magnitude }, biased.max(1) - 1075)
}

/// A fraction by its floor and what is left of it.
struct Quotient {
    floor: i128,
    rest: i128,
    divisor: i128,
}

impl Quotient {
    fn new(dividend: i128, divisor: i128) -> Self {
        Self { floor: dividend.div_euclid(divisor), rest: dividend.rem_euclid(divisor), divisor }
    }

    /// The nearest integer, ties to even; with `snap`, whole seconds attract as in cftime.
    fn rounded(&self, snap: bool) -> i128 {
        let from_above = self.divisor - self.rest;
        let is_up = self.rest > from_above || (self.rest == from_above && self.floor % 2 != 0);
        let nearest = self.floor + i128::from(is_up);
        match nearest.rem_euclid(i128::from(SECOND)) {
            1 if snap => self.floor,
            999_999 if snap => self.floor + i128::from(self.rest != 0),
            _ => nearest,
        }
    }
}

/// `dividend / divisor` rounded once to the nearest `f64`, ties to even. The divisor is under 2^63.
fn nearest_f64(dividend: i128, divisor: u64) -> f64 {
    let (magnitude, divisor) = (dividend.unsigned_abs(), u128::from(divisor));
    if magnitude == 0 {
        return 0.0;
    }
    // 64 bits of quotient or more, the lowest of them standing for the remainder, make the conversion exact
    // in its rounding. The shift is at most the dividend's leading zeros, as the divisor has 65 or more.
    let shift = (65 + magnitude.leading_zeros()).saturating_sub(divisor.leading_zeros());
    let shifted = magnitude << shift;
    let quotient = (shifted / divisor) | u128::from(shifted % divisor != 0);
    let scaled = quotient as f64 * 2f64.powi(-i32::try_from(shift).unwrap_or(0));
    if dividend < 0 { -scaled } else { scaled }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
