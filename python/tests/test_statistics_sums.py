"""Sums and means of whole regions come from statistics: without a byte of data, and to the last bit."""

import math
import re
import struct
from fractions import Fraction

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from sieva import errors
from test_cli import run
from test_index_oracle import hostile

N = 300_007
KINDS = ("f4", ">f4", "f8", ">f8", "f2", "i1", "i2", ">i4", "i8", "u1", "u2", "u4", "u8")
AGGREGATES = ("count(*)", "count(v)", "min(v)", "max(v)", "sum(v)", "avg(v)")


def exact_sum(values):
    """Return the sum of numbers, rounded once; integers as they are."""
    if values.dtype.kind in "iu":
        return sum(values.ravel().tolist())
    wide = values.astype("f8").ravel()
    if not np.isfinite(wide).all():
        infinite = {x for x in wide.tolist() if math.isinf(x)}
        return math.nan if len(infinite) > 1 else infinite.pop()
    least = 1 << 1074
    total = sum(n * (least // d) for n, d in (x.as_integer_ratio() for x in wide.tolist()))
    try:
        return float(Fraction(total, least))
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def bits(value):
    """Return what tells a value from others: the bits of a float, NaN as one."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("d", value)
    return value


def ask(source, sql, access="auto"):
    """Return the bits of the answer, or the error, with the counters."""
    query = source.sql(sql, access=access)
    try:
        table = query.to_arrow()
        found = [[bits(x) for x in column.to_pylist()] for column in table.columns]
    except errors.Overflow as error:
        found = str(error)
    return found, query.stats()


def unread(stats):
    """Whether not one byte of the source was read."""
    return stats["bytes_read"] == stats["chunks_decoded"] == stats["tiles_scanned"] == 0


def opened(path, name):
    """Return a source of which the fingerprint was taken, which reads some blocks of it once."""
    source = sieva.open(path)
    source.sql(f"SELECT min({name})").to_arrow()
    return source


def packed(kind, rng):
    """Return stored values with the attributes of three packings."""
    stored = rng.integers(-120 if kind == "i1" else -3000, 120 if kind == "i1" else 3000, N).astype(kind)
    stored[rng.random(N) < 0.1] = -100
    fill = {"_FillValue": stored.dtype.type(-100)}
    return stored, [
        {**fill, "scale_factor": 0.01, "add_offset": 20.0},
        {**fill, "scale_factor": -3.7e-5, "add_offset": 1e9},
        {"scale_factor": np.float32(0.1)},
    ]


def decoded(stored, attributes):
    """Return the values that are there, as CF has them."""
    there = stored
    if "_FillValue" in attributes:
        there = stored[stored != attributes["_FillValue"]]
    if "scale_factor" in attributes:
        return there.astype("f8") * float(attributes["scale_factor"]) + attributes.get("add_offset", -0.0)
    return there[~np.isnan(there)] if there.dtype.kind == "f" else there


def arrays():
    """Return hostile arrays of all types, plain, with fill values, and packed."""
    rng = np.random.default_rng(13)
    found = {}
    for kind in KINDS:
        name = kind.replace(">", "b")
        values = hostile(kind, N, rng)
        found[name] = (values.astype(kind), {})
        fill = values.dtype.type(99)
        with_fill = np.where(rng.random(N) < 0.2, fill, values).astype(kind)
        found[f"{name}_fill"] = (with_fill, {"_FillValue": fill})
        small = rng.integers(0, 100, N).astype(kind)
        found[f"{name}_small"] = (small, {})
    for kind in ("i1", "i2"):
        stored, packings = packed(kind, rng)
        for i, attributes in enumerate(packings):
            found[f"{kind}_packed{i}"] = (stored, attributes)
    patchy = rng.normal(280, 10, N).astype("f4")
    patchy[70_000:210_000] = np.nan
    found["patchy"] = (patchy, {})
    found["zeros"] = (np.where(rng.random(N) < 0.5, -0.0, 0.0), {})
    found["negative_zeros"] = (np.full(N, -0.0, "f4"), {})
    found["nothing"] = (np.full(N, np.nan), {})
    found["huge"] = (np.where(rng.random(N) < 0.5, 1.7e308, -1.6e308), {})
    return found


@pytest.fixture(scope="module", params=[None, (30_000,)], ids=["contiguous", "chunked"])
def hostile_source(request, tmp_path_factory):
    """Return a source indexed by `sieva index`, and its arrays."""
    folder = tmp_path_factory.mktemp("sums")
    all_arrays = arrays()
    with h5py.File(folder / "hostile.h5", "w") as file:
        for name, (values, attributes) in all_arrays.items():
            made = file.create_dataset(name, data=values, chunks=request.param)
            made.attrs.update(attributes)
        file["grow"] = np.arange(N, dtype="i4")
    run("index", "hostile.h5", "--kind", "zonemap", cwd=folder)
    return opened(folder / "hostile.h5", "f4"), all_arrays


def test_whole_arrays_are_summed_without_reading(hostile_source):
    source, all_arrays = hostile_source
    for name, (stored, attributes) in all_arrays.items():
        values = decoded(stored.astype(stored.dtype.newbyteorder("=")), attributes)
        n, total = len(values), exact_sum(values)
        for aggregate, want in [
            ("count(v)", n),
            ("avg(v)", float(total) / n if n else None),
            ("sum(v)", total if n else None),
        ]:
            sql = f"SELECT {aggregate.replace('v)', f'{name})')}"
            found, stats = ask(source, sql)
            assert unread(stats), (sql, stats)
            if isinstance(want, int) and not -(2**63) <= want < (2**64 if "u8" in name else 2**63):
                assert f"the sum {want} does not fit" in found
            elif isinstance(want, float) and math.isnan(want):
                assert found == [[None]]
            else:
                assert found == [[bits(want)]], sql
            assert found == ask(source, sql, "scan")[0], sql
        for aggregate in ("min", "max"):
            sql = f"SELECT {aggregate}({name})"
            found, stats = ask(source, sql)
            assert found == ask(source, sql, "scan")[0], sql
            assert "packed" in name or unread(stats), sql
    assert source.verify_index(all=True)


def test_stored_values_of_packed_data_have_sums_too(hostile_source):
    source, all_arrays = hostile_source
    for name in ("i2_packed0", "i1_packed2", "f4_fill"):
        found, stats = ask(source, f"SELECT sum(raw({name})), count(raw({name}))")
        stored = all_arrays[name][0]
        stored = stored[~np.isnan(stored)] if stored.dtype.kind == "f" else stored
        if name == "i1_packed2":
            assert unread(stats)
            assert found == [[exact_sum(stored)], [len(stored)]]
        else:
            # What was left out as missing counts as raw values, and only the data tell it.
            total = exact_sum(stored)
            assert found == [[None if math.isnan(total) else bits(total)], [len(stored)]]


def test_parts_of_regions_are_read_and_the_rest_is_not(hostile_source):
    source, all_arrays = hostile_source
    for name in all_arrays:
        what = ", ".join(a.replace("v)", f"{name})") for a in AGGREGATES)
        for condition in ("grow >= 1000", "grow < 262144", "grow >= 131072", "grow > 290000 OR grow < 65536"):
            sql = f"SELECT {what} WHERE {condition}"
            assert ask(source, sql)[0] == ask(source, sql, "scan")[0], sql
    found, stats = ask(
        source, "SELECT sum(f8_small), avg(i2_packed0), count(*) WHERE grow >= 0 AND grow < 1000000"
    )
    assert unread(stats)
    assert found == ask(source, "SELECT sum(f8_small), avg(i2_packed0), count(*)", "scan")[0]
    _, stats = ask(source, "SELECT sum(f8_small) WHERE grow < 290000")
    assert 0 < stats["tiles_scanned"] < 3
    plan = source.sql("SELECT avg(f8_small)").explain()
    assert re.search(r"aggregates by statistics, without data: (\d) of \1 tiles", plan)
    assert "by statistics" not in source.sql("SELECT stddev(f8_small)").explain()


def test_the_counters_of_the_command_line_show_that_nothing_is_read(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["v"] = np.random.default_rng(1).normal(280, 10, 500_000).astype("f4")
    run("index", "data.h5", cwd=tmp_path)
    sql = "SELECT count(v), min(v), max(v), sum(v), avg(v) FROM 'data.h5' WHERE v > -1000"
    done = run("query", sql, "--stats", cwd=tmp_path)
    with h5py.File(tmp_path / "data.h5") as file:
        values = file["v"][:]
    assert repr(exact_sum(values)) in done.stdout
    assert "0 scanned" in done.stderr


def test_a_changed_source_is_not_answered_by_old_sums(tmp_path):
    rng = np.random.default_rng(5)
    path = tmp_path / "data.h5"
    first = rng.integers(-3000, 3000, 200_000).astype("i2")
    with h5py.File(path, "w") as file:
        made = file.create_dataset("v", data=first, chunks=(70_000,), maxshape=(None,))
        made.attrs.update({"scale_factor": 0.5, "add_offset": 10.0})

    def check(values, scale, is_unread):
        source = opened(path, "v")
        found, stats = ask(source, "SELECT sum(v), avg(v)")
        total = exact_sum(values * scale + 10.0)
        assert found == [[bits(total)], [bits(total / len(values))]]
        assert unread(stats) == is_unread
        source.close()

    sieva.open(path).build_index()
    check(first, 0.5, True)
    with h5py.File(path, "r+") as file:
        file["v"].attrs["scale_factor"] = 0.25
    check(first, 0.25, False)
    # The same stored values are decoded otherwise now.
    sieva.open(path).build_index()
    check(first, 0.25, True)
    with h5py.File(path, "r+") as file:
        file["v"].resize((260_000,))
        file["v"][199_990:] = 7
        second = file["v"][:]
    check(second, 0.25, False)
    assert sieva.open(path).build_index().regions_renewed > 0
    check(second, 0.25, True)
    assert sieva.open(path).verify_index(all=True)


def write_piece(path, start, scale, rng):
    """Write days of a packed array, and return its decoded values."""
    stored = rng.integers(-3000, 3000, (4, 260, 270)).astype("i2")
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", None), ("y", 260), ("x", 270)):
            file.createDimension(name, length)
        time = file.createVariable("time", "i4", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = np.arange(start, start + 4)
        made = file.createVariable("v", "i2", ("time", "y", "x"), chunksizes=(1, 260, 270))
        made.set_auto_maskandscale(False)
        if scale is not None:
            made.scale_factor, made.add_offset = scale, 1.0
        made[:] = stored
    return stored if scale is None else stored * scale + 1.0


@pytest.mark.parametrize("scales", [(0.5, 0.5, 0.5), (0.5, 0.25, 0.5), (None, None, None)])
def test_joined_files_use_the_sums_of_their_own_packing(tmp_path, scales):
    rng = np.random.default_rng(8)
    paths = [tmp_path / f"{i}.nc" for i in range(3)]
    values = [
        write_piece(path, 4 * i, scale, rng)
        for i, (path, scale) in enumerate(zip(paths, scales, strict=True))
    ]
    every = np.concatenate(values)
    total = exact_sum(every)
    want = [[bits(total)], [bits(float(total) / every.size)]]
    for known in ((), (1,), (0, 1, 2)):
        for i in known:
            sieva.open(paths[i]).build_index()
        source = sieva.open(paths)
        assert ask(source, "SELECT sum(v), avg(v)")[0] == want
        by_day, stats = ask(source, "SELECT time, avg(v), sum(v) GROUP BY time")
        assert by_day == ask(source, "SELECT time, avg(v), sum(v) GROUP BY time", "scan")[0]
        if len(known) == 3 and len(set(scales)) == 1:
            assert unread(ask(source, "SELECT sum(v), avg(v)")[1])
            assert stats["tiles_scanned"] == 0
        source.close()


def test_what_statistics_tell_is_not_in_the_price(hostile_source):
    source, _ = hostile_source
    known = source.sql("SELECT sum(f4_small), avg(f4_small), count(f4_small)").price()
    assert known.bytes_read.expected == known.requests.expected == 0
    scanned = source.sql("SELECT stddev(f4_small)").price()
    assert scanned.bytes_read.expected >= 4 * N
