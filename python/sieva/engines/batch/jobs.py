"""What `sieva jobs` shows and does: the jobs of this user, and where each is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sieva import errors
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.engine import unlist
from sieva.engines.batch.finish import end_of, finishers
from sieva.engines.batch.follow import Follower
from sieva.engines.batch.needs import needs_of, tasks_of
from sieva.engines.batch.options import BatchOptions, jobs_directory
from sieva.engines.batch.system import State, TaskState
from sieva.engines.batch.systems import system_of

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class JobState:
    """Where a job is.

    Attributes
    ----------
    id, engine, what
        What it is called, who runs it, and what was asked.
    state
        ``"done"``, ``"failed"``, ``"cancelled"``, ``"running"``, ``"waiting"``, ``"unfinished"`` (nobody is
        at it), ``"damaged"``, or ``"unknown"`` (the batch system does not answer).
    works, done
        Pieces of work, and those that have a result.
    created
        Seconds since 1970.
    directory
        Where all that is known of it lies.
    tasks
        How many tasks of what was submitted are in which state.
    batch_ids
        The batch system's names of what was submitted.
    failures
        Why pieces of work have no result.
    """

    id: str
    engine: str
    what: str
    state: str
    works: int
    done: int
    created: float
    directory: str
    tasks: dict[str, int]
    batch_ids: list[str]
    failures: list[str]


@dataclass(frozen=True)
class TaskEnd:
    """A task that has not done its work, with the end of its output."""

    submission: int
    task: int
    state: TaskState
    lines: str


def known_jobs(tell: Callable[[errors.SievaError], None] | None = None) -> list[JobDirectory]:
    """Return the jobs of this user, the newest first; those that are damaged are told of, and left out."""
    found = []
    for path in jobs_directory().glob("[!.]*"):
        try:
            found.append(JobDirectory(path))
        except (errors.FileNotFound, errors.PermissionDenied):
            # The directory was elsewhere and is gone, or somebody else's, or is none of a job.
            continue
        except (errors.CorruptFile, errors.Unsupported) as error:
            if tell is not None:
                tell(error)
    return sorted(found, key=lambda job: -float(job.about["created"]))


def job_of(name: str) -> JobDirectory:
    """Return the job of an id, or of the beginning of one.

    Raises
    ------
    FileNotFound
        There is none.
    AmbiguousName
        There are several.
    """
    found = [job for job in known_jobs() if name and job.id.startswith(name)]
    if not found and name and name == Path(name).name and (jobs_directory() / name).exists():
        # Says what is wrong with it.
        return JobDirectory(jobs_directory() / name)
    if not found:
        raise errors.FileNotFound(f"there is no job {name!r}", "`sieva jobs` lists those of yours")
    if len(found) > 1:
        raise errors.AmbiguousName(f"{name!r} begins several: {', '.join(job.id for job in found)}")
    return found[0]


def state_of(job: JobDirectory) -> JobState:
    """Return where a job is; the batch system is asked where that is not known without it."""
    try:
        return _state_of(job)
    except errors.CorruptFile as error:
        # It is listed beside the others, and may be removed.
        about = job.about
        try:
            done = len(job.results())
        except errors.CorruptFile:
            done = 0
        known = (job.id, str(about["engine"]), str(about["what"]), "damaged", job.works, done)
        return JobState(*known, float(about["created"]), str(job.path), {}, [], [error.message])


def _state_of(job: JobDirectory) -> JobState:
    done = len(job.results())
    failures = [
        f"work {number}, task {why['task']} on {why['host']}: {why['kind']}: {why['message']}"
        for number, why in job.failures().items()
    ]
    tasks: Counter[State] = Counter()
    is_told = True
    if done < job.works:
        try:
            tasks.update(state.state for states in _states(job).values() for state in states.values())
        except errors.SievaError:
            is_told = False
    ids = [job.batch_id(submission.number) for submission in job.submissions()]
    return JobState(
        id=job.id,
        engine=str(job.about["engine"]),
        what=str(job.about["what"]),
        state=_word(job, done, bool(failures), tasks) if is_told else "unknown",
        works=job.works,
        done=done,
        created=float(job.about["created"]),
        directory=str(job.path),
        tasks={state.value: n for state, n in tasks.items()},
        batch_ids=[name for name in ids if name is not None],
        failures=failures,
    )


def _word(job: JobDirectory, done: int, has_failed: bool, tasks: Counter[State]) -> str:
    if done == job.works:
        return "done"
    if job.is_cancelled:
        return "cancelled"
    if has_failed:
        return "failed"
    if tasks[State.RUNNING]:
        return "running"
    if tasks[State.WAITING]:
        return "waiting"
    return "failed" if tasks[State.FAILED] else "unfinished"


def _states(job: JobDirectory) -> dict[int, dict[int, TaskState]]:
    """Return the states of the tasks of each submission."""
    batch = system_of(job.about["engine"])
    found = {}
    for submission in job.submissions():
        name = job.batch_id(submission.number)
        if name is not None:
            found[submission.number] = batch.states(name, len(submission.tasks))
    return found


def unfinished_tasks(job: JobDirectory) -> list[TaskEnd]:
    """Return the tasks that are over and have work left, each with the end of its output."""
    results = job.results()
    states = _states(job)
    found = []
    for submission in job.submissions():
        for task, numbers in enumerate(submission.tasks):
            state = states.get(submission.number, {}).get(task, TaskState(State.UNKNOWN))
            if state.state.is_over and not set(numbers) <= results:
                lines = job.last_lines(submission.number, task)
                found.append(TaskEnd(submission.number, task, state, lines))
    return found


def cancel(job: JobDirectory) -> None:
    """Stop all tasks of a job; what was done stays."""
    job.mark("cancelled")
    batch = system_of(job.about["engine"])
    # Before the tasks: their end is what it waits for. One that was submitted a moment ago has no name yet.
    for finisher in dict.fromkeys([*finishers(job), *batch.find(end_of(job))]):
        batch.cancel(finisher)
    for submission in job.submissions():
        job.cancel(submission.number)
        name = job.batch_id(submission.number)
        if name is not None:
            batch.cancel(name)


def resume(job: JobDirectory, tell: Callable[[str], None]) -> None:
    """Follow a job of a program of Python until all of its results are there.

    Raises
    ------
    SievaError
        As `BatchEngine.run`.
    """
    options = BatchOptions.given(**job.about["options"])
    submissions = job.submissions()
    tasks = min(tasks_of(None, options), job.works)
    needs = submissions[-1].needs if submissions else needs_of(None, tasks, options)
    follower = Follower(job, system_of(job.about["engine"]), options=options, needs=needs, tell=tell)
    for _ in follower.results(tasks):
        pass


def remove(job: JobDirectory) -> None:
    """Remove a job with its results, stopped before.

    Raises
    ------
    InvalidValue
        It is not over.
    """
    state = state_of(job).state
    if state in {"running", "waiting", "unknown"}:
        raise errors.InvalidValue(f"job {job.id} is {state}", f"stop it first: sieva jobs cancel {job.id}")
    job.remove()
    unlist(job)
