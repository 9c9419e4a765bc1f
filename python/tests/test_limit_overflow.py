"""LIMIT wants no row behind its last one: what cannot be represented there is no error."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors
from sieva.engines import LocalEngine

if TYPE_CHECKING:
    from pathlib import Path

TOP = np.iinfo("i8").max
#: Rows before the first whose `big + 1` cannot be represented.
SOUND = 70_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> sieva.Source:
    """Return numbers of which one fails, in chunks that tiles are cut along."""
    path = tmp_path_factory.mktemp("limit") / "numbers.h5"
    big, few = np.arange(100_000) % 1000, np.arange(100_000) // 9_000
    big[SOUND] = TOP
    with h5py.File(path, "w") as f:
        for name, values in (("big", big), ("few", few)):
            f.create_dataset(name, data=values.astype(">i8"), chunks=(4096,))
            f[name].dims[0].label = "x"
        scale = f.create_dataset("x", data=np.arange(100_000))
        scale.make_scale("x")
        for name in ("big", "few"):
            f[name].dims[0].attach_scale(scale)
    return sieva.open(path)


def rows(query: Any) -> list[int]:
    return query.to_arrow()[0].to_pylist()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("sql", "want"),
    [
        # The values of the result fail, and the condition.
        ("SELECT DISTINCT big + 1 LIMIT 1000", list(range(1, 1001))),
        ("SELECT DISTINCT big + 1 LIMIT 10 OFFSET 990", list(range(991, 1001))),
        ("SELECT DISTINCT few WHERE big + 1 > 0 LIMIT 8", list(range(8))),
        ("SELECT DISTINCT few WHERE big + 1 > 0 LIMIT 3 OFFSET 5", [5, 6, 7]),
        ("SELECT DISTINCT few + 0 * (big + 1) LIMIT 8", list(range(8))),
        ("SELECT DISTINCT few WHERE big + 1 > 0 LIMIT 0", []),
        ("SELECT DISTINCT few, big + 1 ORDER BY x LIMIT 5", [0] * 5),
        ("SELECT few WHERE big + 1 > 0 LIMIT 0 OFFSET 80000", []),
        ("SELECT few WHERE big + 1 > 0 LIMIT 70000", [i // 9_000 for i in range(SOUND)]),
    ],
)
def test_rows_that_are_wanted_come(source: sieva.Source, sql: str, want: list[int], threads: int) -> None:
    if "ORDER BY" in sql:
        sql = sql.replace("ORDER BY x", "ORDER BY few")
    assert rows(source.sql(sql, threads=threads)) == want
    assert source.sql(sql, threads=threads).count() == len(want)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT big + 1 LIMIT 1001",
        "SELECT DISTINCT big + 1",
        "SELECT DISTINCT few WHERE big + 1 > 0 LIMIT 9",
        "SELECT DISTINCT few WHERE big + 1 > 0",
        "SELECT few WHERE big + 1 > 0 LIMIT 70001",
    ],
)
def test_an_error_is_told_where_the_answer_depends_on_it(source: sieva.Source, sql: str) -> None:
    for ask in (rows, lambda q: q.count()):
        with pytest.raises(errors.Overflow, match="out of the range"):
            ask(source.sql(sql))


def test_files_of_distinct_rows(source: sieva.Source, tmp_path: Path) -> None:
    source.sql("SELECT DISTINCT few WHERE big + 1 > 0 LIMIT 8").to_hdf5(tmp_path / "few.h5", "columns")
    with h5py.File(tmp_path / "few.h5") as f:
        assert f["few"][:].tolist() == list(range(8))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> sieva.Collection:
    """Return five objects of ten numbers each; in the third one the fourth fails."""
    folder = tmp_path_factory.mktemp("collection")
    for n in range(5):
        with h5py.File(folder / f"s{n}.h5", "w") as f:
            group = f.create_group("g")
            big = np.arange(10) + 10 * n
            if n == 2:
                big[3] = TOP
            group.create_dataset("big", data=big)
            group.create_dataset("large", data=np.arange(10, dtype="u8") + np.uint64(10 * n))
            group.attrs["key"] = np.int64(3 * n)
            if n > 2:
                group.attrs["site"] = f"at {n}"
    catalog = str(folder / "catalog.sqlite")
    with sieva.Catalog(catalog) as known:
        known.add(*sorted(folder.glob("*.h5")), collection="all")
    return sieva.collection("all", catalog=catalog)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("select", ["big + 1", "big WHERE big + 1 > 0"])
def test_a_collection_gives_what_its_limit_wants(
    collection: sieva.Collection, select: str, threads: int
) -> None:
    more = 0 if "WHERE" in select else 1
    for limit, offset in ((5, 0), (20, 0), (23, 0), (3, 20), (0, 40)):
        query = collection.sql(f"SELECT {select} LIMIT {limit} OFFSET {offset}", threads=threads)
        assert rows(query) == [i + more for i in range(offset, offset + limit)]
        assert query.count() == limit
    query = collection.sql(f"SELECT {select} LIMIT 24", threads=threads)
    with pytest.raises(errors.Overflow, match="out of the range"):
        rows(query)


def test_integer_keys_have_a_type_beside_unsigned_numbers(collection: sieva.Collection) -> None:
    table = collection.sql("SELECT large - key, coalesce(large, key) + key, large + 1, key").to_arrow()
    assert [str(f.type) for f in table.schema] == ["int64", "int64", "uint64", "int64"]
    large = [i + 10 * n for n in range(5) for i in range(10)]
    keys = [3 * n for n in range(5) for _ in range(10)]
    assert table[0].to_pylist() == [x - k for x, k in zip(large, keys, strict=True)]
    assert table[1].to_pylist() == [x + k for x, k in zip(large, keys, strict=True)]
    assert table[2].to_pylist() == [x + 1 for x in large]
    groups = collection.sql("SELECT key, sum(large - key) WHERE large >= key GROUP BY key").to_arrow()
    wanted = {k: sum(x - k for x, of in zip(large, keys, strict=True) if of == k) for k in keys}
    assert dict(zip(groups[0].to_pylist(), groups[1].to_pylist(), strict=True)) == wanted
    # The least is 0 - 0, and 10 - 3.
    assert rows(collection.sql("SELECT min(large - key - 20)")) == [-20]


def test_a_key_that_no_object_of_a_query_has_is_of_the_type_of_others(collection: sieva.Collection) -> None:
    table = collection.sql("SELECT object, site WHERE key <= 3 AND large < 12").to_arrow()
    assert str(table.schema[1].type) == "string"
    assert table[1].to_pylist() == [None] * 12
    assert rows(collection.sql("SELECT count(*) WHERE key <= 3 AND (site = 'at 4' OR large < 5)")) == [5]
    assert collection.sql("SELECT site, big WHERE key < -5").to_arrow().schema[0].type == "string"


def by_tasks(query: Any, kind: str | None = None) -> Any:
    """Answer a query by tasks that travel, as do the things that they find."""
    parts = [query.source.run_task(type(t).from_bytes(bytes(t))) for t in query.tasks(4, kind=kind)]
    parts = [type(part).from_bytes(bytes(part)) for part in parts]
    first, *others = parts[::-1]
    for other in others:
        first = first.merge(other)
    return query.finish([type(first).from_bytes(bytes(first))])


SOUND_SQL = (
    "SELECT few WHERE big + 1 > 0 LIMIT 10 OFFSET 6",
    "SELECT DISTINCT few WHERE big + 1 > 0 LIMIT 8",
)
UNSOUND_SQL = (
    "SELECT few WHERE big + 1 > 0 LIMIT 70001",
    "SELECT few WHERE big + 1 > 0 ORDER BY few LIMIT 10",
    "SELECT count(*) WHERE big + 1 > 0 LIMIT 10",
    "SELECT few WHERE big + 1 > 0",
)


@pytest.mark.parametrize("sql", SOUND_SQL)
def test_tasks_give_what_the_rows_are(source: sieva.Source, sql: str) -> None:
    query = source.sql(sql)
    want = rows(source.sql(sql))
    found = by_tasks(query)
    assert rows(found) == want
    assert found.count() == len(want)
    if "DISTINCT" not in sql:
        assert by_tasks(query, "count").count() == len(want)
    with closing(LocalEngine(workers=1)) as engine:
        there = source.by(engine).sql(sql)
        assert rows(there) == want
        assert there.count() == len(want)


@pytest.mark.parametrize("sql", UNSOUND_SQL)
def test_tasks_tell_what_the_answer_depends_on(source: sieva.Source, sql: str) -> None:
    with pytest.raises(errors.Overflow, match="out of the range"):
        rows(by_tasks(source.sql(sql)))


def test_positions_are_those_without_limit(source: sieva.Source) -> None:
    sound = source.sql("SELECT few WHERE few >= 0 LIMIT 10")
    assert (len(sound.selection()), len(sound.read("few")), sound.count()) == (100_000, 100_000, 10)
    query = source.sql("SELECT few WHERE big + 1 > 0 LIMIT 10")
    for ask in (query.selection, lambda: query.read("few"), lambda: by_tasks(query).selection()):
        with pytest.raises(errors.Overflow, match="out of the range"):
            ask()
    assert rows(query) == [0] * 10


def test_tasks_of_a_collection_give_what_the_rows_are(collection: sieva.Collection) -> None:
    for limit, offset in ((5, 0), (20, 0), (23, 0), (3, 20), (0, 40)):
        query = collection.sql(f"SELECT big WHERE big + 1 > 0 LIMIT {limit} OFFSET {offset}")
        found = by_tasks(query)
        assert rows(found) == list(range(offset, offset + limit))
        assert found.count() == by_tasks(query, "count").count() == limit
    query = collection.sql("SELECT big WHERE big + 1 > 0 LIMIT 24")
    with pytest.raises(errors.Overflow, match="out of the range"):
        rows(by_tasks(query))
