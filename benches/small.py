"""Small questions: a query on an open file from end to end, and the plan of a query over a million tiles.

``benches/small.py`` prints a table; ``--runs`` says how often each question is asked. The processor must be
idle otherwise.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import sieva


def median(ask: Callable[[], object], runs: int) -> str:
    """Return the median of so many calls, and the range of their middle nine tenths, in milliseconds."""
    for _ in range(min(runs, 50)):
        ask()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        ask()
        times.append((time.perf_counter() - start) * 1e3)
    low, middle, high = np.quantile(times, [0.05, 0.5, 0.95])
    return f"{middle:.2f} ms ({low:.2f}..{high:.2f})"


def main() -> None:
    """Make the files, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--tiles", type=int, default=1_000_000, help="a thousand or more")
    asked = parser.parse_args()
    values = np.random.default_rng(0).random((1000, asked.tiles // 1000 * 4), dtype="f4")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "small.h5"
        with h5py.File(path, "w", libver="latest") as file:
            file["v"] = values.flat[:1000]
            file.create_dataset("many", data=values, chunks=(1, 4))
        source = sieva.open(path, learn=False)
        print("| question | |\n|---|---|")
        for what in ("count", "read", "to_arrow"):
            arguments = ("v",) if what == "read" else ()
            ask = lambda what=what, arguments=arguments: getattr(source.query("v > 0.5"), what)(*arguments)  # noqa: E731
            print(f"| {what} of a condition on 1000 values | {median(ask, asked.runs)} |")
        for condition in ("many > 0.999", "sqrt(many) > 0.9999"):
            ask = lambda condition=condition: source.query(condition).explain()  # noqa: E731
            took = median(ask, max(asked.runs // 100, 5))
            print(f"| plan of `{condition}` over {asked.tiles} tiles | {took} |")


if __name__ == "__main__":
    main()
