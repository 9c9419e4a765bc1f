"""Rows of SDQuery's section 5 for a deflated file: shares of it, compressed and not, against the whole file.

The paper's files are not compressed, so that a share of the values is the same share of the file. A deflated
file is smaller than its values: a large share of them takes longer than it unless it is compressed, too.
"""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from beside import warm
from cells import FILE, Cell, Run
from data import once
from draw import CLASSES, Drawn, Sample, answer, candidate, window
from gridftp import Server, checksum, encoded, serving
from network import Network
from oceans import Ocean, modb
from subsetting import THREADS, build_indexes
from transfers import Plan, compare

NAME = "deflated MODB"
# The share that was slower than the whole file.
LARGE = 0.84
# Ways of sending: the options, and whether by several streams.
WAYS = {
    "deflate=0": ("", True),
    "deflate=1, any order": (";deflate=1;order=any", True),
    "deflate=1, ascending": (";deflate=1", False),
}
# Runs of each way on each network; on the slowest nothing but the size counts.
RUNS = {"1 Gb/s": 3, "200 Mb/s": 1}


def prepare_deflated(plain: Ocean) -> Ocean:
    """Make the file of an ocean with shuffle and deflate at level 1 beside it, and its indexes."""
    path = plain.path.with_name("modb-deflated.h5")
    once(path, lambda to: _copy(plain.path, to))
    ocean = modb(path)
    build_indexes(ocean, THREADS[-1])
    return ocean


def _copy(plain: Path, path: Path) -> None:
    with h5py.File(plain) as source, h5py.File(path, "w") as f:
        stored = source["salinity"]
        kept = f.create_dataset(
            "salinity",
            stored.shape,
            stored.dtype,
            chunks=stored.chunks,
            fillvalue=stored.fillvalue,
            compression="gzip",
            compression_opts=1,
            shuffle=True,
        )
        kept.attrs["missing_value"] = stored.attrs["missing_value"]
        for time in range(stored.shape[0]):
            kept[time] = stored[time]
        for order, name in enumerate(("time", "layer", "row", "column")):
            scale = f.create_dataset(name, data=source[name][:])
            scale.make_scale(name)
            kept.dims[order].attach_scale(scale)


def draw_chosen(ocean: Ocean, seed: int) -> list[Drawn]:
    """Draw a query of the smallest class, and a range of values with the large share; answer them."""
    rng = np.random.default_rng(seed)
    sample = Sample.of(ocean, rng)
    values = sample.values
    present = values[~np.isnan(values)]
    # Missing values are selected, too: the sea alone has too few.
    wanted = LARGE - (values.size - present.size) / values.size
    ends = window(rng, present, wanted * values.size / present.size, 3)
    large = Drawn(len(CLASSES) - 1, ocean.arrays, {}, ends, is_land_kept=True)
    small = None
    while small is None:
        small = candidate(rng, sample, 0, ocean.arrays)
    answer(ocean, [small, large])
    return [small, large]


def rows(plan: Plan, network: Network, ocean: Ocean, queries: list[Drawn]) -> Iterator[Cell]:
    """Yield the File DSI, and each query by each way, whole; each result is compared with numpy's first."""
    line, runs = network.line.name, RUNS[network.line.name]
    warm(ocean.path)
    cell = Cell(NAME, line, FILE)
    expected = checksum(ocean.path)
    with serving(network, plan.target, None) as server:
        cell.runs = [_whole_file(server, ocean.path, plan.streams, expected) for _ in range(runs)]
    yield cell
    with serving(network, plan.target, plan.plugin) as server:
        for query in queries:
            share = f"{100 * query.hits / ocean.rows:.1f} %"
            cells = [Cell(NAME, line, f"{share}, {way}") for way in WAYS]
            for _ in range(runs):
                for cell, (options, parallel) in zip(cells, WAYS.values(), strict=True):
                    streams = max(2, plan.streams) if parallel else 1
                    cell.runs.append(_result(server, ocean.path, query, options, streams))
            yield from cells


def _whole_file(server: Server, path: Path, streams: int, expected: int) -> Run:
    seconds, _ = server.copy(encoded(path), streams)
    if checksum(server.received) != expected:
        raise SystemExit(f"{path} did not arrive as it is")
    size = path.stat().st_size
    return Run(0, size, seconds, size)


def _result(server: Server, path: Path, query: Drawn, options: str, streams: int) -> Run:
    seconds, _ = server.copy(encoded(path, query.sql + options), streams)
    compare(server.received, query)
    size = server.received.stat().st_size
    return Run(query.number, size, seconds, size)
