"""The files that are measured on, made once and kept."""

import subprocess
import sys
import zlib
from collections.abc import Callable, Collection
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
# Where the tail of energies begins, and how fast it falls: of `sieva.generate`, and of PDC's section V.
OWN_KNEE, OWN_RATE = 1.3, 5.8
PDC_KNEE, PDC_RATE = 2.1, 5.776


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
    # Times of the two files that random queries fetch from: 2000 of them, in three ways, take a while.
    fetch_times: int
    queries: int


FULL = Size("full", 100_000_000, 12, 40, 600, 800, LARGE, 1, 2000)
QUICK = Size("quick", 400_000, 3, 12, 80, 100, 1_000_000, 1, 24)


@dataclass(frozen=True)
class Files:
    """Where the files are: particles with the tail of SDS, and with that of PDC (`pdc`), and oceans."""

    particles: Path
    pdc: Path
    deflated: Path
    ocean: Path
    large: Path
    large_deflated: Path
    classic: Path
    modb: Path


def prepare(directory: Path, size: Size, wanted: Collection[str]) -> Files:
    """Make what is missing in a directory of the files, named by attributes of `Files`, that are wanted."""
    target = directory / size.name
    target.mkdir(parents=True, exist_ok=True)
    files = Files(
        target / "particles.h5",
        target / "particles_pdc.h5",
        target / "particles_deflate.h5",
        target / "ocean.nc",
        target / "large.h5",
        target / "large_deflate.h5",
        target / "ocean_classic.nc",
        target / "ocean_modb.h5",
    )
    makers: dict[str, Callable[[Path], None]] = {
        "particles": lambda path: _write_particles(path, size.particles, "sds"),
        "pdc": lambda path: _write_particles(path, size.particles, "pdc"),
        "deflated": lambda path: _deflate(files.particles, path),
        "ocean": lambda path: _write_ocean(path, size),
        "large": lambda path: _write_large(path, size.large),
        "large_deflated": lambda path: _write_large_deflated(path, size.large),
        "classic": lambda path: _write_field(path, size, "classic"),
        "modb": lambda path: _write_field(path, size, "modb"),
    }
    for name, write in makers.items():
        if name in wanted:
            once(getattr(files, name), write)
    return files


def once(path: Path, write: Callable[[Path], None]) -> None:
    """Make a file that is missing; it has its name when it is complete."""
    if path.exists():
        return
    print(f"making {path.name} ...", file=sys.stderr)
    partial = path.with_name(f"partial_{path.name}")
    write(partial)
    if partial.exists():
        partial.replace(path)


def _run(script: str, path: Path, **options: int | str) -> bool:
    """Run a shared generator, if it is there."""
    if not (SHARED / script).exists():
        return False
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    subprocess.run([sys.executable, str(SHARED / script), str(path), *words], check=True)
    return True


def _write_particles(path: Path, n: int, tail: str) -> None:
    if _run("make_particles.py", path, n=n, tail=tail):
        return
    generate.write_particles(path, n=n, group=GROUP)
    if tail == "pdc":
        _stretch(path)


def _stretch(path: Path) -> None:
    """Give energies of the package's generator the tail of PDC: its knee, and its rate above it."""
    with h5py.File(path, "r+") as f:
        energy = f[GROUP]["Energy"]
        for start in range(0, len(energy), 16 * CHUNK):
            part = energy[start : start + 16 * CHUNK].astype("f8")
            tail = PDC_KNEE + (part - OWN_KNEE) * OWN_RATE / PDC_RATE
            energy[start : start + 16 * CHUNK] = np.where(
                part > OWN_KNEE, tail, part * (PDC_KNEE / OWN_KNEE)
            ).astype("f4")


def _write_ocean(path: Path, size: Size) -> None:
    if not _run("make_ocean.py", path, time=size.times, depth=size.depths, lat=size.lats, lon=size.lons):
        generate.write_ocean(path, times=size.times, depths=size.depths, lats=size.lats, lons=size.lons)


def _write_field(path: Path, size: Size, form: str) -> None:
    """Write the ocean that values are fetched from; nothing where the generator is missing."""
    # Every question decodes deflated chunks, in each way and repeat: a quarter of them, or it takes hours.
    cut = 2 if form == "modb" else 1
    shape = {"time": size.fetch_times, "depth": size.depths, "lat": size.lats // cut, "lon": size.lons // cut}
    _run("make_ocean.py", path, format=form, **shape)


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
