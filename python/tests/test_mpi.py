"""Queries on communicators of Open MPI and MPICH: one mpirun for many questions."""

import json
import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from collection_files import make_files
from engine_cases import ALL, ASKED
from services.slurm import await_that
from sieva.generate import write_ocean
from test_conformance import files  # noqa: F401

pytest.importorskip("mpi4py", reason="the extra mpi is not installed")
PROGRAM = Path(__file__).with_name("mpi_program.py")
# A run that takes longer hangs.
DEADLINE = 300
# Seconds in which a run has ended that lost a rank.
ABORT = 5


IMPLEMENTATIONS = ("openmpi", "mpich")
FIRST = next((name for name in IMPLEMENTATIONS if shutil.which(f"mpirun.{name}")), IMPLEMENTATIONS[0])
# What does not depend on the implementation is tested on one of them, unless all cases are asked for.
on_one = pytest.mark.parametrize("mpirun", IMPLEMENTATIONS if ALL else [FIRST], indirect=True)


@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def mpirun(request, tmp_path_factory):
    """Return what runs a command on so many ranks of an implementation, and its environment."""
    program = shutil.which(f"mpirun.{request.param}")
    if program is None:
        pytest.skip(f"mpirun.{request.param} is not installed: make mpi-packages")
    environ = os.environ | {"MPI4PY_MPIABI": request.param, "OMP_NUM_THREADS": "1"}
    if request.param == "openmpi":
        environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return [program, "--oversubscribe", "-n"], environ
    # Debian's MPICH has a name of its own for the library that mpi4py looks for.
    library = find_library("mpich")
    if library is None:
        pytest.skip("libmpich is not installed: make mpi-packages")
    folder = tmp_path_factory.mktemp("mpich")
    found = next(Path(place, library) for place in library_places() if Path(place, library).exists())
    (folder / "libmpi.so.12").symlink_to(found)
    environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")])
    return [program, "-n"], environ


def library_places():
    """Return the directories of the system's libraries."""
    listed = subprocess.run(
        ["/sbin/ldconfig", "-v", "-N"], capture_output=True, text=True, check=False
    ).stdout
    return [line.partition(":")[0] for line in listed.splitlines() if line.startswith("/")]


def start(mpirun, ranks, *command, check=True, cwd=PROGRAM.parent):
    command_line, environ = mpirun
    return subprocess.run(
        [*command_line, str(ranks), sys.executable, *map(str, command)],
        env=environ,
        capture_output=True,
        text=True,
        check=check,
        timeout=DEADLINE,
        cwd=cwd,
    )


