"""The files that are measured on, made once and kept."""

import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from sieva import generate

ROOT = Path(__file__).resolve().parent.parent
# The generators that the stated figures are of, where they are beside the checkout; else the package's own.
SHARED = ROOT.parent / "shared" / "datasets"
GROUP = "Step#0"
CHUNK = 1 << 18
LARGE = 10**9


@dataclass(frozen=True)
class Size:
    """How large the files are."""

    name: str
    particles: int
    times: int
    depths: int
    lats: int
    lons: int
    large: int


FULL = Size("full", 100_000_000, 12, 40, 600, 800, LARGE)
QUICK = Size("quick", 400_000, 3, 12, 80, 100, 1_000_000)


@dataclass(frozen=True)
class Files:
    """Where the files are."""

    particles: Path
    deflated: Path
    ocean: Path
    large: Path
    large_deflated: Path


def prepare(directory: Path, size: Size) -> Files:
    """Make what is missing in a directory."""
    target = directory / size.name
    target.mkdir(parents=True, exist_ok=True)
    files = Files(
        target / "particles.h5",
        target / "particles_deflate.h5",
        target / "ocean.nc",
        target / "large.h5",
        target / "large_deflate.h5",
    )
    _once(files.particles, lambda path: _write_particles(path, size.particles))
    _once(files.deflated, lambda path: _deflate(files.particles, path))
    _once(files.ocean, lambda path: _write_ocean(path, size))
    _once(files.large, lambda path: _write_large(path, size.large))
    _once(files.large_deflated, lambda path: _write_large_deflated(path, size.large))
    return files


def _once(path: Path, write: object) -> None:
    if path.exists():
        return
    print(f"making {path.name} ...", file=sys.stderr)
    partial = path.with_name(f"partial_{path.name}")
    write(partial)  # type: ignore[operator]
    partial.replace(path)


def _run(script: str, path: Path, **options: int) -> bool:
    """Run a shared generator, if it is there."""
    if not (SHARED / script).exists():
        return False
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    subprocess.run([sys.executable, str(SHARED / script), str(path), *words], check=True)
    return True


def _write_particles(path: Path, n: int) -> None:
    if not _run("make_particles.py", path, n=n):
        generate.write_particles(path, n=n, group=GROUP)


def _write_ocean(path: Path, size: Size) -> None:
    if not _run("make_ocean.py", path, time=size.times, depth=size.depths, lat=size.lats, lon=size.lons):
        generate.write_ocean(path, times=size.times, depths=size.depths, lats=size.lats, lons=size.lons)


def _deflate(source: Path, path: Path) -> None:
    """Copy the energies into chunks of 1 MiB, shuffled and deflated at level 4."""
    with h5py.File(source) as f, h5py.File(path, "w") as g:
        energy = f[GROUP]["Energy"]
        chunk = min(CHUNK, len(energy))
        options = {"chunks": (chunk,), "shuffle": True, "compression": "gzip", "compression_opts": 4}
        copy = g.create_dataset(f"{GROUP}/Energy", energy.shape, "f4", **options)
        for start in range(0, len(energy), chunk):
            copy[start : start + chunk] = energy[start : start + chunk]


def _write_large(path: Path, n: int) -> None:
    """Write a sparse contiguous array of zeros that ends in a one."""
    with h5py.File(path, "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((n,))
        h5py.h5d.create(f.id, b"a", h5py.h5t.IEEE_F32LE, space, plist)
        f["a"][-1] = 1


def _write_large_deflated(path: Path, n: int) -> None:
    """Write deflated chunks, all but the last of the same bytes."""
    chunk = min(4 * CHUNK, n)
    zeros = zlib.compress(bytes(4 * chunk), 1)
    with h5py.File(path, "w", libver="latest") as f:
        a = f.create_dataset("a", (n,), "f4", chunks=(chunk,), compression="gzip")
        for start in range(0, n - chunk + 1, chunk):
            a.id.write_direct_chunk((start,), zeros)
        a[-1] = np.float32(1)
