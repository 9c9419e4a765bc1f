"""Tasks cut anywhere, run anywhere and merged in any order give what the whole query gives, bit for bit."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from draw_conditions import conditions
from draws import FORMATS
from hypothesis import given
from hypothesis import strategies as st
from sieva import Partial, Task, errors
from test_conformance import CASES, ask, check_rows, check_selection, files  # noqa: F401
from test_groups import AGGREGATES, KEYS, PROFILE, write
from test_oracle import files as drawn_files
from test_oracle import opened

ASKED = sorted(name for name, case in CASES.items() if "error" not in case)


def cut(shape, draw):
    """Boxes that have each row once: a start and a shape each."""
    boxes = [([0] * len(shape), list(shape))]
    for _ in range(draw.randrange(9)):
        start, extent = boxes.pop(draw.randrange(len(boxes)))
        axes = [axis for axis, n in enumerate(extent) if n > 1]
        if axes:
            axis = draw.choice(axes)
            at = draw.randrange(1, extent[axis])
            first, second = list(extent), list(extent)
            first[axis], second[axis] = at, extent[axis] - at
            behind = [*start[:axis], start[axis] + at, *start[axis + 1 :]]
            boxes += [(start, first), (behind, second)]
        else:
            boxes.append((start, extent))
    return boxes


def in_parts(query, draw, kind=None):
    """Answer the query by tasks that travel as bytes and are merged in some order."""
    boxes = None if draw.random() < 0.2 else cut(list(query.rows.values()), draw)
    source = query.source
    parts = []
    for task in query.tasks(draw.randrange(1, 9), kind=kind, boxes=boxes):
        sent = Task.from_bytes(bytes(task))
        assert sent == task
        parts.append(pickle.loads(pickle.dumps(source.run_task(sent, threads=draw.choice([1, 2])))))  # noqa: S301
    draw.shuffle(parts)
    while len(parts) > 1 and draw.random() < 0.7:
        one = parts.pop(draw.randrange(len(parts)))
        other = parts.pop(draw.randrange(len(parts)))
        parts.append(Partial.from_bytes(bytes(one.merge(other))))
    return query.finish(parts)


def shown(query):
    """All rows as text, which tells NaN from a number and -0.0 from 0.0."""
    return repr(query.to_arrow().to_pydict())


@pytest.mark.parametrize("name", ASKED)
def test_cases_in_parts(name, files):  # noqa: F811
    case = CASES[name]
    query = ask(case, files)
    try:
        query.tasks()
    except errors.Unsupported as error:
        assert "subquery of another" in str(error) or "histogram without" in str(error)  # noqa: PT017
        return
    found = in_parts(query, Random(name))  # noqa: S311
    if "sql" in case:
        check_rows(case, found)
    else:
        check_selection(case, found)


def test_the_parts_of_most_cases_are_asked_for(files):  # noqa: F811
    def has_tasks(case):
        try:
            return len(ask(case, files).tasks()) > 0
        except errors.Unsupported:
            return False

    assert sum(has_tasks(CASES[name]) for name in ASKED) > 400


@pytest.mark.parametrize("file_format", ["HDF5", "NETCDF4", "NETCDF3_64BIT_DATA"])
def test_selections_in_parts(file_format):
    assert file_format in FORMATS

    @PROFILE
    @given(data=st.data(), seed=st.integers(0, 2**32))
    def law(data, seed):
        drawn = data.draw(drawn_files(file_format), label="file")
        condition = data.draw(conditions(drawn), label="condition")
        with tempfile.TemporaryDirectory() as directory:
            query = opened(directory, file_format, drawn, unlimited=False).query(condition.text, cross=True)
            draw = Random(seed)  # noqa: S311
            found = in_parts(query, draw, "selection")
            assert found.selection() == query.selection()
            assert shown(found) == shown(query)
            assert found.stats()["evaluations"] == 0
            counted = in_parts(query, draw, "count")
            assert counted.count() == query.count() == found.count()
            assert counted.stats()["evaluations"] == 0

    law()


@PROFILE
@given(
    st.tuples(
        st.sampled_from(["f4", "f8", "i2", "i8", "u8"]),
        st.integers(0, 1 << 30),
        st.sampled_from(["usual", "wide", "any"]),
    ),
    st.tuples(st.sampled_from([(7, 5, 40), (40, 3, 5), (1, 1, 1), (12, 1, 17)]), st.booleans()),
    st.sampled_from(KEYS),
    st.sampled_from(["", "WHERE v > 1", "WHERE y > 0 AND t > 30", "WHERE v IS NOT NULL"]),
    st.integers(0, 2**32),
)
def test_groups_in_parts(drawn, layout, keys, where, seed):
    shape, chunks = layout
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory, "a.nc"), drawn, shape, chunks=chunks)
        with sieva.open(Path(directory, "a.nc"), learn=False) as src:
            draw = Random(seed)  # noqa: S311
            by_position, hashed, _ = keys
            for by in (by_position, hashed):
                tail = draw.choice(["", "HAVING count(v) > 1 ORDER BY 3 DESC LIMIT 5 OFFSET 1"])
                query = src.sql(f"SELECT {by}, {AGGREGATES} {where} GROUP BY {by} {tail}")
                assert shown(in_parts(query, draw)) == shown(query)
            query = src.sql(f"SELECT {AGGREGATES} {where}")
            assert shown(in_parts(query, draw)) == shown(query)
            if drawn[0] in ("f4", "f8") or drawn[2] == "usual":
                query = src.sql(f"SELECT sum(v), sum(v * v), avg(v) + 1 {where}")
                assert shown(in_parts(query, draw)) == shown(query)


@pytest.fixture
def ocean(tmp_path):
    with netCDF4.Dataset(tmp_path / "ocean.nc", "w") as file:
        for name, n in (("time", 12), ("y", 20), ("x", 30)):
            file.createDimension(name, n)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(12)
        values = np.random.default_rng(1).normal(size=(12, 20, 30)).astype("f4")
        file.createVariable("v", "f4", ("time", "y", "x"), chunksizes=(2, 10, 30), zlib=True)[:] = values
        names = file.createVariable("name", str, ("y",))
        names[:] = np.array([f"n{i % 3}" for i in range(20)], object)
    return tmp_path / "ocean.nc"


def test_parts_are_whole_chunks_and_depend_on_no_machine(ocean):
    query = sieva.open(ocean).query("v > 1")
    for n in (1, 2, 3, 5, 12, 100):
        tasks = query.tasks(n)
        assert len(tasks) == min(n, 12)
        assert all(task.start[0] % 2 == 0 and task.start[1] % 10 == 0 for task in tasks)
        assert sum(np.prod(task.shape) for task in tasks) == 7200
    few = sieva.open(ocean).query("v > 1", memory="2MiB", threads=1, access="scan").tasks(5)
    assert few == query.tasks(5)
    assert len({*few}) == 5


def test_rows_outside_of_ranges_of_positions_are_no_work(ocean):
    tasks = sieva.open(ocean).query("v > 1 AND idx(time) BETWEEN 4 AND 7").tasks(2)
    assert [(task.start[0], task.shape[0]) for task in tasks] == [(0, 6), (6, 6)]


def test_another_process_runs_them(ocean):
    script = (
        "import sys, sieva\n"
        "task = sieva.Task.from_bytes(sys.stdin.buffer.read())\n"
        "sys.stdout.buffer.write(bytes(sieva.open(task.source).run_task(task)))\n"
    )
    query = sieva.open(ocean).sql("SELECT name, max(v), stddev(v), count(DISTINCT v) GROUP BY name")
    command = [sys.executable, "-c", script]

    def elsewhere(task):
        done = subprocess.run(command, input=bytes(task), capture_output=True, check=True)
        return Partial.from_bytes(done.stdout)

    parts = [elsewhere(task) for task in query.tasks(3)]
    assert [part.kind for part in parts] == ["groups"] * 3
    assert parts[0].looked_at[1] == 7200
    assert shown(query.finish(parts)) == shown(query)


def test_what_was_found_is_not_read_again(ocean):
    query = sieva.open(ocean).sql("SELECT v WHERE v > 2 ORDER BY v DESC LIMIT 3")
    found = query.finish(map(query.source.run_task, query.tasks(4)))
    assert (found.count(), len(found.selection())) == (3, (query.selection().mask()).sum())
    assert found.stats()["evaluations"] == 0
    assert shown(found) == shown(query)


def test_another_state_of_the_file_is_refused(ocean):
    query = sieva.open(ocean).query("v > 1")
    task = query.tasks(1)[0]
    part = query.source.run_task(task)
    with h5py.File(ocean, "r+") as file:
        file["v"][0, 0, 0] = 5
    with pytest.raises(errors.StaleSource):
        query.source.run_task(task)
    with pytest.raises(errors.StaleSource, match="not in the state that the task is of"):
        sieva.open(ocean).run_task(task)
    with pytest.raises(errors.StaleSource):
        sieva.open(ocean).query("v > 1").finish([part])


def test_a_copy_with_its_time_is_the_same_source(ocean, tmp_path):
    query = sieva.open(ocean).query("v > 1")
    stat = ocean.stat()
    copy = tmp_path / "elsewhere.nc"
    copy.write_bytes(ocean.read_bytes())
    os.utime(copy, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    there = sieva.open(copy)
    found = query.finish([there.run_task(task) for task in query.tasks(3)])
    assert found.selection() == query.selection()


def test_many_files_are_one_source(tmp_path):
    for k in range(3):
        with netCDF4.Dataset(tmp_path / f"part{k}.nc", "w") as file:
            file.createDimension("time", None)
            file.createDimension("x", 5)
            file.createVariable("time", "f8", ("time",))[:] = np.arange(4) + 4 * k
            file.createVariable("v", "f8", ("time", "x"))[:] = np.arange(20).reshape(4, 5) * (k - 1)
    src = sieva.open(str(tmp_path / "part*.nc"))
    query = (
        src.sql("SELECT x, avg(v), median(v) GROUP BY x")
        if "x" in src.arrays
        else src.sql("SELECT time, avg(v), median(v) GROUP BY time")
    )
    tasks = query.tasks(3)
    assert [task.start[0] for task in tasks] == [0, 4, 8]
    again = sieva.open(str(tmp_path / "part*.nc"))
    assert shown(query.finish([again.run_task(task) for task in tasks])) == shown(query)
    os.utime(tmp_path / "part1.nc", ns=(1, 1))
    with pytest.raises(errors.StaleSource):
        sieva.open(str(tmp_path / "part*.nc")).run_task(tasks[0])


def test_many_files_in_unlike_chunks_have_one_state(tmp_path):
    """Threads open files in any order: what is told of all must not depend on which comes first."""
    for n in range(24):
        with h5py.File(tmp_path / f"{n:02}.h5", "w") as f:
            length = 7 + n % 3
            time = f.create_dataset("time", data=np.arange(length) + 100 * n)
            time.make_scale("time")
            time.attrs["units"] = "days since 2000-01-01"
            chunks = [None, (1, 4), (2, 3), (3, 4)][n % 4]
            deflate = None if chunks is None or n % 3 else "gzip"
            v = f.create_dataset("v", data=np.full((length, 4), n), chunks=chunks, compression=deflate)
            v.dims[0].attach_scale(time)
    paths = sorted(tmp_path.glob("*.h5"))
    query = sieva.open(paths).sql("SELECT sum(v), count(v) WHERE v > 3")
    want = query.to_arrow()
    for _ in range(12):
        tasks = query.tasks(3)
        source = sieva.open(paths)
        assert query.finish([source.run_task(task) for task in tasks]).to_arrow().equals(want)


def test_what_does_not_belong_together_is_refused(ocean):
    src = sieva.open(ocean)
    query = src.query("v > 1")
    tasks = query.tasks(3)
    parts = [src.run_task(task) for task in tasks]
    with pytest.raises(errors.InvalidValue, match=r"of 4800 rows of 7200|of 2400 rows of 7200"):
        query.finish(parts[:2])
    with pytest.raises(errors.InvalidValue, match="are in both partial results"):
        query.finish([*parts, parts[1]])
    with pytest.raises(errors.InvalidValue, match="of different questions"):
        parts[0].merge(src.run_task(src.query("v > 2").tasks(1)[0]))
    with pytest.raises(errors.InvalidValue, match="of different kinds"):
        parts[0].merge(src.run_task(query.tasks(3, kind="count")[1]))
    with pytest.raises(errors.InvalidValue, match="is of another query"):
        src.query("v > 2").finish(parts)
    with pytest.raises(errors.InvalidValue, match="no partial results"):
        query.finish([])
    with pytest.raises(errors.InvalidValue, match="opened in another way"):
        sieva.open(ocean, valid_range=True).run_task(tasks[0])
    with pytest.raises(errors.InvalidValue, match="does not lie in rows"):
        query.tasks(boxes=[([0, 0, 0], [13, 20, 30])])
    with pytest.raises(errors.InvalidValue, match="0 parts"):
        query.tasks(0)
    # A merge that was refused changed nothing.
    assert query.finish(parts).selection() == query.selection()


@pytest.mark.parametrize(
    ("sql", "kind", "why"),
    [
        ("SELECT histogram(v, 4)", None, "a histogram without a range"),
        ("SELECT DISTINCT name", "count", "count different rows"),
        ("SELECT count(*), name GROUP BY name", "count", "count groups"),
        ("SELECT v", "groups", "groups of a query without"),
        ("SELECT v WHERE v > (SELECT avg(v) FROM '{other}')", None, "subquery of another source"),
    ],
)
def test_what_is_not_to_be_had_in_parts(ocean, sql, kind, why):
    other = ocean.with_name("ocean2.nc")
    other.write_bytes(ocean.read_bytes())
    query = sieva.open(ocean).sql(sql.replace("{other}", str(other)))
    with pytest.raises(errors.Unsupported, match=why):
        query.tasks(kind=kind)


def test_subqueries_of_the_same_source_and_distinct(ocean):
    src = sieva.open(ocean)
    for sql in ("SELECT v WHERE v > (SELECT avg(v) + 2)", "SELECT DISTINCT name WHERE idx(y) > 4 LIMIT 2"):
        query = src.sql(sql)
        found = query.finish([src.run_task(task) for task in query.tasks(4)])
        assert (shown(found), found.count()) == (shown(query), query.count())


@pytest.mark.parametrize("kinds", [["zonemap"], ["zonemap", "bitmap"], ["sorted"]])
def test_indexes_change_no_part(ocean, kinds, tmp_path):
    src = sieva.open(ocean, store=tmp_path / "store")
    query = src.query("v > 1.5 AND v < 2.5")
    plain = [bytes(src.run_task(task)) for task in query.tasks(5)]
    src.build_index("v", kinds=kinds)
    indexed = sieva.open(ocean, store=tmp_path / "store")
    assert [bytes(indexed.run_task(task)) for task in indexed.query("v > 1.5 AND v < 2.5").tasks(5)] == plain
    counts = [indexed.run_task(task) for task in indexed.query("v > 1.5").tasks(5, kind="count")]
    assert indexed.query("v > 1.5").finish(counts).count() == src.query("v > 1.5", access="scan").count()


def test_damaged_bytes_are_refused(ocean):
    src = sieva.open(ocean)
    query = src.sql("SELECT name, avg(v), median(v) GROUP BY name")
    task = query.tasks(2)[0]
    for make, data in ((Task.from_bytes, bytes(task)), (Partial.from_bytes, bytes(src.run_task(task)))):
        for end in (0, 3, 12, 13, len(data) - 1):
            with pytest.raises(errors.InvalidValue, match="damaged"):
                make(data[:end])
        for at in range(0, len(data), max(1, len(data) // 50)):
            changed = bytearray(data)
            changed[at] ^= 1
            with pytest.raises(errors.InvalidValue, match="damaged"):
                make(bytes(changed))
    with pytest.raises(errors.InvalidValue, match="does not begin with SVPR"):
        Partial.from_bytes(bytes(task))


def test_memory_is_counted(ocean):
    src = sieva.open(ocean)
    query = src.sql("SELECT median(v)")
    part = src.run_task(query.tasks(1)[0])
    with pytest.raises(errors.MemoryLimit):
        Partial.from_bytes(bytes(part), memory=20_000)
    assert repr(part) == "<sieva.Partial groups of 7200 rows of 7200>"
    assert "groups of rows [0, 0, 0] + [12, 20, 30] of [12, 20, 30]" in repr(query.tasks(1)[0])


def test_zeros_of_both_signs_are_one_key(tmp_path):
    with h5py.File(tmp_path / "zeros.h5", "w") as file:
        file["k"] = np.array([-0.0, 1.0, 0.0, -0.0, -1.0, 0.0])
    src = sieva.open(tmp_path / "zeros.h5")
    query = src.sql("SELECT k, count(*) AS n GROUP BY k")
    assert shown(query) == "{'k': [-1.0, 0.0, 1.0], 'n': [1, 4, 1]}"
    draw = Random(5)  # noqa: S311
    for _ in range(20):
        assert shown(in_parts(query, draw)) == shown(query)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT avg(a), mean(a)",
        "SELECT var_samp(a), var(a), sum(a)",
        "SELECT std(a), stddev_pop(a)",
        "SELECT sum(a + b) AS x, sum(b + a) AS y",
        "SELECT count(*) AS n, a + b AS x, b + a AS y GROUP BY a + b, b + a",
        "SELECT b, count(*) AS n GROUP BY b HAVING min(a) < 3 AND max(b) >= 1",
        "SELECT b, count(*) AS n GROUP BY b HAVING max(b) < 3 AND max(a) >= 5",
        "SELECT b, min(a) AS m GROUP BY b HAVING max(a) > 0 AND count(a) > 0",
        "SELECT b, min(a) AS m GROUP BY b HAVING max(a) >= 9 AND min(c) >= -9 AND max(c) <= -1",
        "SELECT b, min(a) AS m GROUP BY b HAVING sum(c) < -10 AND sum(a) > 12 OR avg(c) = avg(a)",
        "SELECT b, min(a) AS m GROUP BY b HAVING max(a) > (SELECT avg(a)) AND max(c) < (SELECT max(c)) - 1",
    ],
)
def test_one_aggregate_that_is_written_in_two_ways(sql, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f["a"] = np.arange(10.0)
        f["b"] = np.arange(10) % 4
        f["c"] = -np.arange(10.0)
    source = sieva.open(path)
    query = source.sql(sql)
    assert query.to_arrow().num_rows > 0
    parts = [source.run_task(task) for task in query.tasks(3)]
    assert query.finish(parts).to_arrow().equals(query.to_arrow())


def test_different_groups_are_counted(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f["a"] = np.array([1.0, 1, 2, 2, 2, 5])
    source = sieva.open(path)
    for sql in (
        "SELECT DISTINCT a, count(*) GROUP BY a",
        "SELECT DISTINCT count(*) WHERE a > 9",
        "SELECT DISTINCT a > 1 AS b, min(a) > 0 AS c GROUP BY a > 1",
    ):
        assert source.sql(sql).count() == source.sql(sql).to_arrow().num_rows > 0


def hostile(path):
    """Write rows of which some keys are equal, NaN, infinite or zeros of both signs, in several types."""
    rng = np.random.default_rng(5)
    n = 120_000
    floats = rng.standard_normal(n).round(2)
    floats[::7], floats[1::11], floats[2::13], floats[3::17] = np.nan, -0.0, 0.0, np.inf
    floats[4::19] = -np.inf
    with h5py.File(path, "w") as file:
        file["f"] = floats
        file["big"] = floats.astype(">f4")
        file["u"] = rng.integers(0, 2**64, n, dtype=np.uint64) | np.uint64(1 << 63)
        file["packed"] = rng.integers(-100, 100, n, dtype=np.int16)
        file["packed"].attrs.update(scale_factor=0.5, add_offset=3.0, _FillValue=np.int16(-7))
        file["other"] = rng.integers(0, 9, n)
        for name in file:
            file[name].dims[0].label = "n"
    return path


@pytest.mark.parametrize(
    "condition",
    [
        "f > -0.5",
        "f >= 0 AND other < 5",
        "NOT f < 1e9",
        "f != 0.25",
        "big < 0.1",
        "u > 9300000000000000000",
        "packed > 10 OR packed < -20",
        "f > 1e300 AND f < 1e305",
    ],
)
def test_parts_by_values_of_a_replica_have_each_row_once(condition, tmp_path):
    path, store = hostile(tmp_path / "hostile.h5"), tmp_path / "store"
    plain = sieva.open(path)
    want = plain.query(condition, access="scan").selection().positions()
    key = condition.replace("NOT ", "").split()[0]
    sieva.open(path, store=store).build_index(key, kinds=["sorted"], columns=["other"])
    src = sieva.open(path, store=store)
    for n in (2, 3, 7, 50):
        for kind in ("selection", "count"):
            query = src.query(condition, access="sorted")._native
            tasks = [Task.from_bytes(bytes(task)) for task in query.shares(n, kind)]
            # Who has no replica finds the same; in any order.
            ran = [(src if i % 2 else plain).run_task(task) for i, task in enumerate(tasks)]
            found = query.finish_bytes([bytes(part) for part in reversed(ran)])
            assert found.count() == len(want)
            if kind == "selection":
                np.testing.assert_array_equal(found.selection().positions(), want)
            assert len(tasks) <= n
    assert len(want) == 0 or (len(tasks) == 1) == (kind == "count" and tasks[0].number is None)


def test_parts_by_values_are_told_apart(tmp_path):
    path, store = hostile(tmp_path / "hostile.h5"), tmp_path / "store"
    sieva.open(path, store=store).build_index("f", kinds=["sorted"], columns=["other"])
    src = sieva.open(path, store=store)
    query = src.query("f > -0.5 AND other < 5", access="sorted")
    two, three = (query._native.shares(n, "selection") for n in (2, 3))
    assert [task.number for task in three] == [(0, 3), (1, 3), (2, 3)]
    assert len({hash(task) for task in three}) == 3
    assert pickle.loads(pickle.dumps(three[1])) == three[1] != three[2]  # noqa: S301
    assert three[1].shape == [120_000]
    assert "1 of 3 by values" in repr(three[1])
    parts = [src.run_task(task) for task in three]
    with pytest.raises(errors.InvalidValue, match="are in both"):
        parts[0].merge(parts[0])
    with pytest.raises(errors.InvalidValue, match="of 2 parts of 3"):
        query.finish(parts[:2])
    for others in (two, query.tasks(2, kind="selection")):
        with pytest.raises(errors.InvalidValue, match="cut in different ways"):
            parts[0].merge(src.run_task(others[0]))
    merged = Partial.merged([bytes(part) for part in parts])
    assert merged.looked_at == (3, 3)
    want = src.query("f > -0.5 AND other < 5", access="scan").count()
    assert query.finish([merged]).count() == want
    with pytest.raises(errors.InvalidValue, match="no partial results"):
        Partial.merged([])
    damaged = bytearray(bytes(three[1]))
    for at in range(0, len(damaged), 5):
        damaged[at] ^= 1
        with pytest.raises(errors.InvalidValue, match="damaged"):
            Task.from_bytes(bytes(damaged))
        damaged[at] ^= 1
