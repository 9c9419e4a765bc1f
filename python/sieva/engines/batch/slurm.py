"""Slurm: sbatch, squeue, sacct, scancel. Works with 20.11 and newer; tested with 22.05."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva.engines.batch.system import State, TaskState, clock, mebibytes, run

if TYPE_CHECKING:
    from sieva.engines.batch.system import Order

# Seconds before its end at which a task is told to publish what it has.
TOLD_BEFORE = 60

_STATES = {
    "PENDING": State.WAITING,
    "CONFIGURING": State.WAITING,
    "REQUEUED": State.WAITING,
    "REQUEUE_HOLD": State.WAITING,
    "REQUEUE_FED": State.WAITING,
    "SPECIAL_EXIT": State.WAITING,
    "RESV_DEL_HOLD": State.WAITING,
    "RUNNING": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "STOPPED": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "RESIZING": State.RUNNING,
    "STAGE_OUT": State.RUNNING,
    "COMPLETING": State.RUNNING,
    "COMPLETED": State.DONE,
    "FAILED": State.FAILED,
    "CANCELLED": State.CANCELLED,
    "REVOKED": State.CANCELLED,
    "TIMEOUT": State.OUT_OF_TIME,
    "DEADLINE": State.OUT_OF_TIME,
    "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
    "NODE_FAIL": State.LOST,
    "BOOT_FAIL": State.LOST,
    "PREEMPTED": State.LOST,
}
_FORGOTTEN = "Invalid job id"
# From so many jobs of others on, squeue's JSON is too dear to be asked for every few seconds.
_MANY = 500


class Slurm:
    """The `Batch` of Slurm."""

    name = "slurm"

    def __init__(self) -> None:
        self._asks_json = True
        self._has_accounts: bool | None = None

    def submit(self, order: Order) -> str:
        """Submit an array of tasks by sbatch."""
        order.script.write_text(script(order))
        # A cluster's name may follow the number.
        return run("sbatch", "--parsable", str(order.script)).strip().split(";")[0]

    def find(self, name: str) -> list[str]:
        """Return the arrays of this name that wait or run."""
        # Of an array the number of the whole, which %i is not.
        return sorted(set(run("squeue", "-h", "--me", "-n", name, "-o", "%F").split()))

    def states(self, job: str, tasks: int) -> dict[int, TaskState]:
        """Return where the tasks are: by squeue, and by sacct what squeue has forgotten."""
        try:
            found = self._queued(job, tasks)
        except errors.IoError as error:
            if _FORGOTTEN not in error.message:
                raise
            found = {}
        if len(found) < tasks and self._accounts():
            found = accounted(run("sacct", *_SACCT, "-j", job), tasks) | found
        return found

    def cancel(self, job: str) -> None:
        """Stop all tasks by scancel."""
        try:
            run("scancel", job)
        except errors.IoError as error:
            if _FORGOTTEN not in error.message:
                raise

    def _queued(self, job: str, tasks: int) -> dict[int, TaskState]:
        if self._asks_json:
            try:
                told = json.loads(run("squeue", "--json", "-j", job))
            except (errors.IoError, ValueError) as error:
                if isinstance(error, errors.IoError) and not _lacks_json(error.message):
                    raise
                self._asks_json = False
            else:
                # Before 23.11 the option -j is not looked at beside --json, and all jobs are told of.
                self._asks_json = len(told["jobs"]) < _MANY + tasks
                if found := queued(told, job, tasks):
                    return found
                # A controller that does not answer gives an empty list here, and an error below.
        return listed(run("squeue", *_SQUEUE, "-j", job), tasks)

    def _accounts(self) -> bool:
        """Return whether ended jobs are told by sacct; most sites keep accounts, small ones do not."""
        if self._has_accounts is None:
            try:
                run("sacct", "-n", "-X", "-P", "-o", "JobID")
                self._has_accounts = True
            except errors.SievaError:
                self._has_accounts = False
        return self._has_accounts


# The long form, as the short one has no exit codes.
_SQUEUE = ("-h", "-r", "-t", "all", "-O", "ArrayTaskID:|,State:|,NodeList:|,exit_code:|,Reason:|")
_SACCT = ("-n", "-X", "-P", "-o", "JobID,State,NodeList,ExitCode")


def script(order: Order) -> str:
    """Return the batch script of an array."""
    needs = order.needs
    lines = [
        f"--job-name={order.name}",
        f"--array=0-{order.tasks - 1}",
        "--ntasks=1",
        f"--cpus-per-task={needs.cpus}",
        f"--mem={mebibytes(needs.memory)}M",
        f"--time={clock(needs.seconds)}",
        f'--output="{_escaped(str(order.output))}/%a.txt"',
        # After a node failed, and into the same file.
        "--requeue",
        "--open-mode=append",
        # To the batch shell, in whose place the command runs.
        f"--signal=B:TERM@{TOLD_BEFORE}",
    ]
    lines += [f"--partition={order.partition}"] if order.partition else []
    lines += [f"--account={order.account}"] if order.account else []
    if order.after:
        lines += [f"--dependency=afterany:{order.after}"]
    lines += order.directives
    head = "\n".join(f"#SBATCH {line}" for line in lines)
    number = '"$SLURM_ARRAY_TASK_ID"'
    return f"#!/bin/bash\n{head}\n\n{order.body(number)}"


def _escaped(path: str) -> str:
    """Return a path that Slurm takes as it is within quotes: a percent sign begins a pattern.

    Raises
    ------
    InvalidValue
        It has a line break, which no directive of a script can hold.
    """
    if any(character in path for character in "\n\r\0"):
        raise errors.InvalidValue(
            f"the directory {path!r} has a line break in its name, which a batch script cannot hold",
            "give another one: --batch-option directory=DIR, or the variable SIEVA_JOBS",
        )
    return re.sub(r'(["\\])', r"\\\1", path).replace("%", "%%")


def _lacks_json(message: str) -> bool:
    """Whether squeue failed for it knows no ``--json``, or has no plugin for it."""
    return any(text in message for text in ("unrecognized option", "invalid option", "plugin", "serializ"))


def queued(told: dict[str, Any], job: str, tasks: int) -> dict[int, TaskState]:
    """Return the tasks of an array in the JSON of squeue, of whatever version.

    Up to 22.05 numbers and states are plain, since 23.02 numbers are ``{"set": true, "number": 3}``, states
    lists, and exit codes of the form that the system's ``wait`` has are taken apart.
    """
    found: dict[int, TaskState] = {}
    for entry in told["jobs"]:
        if _number(entry["array_job_id"]) != int(job):
            continue
        state = _state(entry["job_state"])
        reason = str(entry.get("state_reason") or "")
        task = TaskState(
            state,
            node=str(entry.get("nodes") or ""),
            exit_code=_exit_code(entry.get("exit_code")) if state.is_over else None,
            reason="" if reason == "None" else reason,
        )
        number = _number(entry.get("array_task_id"))
        if number is not None:
            found[number] = task
        else:
            # Those that wait are one entry.
            found = dict.fromkeys(range(tasks), task) | found
    return found


def listed(lines: str, tasks: int) -> dict[int, TaskState]:
    """Return the tasks of an array in the lines of squeue: ``0|FAILED|n1|19200|NonZeroExitCode|``."""
    found: dict[int, TaskState] = {}
    for line in lines.splitlines():
        number, name, node, code, reason = line.removesuffix("|").split("|", 4)
        state = _state(name)
        task = TaskState(
            state,
            node=node,
            exit_code=_exit_code(int(code)) if state.is_over else None,
            reason="" if reason == "None" else reason,
        )
        if number.isdecimal():
            found[int(number)] = task
        else:
            found = dict.fromkeys(range(tasks), task) | found
    return found


def accounted(lines: str, tasks: int) -> dict[int, TaskState]:
    """Return the tasks of an array in the lines of sacct: ``17_3|CANCELLED by 0|n1|0:15``."""
    found: dict[int, TaskState] = {}
    for line in lines.splitlines():
        name, state, node, code = line.split("|")
        number = name.partition("_")[2]
        exit_code, _, signal = code.partition(":")
        task = TaskState(
            _state(state.split()[0] if state else ""),
            node="" if node == "None assigned" else node,
            exit_code=int(exit_code) or (128 + int(signal) if signal not in ("", "0") else 0),
        )
        if number.isdecimal():
            found[int(number)] = task
        else:
            found = dict.fromkeys(range(tasks), task) | found
    return found


def _state(told: str | list[str]) -> State:
    """Return a state by its name; since 23.02 there may be several: the state and flags."""
    names = [told] if isinstance(told, str) else told
    known = [_STATES[name] for name in names if name in _STATES]
    going = [state for state in known if not state.is_over]
    return (going or known or [State.UNKNOWN])[0]


def _number(told: Any) -> int | None:  # noqa: ANN401 - JSON
    if isinstance(told, dict):
        told = told["number"] if told.get("set") else None
    return None if told is None else int(told)


def _exit_code(told: Any) -> int | None:  # noqa: ANN401 - JSON
    """Return an exit code, of a signal 128 more than its number, as shells have it."""
    if isinstance(told, dict):
        signal = _number((told.get("signal") or {}).get("id", (told.get("signal") or {}).get("signal_id")))
        return 128 + signal if signal else _number(told.get("return_code"))
    if told is None:
        return None
    return 128 + (told & 127) if told & 127 else int(told) >> 8
