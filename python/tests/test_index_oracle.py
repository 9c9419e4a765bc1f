"""The law of indexes: whatever way a query goes, its answer is that of numpy, bit for bit.

Small files of any format are drawn anew each time; large ones, whose arrays have several regions, are made
once and asked many conditions. Each answer is asked for by every access path and way to fetch in turn.
"""

import tempfile
from dataclasses import dataclass
from unittest import mock

import draws
import numpy as np
import pytest
import sieva
from draw_conditions import conditions
from draws import FORMATS, DrawnArray
from hypothesis import given, note, settings
from hypothesis import strategies as st
from test_oracle import PROFILE, assert_identical, expected_values, files, opened

ACCESS = ("scan", "zonemap", "bitmap", "sorted", "auto")
FETCH = ("direct", "block", "auto")
WAYS = (
    *((access, "auto") for access in ACCESS),
    ("scan", "direct"),
    ("scan", "block"),
    ("bitmap", "direct"),
    ("sorted", "block"),
)


def index_all(source, arrays, columns=None):
    """Build all kinds: zone maps and bitmaps of all arrays, replicas by some."""
    source.build_index(kinds=["zonemap", "bitmap"])
    source.build_index(*arrays, kinds=["sorted"], columns=columns)


def assert_answered(source, condition, selected, access, fetch):
    """Compare selection, count, estimate and values of one way with numpy's."""
    names = [array.name for array in selected]
    query = source.query(condition.text, select=names, access=access, fetch=fetch, cross=True)
    low, high = query.estimate()
    selection = query.selection()
    rows = tuple(selection.dims)
    mask = np.broadcast_to(condition.answer(rows)[0], selection.shape)
    hits = int(mask.sum())
    assert len(selection) == hits
    np.testing.assert_array_equal(selection.mask(), mask)
    assert low <= hits <= high
    # A count may be known without positions: a query of its own.
    assert source.query(condition.text, select=names, access=access, cross=True).count() == hits
    for array in selected:
        assert_identical(query.read(array.name), expected_values(array, rows, mask))


