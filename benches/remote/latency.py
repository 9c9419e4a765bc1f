"""The first queries on an HDF5 object of about 1 GB behind 60 ms of latency: sieva against h5py over fsspec.

Each task is done by new processes, against a web server that is a process of its own, counts requests and
bytes, and waits before each answer. Answers are compared; what differs ends the run. The rival runs in all
its kinds of cache, and every one is listed. With an *index beside* the server's directory has one of the
file, made by ``sieva index``; it is moved away for all other ways.

    benches/remote/latency.py [--data DIR] [--milliseconds 60] [--runs 3] [--rivals PYTHON] [--json FILE]

`--rivals` is an interpreter that has fsspec, aiohttp, h5py and numpy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import data

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent.parent / "python" / "tests" / "services" / "range_server.py"
TASKS = ("list", "range", "scan", "two", "rare")
KINDS = ("readahead", "bytes", "blockcache", "background")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "target" / "bench-data")
    parser.add_argument("--milliseconds", type=float, default=60)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rivals", default=sys.executable)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    data.write(options.data / "forecast.h5")
    index(options.data)
    command = [sys.executable, SERVER, options.data, str(options.milliseconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline() if server.stdout else 0)
            results = measure(f"http://127.0.0.1:{port}", options)
        finally:
            server.terminate()
    print(f"{platform.node()}, {os.cpu_count()} processors, {options.milliseconds} ms, {options.runs} runs\n")
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def measure(address: str, options: argparse.Namespace) -> list[dict]:
    """Return a record for each task and way, sieva's first."""
    results = []
    for task in TASKS:
        answers = set()
        ways = [("sieva", sys.executable, "ours.py"), ("sieva again", sys.executable, "ours.py")]
        ways += [("sieva, index beside", sys.executable, "ours.py")]
        ways += [(f"h5py, {kind}", options.rivals, "theirs.py") for kind in KINDS]
        for way, python, script in ways:
            runs = []
            place(options.data, beside=way.endswith("beside"))
            for _ in range(options.runs):
                with tempfile.TemporaryDirectory() as cache:
                    words = [python, HERE / script, task, f"{address}/forecast.h5", way.split(", ")[-1]]
                    environment = {**os.environ, "SIEVA_CACHE": cache, "SIEVA_LEARN": "0"}
                    if way == "sieva again":
                        run(words, environment)
                    traffic(address)
                    said = run(words, environment)
                runs.append((said["seconds"], traffic(address)))
                answers.add(said["answer"])
            if len(answers) != 1:
                raise SystemExit(f"{task}: the answers differ: {answers}")
            seconds = [s for s, _ in runs]
            last = runs[-1][1]
            results.append(
                {
                    "task": task,
                    "way": way,
                    "seconds": seconds,
                    "requests": last["requests"],
                    "bytes": last["bytes"],
                }
            )
            print(results[-1], file=sys.stderr)
    return results


def index(directory: Path) -> None:
    """Index the file as its publisher would, if it is not done."""
    place(directory, beside=True)
    sieva = Path(sys.executable).with_name("sieva")
    names = [word for name in data.VARIABLES for word in ("--var", name)]
    subprocess.run([sieva, "index", directory / "forecast.h5", *names], check=True, capture_output=True)


def place(directory: Path, *, beside: bool) -> None:
    """Put the index beside the file, or where nobody looks for it."""
    there, aside = directory / "forecast.h5.sieva", directory / "forecast.h5.sieva-aside"
    source, target = (aside, there) if beside else (there, aside)
    if source.exists():
        source.rename(target)


def run(words: list, environment: dict[str, str]) -> dict:
    """Run one task in a process; return its time and answer."""
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def traffic(address: str) -> dict:
    """Return the server's counters and set them back."""
    with urllib.request.urlopen(f"{address}/-/traffic") as answer:  # noqa: S310 - the server started above
        return json.load(answer)


def table(results: list[dict]) -> str:
    """Return the results as a table in Markdown; ratios are of a way to sieva's first."""
    lines = [
        "| task | way | requests | MB | s (range) | requests x | time x |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        ours = next(o for o in results if o["task"] == r["task"])
        middle = statistics.median(r["seconds"])
        base = statistics.median(ours["seconds"])
        lines.append(
            f"| {r['task']} | {r['way']} | {r['requests']} | {r['bytes'] / 1e6:.2f} "
            f"| {middle:.2f} ({min(r['seconds']):.2f}..{max(r['seconds']):.2f}) "
            f"| {r['requests'] / ours['requests']:.1f} | {middle / base:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
