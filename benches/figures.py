"""The figures: what is measured, against whom, and what was promised."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import sieva
import xarray as xr
from data import GROUP, Files, Size
from figure import Figure, at_least, same
from timing import Run, fastest, interleave, timed, warm

ENERGY = f'"{GROUP}/Energy"'
# The knee and the rate of the energies' tail make this the threshold of 0.1 % of them.
SCATTERED = 1.888
BLOCK = 1 << 20
WHOLE, BLOCKS = "h5py + numpy, whole", "h5py + numpy, blocks"
WIDENED, PREAD = "h5py + numpy, whole, in float64", "two threads of pread"
OCEAN = "TEMP > 5 AND TLAT BETWEEN 18 AND 31 AND TLONG BETWEEN 262 AND 280 AND z_t < 5000"


def count_sieva(path: Path, condition: str, threads: int | None = None) -> int:
    """Open, ask, count."""
    return sieva.open(path).query(condition, threads=threads).count()


def count_whole(path: Path) -> int:
    """Count by h5py and numpy: all at once. The exact bound of 1.7 in float32 spares widening the data."""
    with h5py.File(path) as f:
        return int(np.count_nonzero(f[GROUP]["Energy"][:] >= np.float32(1.7)))


def count_blocks(path: Path) -> int:
    """Count by h5py and numpy: block by block into one buffer."""
    buffer = np.empty(BLOCK, "f4")
    with h5py.File(path) as f:
        energy = f[GROUP]["Energy"]
        hits = 0
        for start in range(0, len(energy), BLOCK):
            part = buffer[: min(BLOCK, len(energy) - start)]
            energy.read_direct(part, np.s_[start : start + len(part)])
            hits += int(np.count_nonzero(part >= np.float32(1.7)))
    return hits


def count_widened(path: Path) -> int:
    """Count by h5py and numpy as it is written: a comparison of real numbers, so in float64."""
    with h5py.File(path) as f:
        return int(np.count_nonzero(f[GROUP]["Energy"][:].astype("f8") > 1.7))


def h5py_modes(path: Path) -> dict[str, Run]:
    """Return the ways in which h5py may count."""
    return {WHOLE: timed(lambda: count_whole(path)), BLOCKS: timed(lambda: count_blocks(path))}


def plain_reader(path: Path, array: str) -> Run | None:
    """Return a run of two plain threads that read an array's bytes; None where there is no C compiler."""
    compiler = shutil.which("cc")
    info = sieva.open(path)._native.info(array)  # noqa: SLF001 -- the offset is not shown elsewhere
    if compiler is None or info["offset"] is None:
        return None
    program = Path(tempfile.mkdtemp()) / "pread"
    source = Path(__file__).with_name("pread.c")
    subprocess.run([compiler, "-O2", "-pthread", "-o", str(program), str(source)], check=True)
    command = [str(program), str(path), str(info["offset"]), str(int(np.prod(info["shape"])) * 4)]

    def run(buffer: int) -> float:
        return float(
            subprocess.run([*command, str(buffer)], check=True, capture_output=True, text=True).stdout
        )

    best = min((1 << 18, 1 << 19, 1 << 20), key=lambda size: min(run(size) for _ in range(3)))
    return lambda: run(best)


