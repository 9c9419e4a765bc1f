"""``sieva index`` and ``sieva calibrate``: what goes where, exit codes, and being stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from sieva.generate import write_ocean
from test_cli import run

SQL = "SELECT count(*) FROM 'ocean.nc' WHERE TEMP > 20.5"


@pytest.fixture
def folder(tmp_path):
    """Return a directory with an ocean that has no indexes."""
    write_ocean(tmp_path / "ocean.nc", times=2, depths=5, lats=120, lons=160)
    return tmp_path


def test_building_tells_in_one_line_what_was_done(folder):
    done = run("index", "ocean.nc", "--var", "TEMP", "--var", "SALT", "--jobs", "2", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    (line,) = done.stderr.splitlines()
    size = r"[\d.]+ (B|KiB|MiB) \([\d.]+ %\)"
    assert re.fullmatch(
        rf"TEMP, SALT: 8 regions, 1\.5 MiB read, zone maps {size}, bitmaps {size} in \d\.\d s", line
    )
    assert (folder / "ocean.nc.sieva").is_dir()
    again = run("index", "ocean.nc", "--var", "TEMP", "--kind", "zonemap", cwd=folder)
    assert again.stderr.startswith("TEMP: 4 regions there already, zone maps ")
    assert "\x1b" not in done.stderr + again.stderr


def test_building_all_of_a_file(folder):
    done = run("index", "ocean.nc", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("7 arrays: 13 regions, ")


def test_sorted_replicas(folder):
    done = run(
        "index", "ocean.nc", "--var", "TEMP", "--kind", "sorted", "--columns", "SALT, TEMP", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("TEMP: sorted ")
    status = json.loads(run("index", "ocean.nc", "--status", "--json", cwd=folder).stdout)
    assert [(r["key"], r["columns"]) for r in status["replicas"]] == [("TEMP", ["TEMP", "SALT"])]
    dropped = run("index", "ocean.nc", "--drop", "--kind", "sorted", "--var", "TEMP", cwd=folder)
    assert (dropped.returncode, dropped.stderr) == (0, "ocean.nc: removed\n")
    again = run("index", "ocean.nc", "--drop", "--kind", "sorted", cwd=folder)
    assert (again.returncode, again.stderr) == (0, "ocean.nc: there was nothing to remove\n")


def test_status(folder):
    before = run("index", "ocean.nc", "--status", cwd=folder)
    assert (before.returncode, before.stdout) == (0, "store  ocean.nc.sieva (there is none)\n")
    run("index", "ocean.nc", cwd=folder)
    after = run("index", "ocean.nc", "--status", cwd=folder)
    assert after.stdout == f"{sieva_status(folder)}\n"
    lines = after.stdout.splitlines()
    assert any(line.startswith("TEMP ") for line in lines)
    status = json.loads(run("index", "ocean.nc", "--status", "--json", cwd=folder).stdout)
    assert set(status) == {"store", "exists", "stale", "arrays", "replicas", "notes"}
    assert set(status["arrays"][0]) == {
        "path", "regions", "region", "region_bytes", "with_zonemap", "with_bitmap", "zonemap_bytes",
        "bitmap_bytes", "data_bytes",
    }  # fmt: skip


def sieva_status(folder):
    text = repr(sieva.open(folder / "ocean.nc").index_status())
    return text.replace(f"{folder}/", "")


def test_verify_tells_what_differs(folder):
    missing = run("index", "ocean.nc", "--verify", cwd=folder)
    assert missing.returncode == 1
    assert "no index" in missing.stderr
    run("index", "ocean.nc", cwd=folder)
    for options in ((), ("--all",)):
        good = run("index", "ocean.nc", "--verify", *options, cwd=folder)
        assert (good.returncode, good.stderr) == (0, "")
        assert (
            good.stdout == "13 regions and 0 rows of replicas compared with the data: all as it should be\n"
        )
    for segment in (folder / "ocean.nc.sieva").glob("*.seg"):
        damaged = bytearray(segment.read_bytes())
        damaged[64:-32] = bytes(b ^ 255 for b in damaged[64:-32])
        segment.write_bytes(damaged)
    bad = run("index", "ocean.nc", "--verify", cwd=folder)
    assert bad.returncode == 1
    assert len(bad.stdout.splitlines()) > 1
    answers = [run("query", SQL, "--access", access, cwd=folder).stdout for access in ("auto", "scan")]
    assert answers[0] == answers[1] != ""


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["index"], "Missing argument 'SOURCE'"),
        (["index", "ocean.nc", "--kind", "magic"], "is not one of"),
        (["index", "ocean.nc", "--kind", "sorted"], "--kind sorted needs --var"),
        (["index", "ocean.nc", "--columns", "SALT"], "--columns is for --kind sorted"),
        (["index", "ocean.nc", "--jobs", "0"], "not in the range"),
        (["index", "ocean.nc", "--precision", "0"], "not in the range"),
        (["index", "ocean.nc", "--status", "--drop"], "--status and --drop do not go together"),
        (["index", "ocean.nc", "--json"], "--json is for --status"),
        (["index", "ocean.nc", "--all"], "--all is for --verify"),
        (["index", "ocean.nc", "--status", "--var", "TEMP"], "--var does not go with --status"),
        (["index", "ocean.nc", "--verify", "--kind", "bitmap"], "--kind does not go with --verify"),
        (["index", "ocean.nc", "--drop", "--jobs", "2"], "--jobs does not go with --drop"),
        (["calibrate"], "Missing argument 'PATH'"),
        (["query", SQL, "--fetch", "magic"], "is not one of"),
    ],
)
def test_wrong_usage_is_two(folder, args, text):
    done = run(*args, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("sieva: ")
    assert text in first
    assert second.startswith("hint: sieva")
    assert [path.name for path in folder.iterdir()] == ["ocean.nc"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["index", "nothing.nc"], "nothing.nc"),
        (["index", "ocean.nc", "--var", "TMEP"], "no array or dimension 'TMEP'"),
        (["index", "ocean.nc", "--drop", "--kind", "bitmap"], "cannot be dropped alone"),
        (["query", SQL, "--access", "bitmap"], "needs an index"),
    ],
)
def test_failures_are_one(folder, args, text):
    done = run(*args, cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_stores_of_a_directory(folder):
    stores = folder / "stores"
    assert run("index", "ocean.nc", "--store", stores, cwd=folder).returncode == 0
    assert run("query", SQL, "--access", "bitmap", cwd=folder).returncode == 1
    assert run("query", SQL, "--access", "bitmap", "--store", stores, cwd=folder).returncode == 0
    environment = {"SIEVA_STORE": str(stores)}
    assert run("query", SQL, "--access", "bitmap", cwd=folder, env=environment).returncode == 0
    assert not (folder / "ocean.nc.sieva").exists()
    dropped = run("index", "ocean.nc", "--drop", cwd=folder, env=environment)
    assert dropped.stderr == "ocean.nc: removed\n"


def test_stats_tell_the_ways(folder):
    run("index", "ocean.nc", cwd=folder)
    done = run("query", SQL, "--access", "bitmap", "--fetch", "block", "--stats", cwd=folder)
    assert re.search(
        r"^conditions +[1-4] by bitmap, \d+ by single elements, \d+ by scan; 0 rows", done.stderr, re.M
    )
    assert re.search(r"^indexes +\d+ bytes in \d+ requests", done.stderr, re.M)


def test_explain_tells_what_is_not_used(folder):
    run("index", "ocean.nc", cwd=folder)
    os.utime(folder / "ocean.nc", ns=(1, 1))
    done = run("explain", SQL, cwd=folder)
    assert "made for another state of the file" in done.stdout
    assert "stale" in run("index", "ocean.nc", "--status", cwd=folder).stdout
    assert "(13 unchanged)" in run("index", "ocean.nc", cwd=folder).stderr


def test_calibrate(folder):
    done = run("calibrate", "ocean.nc", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["cost", "nanoseconds", "observations"]
    assert "chunked.byte_ns" in done.stdout
    kept = Path(done.stderr.removeprefix("kept in ").strip())
    assert (folder / kept).is_file()


def test_doctor_tells_where_indexes_go(folder):
    beside = run("doctor", cwd=folder, env={"SIEVA_STORE": "", "SIEVA_LEARN": "1"}).stdout
    assert "beside each file" in beside
    assert "leave zone maps" in beside
    given = run("doctor", cwd=folder, env={"SIEVA_STORE": str(folder / "s"), "SIEVA_LEARN": "0"}).stdout
    assert f"in {folder / 's'} (SIEVA_STORE)" in given
    assert "cannot be written" not in given
    assert "leave nothing (SIEVA_LEARN=0)" in given
    blocked = run("doctor", cwd=folder, env={"SIEVA_STORE": str(folder / "ocean.nc" / "s")}).stdout
    assert "cannot be written" in blocked


@pytest.fixture(scope="module")
def long_path(tmp_path_factory):
    """Return a file whose chunks take a while to index."""
    path = tmp_path_factory.mktemp("long") / "long.h5"
    values = np.random.default_rng(0).normal(0, 1, 500_000)
    with h5py.File(path, "w") as file:
        data = file.create_dataset(
            "t", (32, 500_000), "f8", chunks=(1, 500_000), compression="gzip", shuffle=True
        )
        for i in range(32):
            data[i] = values + i
    return path


def interrupted(path):
    """Interrupt a build once it has begun; returns its exit code and what it said."""
    command = [sys.executable, "-m", "sieva", "index", path, "--jobs", "1"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    while child.poll() is None and not list(Path(f"{path}.sieva").glob("*.seg")):
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=20)
    return child.returncode, told


def test_ctrl_c_keeps_what_was_done(long_path):
    for _ in range(10):  # one that was done before the signal came proves nothing
        code, told = interrupted(long_path)
        if code != 0:
            break
        sieva.open(long_path).drop_index()
    assert code == 130
    first, last = told.splitlines()
    assert re.fullmatch(
        rf"{long_path}: what was done is kept, .* so far; the same command goes on from there", first
    )
    assert last == "sieva: interrupted"
    done = run("index", long_path)
    assert done.returncode == 0, done.stderr
    source = sieva.open(long_path)
    (array,) = source.index_status().arrays
    assert array.with_bitmap == array.regions == 32
    counts = {source.query("t > 20.5", access=access).count() for access in ("scan", "bitmap")}
    assert len(counts) == 1
    source.drop_index()


def test_queries_learn_unless_told_not_to(long_path, tmp_path):
    sql = f"SELECT count(*) FROM '{long_path}' WHERE t > 20.5"
    store = tmp_path / "store"
    runs = [run("query", sql, "--store", store, "--no-learn")]
    assert not store.exists()
    # How much they leave is a matter of time: their answers are not.
    runs += [run("query", sql, "--store", store) for _ in range(3)]
    assert {(done.stdout, done.returncode) for done in runs} == {(runs[0].stdout, 0)}
