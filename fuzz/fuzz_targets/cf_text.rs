//! Units, calendars and dates of any text: what is understood is printed and understood again alike, and numbers
//! and dates lead to each other.
//!
//! The text is three lines: units, a date, and a number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_format::cf::{Calendar, DateTime, TimeUnits, parse_date};
use sieva_fuzz::check_error;

fuzz_target!(|bytes: &[u8]| {
    let (number, text) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (units, date) = text.split_once('\n').unwrap_or((text, text));
    if let Some(calendar) = Calendar::parse(units) {
        assert_eq!(Calendar::parse(calendar.name()), Some(calendar));
    }
    for calendar in Calendar::ALL {
        let date = parse_date(date, calendar).inspect_err(check_error).ok();
        date.inspect(|date| check_date(date, calendar));
        check_day(i64::from_le_bytes(*number), calendar);
        match TimeUnits::parse(units, calendar) {
            Ok(units) => check_units(&units, date, *number),
            Err(e) => check_error(&e),
        }
    }
});

fn check_date(date: &DateTime, calendar: Calendar) {
    assert_eq!(parse_date(&date.to_string(), calendar).as_ref(), Ok(date), "{calendar:?}");
    let day = calendar.day_number(date.year(), date.month(), date.day()).expect("a date that exists");
    assert_eq!(calendar.date_of(day), Some((date.year(), date.month(), date.day())), "{calendar:?}");
    assert!((1..=366).contains(&date.day_of_year(calendar)));
    assert!((1..=4).contains(&date.quarter()) && (1..=4).contains(&date.season()));
    date.to_unix_microseconds(calendar);
    date.day_of_week(calendar);
}

fn check_day(number: i64, calendar: Calendar) {
    for number in [number, number >> 24] {
        let Some((year, month, day)) = calendar.date_of(number) else { continue };
        assert_eq!(calendar.day_number(year, month, day), Some(number), "{calendar:?}");
    }
}

fn check_units(units: &TimeUnits, date: Option<DateTime>, number: [u8; 8]) {
    let whole = i64::from_le_bytes(number);
    for n in [whole, whole >> 16, whole >> 40] {
        let Some(date) = units.to_datetime_i64(n) else { continue };
        // Nanoseconds are rounded.
        let is_exact = units.microseconds_per_unit().1 == 1;
        assert!(!is_exact || units.to_integer(&date) == Some(n), "{units:?} {n} {date}");
    }
    if let Some(date) = units.to_datetime(f64::from_le_bytes(number)) {
        assert!(!units.to_number(&date).is_nan());
    }
    let Some(date) = date else { return };
    if let Some(n) = units.to_integer(&date) {
        assert_eq!(units.to_datetime_i64(n), Some(date), "{units:?} {n}");
        assert_eq!(units.to_number(&date), n as f64);
    }
}
