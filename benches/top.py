"""The first rows of an order, against numpy's argpartition."""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import sieva
from data import GROUP, Files
from figure import Figure, at_least, same
from ours import linked
from timing import fastest, interleave, timed, warm

ENERGY = f'"{GROUP}/Energy"'
BLOCK = 1 << 20
WANTED = 10


def whole(path: Path) -> list[float]:
    """Return the greatest values by h5py and numpy: all at once."""
    with h5py.File(path) as file:
        energy = file[GROUP]["Energy"][:]
    best = energy[np.argpartition(energy, -WANTED)[-WANTED:]]
    return np.sort(best)[::-1].tolist()


def blocks(path: Path) -> list[float]:
    """Return the greatest values by h5py and numpy: block by block, with the best so far."""
    best = np.empty(0, "f4")
    with h5py.File(path) as file:
        energy = file[GROUP]["Energy"]
        for start in range(0, len(energy), BLOCK):
            both = np.concatenate([best, energy[start : start + BLOCK]])
            best = np.partition(both, -WANTED)[-WANTED:]
    return np.sort(best)[::-1].tolist()


def ours(path: Path, access: str) -> list[float]:
    """Open, ask, take the values."""
    text = f"SELECT {ENERGY} AS e ORDER BY {ENERGY} DESC LIMIT {WANTED}"
    return sieva.open(path).sql(text, access=access).to_arrow()["e"].to_pylist()


def top(files: Files, runs: int) -> Iterator[Figure]:
    """Find the ten greatest of all energies: by reading them, and by zone maps."""
    path = linked(files.particles, "top")
    sieva.open(path).build_index(f"{GROUP}/Energy", kinds=["zonemap"])
    warm(path)
    answers = {"scan": ours(path, "scan"), "zone maps": ours(path, "auto")}
    same({**answers, "whole": whole(path), "blocks": blocks(path)})
    rivals = {
        "h5py + numpy, argpartition": timed(lambda: whole(path)),
        "h5py + numpy, blocks": timed(lambda: blocks(path)),
    }
    things = {
        "sieva": timed(lambda: ours(path, "scan")),
        "sieva, zone maps": timed(lambda: ours(path, "auto")),
        **rivals,
    }
    best = fastest(rivals, 1)
    times = interleave(things, runs)
    name, limit = "ten greatest of all energies, against h5py + numpy", "the copy out of the page cache"
    yield at_least(name, 3, times[best].median / times["sieva"].median, limit, times, rival=best)
    ratio = times[best].median / times["sieva, zone maps"].median
    yield at_least("the same with zone maps", 10, ratio, "opening", {}, rival=best)
