"""What a task of an array runs: ``python -m sieva.engines.batch.worker DIRECTORY SUBMISSION TASK``.

It does its work piece by piece, each published when it is done. Told to end (SIGTERM), or short of time, it
ends with `UNFINISHED`: what it published stays, and the rest is submitted again. Work that has its result is
skipped, so that a task which starts again after its node failed does not begin anew.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sieva import __version__, errors
from sieva._interrupt import uninterrupted
from sieva.engines._work import configure, execute
from sieva.engines.batch.directory import JobDirectory
from sieva.engines.batch.needs import for_queries
from sieva.engines.batch.system import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the work of a task; return the exit code."""
    begun = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m sieva.engines.batch.worker")
    parser.add_argument("directory", type=Path)
    parser.add_argument("submission", type=int)
    parser.add_argument("task", type=int)
    parser.add_argument("--time-left", type=float, default=float("inf"), metavar="SECONDS")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        job = JobDirectory(given.directory)
        submission = job.submission(given.submission)
    except errors.SievaError as error:
        _say(f"{error.kind}: {error}")
        return 1
    numbers = submission.tasks[given.task]
    # A node has more cores and memory than a task may take of it.
    needs = submission.needs
    configure(memory=for_queries(needs), cache=0, threads=needs.cpus)
    _say(
        f"sieva {__version__}, job {job.id}, task {given.task}: "
        f"{len(numbers)} pieces of work on {socket.gethostname()}, process {os.getpid()}"
    )
    building = {"memory": for_queries(needs), "jobs": needs.cpus}
    return _work(job, numbers, given.task, begun + given.time_left, building)


def _work(
    job: JobDirectory, numbers: Sequence[int], task: int, until: float, building: dict[str, int]
) -> int:
    longest = 0.0
    for number in numbers:
        if job.has_result(number):
            _say(f"work {number}: has its result")
            continue
        begun = time.monotonic()
        if longest and begun + longest > until:
            _say(f"work {number}: left, as {until - begun:.0f} s do not do")
            return UNFINISHED
        try:
            _do(job, number, building)
        except errors.SievaError as error:
            _fail(job, number, error, task)
            return 1
        except OSError as error:
            _fail(job, number, errors.IoError(f"the result cannot be kept: {error}"), task)
            return 1
        except Exception as error:
            traceback.print_exc()
            _fail(job, number, errors.Internal(f"{type(error).__name__}: {error}"), task)
            return 1
        longest = max(longest, time.monotonic() - begun)
    return 0


def _fail(job: JobDirectory, number: int, error: errors.SievaError, task: int) -> None:
    """Tell why there is no result, here and where it is looked for."""
    _say(f"work {number}: {error.kind}: {error}")
    try:
        job.fail(number, error, task)
    except OSError as more:
        # These lines are what is left to tell it by.
        _say(f"this could not be noted either: {more}")


def _do(job: JobDirectory, number: int, building: dict[str, int]) -> None:
    work = job.work(number)
    if work.kind == "index":
        # What this task may take, whatever who asked may.
        how = json.loads(work.how)
        work = replace(work, how=json.dumps({**how, "run": {**how["run"], **building}}))
    begun = time.monotonic()
    result = execute(work)
    with uninterrupted():
        job.publish(number, result)
    _say(f"work {number}: {work.kind}, {len(result)} bytes in {time.monotonic() - begun:.2f} s")


def _end(*_: object) -> NoReturn:
    # Not by print, which the signal may have come in the middle of.
    os.write(1, b"told to end: what is done is published\n")
    raise SystemExit(UNFINISHED)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
