"""What batch systems have in common: options, needs, scripts, states, a job's directory, plain processes."""

# Long because all of it shares the fixtures of one job.

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sieva
from batch_work import work_of
from hypothesis import given
from hypothesis import strategies as st
from sieva import _jobs_cli, errors
from sieva._price import Expected, Price
from sieva.cli import main
from sieva.engines.batch import jobs as jobs_module
from sieva.engines.batch import needs as needs_module
from sieva.engines.batch import pbs, slurm, worker
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.engine import BatchEngine, forget_old
from sieva.engines.batch.files import packed, unpacked
from sieva.engines.batch.follow import Follower, shares
from sieva.engines.batch.jobs import job_of, known_jobs
from sieva.engines.batch.options import BatchOptions, seconds_of
from sieva.engines.batch.system import UNFINISHED, Needs, Order, State, TaskState

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _own_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_JOBS", str(tmp_path / "jobs"))


def order(tmp_path, **changes):
    """Return an order of three tasks."""
    known = {
        "name": "sieva-0123abcd",
        "command": ["python", "-m", "work er"],
        "tasks": 3,
        "needs": Needs(memory=GIB + 1, seconds=3601, cpus=2),
        "script": tmp_path / "script.sh",
        "output": tmp_path / "out",
    }
    return Order(**{**known, **changes})


# Options.


def test_options_as_text_and_as_keywords():
    told = ["tasks=8", "cpus=2", "memory=2GiB", "time=1-00:10:00", "partition=short", "account=p1"]
    told += ["directive=--qos=long", "directive=--exclusive", "setup=module load python"]
    options = BatchOptions.of(told)
    assert options == BatchOptions(
        tasks=8,
        cpus=2,
        memory=2 * GIB,
        time=87000,
        partition="short",
        account="p1",
        directives=("--qos=long", "--exclusive"),
        setup="module load python",
    )
    assert BatchOptions.given(memory="2GiB", time=90, directives="--x") == BatchOptions(
        memory=2 * GIB, time=90, directives=("--x",)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("partition", "not of the form NAME=VALUE"),
        ("colour=red", "'colour' is no batch option"),
        ("tasks=0", "expected 1 to 1000"),
        ("tasks=many", "tasks=many"),
        ("memory=lots", "memory=lots"),
        ("time=00:10", "at least a minute"),
        ("time=x:10", "time=x:10: 'x:10' is no time: expected seconds, or days-hours:minutes:seconds"),
        ("time=abc", "'abc' is no time"),
        ("foo=1", "'foo' is no batch option"),
        ("foo", "'foo' is not of the form NAME=VALUE"),
        ("partition=a\n#SBATCH --uid=0", "one line"),
        ("directive=a\nrm -r", "one line"),
    ],
)
def test_options_that_are_none(text, said):
    with pytest.raises(errors.InvalidValue, match=said) as told:
        BatchOptions.of([text])
    # What can be written in its place.
    name = text.partition("=")[0]
    assert f"--batch-option {name}" in told.value.hint or "the names are tasks, cpus" in told.value.hint


def test_an_unknown_keyword_is_told_with_those_there_are():
    with pytest.raises(errors.InvalidValue, match="'queue' is no option") as found:
        BatchEngine("plain", queue="x")
    assert "partition" in found.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("10:00", 600), ("2:00:00", 7200), ("1-0", 86400), ("1-1:00", 90000)]
)
def test_times_as_slurm_writes_them(text, seconds):
    assert seconds_of(text) == seconds


def test_a_batch_system_that_is_none():
    with pytest.raises(errors.InvalidValue, match="no batch system 'lsf'") as found:
        BatchEngine("lsf")
    assert found.value.hint == "there are slurm, pbs, plain"


# Needs.


def price(seconds):
    """Return a price that is expected to take these seconds on all cores of this host."""
    known = Expected(0, 0, 0)
    return Price(known, known, known, known, Expected(0, seconds, None))