def contiguous(files: Files, runs: int) -> Iterator[Figure]:
    """Count over a contiguous float32 array."""
    path, condition = files.particles, f"{ENERGY} > 1.7"
    warm(path)
    answers = {"whole": count_whole(path), "blocks": count_blocks(path), "widened": count_widened(path)}
    same({"sieva": count_sieva(path, condition), **answers})
    things = {
        "sieva": timed(lambda: count_sieva(path, condition)),
        **h5py_modes(path),
        WIDENED: timed(lambda: count_widened(path)),
    }
    reader = plain_reader(path, f"{GROUP}/Energy")
    if reader:
        things[PREAD] = reader
    times = interleave(things, runs)
    name = "count Energy > 1.7, contiguous float32, against h5py + numpy"
    shown = times
    for rival, mode in (
        (WIDENED, "in float64, as it is written"),
        (WHOLE, "on the whole array, with the float32 bound"),
        (BLOCKS, "in blocks of one buffer, with the float32 bound"),
    ):
        # The ceiling: what two threads that only read the bytes would reach.
        most = f"; {times[rival].median / times[PREAD].median:.1f}x by pread alone" if reader else ""
        ratio = times[rival].median / times["sieva"].median
        yield at_least(f"{name} {mode}", 5, ratio, f"the copy out of the page cache{most}", shown)
        shown = {}
    if reader:
        share = times[PREAD].median / times["sieva"].median
        yield Figure(
            "the same, as share of the rate of two threads that only pread",
            ">= 70 %",
            100 * share,
            "%",
            share >= 0.7,
            "opening, starting threads and testing beside the copy",
        )


def deflated(files: Files, runs: int) -> Iterator[Figure]:
    """Count over shuffled and deflated chunks."""
    path, condition = files.deflated, f"{ENERGY} > 1.7"
    warm(path)
    rivals = h5py_modes(path)
    same({"sieva": count_sieva(path, condition), "whole": count_whole(path), "blocks": count_blocks(path)})
    best = fastest(rivals, 1)
    things = {
        "sieva": timed(lambda: count_sieva(path, condition)),
        best: rivals[best],
        "sieva, 1 thread": timed(lambda: count_sieva(path, condition, 1)),
        "sieva, 2 threads": timed(lambda: count_sieva(path, condition, 2)),
    }
    times = interleave(things, runs)
    limit = "the decoder (libdeflate) on all cores"
    ratio = times[best].median / times["sieva"].median
    yield at_least("the same on deflate + shuffle, against h5py + numpy", 3, ratio, limit, times, rival=best)
    scaling = times["sieva, 1 thread"].median / times["sieva, 2 threads"].median
    yield at_least("the same, 2 threads against 1", 1.7, scaling, limit, {})


def scattered(files: Files, runs: int) -> Iterator[Figure]:
    """Fetch three arrays at 0.1 % of the positions."""
    path = files.particles
    source = sieva.open(path)
    names = [f"{GROUP}/{axis}" for axis in "xyz"]
    query = source.query(f"{ENERGY} > {SCATTERED}", select=names)
    with h5py.File(path) as f:
        mask = f[GROUP]["Energy"][:].astype("f8") > SCATTERED
        arrays = [f[name] for name in names]
        for got, array in zip((query.read(name) for name in names), arrays, strict=True):
            if not np.array_equal(got, array[:][mask]):
                raise SystemExit(f"{array.name}: the values differ")
        things = {
            "sieva": timed(lambda: [query.read(name) for name in names]),
            "h5py, all read, numpy mask": timed(lambda: [array[:][mask] for array in arrays]),
            "h5py, mask": timed(lambda: [array[mask] for array in arrays]),
            "sieva, condition included": timed(lambda: _ask_and_read(path, names)),
        }
        times = interleave(things, runs)
    limit = "a request for each hit: some 0.3 us of a core"
    note = {"hits": int(mask.sum()), "share": float(mask.mean())}
    ratio = times["h5py, mask"].median / times["sieva"].median
    yield at_least(
        "fetch x, y, z of 0.1 % scattered hits, against h5py's mask", 10, ratio, limit, times, **note
    )
    ratio = times["h5py, all read, numpy mask"].median / times["sieva"].median
    yield at_least("the same, against h5py reading all and numpy's mask", 1, ratio, limit, {})


def _ask_and_read(path: Path, names: list[str]) -> list[np.ndarray]:
    query = sieva.open(path).query(f"{ENERGY} > {SCATTERED}", select=names)
    return [query.read(name) for name in names]


def _xarray_count(path: Path, **options: object) -> int:
    with xr.open_dataset(path, decode_times=False, **options) as ds:
        wanted = (ds.TEMP > 5) & (ds.TLAT >= 18) & (ds.TLAT <= 31) & (ds.TLONG >= 262) & (ds.TLONG <= 280)
        return int(ds.TEMP.where(wanted & (ds.z_t < 5000)).count())


