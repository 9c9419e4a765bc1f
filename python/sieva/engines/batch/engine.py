"""The engine: work becomes a job of a batch system, which is followed until all of it has its result."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from sieva import errors
from sieva.engines.batch.directory import JobDirectory, under_way
from sieva.engines.batch.finish import finish_later, finishes, without_limit
from sieva.engines.batch.follow import Follower, raise_failure
from sieva.engines.batch.needs import (
    PIECES,
    for_queries,
    most_tasks,
    needs_of,
    needs_of_build,
    tasks_of,
    tasks_of_build,
)
from sieva.engines.batch.options import BatchOptions, jobs_directory
from sieva.engines.batch.system import Needs
from sieva.engines.batch.systems import system_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sieva._index_job import BuildPrice
    from sieva._price import Price
    from sieva.engines._work import Work
    from sieva.engines.batch.system import Batch

# Results of jobs that are done are kept for so long: the same question asked again has its answer.
_KEPT = 7 * 86400.0


class BatchEngine:
    """Runs work as an array of tasks of a batch system.

    The work lies in files of a directory that all nodes have, and so do the results; the same work asked for
    again, also by another process, goes on with the job that there is.

    Parameters
    ----------
    batch
        ``"slurm"``, ``"pbs"``, ``"plain"``, or a `Batch`.
    tell
        Called with a line for people where something happened. None: nobody is told.
    command
        What `sieva jobs resume` runs, with the directory that it runs in. None: it was a program of Python.
    time_left
        Seconds for which this process follows. What was not done by then goes on, and is there for who asks
        again.
    leave
        Called once the job is submitted, in place of following it, with a line that says what to expect:
        another task runs `command` when the job has ended well. None: it is followed.
    **options
        See `BatchOptions`.

    Examples
    --------
    >>> engine = sieva.engines.engine_of("slurm", partition="short", tasks=16)  # doctest: +SKIP
    >>> src.query("TEMP > 25", engine=engine).count()  # doctest: +SKIP
    """

    parts_of_each = PIECES
    # A job waits in a queue for longer than this takes.
    reads_here = 1 << 20

    def __init__(
        self,
        batch: str | Batch,
        *,
        tell: Callable[[str], None] | None = None,
        command: Sequence[str] | None = None,
        time_left: float | None = None,
        leave: Callable[[str], NoReturn] | None = None,
        **options: Any,  # noqa: ANN401 - checked by BatchOptions
    ) -> None:
        self.batch = system_of(batch) if isinstance(batch, str) else batch
        self.name = self.batch.name
        self.options = BatchOptions.given(**options)
        self.tell = tell or (lambda _: None)
        self.command = command
        self._leave = leave
        self._until = None if time_left is None else time.monotonic() + time_left
        self._price: Price | None = None
        self._memory: int | None = None
        # Of a build: what it takes, and what its first stage is known by.
        self._build: BuildPrice | None = None
        self._sort_memory = 0
        self._key: str | None = None
        self._is_checked = False

    def priced(self, price: Price, memory: int | None = None) -> None:
        """Take the price of the query that is asked next, and the memory that it may take."""
        self._price, self._memory = price, memory

    def workers(self) -> int:
        """Return how many tasks a query is cut for, each with `parts_of_each` pieces of work."""
        return most_tasks(self.options)

    def run(self, work: Sequence[Work]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each work and its result, as they end, each once.

        Raises
        ------
        SievaError
            What a work raised, once the others were stopped. `Cancelled`: the job was cancelled, or the time
            to follow it is up.
        """
        if not work:
            return
        root = self.options.root()
        try:
            yield from self._run(work, root)
        except errors.SievaError:
            raise  # some of them are OSErrors
        except OSError as error:
            # Who asked may write a file, too, which is not at fault.
            raise _of_jobs(root, error) from error

    def _run(self, work: Sequence[Work], root: Path) -> Iterator[tuple[int, bytes]]:
        forget_old(root)
        self._check_finished(root)
        key, self._key = self._key, None
        job = JobDirectory.of(root, work, self._about(work), key)
        if work[0].kind == "index" and (job.is_done or (key and job.is_complete)):
            # What it built may have been removed since.
            job.remove()
            job = JobDirectory.of(root, work, self._about(work), key)
        # The later stages of a sort are of the process that began them.
        may_leave = work[0].kind != "index" or key is not None or finishes() in (None, job.id)
        yield from self._followed(job, may_leave=may_leave)

    def building(self, price: BuildPrice, question: str, memory: int) -> bool:
        """Take what the build takes that comes next; go on with the same one where it is under way.

        Parameters
        ----------
        price
            Of what is left to be built.
        question
            What is built of what, in which state: by that its first stage is known, as the work that is left
            is another whenever some is done.
        memory
            Bytes that a sort may take.

        Returns
        -------
        bool
            Whether it was under way: what is left is to be looked at anew.
        """
        self._build, self._sort_memory = price, memory
        self._key = question if price.regions else None
        root = self.options.root()
        try:
            self._check_finished(root)
            job = under_way(root, self.name, question)
            if job is None or not price.regions:
                return False
            self.tell(f"job {job.id}: {len(job.results())} of {job.works} pieces of work done, goes on")
            for _ in self._followed(job):
                pass
        except errors.SievaError:
            raise  # some of them are OSErrors
        except OSError as error:
            raise _of_jobs(root, error) from error
        return True

    @property
    def most_memory(self) -> int | None:
        """The bytes that a build may take in each task, where the memory of tasks was told."""
        told = self.options.memory
        return None if told is None else for_queries(Needs(told, 1, 1))

    def _check_finished(self, root: Path) -> None:
        """Raise what the job failed by that this process finishes, once."""
        name = finishes()
        if name is None or self._is_checked:
            return
        self._is_checked = True
        with suppress(errors.FileNotFound):
            raise_failure(JobDirectory(root / name))

    def _followed(self, job: JobDirectory, *, may_leave: bool = True) -> Iterator[tuple[int, bytes]]:
        """Yield the results of a job; where it is left to itself, this is no more."""
        _list(job)
        tasks, needs = self._asked_for(job)
        follower = Follower(
            job, self.batch, options=self.options, needs=needs, tell=self.tell, until=self._until
        )
        try:
            if self._leave is not None and may_leave:
                is_last = finishes() == job.id and job.submissions()
                if follower.carry_on(tasks) if is_last else follower.start(tasks):
                    self._leave(self._finish_later(job, needs))
            yield from follower.results(tasks)
        except (KeyboardInterrupt, SystemExit):
            self.tell(
                f"job {job.id} goes on, and the same question finds it: "
                f"sieva jobs show {job.id}, sieva jobs cancel {job.id}"
            )
            raise
        except errors.SievaError as error:
            if not isinstance(error, errors.CorruptFile) and not job.submissions():
                # It was refused: there is nothing to be shown of it.
                job.remove()
                unlist(job)
            raise

    def _asked_for(self, job: JobDirectory) -> tuple[int, Needs]:
        """Return how many tasks a job is shared out to, and what each may take."""
        if job.about["kind"] == "index" and self._build is not None:
            tasks = min(tasks_of_build(self._build, self.options), job.works)
            return tasks, needs_of_build(self._build, tasks, self.options, self._sort_memory)
        tasks = min(tasks_of(self._price, self.options), job.works)
        return tasks, needs_of(self._price, tasks, self.options, self._memory)

    def _finish_later(self, job: JobDirectory, needs: Needs) -> str:
        """Submit what runs the command when all tasks have ended; return what to expect."""
        # This command in its directory, not those that the job is known by: another may have asked first.
        command = self.command
        words = ["jobs", "resume", job.id] if command is None else without_limit(command, detached=True)
        return finish_later(job, self.batch, self.options, needs, words)

    def close(self) -> None:
        """Leave jobs as they are: they go on."""

    def _about(self, work: Sequence[Work]) -> dict[str, Any]:
        options = {name: value for name, value in vars(self.options).items() if value not in (None, (), "")}
        return {
            "engine": self.name,
            "kind": work[0].kind,
            "what": " ".join(self.command or ["a", work[0].kind, "of", "Python"]),
            "command": None if self.command is None else list(self.command),
            "cwd": os.getcwd(),  # noqa: PTH109 - as text
            "options": {name: str(v) if name == "directory" else v for name, v in options.items()},
        }


