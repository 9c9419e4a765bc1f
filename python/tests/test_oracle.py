"""The law: the answer is that of numpy on the decoded data, bit for bit, for any file and any condition.

``SIEVA_HYPOTHESIS=nightly`` draws for long; by default the tests take about a minute.
"""

import math
import os
import tempfile
from fractions import Fraction
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from draw_conditions import align, conditions
from draws import DIMS, FORMATS, DrawnArray, arrays, write
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

settings.register_profile("default", max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile(
    "nightly", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck)
)
PROFILE = settings.get_profile(os.environ.get("SIEVA_HYPOTHESIS", "default"))

# Ranks 0 to 4, one transposed, one that needs another to cover all dimensions.
SHAPES = [(), ("z",), ("y", "x"), ("x", "y"), ("z", "y", "x"), ("time", "z"), ("time", "z", "y", "x")]


@st.composite
def files(draw, file_format):
    """Draw the arrays of a file: one to three, and coordinates along some of their dimensions."""
    kinds = FORMATS[file_format]
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    drawn = [draw(arrays(f"v{i}", dims, kinds)) for i, dims in enumerate(shapes)]
    used = sorted({d for dims in shapes for d in dims})
    named = draw(st.lists(st.sampled_from(used), unique=True)) if used else []
    return [draw(arrays(d, (d,), kinds, plain=True)) for d in named] + drawn


def opened(directory, file_format, drawn, unlimited):
    path = Path(directory) / ("drawn.h5" if file_format == "HDF5" else "drawn.nc")
    write(path, file_format, drawn, unlimited)
    return sieva.open(path)


def expected_values(array, rows, mask):
    """Return what reading an array at the hits gives: stored types, but float64 where packed or with gaps."""
    values, missing = array.decoded()
    values = np.broadcast_to(align(array.dims, values, rows), mask.shape)[mask]
    missing = np.broadcast_to(align(array.dims, missing, rows), mask.shape)[mask]
    if values.dtype.kind in "iu" and not missing.any():
        return values
    values = values.astype("f8")
    values[missing] = np.nan
    return values


def assert_identical(got, expected):
    """Equal numbers, NaN where NaN is, zeros of the same sign, integers as integers."""
    assert (got.dtype.kind in "iu") == (expected.dtype.kind in "iu")
    if expected.dtype.kind in "iu":
        assert got.tolist() == expected.tolist()
        return
    got = got.astype("f8")
    np.testing.assert_array_equal(got, expected)
    present = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[present]), np.signbit(expected[present]))


def test_the_position_of_a_scalar_has_no_coordinates(tmp_path):
    write(tmp_path / "scalar.h5", "HDF5", [DrawnArray("v", (), np.array(2.5))], unlimited=False)
    selection = sieva.open(tmp_path / "scalar.h5").query("v > 2").selection()
    assert (len(selection), selection.coords().shape, selection.mask().shape) == (1, (1, 0), ())


@pytest.mark.parametrize("file_format", FORMATS)
def test_selections_are_those_of_numpy(file_format):
    @settings(PROFILE)
    @given(data=st.data())
    def law(data):
        drawn = data.draw(files(file_format), label="file")
        condition = data.draw(conditions(drawn), label="condition")
        selected = data.draw(st.lists(st.sampled_from(drawn), min_size=1, unique_by=id), label="select")
        unlimited = data.draw(st.booleans(), label="unlimited")
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, unlimited)
            query = source.query(condition.text, select=[array.name for array in selected], cross=True)
            selection = query.selection()
            rows = tuple(selection.dims)
            note(f"rows {rows}: {condition.text}")
            assert set(rows) == condition.dims.union(*(array.dims for array in selected))
            true = condition.answer(rows)[0]
            mask = np.broadcast_to(true, [DIMS[d] for d in rows])
            assert len(selection) == query.count() == mask.sum()
            coordinates = selection.coords().reshape(len(selection), len(rows))
            np.testing.assert_array_equal(coordinates, np.argwhere(mask))
            low, high = query.estimate()
            assert low <= mask.sum() <= high
            table = query.to_arrow()
            for array, column in zip(selected, table.columns, strict=True):
                expected = expected_values(array, rows, mask)
                assert_identical(column.to_numpy(), expected)
                assert_identical(query.read(array.name), expected)

    law()


