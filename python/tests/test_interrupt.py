"""Ctrl-C, SIGTERM and SIGHUP: within a second, and without partial files."""

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import h5py
import numpy as np
import pytest
import sieva


@pytest.fixture(autouse=True)
def interrupts():
    """Let SIGINT interrupt, here and in commands started here: a background job begins with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def big_path(tmp_path_factory):
    """Return a file whose rows take seconds to write as text."""
    path = tmp_path_factory.mktemp("big") / "big.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(20_000_000, dtype="f4")
    return path


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.parquet", "out.nc", "out.zarr"])
def test_a_stopped_command_leaves_nothing(big_path, tmp_path, name, sent):
    sql = f"SELECT x, x * 2 AS y, sqrt(x) AS z FROM '{big_path}' WHERE x >= 0"
    command = [sys.executable, "-m", "sieva", "query", sql, "-o", tmp_path / name, "--layout", "points"]
    if name.endswith((".csv", ".json", ".parquet")):
        command = command[:-2]
    # Who runs the tests may have it ignored, and a command leaves ignored what is.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    for _ in range(500):
        if list(tmp_path.iterdir()) or process.poll() is not None:
            break
        time.sleep(0.01)
    time.sleep(0.2)
    assert process.poll() is None, process.stderr.read()
    assert not (tmp_path / name).exists()
    process.send_signal(sent)
    _, told = process.communicate(timeout=10)
    assert process.returncode == 128 + sent
    assert told == ("sieva: interrupted\n" if sent == signal.SIGINT else "")
    assert list(tmp_path.iterdir()) == []


def test_a_query_is_interrupted_and_can_be_asked_again(big_path):
    query = sieva.open(big_path).query("sin(x) * cos(x) * sqrt(x) > 0.5 AND exp(sin(x)) < 2")
    timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        query.count()
    timer.join()
    x = np.arange(20_000_000, dtype="f4").astype("f8")
    assert query.count() == ((np.sin(x) * np.cos(x) * np.sqrt(x) > 0.5) & (np.exp(np.sin(x)) < 2)).sum()


def test_a_wait_for_a_catalog_is_interrupted(tmp_path):
    path = tmp_path / "c.sqlite"
    with sieva.Catalog(path) as catalog:
        catalog.add(tmp_path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        command = [sys.executable, "-m", "sieva", "catalog", "collection", "c", "--add", str(tmp_path)]
        process = subprocess.Popen(
            [*command, "--catalog", path], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        time.sleep(3)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        # A writer waits for 30 s.
        _, told = process.communicate(timeout=20)
    assert process.returncode == 130, told
    assert told == "sieva: interrupted\n"
