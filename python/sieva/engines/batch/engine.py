"""The engine: work becomes a job of a batch system, which is followed until all of it has its result."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sieva import errors
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.follow import Follower
from sieva.engines.batch.needs import PIECES, most_tasks, needs_of, tasks_of
from sieva.engines.batch.options import BatchOptions, jobs_directory
from sieva.engines.batch.system import Order
from sieva.engines.batch.systems import system_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sieva._price import Price
    from sieva.engines._work import Work
    from sieva.engines.batch.system import Batch, Needs

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
        forget_old(root)
        job = JobDirectory.of(root, work, self._about(work))
        if job.is_done and work[0].kind == "index":
            # What it built may have been removed since.
            job.remove()
            job = JobDirectory.of(root, work, self._about(work))
        _list(job)
        price = None if work[0].kind == "index" else self._price
        tasks = min(tasks_of(price, self.options), len(work))
        needs = needs_of(price, tasks, self.options, self._memory)
        follower = Follower(
            job, self.batch, options=self.options, needs=needs, tell=self.tell, until=self._until
        )
        try:
            if self._leave is not None and follower.start(tasks):
                self._leave(self._finish_later(job, needs))
            yield from follower.results(tasks)
        except (KeyboardInterrupt, SystemExit):
            self.tell(
                f"job {job.id} goes on, and the same question finds it: "
                f"sieva jobs show {job.id}, sieva jobs cancel {job.id}"
            )
            raise
        except errors.SievaError:
            if not job.submissions():
                # It was refused: there is nothing to be shown of it.
                job.remove()
                unlist(job)
            raise

    def _finish_later(self, job: JobDirectory, needs: Needs) -> str:
        """Submit what runs the command when all tasks have ended well; return what to expect."""
        folder = job.path / "submission"
        output = folder / "finish.out"
        output.mkdir(exist_ok=True)
        from sieva.engines.batch.jobs import without_limit

        # This command in its directory, not those that the job is known by: another may have asked first.
        words = ["jobs", "resume", job.id] if self.command is None else without_limit(self.command)
        own = shlex.join([sys.executable, "-m", "sieva", *words])
        order = Order(
            # Of another name than the array, which is found by its own.
            name=f"end-{job.id}",
            command=["/bin/sh", "-c", f"cd {shlex.quote(str(Path.cwd()))} && exec {own}"],
            tasks=1,
            needs=needs,
            script=folder / "finish.sh",
            output=output,
            partition=self.options.partition,
            account=self.options.account,
            directives=self.options.directives,
            setup=self.options.setup,
            after=job.batch_id(job.submissions()[-1].number),
            environment={"SIEVA_JOBS": str(jobs_directory())},
        )
        name = self.batch.submit(order)
        return f"job {job.id}: {name} finishes it when it is done, and writes to {order.output_of(0)}"

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