@pytest.mark.parametrize("file_format", ["HDF5", "NETCDF4", "NETCDF3_CLASSIC"])
def test_results_do_not_depend_on_threads_or_memory(file_format):
    @settings(PROFILE, max_examples=PROFILE.max_examples // 4)
    @given(data=st.data())
    def law(data):
        drawn = data.draw(files(file_format), label="file")
        condition = data.draw(conditions(drawn), label="condition")
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, unlimited=False)
            one = source.query(condition.text, threads=1, cross=True)
            two = source.query(condition.text, threads=2, access="scan", memory="64MiB", cross=True)
            np.testing.assert_array_equal(one.selection().coords(), two.selection().coords())

    law()


def numpy_aggregates(values):
    """Return count, sum, min, max, mean and deviation of values that are not missing."""
    count = len(values)
    if count == 0:
        return [0, None, None, None, None, None]
    wide = values.astype("f8")
    deviation = wide.std(ddof=1) if count > 1 else None
    return [count, wide.sum(), wide.min(), wide.max(), wide.mean(), deviation]


AGGREGATES = "count(v0), sum(v0), min(v0), max(v0), avg(v0), stddev(v0)"


def assert_close(got, expected, scale):
    """Compare counts and extremes exactly; sums, means and deviations to 1e-12 of the greatest magnitude."""
    assert got[0] == expected[0]
    assert got[2:4] == expected[2:4]
    for g, e in ((got[1], expected[1]), (got[4], expected[4]), (got[5], expected[5])):
        assert (g is None) == (e is None)
        if e is not None:
            assert g == pytest.approx(e, rel=1e-12, abs=1e-12 * scale)


def exact_deviation(values):
    """Return the standard deviation of numbers by fractions, its square rounded once."""
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return math.sqrt(sum((v - mean) ** 2 for v in exact) / (len(exact) - 1))


