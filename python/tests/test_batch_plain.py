"""A batch system of plain processes: answers, what happens when something dies, `sieva jobs`, the command."""

import errno
import json
import os
import signal
import threading
from pathlib import Path

import pytest
import sieva
from batch_work import answer, ask_in_parts, work_of
from services.slurm import SECONDS, await_that
from sieva import errors
from sieva.cli import main
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.engine import BatchEngine
from sieva.engines.batch.files import unpacked
from sieva.engines.batch.plain import _runs
from sieva.engines.batch.system import UNFINISHED


@pytest.fixture(autouse=True)
def _own_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))


def plain(**options):
    """Return the engine of plain processes, and what it told."""
    told = []
    return BatchEngine("plain", tell=told.append, tasks=2, **options), told


def test_plain_processes_answer_as_one_does(ocean_path):
    engine, told = plain()
    for text in ("TEMP > 10", "TEMP > 10 AND z_t < 5000"):
        query = sieva.open(ocean_path).query(text)
        assert answer(ask_in_parts(query, ocean_path, engine)) == answer(query)
    groups = sieva.open(ocean_path).sql("SELECT z_t, avg(TEMP) AS a, stddev(TEMP) AS s GROUP BY z_t")
    assert answer(ask_in_parts(groups, ocean_path, engine)) == answer(groups)
    assert len(told) == 3


def test_asking_again_has_what_is_there(ocean_path):
    engine, told = plain()
    query = sieva.open(ocean_path).query("TEMP > 10")
    first = answer(ask_in_parts(query, ocean_path, engine))
    again, silent = plain()
    assert answer(ask_in_parts(query, ocean_path, again)) == first
    assert (len(told), silent) == (1, [])


def test_a_damaged_result_is_made_again(tmp_path, ocean_path):
    engine, _ = plain()
    query = sieva.open(ocean_path).query("TEMP > 10")
    first = answer(ask_in_parts(query, ocean_path, engine))
    (path,) = (tmp_path / "jobs").glob("*/result/000001")
    path.write_bytes(b"SVBF\x01" + bytes(40))
    again, told = plain()
    assert answer(ask_in_parts(query, ocean_path, again)) == first
    assert told != []
    assert unpacked(path.read_bytes(), path)


def test_a_source_that_was_replaced_fails_the_work(tmp_path, ocean_path):
    copy = tmp_path / "ocean.nc"
    copy.write_bytes(ocean_path.read_bytes())
    query = sieva.open(copy).query("TEMP > 10")
    work = work_of(query, copy, 4)
    copy.write_bytes(ocean_path.read_bytes() + b"more")
    engine, _ = plain()
    with pytest.raises(errors.StaleSource, match=r"task [01] of job [0-9a-f]{8} on"):
        list(engine.run(work))


def test_a_task_that_fails_otherwise_tells_its_last_lines(ocean_path):
    engine, _ = plain(setup="echo no module named python; exit 3")
    query = sieva.open(ocean_path).query("TEMP > 10")
    with pytest.raises(errors.IoError, match="exit code 3") as found:
        ask_in_parts(query, ocean_path, engine)
    assert found.value.message.endswith("no module named python")
    assert "sieva jobs show" in found.value.hint


def test_tasks_that_never_come_to_their_work_are_given_up(tmp_path, ocean_path):
    engine, _ = plain(setup=f"exit {UNFINISHED}", attempts=2)
    query = sieva.open(ocean_path).query("TEMP > 10")
    with pytest.raises(errors.IoError, match="have no result after 3 submissions"):
        ask_in_parts(query, ocean_path, engine)
    (job,) = (tmp_path / "jobs").iterdir()
    times = [submission.needs.seconds for submission in JobDirectory(job).submissions()]
    assert times == [3600, 7200, 14400][: len(times)]


def test_work_that_was_left_is_submitted_again(tmp_path, ocean_path):
    mark = tmp_path / "begun"
    first = f"[ -e {mark} ] || {{ touch {mark}; exit {UNFINISHED}; }}"
    engine, told = plain(setup=first)
    query = sieva.open(ocean_path).query("TEMP > 10")
    assert answer(ask_in_parts(query, ocean_path, engine)) == answer(query)
    assert sum("again" in line for line in told) == 1


