"""Times before 1582 in the mixed calendar, as cftime has them, wherever the epoch is."""

import cftime
import netCDF4
import numpy as np
import pytest
import sieva

DAYS = {
    # 1500-02-29 exists in the Julian calendar only; 1582-10-15 follows 1582-10-04.
    "julian": [(1500, 2, 29), (1582, 10, 4), (1582, 10, 15), (1999, 12, 31)],
    "gregorian": [(1582, 10, 15), (1700, 3, 1), (2000, 1, 1), (2024, 2, 29)],
}


def write(path, dates, units, n=1):
    """Write a time coordinate of the standard calendar, each date so many times."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", len(dates) * n)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = units, "standard"
        named = [cftime.datetime(*d, 6, calendar="standard") for d in dates]
        time[:] = np.repeat(cftime.date2num(named, units, "standard"), n)
        file.createVariable("v", "f4", ("time",))[:] = np.arange(len(dates) * n)
    return [d.isoformat() for d in named]


@pytest.mark.parametrize("units", ["days since 2000-01-01", "hours since 1970-01-01", "days since 1-1-1"])
def test_dates_before_1582_are_those_of_cftime(tmp_path, units):
    dates = write(tmp_path / "t.nc", DAYS["julian"], units)
    source = sieva.open(tmp_path / "t.nc")
    assert source.query("v >= 0", select=["time"]).to_arrow()["time"].to_pylist() == dates
    table = source.sql("SELECT min(time) AS a, max(time) AS b").to_arrow().to_pylist()
    assert table == [{"a": dates[0], "b": dates[-1]}]
    source.sql("SELECT time, v WHERE v < 2").to_csv(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["time", *dates[:2]]
    assert source.query("time = '1500-02-29T06'").count() == 1
    assert source.sql("SELECT day(time) AS d WHERE v = 0").to_arrow()["d"].to_pylist() == [29]


@pytest.mark.parametrize("units", ["days since 2000-01-01", "hours since 1500-01-01"])
def test_dates_from_1582_on_are_timestamps(tmp_path, units):
    dates = write(tmp_path / "t.nc", DAYS["gregorian"], units)
    found = sieva.open(tmp_path / "t.nc").query("v >= 0", select=["time"]).to_arrow()["time"]
    assert str(found.type) == "timestamp[us]"
    assert [t.isoformat() for t in found.to_pylist()] == dates


def test_of_too_many_to_look_at_timestamps_are_the_same_instants(tmp_path):
    write(tmp_path / "t.nc", DAYS["julian"], "days since 2000-01-01", n=300_000)
    found = sieva.open(tmp_path / "t.nc").sql("SELECT min(time) AS t").to_arrow()["t"][0].as_py()
    julian = cftime.datetime(1500, 2, 29, 6, calendar="julian")
    assert found.isoformat() == julian.change_calendar("proleptic_gregorian").isoformat()
