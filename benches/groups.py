#!/usr/bin/env python3
"""Groups by coordinates and the highest values, beside numpy, xarray, dask, flox, DuckDB and xarray-sql.

    benches/groups.py [--megabytes N] [--runs N] [--only QUESTION]... [--data DIR] [--results FILE]

Asks a float32 array of times, latitudes and longitudes, contiguous and in deflated chunks, each question by
each tool in turn, opening included, on a warm page cache. The answers are compared first. The last column is
reading and decoding by sieva, with the greatest value found: what is measured is what grouping adds to that.
"""

import argparse
import json
import os
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
from timing import Run, Times, interleave, timed, warm

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
        script = Path(__file__).parent / "peers" / "groups.py"
        command = [str(python), str(script)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names = [str(name) for name in self.ask({"peers": True})]
        self.unable = {str(name): list(questions) for name, questions in self.ask({"unable": True}).items()}

    def of(self, question: str) -> list[str]:
        """Return the names of those that can answer a question."""
        return [name for name in self.names if question not in self.unable.get(name, [])]

    def ask(self, job: dict[str, object]) -> Any:  # noqa: ANN401 -- JSON
        """Return what comes back."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the peers are not connected")
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
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


def compare(path: Path, parquet: Path, question: str, peers: Peers | None, memory: str) -> None:
    """Raise if an answer differs."""
    with netCDF4.Dataset(path) as file:
        lats = file.dimensions["lat"].size
    mine = in_file_order(ours(path, question, memory), question, lats)
    for peer in peers.of(question) if peers else []:
        with tempfile.TemporaryDirectory() as directory:
            answer = Path(directory) / "answer.npz"
            peers.ask(_job(peer, question, path, parquet, answer=str(answer)))
            with np.load(answer) as theirs:
                for a, b in zip(mine, theirs.values(), strict=True):
                    np.testing.assert_allclose(a, b, **NEAR, err_msg=f"{question} by {peer}")


def _job(peer: str, question: str, path: Path, parquet: Path, **more: object) -> dict[str, object]:
    return {"peer": peer, "question": question, "file": str(path), "parquet": str(parquet), **more}


def measure(
    path: Path, parquet: Path, question: str, peers: Peers | None, options: argparse.Namespace
) -> dict[str, Times]:
    """Return the times of all tools."""
    runs: dict[str, Run] = {"sieva": timed(lambda: ours(path, question, options.memory))}
    for peer in peers.of(question) if peers else []:
        runs[peer] = lambda peer=peer: float(str(peers.ask(_job(peer, question, path, parquet))))
    runs["reading alone"] = timed(lambda: read_alone(path))
    return interleave(runs, options.runs)


def line(kind: str, question: str, times: dict[str, Times], names: list[str]) -> str:
    """Return a row of the table: sieva's time, and how many times as long others take."""
    mine = times["sieva"].median
    others = [f"{times[name].median / mine:.2f}" if name in times else "cannot" for name in names]
    return f"| {kind} | {question} | {times['sieva']} | " + " | ".join(others) + " |"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--runs", type=int, default=5)
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
            compare(path, parquet, question, peers, asked.memory)
            times = measure(path, parquet, question, peers, asked)
            if not records:
                print("| layout | question | sieva | " + " | ".join(names) + " |")
                print("|---" * (3 + len(names)) + "|")
            print(line(kind, question, times, names), flush=True)
            records.append({"layout": kind, "question": question} | {n: t.seconds for n, t in times.items()})
    if asked.results:
        head = {"machine": machine(), "command": " ".join(sys.argv), "load": os.getloadavg()}
        asked.results.write_text(json.dumps(head | {"figures": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
