"""Indexes as jobs of a batch system of plain processes: their price, going on, and what dies meanwhile."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from services.slurm import SECONDS, await_that
from sieva.cli import main
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.system import UNFINISHED

ROWS = 1_000_000


@pytest.fixture(autouse=True)
def _own_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))


@pytest.fixture
def path(tmp_path):
    """Return a file with an array of 16 regions, with all that is odd among floats."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=ROWS).astype("f4")
    x[rng.integers(0, ROWS, 900)] = rng.choice([np.nan, np.inf, -np.inf, -0.0], 900)
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = x
    return path


def words(path, *more, setup=""):
    """Return a command that builds an index by two tasks, with four pieces of work each."""
    options = ["--batch-option", "tasks=2", *(["--batch-option", f"setup={setup}"] if setup else [])]
    return ["index", str(path), "--var", "x", "--engine", "plain", *options, *more]


def gate(tmp_path):
    """Return a file, and a line of shell that waits for it."""
    path = tmp_path / "gate"
    return path, f"while [ ! -e {path} ]; do sleep 0.05; done"


def jobs():
    """Return the jobs that there are."""
    return [JobDirectory(path) for path in Path(os.environ["SIEVA_JOBS"]).glob("[!.]*")]


def regions(path):
    """Return how many regions have a bitmap, and how many there are."""
    found = sieva.open(path, learn=False).index_status().arrays
    return (found[0].with_bitmap, found[0].regions) if found else (0, None)


def is_whole(path):
    """Whether the index is there, right, and gives the answer of numpy."""
    built, all_of_them = regions(path)
    source = sieva.open(path, learn=False)
    with h5py.File(path) as file:
        expected = int((file["x"][:] > 1.5).sum())
    found = source.query("x > 1.5", access="bitmap").count()
    return built == all_of_them and bool(source.verify_index(all=True)) and found == expected


def done_by(job, path, tmp_path):
    """Return what the results of a job say was built: regions, and the bytes that were read for them."""
    # Of a copy that has no index, which is what was given out.
    copy = tmp_path / "copy.h5"
    shutil.copy(path, copy)
    count = sieva.open(copy, learn=False).index_job("x")
    tasks = count.tasks(job.works)
    results = [job.result(number) for number in sorted(job.results())]
    assert len(tasks) == len(results)
    count.take(results)
    report = count.finish()
    return report.regions_built, report.bytes_read


class Command:
    """A command that runs beside this process."""

    def __init__(self, given):
        command = [sys.executable, "-m", "sieva", *given]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def wait(self):
        """Wait for its end; return its exit code and what it said."""
        said = self._process.communicate(timeout=SECONDS)[1]
        return self._process.returncode, said


# The price.