def _xarray_sliced(path: Path) -> int:
    """Cut depth out by hand before anything is read, as one would who knows the order of the axis."""
    with xr.open_dataset(path, decode_times=False) as ds:
        above = ds.isel(z_t=slice(0, int((ds.z_t < 5000).sum())))
        wanted = (above.TLAT >= 18) & (above.TLAT <= 31) & (above.TLONG >= 262) & (above.TLONG <= 280)
        return int(above.TEMP.where(wanted & (above.TEMP > 5)).count())


def ocean(files: Files, runs: int) -> Iterator[Figure]:
    """Count in a box of a four-dimensional field."""
    path = files.ocean
    warm(path)
    rivals: dict[str, Callable[[], int]] = {"xarray, dask off": lambda: _xarray_count(path)}
    try:
        rivals["xarray, dask on"] = lambda: _xarray_count(path, chunks={})
        rivals["xarray, dask on"]()
    except (ImportError, ValueError):
        del rivals["xarray, dask on"]  # dask is not installed
    by_hand = {"xarray, depth cut by hand": lambda: _xarray_sliced(path)}
    answers = {name: count() for name, count in (rivals | by_hand).items()}
    same({"sieva": count_sieva(path, OCEAN), **answers})
    runs_of = {name: timed(count) for name, count in (rivals | by_hand).items()}
    times = interleave({"sieva": timed(lambda: count_sieva(path, OCEAN)), **runs_of}, runs)
    best = min(rivals, key=lambda name: times[name].median)
    query = sieva.open(path).query(OCEAN)
    query.count()
    stats = query.stats()
    notes = {
        key: stats[key] for key in ("hits", "bytes_read", "chunks_decoded", "library_reads") if key in stats
    }
    ratio = times[best].median / times["sieva"].median
    notes |= {"rival": best, "chunks_in_the_file": _chunks(path)}
    yield at_least(
        "ocean box in four dimensions, against xarray where + count",
        5,
        ratio,
        "decoding the chunks of the box",
        times,
        **notes,
    )


def _chunks(path: Path) -> int:
    with h5py.File(path) as f:
        return int(f["TEMP"].id.get_num_chunks())


# Not getrusage: its peak includes what the parent held when it started the process.
_PEAK = """
import sys, sieva
hits = sieva.open(sys.argv[1]).query("a > 0.5").count()
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(hits, int(peak.split()[1]) / 1024)
"""


def memory(files: Files, size: Size) -> Iterator[Figure]:
    """Measure the peak memory of a count over an array of 4 GB."""
    peaks = {}
    for name, path in (("contiguous", files.large), ("deflate", files.large_deflated)):
        command = [sys.executable, "-c", _PEAK, str(path)]
        hits, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        same({"sieva": int(hits), "the file": 1})
        peaks[name] = float(peak)
    peak = max(peaks.values())
    gigabytes = 4 * size.large / 1e9
    name = f"peak memory of a count over {gigabytes:g} GB"
    yield Figure(name, "< 256 MiB", peak, "MiB", peak < 256, "Python itself", {}, peaks)


def start(runs: int) -> Iterator[Figure]:
    """Measure how long the program and the package take to start."""
    program = Path(sys.executable).with_name("sieva")
    commands = {
        "sieva --version": [str(program), "--version"],
        "import sieva": [
            sys.executable,
            "-c",
            "import sieva, sys; assert not {'xarray', 'pandas'} & set(sys.modules)",
        ],
        "python alone": [sys.executable, "-c", ""],
    }
    if not program.exists():
        del commands["sieva --version"]
    things = {
        name: timed(lambda c=c: subprocess.run(c, check=True, capture_output=True))
        for name, c in commands.items()
    }
    times = interleave(things, runs)
    name = next(iter(times))
    seconds = times[name].median
    yield Figure(name, "< 0.2 s", seconds, "s", seconds < 0.2, "starting Python", times)
