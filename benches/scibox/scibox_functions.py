"""Figures 15 and 16: what each DR-function takes by the size of a variable, and what of it is what."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import numpy as np
import scibox_ours as ours
import sieva
import sieva.share
from scibox_store import Store
from scibox_workload import COLUMNS, Asked, Generator, read, write

Result = dict[str, Any]
PARTS = ("get requests", "processing", "put results", "other")


def measure(
    store: Store, data: Path, scratch: Path, sizes: Sequence[float], *, options: Result
) -> list[Result]:
    """Measure a pass of a producer for one request of each type.

    Parameters
    ----------
    store
        Where to; it has to say how long requests took.
    data, scratch
        Directories of the variables, and of what comes and goes.
    sizes
        Of a variable, in megabytes.
    options
        ``seed``, and ``runs`` of each. Ranges of DR4 are a hundredth of a variable, of the last size also of
        1 KB to a twelfth, as the paper's.
    """
    cells = []
    for megabytes in sizes:
        path = data / f"pair-{megabytes:g}-{options['seed']}.h5"
        write(path, megabytes, options["seed"], count=2)
        columns = read(path, count=2)
        rows = len(columns["v0"])
        asked = [_one_of(kind, columns, options["seed"]) for kind in (1, 2, 3, 5, 6, 7)]
        asked.append(Asked(8, 0, function="rows"))
        lengths = [max(1, rows // 100)]
        if megabytes == sizes[-1]:
            least = max(1, 1024 // (8 * COLUMNS))
            lengths += [int(one) for one in np.geomspace(least, rows // 12, 4)]
        asked += [Asked(4, 0, low=rows // 2, high=rows // 2 + length) for length in dict.fromkeys(lengths)]
        for one in asked:
            done = [_pass(store, path, one, scratch / "pass", columns) for _ in range(options["runs"])]
            parts = {part: median(run[part] for run in done) for part in PARTS}
            cell = {
                "megabytes": megabytes,
                "variable": columns["v0"].nbytes,
                "kind": one.kind,
                "parts": parts,
            }
            cell |= {"asked": 8 * COLUMNS * int(one.high - one.low) if one.kind == 4 else 0}
            cell["seconds"] = [sum(run.values()) for run in done]
            if one.kind == 8:
                cell["native"] = min(_seconds(lambda p=path: _native(p)) for _ in range(options["runs"]))
            cells.append(cell)
    return cells


def _one_of(kind: int, columns: dict[str, np.ndarray], seed: int) -> Asked:
    """Return a request of a type, about the first variable."""
    if kind in {1, 2, 3, 6}:
        return Asked(kind, 0)
    low, high = Generator(columns, seed).thresholds(0)
    return Asked(kind, 0, int(kind == 7), low, high)


def _pass(
    store: Store, path: Path, asked: Asked, work: Path, columns: dict[str, np.ndarray]
) -> dict[str, float]:
    """Return the parts of a pass that answers one request, which is compared with numpy's answer."""
    work.mkdir()
    place = store.place()
    group = sieva.share.create(place, path, producer="p0")
    asks = [ours.Ask("u0", "r0", asked)]
    ours.ask(group, asks)
    evaluating = _seconds(lambda: sieva.open(path).sql(asked.sql).to_arrow())
    mark = store.mark()
    whole = _seconds(lambda: ours.produce(group, "p0", work))
    moved = store.moved(mark).requests
    got = sum(one.seconds for one in moved if one.method != "PUT")
    put = sum(one.seconds for one in moved if one.method == "PUT")
    files, _ = ours.follow(group, asks, work)
    ours.check(files, columns)
    shutil.rmtree(work)
    rest = max(0.0, whole - got - put)
    processing = min(evaluating, rest)
    return dict(zip(PARTS, (got, processing, put, rest - processing), strict=True))


def _native(path: Path) -> np.ndarray:
    """Return the mean of each row by numpy's compiled loops, from the file on."""
    with h5py.File(path) as file:
        return file["v0"][:].mean(axis=1)


def _seconds(work: Callable[[], object]) -> float:
    return ours.timed(work)[1]
