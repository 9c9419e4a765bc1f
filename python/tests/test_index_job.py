"""Indexes built in parts by several processes are those that one builds, and no byte is read twice."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

ROWS = 400_000
WORKER = """
import sys, sieva
path, store = sys.argv[1:3]
source = sieva.open(path, store=store)
for line in sys.stdin:
    print(source.run_index_task(bytes.fromhex(line), jobs=1).hex(), flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Arrays contiguous, chunked and packed, with all that is odd among floats."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=ROWS).astype("f4")
    x[rng.integers(0, ROWS, 500)] = rng.choice([np.nan, np.inf, -np.inf, -0.0], 500)
    path = tmp_path / "parts.h5"
    with h5py.File(path, "w") as f:
        f["x"] = x
        f.create_dataset(
            "y", data=rng.integers(-9, 9, ROWS).astype(">i2"), chunks=(70_000,), compression="gzip"
        )
        packed = f.create_dataset(
            "packed", data=rng.integers(0, 200, (40, 100, 100)).astype("u1"), chunks=(7, 30, 100)
        )
        packed.attrs["scale_factor"] = np.float32(0.1)
        f["empty"] = np.zeros((0, 3))
    return path


def built_by(
    path: Path, store: Path, n: int, seed: int = 0, arrays: Sequence[str] = (), **options: Any
) -> sieva.BuildReport:
    """Build with tasks in a random order, each in bytes, on a source of its own."""
    drawn = random.Random(seed)  # noqa: S311
    job = sieva.open(path, store=store).index_job(*arrays, **options)
    while tasks := job.tasks(n):
        order = list(range(len(tasks)))
        drawn.shuffle(order)
        done: dict[int, bytes] = {}
        for i in order:
            task = sieva.IndexTask.from_bytes(bytes(tasks[i]))
            done[i] = sieva.open(task.source, store=store).run_index_task(task, jobs=1)
        job.take([done[i] for i in range(len(tasks))])
    return job.finish()


def store_bytes(store: Path) -> int:
    return sum(file.stat().st_size for file in store.rglob("*") if file.is_file())


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_parts_are_what_one_process_builds(path: Path, tmp_path: Path, n: int) -> None:
    with sieva.open(path, store=tmp_path / "one") as whole:
        alone = whole.build_index()
    report = built_by(path, tmp_path / "parts", n, seed=n)
    assert (report.regions_built, report.bytes_read) == (alone.regions_built, alone.bytes_read)
    assert report.regions_kept == 0
    one, parts = (sieva.open(path, store=tmp_path / name) for name in ("one", "parts"))
    assert parts.index_status().arrays == one.index_status().arrays
    assert parts.verify_index(all=True)
    assert store_bytes(tmp_path / "parts") <= 1.01 * store_bytes(tmp_path / "one")
    for condition in ("x > 1.5", "y = 3", "packed >= 19.9", "x IS NULL", "x = 0"):
        assert parts.query(condition, access="bitmap").count() == one.query(condition, access="scan").count()


def test_a_second_job_finds_nothing_to_do(path: Path, tmp_path: Path) -> None:
    built = built_by(path, tmp_path, 3)
    again = sieva.open(path, store=tmp_path).index_job()
    assert again.tasks(3) == []
    report = again.finish()
    assert (report.regions_built, report.regions_kept, report.bytes_read) == (0, built.regions_built, 0)


def test_a_lost_part_is_all_that_is_built_again(path: Path, tmp_path: Path) -> None:
    source = sieva.open(path, store=tmp_path)
    job = source.index_job()
    tasks = job.tasks(4)
    assert len(tasks) >= 4
    for task in tasks[1:]:
        sieva.open(path, store=tmp_path).run_index_task(task)
    del job
    rest = sieva.open(path, store=tmp_path).index_job()
    (left,) = rest.tasks(1)
    assert str(left) == str(tasks[0])
    # A task that ran twice, as where its worker died after publishing, builds nothing the second time.
    first = source.run_index_task(left)
    second = source.run_index_task(left)
    rest.take([second])
    assert rest.finish().regions_built == 0
    assert len(first) > 0
    assert sieva.open(path, store=tmp_path).verify_index(all=True)


def test_processes_at_the_same_time(path: Path, tmp_path: Path) -> None:
    job = sieva.open(path, store=tmp_path).index_job()
    tasks = job.tasks(6)
    env = {**os.environ, "SIEVA_LEARN": "0"}
    workers = []
    for w in range(3):
        (tmp_path / f"tasks{w}").write_text("".join(bytes(task).hex() + "\n" for task in tasks[w::3]))
        with (tmp_path / f"tasks{w}").open() as given, (tmp_path / f"done{w}").open("w") as done:
            command = [sys.executable, "-c", WORKER, path, tmp_path]
            workers.append(subprocess.Popen(command, stdin=given, stdout=done, env=env))
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    results = [bytes.fromhex(line) for w in range(3) for line in (tmp_path / f"done{w}").read_text().split()]
    in_order = dict(zip([i for w in range(3) for i in range(w, len(tasks), 3)], results, strict=True))
    job.take([in_order[i] for i in range(len(tasks))])
    report = job.finish()
    source = sieva.open(path, store=tmp_path)
    assert report.regions_built == sum(array.regions for array in source.index_status().arrays)
    assert source.verify_index(all=True)


def test_a_job_over_joined_files(tmp_path: Path) -> None:
    for i in range(3):
        with h5py.File(tmp_path / f"part{i}.h5", "w") as f:
            f["x"] = np.arange(100_000, dtype="f8") * (i + 1)
    files = sorted(tmp_path.glob("part*.h5"))
    source = sieva.open(files, join="new")
    job = source.index_job("x")
    tasks = job.tasks(4)
    assert {task.source for task in tasks} == {str(file) for file in files}
    job.take([sieva.open(task.source).run_index_task(task) for task in tasks])
    assert job.finish().regions_built == 6
    assert all(sieva.open(file).index_status().arrays[0].with_bitmap == 2 for file in files)


def arrays_of(replica: Path) -> dict[str, bytes]:
    return {str(f.relative_to(replica)): f.read_bytes() for f in sorted(replica.rglob("*")) if f.is_file()}


@pytest.mark.parametrize("n", [1, 3, 7])
@pytest.mark.parametrize("key", ["x", "y"])
def test_a_replica_sorted_in_parts_has_the_bytes_of_one(path: Path, tmp_path: Path, n: int, key: str) -> None:
    sieva.open(path, store=tmp_path / "one").build_index(key, kinds=["sorted"])
    report = built_by(path, tmp_path / "parts", n, n, arrays=[key], kinds=["sorted"])
    assert report.replicas_built == 1
    one, parts = (sieva.open(path, store=tmp_path / name) for name in ("one", "parts"))
    (alone,), (shared,) = one.index_status().replicas, parts.index_status().replicas
    assert (shared.key, shared.columns, shared.bytes) == (alone.key, alone.columns, alone.bytes)
    assert arrays_of(Path(shared.path)) == arrays_of(Path(alone.path))
    assert parts.verify_index(all=True)
    query = parts.query(f"{key} > 1", access="sorted")
    np.testing.assert_array_equal(query.read("x"), one.query(f"{key} > 1", access="scan").read("x"))
    # There is one now: nothing to do.
    again = parts.index_job(key, kinds=["sorted"])
    assert again.tasks(n) == []
    assert again.finish().replicas_built == 0


def test_a_replica_of_nothing_and_one_of_little_memory(path: Path, tmp_path: Path) -> None:
    built_by(path, tmp_path, 3, arrays=["empty"], kinds=["sorted"])
    built_by(path, tmp_path, 3, arrays=["x"], kinds=["zonemap", "sorted"], memory="8MiB")
    source = sieva.open(path, store=tmp_path)
    assert {replica.key for replica in source.index_status().replicas} == {"empty", "x"}
    assert source.verify_index(all=True)
    with pytest.raises(errors.MemoryLimit):
        sieva.open(path, store=tmp_path).index_job("packed", kinds=["sorted"], memory="1KiB").tasks(1)


def test_a_replica_that_is_given_up_leaves_nothing(path: Path, tmp_path: Path) -> None:
    source = sieva.open(path, store=tmp_path)
    job = source.index_job("x", kinds=["sorted"])
    job.take([source.run_index_task(task) for task in job.tasks(2)])
    tasks = job.tasks(2)
    job.take([source.run_index_task(task) for task in tasks])
    sort = job.tasks(2)
    assert any(tmp_path.rglob(".spill-*"))
    del job
    assert not list(tmp_path.rglob("*.zarr"))
    with pytest.raises(errors.FileNotFound, match="parts of a sorted replica"):
        source.run_index_task(sort[0])
    assert source.index_status().replicas == ()


def test_a_replica_that_somebody_else_dropped_is_built_again(path: Path, tmp_path: Path) -> None:
    source, other = (sieva.open(path, store=tmp_path) for _ in range(2))
    source.build_index("x", kinds=["sorted"])
    assert source.query("x > 1", access="sorted").count() > 0
    assert other.drop_index("x", kinds=["sorted"])
    job = source.index_job("x", kinds=["sorted"])
    while tasks := job.tasks(2):
        job.take([source.run_index_task(task) for task in tasks])
    assert job.finish().replicas_built == 1
    assert [replica.key for replica in sieva.open(path, store=tmp_path).index_status().replicas] == ["x"]
    # And one that somebody else has built since is not built again.
    other.drop_index("x", kinds=["sorted"])
    source.index_status()
    other.build_index("x", kinds=["sorted"])
    assert source.index_job("x", kinds=["sorted"]).tasks(2) == []


def test_tasks_are_data(path: Path, tmp_path: Path) -> None:
    job = sieva.open(path, store=tmp_path).index_job("x")
    task = job.tasks(1)[0]
    assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301
    assert task.source == str(path)
    data = bytes(task)
    for damaged in (b"", data[:-1], data[:20] + bytes([data[20] ^ 1]) + data[21:], b"x" + data[1:]):
        with pytest.raises(errors.InvalidValue):
            sieva.IndexTask.from_bytes(damaged)


def test_what_does_not_fit_is_refused(path: Path, tmp_path: Path) -> None:
    source = sieva.open(path, store=tmp_path)
    job = source.index_job("x")
    (task,) = job.tasks(1)
    with pytest.raises(errors.InvalidValue, match="before those given out"):
        job.tasks(1)
    with pytest.raises(errors.InvalidValue, match="0 tasks, of 1"):
        job.take([])
    with pytest.raises(errors.InvalidValue, match="result of building"):
        job.take([bytes(task)])
    with pytest.raises(errors.InvalidValue, match="not done"):
        sieva.open(path, store=tmp_path).index_job("y").finish()
    with h5py.File(path, "r+") as f:
        f["x"][0] = 7
    with pytest.raises(errors.StaleSource):
        sieva.open(path, store=tmp_path).run_index_task(task)
    assert not sieva.open(path, store=tmp_path).index_status().exists


@pytest.mark.parametrize("wrong", ["twice", "turned"])
def test_results_that_come_twice_or_in_another_order_are_refused(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "n.h5"
    with h5py.File(path, "w") as f:
        f["c"] = np.random.default_rng(3).normal(size=150_000)
    source = sieva.open(path, store=tmp_path / "store", learn=False)
    job = source.index_job("c", kinds=["sorted"])

    def give() -> None:
        for stage in range(3):
            results = [source.run_index_task(task) for task in job.tasks(3)]
            if wrong == "twice" and stage == 1:
                results[1] = results[0]
            job.take(results[::-1] if wrong == "turned" and stage == 2 else results)

    with pytest.raises(errors.InvalidValue, match="given twice" if wrong == "twice" else "another order"):
        give()
    assert sieva.open(path, store=tmp_path / "store").query("c > 2").stats()["by_replica"] == 0
