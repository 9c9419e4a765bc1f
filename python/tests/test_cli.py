"""The command line: what goes to stdout, to stderr, and the exit code."""

import json
import os
import subprocess
import sys

import netCDF4
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sieva


def run(*args, cwd=None, env=None):
    command = [sys.executable, "-m", "sieva", *map(str, args)]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, check=False, timeout=60
    )


@pytest.fixture(scope="module")
def folder(ocean_path):
    return ocean_path.parent


SQL = "SELECT TEMP, z_t FROM 'ocean.nc' WHERE TEMP > 5 AND z_t < 5000"


def test_query_prints_a_table(folder):
    done = run("query", "SELECT count(*) FROM 'ocean.nc' WHERE TEMP > 5", cwd=folder)
    count = sieva.open(folder / "ocean.nc").query("TEMP > 5").count()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].strip() == str(count)


def test_query_prints_all_rows_to_a_pipe(folder):
    done = run("query", SQL, cwd=folder)
    count = sieva.open(folder / "ocean.nc").query("TEMP > 5 AND z_t < 5000").count()
    assert len(done.stdout.splitlines()) == count + 2 > 100


def test_query_prints_json_alone(folder):
    done = run("query", SQL, "--format", "json", "--stats", cwd=folder)
    answer = json.loads(done.stdout)
    assert answer["columns"] == ["TEMP", "z_t"]
    assert answer["stats"]["hits"] == len(answer["rows"])
    for word in ("hits", "tiles", "bytes", "requests", "seconds"):
        assert word in done.stderr


@pytest.mark.parametrize(
    "suffix", [".csv", ".json", ".arrow", ".feather", ".parquet", ".nc", ".h5", ".hdf5", ".zarr"]
)
def test_the_suffix_picks_the_format(folder, tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    done = run("query", SQL, "-o", path, "--memory", "64MiB", "--threads", "1", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == [path]
    count = sieva.open(folder / "ocean.nc").query("TEMP > 5 AND z_t < 5000").count()
    if suffix == ".parquet":
        assert pq.read_table(path).num_rows == count
    elif suffix in (".arrow", ".feather"):
        assert pa.ipc.open_file(path).read_all().num_rows == count
    elif suffix == ".nc":
        with netCDF4.Dataset(path) as file:
            assert np.ma.count(file["TEMP"][:]) == count


def test_layout_and_format_can_be_told(folder, tmp_path):
    done = run(
        "query", SQL, "-o", tmp_path / "out.data", "--format", "netcdf", "--layout", "points", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    with netCDF4.Dataset(tmp_path / "out.data") as file:
        assert set(file["TEMP"].dimensions) == {"obs"}


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["query"], "give a query, or a file of them by -f"),
        (["query", SQL, "--nothing"], "No such option '--nothing'"),
        (
            ["query", SQL, "-o", "out.xyz"],
            ".txt .csv .json .arrow .feather .parquet .nc .cdf .h5 .hdf5 .zarr",
        ),
        (["query", SQL, "--memory", "lots"], "'lots' is no size"),
        (["query", SQL, "--dims", "TEMP"], "array=name,name"),
        (["query", SQL, "--format", "netcdf"], "cannot be written to stdout"),
        (["query", SQL, "--layout", "grid"], "--layout is for"),
        (["query", SQL, "--access", "magic"], "is not one of"),
        (["query", SQL, "--threads", "0"], "not in the range"),
        (["nothing"], "No such command 'nothing'"),
    ],
)
def test_wrong_usage_is_two(folder, args, text):
    done = run(*args, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first.startswith("sieva: ")
    assert text in first
    assert second.startswith("hint: sieva")


@pytest.mark.parametrize(
    ("sql", "text", "hint"),
    [
        ("SELECT TMEP FROM 'ocean.nc'", "no array or dimension 'TMEP'", "did you mean 'TEMP'"),
        ("SELECT TEMP FROM 'nothing.nc'", "nothing.nc", None),
        ("SELECT TEMP FROM 'ocean.nc' WHERE TEMP >", "syntax error at line 1", None),
        ("SELECT TEMP WHERE TEMP > 5", "the query has no FROM", "write SELECT"),
    ],
)
def test_failures_are_one_without_traceback(folder, sql, text, hint):
    done = run("query", sql, cwd=folder, env={"SIEVA_DEBUG": ""})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sieva: ")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    if hint:
        assert f"hint: {hint}" in done.stderr


def test_debugging_shows_the_traceback(folder):
    done = run("query", "SELECT TMEP FROM 'ocean.nc'", cwd=folder, env={"SIEVA_DEBUG": "1"})
    assert "Traceback" in done.stderr


def test_a_closed_pipe_is_quiet(folder):
    command = f'{sys.executable} -m sieva query "{SQL}" | head -n 1'
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, cwd=folder, check=True, timeout=60
    )
    assert done.stdout.split() == ["TEMP", "z_t"]
    assert done.stderr == ""


def test_arrow_goes_to_a_pipe(folder):
    command = [sys.executable, "-m", "sieva", "query", SQL, "--format", "arrow"]
    done = subprocess.run(command, capture_output=True, cwd=folder, check=True, timeout=60)
    assert pa.ipc.open_stream(done.stdout).read_all().column_names == ["TEMP", "z_t"]


def test_schema_for_people_and_programs(folder):
    assert "Logical layout" in run("schema", "ocean.nc", cwd=folder).stdout
    data = json.loads(run("schema", "ocean.nc", "--json", cwd=folder).stdout)
    assert set(data) == {"source", "physical", "logical", "values"}
    assert len(data["logical"]["coordinates"]["TLAT"]) in (12, 192)


def test_dims_are_named(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["a/x"], file["b/y"] = np.arange(4), np.arange(4) * 10
    sql = f"SELECT x, y FROM '{tmp_path / 'f.h5'}' WHERE x > 1"
    together = run("query", sql, "--dims", "a/x=n", "--dims", "b/y=n", "--format", "csv")
    assert together.stdout.splitlines() == ["x,y", "2,20", "3,30"]


def test_explain(folder):
    assert "TEMP" in run("explain", SQL, cwd=folder).stdout
    assert "estimate" in json.loads(run("explain", SQL, "--json", "--analyze", cwd=folder).stdout)


def test_doctor(folder):
    done = run("doctor", cwd=folder)
    assert done.returncode == 0
    for word in ("sieva", "threads", "filters", "xarray", "memory", sieva.__version__):
        assert word in done.stdout


def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    for command in ("schema", "query", "explain", "demo", "doctor"):
        assert command in done.stdout


def test_demo_answers_and_keeps_its_files(tmp_path):
    first = run("demo", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout.count("same answer") == 4
    assert max(len(line) for line in first.stdout.splitlines()) <= 80
    assert "\x1b" not in first.stdout
    # Beside them may be what scans left.
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "demo").iterdir() if p.suffix != ".sieva"}
    assert {p.name for p in files} == {"ocean.nc", "particles.h5"}
    assert run("demo", cwd=tmp_path).returncode == 0
    assert files == {p: p.stat().st_mtime_ns for p in files}