def told(mpirun, ranks, *arguments):
    """Return what the program says on rank 0."""
    done = start(mpirun, ranks, PROGRAM, *arguments, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(line)


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    path = tmp_path_factory.mktemp("mpi") / "ocean.nc"
    write_ocean(path, times=6, depths=5, lats=40, lons=50)
    os.utime(path, (1_700_000_000,) * 2)
    return path


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_all_cases(ranks, files, mpirun):  # noqa: F811
    # All of them on two ranks of one implementation; else a part, as ranks without a core of their own wait
    # for one another.
    step = 1 if ALL or (ranks == 2 and mpirun[1]["MPI4PY_MPIABI"] == FIRST) else 10
    found = told(mpirun, ranks, "cases", files, step)
    assert found["asked"] == len(ASKED[::step])
    assert found["cut"] > found["asked"] * 0.8


@on_one
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_words(ranks, ocean, mpirun):
    found = told(mpirun, ranks, "words", ocean)
    hits = sieva.open(ocean).query("TEMP > 5").count()
    assert sum(found["rows"]) == hits
    assert max(found["rows"]) / (hits / ranks) <= 1.01
    # Rank 0 alone reads metadata.
    assert found["opened"][0] > 0
    assert found["opened"][1:] == [0] * (ranks - 1)
    # Each rank evaluates its part once, if there is one for it, and no part is evaluated twice.
    assert set(found["evaluations"][1:]) <= {0, 1}
    assert sum(found["evaluations"]) == min(ranks, 6)
    assert found["threads"] >= 1


def test_indexes_are_built_by_ranks(ocean, mpirun, tmp_path):
    alone = sieva.open(ocean, store=tmp_path / "alone", learn=False)
    found = told(mpirun, 3, "index", ocean, tmp_path / "store")
    assert found["regions"] == alone.build_index("TEMP", "SALT").regions_built
    assert found["counts"] == [alone.query("TEMP > 20").count()] * 3
    # The replica is one that all ranks sorted and one published.
    assert sieva.open(ocean, store=tmp_path / "store").verify_index(all=True)


@on_one
def test_objects_of_a_collection(mpirun, tmp_path):
    catalog = tmp_path / "catalog.sqlite"
    sieva.Catalog(catalog).add(*make_files(tmp_path), collection="boss")
    found = told(mpirun, 3, "collection", catalog)
    assert len(set(found["rows"])) == 1
    assert found["rows"][0] > 0


@pytest.mark.parametrize(
    "sql", ["SELECT flux WHERE flux > 12", "SELECT object, count(*) WHERE flux > 12 GROUP BY object"]
)
@on_one
def test_files_of_a_collection_are_looked_at_for_their_states_by_one_rank(sql, mpirun, tmp_path):
    catalog, paths = tmp_path / "catalog.sqlite", make_files(tmp_path, files=9)
    sieva.Catalog(catalog).add(*paths, collection="boss")
    found = told(mpirun, 3, "listed", catalog, sql.replace(" WHERE", " FROM collection('boss') WHERE"))
    alone = sieva.collection("boss", catalog=catalog).sql(sql)
    assert found["rows"] == [alone.count()] * 3
    # The query, and the one that knows its answer, are bound to an object of one file.
    first, *others = found["opened"]
    assert max(others) <= 2
    assert first >= len(paths) + max(others)


def test_an_error_of_a_rank_is_raised_on_all(ocean, mpirun, tmp_path):
    found = told(mpirun, 3, "failing", ocean, tmp_path)
    assert found["said"] == [["rank 2: the bytes of this rank", "look at them"]] * 3
    assert found["found"] == ["stale-source"] * 3
    assert all(text.startswith("rank 0: cannot open") for text in found["missing"])
    assert found["counts"] == [sieva.open(ocean).query("TEMP > 5").count()] * 3


def test_a_killed_rank_ends_the_run(ocean, mpirun, tmp_path):
    output = tmp_path / "out.parquet"
    done = start(mpirun, 3, PROGRAM, "killed", ocean, output, check=False)
    assert done.returncode != 0
    assert "written" not in done.stdout
    assert not output.exists()


def check_rest(mpirun, path, store):
    """Compare what a build left with the data; build the rest, and compare with one process."""
    left = sieva.open(path, store=store, learn=False)
    found = left.index_status()
    assert found.replicas == ()
    assert not found.arrays or found.stale or left.verify_index(all=True)
    told(mpirun, 3, "index", path, store)
    whole = sieva.open(path, store=store, learn=False)
    assert whole.verify_index(all=True)
    assert all(array.with_bitmap == array.regions for array in whole.index_status().arrays)
    assert not list(Path(store).rglob(".spill-*"))


@pytest.fixture
def many_regions(tmp_path):
    """Return a file whose arrays have some regions for each rank."""
    path = tmp_path / "many.h5"
    rng = np.random.default_rng(3)
    with h5py.File(path, "w") as file:
        for name in ("TEMP", "SALT"):
            values = rng.normal(18, 5, 400_000).astype("f4")
            values[rng.integers(0, len(values), 300)] = rng.choice([np.nan, np.inf, -np.inf, -0.0], 300)
            file[name] = values
    return path


@pytest.mark.parametrize("stage", [1, 4], ids=["regions", "sort"])
def test_a_rank_that_is_killed_in_a_build_publishes_nothing_half(many_regions, mpirun, tmp_path, stage):
    command_line, environ = mpirun
    store, mark = tmp_path / "store", tmp_path / "mark"
    program = [sys.executable, PROGRAM, "faulty", "killed", stage, many_regions, store, mark]
    command = [*command_line, "3", *map(str, program)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, cwd=PROGRAM.parent) as process:
        try:
            await_that(lambda: mark.exists() or process.poll() is not None, "a rank that is killed")
            said = process.communicate(timeout=ABORT)[0]
        finally:
            process.kill()
    assert (process.returncode != 0, b'"said"' in said) == (True, False)
    check_rest(mpirun, many_regions, store)


def test_a_full_disk_of_one_rank_is_told_on_all(many_regions, mpirun, tmp_path):
    store = tmp_path / "store"
    (first, *others) = told(mpirun, 3, "faulty", "full", 1, many_regions, store, "-")["said"]
    assert others == [first] * 2
    assert first[0] == "io-error"
    assert first[1].startswith("rank 2: ")
    assert "File too large" in first[1]
    # What the other ranks built stays.
    (array,) = sieva.open(many_regions, store=store).index_status().arrays
    assert 0 < array.with_bitmap < array.regions
    check_rest(mpirun, many_regions, store)


def test_a_source_that_is_replaced_in_a_build_is_stale_on_all(many_regions, mpirun, tmp_path):
    copy, store = many_regions, tmp_path / "store"
    (first, *others) = told(mpirun, 3, "faulty", "replaced", 1, copy, store, "-")["said"]
    assert (first[0], others) == ("stale-source", [first] * 2)
    # What other ranks built is of the file that was: it is not used.
    with h5py.File(copy) as file:
        assert sieva.open(copy, store=store).query("TEMP > 20").count() == (file["TEMP"][:] > 20).sum()
    check_rest(mpirun, copy, store)


@on_one
@pytest.mark.parametrize("kind", ["csv", "table"])
def test_command_line_prints_once(ocean, mpirun, kind):
    sql = f"SELECT z_t, count(*) AS n FROM '{ocean}' WHERE TEMP > 5 GROUP BY z_t"
    command = ["-m", "sieva", "query", sql, "--format", kind]
    alone = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True).stdout
    assert start(mpirun, 3, *command, "--engine", "mpi").stdout == alone


