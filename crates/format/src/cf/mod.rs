//! Time coordinates as the CF conventions define them (section 4.4, "Time Coordinate"): the calendars, dates
//! in them, units such as `days since 1850-01-01`, and date literals.
//!
//! All arithmetic is on whole microseconds in checked integers. The answers are those of cftime with its
//! default settings; where cftime drops a part of the units that CF gives a meaning (`-6:00` as the offset of
//! the epoch), CF is followed. There are no leap seconds: the TAI and UTC calendars of CF 1.12 are unknown here.

mod calendar;
mod datetime;
mod literal;
mod units;

pub use calendar::{Calendar, MAX_YEAR};
pub use datetime::DateTime;
pub use literal::parse_date;
pub use units::TimeUnits;

/// Microseconds in a day, the same in every CF calendar.
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;
