"""Producers or consumers as processes that begin at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def at_once(jobs: Sequence[Result], within: Sequence[Sequence[str]] = ()) -> tuple[list[Result], float]:
    """Let processes do these jobs at the same time.

    Parameters
    ----------
    jobs
        What each of them does: see `scibox_worker.py`.
    within
        The words before the command of each, such as those that enter a network namespace.

    Returns
    -------
    list of dict, float
        What each of them says, and the seconds from when all were told to begin until the last one ended.

    Raises
    ------
    SystemExit
        One of them failed; it has said why.
    """
    worker = [sys.executable, str(Path(__file__).with_name("scibox_worker.py"))]
    workers = [
        subprocess.Popen(
            [*before, *worker, json.dumps(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for before, job in zip(within or [[]] * len(jobs), jobs, strict=True)
    ]
    try:
        for worker in workers:
            if worker.stdout is None or worker.stdout.readline() != "ready\n":
                raise SystemExit("a process of the benchmark did not start")
        start = time.perf_counter()
        for worker in workers:
            if worker.stdin:
                worker.stdin.write("go\n")
                worker.stdin.flush()
        told = [worker.stdout.readline() if worker.stdout else "" for worker in workers]
        seconds = time.perf_counter() - start
        if any(worker.wait() for worker in workers):
            raise SystemExit("a process of the benchmark failed")
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return [json.loads(line) for line in told], seconds
