"""Figure 12: consumers at three sites ask for the greatest of zion and histograms of phi.

GTS writes 128 processes' particles and fields. The file has its variables and shapes, as HDF5, drawn from
normal distributions. Function I is DR1, the maximum of each of the 6 phase space coordinates of each process:
6 KB. Function II is DR8, a histogram of the potential of each process: 96 KB.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import scibox_ours as ours
import sieva.share
from scibox_at_once import at_once
from scibox_links import SITES
from scibox_store import Store
from scibox_traffic import same
from scibox_workload import values_of
from sieva._native import Objects

Result = dict[str, Any]
PROCESSES, COORDINATES, BINS = 128, 6, 47
LOW, HIGH = -5.0, 5.0
QUESTIONS = {
    "zion": "SELECT max(zion) AS most GROUP BY idx(process), idx(coordinate)",
    "phi": f"SELECT histogram(phi, {BINS}, {LOW!r}, {HIGH!r}) AS found GROUP BY idx(process)",
}


def write(path: Path, megabytes: float, seed: int) -> None:
    """Write a restart file of so many megabytes, where there is none."""
    if path.exists():
        return
    rng = np.random.default_rng(seed)
    values = megabytes * 1e6 / 8 / PROCESSES
    shapes = {
        "zion": (PROCESSES, max(1, round(0.85 * values / COORDINATES)), COORDINATES),
        "phi": (PROCESSES, max(1, round(0.1 * values))),
        "weights": (PROCESSES, max(1, round(0.05 * values))),
    }
    dims = {"zion": ("process", "particle", "coordinate"), "phi": ("process", "cell")}
    dims["weights"] = ("process", "weight")
    partial = path.with_suffix(".part")
    with h5py.File(partial, "w") as file:
        for name, shape in shapes.items():
            data = file.create_dataset(name, data=rng.normal(size=shape))
            for axis, dim in enumerate(dims[name]):
                if dim not in file:
                    file.create_dataset(dim, data=np.arange(shape[axis], dtype="i4")).make_scale(dim)
                data.dims[axis].attach_scale(file[dim])
    partial.rename(path)


def analysed(path: Path) -> dict[str, np.ndarray]:
    """Return what a consumer computes of a restart file that it has: numpy's answers."""
    with h5py.File(path) as file:
        most = file["zion"][:].max(axis=1).ravel()
        phi = file["phi"][:]
    return {"zion": most, "phi": np.array([np.histogram(row, BINS, (LOW, HIGH))[0] for row in phi])}


def measure(
    store: Store, links: Sequence[list[str]], data: Path, scratch: Path, *, megabytes: float, seed: int
) -> Result:
    """Measure how long after the data are there each consumer has its answers.

    Parameters
    ----------
    store
        Which consumers reach by their links.
    links
        The words before the command of each consumer, those of a site together.
    data, scratch
        Directories of the file, and of what comes and goes.
    megabytes
        Of the file; the paper's has 908.
    """
    path = data / f"restart-{megabytes:g}-{seed}.h5"
    write(path, megabytes, seed)
    work = scratch / "gts"
    work.mkdir()
    place, raw = store.place(), store.place()
    group = sieva.share.create(place, path, producer="gts")
    for number in range(len(links)):
        for name, sql in QUESTIONS.items():
            group.ask(name, sql, format="arrow", user=f"c{number}")
    done, producing = ours.timed(lambda: ours.produce(group, "gts", work))
    Objects(raw).put("stock/restart", path.read_bytes())
    cells = []
    each = len(links) // len(SITES)
    for at, site in enumerate(SITES):
        mine = range(at * each, (at + 1) * each)
        entered = [links[number] for number in mine]
        follow = [_follow(place, f"c{number}", work) for number in mine]
        told, moved = _moved(store, follow, entered)
        same(f"bytes of results at {site.name}", moved, each * done.bytes)
        fetch = [_fetch(raw, path, work / f"raw-{number}.h5") for number in mine]
        fetched, raw_moved = _moved(store, fetch, entered)
        same(f"bytes of raw data at {site.name}", raw_moved, each * path.stat().st_size)
        cells.append(
            {
                "site": site.name,
                "rate": site.rate,
                "ours": [one["seconds"] for one in told],
                "stock": [one["seconds"] for one in fetched],
                "analysis": fmean(one["then"] for one in fetched),
            }
        )
    sizes = _checked(work, len(links), path)
    shutil.rmtree(work)
    found = {"store": store.name, "file": path.stat().st_size, "produce": producing, "sizes": sizes}
    return {**found, "cells": cells}


def _follow(place: str, user: str, work: Path) -> Result:
    names = list(QUESTIONS)
    return {"do": "follow", "place": place, "user": user, "names": names, "folder": str(work / user)}


def _fetch(raw: str, path: Path, to: Path) -> Result:
    size = path.stat().st_size
    return {"do": "fetch", "place": raw, "key": "stock/restart", "size": size, "path": str(to)}


def _moved(store: Store, jobs: list[Result], within: list[list[str]]) -> tuple[list[Result], int]:
    """Return what processes say that did these jobs, and the bytes of data that the store sent them."""
    mark = store.mark()
    told, _ = at_once(jobs, within)
    return told, store.moved(mark).bytes_of("GET", is_data=True)


def _checked(work: Path, consumers: int, path: Path) -> dict[str, int]:
    """Compare all files of all consumers with numpy's answers; return the size of each answer."""
    expected = analysed(path)
    sizes = {}
    for name, answer in expected.items():
        for number in range(consumers):
            file = work / f"c{number}" / name / f"{path.stem}.arrow"
            with pa.memory_map(str(file)) as mapped:
                column = pa.ipc.open_file(mapped).read_all().column(0).combine_chunks()
                found = values_of(column)
            if not np.array_equal(found, answer.ravel()):
                raise SystemExit(f"{file}: other values than numpy's")
            sizes[name] = file.stat().st_size
    return sizes
