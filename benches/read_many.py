"""Many threads of one process that read overlapping boxes of a compressed file, with and without aggregation.

``benches/read_many.py`` makes a file, asserts that all ways give the values of h5py, and prints a table: each
thread with a source of its own (nothing is shared), all threads with one source (what overlaps is read
together), one call of `read_many`, and h5py. ``--page`` writes the table into a page between its markers;
``--overhead`` tells what part of a batch is its plan, and prints nothing else.
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
        # Sources of one session would read together.
        sources = [sieva.Session(cache=0).open(path, learn=False) for _ in asked]
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


def plan_of(source: sieva.Source) -> float:
    """Return the seconds that the batches of a source took until it was known what is read for whom."""
    return source._native.traffic()["plan_nanoseconds"] / 1e9  # noqa: SLF001 - counters are not public


def planned(path: Path, name: str, n: int) -> tuple[float, float]:
    """Return the seconds of a batch of `n` boxes of 2 x 2 x 2, of its plan and of all of it: best of 5."""
    source = sieva.open(path, learn=False)
    rng = np.random.default_rng(3)
    starts = rng.integers(0, np.array(SHAPE) - 4, (n, 3)).tolist()
    asked = [(name, (s, [2, 2, 2], None)) for s in starts]
    plan = whole = float("inf")
    for _ in range(5):
        before, started = plan_of(source), time.perf_counter()
        # The list of arrays is dropped after the clock was looked at.
        got = _native.read_many(source._native, asked, False)  # noqa: SLF001 - boxes without numpy's indices
        whole = min(whole, time.perf_counter() - started)
        plan = min(plan, plan_of(source) - before)
        del got
    return plan, whole


def overhead(path: Path, callers: int, each: int, runs: int) -> str:
    """Return what part of reading one batch for all callers is its plan."""
    rng = np.random.default_rng(7)
    shape = np.array([6, 64, 64])

    def boxes(n: int) -> list[tuple[str, Any]]:
        starts = rng.integers(0, np.array(SHAPE) - shape, (n, 3))
        ends = starts + shape
        return [("v", tuple(map(slice, *at))) for at in zip(starts.tolist(), ends.tolist(), strict=True)]

    what = f"{callers} callers, {each} boxes of {' x '.join(map(str, shape))} each"
    lines = [f"| {what} | plan, ms | all, ms | part |", "|---|---|---|---|"]
    asked = [boxes(each) for _ in range(callers)]

    def one(source: sieva.Source) -> float:
        started = time.perf_counter()
        source.read_many([request for own in asked for request in own])
        return time.perf_counter() - started

    plan, took = [], []
    for _ in range(runs):
        source = sieva.open(path, learn=False, memory="4GiB")
        source.read_many(asked[0][:1])
        before = plan_of(source)
        took.append(one(source))
        plan.append(plan_of(source) - before)
    p, t = statistics.median(plan), statistics.median(took)
    lines.append(f"| one batch | {p * 1e3:.2f} | {t * 1e3:.1f} | {p / t:.2%} |")
    return "\n".join(lines)


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
    lines += ["", f"| {boxes} boxes of 2 x 2 x 2 | plan, ms | all, ms |", "|---|---|---|"]
    for name, what in {"empty": "never written", "v": "compressed"}.items():
        plan, whole = planned(path, name, boxes)
        lines.append(f"| {what} | {plan * 1e3:.0f} | {whole * 1e3:.0f} |")
    return "\n".join([*lines, "", overhead(path, 50, 50, runs)])


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
    parser.add_argument("--overhead", action="store_true", help="only what part of a batch is its plan")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "many.h5"
        make(path)
        only = given.overhead
        text = overhead(path, 50, 50, given.runs) if only else table(path, given.threads, given.runs)
    print(text)
    if given.page and not given.overhead:
        before, rest = given.page.read_text().split(MARKERS[0])
        after = rest.split(MARKERS[1])[1]
        given.page.write_text(f"{before}{MARKERS[0]}\n{text}\n{MARKERS[1]}{after}")


if __name__ == "__main__":
    main()
