"""CF time: every calendar, units, comparison with dates, parts of dates."""

from pathlib import Path

import cftime
import netCDF4
import numpy as np

from corpus.registry import Topic, file

_topic = Topic("times", "times.nc")

_CALENDARS = ("standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day")
_ALIASES = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
_OFFSETS = np.array([0.0, 30, 58, 59, 60, 90.5, 365, 730.25, 1461])
_UNITS = {
    "hours": ("hours since 2001-02-27 18:00:00", [0, 6, 12, 30, 54, 78]),
    "seconds": ("seconds since 1999-12-31T23:59:58Z", [0, 1, 2, 3, 60, 86402]),
    "minutes": ("minutes since 2000-01-01 00:00 +01:00", [0, 30, 60, 90, 1440, 1500]),
    "milliseconds": ("milliseconds since 2000-01-01", [0, 1, 999, 1000, 86399999, 86400000]),
}


@file("times.nc")
def write_times(path: Path) -> None:
    """Write one time axis for each calendar and for each unit."""
    with netCDF4.Dataset(path, "w") as f:
        for calendar in (*_CALENDARS, *_ALIASES):
            name = f"t_{calendar}"
            f.createDimension(name, len(_OFFSETS))
            v = f.createVariable(name, "f8", (name,))
            v.units, v.calendar = "days since 2000-01-01 00:00:00", calendar
            v[:] = _OFFSETS
        for name, (units, offsets) in _UNITS.items():
            f.createDimension(name, len(offsets))
            v = f.createVariable(name, "i8", (name,))
            v.units, v.calendar = units, "standard"
            v[:] = offsets
        f.createDimension("old", 4)
        v = f.createVariable("old", "f8", ("old",))
        v.units, v.calendar = "days since 1582-10-01", "standard"
        v[:] = [0, 3, 4, 20]  # the 4th of October is followed by the 15th


def _dates(f: object, name: str) -> np.ndarray:
    """Return the dates of a time axis by cftime."""
    if name in _UNITS:
        units, calendar = _UNITS[name][0], "standard"
    elif name == "old":
        units, calendar = "days since 1582-10-01", "standard"
    else:
        calendar = name.removeprefix("t_")
        units = "days since 2000-01-01 00:00:00"
    return cftime.num2date(f.raw(name), units, _ALIASES.get(calendar, calendar))


def _at(f: object, name: str, *date: int) -> cftime.datetime:
    calendar = _dates(f, name)[0].calendar
    return cftime.datetime(*date, calendar=calendar)


def _calendar_cases(calendar: str) -> None:
    name = f"t_{calendar}"
    reads = {name: lambda f: f.raw(name)}
    _topic.where(
        f"{calendar}_after",
        f"{name} >= '2000-03-01'",
        name,
        lambda f: _dates(f, name) >= _at(f, name, 2000, 3, 1),
        reads,
    )
    _topic.where(
        f"{calendar}_between",
        f"{name} BETWEEN '2000-02-28' AND '2001-01-01'",
        name,
        lambda f: (
            (_dates(f, name) >= _at(f, name, 2000, 2, 28)) & (_dates(f, name) <= _at(f, name, 2001, 1, 1))
        ),
    )
    _topic.where(
        f"{calendar}_month",
        f"month({name}) = 2",
        name,
        lambda f: np.array([d.month == 2 for d in _dates(f, name)]),
    )


for _calendar in (*_CALENDARS, *_ALIASES):
    _calendar_cases(_calendar)
_topic.where(
    "hours_before",
    "hours < '2001-03-01'",
    "hours",
    lambda f: _dates(f, "hours") < _at(f, "hours", 2001, 3, 1),
)
_topic.where(
    "hour_of_the_day",
    "hours > DATE '2001-02-28' AND hour(hours) = 0",
    "hours",
    lambda f: np.array(
        [
            (d.month, d.day) != (2, 27) and d.hour == 0 and (d.month, d.day) > (2, 28)
            for d in _dates(f, "hours")
        ]
    ),
)
_topic.where(
    "seconds_timestamp",
    "seconds > TIMESTAMP '2000-01-01T00:00:00'",
    "seconds",
    lambda f: _dates(f, "seconds") > _at(f, "seconds", 2000, 1, 1),
)
_topic.where(
    "time_zone_of_the_units",
    "minutes = '2000-01-01'",
    "minutes",
    lambda f: _dates(f, "minutes") == _at(f, "minutes", 2000, 1, 1),
)
_topic.where(
    "milliseconds_fraction",
    "milliseconds >= '2000-01-01 00:00:00.999' AND milliseconds < '2000-01-02'",
    "milliseconds",
    lambda f: (f("milliseconds") >= 999) & (f("milliseconds") < 86400000),
)
_topic.where(
    "calendar_gap", "old >= '1582-10-15'", "old", lambda f: _dates(f, "old") >= _at(f, "old", 1582, 10, 15)
)
_topic.where("numbers_still_compare", "t_noleap > 100", "t_noleap", lambda f: f("t_noleap") > 100)
_topic.where(
    "leap_day_360",
    "t_360_day = '2000-02-30'",
    "t_360_day",
    lambda f: _dates(f, "t_360_day") == _at(f, "t_360_day", 2000, 2, 30),
)
_topic.sql(
    "years_are_groups",
    "SELECT year(t_noleap) AS y, count(*) AS n FROM '{file}' GROUP BY year(t_noleap) ORDER BY y",
    ["y", "n"],
    lambda f: [
        [int(y), int(n)]
        for y, n in zip(*np.unique([d.year for d in _dates(f, "t_noleap")], return_counts=True), strict=True)
    ],
)
_topic.sql(
    "parts_of_dates",
    "SELECT year(hours), month(hours), day(hours), hour(hours), dayofyear(hours) FROM '{file}'",
    ["year(hours)", "month(hours)", "day(hours)", "hour(hours)", "dayofyear(hours)"],
    lambda f: [[d.year, d.month, d.day, d.hour, d.dayofyr] for d in _dates(f, "hours")],
)
_topic.sql(
    "real_dates_are_shown",
    "SELECT hours FROM '{file}' WHERE hours < '2001-03-01'",
    ["hours"],
    lambda f: [[d.isoformat()] for d in _dates(f, "hours") if d < _at(f, "hours", 2001, 3, 1)],
)
_topic.sql(
    "model_dates_are_shown",
    "SELECT t_360_day FROM '{file}' WHERE t_360_day < '2000-03-05'",
    ["t_360_day"],
    lambda f: [[d.isoformat()] for d in _dates(f, "t_360_day") if d < _at(f, "t_360_day", 2000, 3, 5)],
)
_topic.error("impossible_date", "t_noleap > '2000-02-29'", "invalid-value", "2000-02-29")
_topic.error("no_date", "t_noleap > 'yesterday'", "invalid-value", "yesterday")
