"""Example files: a small ocean as netCDF-4, and particles as HDF5, the same bytes for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sieva._extras import required
from sieva._interrupt import opened
from sieva._output.atomic import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FILL = np.float32(9.96921e36)

# Particles: the box, how many ranks cut it along each axis, and the energy that the tail begins at.
_BOX = ((0.0, 300.0), (-150.0, 150.0), (-60.0, 60.0))
_RANKS = (16, 16, 8)
_KNEE = 1.3
_TAIL_RATE = 5.8


def write_ocean(
    path: Path, *, times: int = 6, depths: int = 20, lats: int = 180, lons: int = 240, seed: int = 0
) -> None:
    """Write an ocean on a curvilinear grid, as a climate model leaves it.

    Temperature and salinity ``(time, z_t, nlat, nlon)`` float32, chunked, shuffled and deflated, with a
    fill value on land; the 2-D coordinates TLAT and TLONG; depth in cm; time in a calendar without leap
    days; the number of ocean levels KMT.

    Parameters
    ----------
    path
        Of the netCDF-4 file.
    times, depths, lats, lons
        Lengths of the dimensions.
    seed
        Of the random numbers.
    """
    h5py = required("h5py", "making files", extra="hdf5")
    rng = np.random.default_rng(seed)
    lat, lon = _curvilinear(lats, lons)
    depth = _depths(depths)
    levels = _levels(lat, lon, depths, rng)
    with replacing(path) as aside, opened(lambda: h5py.File(aside, "w", track_order=True)) as file:
        file.attrs["Conventions"] = "CF-1.8"
        file.attrs["title"] = "A synthetic ocean, made by sieva"
        scales = {
            "time": (
                31.0 * np.arange(1, times + 1),
                "days since 0001-01-01 00:00:00",
                {"calendar": "noleap"},
            ),
            "z_t": (
                depth.astype("f4"),
                "centimeters",
                {"positive": "down", "long_name": "depth from the surface to the middle of the layer"},
            ),
        }
        for order, (name, (values, units, attrs)) in enumerate(scales.items()):
            # netCDF-4 tells a growing dimension by that of its coordinate.
            growing = {"maxshape": (None,), "chunks": (max(times, 1),)} if name == "time" else {}
            scale = file.create_dataset(name, data=values, **growing)
            _describe(scale, units=units, **attrs)
            _as_dimension(scale, name, order)
        for order, (name, length) in enumerate((("nlat", lats), ("nlon", lons)), 2):
            # A dimension without coordinates is a data set that netCDF knows by this name and does not show.
            scale = file.create_dataset(name, shape=(length,), dtype=">f4")
            _as_dimension(scale, f"This is a netCDF dimension but not a netCDF variable. {length:9d}", order)
        for name, values, units in (("TLAT", lat, "degrees_north"), ("TLONG", lon, "degrees_east")):
            _attach(_describe(file.create_dataset(name, data=values), units=units), ("nlat", "nlon"))
        kmt = _describe(file.create_dataset("KMT", data=levels), long_name="number of ocean levels")
        _attach(kmt, ("nlat", "nlon"))
        _write_fields(file, (lat, lon, depth), levels, times, rng)


def _curvilinear(lats: int, lons: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return latitude and longitude of a grid whose lines bend towards the poles, each (lats, lons)."""
    rows = np.linspace(-78.0, 88.0, lats)[:, None]
    columns = np.linspace(0.0, 360.0, lons, endpoint=False)[None, :]
    lat = rows + 2.5 * np.sin(np.deg2rad(2 * columns)) * np.cos(np.deg2rad(rows)) * (rows > 30)
    lon = (columns + 5 * np.sin(np.deg2rad(2 * rows))) % 360.0
    return lat, lon


def _depths(n: int) -> NDArray[np.float64]:
    """Return middles of layers in cm, thin ones at the surface."""
    thickness = 1000.0 * 1.22 ** np.arange(n)
    return np.cumsum(thickness) - thickness / 2


