#!/usr/bin/env python3
"""Groups by coordinates and the highest values, beside numpy, xarray, dask, flox, DuckDB and xarray-sql.

    benches/groups.py [--megabytes N] [--runs N] [--bound SECONDS] [--only QUESTION]... [--data DIR]
                      [--results FILE]

Asks a float32 array of times, latitudes and longitudes, contiguous and in deflated chunks, each question by
each tool in turn, opening included, on a warm page cache. The answers are compared first. The last column is
reading and decoding by sieva, with the greatest value found: what is measured is what grouping adds to that.

A tool has `SHARE` seconds for its runs of a question: one that takes more than half of it has one run, that
whose answer is compared, and is marked by a star. One that has not answered within `--bound` seconds is
stopped, and told as ``> N``. Files are kept in `--data`, and made once.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import peer_runs
import sieva
from machine import machine
from timing import Run, Times, timed, warm

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = {
    "mean over time": "SELECT lat, lon, avg(T) GROUP BY lat, lon",
    "zonal mean": "SELECT lat, avg(T) GROUP BY lat",
    "mean by month": "SELECT month(time), avg(T) GROUP BY month(time)",
    "climatology": "SELECT month(time), lat, lon, avg(T) GROUP BY month(time), lat, lon",
    "percentile per cell": "SELECT lat, lon, quantile(T, 0.9) GROUP BY lat, lon",
    "min, max, count": "SELECT lat, lon, min(T), max(T), count(T) GROUP BY lat, lon",
    # Of equal values any are the highest: only the values are compared.
    "top 10": "SELECT T ORDER BY T DESC LIMIT 10",
}
# Questions whose answers are in no order of latitudes.
WITHOUT_PLACE = ("mean by month", "top 10")
# Aggregates of each question: the last columns.
AGGREGATES = {"min, max, count": 3}
# Seconds that the runs of one tool may take for one question.
SHARE = 20.0
# xarray's means of float32 are sums in float32.
NEAR = {"rtol": 2e-4, "atol": 1e-3}


def make(directory: Path, megabytes: int) -> tuple[dict[str, Path], Path]:
    """Make the files that are not there yet."""
    directory.mkdir(parents=True, exist_ok=True)
    lats, lons = 360, 720
    times = max(12, megabytes * 10**6 // (4 * lats * lons))
    stem = f"groups-{times}x{lats}x{lons}"
    files = {kind: directory / f"{stem}-{kind}.nc" for kind in ("contiguous", "deflated")}
    parquet = directory / f"{stem}.parquet"
    for kind, path in files.items():
        if not path.exists():
            _write(path, kind, times, lats, lons)
    if not parquet.exists():
        _write_parquet(files["contiguous"], parquet)
    return files, parquet


def _write(path: Path, kind: str, times: int, lats: int, lons: int) -> None:
    """Write an array like a temperature: smooth in space, with noise of a few bits and a year in it."""
    rng = np.random.default_rng(1)
    lat = np.linspace(89.75, -89.75, lats)
    pattern = 250 + 50 * np.cos(np.radians(lat))[:, None] + 5 * np.sin(np.radians(np.arange(lons)))[None, :]
    partial = path.with_suffix(".partial")
    with netCDF4.Dataset(partial, "w") as file:
        for name, length in (("time", times), ("lat", lats), ("lon", lons)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 1980-01-01"
        # All months of a year, however few times there are.
        time[:] = np.arange(times) * max(1.0, 366 / times)
        file.createVariable("lat", "f8", ("lat",))[:] = lat
        file.createVariable("lon", "f8", ("lon",))[:] = np.arange(lons) * 0.5
        how: dict[str, Any] = {"contiguous": True}
        if kind == "deflated":
            how = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (min(12, times), 120, 240)}
        field = file.createVariable("T", "f4", ("time", "lat", "lon"), **how)
        for first in range(0, times, 48):
            days = np.arange(first, min(times, first + 48))
            season = 10 * np.sin(2 * np.pi * days / 365.25)[:, None, None] * np.sin(np.radians(lat))[:, None]
            noise = np.round(rng.standard_normal((len(days), lats, lons)) * 8) / 4
            field[first : first + len(days)] = np.round((pattern + season + noise) * 64) / 64
    partial.rename(path)


def _write_parquet(source: Path, path: Path) -> None:
    """Write the rows for DuckDB, a time after the other."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    partial = path.with_suffix(".partial")
    with netCDF4.Dataset(source) as file:
        lat, lon = file["lat"][:].data, file["lon"][:].data
        dates = netCDF4.num2date(file["time"][:], file["time"].units, only_use_cftime_datetimes=False)
        columns = {"lat": np.repeat(lat, len(lon)), "lon": np.tile(lon, len(lat))}
        writer = None
        for i, date in enumerate(dates):
            n = len(columns["lat"])
            stamp = pa.array(np.full(n, np.datetime64(date.isoformat(), "ms")))
            table = pa.table({"time": stamp, **columns, "T": file["T"][i].data.ravel()})
            writer = writer or pq.ParquetWriter(partial, table.schema)
            writer.write_table(table)
        if writer:
            writer.close()
    partial.rename(path)


