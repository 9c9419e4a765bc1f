"""Tasks of a collection, cut anywhere and merged in any order, give what the whole query gives."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pytest
import sieva
from hypothesis import given, settings
from hypothesis import strategies as st
from sieva import CollectionPartial, CollectionTask, errors

SPECIAL = [np.nan, -0.0, 0.0, np.inf, -np.inf, -999.0, 5e-324, 1e300, -1e300]


def make_file(path: Path, objects: int, first: int) -> None:
    """Write objects of drawn lengths: special floats, big-endian packed numbers, unsigned ids."""
    rng = np.random.default_rng(first)
    with h5py.File(path, "w") as f:
        for n in range(first, first + objects):
            group, length = f.create_group(f"g{n}"), int(rng.integers(0, 60))
            flux = rng.normal(0, 1e3, length)
            special = rng.random(length) < 0.2
            flux[special] = rng.choice(SPECIAL, np.count_nonzero(special))
            group["flux"] = flux.astype(">f8" if n % 2 else "<f8")
            group["flux"].attrs["_FillValue"] = group["flux"].dtype.type(-999)
            if n % 5 != 3:
                group["id"] = rng.integers(0, 2**64, length, dtype=np.uint64)
            group["packed"] = rng.integers(-9, 9, length).astype(">i2")
            group["packed"].attrs["scale_factor"] = 0.1
            group.attrs["plate"] = n // 3
            if n % 4:
                group.attrs["band"] = "ugr"[n % 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    paths, first = [], 0
    for number, objects in enumerate((1, 9, 2, 14, 3)):
        paths.append(folder / f"run{number}.h5")
        make_file(paths[-1], objects, first)
        first += objects
    with sieva.Catalog(str(folder / "catalog.sqlite")) as known:
        known.add(*paths, collection="runs")
    return folder


def collection_of(folder: Path, **options: Any) -> sieva.Collection:
    return sieva.collection("runs", catalog=str(folder / "catalog.sqlite"), **options)


def rows(query: Any) -> str:
    """All rows as text, which tells NaN from a number and -0.0 from 0.0."""
    table = query.to_arrow()
    return repr((str(table.schema), table.to_pydict()))


def cut(objects: int, draw: Random) -> list[tuple[int, int]]:
    """Ranges that have each object once, some of them empty."""
    ends = sorted(draw.randrange(objects + 1) for _ in range(draw.randrange(9)))
    return [(a, b - a) for a, b in zip([0, *ends], [*ends, objects], strict=True)]


def merged(parts: list[CollectionPartial], draw: Random) -> list[CollectionPartial]:
    draw.shuffle(parts)
    while len(parts) > 1 and draw.random() < 0.7:
        one = parts.pop(draw.randrange(len(parts)))
        other = parts.pop(draw.randrange(len(parts)))
        parts.append(CollectionPartial.from_bytes(bytes(one.merge(other))))
    return parts


def in_parts(query: Any, draw: Random, kind: Any = None) -> Any:
    """Answer the query by tasks that travel as bytes and are merged in some order."""
    objects = None if draw.random() < 0.3 else cut(query.stats()["objects"], draw)
    parts = []
    for task in query.tasks(draw.randrange(1, 9), kind=kind, objects=objects):
        sent = CollectionTask.from_bytes(bytes(task))
        assert sent == task
        found = query.source.run_task(sent, threads=draw.choice([1, 2]))
        parts.append(pickle.loads(pickle.dumps(found)))  # noqa: S301
    return query.finish(merged(parts, draw))


WHERE = st.sampled_from(
    [
        "",
        "WHERE flux > 0",
        "WHERE flux > plate AND plate < 8",
        "WHERE packed < 0.5 OR flux IS NULL",
        "WHERE id > 9223372036854775807 AND flux = flux",
        "WHERE band = 'g' AND NOT flux <= 100",
        "WHERE plate = 1000 AND flux > 1",
        "WHERE coalesce(band, 'x') = 'x' AND packed >= 0",
        "WHERE flux > 1e30",
    ]
)
SORTED = (
    "SELECT packed, plate, count(flux), variance(flux) {where} GROUP BY 1, 2 HAVING count(*) > 1 "
    "ORDER BY plate DESC, packed LIMIT 7 OFFSET 2"
)
GROUPS = st.sampled_from(
    [
        "SELECT object, count(flux), avg(flux), sum(packed) {where} GROUP BY object",
        "SELECT band, count(*), sum(flux), stddev(flux), min(flux), max(flux) {where} GROUP BY band",
        "SELECT count(*), avg(flux), median(packed), count(DISTINCT packed) {where}",
        SORTED,
        "SELECT floor(plate / 2), quantile(flux, 0.3), histogram(packed, 4, -1, 1) {where} GROUP BY 1",
        "SELECT source, max(id), count(id) {where} GROUP BY source",
    ]
)
ROWS = st.sampled_from(
    [
        "SELECT object, source, flux {where}",
        "SELECT band, plate + 1, id, packed {where}",
        "SELECT flux, raw(packed) {where} LIMIT 20 OFFSET 3",
    ]
)


@settings(max_examples=40, deadline=None)
@given(query=GROUPS, where=WHERE, seed=st.integers(0, 2**32))
def test_groups_in_parts(folder: Path, query: str, where: str, seed: int) -> None:
    whole = collection_of(folder).sql(query.format(where=where))
    found = in_parts(whole, Random(seed))  # noqa: S311
    assert rows(found) == rows(whole)
    assert found.count() == whole.count()
    told, of_whole = found.stats(), whole.stats()
    assert [told[k] for k in ("evaluated", "lacking")] == [of_whole[k] for k in ("evaluated", "lacking")]
    # What the tasks read, nobody read again.
    assert told["sources_opened"] == 0


@settings(max_examples=40, deadline=None)
@given(query=ROWS, where=WHERE, seed=st.integers(0, 2**32))
def test_rows_in_parts(folder: Path, query: str, where: str, seed: int) -> None:
    whole, draw = collection_of(folder).sql(query.format(where=where)), Random(seed)  # noqa: S311
    found = in_parts(whole, draw)
    assert found.count() == whole.count()
    assert found.stats()["sources_opened"] == 0
    assert rows(found) == rows(whole)
    counted = in_parts(whole, draw, "count")
    assert counted.count() == whole.count()
    assert counted.stats()["sources_opened"] == 0
    assert rows(counted) == rows(whole)


def test_parts_are_whole_files_where_these_are_small(folder: Path) -> None:
    query = collection_of(folder).sql("SELECT object, count(flux) GROUP BY object")
    for n in (1, 2, 3, 8, 100):
        tasks = query.tasks(n)
        assert len(tasks) <= n
        numbers = [range(t.objects[0], sum(t.objects)) for t in tasks]
        assert [i for r in numbers for i in r] == list(range(29)), n
        assert all(t.object_count == 29 and t.kind == "groups" for t in tasks)
    (one,) = query.tasks(1)
    assert [Path(s).name for s in one.sources] == [f"run{n}.h5" for n in range(5)]
    assert one.plan == query.plan()
    # Two parts: a file is larger than neither.
    opened = [set(t.sources) for t in query.tasks(2)]
    assert len(opened[0] & opened[1]) <= 1
    assert repr(one) == "<sieva.CollectionTask groups of objects 0 to below 29 of 29, in 5 sources>"


def test_another_process_runs_them(folder: Path) -> None:
    query = collection_of(folder).sql("SELECT band, avg(flux), max(id) WHERE packed > 0 GROUP BY band")
    code = (
        "import sys, sieva\n"
        "task = sieva.CollectionTask.from_bytes(sys.stdin.buffer.read())\n"
        "found = sieva.collection('runs', catalog=sys.argv[1]).run_task(task)\n"
        "sys.stdout.buffer.write(bytes(found))\n"
    )
    command = [sys.executable, "-c", code, str(folder / "catalog.sqlite")]
    parts = []
    for task in query.tasks(3):
        done = subprocess.run(command, input=bytes(task), capture_output=True, check=True)
        parts.append(CollectionPartial.from_bytes(done.stdout))
    assert rows(query.finish(reversed(parts))) == rows(query)


def test_parts_that_do_not_make_a_whole_are_refused(folder: Path) -> None:
    stars = collection_of(folder)
    query = stars.sql("SELECT band, sum(flux) GROUP BY band")
    one, other = [stars.run_task(t) for t in query.tasks(objects=[(0, 12), (12, 17)])]
    assert one.looked_at == (12, 29)
    assert repr(other) == "<sieva.CollectionPartial groups of 17 objects of 29>"
    with pytest.raises(errors.InvalidValue, match="is of 12 objects of 29"):
        query.finish(one)
    with pytest.raises(errors.InvalidValue, match="the objects 0 to 11 are in both"):
        one.merge(one)
    with pytest.raises(errors.InvalidValue, match="no partial results"):
        query.finish([])
    another = stars.sql("SELECT band, sum(flux), count(*) GROUP BY band")
    with pytest.raises(errors.InvalidValue, match="is of another query"):
        another.finish(one.merge(other))
    with pytest.raises(errors.InvalidValue, match="of different questions"):
        one.merge(stars.run_task(another.tasks()[0]))
    with pytest.raises(errors.InvalidValue, match="objects 20 to below 30 of 29"):
        query.tasks(objects=[(20, 10)])
    with pytest.raises(errors.InvalidValue, match="work in 0 parts"):
        query.tasks(0)
    with pytest.raises(errors.Unsupported, match="count groups"):
        query.tasks(2, kind="count")
    with pytest.raises(errors.Unsupported, match="histogram without a range"):
        stars.sql("SELECT count(*), sum(flux) GROUP BY band").source.sql("SELECT histogram(flux, 3)").tasks()


def test_a_collection_opened_otherwise_is_refused(folder: Path) -> None:
    (task,) = collection_of(folder).sql("SELECT sum(flux)").tasks()
    with pytest.raises(errors.InvalidValue, match="opened in another way"):
        collection_of(folder, valid_range=True).run_task(task)


def test_changed_files_and_catalogs_are_noticed(tmp_path: Path) -> None:
    make_file(tmp_path / "a.h5", 4, 0)
    make_file(tmp_path / "b.h5", 4, 4)
    catalog = str(tmp_path / "catalog.sqlite")
    with sieva.Catalog(catalog) as known:
        known.add(tmp_path / "a.h5", tmp_path / "b.h5", collection="runs")
    query = collection_of(tmp_path).sql("SELECT object, flux WHERE flux > 0")
    tasks = query.tasks(objects=[(0, 4), (4, 4)])
    parts = [collection_of(tmp_path).run_task(t) for t in tasks]
    make_file(tmp_path / "b.h5", 4, 8)
    os.utime(tmp_path / "b.h5", (1, 1))
    again = collection_of(tmp_path)
    again.run_task(tasks[0])
    with pytest.raises(errors.StaleSource, match=r"b\.h5' is not in the state that the task is of"):
        again.run_task(tasks[1])
    with pytest.raises(errors.StaleSource, match=r"b\.h5"):
        query.finish(parts).to_arrow()
    with sieva.Catalog(catalog) as known:
        known.add(tmp_path / "b.h5", collection="runs")
    with pytest.raises(errors.StaleSource, match="the catalog tells of other objects"):
        again.sql("SELECT object, flux WHERE flux > 0").finish(parts)


def test_damaged_bytes_are_refused(folder: Path) -> None:
    stars = collection_of(folder)
    for text in ("SELECT object, sum(flux) GROUP BY object", "SELECT flux WHERE flux > 0"):
        (task,) = stars.sql(text).tasks()
        for kind, data in ((CollectionTask, bytes(task)), (CollectionPartial, bytes(stars.run_task(task)))):
            assert bytes(kind.from_bytes(data)) == data
            draw = Random(len(data))  # noqa: S311
            for _ in range(60):
                at = draw.randrange(len(data))
                hurt = bytes([*data[:at], data[at] ^ (1 << draw.randrange(8)), *data[at + 1 :]])
                with pytest.raises(errors.InvalidValue):
                    kind.from_bytes(hurt)
                with pytest.raises(errors.InvalidValue):
                    kind.from_bytes(data[:at])
        with pytest.raises(errors.InvalidValue, match="does not begin with SVCP"):
            CollectionPartial.from_bytes(bytes(task))


def test_what_is_merged_has_a_limit(folder: Path) -> None:
    stars = collection_of(folder)
    query = stars.sql("SELECT packed, flux, sum(flux) GROUP BY packed, flux")
    data = bytes(stars.run_task(query.tasks()[0]))
    with pytest.raises(errors.MemoryLimit):
        CollectionPartial.from_bytes(data, memory=4096)
    assert rows(query.finish(CollectionPartial.from_bytes(data, memory=1 << 24))) == rows(query)


ODD = (
    # The plan in its one form has AND and OR in an order of its own: keys are met in another.
    "SELECT flux WHERE (plate <= 3 AND flux > 1) OR ra > 9",
    "SELECT flux WHERE (plate <= 30 AND flux > 5) OR ra > 0.1",
    # What folds is no condition of the data any more.
    "SELECT flux WHERE flux IN ()",
    "SELECT flux WHERE plate <= 30 AND flux IN ()",
    "SELECT flux WHERE plate IS NOT NULL OR flux IN ()",
    # Two names of one aggregate, and two ways to write its argument.
    "SELECT avg(flux), mean(flux)",
    "SELECT object, sum(flux + x) AS a, sum(x + flux) AS b, std(x) + stddev_pop(x) AS c GROUP BY object",
    # Parts of HAVING, and keys.
    "SELECT object, count(flux) AS n GROUP BY object HAVING min(x) < 1000 AND max(flux) > 1",
    "SELECT object, count(flux) AS n GROUP BY object HAVING max(x) > 7 AND max(flux) < 7",
    "SELECT count(*) AS n, flux + x AS a, x + flux AS b GROUP BY flux + x, x + flux",
    # Conditions that fold to a constant: as many are left to the catalog as before, but others.
    "SELECT object, x WHERE plate >= 0 AND plate < 9 AND flux IN ()",
    "SELECT object, x WHERE plate IN (0, 3) AND plate <= 5 AND flux IN ()",
    "SELECT object, x WHERE plate >= 0 AND NOT (flux = 1 OR flux NOT IN ())",
    "SELECT object, x WHERE plate >= 0 AND plate < 9 AND flux > nan",
    "SELECT count(if(plate <= 1, x, flux)) AS n WHERE plate >= 0 AND flux IN ()",
    "SELECT object, x WHERE 9 > plate AND NOT plate < 0 AND flux NOT IN ()",
    "SELECT object, x WHERE NOT (plate IN (4) OR plate > 5) AND NOT flux <= 1",
)


@pytest.mark.parametrize("sql", ODD)
def test_plans_of_another_form_have_the_same_answers(tmp_path: Path, sql: str) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"f{number}.h5", "w") as f:
            for name in ("o0", "o1"):
                group = f.create_group(f"{name}_{number}")
                group["flux"] = np.arange(3, dtype="i4")
                group["x"] = np.arange(3, dtype="i4") * 4 + number
                group.attrs["ra"] = 1.5
                if name == "o0":
                    group.attrs["plate"] = 3
    with sieva.Catalog(str(tmp_path / "catalog.sqlite")) as known:
        known.add(*sorted(tmp_path.glob("*.h5")), collection="runs")
    query = collection_of(tmp_path).sql(sql)
    parts = [collection_of(tmp_path).run_task(task) for task in query.tasks(2)]
    found = query.finish(parts)
    whole = query.to_arrow()
    assert found.to_arrow().to_pylist() == whole.to_pylist()
    assert found.count() == query.count() == whole.num_rows


def test_keys_keep_their_type_where_no_object_is_left(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for n in range(4):
            group = f.create_group(f"o{n}")
            group["flux"] = np.arange(3.0)
            group.attrs["plate"] = n
            group.attrs["name"] = "star"
            group.attrs["mixed"] = "text" if n == 0 else n
    with sieva.Catalog(str(tmp_path / "catalog.sqlite")) as known:
        known.add(tmp_path / "a.h5", collection="runs")
    collection = collection_of(tmp_path)
    query = collection.sql("SELECT name, plate, flux WHERE plate > 99")
    assert [str(t) for t in query.to_arrow().schema.types] == ["string", "int64", "double"]
    for sql in (
        "SELECT name, plate, flux WHERE plate > 99",
        "SELECT length(name) AS n, flux WHERE plate > 99 AND name LIKE 'st%'",
        "SELECT count(*) AS n WHERE plate > 99 AND flux > length(name)",
        "SELECT mixed, flux WHERE plate > 99",
        "SELECT mixed, flux WHERE plate > 0",
    ):
        query = collection.sql(sql)
        tasks = [CollectionTask.from_bytes(bytes(task)) for task in query.tasks(2)]
        found = query.finish([collection.run_task(task) for task in tasks]).to_arrow()
        assert found.equals(query.to_arrow()), sql
