//! Tests of [`super::TimeUnits`]: a table made by cftime, limits, and round trips of drawn dates.

use proptest::prelude::*;

use super::super::parse_date;
use super::*;

/// Rows of calendar, units, value, date of the value, number of that date, day of the year; see make_cf_times.py.
const CFTIME_TABLE: &str = include_str!("../../tests/data/cf_times.csv");

fn units(text: &str, calendar: Calendar) -> TimeUnits {
    TimeUnits::parse(text, calendar).unwrap()
}

#[test]
fn agrees_with_cftime_both_ways() {
    let mut rows = 0;
    for line in CFTIME_TABLE.lines().filter(|l| !l.starts_with('#')).skip(1) {
        let [calendar, text, value, date, number, day_of_year] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let calendar = Calendar::parse(calendar).unwrap();
        let time = units(text, calendar);
        let decoded = match value.parse::<i64>() {
            Ok(integer) => time.to_datetime_i64(integer),
            Err(_) => time.to_datetime(value.parse().unwrap()),
        };
        let decoded = decoded.unwrap();
        assert_eq!(decoded.to_string(), date, "{line}");
        let literal = parse_date(date, calendar).unwrap();
        assert_eq!(literal, decoded, "{line}");
        assert_eq!(time.to_number(&literal), number.parse::<f64>().unwrap(), "{line}");
        assert_eq!(decoded.day_of_year(calendar).to_string(), day_of_year, "{line}");
        rows += 1;
    }
    assert!(rows > 500, "{rows} rows");
}

#[test]
fn all_spellings_of_units() {
    let length =
        |name: &str, calendar| units(&format!("{name} Since 2000-1-1"), calendar).microseconds_per_unit();
    for (names, expected) in [
        ("ns nanoseconds", (1, 1000)),
        ("us microsecond microsecs", (1, 1)),
        ("ms msecs Milliseconds", (1000, 1)),
        ("s S sec secs second SECONDS", (SECOND, 1)),
        ("min mins minute minutes", (60 * SECOND, 1)),
        ("h hr hrs hour hours", (3600 * SECOND, 1)),
        ("d day Days", (DAY, 1)),
        ("week weeks", (7 * DAY, 1)),
    ] {
        for name in names.split(' ') {
            assert_eq!(length(name, Calendar::Standard), expected, "{name}");
        }
    }
    assert_eq!(length("months", Calendar::Day360), (30 * DAY, 1));
    assert_eq!(length("years", Calendar::Day360), (360 * DAY, 1));
    assert_eq!(length("years", Calendar::NoLeap), (365 * DAY, 1));
    assert_eq!(length("common_years", Calendar::NoLeap), (365 * DAY, 1));
    assert_eq!(length("year", Calendar::AllLeap), (366 * DAY, 1));
}

#[test]
fn unusable_units_say_why() {
    let error = |text: &str, calendar| TimeUnits::parse(text, calendar).unwrap_err();
    let months = error("months since 2000-01-01", Calendar::NoLeap);
    assert_eq!(months.kind(), ErrorKind::Unsupported);
    assert_eq!(
        months.message(),
        "time units \"months since 2000-01-01\": \
         a month has no fixed length in the noleap calendar, only in 360_day"
    );
    assert_eq!(error("years since 2000-01-01", Calendar::Standard).kind(), ErrorKind::Unsupported);
    assert_eq!(error("common_years since 2000-01-01", Calendar::AllLeap).kind(), ErrorKind::Unsupported);
    assert!(error("metres since 2000-01-01", Calendar::Standard).message().contains("\"metres\" is no unit"));
    assert!(error("days", Calendar::Standard).message().contains("expected a unit and a date"));
    assert!(error("days since", Calendar::Standard).message().contains("expected a unit and a date"));
    let year_zero = error("days since 0000-01-01", Calendar::Standard);
    assert_eq!(year_zero.kind(), ErrorKind::InvalidValue);
    assert!(year_zero.message().contains("there is no year 0 in the standard calendar"), "{year_zero}");
    assert!(error("days since 2001-02-29", Calendar::NoLeap).message().contains("days 1 to 28"));
}

#[test]
fn reference_times_are_told_from_other_units() {
    assert!(TimeUnits::is_reference_time("days since 2000-01-01"));
    assert!(TimeUnits::is_reference_time("fortnights SINCE whenever"));
    for other in ["", "m", "days", "degrees_north", "kg since", "days  from 2000-01-01"] {
        assert!(!TimeUnits::is_reference_time(other), "{other}");
    }
}

#[test]
fn epochs_are_in_utc() {
    for text in
        ["s since 1970-01-01T00:00:00Z", "s since 1970-1-1", "s since 1970-01-01 06:00 +6", "s since 1970"]
    {
        let epoch = units(text, Calendar::Standard).epoch();
        assert_eq!(epoch.to_unix_microseconds(Calendar::Standard), Some(0), "{text}");
    }
    assert_eq!(units("days since 1-1-1", Calendar::NoLeap).epoch().to_string(), "0001-01-01T00:00:00");
    assert_eq!(units("hours since -4713-01-01 12", Calendar::Julian).epoch().year(), -4713);
}

