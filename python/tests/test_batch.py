"""What batch systems have in common: options, needs, scripts, states."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sieva import errors
from sieva._price import Expected, Price
from sieva.engines.batch import needs as needs_module
from sieva.engines.batch import pbs, slurm
from sieva.engines.batch.engine import BatchEngine
from sieva.engines.batch.follow import shares
from sieva.engines.batch.options import BatchOptions, seconds_of
from sieva.engines.batch.system import Needs, Order, State, TaskState

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


def test_a_line_break_in_a_directory_is_no_line_of_a_script(tmp_path):
    odd = order(tmp_path, output=tmp_path / "a\ntouch pwned\n#")
    with pytest.raises(errors.InvalidValue, match="line break"):
        slurm.script(odd)


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