class Peers:
    """The process that answers as other tools do."""

    def __init__(self, python: Path) -> None:
        self.command = [str(python), str(Path(__file__).parent / "peers" / "groups.py")]
        self.process = self._start()
        self.names = [str(name) for name in self.ask({"peers": True})]
        self.unable = {str(name): list(questions) for name, questions in self.ask({"unable": True}).items()}

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def of(self, question: str) -> list[str]:
        """Return the names of those that can answer a question."""
        return [name for name in self.names if question not in self.unable.get(name, [])]

    def ask(self, job: dict[str, object], bound: float | None = None) -> Any:  # noqa: ANN401 -- JSON
        """Return what comes back; None, and begin anew, where that takes more than so many seconds."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the peers are not connected")
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        # One line comes for each that is sent, so that nothing waits in a buffer.
        if not select.select([self.process.stdout], [], [], bound)[0]:
            self.process.kill()
            self.process.wait()
            self.process = self._start()
            return None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peers ended at {job}")
        return json.loads(line)


def ours(path: Path, question: str, memory: str) -> list[np.ndarray]:
    """Return the aggregates, opening the file."""
    table = sieva.open(path).sql(QUESTIONS[question], memory=memory).to_arrow()
    wanted = table.columns[-AGGREGATES.get(question, 1) :]
    return [np.asarray(column) for column in wanted]


def in_file_order(answer: list[np.ndarray], question: str, lats: int) -> list[np.ndarray]:
    """Turn groups, which come in the order of their keys, so that latitudes fall as in the file."""
    if question in WITHOUT_PLACE:
        return answer
    return [
        a.reshape(-1, lats, a.size // lats // (12 if question == "climatology" else 1))[:, ::-1].ravel()
        for a in answer
    ]


def read_alone(path: Path) -> float:
    """Read and decode the array with all cores, as the simplest aggregate of all values."""
    # By scanning: statistics that earlier runs left would answer without reading.
    table = sieva.open(path).sql("SELECT max(T)", access="scan").to_arrow()
    return float(table.columns[0][0].as_py())


def compare(
    path: Path, parquet: Path, question: str, peers: Peers | None, options: argparse.Namespace
) -> dict[str, float | None]:
    """Raise if an answer differs; return how many seconds each peer took, None of those that were stopped."""
    with netCDF4.Dataset(path) as file:
        lats = file.dimensions["lat"].size
    mine = in_file_order(ours(path, question, options.memory), question, lats)
    seconds: dict[str, float | None] = {}
    for peer in peers.of(question) if peers else []:
        with tempfile.TemporaryDirectory() as directory:
            answer = Path(directory) / "answer.npz"
            job = _job(peer, question, path, parquet, answer=str(answer))
            seconds[peer] = peers.ask(job, options.bound)
            if seconds[peer] is None:
                continue
            with np.load(answer) as theirs:
                for a, b in zip(mine, theirs.values(), strict=True):
                    np.testing.assert_allclose(a, b, **NEAR, err_msg=f"{question} by {peer}")
    return seconds


def _job(peer: str, question: str, path: Path, parquet: Path, **more: object) -> dict[str, object]:
    return {"peer": peer, "question": question, "file": str(path), "parquet": str(parquet), **more}


def measure(
    path: Path, parquet: Path, question: str, peers: Peers | None, options: argparse.Namespace
) -> dict[str, Times | None]:
    """Return the times of all tools; None of those that did not answer in time."""
    first = compare(path, parquet, question, peers, options)
    times: dict[str, Times | None] = {
        peer: None if seconds is None else Times((seconds,)) for peer, seconds in first.items()
    }
    runs: dict[str, Run] = {"sieva": timed(lambda: ours(path, question, options.memory))}
    most = dict.fromkeys(("sieva", "reading alone"), options.runs)
    for peer, seconds in first.items() if peers else ():
        if seconds is not None and seconds <= SHARE / 2:
            most[peer] = int(min(options.runs, SHARE / max(seconds, 1e-3)))
            runs[peer] = lambda peer=peer: float(str(peers.ask(_job(peer, question, path, parquet))))
    runs["reading alone"] = timed(lambda: read_alone(path))
    # Comparing was the round to warm up.
    runs["reading alone"]()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(options.runs):
        for name, run in runs.items():
            if number < most[name]:
                taken[name].append(run())
    return times | {name: Times(tuple(seconds)) for name, seconds in taken.items()}


def line(kind: str, question: str, times: dict[str, Times | None], names: list[str], bound: float) -> str:
    """Return a row of the table: sieva's time, and how many times as long others take."""
    mine = _known(times, "sieva").median

    def ratio(name: str) -> str:
        if name not in times:
            return "cannot"
        known = times[name]
        if known is None:
            return f"> {bound / mine:.0f} (> {bound:.0f} s)"
        return f"{known.median / mine:.2f}" + ("*" if len(known.seconds) == 1 else "")

    others = [ratio(name) for name in names]
    return f"| {kind} | {question} | {times['sieva']} | " + " | ".join(others) + " |"


