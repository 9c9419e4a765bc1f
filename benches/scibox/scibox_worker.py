#!/usr/bin/env python3
"""A producer as a process of its own: it gets ready, says so, and works when it is told to; see `at_once`.

Usage: scibox_worker.py JOB, a JSON document with what is to be done: ``produce`` a pass of a group, or ``put``
whole variables as the stock system does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scibox_ours as ours
import scibox_stock as stock
import sieva.share
from scibox_workload import read

Result = dict[str, Any]


def at_once(jobs: Sequence[Result]) -> tuple[list[Result], float]:
    """Let processes do these jobs at the same time.

    Returns
    -------
    list of dict, float
        What each of them says, and the seconds from when all were told to begin until the last one ended.

    Raises
    ------
    SystemExit
        One of them failed; it has said why.
    """
    command = [sys.executable, __file__]
    workers = [
        subprocess.Popen(
            [*command, json.dumps(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for job in jobs
    ]
    try:
        for worker in workers:
            if worker.stdout is None or worker.stdout.readline() != "ready\n":
                raise SystemExit("a producer did not start")
        start = time.perf_counter()
        for worker in workers:
            if worker.stdin:
                worker.stdin.write("go\n")
                worker.stdin.flush()
        told = [worker.stdout.readline() if worker.stdout else "" for worker in workers]
        seconds = time.perf_counter() - start
        if any(worker.wait() for worker in workers):
            raise SystemExit("a producer failed")
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return [json.loads(line) for line in told], seconds


def main() -> None:
    """Do one job."""
    job = json.loads(sys.argv[1])
    if job["do"] == "produce":
        group = sieva.share.open_group(job["place"])
        _go()
        done = ours.produce(group, job["producer"], Path(job["spool"]))
        print(json.dumps({"answers": done.answers, "objects": done.objects, "bytes": done.bytes}), flush=True)
        return
    columns = read(Path(job["path"]))
    putting = stock.Putting(job["place"], columns, job["variables"])
    _go()
    print(json.dumps({"done": putting.until(job["budget"])}), flush=True)


def _go() -> None:
    print("ready", flush=True)
    if sys.stdin.readline() != "go\n":
        raise SystemExit("nobody said to begin")


if __name__ == "__main__":
    main()
