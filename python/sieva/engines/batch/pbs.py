"""PBS Professional and OpenPBS: qsub, qstat, qselect, qdel. Torque, whose arrays differ, is not supported."""

from __future__ import annotations

import getpass
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva.engines.batch.system import State, TaskState, clock, mebibytes, run

if TYPE_CHECKING:
    from sieva.engines.batch.system import Order

_STATES = {
    "Q": State.WAITING,
    "W": State.WAITING,
    "H": State.WAITING,
    "T": State.WAITING,
    "M": State.WAITING,
    "B": State.RUNNING,
    "R": State.RUNNING,
    "E": State.RUNNING,
    "S": State.RUNNING,
    "U": State.RUNNING,
}
# Why PBS itself ended a job, in the place of its exit code (job.h of OpenPBS).
_KILLED = {-29: State.OUT_OF_TIME, -28: State.OUT_OF_TIME, -27: State.OUT_OF_MEMORY, -26: State.OUT_OF_MEMORY}
# Exit codes from here on are of a signal.
_BY_SIGNAL = 256
_TERM = 15
_FORGOTTEN = ("Unknown Job Id", "Job has finished")
_NUMBER = re.compile(r"\[(\d+)\]")


class Pbs:
    """The `Batch` of PBS."""

    name = "pbs"

    def submit(self, order: Order) -> str:
        """Submit an array of tasks by qsub."""
        order.script.write_text(script(order))
        return run("qsub", str(order.script)).strip()

    def find(self, name: str) -> list[str]:
        """Return the arrays of this name that wait or run."""
        return run("qselect", "-u", getpass.getuser(), "-N", name).split()

    def states(self, job: str, tasks: int) -> dict[int, TaskState]:
        """Return where the tasks are; those that ended only where the server keeps a history."""
        try:
            told = json.loads(run("qstat", "-x", "-t", "-f", "-F", "json", job))
        except errors.IoError as error:
            if any(text in error.message for text in _FORGOTTEN):
                return {}
            raise
        except ValueError as error:
            raise errors.IoError(f"qstat did not print JSON: {error}") from error
        return told_states(told, tasks)

    def cancel(self, job: str) -> None:
        """Stop all tasks by qdel."""
        try:
            run("qdel", job)
        except errors.IoError as error:
            if not any(text in error.message for text in _FORGOTTEN):
                raise


def script(order: Order) -> str:
    """Return the batch script of an array."""
    needs = order.needs
    lines = [
        f"-N {order.name}",
        # Arrays of one are refused.
        *([f"-J 0-{order.tasks - 1}"] if order.tasks > 1 else []),
        f"-l select=1:ncpus={needs.cpus}:mem={mebibytes(needs.memory)}mb",
        f"-l walltime={clock(needs.seconds)}",
        # After a node failed.
        "-r y",
        # As the script writes the output itself, while the task runs.
        "-j oe",
        "-o /dev/null",
        # The environment of who asks, as with Slurm.
        "-V",
    ]
    lines += [f"-q {order.partition}"] if order.partition else []
    lines += [f"-A {order.account}"] if order.account else []
    lines += [f"-W depend=afterany:{order.after}"] if order.after else []
    lines += order.directives
    head = "\n".join(f"#PBS {line}" for line in lines)
    number = '"${PBS_ARRAY_INDEX:-0}"'
    output = f"exec >> {shlex.quote(str(order.output))}/{number}.txt 2>&1"
    return f"#!/bin/bash\n{head}\n\n{output}\n{order.body(number)}"


def told_states(told: dict[str, Any], tasks: int) -> dict[int, TaskState]:
    """Return the tasks of an array in the JSON of ``qstat -t -f``."""
    found: dict[int, TaskState] = {}
    whole: TaskState | None = None
    for name, entry in told.get("Jobs", {}).items():
        number = _NUMBER.search(name)
        state = _state(entry)
        code = entry.get("Exit_status")
        task = TaskState(
            state,
            node=str(entry.get("exec_host") or "").partition("/")[0],
            exit_code=int(code) % _BY_SIGNAL + 128 * (int(code) >= _BY_SIGNAL) if code is not None else None,
            reason=str(entry.get("comment") or "") if state.is_over and state is not State.DONE else "",
        )
        if number is not None:
            found[int(number[1])] = task
        else:
            whole = task
    if whole is not None and (tasks == 1 or not whole.state.is_over):
        found = dict.fromkeys(range(tasks), whole) | found
    return found


def _state(entry: dict[str, Any]) -> State:
    letter = str(entry["job_state"])
    if letter not in {"F", "X"}:
        return _STATES.get(letter, State.UNKNOWN)
    code = entry.get("Exit_status")
    if code is None:
        # Deleted before it began, or its node was lost.
        return State.UNKNOWN
    if int(code) == 0:
        return State.DONE
    if int(code) == _BY_SIGNAL + _TERM:
        return State.CANCELLED
    return _KILLED.get(int(code), State.FAILED if int(code) > 0 else State.LOST)