@on_one
def test_command_line_writes_once_and_fails_once(ocean, mpirun, tmp_path):
    sql = f"SELECT TEMP, SALT FROM '{ocean}' WHERE TEMP > 5"
    command = ["-m", "sieva", "query", "--engine", "mpi"]
    start(mpirun, 2, *command, sql, "-o", tmp_path / "a.csv")
    sieva.sql(sql).to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    done = start(mpirun, 2, *command, "SELECT x FROM '/nowhere.nc'", check=False)
    assert done.returncode != 0
    assert (done.stdout, done.stderr.count("cannot open '/nowhere.nc'")) == ("", 1)


@pytest.mark.parametrize(
    "sql", ["SELEC x", "SELECT nothing FROM '{}'", "SELECT TEMP FROM '{}' WHERE TEMP > 'a'"]
)
@on_one
def test_a_wrong_query_is_told_once(sql, ocean, mpirun):
    command = ["-m", "sieva", "query", "--engine", "mpi", sql.format(ocean)]
    done = start(mpirun, 2, *command, check=False)
    assert done.returncode != 0
    assert (done.stdout, done.stderr.count("sieva: ")) == ("", 1)


@on_one
def test_the_command_builds_indexes_by_ranks(ocean, mpirun, tmp_path):
    command = ["-m", "sieva", "index", ocean, "--var", "TEMP", "--store"]
    done = start(mpirun, 2, *command, tmp_path / "by-ranks", "--engine", "mpi")
    subprocess.run([sys.executable, *map(str, command), tmp_path / "alone"], capture_output=True, check=True)
    assert done.stderr.count("TEMP") == 1
    found = [sieva.open(ocean, store=tmp_path / store).index_status() for store in ("by-ranks", "alone")]
    assert [a.with_bitmap for a in found[0].arrays] == [a.with_bitmap for a in found[1].arrays] != [0]


@on_one
def test_a_relative_path_is_the_same_on_all_ranks(mpirun, ocean):
    sql = f"SELECT count(*) FROM '{ocean.name}' WHERE TEMP > 5"
    found = start(
        mpirun, 2, "-m", "sieva", "query", "--engine", "mpi", "--format", "csv", sql, cwd=ocean.parent
    )
    assert int(found.stdout.split()[-1]) == sieva.open(ocean).query("TEMP > 5").count()
