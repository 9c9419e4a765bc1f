"""Figures 9 and 10: what producers put, by their number and by the requests that each of them answers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import scibox_ours as ours
import scibox_stock as stock
import sieva.share
from scibox_at_once import at_once
from scibox_store import Store
from scibox_traffic import USERS, same
from scibox_workload import Generator, read, write

Result = dict[str, Any]


def measure(store: Store, data: Path, scratch: Path, producers: int, *, options: Result) -> Result:
    """Measure what producers take to put all that is asked of them, each in a group of its own.

    Parameters
    ----------
    store
        Where to.
    data, scratch
        Directories of the variables, and of what comes and goes.
    producers
        Processes that work at the same time.
    options
        ``megabytes`` of a variable, ``requests`` of each producer, ``seed``; ``budget``: seconds of the
        stock system; ``checked``: how many answers of each are compared with numpy's.
    """
    work = scratch / f"producers-{producers}"
    work.mkdir(parents=True)
    try:
        return _measure(store, data, work, producers, options)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _measure(store: Store, data: Path, work: Path, producers: int, options: Result) -> Result:
    mine, theirs, groups = [], [], []
    for number in range(producers):
        seed, megabytes = options["seed"] + number, options["megabytes"]
        path = data / f"variables-{megabytes:g}-{seed}.h5"
        write(path, megabytes, seed)
        columns = read(path)
        requests = Generator(columns, seed).uniform(options["requests"])
        asks = ours.dealt(requests, USERS)
        name, place = f"p{number}", store.place()
        group = sieva.share.create(place, path, producer=name)
        ours.ask(group, asks)
        groups.append((group, asks, columns))
        mine.append({"do": "produce", "place": place, "producer": name, "spool": str(work)})
        variables = [r.variable for r in requests]
        job = {"do": "put", "place": store.place(), "path": str(path), "variables": variables}
        theirs.append({**job, "budget": options["budget"]})
    mark = store.mark()
    told, seconds = at_once(mine)
    moved = store.moved(mark)
    put = sum(one["bytes"] for one in told)
    for job, one in zip(mine, told, strict=True):
        same("answers", one["answers"], options["requests"])
        held = [size for key, size in store.held(job["place"]).items() if key.startswith("data/")]
        same("objects held and put", (len(held), sum(held)), (one["objects"], one["bytes"]))
    mark = store.mark()
    done, stock_seconds = at_once(theirs)
    stock_moved = store.moved(mark)
    size = groups[0][2]["v0"].nbytes
    served, wanted = sum(one["done"] for one in done), producers * options["requests"]
    if store.is_logged:
        same("bytes put", moved.bytes_of("PUT", is_data=True), put)
        same("bytes put by the stock system", stock_moved.bytes_of("PUT", is_data=True), served * size)
    for job in theirs:
        stock.empty(job["place"])
    for number, (group, asks, columns) in enumerate(groups):
        files, _ = ours.follow(group, _some(asks, options["checked"]), work / f"p{number}")
        ours.check(files, columns)
    return {
        "store": store.name,
        "producers": producers,
        "requests": options["requests"],
        "variable": size,
        "ours": {"seconds": seconds, "bytes": put, "objects": sum(one["objects"] for one in told)},
        "stock": {"seconds": stock_seconds * wanted / served, "done": served, "bytes": wanted * size},
        "logged": moved.asdict() if store.is_logged else {},
    }


def _some(asks: list[ours.Ask], most: int) -> list[ours.Ask]:
    """Return some asks, from all of them: their answers are compared."""
    return asks[:: max(1, len(asks) // most)]


def told(cell: Result) -> str:
    """Return a cell in words."""
    mine, theirs = cell["ours"], cell["stock"]
    of = f"{cell['producers']} producers, {cell['requests']} requests each"
    return f"{of}: {mine['seconds']:.1f} s, stock {theirs['seconds']:.1f} s ({theirs['done']} puts)"
