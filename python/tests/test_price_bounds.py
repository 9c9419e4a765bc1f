"""The law of prices, where chunks are wanted more than once: steps of rows, keys, tiles, and little memory.

What was read lies within the bounds that were told, with a session that keeps decoded chunks and with one
that keeps none; and the upper bounds stay near: a few times what the arrays take.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from hypothesis import given, note, settings
from hypothesis import strategies as st
from test_oracle import PROFILE

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = {"time": 24, "lat": 36, "lon": 50}
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "steps": {"chunks": (1, 18, 25), "compression": 1},
    "blocks": {"chunks": (6, 10, 20), "compression": 1, "shuffle": True},
    "columns": {"chunks": (24, 4, 5), "compression": 1},
    "unfiltered": {"chunks": (6, 10, 20)},
}
# A tile, a key and a row are each read for themselves, in steps of some thousand rows at the least.
MEMORY = ("1MiB", "4MiB", None)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a file of one array in each layout, its coordinates, and an array on two of the dimensions."""
    made = tmp_path_factory.mktemp("bounds") / "grid.h5"
    rng = np.random.default_rng(11)
    shape = tuple(SHAPE.values())
    with h5py.File(made, "w") as file:
        for name, n in SHAPE.items():
            file[name] = np.linspace(-90, 90, n) if name == "lat" else np.arange(n, dtype="f8")
            file[name].make_scale(name)
        file["lat"].attrs["units"] = "degrees_north"
        file["time"].attrs["units"] = "days since 2001-01-01"
        for name, options in LAYOUTS.items():
            values = rng.normal(size=shape).round(2).astype("f4")
            data = file.create_dataset(name, data=values, **options)
            for axis, dim in enumerate(SHAPE):
                data.dims[axis].attach_scale(file[dim])
        depth = file.create_dataset("depth", data=rng.normal(size=shape[1:]), chunks=(9, 50), compression=1)
        small = file.create_dataset("small", data=rng.integers(0, 5, shape).astype("i1"), chunks=(4, 36, 50))
        for data, dims in ((depth, ("lat", "lon")), (small, tuple(SHAPE))):
            for axis, dim in enumerate(dims):
                data.dims[axis].attach_scale(file[dim])
    return made


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Draw a SELECT of any kind."""
    names = [*LAYOUTS, "small", "depth"]
    one, two = draw(st.sampled_from(list(LAYOUTS))), draw(st.sampled_from(names))
    bound = draw(st.sampled_from([-9, 0, 1, 2, 9]))
    where = draw(
        st.sampled_from(
            [
                "",
                f"WHERE {two} > {bound}",
                f"WHERE {one} + {two} > {bound}",
                "WHERE lat > 80",
                f"WHERE lat BETWEEN 0 AND 20 AND {two} < {bound}",
                f"WHERE time = 3 OR {two} > {bound}",
                f"WHERE idx(time) < 2 AND {one} > {bound}",
                f"WHERE month(time) = 1 AND {two} > {bound}",
            ]
        )
    )
    kind = draw(st.sampled_from(["rows", "computed", "distinct", "groups", "few groups"]))
    select = {
        "rows": f"{one}, {two}, lat",
        "computed": f"{one} + 1 AS a, {one} * {two} AS b",
        "distinct": draw(
            st.sampled_from([f"DISTINCT {one}", f"DISTINCT small, {two}", "DISTINCT lat, time"])
        ),
        "groups": f"lat, avg({one}) AS a, max({two}) AS b",
        "few groups": f"month(time) AS m, histogram({one}, 4) AS h, count({two}) AS b",
    }[kind]
    if kind in ("groups", "few groups"):
        return f"SELECT {select} {where} GROUP BY {'lat' if kind == 'groups' else 'month(time)'}"
    order = draw(st.sampled_from(["", f"ORDER BY {one}", f"ORDER BY {two} DESC, {one} * 2", "ORDER BY 1"]))
    limit = draw(st.sampled_from(["", "LIMIT 7", "LIMIT 20000 OFFSET 3"]))
    return f"SELECT {select} {where} {order} {limit}"


def assert_held(query: sieva.Query) -> sieva.Price:
    price = query.price()
    assert query.stats()["requests"] == query.stats()["bytes_read"] == 0
    table = query.to_arrow()
    stats = query.stats()
    assert table.num_rows in price.rows, price.rows
    assert stats["bytes_read"] in price.bytes_read, price.bytes_read
    assert stats["requests"] in price.requests, price.requests
    for part in (price.rows, price.bytes_read, price.bytes_returned, price.requests, price.seconds):
        assert part.low <= part.expected
        assert part.high is None or part.expected <= part.high
    return price


@pytest.mark.parametrize("cache", [0, "64MiB"])
def test_bounds_hold_whatever_is_kept(path: Path, cache: int | str) -> None:
    @settings(PROFILE, max_examples=PROFILE.max_examples * 2)
    @given(sql=queries(), memory=st.sampled_from(MEMORY), threads=st.integers(1, 3))
    def law(sql: str, memory: str | None, threads: int) -> None:
        note(sql)
        with sieva.Session(cache=cache) as session:
            source = session.open(path, learn=False)
            assert_held(source.sql(sql, memory=memory, threads=threads))

    law()


def stored(path: Path, name: str) -> int:
    with h5py.File(path) as file:
        return int(file[name].id.get_storage_size())


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("name", LAYOUTS)
def test_upper_bounds_are_near(path: Path, name: str, memory: str | None) -> None:
    """Once for a condition, twice for each time that rows name an array, twice for its order."""
    source = sieva.open(path, learn=False)
    size = stored(path, name) + 4096
    # There may be no room for all rows that share chunks.
    times = 2 if memory is None else {"columns": 8}.get(name, 3)
    for sql, most in (
        (f"SELECT {name}", times),
        (f"SELECT {name} WHERE {name} > 1", times + 1),
        (f"SELECT {name} WHERE lat > 80", times),
        (f"SELECT {name} + 1 AS a, {name} * 2 AS b", 2 * times),
        # Tiles of groups may be smaller than chunks then, too.
        (f"SELECT lat, avg({name}) GROUP BY lat", 2 if memory is None else 50),
        (f"SELECT avg({name}) WHERE {name} > 0", 3 if memory is None else 50),
    ):
        price = source.sql(sql, memory=memory).price()
        assert price.bytes_read.high <= most * size, (sql, price.bytes_read.high / size)
    if memory is None:
        price = source.sql(f"SELECT {name} ORDER BY {name}").price()
        assert price.bytes_read.high <= 4 * size


def test_coordinates_in_memory_are_counted(path: Path) -> None:
    with sieva.Session(cache="64MiB") as session:
        source = session.open(path, learn=False)
        for text in ("time < 5", "time < 5 AND lon > 20", "time IN (1, 7) OR lon = 3"):
            true = source.query(text, select=["plain"]).count()
            # The coordinates were read for that.
            query = source.query(text, select=["steps"])
            rows = query.price().rows
            assert (rows.low, rows.expected, rows.high) == (true, true, true), text
            assert query.stats()["requests"] == 0
            assert query.estimate() == (true, true)


def test_a_coordinate_that_was_not_read_is_as_its_units_say(path: Path) -> None:
    with sieva.Session(cache=0) as session:
        source = session.open(path, learn=False)
        query = source.query("lat > 80", select=["plain"])
        expected = query.price().rows.expected
        assert expected == round(np.prod(list(SHAPE.values())) * 10 / 180)
        assert query.stats()["requests"] == 0
        assert 0.5 * query.count() <= expected <= 2 * query.count()
        # Of one of which nothing is known a value is one of its many.
        assert source.query("time = 3", select=["plain"]).price().rows.expected == 36 * 50


def test_expectations_lie_within_estimates(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "grid.h5"
    copy.write_bytes(path.read_bytes())
    source = sieva.open(copy, learn=False)
    source.build_index(kinds=["zonemap"])
    source.query("time >= 0 AND lat >= -90 AND lon >= 0", select=["plain"]).count()
    for name in LAYOUTS:
        for bound in (-2, 0, 0.5, 1.5, 3, 9):
            for more in (
                "",
                " AND lat > 30",
                " OR time < 3",
                " AND small < 2",
                " AND NOT (lon > 7 OR depth > 1)",
            ):
                query = source.query(f"{name} > {bound}{more}", select=[name])
                before = query.price().rows
                low, high = query.estimate()
                after = query.price().rows
                assert low <= before.expected <= high, (name, bound, more)
                assert low <= after.low <= after.expected <= after.high <= high
                assert query.count() in after


@pytest.mark.parametrize(
    ("sql", "most", "true"),
    [
        ("SELECT DISTINCT lat WHERE plain > 0", 36, 36),
        ("SELECT DISTINCT lat, time WHERE plain > 0", 36 * 24, 36 * 24),
        ("SELECT DISTINCT lat + 1 AS a, lat * 2 AS b WHERE plain > -9", 36, 36),
        ("SELECT DISTINCT small", 257, 5),
        ("SELECT DISTINCT month(time) AS m, small WHERE plain > -9", 13 * 257, 5),
        ("SELECT DISTINCT lat WHERE idx(lat) < 5 AND plain > -9", 5, 5),
        ("SELECT DISTINCT plain > 0 AS b", 3, 2),
        ("SELECT lat, -lat AS m, count(*) WHERE plain > -9 GROUP BY lat, -lat", 36, 36),
        ("SELECT small, month(time) AS m, count(*) GROUP BY small, month(time)", 257 * 13, 5),
        ("SELECT DISTINCT 3 AS a WHERE plain > -9", 1, 1),
    ],
)
def test_different_rows_are_no_more_than_keys_have(path: Path, sql: str, most: int, true: int) -> None:
    query = sieva.open(path, learn=False).sql(sql)
    assert query.price().rows.high == most
    assert query.to_arrow().num_rows == true


def test_order_and_different_rows_take_time(path: Path) -> None:
    source = sieva.open(path, learn=False)
    seconds = {
        kind: source.sql(f"SELECT {kind}").price().seconds.expected
        for kind in ("plain", "plain ORDER BY plain", "DISTINCT plain", "plain ORDER BY plain LIMIT 9")
    }
    rows = int(np.prod(list(SHAPE.values())))
    assert seconds["plain ORDER BY plain"] - seconds["plain"] > rows * 50e-9
    assert seconds["DISTINCT plain"] - seconds["plain"] > rows * 50e-9
    assert seconds["plain"] < seconds["plain ORDER BY plain LIMIT 9"] < seconds["plain ORDER BY plain"]


def test_a_position_that_comes_again_is_read_once(tmp_path: Path) -> None:
    """Of an array on fewer dimensions an element is wanted for many rows that follow one another."""
    path = tmp_path / "wide.nc"
    values = np.arange(60 * 400, dtype="f4").reshape(60, 400)
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, n in (("y", 60), ("x", 400), ("z", 3)):
            file.createDimension(name, n)
        file.createVariable("wide", "f4", ("y", "x"))[:] = values
        file.createVariable("all", "f4", ("y", "x", "z"))[:] = np.repeat(values, 3).reshape(60, 400, 3)
    for condition, kept in ((None, slice(None)), ("all > 20000", slice(20001, None))):
        query = sieva.open(path, learn=False).query(condition, select=["wide", "all"], memory="1MiB")
        table = query.to_arrow()
        expected = np.repeat(values.ravel()[kept], 3)
        np.testing.assert_array_equal(table["wide"].to_numpy(), expected)
        np.testing.assert_array_equal(table["all"].to_numpy(), expected)
        assert query.stats()["bytes_read"] < 8 * path.stat().st_size


def test_explain_tells_the_bounds(path: Path) -> None:
    text = sieva.open(path, learn=False).sql("SELECT blocks").explain()
    (low, high) = re.findall(r"bytes read \((\d+) to (\d+)\)", text)[0]
    assert (int(low), int(high) <= 2 * stored(path, "blocks") + 4096) == (0, True)