def _known(times: dict[str, Times | None], name: str) -> Times:
    found = times[name]
    if found is None:
        raise RuntimeError(f"{name} did not answer")
    return found


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--bound", type=float, default=40.0, help="seconds that a peer may take to answer")
    options.add_argument("--only", action="append", choices=list(QUESTIONS), default=None)
    options.add_argument("--data", type=Path, default=ROOT / "target" / "bench-data")
    options.add_argument("--results", type=Path)
    options.add_argument("--memory", default="4GiB", help="sieva's limit: percentiles keep all values")
    options.add_argument("--no-peers", action="store_true")
    options.add_argument("--this-python", action="store_true", help="peers as installed beside sieva")
    asked = options.parse_args()
    files, parquet = make(asked.data, asked.megabytes)
    python = Path(sys.executable) if asked.this_python else peer_runs.python
    peers = None if asked.no_peers else Peers(python if isinstance(python, Path) else python())
    records = []
    names = [*(peers.names if peers else []), "reading alone"]
    for kind, path in files.items():
        warm(path)
        for question in asked.only or QUESTIONS:
            times = measure(path, parquet, question, peers, asked)
            if not records:
                print("| layout | question | sieva | " + " | ".join(names) + " |")
                print("|---" * (3 + len(names)) + "|")
            print(line(kind, question, times, names, asked.bound), flush=True)
            # Nothing of those that were stopped: they took more than the bound.
            seconds = {name: t.seconds if t else [] for name, t in times.items()}
            records.append({"layout": kind, "question": question, "bound": asked.bound} | seconds)
    if asked.results:
        head = {"machine": machine(), "command": " ".join(sys.argv), "load": os.getloadavg()}
        asked.results.write_text(json.dumps(head | {"figures": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
