"""Figure 11: how long consumers wait for what they asked of four producers, by their number.

Results are objects of what somebody wants and no more; the stock system's consumers fetch the whole variable
for each request, from objects that are there once.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import scibox_ours as ours
import sieva.share
from scibox_store import Store
from scibox_traffic import same
from scibox_workload import Generator, read, write
from sieva._native import Objects

Result = dict[str, Any]
PRODUCERS = 4


def measure(store: Store, data: Path, scratch: Path, consumers: int, *, options: Result) -> Result:
    """Measure consumers that fetch at the same time, all that each of them asked for.

    Parameters
    ----------
    store
        Where from.
    data, scratch
        Directories of the variables, and of what comes and goes.
    consumers
        How many.
    options
        ``megabytes`` of a variable, ``requests`` of each consumer, ``seed``, and ``budget``: seconds of each
        for the stock system.
    """
    work = scratch / f"consumers-{consumers}"
    work.mkdir()
    try:
        return _measure(store, data, work, consumers, options)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _measure(store: Store, data: Path, work: Path, consumers: int, options: Result) -> Result:
    seed, megabytes = options["seed"], options["megabytes"]
    groups, columns, asks = [], [], []
    each = options["requests"] // PRODUCERS
    for number in range(PRODUCERS):
        path = data / f"variables-{megabytes:g}-{seed + number}.h5"
        write(path, megabytes, seed + number)
        columns.append(read(path))
        requests = Generator(columns[-1], seed + number).uniform(consumers * each)
        asks.append(ours.dealt(requests, consumers))
        groups.append(sieva.share.create(store.place(), path, producer="p0"))
        ours.ask(groups[-1], asks[-1])
        ours.produce(groups[-1], "p0", work)
    mark = store.mark()
    mine = _all(consumers, lambda user: _follow(groups, asks, f"u{user}", work))
    moved = store.moved(mark)
    fetched = sum(count for _, _, count in mine)
    for files, _, _ in mine:
        for number in range(PRODUCERS):
            ours.check(files[number], columns[number])
    raw = Objects(store.place())
    for number, one in enumerate(columns):
        for name, values in one.items():
            raw.put(f"stock/{number}-{name}", values.tobytes())
    mark = store.mark()
    theirs = _all(consumers, lambda user: _stock(raw, asks, f"u{user}", options["budget"]))
    stock_moved = store.moved(mark)
    size = columns[0]["v0"].nbytes
    if store.is_logged:
        same("bytes of results", moved.bytes_of("GET", is_data=True), fetched)
        done = sum(done for done, _ in theirs)
        same("bytes of variables", stock_moved.bytes_of("GET", is_data=True), done * size)
    wanted = each * PRODUCERS
    return {
        "store": store.name,
        "consumers": consumers,
        "requests": wanted,
        "variable": size,
        "ours": {"latency": fmean(seconds for _, seconds, _ in mine) / wanted, "bytes": fetched},
        "stock": {
            "latency": fmean(seconds / done for done, seconds in theirs),
            "done": sum(done for done, _ in theirs),
            "bytes": consumers * wanted * size,
        },
    }


def _all(consumers: int, work: Any) -> list[Any]:  # noqa: ANN401 - what a consumer does, and what it gives
    with ThreadPoolExecutor(consumers) as pool:
        return list(pool.map(work, range(consumers)))


def _follow(
    groups: Sequence[sieva.share.Group], asks: Sequence[Sequence[ours.Ask]], user: str, work: Path
) -> tuple[list[dict[ours.Ask, Path]], float, int]:
    """Return the files of each group, and the seconds and bytes until a user has all of them."""
    start = time.perf_counter()
    files, count = [], 0
    for number, (group, asked) in enumerate(zip(groups, asks, strict=True)):
        mine = [one for one in asked if one.user == user]
        found, fetched = ours.follow(group, mine, work / f"p{number}")
        files.append(found)
        count += fetched
    return files, time.perf_counter() - start, count


def _stock(raw: Objects, asks: Sequence[Sequence[ours.Ask]], user: str, budget: float) -> tuple[int, float]:
    """Return how many variables a user fetched before the time was over, and the seconds for them."""
    keys = [
        f"stock/{number}-v{one.asked.variable}"
        for number, asked in enumerate(asks)
        for one in asked
        if one.user == user
    ]
    start = time.perf_counter()

    def fetch(key: str) -> bool:
        return time.perf_counter() < start + budget and raw.get(key) is not None

    with ThreadPoolExecutor(ours.AT_ONCE) as pool:
        done = sum(pool.map(fetch, keys))
    return done, time.perf_counter() - start


def told(cell: Result) -> str:
    """Return a cell in words."""
    both = [1e3 * cell[who]["latency"] for who in ("ours", "stock")]
    return f"{cell['consumers']} consumers: {both[0]:.1f} ms a request, stock {both[1]:.1f} ms"