def test_the_price_of_a_build(path, capsys):
    assert main(["index", str(path), "--var", "x", "--price", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["regions"], told["rows"], told["bytes_read"]) == (16, ROWS, 4 * ROWS)
    assert (told["bytes_sorted"], "needs" in told) == (0, False)
    assert not sieva.open(path).index_status().exists
    kinds = ["--kind", "bitmap", "--kind", "sorted"]
    assert main([*words(path), *kinds, "--price", "--json"]) == 0
    sorts = json.loads(capsys.readouterr().out)
    assert (sorts["bytes_sorted"], sorts["tasks"]) == (4 * ROWS, 2)
    # A sort takes what it may: 1 GiB; a bitmap what its regions take.
    assert main([*words(path), "--price", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["needs"]["memory"] < 512 << 20 < sorts["needs"]["memory"]
    assert main([*words(path), "--price"]) == 0
    assert "regions     16, 1,000,000 rows" in capsys.readouterr().out


def test_larger_regions_take_more_memory(tmp_path, capsys):
    large = tmp_path / "large.h5"
    with h5py.File(large, "w") as file:
        file.create_dataset("x", shape=(1 << 26,), chunks=(1 << 24,), dtype="f4")
    needs = []
    for cpus in ("1", "2"):
        assert main([*words(large), "--batch-option", f"cpus={cpus}", "--price", "--json"]) == 0
        needs.append(json.loads(capsys.readouterr().out)["needs"]["memory"])
    # 64 MiB a region, 12 times that a thread.
    assert 768 << 20 < needs[0] < needs[1] - (700 << 20)


def test_the_script_asks_for_the_price(path, capsys):
    assert main([*words(path), "--price", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(words(path)) == 0
    (job,) = jobs()
    (submission,) = job.submissions()
    assert vars(submission.needs) == told["needs"]
    assert is_whole(path)
    assert main([*words(path), "--price", "--json"]) == 0
    left = json.loads(capsys.readouterr().out)
    assert (left["regions"], left["bytes_read"]) == (0, 0)


@pytest.mark.parametrize("option", [["--detach"], ["--time-left", "3"], ["--batch-option", "tasks=2"]])
def test_options_of_batch_systems_alone(path, option, capsys):
    assert main(["index", str(path), *option]) == 2
    assert f"{option[0]} is for --engine slurm, pbs and plain" in capsys.readouterr().err


# Going away and coming back.


def test_a_build_that_is_left_goes_on_and_reads_nothing_twice(path, tmp_path, capsys):
    opened, setup = gate(tmp_path)
    assert main([*words(path, setup=setup), "--time-left", "0.3"]) == 1
    assert "time is up" in capsys.readouterr().err
    opened.touch()
    await_that(lambda: regions(path)[0] >= 4, "some regions")
    # Some is built by now: what is left is another work, and yet the same job.
    assert main(words(path, setup=setup)) == 0
    (job,) = jobs()
    assert len(job.submissions()) == 1
    assert done_by(job, path, tmp_path) == (16, 4 * ROWS)
    assert is_whole(path)


def test_a_build_without_anybody_finishes_by_itself(path, tmp_path, capsys):
    opened, setup = gate(tmp_path)
    assert main([*words(path, setup=setup), "--detach"]) == 0
    assert "finishes it when it is done" in capsys.readouterr().err
    assert main(["jobs", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["engine"], listed["done"], listed["works"]) == ("plain", 0, 8)
    opened.touch()
    (job,) = jobs()
    said = job.path / "submission" / "000.end.out" / "0.txt"
    await_that(lambda: said.exists() and "x: " in said.read_text(), "the line that says what was done")
    assert is_whole(path)
    assert main(["jobs", "show", job.id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"


def test_work_that_is_left_is_submitted_again_by_nobody(path, tmp_path):
    """The first array is out of time before it did anything: what finishes the job submits another."""
    mark = tmp_path / "begun"
    first = f'[ -e {mark}"$1" ] || {{ touch {mark}"$1"; exit {UNFINISHED}; }}'
    assert main([*words(path, setup=first), "--detach"]) == 0
    (job,) = jobs()
    said = job.path / "submission" / "001.end.out" / "0.txt"
    await_that(lambda: said.exists() and "x: " in said.read_text(), "the end of the second array")
    times = [submission.needs.seconds for submission in job.submissions()]
    assert times[1] == 2 * times[0]
    assert is_whole(path)


def test_what_comes_to_nothing_is_given_up_by_nobody(path):
    # Of the arrays alone, not of what finishes the job.
    setup = f"case $0 in *.end.sh) ;; *) exit {UNFINISHED};; esac"
    assert main([*words(path, setup=setup), "--batch-option", "attempts=2", "--detach"]) == 0
    (job,) = jobs()

    def told():
        return "".join(file.read_text() for file in job.path.glob("submission/*.end.out/0.txt"))

    await_that(lambda: "have no result after" in told(), "that it is given up")
    assert len(job.submissions()) == 2
    assert regions(path)[0] == 0


def test_a_replica_without_anybody(path):
    assert main([*words(path), "--kind", "bitmap", "--kind", "sorted", "--detach"]) == 0
    await_that(lambda: sieva.open(path).index_status().replicas, "the replica")
    assert is_whole(path)
    found = sieva.open(path, learn=False)
    assert found.query("x > 1.5", access="sorted").count() == found.query("x > 1.5", access="scan").count()


def test_a_detached_build_is_cancelled_and_resumed(path, tmp_path):
    opened, setup = gate(tmp_path)
    assert main([*words(path, setup=setup), "--detach"]) == 0
    (job,) = jobs()
    await_that(workers_or_shells(job), "tasks that run")
    assert main(["jobs", "cancel", job.id]) == 0
    opened.touch()
    assert main(["jobs", "resume", job.id]) == 0
    assert is_whole(path)
    assert not (job.path / "submission" / "000.end.out" / "0.txt").exists()


def workers_or_shells(job):
    """Return what tells whether the first task was begun."""
    return (job.path / "submission" / "000.run" / "0.begun").exists


# What dies.


HOLD = """
import os, signal
from sieva.engines.batch.directory import JobDirectory

publish = JobDirectory.publish

def held(job, number, result):
    mine = number % 4 == 1 and claim()
    if mine and {before}:
        os.kill(os.getpid(), signal.SIGSTOP)
    publish(job, number, result)
    if mine and not {before}:
        os.kill(os.getpid(), signal.SIGSTOP)

def claim():
    try:
        with open({held!r}, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True

JobDirectory.publish = held
"""


def holding(tmp_path, *, before):
    """Return a line of shell, and a file: one worker stops where it tells of its second piece, its pid there.

    Whoever looks for a worker that is half done finds, now and then, one that was faster.
    """
    held, code = tmp_path / "held", tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(HOLD.format(before=before, held=str(held)))
    return f"export PYTHONPATH={code}", held


def is_stopped(held):
    """Whether the worker that wrote its number there has stopped."""
    try:
        return Path(f"/proc/{int(held.read_text())}/stat").read_text().rsplit(")")[-1].split()[0] == "T"
    except (FileNotFoundError, ValueError):
        return False


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_ended_costs_its_own_work_alone(path, tmp_path, number, before):
    setup, held = holding(tmp_path, before=before)
    command = Command(words(path, setup=setup))
    await_that(lambda: is_stopped(held), "a worker that has done something")
    os.kill(int(held.read_text()), number)
    if number != signal.SIGKILL:
        os.kill(int(held.read_text()), signal.SIGCONT)
    code, said = command.wait()
    if number == signal.SIGKILL:
        # By somebody, or for want of memory: it is told, and the same command goes on.
        assert (code, "exit code 137" in said) == (1, True)
        assert main(words(path)) == 0
    else:
        assert code == 0, said
    (job,) = jobs()
    built, read = done_by(job, path, tmp_path)
    # What it had published when it died, but not told yet, is there already for who goes on: one piece of
    # two regions.
    assert built == (14 if number == signal.SIGKILL and before else 16)
    assert 0 < read <= 4 * ROWS
    assert is_whole(path)


def test_a_source_that_is_replaced_is_stale(path, tmp_path):
    opened, setup = gate(tmp_path)
    command = Command(words(path, setup=setup))
    await_that(lambda: jobs() and workers_or_shells(jobs()[0])(), "tasks that run")
    with h5py.File(path, "r+") as file:
        file["x"][0] = 7
    opened.touch()
    code, said = command.wait()
    assert (code, "task " in said) == (1, True)
    assert "not in the state" in said
    assert not sieva.open(path).index_status().arrays
    # It is another question now.
    assert main(words(path)) == 0
    assert is_whole(path)


def test_a_full_disk_on_one_node(path, capsys):
    """Files of one task may have 2 KiB: what it writes of the index does not fit."""
    assert main(words(path, setup='[ "$1" = 0 ] || ulimit -f 2')) == 1
    said = capsys.readouterr().err
    assert "File too large" in said
    assert "task 1 of job" in said
    # What is there is right; it is nothing where the other task was stopped before it had published.
    source = sieva.open(path, learn=False)
    kept = regions(path)[0]
    if kept:
        assert source.verify_index(all=True)
    with h5py.File(path) as file:
        assert source.query("x > 1.5").count() == int((file["x"][:] > 1.5).sum())
    # Once there is room, the job goes on, and what was built is kept.
    assert main(words(path)) == 0
    assert is_whole(path)
    assert kept == 0 or "there already" in capsys.readouterr().err
