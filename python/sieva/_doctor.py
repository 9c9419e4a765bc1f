"""What this installation is and has, for reports of problems."""

from __future__ import annotations

import os
import platform
import resource
import sys
from importlib import metadata
from pathlib import Path

from sieva import _native
from sieva._memory import size_text

_NEEDED = ("click", "numpy", "pyarrow", "rich")
_OPTIONAL = {
    "xarray": "to_xarray(), engine='sieva'",
    "h5netcdf": "writing netCDF",
    "h5py": "writing HDF5, the demo",
    "zarr": "writing Zarr",
    "pandas": "to_pandas()",
    "polars": "to_polars()",
    "cftime": "xarray's dates of other calendars",
    "adios2": "reading ADIOS2 BP files",
}
_FEATURES = ("sse4_2", "avx2", "avx512f", "bmi2", "neon", "asimd")
_OWN_FILTERS = (
    "deflate shuffle fletcher32 szip nbit scale-offset zstd lz4 lzf blosc blosc2 bitshuffle bzip2 zfp"
)


def report() -> str:
    """Return the lines that `sieva doctor` prints."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [
        f"sieva       {_native.__version__} ({Path(_native.__file__ or '').parent})",
        f"python      {platform.python_version()} ({sys.executable})",
        f"system      {platform.system()} {platform.release()}, {platform.machine()}",
        f"threads     {cores} (one for each core; --threads changes it)",
        f"cpu         {_cpu()}",
        f"memory      limit 1 GiB a query (--memory changes it); {_available()}",
        f"indexes     {_stores()}",
        f"learning    {_learning()}",
        "formats     HDF5, netCDF-4, netCDF-3 (classic, 64-bit offset, CDF-5), Zarr 2 and 3, FITS",
        f"filters     {_OWN_FILTERS}; plug-ins of the HDF5 library",
        "packages",
    ]
    lines += [f"  {name:<10}{_version(name) or 'missing: reinstall sieva'}" for name in _NEEDED]
    for name, use in _OPTIONAL.items():
        lines.append(f"  {name:<10}{_version(name) or f'not installed: pip install {name}'} ({use})")
    return "\n".join(lines)


def _stores() -> str:
    """Return where indexes go."""
    given = os.environ.get("SIEVA_STORE")
    if not given:
        return "beside each file, in FILE.sieva (SIEVA_STORE or --store names another directory)"
    place = Path(given)
    while not place.exists() and place != place.parent:
        place = place.parent
    fault = "" if place.is_dir() and os.access(place, os.W_OK | os.X_OK) else ": it cannot be written"
    return f"in {given} (SIEVA_STORE){fault}"


def _learning() -> str:
    """Return whether scans leave zone maps."""
    if os.environ.get("SIEVA_LEARN") == "0":
        return "scans leave nothing (SIEVA_LEARN=0)"
    return "scans of large arrays leave zone maps (SIEVA_LEARN=0 or --no-learn: they do not)"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    """Return the processor's name and the features that scans use."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or "unknown"
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    named = {key.strip(): value.strip() for key, value in fields.items()}
    flags = (named.get("flags") or named.get("Features") or "").split()
    found = [name for name in _FEATURES if name in flags]
    return f"{named.get('model name', platform.machine())}; {' '.join(found) or 'no vector features told'}"


def _available() -> str:
    """Return how much memory there is for us: of the machine, and by limits."""
    parts = []
    try:
        text = Path("/proc/meminfo").read_text(encoding="utf-8")
        kib = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("MemAvailable"))
        parts.append(f"{size_text(kib * 1024)} free")
    except (OSError, StopIteration, ValueError):
        parts.append("free memory not told by the system")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
    except OSError:
        limit = "max"
    if limit.isdigit():
        parts.append(f"the control group allows {size_text(int(limit))}")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        parts.append(f"ulimit -v allows {size_text(soft)}")
    return ", ".join(parts)
