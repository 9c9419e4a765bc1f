"""Catalogs on network file systems: a rollback journal, no log ahead, and nothing that was told is lost."""

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import h5py
import numpy as np
import pytest
import sieva

WRITER = """
import sys, sieva
from sieva import _native
source, n, lasts = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "lasts"
done = 0
while lasts or done < n:
    sieva.open(source).query(f"x > 0.{done % 9 + 1}").count()
    if _native.flush_usage(60):
        done += 1
        print(done, flush=True)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a directory that counts as one on a network file system, with a source."""
    monkeypatch.setenv("SIEVA_NETWORK_FS", "1")
    monkeypatch.setenv("SIEVA_CATALOG", str(tmp_path / "catalog.sqlite"))
    monkeypatch.delenv("SIEVA_LEARN", raising=False)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.random.default_rng(1).random(1000)
    return tmp_path


def mode(path):
    """Return how a file is changed, by its header: 2 ahead of it, 1 with a rollback journal."""
    return path.read_bytes()[18]


def writer(place, n, how="ends"):
    command = [sys.executable, "-c", WRITER, str(place / "a.h5"), str(n), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


class Watch:
    """Looks for files beside a catalog until it is left."""

    def __init__(self, place):
        self.place, self.seen, self.over = place, set(), threading.Event()
        self.thread = threading.Thread(target=self._look)

    def _look(self):
        while not self.over.is_set():
            self.seen.update(one.name for one in self.place.iterdir() if one.name.startswith("catalog"))
            self.over.wait(0.0005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_several_writers_some_of_them_killed_lose_nothing(place):
    with sieva.Catalog():
        pass
    with Watch(place) as watch:
        steady = [writer(place, 15) for _ in range(2)]
        killed = [writer(place, 0, "lasts") for _ in range(2)]
        told = 0
        for process in killed:
            for _ in range(5):
                assert process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            # What it said before it was killed it had written.
            told += 5 + len(process.stdout.read().split())
            process.stdout.close()
            process.wait()
        for process in steady:
            out, _ = process.communicate(timeout=300)
            assert process.returncode == 0
            told += len(out.split())
    assert watch.seen <= {"catalog.sqlite", "catalog.sqlite-journal"}
    assert mode(place / "catalog.sqlite") == 1
    with sieva.Catalog(read_only=True) as catalog:
        assert catalog.find("") == []
    with closing(sqlite3.connect(place / "catalog.sqlite")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (kept,) = db.execute("SELECT count(*) FROM usage").fetchone()
    # One more of each that was killed may have been written before it could say so.
    assert 40 <= told <= kept <= told + 2


def test_a_catalog_that_was_written_ahead_is_brought_over_and_stays_so(place, monkeypatch):
    path = place / "catalog.sqlite"
    monkeypatch.setenv("SIEVA_NETWORK_FS", "0")
    with sieva.Catalog() as catalog:
        catalog.add(place / "a.h5")
        assert (mode(path), (place / "catalog.sqlite-wal").exists()) == (2, True)
    monkeypatch.setenv("SIEVA_NETWORK_FS", "1")
    with sieva.Catalog(read_only=True) as catalog:
        assert len(catalog.find("")) == 1
    assert mode(path) == 1
    assert not (place / "catalog.sqlite-wal").exists()
    # Where it is local it may be on the network for others.
    monkeypatch.setenv("SIEVA_NETWORK_FS", "0")
    with sieva.Catalog() as catalog:
        catalog.tag(place / "a.h5", "", {"seen": True})
        assert len(catalog.find("seen = TRUE")) == 1
    assert mode(path) == 1


def test_what_a_killed_writer_left_is_put_right_by_a_reader(place):
    with sieva.Catalog() as catalog:
        catalog.add(place / "a.h5")
    path = place / "catalog.sqlite"
    # A transaction that is written to the file and not yet committed, as a killed process leaves it.
    code = f"""
import os, sqlite3
db = sqlite3.connect({str(path)!r}, isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE sources SET location = 'changed'")
for n in range(2000):
    db.execute("INSERT INTO names (name) VALUES (?)", (f"left {{n}} " + "x" * 200,))
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert (place / "catalog.sqlite-journal").stat().st_size > 0
    with sieva.Catalog(read_only=True) as catalog:
        assert [one.location for one in catalog.list()] == [str((place / "a.h5").resolve())]
        with pytest.raises(sieva.errors.PermissionDenied):
            catalog.tag(place / "a.h5", "", {"a": 1})
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM names WHERE name LIKE 'left %'").fetchone() == (0,)
