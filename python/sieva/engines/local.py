"""Processes of this machine, each with sources and a session of its own."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import sieva
from sieva import _native, errors
from sieva.engines._frames import unpack_error
from sieva.engines._places import place
from sieva.engines._serve import DONE, read_frame, write_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sieva.engines._work import Work

# Work whose process ends so often is what ends it.
MOST_DEATHS = 3


class LocalEngine:
    """Worker processes that are started when there is work, and stay for more.

    Parameters
    ----------
    workers
        How many; None: one for each core.
    memory
        Bytes that queries and caches of each may take; None: an equal share of what a session has.
    threads
        Threads of each; None: cores by workers, at least 1.

    Examples
    --------
    >>> engine = sieva.engines.LocalEngine(workers=4)  # doctest: +SKIP
    >>> src.query("TEMP > 25", engine=engine).count()  # doctest: +SKIP
    """

    name = "local"

    def __init__(
        self, workers: int | None = None, memory: int | None = None, threads: int | None = None
    ) -> None:
        cores = len(os.sched_getaffinity(0))
        self._n = cores if workers is None else workers
        if self._n < 1:
            raise errors.InvalidValue(f"an engine of {self._n} workers", "ask for 1 or more")
        share = _native.Session.shared().stats()["memory"] // self._n
        self._limits = (share if memory is None else memory, threads or max(1, cores // self._n))
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * self._n
        self._busy = threading.Lock()
        self._state = threading.Lock()

    def workers(self) -> int:
        """Return how many processes there are."""
        return self._n

    def pids(self) -> list[int]:
        """Return the processes that run."""
        with self._state:
            return [p.pid for p in self._processes if p is not None and p.poll() is None]

    def run(self, work: Sequence[Work]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each work and its result, as they end.

        A process that ends in the midst of work is started anew and given it again.

        Raises
        ------
        SievaError
            What a work raised; the others are stopped.
        IoError
            Processes ended over the same work several times.
        """
        with self._busy:
            job = _Job(work, self._n)
            fed = range(min(self._n, len(work)))
            threads = [threading.Thread(target=self._feed, args=(i, job)) for i in fed]
            for thread in threads:
                thread.start()
            try:
                for _ in work:
                    number, answer = job.results.get()
                    if isinstance(answer, Exception):
                        raise answer
                    yield number, answer
            finally:
                if job.stop():
                    # Somebody is in the midst of what nobody waits for any more.
                    self._kill()
                for thread in threads:
                    thread.join()

    def _feed(self, i: int, job: _Job) -> None:
        """Give a process work until there is none."""
        while (number := job.take(i)) is not None:
            answer: bytes | Exception
            try:
                answer = self._ask(i, bytes(job.work[number]), job)
            except Exception as error:
                answer = error
            job.end(number, answer)

    def _ask(self, i: int, data: bytes, job: _Job) -> bytes:
        for _ in range(MOST_DEATHS):
            process = self._started(i)
            assert process.stdin is not None  # noqa: S101 - they are pipes
            assert process.stdout is not None  # noqa: S101
            try:
                write_frame(process.stdin, data)  # type: ignore[arg-type] # a BinaryIO
                answer = read_frame(process.stdout)  # type: ignore[arg-type]
            except (OSError, ValueError):
                answer = None
            if answer is not None:
                if answer[:1] == DONE:
                    return answer[1:]
                raise unpack_error(answer[1:])
            process.kill()
            process.wait()
            if job.stopped:
                break
        raise errors.IoError(
            f"{MOST_DEATHS} processes ended over the same work, the last with {process.returncode}",
            "they may have been killed for want of memory: allow less by memory=, or have fewer workers",
        )

    def _started(self, i: int) -> subprocess.Popen[bytes]:
        with self._state:
            process = self._processes[i]
            if process is None or process.poll() is not None:
                _close_pipes(process)
                process = self._processes[i] = self._start()
            return process

    def _start(self) -> subprocess.Popen[bytes]:
        places = [str(Path(sieva.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(place for place in places if place)}
        main = "from sieva.engines._serve import main; main()"
        command = [sys.executable, "-P", "-c", main, *map(str, self._limits)]
        return subprocess.Popen(  # noqa: S603 - this interpreter, our module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )

    def _kill(self) -> None:
        with self._state:
            for process in self._processes:
                if process is not None:
                    process.kill()
                    process.wait()

    def close(self) -> None:
        """Stop the processes; they are started again where there is more work."""
        with self._state:
            for i, process in enumerate(self._processes):
                if process is None:
                    continue
                _close_pipes(process)
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                self._processes[i] = None


def _close_pipes(process: subprocess.Popen[bytes] | None) -> None:
    for pipe in (process.stdin, process.stdout) if process is not None else ():
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # what was not flushed, of a process that is gone
                continue


class _Job:
    """The work of one call: what each process has to do, and what is in the midst of being done."""

    def __init__(self, work: Sequence[Work], workers: int) -> None:
        self.work = work
        self.results: queue.SimpleQueue[tuple[int, bytes | Exception]] = queue.SimpleQueue()
        self.stopped = False
        self._lock = threading.Lock()
        self._in_hand: set[int] = set()
        names = [str(i) for i in range(min(workers, max(1, len(work))))]
        self._queues: list[deque[int]] = [deque() for _ in names]
        for number, name in enumerate(place([w.affinity for w in work], names) if work else []):
            self._queues[int(name)].append(number)

    def take(self, i: int) -> int | None:
        """Return the number of the next work of a process; of another's where its own is done."""
        with self._lock:
            longest = max(self._queues, key=len)
            own = self._queues[i] or longest
            if self.stopped or not own:
                return None
            number = own.popleft() if own is self._queues[i] else own.pop()
            self._in_hand.add(number)
            return number

    def end(self, number: int, answer: bytes | Exception) -> None:
        """Hand over the result of work that is no longer done."""
        with self._lock:
            self._in_hand.discard(number)
        self.results.put((number, answer))

    def stop(self) -> bool:
        """Hand out no more; return whether some is being done."""
        with self._lock:
            self.stopped = True
            return bool(self._in_hand)
