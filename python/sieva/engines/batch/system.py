"""What a batch system is to us: it takes an array of tasks, and tells, stops and forgets them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

UNFINISHED = 75
"""Exit code of a task that has work left: EX_TEMPFAIL, try again."""

# A controller that does not answer is asked again later.
_SECONDS = 120


class State(Enum):
    """Where a task is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    LOST = "lost"
    """Its node failed, or it was put aside for another job and is not queued again."""
    UNKNOWN = "unknown"
    """The batch system has forgotten it."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self not in {State.WAITING, State.RUNNING}


@dataclass(frozen=True)
class TaskState:
    """What the batch system tells of a task.

    Attributes
    ----------
    state
        Where it is.
    node
        Where it runs or ran; empty where that is not told.
    exit_code
        None where that is not told.
    reason
        In the system's words.
    """

    state: State
    node: str = ""
    exit_code: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        told = [self.reason] if self.reason else []
        told += [f"exit code {self.exit_code}"] if self.exit_code else []
        told += [f"on {self.node}"] if self.node else []
        return self.state.value + (f" ({', '.join(told)})" if told else "")


@dataclass(frozen=True)
class Needs:
    """What a task may take: bytes of memory, seconds, processors."""

    memory: int
    seconds: int
    cpus: int


@dataclass(frozen=True)
class Order:
    """An array of tasks to be submitted.

    Attributes
    ----------
    name
        By which it is found again.
    command
        What a task runs. Its number, from 0, is put behind.
    tasks
        How many there are.
    needs
        Of each.
    script
        File that the script is written to.
    output
        Directory of the tasks' output; that of task n is ``output_of(n)``.
    partition, account
        In the system's words: partition or queue, account or project. None: its default.
    directives
        More lines for the system, without its mark: ``"--qos=long"``.
    setup
        Lines of shell before the command, such as ``"module load python"``.
    after
        A job that has to end before this one begins, however it ends: who comes then looks how.
    at_once
        Of systems that leave it to us: how many tasks run at a time.
    """

    name: str
    command: Sequence[str]
    tasks: int
    needs: Needs
    script: Path
    output: Path
    partition: str | None = None
    account: str | None = None
    directives: Sequence[str] = ()
    setup: str = ""
    after: str | None = None
    at_once: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def output_of(self, task: int) -> Path:
        """Return the file with the output of a task."""
        return self.output / f"{task}.txt"

    def body(self, number: str) -> str:
        """Return the script after its directives; `number` is how the shell names the task's number."""
        # In place of the shell, so that signals reach it.
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return "\n".join(filter(None, [self.setup, *lines, f"exec {shlex.join(self.command)} {number}\n"]))


class Batch(Protocol):
    """A batch system."""

    name: str
    """As ``engine=`` has it."""

    def submit(self, order: Order) -> str:
        """Submit an array of tasks; return the system's name of it.

        Raises
        ------
        SievaError
            The system refuses it, or is not there.
        """

    def find(self, name: str) -> list[str]:
        """Return the arrays of this user with this name that wait or run."""

    def states(self, job: str, tasks: int) -> dict[int, TaskState]:
        """Return where each task of an array is; a task that is not told of is missing.

        Raises
        ------
        IoError
            The system does not answer now.
        """

    def cancel(self, job: str) -> None:
        """Stop all tasks of an array; one that is over is left as it is."""


def run(*command: str) -> str:
    """Run a program of a batch system; return what it prints.

    Raises
    ------
    FileNotFound
        It is not installed here.
    IoError
        It failed; the message has what it said.
    """
    program = shutil.which(command[0])
    if program is None:
        raise errors.FileNotFound(
            f"no program {command[0]!r} in PATH", "ask where jobs can be submitted: often on login nodes only"
        )
    try:
        done = subprocess.run(  # noqa: S603 - of the batch system, with arguments of ours
            [program, *command[1:]],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise errors.IoError(f"{command[0]} did not answer within {_SECONDS} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise errors.IoError(f"{shlex.join(command[:1])}: {said}")
    return done.stdout


def clock(seconds: int) -> str:
    """Return a time as batch systems take it: ``"26:03:00"``; full minutes, as some have no finer ones."""
    minutes = -(-seconds // 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def mebibytes(size: int) -> int:
    """Return bytes as full MiB."""
    return -(-size // (1 << 20))