def test_needs_follow_the_price(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    # 8 cores for 1000 s are 8000 s of one; 16 tasks of 2 cores take 250 s each.
    told = BatchOptions(cpus=2)
    found = needs_module.needs_of(price(1000), 16, told, memory=3 * GIB)
    assert found == Needs(memory=3 * GIB * 5 // 4 + needs_module.PROCESS, seconds=300 + 4 * 250 + 20, cpus=2)
    assert needs_module.tasks_of(price(1000), told) == 32
    assert needs_module.tasks_of(price(100), told) == 6
    assert needs_module.tasks_of(price(1), told) == 4


def test_an_unknown_price_is_an_hour():
    assert needs_module.needs_of(None, 8, BatchOptions()).seconds == 3600
    assert needs_module.tasks_of(None, BatchOptions()) == 8


def test_needs_that_were_told_come_first():
    told = BatchOptions(tasks=7, cpus=3, memory=5, time=120)
    assert needs_module.tasks_of(price(1e9), told) == 7
    assert needs_module.needs_of(price(1e9), 7, told) == Needs(memory=5, seconds=120, cpus=3)


def test_only_what_did_not_do_is_raised():
    needs = Needs(memory=10, seconds=60, cpus=1)
    assert needs_module.raised(needs, time=True, memory=False) == Needs(10, 120, 1)
    assert needs_module.raised(needs, time=False, memory=True) == Needs(20, 60, 1)


@given(st.integers(1, 300), st.integers(1, 80))
def test_shares_are_runs_of_all_and_even(n, tasks):
    found = shares(range(n), tasks)
    assert [number for share in found for number in share] == list(range(n))
    assert len(found) == min(n, tasks)
    assert max(map(len, found)) - min(map(len, found)) <= 1


# Scripts.


def test_a_script_of_slurm(tmp_path):
    told = order(tmp_path, partition="short", account="p1", directives=["--qos=long"], setup="module load x")
    text = slurm.script(told)
    assert text.splitlines()[0] == "#!/bin/bash"
    directives = [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")]
    assert directives == [
        "--job-name=sieva-0123abcd",
        "--array=0-2",
        "--ntasks=1",
        "--cpus-per-task=2",
        "--mem=1025M",
        "--time=01:01:00",
        f'--output="{tmp_path}/out/%a.txt"',
        "--requeue",
        "--open-mode=append",
        "--signal=B:TERM@60",
        "--partition=short",
        "--account=p1",
        "--qos=long",
    ]
    assert text.endswith("module load x\nexec python -m 'work er' \"$SLURM_ARRAY_TASK_ID\"\n")


def test_a_script_of_slurm_that_waits_for_another_job(tmp_path):
    lines = slurm.script(order(tmp_path, after="17")).splitlines()
    assert "#SBATCH --dependency=afterany:17" in lines


def test_a_script_of_pbs(tmp_path):
    text = pbs.script(order(tmp_path, partition="workq", account="p1", after="17.srv"))
    directives = [line.removeprefix("#PBS ") for line in text.splitlines() if line.startswith("#PBS")]
    assert directives == [
        "-N sieva-0123abcd",
        "-J 0-2",
        "-l select=1:ncpus=2:mem=1025mb",
        "-l walltime=01:01:00",
        "-r y",
        "-j oe",
        "-o /dev/null",
        "-V",
        "-q workq",
        "-A p1",
        "-W depend=afterany:17.srv",
    ]
    assert f'exec >> {tmp_path}/out/"${{PBS_ARRAY_INDEX:-0}}".txt 2>&1' in text
    # An array of one is refused.
    assert "#PBS -J" not in pbs.script(order(tmp_path, tasks=1))


# What batch systems tell.

OLD = {"array_job_id": 6, "array_task_id": 1, "job_state": "FAILED", "exit_code": 256, "nodes": "n2"}
NEW = {
    "array_job_id": {"set": True, "infinite": False, "number": 6},
    "array_task_id": {"set": True, "infinite": False, "number": 1},
    "job_state": ["FAILED"],
    "exit_code": {
        "status": ["ERROR"],
        "return_code": {"set": True, "infinite": False, "number": 1},
        "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
    },
    "nodes": "n2",
    "state_reason": "NonZeroExitCode",
}


@pytest.mark.parametrize("entry", [OLD | {"state_reason": "NonZeroExitCode"}, NEW], ids=["22.05", "23.11"])
def test_json_of_squeue_of_old_and_new_versions(entry):
    other = entry | {"array_job_id": 7}
    assert slurm.queued({"jobs": [other, entry]}, "6", 3) == {
        1: TaskState(State.FAILED, node="n2", exit_code=1, reason="NonZeroExitCode")
    }


def test_tasks_that_wait_are_one_entry_of_squeue():
    waiting = {"array_job_id": 6, "array_task_id": None, "job_state": "PENDING", "state_reason": "Resources"}
    running = {"array_job_id": 6, "array_task_id": 0, "job_state": "RUNNING", "nodes": "n1"}
    found = slurm.queued({"jobs": [running, waiting]}, "6", 3)
    assert found == {
        0: TaskState(State.RUNNING, node="n1"),
        1: TaskState(State.WAITING, reason="Resources"),
        2: TaskState(State.WAITING, reason="Resources"),
    }


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (["COMPLETING", "FAILED"], State.RUNNING),
        (["FAILED", "REQUEUED"], State.WAITING),
        (["NODE_FAIL"], State.LOST),
        ("TIMEOUT", State.OUT_OF_TIME),
        ("OUT_OF_MEMORY", State.OUT_OF_MEMORY),
        ("SOMETHING_NEW", State.UNKNOWN),
    ],
)
def test_states_of_slurm(told, state):
    entry = {"array_job_id": 6, "array_task_id": 0, "job_state": told}
    assert slurm.queued({"jobs": [entry]}, "6", 1)[0].state is state


def test_lines_of_squeue():
    found = slurm.listed("1|FAILED|n2|19200|NonZeroExitCode|\nN/A|PENDING||0|Priority|\n", 2)
    assert found == {
        0: TaskState(State.WAITING, reason="Priority"),
        1: TaskState(State.FAILED, node="n2", exit_code=75, reason="NonZeroExitCode"),
    }


def test_lines_of_sacct():
    lines = "6_0|COMPLETED|n1|0:0\n6_1|CANCELLED by 1000|None assigned|0:15\n6_2|FAILED|n2|75:0\n"
    assert slurm.accounted(lines, 3) == {
        0: TaskState(State.DONE, node="n1", exit_code=0),
        1: TaskState(State.CANCELLED, exit_code=143),
        2: TaskState(State.FAILED, node="n2", exit_code=75),
    }


@pytest.mark.parametrize(
    ("entry", "state", "code"),
    [
        ({"job_state": "Q"}, State.WAITING, None),
        ({"job_state": "R"}, State.RUNNING, None),
        ({"job_state": "X", "Exit_status": 0}, State.DONE, 0),
        ({"job_state": "F", "Exit_status": 75}, State.FAILED, 75),
        ({"job_state": "X", "Exit_status": 271}, State.CANCELLED, 143),
        ({"job_state": "F", "Exit_status": -29}, State.OUT_OF_TIME, 227),
        ({"job_state": "F", "Exit_status": -27}, State.OUT_OF_MEMORY, 229),
        ({"job_state": "F", "Exit_status": -4}, State.LOST, 252),
        ({"job_state": "F"}, State.UNKNOWN, None),
    ],
)
def test_states_of_pbs(entry, state, code):
    found = pbs.told_states({"Jobs": {"6[1].srv": entry | {"exec_host": "n2/0"}}}, 3)
    assert (found[1].state, found[1].exit_code, found[1].node) == (state, code, "n2")


def test_a_job_of_pbs_without_an_array_is_its_task():
    told = {"Jobs": {"6.srv": {"job_state": "F", "Exit_status": 0}}}
    assert pbs.told_states(told, 1) == {0: TaskState(State.DONE, exit_code=0)}


# The directory of a job.


@pytest.fixture
def job(tmp_path, ocean_path):
    """Return the job of a query in parts."""
    query = sieva.open(ocean_path).query("TEMP > 10")
    return JobDirectory.of(tmp_path / "jobs", work_of(query, ocean_path, 4), {"engine": "plain"})


def test_a_job_is_found_by_its_work(job, tmp_path, ocean_path):
    source = sieva.open(ocean_path)
    same = work_of(source.query("10 < TEMP"), ocean_path, 4)
    other = work_of(source.query("TEMP > 11"), ocean_path, 4)
    assert JobDirectory.of(tmp_path / "jobs", same, {"engine": "plain"}).path == job.path
    assert JobDirectory.of(tmp_path / "jobs", other, {"engine": "plain"}).path != job.path
    assert JobDirectory.of(tmp_path / "jobs", same, {"engine": "slurm"}).path != job.path
    assert [job.work(n) for n in range(job.works)] == same


def test_others_cannot_read_a_job(job):
    assert stat.S_IMODE(job.path.stat().st_mode) == 0o700


def test_only_one_may_submit(job):
    needs = Needs(1, 60, 1)
    first = job.claim([[0], [1]], needs, -1)
    assert first.number == 0
    # Two that have seen the same: one is first.
    assert job.claim([[1]], needs, 0).number == 1
    assert job.claim([[1]], needs, 0) is None
    assert [s.tasks for s in job.submissions()] == [((0,), (1,)), ((1,),)]
    # One that was refused leaves a gap; numbers still say which is which.
    third = job.claim([[0, 1]], needs, 1)
    job.take_back(1)
    assert [s.number for s in job.submissions()] == [0, 2]
    assert job.submission(2) == third
    assert job.claim([[0]], needs, 2).number == 3
    with pytest.raises(errors.FileNotFound, match="no submission 1"):
        job.submission(1)


def test_a_damaged_result_is_none(job):
    job.publish(0, b"result")
    assert job.has_result(0)
    path = job.path / "result" / "000000"
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    assert not job.has_result(0)
    with pytest.raises(errors.CorruptFile, match="000000 is damaged"):
        job.result(0)
    job.take_up_again()
    assert job.results() == set()


@given(st.binary(max_size=200), st.data())
def test_changed_bytes_are_not_believed(data, draw):
    whole = packed(data)
    assert unpacked(whole, "x") == data
    at = draw.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= draw.draw(st.integers(1, 255))
    for wrong in (bytes(changed), whole[:at]):
        with pytest.raises(errors.CorruptFile):
            unpacked(wrong, "x")


def test_jobs_that_were_done_long_ago_are_forgotten(job):
    job.mark("done")
    forget_old(job.path.parent)
    assert job.path.exists()
    os.utime(job.path / "done", (0, 0))
    forget_old(job.path.parent)
    assert not job.path.exists()


def test_only_jobs_are_forgotten(job):
    # What else lies in the directory is not ours, however it is called.
    foreign = job.path.parent / "results"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("x")
    copied = job.path.parent / "copied"
    job.mark("done")
    copied.mkdir()
    (copied / "job.json").write_bytes((job.path / "job.json").read_bytes())
    for folder in (foreign, copied):
        (folder / "done").touch()
        os.utime(folder / "done", (0, 0))
    forget_old(job.path.parent)
    assert (foreign / "thesis.txt").read_text() == "x"
    assert copied.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no JSON"),
        (b"{}", "no version"),
        (b"[]", "no JSON object"),
        (b"\xff", "no JSON"),
        (None, "no regular"),
    ],
)
def test_a_damaged_job_is_named_and_hides_no_other(job, text, said):
    odd = job.path.parent / "odd"
    odd.mkdir()
    if text is None:
        os.mkfifo(odd / "job.json")
    else:
        (odd / "job.json").write_bytes(text)
    with pytest.raises(errors.CorruptFile, match=f"odd.*{said}"):
        JobDirectory(odd)
    assert [known.id for known in known_jobs()] == [job.id]
    with pytest.raises(errors.CorruptFile, match="odd"):
        job_of("odd")


