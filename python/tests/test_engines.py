"""Engines: parts of queries run by processes of this machine, with the answers of one."""

import json
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import sieva
from collection_files import make_files
from engine_cases import ASKED, CASES, check
from sieva import _engine_cli, errors
from sieva.engines import NAMES, Engine, LocalEngine, Work, _places, engine_of
from sieva.engines._frames import pack, unpack, unpack_values
from sieva.engines._query import EngineQuery
from sieva.generate import write_ocean
from test_conformance import files  # noqa: F401


@pytest.fixture(scope="module")
def engine():
    engine = LocalEngine(workers=2, memory=1 << 30)
    yield engine
    pids = engine.pids()
    engine.close()
    assert pids
    assert not engine.pids()


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    path = tmp_path_factory.mktemp("engines") / "ocean.nc"
    write_ocean(path, times=6, depths=5, lats=40, lons=50)
    return path


@pytest.mark.parametrize("name", ASKED)
def test_a_case_by_processes(name, files, engine):  # noqa: F811
    check(CASES[name], files, engine)


def test_most_cases_are_cut(files, engine):  # noqa: F811
    assert sum(check(CASES[name], files, engine) for name in ASKED[::7]) > len(ASKED) // 8


SQL = (
    "SELECT z_t, avg(TEMP), stddev(SALT), count(*) WHERE TEMP > 5 GROUP BY z_t HAVING count(*) > 3",
    "SELECT TEMP, SALT, z_t WHERE TEMP > 10 AND KMT > 3",
    "SELECT DISTINCT z_t WHERE TEMP > 10",
    "SELECT TEMP WHERE TEMP > 20 ORDER BY TEMP DESC LIMIT 7 OFFSET 2",
    "SELECT TEMP WHERE TEMP > 20 LIMIT 5",
    "SELECT median(TEMP), histogram(SALT, 8, 0, 40)",
    "SELECT histogram(SALT, 8) WHERE TEMP > 5",
    "SELECT max(TEMP) WHERE TEMP > 1000",
    "SELECT TEMP WHERE TEMP > 1000",
)


@pytest.mark.parametrize("sql", SQL)
def test_rows_and_groups(sql, ocean, engine):
    src = sieva.open(ocean, learn=False)
    here, there = src.sql(sql), src.sql(sql, engine=engine)
    assert isinstance(there, EngineQuery)
    assert there.count() == here.count()
    assert there.to_arrow().equals(here.to_arrow())
    assert [b.num_rows for b in there.batches(100)] == [b.num_rows for b in here.batches(100)]
    assert pa.table(there).equals(pa.table(here))
    assert there.to_arrow().schema == here.to_arrow().schema


@pytest.mark.parametrize("condition", ["TEMP > 5 AND z_t < 5000", "KMT > 3", "TEMP > 1000", None])
@pytest.mark.parametrize("name", ["TEMP", "SALT - TEMP", "KMT"])
def test_values_and_histograms(condition, name, ocean, engine):
    src = sieva.open(ocean, learn=False)
    here = src.query(condition, select=["TEMP", "KMT"])
    there = src.query(condition, select=["TEMP", "KMT"], engine=engine)
    for bins in (1, 7, 64):
        for mine, theirs in zip(there.histogram(name, bins), here.histogram(name, bins), strict=True):
            assert (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())
    assert there.selection() == here.selection()
    mine, theirs = there.read(name), here.read(name)
    assert (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())


def test_outputs_have_what_workers_found(ocean, engine, tmp_path):
    src = sieva.open(ocean, learn=False)
    here = src.query("TEMP > 15", select=["TEMP"])
    there = src.query("TEMP > 15", select=["TEMP"], engine=engine)
    assert there.to_xarray().identical(here.to_xarray())
    for name in ("a.csv", "a.parquet", "a.nc"):
        for query, folder in ((here, "here"), (there, "there")):
            (tmp_path / folder).mkdir(exist_ok=True)
            suffix = name.partition(".")[2]
            ask = {"csv": query.to_csv, "parquet": query.to_parquet, "nc": query.to_netcdf}[suffix]
            ask(tmp_path / folder / name)
    assert (tmp_path / "here/a.csv").read_bytes() == (tmp_path / "there/a.csv").read_bytes()
    assert there.stats()["evaluations"] == 0


