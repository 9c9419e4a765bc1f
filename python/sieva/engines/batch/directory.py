"""A job on disk: its work, its results, and what was submitted for it. All that is known of it lies there.

::

    ID/job.json             what is asked, of which engine, by which command
    ID/work/000000          work, each in its file
    ID/result/000000        what came of it
    ID/failed/000000.json   why nothing came of it
    ID/submission/000.json  an array of tasks: which work each does, and what it may take
    ID/submission/000.id    the batch system's name of it, once it is known
    ID/submission/000.sh    its script, and in 000.out/ the output of its tasks
    ID/submission/000.cancelled  is there when it was cancelled
    ID/submission/000.end.* what finishes the job when it has ended: see `finish.py`
    ID/done, ID/cancelled   are there when that is so

Every file appears whole, by a rename, and is never changed: asking side and tasks may be on different nodes,
end at any moment, and be there twice. ID is of the work's bytes, so that the same question finds its job.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import errors
from sieva.engines.batch.about import VERSION, about_of, damaged, object_of
from sieva.engines.batch.files import MOST_TOLD, digest, packed, read_regular, unpacked, write_whole
from sieva.engines.batch.submission import Submission, submission_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sieva.engines._work import Work
    from sieva.engines.batch.system import Needs

# Attempts to remove a directory that something is still written to.
_REMOVALS = 20


class JobDirectory:
    """The directory of a job."""

    def __init__(self, path: Path) -> None:
        # A job that was made elsewhere is listed by a link.
        self.path = path.resolve()
        self.about = about_of(path)
        # Who followed it would wait for ever for what nobody does.
        there = len(_numbers(self.path / "work"))
        if there != self.works:
            raise damaged(path, f"job.json has {self.works} pieces of work, and {there} are there")

    @property
    def id(self) -> str:
        """What `sieva jobs` calls it."""
        return str(self.about["id"])

    @property
    def works(self) -> int:
        """How many pieces of work there are."""
        return int(self.about["works"])

    @property
    def name(self) -> str:
        """What the batch system calls its arrays."""
        return f"sieva-{self.id}"

    # What is asked.

    @classmethod
    def of(
        cls, root: Path, work: Sequence[Work], about: dict[str, Any], key: str | None = None
    ) -> JobDirectory:
        """Return the job of this work, made if there is none yet.

        Parameters
        ----------
        root
            Where it is made; others cannot read it.
        work
            All of it.
        about
            ``engine``, and what else is to be kept of it.
        key
            What it is known by, if not by its work.

        Raises
        ------
        IoError
            There is one of that key, with other work.
        """
        files = [packed(bytes(piece)) for piece in work]
        name = cls.name_of(about["engine"], files if key is None else [key.encode()])
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = root / name
        if not (path / "job.json").exists():
            cls._make(path, files, {**about, "id": name})
        job = cls(path)
        if key is None:
            job._mend(files)
        elif job.works != len(files) or any(job._packed(n) != data for n, data in enumerate(files)):
            raise errors.IoError(
                f"another process has just begun the same, as job {job.id}", "ask again: that goes on with it"
            )
        return job

    @staticmethod
    def name_of(engine: str, parts: Sequence[bytes]) -> str:
        """Return what a job is called that is known by these bytes."""
        return digest(b"".join([engine.encode(), *map(digest, parts)])).hex()[:8]

    def _packed(self, number: int) -> bytes:
        return read_regular(self.path / "work" / _name(number))

    def _mend(self, files: Sequence[bytes]) -> None:
        """Write work anew that is not as it was written."""
        for number, data in enumerate(files):
            try:
                is_whole = self._packed(number) == data
            except errors.CorruptFile:
                is_whole = False
            if not is_whole:
                write_whole(self.path / "work" / _name(number), data)

    @staticmethod
    def _make(path: Path, files: Sequence[bytes], about: dict[str, Any]) -> None:
        """Make a directory aside and give it its name; who comes second takes that of the first."""
        aside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700)
        for part in ("work", "result", "failed", "submission"):
            (aside / part).mkdir()
        for number, data in enumerate(files):
            write_whole(aside / "work" / _name(number), data)
        known: dict[str, Any] = {"version": VERSION, "works": len(files), "created": time.time()}
        known |= {"host": socket.gethostname(), "user": getpass.getuser()}
        write_whole(aside / "job.json", json.dumps(known | about, indent=1).encode())
        try:
            aside.rename(path)
        except OSError:
            shutil.rmtree(aside)
            if not (path / "job.json").exists():
                raise

    def work(self, number: int) -> Work:
        """Return a piece of work."""
        from sieva.engines._work import Work

        path = self.path / "work" / _name(number)
        return Work.from_bytes(unpacked(read_regular(path), path, "ask again as before: it is written anew"))

    # What came of it.

    def results(self) -> set[int]:
        """Return the numbers of the work that has a result."""
        return _numbers(self.path / "result")

    def has_result(self, number: int) -> bool:
        """Whether a piece of work has its result, and that is whole."""
        try:
            self.result(number)
        except (FileNotFoundError, errors.CorruptFile):
            return False
        return True

    def result(self, number: int) -> bytes:
        """Return the result of a piece of work."""
        path = self.path / "result" / _name(number)
        return unpacked(read_regular(path), path, "`sieva jobs resume` makes it again")

    def publish(self, number: int, result: bytes) -> None:
        """Put the result of a piece of work there."""
        write_whole(self.path / "result" / _name(number), packed(result))

    def fail(self, number: int, error: errors.SievaError, task: int) -> None:
        """Put there why nothing came of a piece of work."""
        told = {"kind": error.kind, "message": error.message, "hint": error.hint}
        told |= {"task": str(task), "host": socket.gethostname()}
        write_whole(self.path / "failed" / f"{_name(number)}.json", json.dumps(told).encode())

    def failures(self) -> dict[int, dict[str, Any]]:
        """Return why nothing came of work, by its number."""
        found = {}
        for number in sorted(_numbers(self.path / "failed")):
            name = f"failed/{_name(number)}.json"
            with suppress(FileNotFoundError):
                told = object_of(self.path, name)
                if not {"kind", "message", "hint", "task", "host"} <= told.keys():
                    raise damaged(self.path, f"{name} does not say why")
                found[number] = told
        return found

    # What was submitted.

    def submissions(self) -> list[Submission]:
        """Return what was submitted, in order.

        Raises
        ------
        CorruptFile
            A file says nothing that was submitted of this job.
        """
        found = []
        for number in sorted(_numbers(self.path / "submission", ".json")):
            # It may be taken back in between.
            with suppress(FileNotFoundError):
                told = object_of(self.path, f"submission/{number:03}.json")
                found.append(submission_of(self.path, number, self.works, told))
        return found

    def claim(self, tasks: Sequence[Sequence[int]], needs: Needs, after: int) -> Submission | None:
        """Return a new submission, which this process has to submit; None where another process was first.

        Parameters
        ----------
        tasks, needs
            As of `Submission`.
        after
            The number of the last one that was looked at; -1: there was none.
        """
        number = after + 1
        at = time.time()
        done = len(self.results())
        told = {"tasks": tasks, "needs": vars(needs), "at": at, "done": done}
        path = self._submission(number, ".json")
        aside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
        aside.write_text(json.dumps(told))
        try:
            # Unlike a rename it fails where the name is there, on NFS, too.
            os.link(aside, path)
        except FileExistsError:
            return None
        finally:
            aside.unlink()
        self.output(number).mkdir(exist_ok=True)
        return Submission(number, tuple(map(tuple, tasks)), needs, at, done)

    def submission(self, number: int) -> Submission:
        """Return the submission of a number.

        Raises
        ------
        FileNotFound
            It was taken back.
        """
        found = next((s for s in self.submissions() if s.number == number), None)
        if found is None:
            raise errors.FileNotFound(f"job {self.id} has no submission {number}")
        return found

    def submitted(self, number: int, name: str) -> None:
        """Keep the batch system's name of a submission."""
        write_whole(self._submission(number, ".id"), name.encode())

    def batch_id(self, number: int) -> str | None:
        """Return the batch system's name of a submission; None: it is not known yet."""
        try:
            return read_regular(self._submission(number, ".id"), MOST_TOLD).decode(errors="replace")
        except FileNotFoundError:
            return None

    def cancel(self, number: int) -> None:
        """Note that a submission was cancelled: its end is no news to who goes on with the job."""
        write_whole(self._submission(number, ".cancelled"), b"")

    def was_cancelled(self, number: int) -> bool:
        """Whether a submission was cancelled by `sieva jobs cancel`."""
        return self._submission(number, ".cancelled").exists()

    def take_back(self, number: int) -> None:
        """Forget a submission that the batch system refused."""
        self._submission(number, ".json").unlink()

    def script(self, number: int) -> Path:
        """Return the file with the script of a submission."""
        return self._submission(number, ".sh")

    def output(self, number: int) -> Path:
        """Return the directory with the output of a submission's tasks."""
        return self._submission(number, ".out")

    def last_lines(self, number: int, task: int, lines: int = 20) -> str:
        """Return the end of a task's output."""
        try:
            found = os.open(self.output(number) / f"{task}.txt", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(found, "rb") as file:  # noqa: PTH123 - of a descriptor
                file.seek(max(0, file.seek(0, os.SEEK_END) - 16384))
                told = file.read(16384).decode(errors="replace")
        except OSError:
            # It is not there yet, or is no file.
            return ""
        return "\n".join(told.rstrip().splitlines()[-lines:])

    # Its end.

    @property
    def is_done(self) -> bool:
        """Whether all of its results were there."""
        return (self.path / "done").exists()

    @property
    def is_complete(self) -> bool:
        """Whether all of its results are there."""
        return len(self.results()) >= self.works

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled by `sieva jobs cancel`."""
        return (self.path / "cancelled").exists()

    def mark(self, what: str) -> None:
        """Note that it is ``"done"`` or ``"cancelled"``."""
        write_whole(self.path / what, b"")

    def take_up_again(self) -> set[int]:
        """Forget that it failed or was cancelled, and damaged results; return the numbers of these."""
        with suppress(FileNotFoundError):
            (self.path / "cancelled").unlink()
        for number in _numbers(self.path / "failed"):
            with suppress(FileNotFoundError):
                (self.path / "failed" / f"{_name(number)}.json").unlink()
        damaged = {number for number in self.results() if not self.has_result(number)}
        for number in damaged:
            (self.path / "result" / _name(number)).unlink(missing_ok=True)
        return damaged

    def remove(self) -> None:
        """Remove it with all that is in it."""
        for _ in range(_REMOVALS):
            # A task that was told to end may still write its last lines.
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                return
            time.sleep(0.1)
        shutil.rmtree(self.path)

    def _submission(self, number: int, suffix: str) -> Path:
        return self.path / "submission" / f"{number:03}{suffix}"


def under_way(root: Path, engine: str, key: str) -> JobDirectory | None:
    """Return the job that is known by a key, where work of it is left; None: there is none that is whole."""
    path = root / JobDirectory.name_of(engine, [key.encode()])
    try:
        job = JobDirectory(path)
        if job.is_complete:
            return None
        for number in range(job.works):
            job.work(number)
        job.submissions()
    except errors.FileNotFound:
        return None
    except errors.CorruptFile:
        # What it did is in the store; what is left is another job.
        shutil.rmtree(path)
        return None
    return job


def _name(number: int) -> str:
    return f"{number:06}"


def _numbers(folder: Path, suffix: str | None = None) -> set[int]:
    """Return the numbers that files are named by; names of those that are being written begin with a dot."""
    try:
        names = [Path(name) for name in os.listdir(folder)]  # noqa: PTH208 - the names alone
    except FileNotFoundError:
        return set()
    except NotADirectoryError as error:
        raise damaged(folder.parent, f"{folder.name} is no directory") from error
    return {int(n.stem) for n in names if n.stem.isdecimal() and suffix in (None, n.suffix)}
