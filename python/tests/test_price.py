"""The law of prices: what a query then took lies within the bounds that were told before it was run."""

import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from draw_conditions import conditions
from draws import FORMATS, write
from hypothesis import given, note, settings
from hypothesis import strategies as st
from test_index_oracle import LAYOUTS, large_arrays
from test_oracle import PROFILE, files, opened


def assert_held(query: sieva.Query, rows: int | None = None) -> None:
    """Ask for the price, then for all rows, and compare."""
    before = query.stats()
    price = query.price()
    assert query.stats()["requests"] == before["requests"]
    table = query.to_arrow()
    after = query.stats()
    assert table.num_rows in price.rows
    assert rows is None or table.num_rows == rows
    assert after["bytes_read"] - before["bytes_read"] in price.bytes_read
    assert after["requests"] - before["requests"] in price.requests
    size = sum(c.nbytes for c in table.columns if c.type not in ("bool", "string", "large_string"))
    assert price.bytes_returned.high is None or size <= price.bytes_returned.high
    for part in (price.rows, price.bytes_read, price.requests, price.seconds):
        assert part.low <= part.expected
        assert part.high is None or part.expected <= part.high


@pytest.mark.parametrize("file_format", FORMATS)
def test_drawn_queries_cost_what_was_told(file_format: str) -> None:
    @settings(PROFILE, max_examples=PROFILE.max_examples // 4)
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        drawn = data.draw(files(file_format), label="file")
        condition = data.draw(conditions(drawn), label="condition")
        selected = data.draw(st.lists(st.sampled_from(drawn), min_size=1, unique_by=id), label="select")
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, data.draw(st.booleans(), label="unlimited"))
            if data.draw(st.booleans(), label="indexed"):
                source.build_index(kinds=["zonemap", "bitmap"])
            note(condition.text)
            assert_held(source.query(condition.text, select=[a.name for a in selected], cross=True))

    law()


@pytest.fixture(scope="module", params=["contiguous", "chunked", "grid"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> sieva.Source:
    """Open a file of large arrays: several tiles, regions and chunks each."""
    layout = LAYOUTS[request.param]
    path = tmp_path_factory.mktemp("price") / ("large.h5" if layout.file_format == "HDF5" else "large.nc")
    arrays = large_arrays(layout)
    write(path, layout.file_format, arrays, unlimited=False)
    return sieva.open(path)


CONDITIONS = [
    None,
    "real > 5",
    "sorted > 4.5 AND real > 0",
    "packed < -5",
    "patchy = 3",
    "sorted * 2 > real",
    "real IS NULL",
]


@pytest.mark.parametrize("indexed", [False, True])
def test_large_queries_cost_what_was_told(source: sieva.Source, indexed: bool) -> None:
    if indexed:
        source.build_index(kinds=["zonemap", "bitmap"])
    for condition in CONDITIONS:
        for select in (["sorted"], ["real", "packed"]):
            for access in ("scan", "auto"):
                for fetch in ("auto", "direct", "block"):
                    assert_held(source.query(condition, select=select, access=access, fetch=fetch))


def test_groups_order_and_limit_are_priced(source: sieva.Source) -> None:
    for text in (
        "SELECT count(*), avg(real), min(packed) FROM 'x' WHERE sorted > 0",
        "SELECT patchy, count(*) FROM 'x' GROUP BY patchy",
        "SELECT real FROM 'x' WHERE sorted > 1 ORDER BY real LIMIT 10",
        "SELECT DISTINCT patchy FROM 'x'",
        "SELECT sorted FROM 'x' WHERE real > 3 LIMIT 5 OFFSET 2",
    ):
        assert_held(source.sql(text))


AGGREGATES = ("count", "min", "max")


def bits(values: list[object]) -> list[object]:
    """Return values that are equal only if the bits are."""
    return [np.float64(v).tobytes() if isinstance(v, float) else v for v in values]


def test_aggregates_that_zone_maps_know_read_nothing(source: sieva.Source) -> None:
    source.build_index(kinds=["zonemap"])
    for info in source.arrays.values():
        name = info.path
        asked = "count(*), " + ", ".join(f"{a}({name})" for a in AGGREGATES)
        known = source.sql(f"SELECT {asked} FROM 'x'")
        before = known.stats()["bytes_read"]
        row = list(known.to_arrow().to_pylist()[0].values())
        read = known.stats()["bytes_read"] - before
        scanned = source.sql(f"SELECT {asked} FROM 'x'", access="scan")
        assert bits(row) == bits(list(scanned.to_arrow().to_pylist()[0].values())), name
        if len(info.shape) > 0 and info.shape == source["real"].shape and name != "packed":
            assert read == 0, name
    constant = source.sql("SELECT sum(constant), avg(constant) FROM 'x' WHERE sorted > 1")
    scanned = source.sql("SELECT sum(constant), avg(constant) FROM 'x' WHERE sorted > 1", access="scan")
    assert constant.to_arrow().to_pylist() == scanned.to_arrow().to_pylist()


@pytest.mark.parametrize("kind", ["zonemap", "sorted"])
def test_looking_up_an_index_is_in_the_price(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f["x"] = np.random.default_rng(0).normal(size=100_000)
    sieva.open(path).build_index("x", kinds=[kind])
    for text in ("SELECT x", "SELECT count(*) WHERE x > 3", "SELECT x WHERE x > 2"):
        query = sieva.open(path, learn=False).sql(text)
        price = query.price()
        query.to_arrow()
        assert query.stats()["bytes_read"] in price.bytes_read
        assert query.stats()["requests"] in price.requests


def test_what_nothing_bounds_has_an_expectation_all_the_same(tmp_path: Path) -> None:
    for n in range(2):
        with h5py.File(tmp_path / f"{n}.h5", "w") as f:
            f["t"] = np.arange(4.0) + 10 * n
            f["t"].make_scale("t")
            f["a"] = np.ones(4)
            f["a"].dims[0].attach_scale(f["t"])
    query = sieva.open(sorted(tmp_path.glob("*.h5")), learn=False).sql("SELECT a")
    price = query.price()
    assert (price.bytes_read.expected, price.bytes_read.high) == (64, None)
    assert (price.requests.expected, price.seconds.high) == (1, None)
    assert price.seconds.expected < 1
    assert "about 64 bytes read (0 to any number)" in query.explain()


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "standard"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT time, max(v) GROUP BY time",
        "SELECT min(time), max(time)",
        "SELECT time, v WHERE v > 1",
        "SELECT month(time) AS m, min(time) GROUP BY m",
    ],
)
def test_dates_cost_what_their_texts_take(tmp_path: Path, calendar: str, sql: str) -> None:
    path = tmp_path / "dates.h5"
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(900.0)
        file["time"].make_scale("time")
        file["time"].attrs.update({"units": "days since 2001-01-01", "calendar": calendar})
        file["v"] = np.arange(900.0) % 7
        file["v"].dims[0].attach_scale(file["time"])
    query = sieva.open(path, learn=False).sql(sql)
    price = query.price()
    table = query.to_arrow()
    assert table.num_rows in price.rows
    assert sum(column.nbytes for column in table.columns) <= price.bytes_returned.high
