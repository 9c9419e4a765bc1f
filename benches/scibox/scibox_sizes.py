"""Figure 8: what producers take to upload merged data by the size of objects, and what a model chooses.

The model is that of section V.A: the rates at which so many producers move objects of each size are measured
once, and the least size is taken whose rate is near the best.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import scibox_stock as stock
from scibox_at_once import at_once
from scibox_store import Store
from scibox_traffic import same
from scibox_workload import LEAST_SHARE, MOST_SHARE

Result = dict[str, Any]
PRODUCERS = 8
# The chosen size has at least this share of the best rate.
NEAR = 0.95
# Dollars a gigabyte to keep, to put and to get, as the paper has them of Amazon's S3.
STORAGE, INTO, OUT = 0.095, 0.0, 0.012


def measure(store: Store, scratch: Path, sizes: Sequence[float], *, options: Result) -> Result:
    """Measure uploads by eight processes: once for the model, and so many times for the figure.

    Parameters
    ----------
    store
        Where to.
    scratch
        A directory for what is uploaded.
    sizes
        Of objects, in megabytes.
    options
        ``merged``: megabytes of each producer; ``runs``, and ``seed``.
    """
    work = scratch / "sizes"
    work.mkdir()
    merged = int(options["merged"] * 1e6)
    path = work / "merged"
    path.write_bytes(np.random.default_rng(options["seed"]).bytes(merged))
    bytes_of = [min(merged, int(size * 1e6)) for size in sizes]
    try:
        # One upload that is not counted: servers start slowly.
        _upload(store, path, bytes_of[-1])
        known = {size: PRODUCERS * merged / _upload(store, path, size) for size in bytes_of}
        cells = [{"size": size, "seconds": []} for size in bytes_of]
        for _ in range(options["runs"]):
            for cell in cells:
                cell["seconds"].append(_upload(store, path, cell["size"]))
    finally:
        shutil.rmtree(work)
    wanted = _ranges(merged, options["seed"])
    for cell in cells:
        got = [_whole(cell["size"], merged, *one) for one in wanted]
        cell["fetched"] = sum(got) / sum(high - low for low, high in wanted)
        cell["cost"] = (STORAGE + INTO) * merged / 1e9 + OUT * sum(got) / 1e9
    return {
        "store": store.name,
        "producers": PRODUCERS,
        "merged": merged,
        "model": {str(size): rate for size, rate in known.items()},
        "chosen": chosen(known),
        "range": fmean(high - low for low, high in wanted),
        "cells": cells,
    }


def chosen(rates: dict[int, float]) -> int:
    """Return the least size whose rate is near the best."""
    return min(size for size, rate in rates.items() if rate >= NEAR * max(rates.values()))


def over_best(cells: Sequence[Result], size: int) -> float:
    """Return how many times longer than with the best size it takes with this one."""
    took = {cell["size"]: median(cell["seconds"]) for cell in cells}
    return took[size] / min(took.values())


def _upload(store: Store, path: Path, size: int) -> float:
    places = [store.place() for _ in range(PRODUCERS)]
    mark = store.mark()
    _, seconds = at_once(
        [{"do": "upload", "place": place, "path": str(path), "size": size} for place in places]
    )
    if store.is_logged:
        moved = store.moved(mark).bytes_of("PUT", is_data=True)
        same("bytes uploaded", moved, PRODUCERS * path.stat().st_size)
    for place in places:
        stock.empty(place)
    return seconds


def _ranges(merged: int, seed: int) -> list[tuple[int, int]]:
    """Return ranges as DR4 draws them."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.uniform(np.log(LEAST_SHARE), np.log(MOST_SHARE), 1000)) * merged
    return [(low := int(rng.integers(0, merged - int(n))), low + max(1, int(n))) for n in lengths]


def _whole(size: int, merged: int, low: int, high: int) -> int:
    """Return the bytes of the objects that a range lies in."""
    return min(merged, -(-high // size) * size) - low // size * size
