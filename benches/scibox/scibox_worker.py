#!/usr/bin/env python3
"""A producer or consumer as a process of its own: it gets ready, says so, and works when it is told to.

Usage: scibox_worker.py JOB, a JSON document of what is to be done: ``produce`` a pass of a group, ``put``
whole variables as the stock system does, ``follow`` asks of a user, ``fetch`` an object, ``transform``
images, or ``upload`` data as objects of a size.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import scibox_gts
import scibox_images
import scibox_ours as ours
import scibox_stock as stock
import sieva.share
from scibox_workload import read
from sieva._native import Objects

Result = dict[str, Any]
# Objects that a producer puts at a time; there are eight producers.
UPLOADS = 2


def produce(job: Result) -> Callable[[], Result]:
    """Get ready to make a pass of a producer."""
    group = sieva.share.open_group(job["place"])

    def work() -> Result:
        done = ours.produce(group, job["producer"], Path(job["spool"]))
        return {"answers": done.answers, "objects": done.objects, "bytes": done.bytes}

    return work


def put(job: Result) -> Callable[[], Result]:
    """Get ready to put a variable for each request."""
    putting = stock.Putting(job["place"], read(Path(job["path"])), job["variables"])
    return lambda: {"done": putting.until(job["budget"])}


def follow(job: Result) -> Callable[[], Result]:
    """Get ready to fetch the answers to some asks of a user."""
    group = sieva.share.open_group(job["place"])
    folder = Path(job["folder"])

    def fetched() -> int:
        done = group.follow_many({name: folder / name for name in job["names"]}, user=job["user"]).values()
        if any(len(one.files) != job.get("files", 1) or one.failures or one.troubles for one in done):
            raise SystemExit(f"{job['user']}: {done}")
        return sum(one.bytes for one in done)

    def work() -> Result:
        count, seconds = ours.timed(fetched)
        return {"bytes": count, "seconds": seconds}

    return work


def fetch(job: Result) -> Callable[[], Result]:
    """Get ready to fetch raw data, and to analyse them."""
    objects, path = Objects(job["place"]), Path(job["path"])

    def work() -> Result:
        _, seconds = ours.timed(lambda: stock.fetch(objects, job["key"], job["size"], path))
        _, then = ours.timed(lambda: scibox_gts.analysed(path))
        path.unlink()
        return {"seconds": seconds + then, "then": then}

    return work


def transform(job: Result) -> Callable[[], Result]:
    """Get ready to fetch images, and to transform each."""
    objects, folder = Objects(job["place"]), Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)

    def image(key: str, size: int) -> float:
        path = folder / Path(key).name
        stock.fetch(objects, key, size, path)
        spectra, seconds = ours.timed(lambda: scibox_images.transformed(path))
        path.with_suffix(".bin").write_bytes(spectra.tobytes())
        return seconds

    def work() -> Result:
        with ThreadPoolExecutor(ours.AT_ONCE) as pool:
            return {"then": sum(pool.map(lambda one: image(*one), job["images"]))}

    return work


def upload(job: Result) -> Callable[[], Result]:
    """Get ready to put data as objects of a size."""
    objects, data, size = Objects(job["place"]), Path(job["path"]).read_bytes(), job["size"]
    parts = [data[at : at + size] for at in range(0, len(data), size)]

    def work() -> Result:
        with ThreadPoolExecutor(UPLOADS) as pool:
            list(pool.map(lambda at: objects.put(f"stock/{at}", parts[at]), range(len(parts))))
        return {}

    return work


JOBS: dict[str, Callable[[Result], Callable[[], Result]]] = {
    "produce": produce,
    "put": put,
    "follow": follow,
    "fetch": fetch,
    "transform": transform,
    "upload": upload,
}


def main() -> None:
    """Do one job."""
    job = json.loads(sys.argv[1])
    work = JOBS[job["do"]](job)
    print("ready", flush=True)
    if sys.stdin.readline() != "go\n":
        raise SystemExit("nobody said to begin")
    print(json.dumps(work()), flush=True)


if __name__ == "__main__":
    main()
