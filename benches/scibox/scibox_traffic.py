"""Figures 6 and 7: how much less is moved, and how much sooner it is there, by the size of variables."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scibox_ours as ours
import scibox_stock as stock
import sieva.share
from scibox_store import Store
from scibox_workload import Asked, Columns, Generator, read, write

Result = dict[str, Any]
USERS = 4


def measure(store: Store, data: Path, scratch: Path, megabytes: float, *, options: Result) -> list[Result]:
    """Measure requests drawn uniformly, and by Zipf's law, on variables of one size.

    Parameters
    ----------
    store
        Where to.
    data, scratch
        Directories of the variables, and of what comes and goes.
    megabytes
        Of a variable.
    options
        ``requests``, ``seed``, and ``budget``: seconds for the stock system.
    """
    path = data / f"variables-{megabytes:g}-{options['seed']}.h5"
    write(path, megabytes, options["seed"])
    columns = read(path)
    cells = []
    for law in ("uniform", "zipfian"):
        generator = Generator(columns, options["seed"])
        requests = getattr(generator, law)(options["requests"])
        work = scratch / f"{store.name}-{law}"
        try:
            cell = _cell(store, path, requests, work, budget=options["budget"])
        finally:
            shutil.rmtree(work, ignore_errors=True)
        cells.append({"store": store.name, "megabytes": megabytes, "law": law, **cell})
    return cells


def _cell(store: Store, path: Path, requests: Sequence[Asked], work: Path, *, budget: float) -> Result:
    columns = read(path)
    asks = ours.dealt(requests, USERS)
    found, files = _ours(store, path, columns, asks, work)
    size = columns["v0"].nbytes
    mark = store.mark()
    served = stock.serve(store.place(), columns, [r.variable for r in requests], work / "stock", budget)
    moved = store.moved(mark)
    if store.is_logged:
        for method in ("PUT", "GET"):
            same(f"stock, {method}", moved.bytes_of(method, is_data=True), served.done * size)
    share = len(requests) / served.done
    return {
        "variable": size,
        "requests": len(requests),
        "distinct": len(set(requests)),
        "ours": found,
        "stock": {
            "done": served.done,
            "put": served.put * share,
            "get": served.get * share,
            "up": len(requests) * size,
            "down": len(requests) * size,
        },
        "kinds": _kinds(asks, files, size),
    }


def _ours(
    store: Store, path: Path, columns: Columns, asks: Sequence[ours.Ask], work: Path
) -> tuple[Result, dict[ours.Ask, Path]]:
    place = store.place()
    mark = store.mark()
    work.mkdir(parents=True)
    group = sieva.share.create(place, path, producer="p0")
    _, asking = ours.timed(lambda: ours.ask(group, asks))
    asked = store.moved(mark)
    mark = store.mark()
    done, producing = ours.timed(lambda: ours.produce(group, "p0", work))
    produced = store.moved(mark)
    held = {key: size for key, size in store.held(place).items() if key.startswith("data/")}
    same("objects held and put", (len(held), sum(held.values())), (done.objects, done.bytes))
    mark = store.mark()
    (files, fetched), following = ours.timed(lambda: ours.follow(group, asks, work))
    followed = store.moved(mark)
    if store.is_logged:
        same("bytes put", produced.bytes_of("PUT", is_data=True), done.bytes)
        same("bytes fetched", followed.bytes_of("GET", is_data=True), fetched)
    ours.check(files, columns)
    phases = {"ask": asked, "produce": produced, "follow": followed}
    return {
        "ask": asking,
        "produce": producing,
        "follow": following,
        "up": done.bytes,
        "down": fetched,
        "objects": done.objects,
        "logged": {name: moved.asdict() for name, moved in phases.items()} if store.is_logged else {},
    }, files


def _kinds(asks: Sequence[ours.Ask], files: dict[ours.Ask, Path], size: int) -> Result:
    """Return for each type what of its answers is put, once for all who ask the same, and what is fetched."""
    sizes = {ask: files[ask].stat().st_size for ask in asks}
    once = {ask.asked: sizes[ask] for ask in asks}
    up, down, number = Counter[int](), Counter[int](), Counter(ask.asked.kind for ask in asks)
    for asked, one in once.items():
        up[asked.kind] += one
    for ask, one in sizes.items():
        down[ask.asked.kind] += one
    return {
        str(kind): {"requests": n, "up": up[kind], "down": down[kind], "stock": 2 * n * size}
        for kind, n in sorted(number.items())
    }


def same(what: str, *counts: object) -> None:
    """Refuse to go on with counts that differ."""
    if len(set(counts)) != 1:
        raise SystemExit(f"{what}: counted as {counts}")


def told(cells: Sequence[Result]) -> str:
    """Return cells in words."""
    words = []
    for cell in cells:
        mine, theirs = cell["ours"], cell["stock"]
        took = f"{mine['ask']:.1f} + {mine['produce']:.1f} + {mine['follow']:.1f} s"
        of_stock = f"stock {theirs['put']:.1f} + {theirs['get']:.1f} s"
        words.append(f"{cell['store']}, {cell['megabytes']:g} MB, {cell['law']}: {took}, {of_stock}")
    return "; ".join(words)
