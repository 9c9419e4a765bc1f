"""What finishes a job that nobody follows: a task that runs the command when the array has ended.

It looks how that ended: where work is left that may yet be done, it submits it once more, and one more task
after that; else it has the answer, or says what went wrong.

::

    ID/submission/000.end.json  which command, in which directory
    ID/submission/000.end.id    the batch system's name of it, once it is known
    ID/submission/000.end.sh    its script, and in 000.end.out/ its output

Commands differ that ask the same, as in where the answer goes: each has its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva.engines.batch.about import object_of
from sieva.engines.batch.files import MOST_TOLD, read_regular, write_whole
from sieva.engines.batch.options import jobs_directory
from sieva.engines.batch.system import Order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sieva.engines.batch.directory import JobDirectory
    from sieva.engines.batch.options import BatchOptions
    from sieva.engines.batch.system import Batch, Needs

# Of such a task, the id of its job.
_FINISHES = "SIEVA_FINISHES"
_TOLD = re.compile(r"([0-9]+)\.end\.json")


def finish_later(
    job: JobDirectory, batch: Batch, options: BatchOptions, needs: Needs, words: Sequence[str]
) -> str:
    """Submit what runs a command when all tasks have ended; return a line that says what to expect.

    Parameters
    ----------
    job, batch, options
        The job, the system that runs it, and what that is asked for.
    needs
        What the command may take.
    words
        Of the command, without its name.
    """
    cwd, after = str(Path.cwd()), job.batch_id(job.submissions()[-1].number)
    asked = {"words": list(words), "cwd": cwd, "after": after}
    for number in _numbers(job):
        if _is_waiting(job, batch, number, asked):
            return _expected(job, _name_of(job, number) or "", _place(job, number, "out"))
    number = _claim(job, asked)
    output = _place(job, number, "out")
    output.mkdir(exist_ok=True)
    own = shlex.join([sys.executable, "-m", "sieva", *words])
    order = Order(
        # Of another name than the array, which is found by its own.
        name=end_of(job),
        command=["/bin/sh", "-c", f"cd {shlex.quote(cwd)} && exec {own}"],
        tasks=1,
        needs=needs,
        script=_place(job, number, "sh"),
        output=output,
        partition=options.partition,
        account=options.account,
        directives=options.directives,
        setup=options.setup,
        after=after,
        environment={"SIEVA_JOBS": str(jobs_directory()), _FINISHES: job.id},
    )
    try:
        name = batch.submit(order)
    except errors.SievaError:
        _place(job, number, "json").unlink()
        raise
    write_whole(_place(job, number, "id"), name.encode())
    if job.is_cancelled:
        # At the same time: who cancelled may not have seen it.
        batch.cancel(name)
        raise errors.Cancelled(f"job {job.id} was cancelled", f"`sieva jobs resume {job.id}` goes on with it")
    return _expected(job, name, output)


def finishes() -> str | None:
    """Return the id of the job that this process finishes; None: it finishes none."""
    return os.environ.get(_FINISHES)


def end_of(job: JobDirectory) -> str:
    """Return by which name what finishes a job is found."""
    return f"end-{job.id}"


def finishers(job: JobDirectory) -> list[str]:
    """Return the batch system's names of what finishes a job."""
    return [name for number in _numbers(job) if (name := _name_of(job, number)) is not None]


def without_limit(command: Sequence[str], *, detached: bool = False) -> list[str]:
    """Return the words of a command, to be run again until it has its answer.

    Parameters
    ----------
    command
        Its words.
    detached
        Whether it does not wait this time either.

    Examples
    --------
    >>> without_limit(["query", "SELECT ...", "--time-left", "60", "--engine", "slurm", "--detach"])
    ['query', 'SELECT ...', '--engine', 'slurm']
    """
    option = "--time-left"
    words = [word for word in command if not word.startswith(f"{option}=")]
    words = [word for word in words if detached or word != "--detach"]
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return words


def _expected(job: JobDirectory, name: str, output: Path) -> str:
    return f"job {job.id}: {name} finishes it when it is done, and writes to {output / '0.txt'}"


def _is_waiting(job: JobDirectory, batch: Batch, number: int, asked: dict[str, Any]) -> bool:
    """Whether this was asked for before, and is still to come: two would write the same file."""
    name = _name_of(job, number)
    if name is None or object_of(job.path, f"submission/{number:03}.end.json") != asked:
        return False
    try:
        states = batch.states(name, 1)
    except errors.IoError:
        return False
    return 0 in states and not states[0].state.is_over


def _claim(job: JobDirectory, asked: dict[str, Any]) -> int:
    """Return the number of a new one, which nobody else has."""
    number = max(_numbers(job), default=-1) + 1
    while True:
        try:
            with _place(job, number, "json").open("x") as file:
                file.write(json.dumps(asked))
        except FileExistsError:
            number += 1
        else:
            return number


def _numbers(job: JobDirectory) -> list[int]:
    names = os.listdir(job.path / "submission")  # noqa: PTH208 - the names alone
    return sorted(int(found[1]) for name in names if (found := _TOLD.fullmatch(name)))


def _name_of(job: JobDirectory, number: int) -> str | None:
    with suppress(FileNotFoundError):
        return read_regular(_place(job, number, "id"), MOST_TOLD).decode(errors="replace")
    return None


def _place(job: JobDirectory, number: int, what: str) -> Path:
    return job.path / "submission" / f"{number:03}.end.{what}"