def special_numbers(dtype):
    """Return a strategy for numbers that are treated specially: edges, signed zeros, large means."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [info.min, info.min + 1, 0, 1, 7, 2**53, 2**53 + 1, info.max - 1, info.max]
        return st.sampled_from([e for e in edges if info.min <= e <= info.max])
    edges = [0.0, -0.0, 1.0, -1.5, 1.7e9, 1.7e9 + 1, 1e15, 1e15 + 1, 2.0**53, 5e-324, 1e-170, 1e160, -1e160]
    return st.sampled_from(edges)


@settings(PROFILE, max_examples=PROFILE.max_examples // 2)
@given(data=st.data())
def test_aggregates_do_not_depend_on_how_data_are_split(data):
    dtype = np.dtype(data.draw(st.sampled_from(["f8", "f4", "i8", "u8"]), label="type"))
    drawn = data.draw(st.lists(special_numbers(dtype), min_size=2, max_size=40), label="values")
    with np.errstate(over="ignore"):
        values = np.array(drawn, dtype)
    values = values[np.isfinite(values.astype("f8"))]
    assume(len(values) >= 2)
    cut = data.draw(st.integers(1, len(values) - 1), label="cut")
    columns = "stddev(v) AS a, var_pop(v) AS b, avg(v) AS c, median(v) AS d, quantile(v, 0.3) AS e"
    text = f"SELECT {columns} WHERE v IS NOT NULL"
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in ("whole.h5", "1.h5", "2.h5")]
        for path, part in zip(paths, (values, values[:cut], values[cut:]), strict=True):
            with h5py.File(path, "w") as file:
                file.create_dataset("v", data=part, chunks=(3,) if len(part) > 2 else None)
                file["v"].dims[0].label = "t"
                file["t"] = np.arange(len(part)) + (cut if path.stem == "2" else 0)
                file["t"].make_scale("t")
                file["v"].dims[0].attach_scale(file["t"])
        whole = sieva.open(paths[0]).sql(text).to_arrow().to_pylist()
        joined = sieva.open([str(p) for p in paths[1:]], join="t").sql(text).to_arrow().to_pylist()
    assert repr(joined) == repr(whole)
    with np.errstate(over="ignore"):
        try:
            expected = exact_deviation(values.tolist())
        except OverflowError:
            expected = math.inf
    assert whole[0]["a"] == pytest.approx(expected, rel=4e-16)


@given(
    values=st.lists(
        st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.0, 7.25, math.inf]), min_size=1, max_size=9
    ),
    q=st.sampled_from([0, 0.25, 0.5, 0.7, 1]),
)
@settings(PROFILE, max_examples=PROFILE.max_examples // 2)
def test_quantiles_are_numpys_or_the_limit(values, q):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "q.h5"
        with h5py.File(path, "w") as file:
            file["v"] = np.array(values)
        got = sieva.open(path).sql(f"SELECT quantile(v, {q}) AS q").to_arrow()["q"][0].as_py()
    with np.errstate(invalid="ignore"):
        expected = float(np.nanquantile(values, q))
    if not math.isnan(expected):
        assert got == expected
        return
    # numpy's interpolation met inf - inf or 0 inf: the limit is one of the neighbours, if one is finite.
    place = (len(values) - 1) * q
    low, high = sorted(values)[math.floor(place)], sorted(values)[math.ceil(place)]
    assert got == (low if low == high else None if math.isinf(low) and math.isinf(high) else low + high)


@st.composite
def tame_files(draw):
    """Draw a field whose sums neither overflow nor cancel to nothing known, and a class to group by."""
    seed = draw(st.integers(0, 2**32 - 1))
    dims = draw(st.sampled_from([("z",), ("y", "x"), ("time", "z", "y", "x")]))
    drawn = draw(arrays("v0", dims, ("f4", "f8", "i2", "i4")))
    rng = np.random.default_rng(seed)
    drawn.stored = rng.integers(-1000, 1000, drawn.stored.shape).astype(drawn.stored.dtype)
    classes = draw(arrays("k", dims[-1:], ("i2",), plain=True))
    classes.stored = rng.integers(0, 3, classes.stored.shape).astype("i2")
    return [drawn, classes]


@settings(PROFILE)
@given(drawn=tame_files(), above=st.integers(-1200, 900), file_format=st.sampled_from(["HDF5", "NETCDF4"]))
def test_aggregates_are_those_of_numpy(drawn, above, file_format):
    field = drawn[0]
    values, missing = field.decoded()
    if not field.is_packed:
        mask = ~missing & (values > above)
    else:
        mask, above = ~missing, None
    condition = "v0 IS NOT NULL" if above is None else f"v0 > {above}"
    with tempfile.TemporaryDirectory() as directory:
        source = opened(directory, file_format, drawn, unlimited=False)
        table = source.sql(f"SELECT {AGGREGATES} WHERE {condition}").to_arrow()
        got = [column.to_pylist()[0] for column in table.columns]
    assert_close(got, numpy_aggregates(values[mask]), float(np.abs(values).sum()))


@settings(PROFILE)
@given(drawn=tame_files(), file_format=st.sampled_from(["HDF5", "NETCDF4", "NETCDF3_CLASSIC"]))
def test_groups_are_those_of_numpy(drawn, file_format):
    field, classes = drawn
    values, missing = field.decoded()
    keys = np.broadcast_to(classes.stored, values.shape)
    with tempfile.TemporaryDirectory() as directory:
        source = opened(directory, file_format, drawn, unlimited=False)
        text = f"SELECT k, {AGGREGATES} WHERE v0 IS NOT NULL GROUP BY k ORDER BY k"
        rows = list(zip(*(c.to_pylist() for c in source.sql(text).to_arrow().columns), strict=True))
    present = np.unique(keys[~missing])
    assert [row[0] for row in rows] == present.tolist()
    for row in rows:
        assert_close(
            list(row[1:]), numpy_aggregates(values[~missing & (keys == row[0])]), float(np.abs(values).sum())
        )
