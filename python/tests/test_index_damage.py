"""Stores that are damaged, stale, or built by builders that die: it is noticed, and answers stay."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from index_files import ALL, assert_right, energy_of, write
from sieva import errors

# At the end of a shard: offset and length of 256 inner chunks, and a checksum.
SHARD_INDEX = 256 * 16 + 4
# What a child does, which is stopped at some moment after it is ready.
BUILD = """
import sys, sieva
source = sieva.open(sys.argv[1])
print("ready", flush=True)
source.build_index(jobs=2)
source.build_index("energy", kinds=["sorted"])
print("done", flush=True)
"""


@pytest.fixture
def path(tmp_path):
    """Return the path of a file without indexes."""
    write(tmp_path / "data.h5")
    return tmp_path / "data.h5"


@pytest.fixture
def indexed(path):
    """Return the path of a file with indexes of all kinds."""
    source = sieva.open(path)
    source.build_index()
    source.build_index("energy", kinds=["sorted"], columns=["x"])
    return path


def test_a_file_that_was_written_anew_is_not_answered_from_old_indexes(indexed):
    write(indexed, seed=1)
    source = sieva.open(indexed)
    assert assert_right(indexed) == ["auto", "scan"]
    assert source.index_status().stale
    assert "stale" in repr(source.index_status())
    (note,) = source.index_notes
    assert "another state of the file" in note
    assert note in source.query("energy > 3").explain()
    with pytest.raises(errors.NoIndex, match="energy"):
        source.histogram("energy")
    assert source.build_index().regions_renewed == 0
    assert assert_right(indexed) == ALL[:-1]
    assert source.index_notes == []
    assert source.verify_index(all=True)


def test_what_did_not_change_is_taken_over(indexed):
    with h5py.File(indexed, "r+") as file:
        file["energy"][70_000] = 9.0  # in the second region
    source = sieva.open(indexed)
    assert source.index_status().stale
    assert assert_right(indexed) == ["auto", "scan"]
    report = source.build_index()
    assert (report.regions_built, report.regions_renewed) == (13, 12)
    assert assert_right(indexed) == ALL[:-1]
    assert source.verify_index(all=True)


def test_regions_stay_when_an_array_grows(tmp_path):
    path = tmp_path / "growing.h5"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "t", data=rng.normal(0, 1, (4, 70_000)), chunks=(1, 70_000), maxshape=(None, 70_000)
        )
    sieva.open(path).build_index()
    with h5py.File(path, "r+") as file:
        file["t"].resize((6, 70_000))
        file["t"][4:] = rng.normal(0, 1, (2, 70_000))
        values = file["t"][:]
    source = sieva.open(path)
    assert source.query("t > 1.23").count() == (values > 1.23).sum()
    report = source.build_index()
    assert (report.regions_built, report.regions_renewed) == (6, 4)
    assert source.query("t > 1.23", access="bitmap").count() == (values > 1.23).sum()
    assert source.verify_index(all=True)


def test_a_file_that_changes_under_an_open_source_is_not_indexed(path):
    source = sieva.open(path)
    write(path, seed=2)
    with pytest.raises(errors.StaleSource):
        source.build_index()


def files_of(store):
    return sorted(file for file in store.rglob("*") if file.is_file() and file.stat().st_size)


def flipped(file, place):
    """Flip a bit of a byte; returns what it was."""
    with file.open("r+b") as opened:
        opened.seek(place)
        before = opened.read(1)
        opened.seek(place)
        opened.write(bytes([before[0] ^ 1 << place % 8]))
    return before


def is_noticed(path):
    try:
        return not sieva.open(path).verify_index(all=True)
    except (errors.NoIndex, errors.CorruptIndex, errors.Unsupported):
        return True


def test_flipped_bits_are_noticed_and_answers_stay(tmp_path):
    path = tmp_path / "data.h5"
    rng = random.Random(0)  # noqa: S311 - places to damage
    write(path, energy=np.random.default_rng(0).normal(2, 1, 70_000).astype("f4"))
    source = sieva.open(path)
    source.build_index("energy", "x", jobs=1)
    source.build_index("energy", kinds=["sorted"], columns=["x"])
    store = Path(f"{path}.sieva")
    unnoticed = []
    for file in files_of(store):
        size = file.stat().st_size
        for place in {0, size - 1, *(rng.randrange(size) for _ in range(6))}:
            before = flipped(file, place)
            assert_right_without_class(path)
            # Between what is kept there may be nothing: zeros.
            if before != b"\0" and not is_for_others(file, place) and not is_noticed(path):
                unnoticed.append((file.relative_to(store), place, before))
            assert flipped(file, place) != before
    assert unnoticed == []
    assert sieva.open(path).verify_index(all=True)


def is_for_others(file, place):
    """Whether a byte of a replica is for other readers of Zarr: an array's metadata, the index of a shard."""
    if file.name == "zarr.json":
        return file.parent.suffix != ".zarr"
    return file.parent.name == "c" and place >= file.stat().st_size - SHARD_INDEX


