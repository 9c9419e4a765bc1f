"""The two data sets of SDQuery's section 5, made once: a POP-like netCDF and a MODB-like HDF5 file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
from data import once
from sieva import generate

Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class Size:
    """Times, depths, latitudes and longitudes of both files; in full each has more than 2 GB."""

    name: str
    pop: Shape
    modb: Shape


# MODB's grid is that of the paper, extended in time as there.
FULL = Size("full", (5, 40, 1000, 1280), (1450, 34, 63, 167))
QUICK = Size("quick", (3, 20, 300, 400), (60, 34, 63, 167))


@dataclass(frozen=True)
class Ocean:
    """A file, and how numpy reads it.

    Attributes
    ----------
    arrays
        What queries select, all of one shape (time, depth, latitude, longitude), float32; the first has a
        condition on its values.
    axes
        Coordinates that queries name, shaped to be broadcast to (depth, latitude, longitude).
    """

    name: str
    path: Path
    arrays: tuple[str, ...]
    axes: dict[str, np.ndarray]
    shape: Shape
    open: Callable[[Path], Any]

    @property
    def rows(self) -> int:
        """Points of the space that a query selects from."""
        return int(np.prod(self.shape))

    def steps(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the arrays of each time, decoded: what is missing is NaN."""
        with self.open(self.path) as f:
            if isinstance(f, netCDF4.Dataset):
                f.set_auto_mask(False)
            for time in range(self.shape[0]):
                yield {name: _decoded(f[name], time) for name in self.arrays}


def _decoded(stored: Any, time: int) -> np.ndarray:  # noqa: ANN401 -- h5py has no types
    values = np.ascontiguousarray(stored[time], np.float32)
    values[values == np.float32(_attribute(stored, "_FillValue", "missing_value"))] = np.nan
    return values


def _attribute(stored: Any, *names: str) -> float:  # noqa: ANN401 -- as above
    """Return the first of some attributes that there is."""
    attributes = stored.attrs if isinstance(stored, h5py.Dataset) else stored.__dict__
    return next((float(np.ravel(attributes[name])[0]) for name in names if name in attributes), np.nan)


def pop(path: Path) -> Ocean:
    """Describe the POP-like file, whose latitudes and longitudes are curvilinear."""
    with netCDF4.Dataset(path) as f:
        f.set_auto_mask(False)
        axes = {name: f[name][:][None] for name in ("TLAT", "TLONG")}
        axes["z_t"] = f["z_t"][:][:, None, None]
        shape = f["TEMP"].shape
    return Ocean("POP", path, ("TEMP", "SALT"), axes, shape, netCDF4.Dataset)


def modb(path: Path) -> Ocean:
    """Describe the MODB-like file, which is chunked."""
    shapes = {"layer": (-1, 1, 1), "row": (1, -1, 1), "column": (1, 1, -1)}
    with h5py.File(path) as f:
        axes = {name: f[name][:].reshape(shape) for name, shape in shapes.items()}
        shape = f["salinity"].shape
    return Ocean("MODB", path, ("salinity",), axes, shape, h5py.File)


def prepare(directory: Path, size: Size) -> tuple[Ocean, Ocean]:
    """Make the files that are missing; return both."""
    target = directory / size.name
    target.mkdir(parents=True, exist_ok=True)
    first, second = target / "pop.nc", target / "modb.h5"
    once(first, lambda path: _write_pop(path, size.pop))
    once(second, lambda path: _write_modb(path, size.modb))
    return pop(first), modb(second)


def _write_pop(path: Path, shape: Shape) -> None:
    """Write netCDF-3 with 64-bit offsets: plain values, as the model writes them."""
    other = _write_ocean(path, shape)
    with netCDF4.Dataset(other) as source, netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as f:
        source.set_auto_maskandscale(False)
        f.set_auto_maskandscale(False)
        for name, dimension in source.dimensions.items():
            f.createDimension(name, None if name == "time" else len(dimension))
        for name, stored in source.variables.items():
            attributes = stored.__dict__
            fill = attributes.pop("_FillValue", None)
            kept = f.createVariable(name, stored.dtype, stored.dimensions, fill_value=fill)
            kept.setncatts(attributes)
            if "time" not in stored.dimensions:
                kept[:] = stored[:]
        for time in range(shape[0]):
            for name, stored in source.variables.items():
                if "time" in stored.dimensions:
                    f[name][time] = stored[time]
    other.unlink()


def _write_modb(path: Path, shape: Shape) -> None:
    """Write HDF5 in chunks without a filter: the paper tells of none."""
    times, depths, lats, lons = shape
    other = _write_ocean(path, shape)
    with h5py.File(other) as source, h5py.File(path, "w") as f:
        chunks = (1, min(17, depths), lats, lons)
        fill = np.float32(_attribute(source["SALT"], "_FillValue"))
        salinity = f.create_dataset("salinity", shape, "f4", chunks=chunks, fillvalue=fill)
        salinity.attrs["missing_value"] = fill
        for time in range(times):
            salinity[time] = source["SALT"][time]
        ends = {"time": (0, times - 1), "layer": (5, 5000), "row": (30, 46), "column": (-6, 36.5)}
        for order, (name, span) in enumerate(ends.items()):
            scale = f.create_dataset(name, data=np.linspace(*span, shape[order]))
            scale.make_scale(name)
            salinity.dims[order].attach_scale(scale)
    other.unlink()


def _write_ocean(path: Path, shape: Shape) -> Path:
    """Write the package's ocean, which is deflated netCDF-4, beside a file that is made of it."""
    times, depths, lats, lons = shape
    other = path.with_name("partial_ocean.nc")
    generate.write_ocean(other, times=times, depths=depths, lats=lats, lons=lons)
    return other