OF_OBJECTS = (
    "SELECT object, avg(flux), count(*) WHERE plate > 4000 AND ivar > 0 GROUP BY object",
    "SELECT object, flux WHERE flux > 15 AND RADEG = 150.25",
    "SELECT object, flux WHERE flux > 15 LIMIT 4",
    "SELECT min(flux), max(ivar), sum(ivar) WHERE class = 'GALAXY'",
    "SELECT min(flux), max(ivar), sum(ivar) WHERE class = 'STAR'",
)


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Return the catalog of a collection of many small objects."""
    folder = tmp_path_factory.mktemp("objects")
    catalog = folder / "catalog.sqlite"
    sieva.Catalog(catalog).add(*make_files(folder), collection="boss")
    return catalog


@pytest.mark.parametrize("sql", OF_OBJECTS)
def test_objects_of_a_collection(sql, objects, engine):
    stars = sieva.collection("boss", catalog=str(objects))
    here, there = stars.sql(sql), stars.sql(sql, engine=engine)
    assert there.count() == here.count() > 0
    assert shown(there) == shown(here)
    in_sql = sql.replace(" WHERE", " FROM collection('boss') WHERE")
    assert shown(sieva.sql(in_sql, catalog=str(objects), engine=engine)) == shown(here)


def shown(query):
    """Return the rows as text, in which NaN equals itself."""
    return str(query.to_arrow().to_pydict())


def test_a_killed_process_costs_a_retry(ocean, engine):
    src = sieva.open(ocean, learn=False)
    assert src.query("TEMP > 5", engine=engine).count() == src.query("TEMP > 5").count()
    killed = engine.pids()[0]
    os.kill(killed, signal.SIGKILL)
    assert src.query("TEMP > 6", engine=engine).count() == src.query("TEMP > 6").count()
    assert len(engine.pids()) == 2
    assert killed not in engine.pids()


def test_an_error_of_a_worker_is_raised(ocean, engine, tmp_path):
    copy = tmp_path / "copy.nc"
    copy.write_bytes(ocean.read_bytes())
    query = sieva.open(copy, learn=False).query("TEMP > 5", select=["TEMP"], engine=engine)
    copy.unlink()
    with pytest.raises(errors.SievaError) as caught:
        query.count()
    assert caught.value.kind in {"file-not-found", "io-error", "stale-source"}
    # The engine goes on.
    assert sieva.open(ocean).query("TEMP > 5", engine=engine).count() > 0


def test_a_file_that_was_replaced_is_stale(ocean, engine, tmp_path):
    copy = tmp_path / "copy.nc"
    copy.write_bytes(ocean.read_bytes())
    query = sieva.open(copy, learn=False).query("TEMP > 5", engine=engine)
    task = query.tasks(1)[0]
    work = Work("query", bytes(task), how=json.dumps({"open": json.loads(query.source._opened.to_json())}))
    assert sieva.Partial.from_bytes(next(engine.run([work]))[1]).looked_at[0] > 0
    write_ocean(copy, times=6, depths=5, lats=40, lons=51)
    with pytest.raises(errors.StaleSource):
        list(engine.run([work]))
    # Who opens the file as it is now gets the answer of now, from workers that had the old one open.
    again = sieva.open(copy, learn=False)
    assert again.query("TEMP > 5", engine=engine).count() == again.query("TEMP > 5").count()


def test_what_a_source_was_opened_with_holds_for_workers(files, engine):  # noqa: F811
    meant = {"dims", "valid_range"}
    named = [name for name in ASKED if meant & {*CASES[name].get("options", {})}]
    assert named
    assert any(check(CASES[name], files, engine) for name in named)


def test_sources_and_queries_are_pickled_without_data(ocean, tmp_path):
    copy = tmp_path / "copy.nc"
    copy.write_bytes(ocean.read_bytes())
    src = sieva.open(copy, learn=False)
    query = src.sql("SELECT TEMP WHERE TEMP > 10 ORDER BY TEMP LIMIT 5", threads=1)
    query.count()
    data = pickle.dumps(query)
    assert len(data) < 2000
    again = pickle.loads(data)  # noqa: S301
    assert again.to_arrow().equals(query.to_arrow())
    assert (again.plan(), again.text) == (query.plan(), query.text)
    source = pickle.dumps(src)
    assert pickle.loads(source).path == str(copy)  # noqa: S301
    selection = src.query("TEMP > 10").selection()
    assert pickle.loads(pickle.dumps(selection)) == selection  # noqa: S301
    write_ocean(copy, times=6, depths=5, lats=40, lons=51)
    for stale in (data, source):
        with pytest.raises(errors.StaleSource, match="state"):
            pickle.loads(stale)  # noqa: S301


def test_parts_of_selections(ocean):
    selection = sieva.open(ocean).query("TEMP > 10").selection()
    n, coords = len(selection), selection.coords()
    first, last = selection.part(0, n // 3), selection.part(n // 3, n)
    assert np.array_equal(np.concatenate([first.coords(), last.coords()]), coords)
    assert (len(selection.part(n, n + 5)), len(selection.part(5, 2))) == (0, 0)
    linear = np.ravel_multi_index(tuple(coords.T), selection.shape)
    assert [selection.rank(int(p)) for p in linear[:50]] == list(range(50))
    assert sieva.Selection.from_bytes(bytes(selection)) == selection
    for bad in (bytes(selection)[:-1], bytes(selection) + b"x", b""):
        with pytest.raises(errors.CorruptFile):
            sieva.Selection.from_bytes(bad)


def test_positions_of_elsewhere(ocean):
    src = sieva.open(ocean)
    query = src.query("TEMP > 10", select=["TEMP"])
    there = src._native.query_of(query.tasks(1)[0]).at(query.selection().part(3, 9))
    assert there.read(None).tolist() == query.read("TEMP")[3:9].tolist()
    with pytest.raises(errors.InvalidValue, match="no selection of the rows"):
        query._native.at(src.query("KMT > 3").selection())
    with pytest.raises(errors.Unsupported, match="groups"):
        src.sql("SELECT avg(TEMP)")._native.at(query.selection())


def test_bytes_of_work():
    work = Work("query", b"\0\1", 2**64 - 1, 7, "{}")
    assert Work.from_bytes(bytes(work)) == work
    for bad in (b"", bytes(work)[:-1], bytes(work) + b"x", pack(b"[]", b""), pack(b"{", b"")):
        with pytest.raises(errors.InvalidValue):
            Work.from_bytes(bad)
    assert unpack(pack(b"", b"a"), 2) == [b"", b"a"]
    with pytest.raises(ValueError, match="pickle"):
        unpack_values(b"N" + b"\x80\x04.")


def test_regions_stay_where_they_are():
    regions = [_places.affinity_of("a.nc", (i, 0), (1, 9)) for i in range(400)]
    assert len(set(regions)) == 400
    four = _places.place(regions, ["a", "b", "c", "d"])
    assert four == _places.place(regions, ["a", "b", "c", "d"])
    assert sorted(four.count(w) for w in "abcd") == [100] * 4
    # One is lost: what others had stays with them.
    three = _places.place(regions, ["a", "b", "c"])
    moved = sum(old != new for old, new in zip(four, three, strict=True) if old != "d")
    assert moved < 60
    assert _places.place([None] * 5, ["a", "b"]).count("a") in {2, 3}
    assert _places.place([], ["a"]) == []


def test_engines_by_name_and_object(engine):
    assert tuple(NAMES) == _engine_cli.ENGINES
    assert engine_of(engine) is engine
    assert isinstance(engine, Engine)
    with pytest.raises(errors.InvalidValue, match="no engine 'hadoop'"):
        engine_of("hadoop")
    with pytest.raises(TypeError, match="engine= is one of 'local'"):
        engine_of(5)
    with pytest.raises(errors.InvalidValue, match="0 workers"):
        LocalEngine(workers=0)


def test_nothing_of_engines_is_loaded_without_need():
    script = "import sys, sieva; print([m for m in sys.modules if m.startswith('sieva.engines')])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_command_line(ocean):
    sql = f"SELECT z_t, count(*) AS n FROM '{ocean}' WHERE TEMP > 5 GROUP BY z_t"
    command = [sys.executable, "-m", "sieva", "query", sql, "--format", "csv"]
    outputs = [
        subprocess.run([*command, *more], capture_output=True, check=True).stdout
        for more in ([], ["--engine", "local", "--workers", "2"])
    ]
    assert outputs[0] == outputs[1] != b""
    wrong = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "--workers is of --engine" in wrong.stderr) == (2, True)


def test_a_query_of_a_relative_path_is_pickled_for_other_directories(ocean, tmp_path, monkeypatch):
    monkeypatch.chdir(ocean.parent)
    query = sieva.open(ocean.name).query("TEMP > 5")
    data, wanted = pickle.dumps(query), query.count()
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(data).count() == wanted  # noqa: S301