def from_command(
    batch: str, options: Sequence[str], time_left: float | None, detach: bool = False
) -> BatchEngine:
    """Return the engine of a command line, which `sieva jobs resume` runs again."""
    import click

    from sieva._printable import say

    def leave(told: str) -> NoReturn:
        say(told, err=True)
        raise click.exceptions.Exit(0)

    return BatchEngine(
        batch,
        tell=lambda text: say(text, err=True),
        command=click.get_current_context().find_root().obj,
        time_left=time_left,
        leave=leave if detach else None,
        **vars(BatchOptions.of(options)),
    )


def _of_jobs(root: Path, error: OSError) -> errors.SievaError:
    """Return the error of a directory of jobs that cannot be written or read."""
    kind = errors.PermissionDenied if isinstance(error, PermissionError) else errors.IoError
    return kind(
        f"the directory of jobs {str(root)!r}: {error.strerror or error}: {error.filename or root}",
        "`sieva jobs remove` makes room; --batch-option directory=DIR and SIEVA_JOBS name another place",
    )


def _list(job: JobDirectory) -> None:
    """Let `sieva jobs` know of a job whose directory is made elsewhere."""
    listed = jobs_directory() / job.id
    if job.path.parent == listed.parent:
        return
    listed.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        listed.symlink_to(job.path.absolute())


def unlist(job: JobDirectory) -> None:
    """Let `sieva jobs` know no more of a job that was removed."""
    listed = jobs_directory() / job.id
    if listed.is_symlink():
        listed.unlink(missing_ok=True)


def forget_old(root: Path) -> None:
    """Remove jobs of this user that were done long ago, and nothing else that lies there."""
    for done in root.glob("*/done"):
        with suppress(OSError, errors.SievaError):
            if time.time() - done.stat().st_mtime <= _KEPT or done.parent.is_symlink():
                continue
            job = JobDirectory(done.parent)
            if job.id == done.parent.name:
                job.remove()
