"""Writes cf_times.csv: numbers of CF time coordinates, their dates, and the numbers of these, by cftime.

The values are near enough for cftime's extended precision to hold them in microseconds: of farther ones it
may round the product twice, where the reader under test rounds once.

Run with cftime 1.6.6.1 and numpy 2.4.6:  python -W ignore make_cf_times.py > cf_times.csv
"""

import random
import sys
from collections.abc import Iterator

import cftime
import numpy as np

CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]
UNITS = [
    (
        "days since 1850-01-01 00:00:00",
        [0, 1, -1, 0.5, 31, 59, 60, 365, 366, 36524.25, -97670, 54787.999999999],
    ),
    (
        "days since 0001-01-01",
        [0, 577735, 577736, 577737, 577738, 577747, 730485.75, -1, -365, -366, -400.5, -1e5],
    ),
    ("hours since 1582-10-04 06:00:00", [0, 17, 18, 19, 24, 0.1, 1 / 3, -8784, 1e6]),
    ("minutes since 2000-2-28 12:30", [0, 690, 2130, 1440.25, 0.001, 5e7]),
    (
        "seconds since 1970-01-01T00:00:00Z",
        [0, 1, 1.5, 0.1, 951782400, 4102444800.123456, -86400.000001, 2**33],
    ),
    ("seconds since 1999-12-30 23:59:59.5 +05:30", [0, 0.5, 0.25, 1e-7, 1.0000007, 0.9999993, 2.9999996]),
    ("milliseconds since 1900-03-01 00:00 -0600", [0, 1, 86400000, 2.0007, 3155760000000]),
    (
        "microseconds since -0004-02-28 00:00:00",
        [0, 1, 0.5, 1.5, 86400000000, 172800000000, 63072000000000001],
    ),
    ("days since -4712-01-01 12:00:00", [0, 1721423.5, 2299160, 2299160.5, 2299161.25, 2451545, -1500]),
    ("days since 2000-01-01", [7.0e6, 3.5e7, -9.1e6]),
]
SPECIAL = [
    ("360_day", "months since 2000-01-30", [0, 1, 13, 0.5, -25, 1e4]),
    ("noleap", "common_years since 2000-03-01", [0, 1, 0.25, -2001, 1e4]),
]


def iso(date: cftime.datetime) -> str:
    """Return ISO 8601, with a sign before the four digits of a negative year."""
    sign = "-" if date.year < 0 else ""
    text = f"{sign}{abs(date.year):04d}-{date.month:02d}-{date.day:02d}T"
    text += f"{date.hour:02d}:{date.minute:02d}:{date.second:02d}"
    return text + (f".{date.microsecond:06d}" if date.microsecond else "")


def rows(calendar: str, units: str, values: list[float]) -> Iterator[str]:
    """Yield the table's lines for some numbers of one unit."""
    for value in values:
        date = cftime.num2date(np.asarray(value), units, calendar)
        number = np.asarray(cftime.date2num(date, units, calendar)).item()
        yield f"{calendar},{units},{value!r},{iso(date)},{number!r},{date.dayofyr}"


def main() -> None:
    """Write the table to standard output."""
    draw = random.Random(1582)
    print(f"# made by make_cf_times.py with cftime {cftime.__version__} and numpy {np.__version__}")
    print("calendar,units,value,date,number,day_of_year")
    for calendar in CALENDARS:
        for units, values in UNITS:
            scale = max(abs(v) for v in values)
            drawn = [draw.uniform(-scale / 10, scale) for _ in range(4)] + [draw.randrange(int(scale) + 2)]
            sys.stdout.writelines(line + "\n" for line in rows(calendar, units, values + drawn))
    for calendar, units, values in SPECIAL:
        sys.stdout.writelines(line + "\n" for line in rows(calendar, units, values))


if __name__ == "__main__":
    main()
