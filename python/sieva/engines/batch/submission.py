"""What was submitted of a job: who does which work, as a file of its directory has it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sieva.engines.batch.about import damaged
from sieva.engines.batch.system import Needs

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Submission:
    """An array of tasks that was submitted, or is about to be.

    Attributes
    ----------
    number
        From 0.
    tasks
        The numbers of the work that each task does, in order.
    needs
        What each may take.
    at
        Seconds since 1970.
    done
        How many results there were; -1: not known.
    """

    number: int
    tasks: tuple[tuple[int, ...], ...]
    needs: Needs
    at: float
    done: int = -1


def submission_of(path: Path, number: int, works: int, told: dict[str, Any]) -> Submission:
    """Return the submission that a file tells of.

    Parameters
    ----------
    path, works
        The directory of the job, and how many pieces of work it has.
    number, told
        Of the submission, and what its file says.

    Raises
    ------
    CorruptFile
        It says nothing that was submitted of this job.
    """
    tasks, needs, at = (told.get(name) for name in ("tasks", "needs", "at"))
    done = told.get("done", -1)
    is_whole = _are_tasks(tasks, works) and _are_needs(needs) and isinstance(at, int | float)
    is_whole = is_whole and _is_number(done, -1)
    if not is_whole:
        raise damaged(path, f"submission/{number:03}.json is none of its {works} pieces of work")
    return Submission(number, tuple(map(tuple, tasks)), Needs(**needs), at, done)  # type: ignore[arg-type] # checked


def _are_tasks(tasks: object, works: int) -> bool:
    return (
        isinstance(tasks, list)
        and all(isinstance(task, list) and task for task in tasks)
        and all(_is_number(piece, 0) and piece < works for task in tasks for piece in task)
    )


def _are_needs(needs: object) -> bool:
    return (
        isinstance(needs, dict)
        and needs.keys() == {field.name for field in fields(Needs)}
        and all(_is_number(need, 1) for need in needs.values())
    )


def _is_number(value: object, least: int) -> bool:
    """Whether a value of JSON is an integer that is large enough; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