def test_time_that_is_up_leaves_the_job(tmp_path, ocean_path):
    gate = tmp_path / "gate"
    setup = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    engine, _ = plain(setup=setup, time_left=0.5)
    query = sieva.open(ocean_path).query("TEMP > 10")
    with pytest.raises(errors.Cancelled, match=r"time is up; job [0-9a-f]{8} goes on: 0 of"):
        ask_in_parts(query, ocean_path, engine)
    gate.touch()
    again, silent = plain(setup=setup)
    assert answer(ask_in_parts(query, ocean_path, again)) == answer(query)
    assert silent == []


# sieva jobs.


def told_of_jobs(capsys, *words):
    """Return what `sieva jobs` prints as JSON."""
    capsys.readouterr()
    assert main(["jobs", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_jobs_are_listed_shown_and_removed(tmp_path, ocean_path, capsys):
    engine, _ = plain(directory=tmp_path / "elsewhere")
    query = sieva.open(ocean_path).query("TEMP > 10")
    ask_in_parts(query, ocean_path, engine)
    (found,) = told_of_jobs(capsys)
    assert (found["engine"], found["state"], found["done"]) == ("plain", "done", found["works"])
    assert main(["jobs"]) == 0
    assert capsys.readouterr().out.split("\t")[:4] == [
        found["id"],
        "plain",
        "done",
        f"{found['works']}/{found['works']}",
    ]
    assert main(["jobs", "show", found["id"][:6]]) == 0
    assert f"directory   {tmp_path}/elsewhere/{found['id']}" in capsys.readouterr().out
    assert main(["jobs", "remove", found["id"]]) == 0
    assert told_of_jobs(capsys) == []
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_job_that_is_none(capsys):
    assert main(["jobs", "show", "0123"]) == 1
    assert "there is no job '0123'" in capsys.readouterr().err


def test_a_job_is_cancelled_and_resumed(tmp_path, ocean_path, capsys):
    gate = tmp_path / "gate"
    engine, _ = plain(setup=f"while [ ! -e {gate} ]; do sleep 0.05; done")
    query = sieva.open(ocean_path).query("TEMP > 10")
    failed = []

    def ask():
        try:
            ask_in_parts(query, ocean_path, engine)
        except errors.SievaError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    await_that(lambda: [job["state"] for job in told_of_jobs(capsys)] == ["running"], "a job that runs")
    found = told_of_jobs(capsys)
    assert main(["jobs", "remove", found[0]["id"]]) == 1
    assert "is running" in capsys.readouterr().err
    assert main(["jobs", "cancel", found[0]["id"]]) == 0
    asking.join(SECONDS)
    assert [type(error) for error in failed] == [errors.Cancelled]
    assert told_of_jobs(capsys, "show", found[0]["id"])["state"] == "cancelled"
    gate.touch()
    assert main(["jobs", "resume", found[0]["id"]]) == 0
    assert told_of_jobs(capsys, "show", found[0]["id"])["state"] == "done"


def test_a_runner_that_was_killed_is_noticed(tmp_path, ocean_path):
    gate = tmp_path / "gate"
    engine, told = plain(setup=f"while [ ! -e {gate} ]; do sleep 0.05; done")
    query = sieva.open(ocean_path).query("TEMP > 10")
    found = []
    asking = threading.Thread(target=lambda: found.append(answer(ask_in_parts(query, ocean_path, engine))))
    asking.start()
    await_that(lambda: list((tmp_path / "jobs").glob("*/submission/000.run/1.begun")), "tasks that run")
    # Who started it tells of it after that.
    runners = (tmp_path / "jobs").glob
    await_that(lambda: list(runners("*/submission/000.run/runner.json")), "a runner that is told of")
    (runner,) = runners("*/submission/000.run/runner.json")
    os.kill(json.loads(runner.read_text())["pid"], signal.SIGKILL)
    await_that(lambda: any("again" in line for line in told), "a submission of what is left")
    gate.touch()
    asking.join(SECONDS)
    assert found == [answer(query)]


# The command line.


def test_a_command_by_plain_processes(ocean_path, capsys):
    text = f"SELECT z_t, avg(TEMP) AS a FROM '{ocean_path}' GROUP BY z_t"
    assert main(["query", text]) == 0
    alone = capsys.readouterr().out
    assert main(["query", text, "--engine", "plain", "--batch-option", "tasks=2"]) == 0
    told = capsys.readouterr()
    assert told.out == alone
    assert "tasks are plain's" in told.err


def test_a_command_that_was_left_is_run_again(tmp_path, ocean_path, capsys, monkeypatch):
    gate = tmp_path / "gate"
    monkeypatch.chdir(tmp_path)
    text = f"SELECT TEMP FROM '{ocean_path}' WHERE TEMP > 10"
    setup = f"setup=while [ ! -e {gate} ]; do sleep 0.05; done"
    words = ["query", text, "-o", "warm.csv", "--engine", "plain", "--batch-option", setup]
    assert main([*words, "--time-left", "0.2"]) == 1
    assert "time is up" in capsys.readouterr().err
    (job,) = told_of_jobs(capsys)
    assert job["state"] in {"waiting", "running"}
    gate.touch()
    monkeypatch.chdir("/")
    assert main(["jobs", "resume", job["id"]]) == 0
    assert main(["query", text, "-o", str(tmp_path / "alone.csv")]) == 0
    assert (tmp_path / "warm.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch-option", "tasks=2"], "--batch-option is of --engine"),
        (["--engine", "local", "--time-left", "3"], "--time-left is not of --engine local"),
        (["--engine", "plain", "--workers", "3"], "--workers is not of --engine plain"),
    ],
)
def test_options_of_another_engine(words, said, ocean_path, capsys):
    assert main(["query", f"SELECT TEMP FROM '{ocean_path}'", *words]) == 2
    assert said in capsys.readouterr().err