@pytest.mark.parametrize("file_format", FORMATS)
def test_all_ways_have_numpys_answer(file_format):
    @settings(PROFILE, max_examples=PROFILE.max_examples // 8)
    @given(data=st.data())
    def law(data):
        drawn = data.draw(files(file_format), label="file")
        asked = data.draw(st.lists(conditions(drawn), min_size=1, max_size=2), label="conditions")
        selected = data.draw(st.lists(st.sampled_from(drawn), min_size=1, unique_by=id), label="select")
        with tempfile.TemporaryDirectory() as directory:
            source = opened(directory, file_format, drawn, data.draw(st.booleans(), label="unlimited"))
            index_all(source, [array.name for array in drawn])
            for condition in asked:
                for access, fetch in WAYS:
                    note(f"{access}, {fetch}: {condition.text}")
                    assert_answered(source, condition, selected, access, fetch)
            assert source.verify_index(all=True)
            assert source.index_notes == []

    law()


@dataclass(frozen=True)
class Layout:
    """How the large arrays of a file are laid out."""

    file_format: str
    dims: dict[str, int]
    chunks: tuple[int, ...] | None
    filters: int
    kinds: tuple[str, ...]
    """Of the arrays, besides those that all files have."""


LAYOUTS = {
    "contiguous": Layout("HDF5", {"x": 200_003}, None, 0, ("i8", "u8", "f2", ">f8")),
    "chunked": Layout("HDF5", {"x": 211_000}, (30_000,), 2, ("u8", "i1", ">i4", "f8")),
    "grid": Layout("HDF5", {"y": 467, "x": 431}, (100, 90), 1, ("i8", "u2", "f8", "u1")),
    "netcdf": Layout("NETCDF4", {"time": 7, "y": 180, "x": 170}, (1, 50, 64), 2, ("u4", "i8", "u8")),
    "classic": Layout("NETCDF3_CLASSIC", {"y": 470, "x": 430}, None, 0, ("i1", "f8")),
}


def hostile(kind, shape, rng):
    """Return values of a kind over all of its range, with those that are treated specially among them."""
    dtype = np.dtype(kind).newbyteorder("=")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    values = rng.normal(2, 3, shape).astype(dtype)
    info = np.finfo(dtype)
    special = np.array(
        [np.nan, -0.0, 0.0, np.inf, -np.inf, info.smallest_subnormal, info.max, -info.tiny], dtype
    )
    return np.where(rng.random(shape) < 0.02, rng.choice(special, shape), values)


def packed(shape, rng):
    """Return int16 with a fill value, scale and offset."""
    stored = rng.integers(-3000, 3000, shape).astype("i2")
    stored[rng.random(shape) < 0.1] = -32768
    return stored, {"_FillValue": np.int16(-32768), "scale_factor": 0.01, "add_offset": 20.0}


def large_arrays(layout):
    """Return the arrays of a large file: hostile, packed, constant, sorted, patchy; and coordinates."""
    rng = np.random.default_rng(len(layout.dims) + layout.filters)
    dims, shape = tuple(layout.dims), tuple(layout.dims.values())
    size = int(np.prod(shape))
    stored, attrs = packed(shape, rng)
    patchy = np.full(shape, -99, "i4")
    patchy.ravel()[size // 3 : size // 2] = rng.integers(0, 5, size // 2 - size // 3)
    values = {
        "packed": (stored, attrs),
        "constant": (np.full(shape, 1.5, "f4"), {}),
        "sorted": (np.linspace(-5, 5, size).astype("f4").reshape(shape), {}),
        "patchy": (patchy, {"missing_value": np.int32(-99)}),
        "real": (hostile("f4", shape, rng), {"_FillValue": np.float32(1e20)}),
    }
    values |= {f"v{i}": (hostile(kind, shape, rng).astype(kind), {}) for i, kind in enumerate(layout.kinds)}
    arrays = [DrawnArray(n, dims, v, a, layout.chunks, layout.filters) for n, (v, a) in values.items()]
    coordinates = [
        DrawnArray(dim, (dim,), np.linspace(-1, 1, n).astype("f8"))
        for dim, n in layout.dims.items()
        if n < 1000
    ]
    return coordinates + arrays


@pytest.fixture(scope="module", params=LAYOUTS, ids=str)
def large(request, tmp_path_factory):
    """Give a large file with indexes of all kinds, and its arrays."""
    layout = LAYOUTS[request.param]
    with mock.patch.dict(draws.DIMS, layout.dims, clear=True):
        arrays = large_arrays(layout)
        source = opened(tmp_path_factory.mktemp("large"), layout.file_format, arrays, unlimited=False)
        names = [array.name for array in arrays if array.stored.size > 1000]
        index_all(source, names, columns=names[-2:])
        yield source, arrays
        source.drop_index()


def test_large_arrays_have_several_regions(large):
    source, arrays = large
    status = {array.path: array for array in source.index_status().arrays}
    for array in arrays:
        known = status[array.name]
        assert known.regions == known.with_zonemap == known.with_bitmap
        assert (known.regions > 1) == (array.stored.size > 1000)
    assert source.verify_index(all=True)


def test_large_arrays_have_numpys_answer(large):
    source, arrays = large

    @settings(PROFILE, max_examples=PROFILE.max_examples // 10)
    @given(data=st.data())
    def law(data):
        # Two arrays at a time: what is near their values is drawn from all of them.
        mine = data.draw(
            st.lists(st.sampled_from(arrays), min_size=1, max_size=3, unique_by=id), label="arrays"
        )
        if all(array.stored.size <= 1000 for array in mine):
            mine.append(arrays[-1])
        condition = data.draw(conditions(mine), label="condition")
        selected = data.draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=2, unique_by=id))
        for access in ACCESS:
            fetch = data.draw(st.sampled_from(FETCH), label="fetch")
            note(f"{access}, {fetch}: {condition.text}")
            try:
                assert_answered(source, condition, selected, access, fetch)
            except sieva.errors.NoIndex:
                # Only coordinates are in the condition, which have no replicas.
                assert access == "sorted"

    law()


def test_aggregates_do_not_depend_on_the_way(large):
    source, arrays = large

    @settings(PROFILE, max_examples=PROFILE.max_examples // 12)
    @given(data=st.data())
    def law(data):
        mine = data.draw(st.lists(st.sampled_from(arrays[-5:]), min_size=1, max_size=2, unique_by=id))
        condition = data.draw(conditions(mine), label="condition")
        name = mine[0].name
        columns = ", ".join(f"{f}({name})" for f in ("count", "min", "max", "avg", "stddev"))
        text = f"SELECT count(*), {columns} WHERE {condition.text}"
        expected = source.sql(text, access="scan").to_arrow().to_pylist()
        for access in ACCESS[1:]:
            note(f"{access}: {text}")
            try:
                assert repr(source.sql(text, access=access).to_arrow().to_pylist()) == repr(expected)
            except sieva.errors.NoIndex:
                assert access == "sorted"

    law()


def test_histograms_count_what_numpy_counts(large):
    source, arrays = large
    for array in arrays:
        values, missing = array.decoded()
        present = (
            values[~missing].astype("f8") if array.is_packed or values.dtype.kind == "f" else values[~missing]
        )
        found = source.histogram(array.name)
        infinite = np.isinf(present) if present.dtype.kind == "f" else np.zeros(present.shape, bool)
        assert found.missing == missing.sum()
        assert found.rows == values.size
        assert found.infinities == ((present == -np.inf).sum(), (present == np.inf).sum())
        assert found.counts.sum() == (~infinite).sum()
        if present.size:
            assert found.range == (present.min(), present.max())
        if array.is_packed or np.abs(present[~infinite]).max(initial=0) < 2**53:
            assert_bins(found, present[~infinite])


def assert_bins(found, values):
    """Count by the edges again: a bin holds its lower edge and not its upper one."""
    counts, edges = found
    if found.range[0] != found.range[1]:
        assert (np.diff(edges) > 0).all()
        at = np.searchsorted(edges, values, side="right") - 1
        np.testing.assert_array_equal(np.bincount(at, minlength=len(counts)), counts)