#[test]
fn numbers_without_a_date_are_none() {
    for text in ["days since 2000-01-01", "ns since 2000-01-01", "weeks since -999999999-01-01"] {
        let time = units(text, Calendar::Standard);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 1e30, -1e30] {
            assert_eq!(time.to_datetime(value), None, "{text} {value}");
        }
        for tiny in [0.0, -0.0, f64::MIN_POSITIVE, -5e-324, 1e-40] {
            assert_eq!(time.to_datetime(tiny), Some(time.epoch()), "{text} {tiny}");
        }
    }
    let days = units("days since 2000-01-01", Calendar::Standard);
    assert_eq!(days.to_datetime_i64(i64::MAX), None);
    assert_eq!(days.to_datetime_i64(i64::MIN), None);
    let nanoseconds = units("ns since 1970-01-01", Calendar::Standard);
    assert_eq!(nanoseconds.to_datetime_i64(i64::MAX).unwrap().to_string(), "2262-04-11T23:47:16.854776");
}

#[test]
fn dates_of_another_calendar_have_no_number() {
    let leap_day = parse_date("2000-02-30", Calendar::Day360).unwrap();
    let noleap = units("days since 2000-01-01", Calendar::NoLeap);
    assert!(noleap.to_number(&leap_day).is_nan());
    assert_eq!(noleap.to_integer(&leap_day), None);
}

#[test]
fn integers_beyond_2_to_the_53_stay_exact() {
    let time = units("us since 0001-01-01", Calendar::ProlepticGregorian);
    let date = parse_date("2000-01-01T00:00:00.000001", Calendar::ProlepticGregorian).unwrap();
    let exact = 63_082_281_600_000_001;
    assert_eq!(time.to_integer(&date), Some(exact));
    assert_eq!(time.to_datetime_i64(exact), Some(date));
    assert_eq!(time.to_number(&date), exact as f64);
    let days = units("days since 0001-01-01", Calendar::ProlepticGregorian);
    assert_eq!(days.to_integer(&date), None);
}

#[test]
fn quotients_are_rounded_once_to_the_nearest() {
    for (dividend, divisor, expected) in [
        (1, 3, 1.0 / 3.0),
        (-1, 86_400_000_000, -1.0 / 86_400_000_000.0),
        (0, 7, 0.0),
        ((1 << 53) + 1, 1, 9_007_199_254_740_992.0),
        ((1 << 54) + 2, 2, 9_007_199_254_740_992.0),
        // A hair above the tie: two roundings would lose it.
        (((1 << 53) + 1) * 1_000_000 + 1, 1_000_000, 9_007_199_254_740_994.0),
        (1 << 100, 1, 2f64.powi(100)),
    ] {
        assert_eq!(nearest_f64(dividend, divisor), expected, "{dividend} / {divisor}");
    }
}

fn any_calendar() -> impl Strategy<Value = Calendar> {
    prop::sample::select(Calendar::ALL.to_vec())
}

proptest! {
    #[test]
    fn every_microsecond_has_one_date(calendar in any_calendar(), at in -4_000_000_000_000_000_000_i64..4_000_000_000_000_000_000) {
        let time = units("us since 1600-02-28 12:00", calendar);
        let date = time.to_datetime_i64(at).unwrap();
        prop_assert_eq!(time.to_integer(&date), Some(at));
        prop_assert_eq!(parse_date(&date.to_string(), calendar).unwrap(), date);
    }

    #[test]
    fn later_numbers_are_later_dates(calendar in any_calendar(), a in -1e7_f64..1e7, b in -1e7_f64..1e7) {
        let time = units("hours since 1582-10-04", calendar);
        let (early, late) = (time.to_datetime(a.min(b)), time.to_datetime(a.max(b)));
        prop_assert!(early <= late, "{:?} {:?}", early, late);
    }

    #[test]
    fn the_number_of_a_date_leads_back_to_it(calendar in any_calendar(), minutes in -180_000_000_i64..180_000_000) {
        // To 2^17 days an f64 of days is within 0.63 microseconds, and that is drawn to the second.
        let date = units("minutes since 1850-01-01", calendar).to_datetime_i64(minutes).unwrap();
        let days = units("days since 1850-01-01", calendar);
        prop_assert_eq!(days.to_datetime(days.to_number(&date)), Some(date));
    }

    #[test]
    fn any_text_and_any_number_is_answered(text in ".{0,40}", value in any::<f64>(), integer in any::<i64>()) {
        for calendar in Calendar::ALL {
            let _ = parse_date(&text, calendar);
            let _ = TimeUnits::parse(&format!("weeks since {text}"), calendar);
            for unit in ["weeks", "ns"] {
                let time = units(&format!("{unit} since 1000000000-12-30"), calendar);
                let _ = (time.to_datetime(value), time.to_datetime_i64(integer));
            }
        }
    }

    #[test]
    fn text_like_a_date_is_answered(text in "[-+]?[0-9]{1,20}(-[0-9]{1,3}){0,3}[T _]?([0-9]{1,2}:?){0,4}(\\.[0-9]{0,9})?[-+Z]?[0-9:]{0,5}") {
        for calendar in Calendar::ALL {
            if let Ok(date) = parse_date(&text, calendar) {
                prop_assert_eq!(parse_date(&date.to_string(), calendar).unwrap(), date);
            }
        }
    }
}