def _levels(
    lat: NDArray[np.float64], lon: NDArray[np.float64], depths: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return the number of ocean levels, 0 on land."""
    relief = sum(
        rng.uniform(0.5, 1.5) * np.sin(np.deg2rad(kx * lon) + ky * np.deg2rad(lat) + rng.uniform(0, 6.3))
        for kx, ky in rng.integers(1, 6, (12, 2))
    )
    return np.clip(np.rint(depths * (0.75 + np.asarray(relief) / 9)), 0, depths).astype("i4")


def _write_fields(
    file: Any,  # noqa: ANN401 - h5py has no types
    grid: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    levels: NDArray[np.int32],
    times: int,
    rng: np.random.Generator,
) -> None:
    lat, lon, depth = grid
    shape = (times, len(depth), *lat.shape)
    chunks = (1, min(10, shape[1]), min(90, shape[2]), min(120, shape[3]))
    names = {"TEMP": ("degC", "Potential Temperature"), "SALT": ("psu", "Salinity")}
    made = {}
    for name, (units, long_name) in names.items():
        options = {"chunks": chunks, "compression": "gzip", "compression_opts": 1, "shuffle": True}
        made[name] = file.create_dataset(
            name, shape, "f4", fillvalue=FILL, maxshape=(None, *shape[1:]), **options
        )
        _describe(made[name], units=units, long_name=long_name, coordinates="TLONG TLAT")
        made[name].attrs["_FillValue"] = np.array([FILL])
        _attach(made[name], ("time", "z_t", "nlat", "nlon"))
    land = np.arange(len(depth))[:, None, None] >= levels
    waves = [(*rng.integers(4, 14, 2), rng.uniform(0, 6.3)) for _ in range(10)]
    decay = np.exp(-depth / 50000.0)[:, None, None]
    for t in range(times):
        eddies = sum(
            0.5 * np.sin(np.deg2rad(kx * lon + 9 * t) + ky * np.deg2rad(lat) + p) for kx, ky, p in waves
        )
        season = 2.5 * np.sin(2 * np.pi * t / 12) * np.sign(lat)
        surface = 30 * np.cos(np.deg2rad(lat)) ** 1.4 - 2 + eddies + season
        temp = 1.5 + (surface - 1.5) * decay + rng.normal(0, 0.05, shape[1:])
        salt = (
            34.7 + (0.1 * eddies + 0.9 * np.cos(np.deg2rad(2 * lat))) * decay + rng.normal(0, 0.01, shape[1:])
        )
        made["TEMP"][t] = np.where(land, FILL, temp).astype("f4")
        made["SALT"][t] = np.where(land, FILL, salt).astype("f4")


def _describe(dataset: Any, **attrs: str) -> Any:  # noqa: ANN401 - h5py has no types
    for name, text in attrs.items():
        dataset.attrs[name] = np.bytes_(text)
    return dataset


def _as_dimension(scale: Any, name: str, order: int) -> None:  # noqa: ANN401 - h5py has no types
    scale.make_scale(name)
    scale.attrs["_Netcdf4Dimid"] = np.int32(order)


def _attach(dataset: Any, dims: tuple[str, ...]) -> None:  # noqa: ANN401 - h5py has no types
    for axis, name in enumerate(dims):
        dataset.dims[axis].attach_scale(dataset.file[name])


def write_particles(path: Path, *, n: int = 5_000_000, group: str = "Step#0", seed: int = 0) -> None:
    """Write particles as a plasma simulation leaves them: rank by rank, a few of them energetic.

    ``Energy, x, y, z, Ux, Uy, Uz``, float32, ``(n,)``, contiguous. Above an energy of 1.3 is an exponential
    tail of some 3 % of the particles; it is fatter near the middle of z, so that energetic particles are
    neighbours in the file.

    Parameters
    ----------
    path
        Of the HDF5 file.
    n
        Number of particles.
    group
        That the arrays are in.
    seed
        Of the random numbers.
    """
    h5py = required("h5py", "making files", extra="hdf5")
    rng = np.random.default_rng(seed)
    names = ("Energy", "x", "y", "z", "Ux", "Uy", "Uz")
    ranks = [(i, j, k) for k in range(_RANKS[2]) for j in range(_RANKS[1]) for i in range(_RANKS[0])]
    middle = (_RANKS[2] - 1) / 2
    share = np.array([np.exp(-(((k - middle) / 1.5) ** 2)) for _, _, k in ranks])
    share *= 0.03 / share.mean()
    ends = np.linspace(0, n, len(ranks) + 1).astype("i8")
    with replacing(path) as aside, opened(lambda: h5py.File(aside, "w")) as file:
        made = {name: file.create_dataset(f"{group}/{name}", (n,), "f4") for name in names}
        # A layer of ranks at once: one write of each array for many ranks.
        per_layer = _RANKS[0] * _RANKS[1]
        for first in range(0, len(ranks), per_layer):
            layer = range(first, first + per_layer)
            parts = [_rank(rng, int(ends[r + 1] - ends[r]), ranks[r], float(share[r])) for r in layer]
            where = slice(int(ends[first]), int(ends[first + per_layer]))
            for column, name in enumerate(names):
                made[name][where] = np.concatenate([part[column] for part in parts])


def _rank(rng: np.random.Generator, n: int, rank: tuple[int, int, int], tail: float) -> NDArray[np.float32]:
    """Return the particles of one rank, (7, n)."""
    energy = np.minimum(rng.gamma(1.5, _KNEE / 6, n), _KNEE * 0.999)
    fast = rng.random(n) < tail
    energy[fast] = _KNEE + rng.exponential(1 / _TAIL_RATE, int(fast.sum()))
    widths = [(high - low) / count for (low, high), count in zip(_BOX, _RANKS, strict=True)]
    place = [low + width * (i + rng.random(n)) for (low, _), width, i in zip(_BOX, widths, rank, strict=True)]
    direction = rng.normal(size=(3, n))
    momentum = direction * (np.sqrt(2 * energy) / np.linalg.norm(direction, axis=0))
    return np.vstack([energy, *place, momentum]).astype("f4")