def test_few_rows_are_read_by_who_asks(ocean_path):
    engine, told = plain()
    query = sieva.open(ocean_path).query("TEMP > 10", select=["TEMP"], engine=engine)
    alone = sieva.open(ocean_path).query("TEMP > 10", select=["TEMP"])
    assert query.read("TEMP").tolist() == alone.read("TEMP").tolist()
    assert answer(query) == answer(alone)
    assert len(told) == 1


def test_many_rows_are_read_by_tasks(ocean_path, monkeypatch):
    monkeypatch.setattr(BatchEngine, "reads_here", 0)
    engine, told = plain()
    query = sieva.open(ocean_path).query("TEMP > 10", select=["TEMP"], engine=engine)
    assert answer(query) == answer(sieva.open(ocean_path).query("TEMP > 10", select=["TEMP"]))
    assert len(told) == 2


def test_a_command_that_does_not_wait(tmp_path, ocean_path, capsys, monkeypatch):
    gate = tmp_path / "gate"
    monkeypatch.chdir(tmp_path)
    text = f"SELECT TEMP FROM '{ocean_path}' WHERE TEMP > 10"
    setup = f"setup=while [ ! -e {gate} ]; do sleep 0.05; done"
    words = ["query", text, "-o", "warm.csv", "--engine", "plain", "--batch-option", setup]
    assert main([*words, "--detach"]) == 0
    assert "finishes it when it is done" in capsys.readouterr().err
    assert not (tmp_path / "warm.csv").exists()
    gate.touch()
    await_that((tmp_path / "warm.csv").exists, "the file")
    assert main(["query", text, "-o", "alone.csv"]) == 0
    assert (tmp_path / "warm.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_commands_that_ask_the_same_are_finished_each(tmp_path, ocean_path, capsys, monkeypatch):
    gate = tmp_path / "gate"
    monkeypatch.chdir(tmp_path)
    text = f"SELECT TEMP FROM '{ocean_path}' WHERE TEMP > 10"
    setup = f"setup=while [ ! -e {gate} ]; do sleep 0.05; done"
    words = ["query", text, "--engine", "plain", "--detach", "--batch-option", setup]
    told = []
    for name in ("a.csv", "b.csv", "b.csv"):
        assert main([*words, "-o", name]) == 0
        told.append(capsys.readouterr().err.splitlines()[-1])
    # The same command is not waited for twice.
    assert told[0] != told[1] == told[2]
    gate.touch()
    for name in ("a.csv", "b.csv"):
        await_that((tmp_path / name).exists, f"the file {name}")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes() != b""


def test_a_detached_command_that_is_cancelled_is_not_finished(tmp_path, ocean_path, capsys, monkeypatch):
    gate = tmp_path / "gate"
    monkeypatch.chdir(tmp_path)
    text = f"SELECT TEMP FROM '{ocean_path}' WHERE TEMP > 10"
    setup = f"setup=while [ ! -e {gate} ]; do sleep 0.05; done"
    words = ["query", text, "-o", "warm.csv", "--engine", "plain", "--batch-option", setup]
    assert main([*words, "--detach"]) == 0
    (job,) = told_of_jobs(capsys)
    place = Path(job["directory"]) / "submission"
    runners = [json.loads((place / f"{name}.run/runner.json").read_text()) for name in ("000", "000.end")]
    assert main(["jobs", "cancel", job["id"]]) == 0
    await_that(lambda: not any(_runs(runner) for runner in runners), "the end of both")
    assert not (tmp_path / "warm.csv").exists()
    # Going on at once takes what was cancelled up again, also where its tasks are still ending.
    gate.touch()
    assert main(["jobs", "resume", job["id"]]) == 0
    assert (tmp_path / "warm.csv").exists()


def test_a_job_is_resumed_while_its_tasks_still_end(tmp_path, ocean_path, capsys):
    """Tasks that were cancelled have half a minute to end: they are no news to who goes on."""
    gate = tmp_path / "gate"
    slow = f"trap 'sleep 1; exit 75' TERM; while [ ! -e {gate} ]; do sleep 0.05; done"
    engine, _ = plain(setup=slow, time_left=0.5)
    query = sieva.open(ocean_path).query("TEMP > 10")
    with pytest.raises(errors.Cancelled, match="time is up"):
        ask_in_parts(query, ocean_path, engine)
    (job,) = told_of_jobs(capsys)
    assert main(["jobs", "cancel", job["id"]]) == 0
    gate.touch()
    assert main(["jobs", "resume", job["id"]]) == 0
    assert told_of_jobs(capsys, "show", job["id"])["state"] == "done"


def test_a_full_directory_of_jobs_is_named(tmp_path, ocean_path, capsys, monkeypatch):
    def full(path, _):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("sieva.engines.batch.directory.write_whole", full)
    monkeypatch.chdir(tmp_path)
    text = f"SELECT TEMP FROM '{ocean_path}' WHERE TEMP > 10"
    assert main(["query", text, "-o", "out.csv", "--engine", "plain"]) == 1
    told = capsys.readouterr().err
    assert f"the directory of jobs '{tmp_path}/jobs': No space left on device" in told
    assert "out.csv" not in told
    assert "SIEVA_JOBS" in told


def test_an_index_is_built_by_tasks(tmp_path, particles_path, capsys):
    copy = tmp_path / "particles.h5"
    copy.write_bytes(particles_path.read_bytes())
    words = ["index", str(copy), "--var", "Energy", "--engine", "plain", "--batch-option", "tasks=2"]
    assert main(words) == 0
    assert "tasks are plain's" in capsys.readouterr().err
    source = sieva.open(copy)
    (array,) = source.index_status().arrays
    assert array.with_bitmap == array.regions
    assert source.verify_index(all=True)
    there = source.query("Energy > 1.7", access="bitmap")
    assert there.count() == sieva.open(particles_path).query("Energy > 1.7", access="scan").count()
    # What was built is gone: a job that was done is no answer.
    assert source.drop_index()
    assert main(words) == 0
    (array,) = sieva.open(copy).index_status().arrays
    assert array.with_bitmap == array.regions