def test_a_job_of_another_number_of_works_is_damaged(job):
    """Who followed it would wait for ever, or for less than there is."""
    about = json.loads((job.path / "job.json").read_text())
    for works in (job.works - 1, job.works + 1):
        (job.path / "job.json").write_text(json.dumps(about | {"works": works}))
        with pytest.raises(
            errors.CorruptFile, match=f"has {works} pieces of work, and {job.works} are there"
        ):
            JobDirectory(job.path)


def test_a_job_of_an_earlier_version_says_less(job):
    about = json.loads((job.path / "job.json").read_text())
    known = ("version", "id", "engine", "works", "created")
    (job.path / "job.json").write_text(json.dumps({name: about[name] for name in known}))
    old = JobDirectory(job.path)
    assert (old.about["kind"], old.about["command"], old.about["options"]) == ("query", None, {})
    assert jobs_module.state_of(old).state == "unfinished"
    (job.path / "job.json").write_text(json.dumps(about | {"command": "rm -r ."}))
    with pytest.raises(errors.CorruptFile, match=r"job\.json has as command"):
        JobDirectory(job.path)


WHOLE = {"tasks": [[0], [1]], "needs": {"memory": GIB, "seconds": 60, "cpus": 1}, "at": 1.5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps(WHOLE | {"tasks": [[0, 9999]]}),
        json.dumps(WHOLE | {"tasks": [[0], []]}),
        json.dumps(WHOLE | {"tasks": [["0"]]}),
        json.dumps(WHOLE | {"tasks": [[True]]}),
        json.dumps(WHOLE | {"needs": {"memory": GIB}}),
        json.dumps(WHOLE | {"needs": WHOLE["needs"] | {"cpus": 0}}),
        json.dumps(WHOLE | {"at": "today"}),
    ],
)
def test_a_damaged_submission_is_named(job, text, capsys):
    path = job.path / "submission" / "000.json"
    path.write_text(json.dumps(WHOLE))
    assert job.submissions()[0].tasks == ((0,), (1,))
    path.write_text(text)
    with pytest.raises(errors.CorruptFile, match=r"submission/000\.json"):
        job.submissions()
    follower = Follower(job, None, options=BatchOptions(), needs=Needs(GIB, 60, 1), tell=print)
    with pytest.raises(errors.CorruptFile, match=r"submission/000\.json"):
        next(follower.results(1))
    # It hides no other in the list, is shown, and may be removed.
    assert main(["jobs", "list"]) == main(["jobs", "show", job.id]) == 0
    assert "damaged" in capsys.readouterr().out
    assert main(["jobs", "remove", job.id]) == 0
    assert not job.path.exists()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_list_of_jobs_is_as_wide_as_the_terminal(columns, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    asked = "SELECT " + ", ".join(f"avg(TEMP{i})" for i in range(20))
    _jobs_cli._print_rows(("job", "engine", "asked"), [("0123456789ab", "slurm", asked), ("1", "pbs", "x")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == columns
    assert [line.split()[0] for line in lines] == ["job", "0123456789ab", "1"]
    assert lines[1].endswith("...")
    assert lines[2].endswith(" x")


def test_a_worker_tells_of_a_damaged_job(job):
    job.claim([[0]], Needs(GIB, 60, 1), -1)
    (job.path / "submission" / "000.json").write_text("{}")
    words = [sys.executable, "-m", "sieva.engines.batch.worker", str(job.path), "0", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "corrupt-file: the job in" in done.stdout


def test_damaged_work_is_written_anew_by_who_asks_again(job, tmp_path, ocean_path):
    path = job.path / "work" / "000001"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"X")
    with pytest.raises(errors.CorruptFile, match="000001 is damaged") as found:
        job.work(1)
    assert found.value.hint == "ask again as before: it is written anew"
    same = work_of(sieva.open(ocean_path).query("TEMP > 10"), ocean_path, 4)
    assert JobDirectory.of(tmp_path / "jobs", same, {"engine": "plain"}).work(1) == same[1]
    assert path.read_bytes() == whole


def test_a_line_break_in_a_directory_is_no_line_of_a_script(tmp_path):
    odd = order(tmp_path, output=tmp_path / "a\ntouch pwned\n#")
    with pytest.raises(errors.InvalidValue, match="line break"):
        slurm.script(odd)


def test_jobs_of_somebody_else_are_not_believed(job, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(errors.PermissionDenied, match="is of somebody else"):
        JobDirectory(Path(job.path))


# What a task runs.


def run_worker(job, *words, **how):
    """Run the first task of a new submission of all work."""
    submission = job.claim([list(range(job.works))], Needs(GIB, 600, 1), len(job.submissions()) - 1)
    command = [
        sys.executable,
        "-m",
        "sieva.engines.batch.worker",
        *words,
        job.path,
        str(submission.number),
        "0",
    ]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **how)


def test_a_task_does_its_work_and_skips_what_is_done(job):
    assert run_worker(job).returncode == 0
    assert job.results() == set(range(job.works))
    again = run_worker(job)
    assert again.returncode == 0
    assert again.stdout.count("has its result") == job.works


def test_a_task_without_time_left_ends_with_what_it_did(job):
    found = run_worker(job, "--time-left", "0")
    assert (found.returncode, job.results()) == (UNFINISHED, {0})
    assert "work 1: left" in found.stdout


def test_a_task_that_cannot_keep_its_result_says_so(job, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "result/000000")

    job.claim([[0]], Needs(GIB, 60, 1), -1)
    monkeypatch.setattr("sieva.engines.batch.directory.write_whole", full)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(worker, "configure", lambda **_: None)
    assert worker.main([str(job.path), "0", "0"]) == 1
    told = capsys.readouterr().out
    assert "work 0: io-error: the result cannot be kept: [Errno 28] No space left on device" in told
    assert "this could not be noted either" in told


def test_a_task_says_why_it_failed(job):
    (job.path / "work" / "000001").write_bytes(b"nonsense")
    assert run_worker(job).returncode == 1
    assert job.results() == {0}
    assert job.failures()[1]["kind"] == "corrupt-file"


def test_a_number_that_was_taken_back_is_seen_when_another_takes_it(job):
    class Refusing:
        name = "plain"

        def submit(self, _order):
            raise errors.IoError("no queue")

    needs = Needs(GIB, 600, 1)
    job.claim([[0]], needs, -1)
    follower = Follower(job, Refusing(), options=BatchOptions(), needs=needs, tell=lambda _: None)
    follower._seen = 0
    mine = job.claim([[1]], needs, follower._seen)
    follower._seen = mine.number
    follower._submit(mine)
    assert (mine.number, follower._seen) == (1, 0)
    assert job.claim([[1]], needs, 0).number == 1


@pytest.mark.parametrize("name", ["result/000000", "work/000000"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(job, name):
    path = job.path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    read = job.result if name.startswith("result") else job.work
    with pytest.raises(errors.CorruptFile, match="no regular file"):
        read(0)


def test_what_is_longer_than_any_result_is_not_read(job):
    path = job.path / "result" / "000000"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(errors.CorruptFile, match="longer than"):
        job.result(0)


@pytest.mark.parametrize("name", ["submission", "result", "failed"])
def test_a_file_in_the_place_of_a_directory_hides_no_other_job(job, name, capsys):
    other = job.path.parent / "ffffffff"
    shutil.copytree(job.path, other)
    about = json.loads((other / "job.json").read_text())
    (other / "job.json").write_text(json.dumps({**about, "id": "ffffffff"}))
    shutil.rmtree(other / name)
    (other / name).write_text("")
    assert main(["jobs", "list"]) == 0
    out = capsys.readouterr().out
    assert job.id in out
    assert any("ffffffff" in line and "damaged" in line for line in out.splitlines())


def test_a_job_that_says_too_much_is_named_and_hides_no_other(job, capsys):
    other = job.path.parent / "ffffffff"
    shutil.copytree(job.path, other)
    with (other / "job.json").open("r+b") as file:
        file.truncate((16 << 20) + 1)
    assert main(["jobs", "list"]) == 0
    out, err = capsys.readouterr()
    assert job.id in out
    assert "ffffffff" in err
    assert "longer than" in err
