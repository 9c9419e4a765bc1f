"""Many threads of one process that read overlapping boxes of a compressed file, with and without aggregation.

``benches/read_many.py`` makes a file, asserts that all ways give the values of h5py, and prints a table: each
thread with a source of its own (nothing is shared), all threads with one source (what overlaps is read
together), one call of `read_many`, and h5py. ``--page`` writes the table into a page between its markers.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import sieva
from sieva import _native

MARKERS = ("<!-- read-many -->", "<!-- end -->")
SHAPE, CHUNKS = (48, 512, 512), (4, 128, 128)

Key = tuple[slice, slice, slice]


def keys(threads: int) -> list[Key]:
    """Return a box for each thread: half of the steps, two thirds of the rows, each begun a little later."""
    steps, _, columns = SHAPE
    begin = [round(i * (steps // 2) / threads) for i in range(threads)]
    return [
        (slice(b, b + steps // 2), slice(i % 170, i % 170 + 340), slice(0, columns))
        for i, b in enumerate(begin)
    ]


def together(work: Sequence[Callable[[], Any]]) -> tuple[float, list[Any]]:
    """Return the seconds that threads take which begin at once, and what each returned."""
    results: list[Any] = [None] * len(work)
    barrier = threading.Barrier(len(work) + 1)

    def run(i: int) -> None:
        barrier.wait()
        results[i] = work[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(work))]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, results


def decoded(source: sieva.Source) -> int:
    """Return the chunks that a source has decoded."""
    return source._native.traffic()["chunks_decoded"]  # noqa: SLF001 - counters are not public


def ways(path: Path, asked: list[Key]) -> dict[str, Callable[[], tuple[float, list[Any], int]]]:
    """Return the ways of reading: seconds, values, and chunks decoded (0: not known)."""

    def alone() -> tuple[float, list[Any], int]:
        sources = [sieva.open(path, learn=False) for _ in asked]
        took, got = together([lambda s=s, k=k: s["v"][k] for s, k in zip(sources, asked, strict=True)])
        return took, got, sum(map(decoded, sources))

    def shared() -> tuple[float, list[Any], int]:
        source = sieva.open(path, learn=False)
        took, got = together([lambda k=k: source["v"][k] for k in asked])
        return took, got, decoded(source)

    def batch() -> tuple[float, list[Any], int]:
        source = sieva.open(path, learn=False)
        started = time.perf_counter()
        got = source.read_many([("v", k) for k in asked])
        return time.perf_counter() - started, got, decoded(source)

    def peer() -> tuple[float, list[Any], int]:
        with h5py.File(path) as file:
            took, got = together([lambda k=k: file["v"][k] for k in asked])
        return took, got, 0

    return {
        "each thread a source of its own": alone,
        "all threads one source": shared,
        "one `read_many`": batch,
        "h5py, all threads one file": peer,
    }


def planned(path: Path, n: int) -> float:
    """Return the seconds of a batch of `n` boxes of an array that was never written: nothing but the plan."""
    source = sieva.open(path, learn=False)
    rng = np.random.default_rng(3)
    starts = rng.integers(0, np.array(SHAPE) - 4, (n, 3)).tolist()
    asked = [("empty", (s, [2, 2, 2])) for s in starts]
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        _native.read_many(source._native, asked, False)  # noqa: SLF001 - boxes without numpy's indices
        best = min(best, time.perf_counter() - started)
    return best


def table(path: Path, threads: int, runs: int) -> str:
    """Return the measurements as a table."""
    asked = keys(threads)
    with h5py.File(path) as file:
        whole = file["v"][...]
        chunks = file["v"].id.get_num_chunks()
    lines = ["| way | s, median of runs (range) | chunks decoded | to the first |", "|---|---|---|---|"]
    first = None
    for name, way in ways(path, asked).items():
        took = []
        for _ in range(runs):
            seconds, got, n = way()
            for key, values in zip(asked, got, strict=True):
                np.testing.assert_array_equal(values, whole[key])
            took.append(seconds)
        middle = statistics.median(took)
        first = first or middle
        count = f"{n} of {chunks}" if n else ""
        spread = f"{middle:.3f} ({min(took):.3f}..{max(took):.3f})"
        lines.append(f"| {name} | {spread} | {count} | {first / middle:.1f} |")
    boxes = 100_000
    lines += [
        "",
        f"{boxes} boxes of an array that was never written: {planned(path, boxes) * 1e3:.0f} ms, best of 5.",
    ]
    return "\n".join(lines)


def make(path: Path) -> None:
    """Write the file: a smooth field that deflate halves, and an array of which nothing was written."""
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    noise = np.random.default_rng(0).normal(0, 0.01, SHAPE)
    values = np.round(np.sin(z / 9) + np.cos(y / 40) * np.sin(x / 60) + noise, 3).astype("f4")
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("v", data=values, chunks=CHUNKS, compression="gzip", shuffle=True)
        file.create_dataset("empty", SHAPE, "f4", chunks=CHUNKS, compression="gzip")


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--page", type=Path, help="the page that is written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "many.h5"
        make(path)
        text = table(path, given.threads, given.runs)
    print(text)
    if given.page:
        before, rest = given.page.read_text().split(MARKERS[0])
        after = rest.split(MARKERS[1])[1]
        given.page.write_text(f"{before}{MARKERS[0]}\n{text}\n{MARKERS[1]}{after}")


if __name__ == "__main__":
    main()