def assert_right_without_class(path):
    energy = energy_of(path)
    for access in ("auto", "zonemap", "bitmap", "sorted"):
        for condition, mask in (("energy > 3.21", energy > 3.21), ("energy < 0.5", energy < 0.5)):
            try:
                query = sieva.open(path).query(condition, select=["x"], access=access)
                assert query.count() == mask.sum()
                np.testing.assert_array_equal(query.selection().mask(), mask)
                assert len(query.read("x")) == mask.sum()
            except errors.NoIndex:
                assert access != "auto"


@pytest.mark.parametrize("kind", [".seg", "manifest.json", "zarr.json", "0"])
def test_files_that_are_cut_off_or_gone(tmp_path, kind):
    path = tmp_path / "data.h5"
    write(path, energy=np.random.default_rng(0).normal(2, 1, 70_000).astype("f4"))
    for cut in (
        lambda f: os.truncate(f, f.stat().st_size // 2),
        lambda f: os.truncate(f, 0),
        lambda f: f.unlink(),
    ):
        source = sieva.open(path)
        source.build_index("energy", "x")
        source.build_index("energy", kinds=["sorted"], columns=["x"])
        for file in files_of(Path(f"{path}.sieva")):
            if file.name.endswith(kind):
                cut(file)
        assert_right(path)
        assert is_noticed(path)
        source = sieva.open(path)
        source.drop_index()
        source.build_index("energy")
        assert source.verify_index(all=True)
        source.drop_index()


def test_builders_that_are_killed_spoil_nothing(path):
    rng = random.Random(1)  # noqa: S311 - moments to kill at
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", BUILD, path], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.12))
        child.kill()
        child.communicate()
        assert_right(path)
    source = sieva.open(path)
    source.build_index()
    source.build_index("energy", kinds=["sorted"])
    assert assert_right(path) == ALL
    assert source.verify_index(all=True)
    listed = {file.name for file in source.index_status().store.iterdir()}
    assert len([name for name in listed if name.endswith(".zarr")]) == 1
    assert not [name for name in listed if name.endswith(".tmp")]


def test_a_build_of_nothing_new_removes_what_killed_builders_left(path):
    source = sieva.open(path)
    source.build_index("energy")
    source.build_index("energy", kinds=["sorted"])
    store = source.index_status().store
    [replica] = store.glob("*.zarr")
    left = store / "0123456789abcdef.zarr"
    shutil.copytree(replica, left)
    (store / "0123456789abcdef.seg").write_bytes(b"")
    source.build_index("energy")
    assert sorted(store.glob("*.zarr")) == [replica]
    assert not (store / "0123456789abcdef.seg").exists()
    assert assert_right(path)


def test_an_interrupted_build_goes_on(path):
    child = subprocess.Popen(
        [sys.executable, "-c", BUILD, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=10)
    assert_right(path)
    report = sieva.open(path).build_index()
    assert report.regions_built + report.regions_kept == 13
    assert sieva.open(path).verify_index(all=True)


def test_two_builders_at_once(path):
    children = [
        subprocess.Popen([sys.executable, "-c", BUILD, path], stdout=subprocess.PIPE) for _ in range(2)
    ]
    while any(child.poll() is None for child in children):
        assert_right(path)
    assert [child.communicate()[0].split()[-1] for child in children] == [b"done", b"done"]
    assert assert_right(path) == ALL
    source = sieva.open(path)
    assert source.verify_index(all=True)
    assert len(source.index_status().replicas) == 1


def test_two_builders_in_one_process(path):
    sources = [sieva.open(path) for _ in range(2)]
    threads = [threading.Thread(target=source.build_index) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sieva.open(path).verify_index(all=True)
    assert assert_right(path) == ALL[:-1]


def test_the_whole_replica_of_another_file_is_not_used(tmp_path):
    """It is right in itself: only what the store says of it tells that it was built elsewhere."""
    rng = np.random.default_rng(3)
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f["x"], f["y"] = rng.normal(size=(2, 20_000))
        sieva.open(tmp_path / f"{name}.h5").build_index("x", kinds=["sorted"])
    (own,), (other,) = ((tmp_path / f"{name}.h5.sieva").glob("*.zarr") for name in "ab")
    shutil.rmtree(own)
    shutil.copytree(other, own)
    source = sieva.open(tmp_path / "a.h5")
    query = source.query("x > 2", select=["x", "y"])
    assert query.to_arrow().equals(source.query("x > 2", select=["x", "y"], access="scan").to_arrow())
    assert any("is the replica of another source" in note for note in source.index_notes)
    assert not source.verify_index()
