//! Time coordinates: dates in a query become numbers in the file's units and calendar.

use std::sync::Arc;

use sieva_format::cf::{Calendar, TimeUnits, parse_date};
use sieva_format::schema::{ArrayInfo, AttrValue, attr};
use sieva_types::{DType, Error, ErrorKind, Result};

use super::DatePart;

/// The units of a time coordinate, `None` where the array is none (or its units cannot be understood,
/// which makes it an ordinary number).
pub fn time_units(info: &ArrayInfo) -> Option<Arc<TimeUnits>> {
    if matches!(info.dtype, DType::Str | DType::Bool) {
        return None;
    }
    let units = attr(&info.attrs, "units").and_then(AttrValue::as_text)?;
    if !TimeUnits::is_reference_time(units) {
        return None;
    }
    let calendar = match attr(&info.attrs, "calendar").and_then(AttrValue::as_text) {
        Some(name) => Calendar::parse(name)?,
        None => Calendar::Standard,
    };
    TimeUnits::parse(units, calendar).ok().map(Arc::new)
}

/// The number that stands for a date literal.
///
/// # Errors
/// `invalid-value` where the text is no date of the calendar.
pub fn date_number(text: &str, units: &TimeUnits) -> Result<f64> {
    Ok(units.to_number(&parse_date(text, units.calendar())?))
}

/// The date part that a function of this name gives.
pub fn date_part(function: &str) -> Option<DatePart> {
    Some(match function {
        "year" => DatePart::Year,
        "month" => DatePart::Month,
        "day" => DatePart::Day,
        "hour" => DatePart::Hour,
        "minute" => DatePart::Minute,
        "second" => DatePart::Second,
        "dayofyear" | "day_of_year" => DatePart::DayOfYear,
        "quarter" => DatePart::Quarter,
        "season" => DatePart::Season,
        _ => return None,
    })
}

/// The value of a date part of the date that `number` means; `None` where it is out of range.
pub fn part_of(part: DatePart, units: &TimeUnits, number: f64) -> Option<i64> {
    let date = units.to_datetime(number)?;
    Some(match part {
        DatePart::Year => date.year(),
        DatePart::Month => date.month().into(),
        DatePart::Day => date.day().into(),
        DatePart::Hour => date.hour().into(),
        DatePart::Minute => date.minute().into(),
        DatePart::Second => date.second().into(),
        DatePart::DayOfYear => date.day_of_year(units.calendar()),
        DatePart::Quarter => date.quarter().into(),
        DatePart::Season => date.season().into(),
    })
}

/// The error of a date where there is no time coordinate to compare it with.
pub fn no_time(text: &str, what: &str) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("'{text}' is text, but {what} holds numbers"))
        .hint("a date can be compared with an array whose units are '<unit> since <date>'")
}
