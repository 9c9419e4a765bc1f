"""Coordinates: 1-D of both directions, curvilinear, auxiliary, missing ones, and the boxes they make."""

from pathlib import Path

import netCDF4
import numpy as np

from corpus.registry import Topic, file, table

_topic = Topic("coordinates", "ocean.nc")


@file("ocean.nc")
def write_ocean(path: Path) -> None:
    """Write a small curvilinear ocean: depth, land, two-dimensional latitude and longitude."""
    nt, nz, ny, nx = 3, 4, 9, 11
    y, x = np.mgrid[0:ny, 0:nx]
    with netCDF4.Dataset(path, "w") as f:
        for name, size in (("time", None), ("z_t", nz), ("nlat", ny), ("nlon", nx)):
            f.createDimension(name, size)
        time = f.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "days since 0001-01-01 00:00:00", "noleap"
        time[:] = [31, 59, 90]
        f.createVariable("z_t", "f4", ("z_t",))[:] = [500, 1500, 4000, 9000]
        f.createVariable("TLAT", "f8", ("nlat", "nlon"))[:] = -40 + 10.0 * y + 0.5 * x
        f.createVariable("TLONG", "f8", ("nlat", "nlon"))[:] = (300 + 12.0 * x + y) % 360
        f.createVariable("KMT", "i4", ("nlat", "nlon"))[:] = (x * y) % (nz + 1)
        for name, base in (("TEMP", 25.0), ("SALT", 34.0)):
            v = f.createVariable(
                name,
                "f4",
                ("time", "z_t", "nlat", "nlon"),
                fill_value=np.float32(9.96921e36),
                chunksizes=(1, 2, 4, 5),
                zlib=True,
            )
            v.coordinates = "TLONG TLAT z_t time"
            t, z = np.mgrid[0:nt, 0:nz]
            field = base - 4.0 * z[..., None, None] + np.cos(y) + t[..., None, None] + 0.1 * x
            land = np.arange(nz)[:, None, None] >= (x * y) % (nz + 1)
            v[:] = np.ma.masked_where(np.broadcast_to(land, field.shape), field)


@file("axes.nc")
def write_axes(path: Path) -> None:
    """Write one-dimensional coordinates of all kinds: falling, uneven, repeated, with gaps, of integers."""
    with netCDF4.Dataset(path, "w") as f:
        kinds = {
            "falling": np.array([90.0, 45, 0, -45, -90]),
            "uneven": np.array([1.0, 10, 100, 1000]),
            "repeated": np.array([1, 2, 2, 3, 2, 1], "i4"),
            "level": np.array([1000, 850, 500], "i2"),
        }
        for name, values in kinds.items():
            f.createDimension(name, len(values))
            f.createVariable(name, values.dtype, (name,))[:] = values
        f.createDimension("plain", 7)
        gappy = f.createVariable("gappy", "f8", ("plain",), fill_value=-1.0)
        gappy[:] = [0, 1, -1, 3, 4, -1, 6]
        shape = ("falling", "uneven", "level")
        f.createVariable("v", "f4", shape)[:] = np.arange(60).reshape(5, 4, 3)
        f.createVariable("w", "f4", ("repeated", "plain"))[:] = np.arange(42).reshape(6, 7)


def _z(f: object) -> np.ndarray:
    return f("z_t")[:, None, None]


_topic.where(
    "box_on_a_curvilinear_grid",
    "TEMP > 20 AND TLAT BETWEEN 10 AND 31 AND TLONG BETWEEN 20 AND 60 AND z_t < 5000",
    "time z_t nlat nlon",
    lambda f: (
        (f("TEMP") > 20)
        & (f("TLAT") >= 10)
        & (f("TLAT") <= 31)
        & (f("TLONG") >= 20)
        & (f("TLONG") <= 60)
        & (_z(f) < 5000)
    ),
    {"TEMP": lambda f: f.raw("TEMP"), "SALT": lambda f: f.raw("SALT"), "TLAT": lambda f: f("TLAT")},
)
_topic.where(
    "lower_ranks_broadcast",
    "TEMP > 25 AND KMT > 3 AND z_t < 5000",
    "time z_t nlat nlon",
    lambda f: (f("TEMP") > 25) & (f("KMT") > 3) & (_z(f) < 5000),
)
_topic.where(
    "coordinates_alone", "z_t > 600 AND z_t <= 4000", "z_t", lambda f: (f("z_t") > 600) & (f("z_t") <= 4000)
)
_topic.where(
    "empty_box", "TEMP > 0 AND z_t < 0", "time z_t nlat nlon", lambda f: np.zeros((3, 4, 9, 11), bool)
)
_topic.where(
    "arithmetic_of_two_fields",
    "TEMP * 2 - SALT > 20 AND z_t < 1000",
    "time z_t nlat nlon",
    lambda f: (f("TEMP") * 2 - f("SALT") > 20) & (_z(f) < 1000),
)
_topic.where(
    "falling_coordinate",
    "v > 3 AND falling > 10 AND uneven >= 100",
    "falling uneven level",
    lambda f: (f("v") > 3) & (f("falling") > 10)[:, None, None] & (f("uneven") >= 100)[:, None],
    {"v": lambda f: f.raw("v"), "falling": lambda f: f("falling")[:, None, None]},
    file="axes.nc",
)
_topic.where(
    "integer_coordinate",
    "level = 850 AND v < 20",
    "falling uneven level",
    lambda f: (f("v") < 20) & (f("level") == 850),
    file="axes.nc",
)
_topic.where(
    "repeated_coordinate_values",
    "repeated = 2 AND w > 10",
    "repeated plain",
    lambda f: (f("repeated") == 2)[:, None] & (f("w") > 10),
    file="axes.nc",
)
_topic.where(
    "auxiliary_coordinate_with_gaps",
    "gappy > 0.5 AND w > 35",
    "repeated plain",
    lambda f: (f("gappy") > 0.5) & (f("w") > 35),
    {"gappy": lambda f: f("gappy")},
    file="axes.nc",
)
_topic.where(
    "coordinates_in_a_disjunction",
    "falling = 90 AND uneven = 1 OR v = 59",
    "falling uneven level",
    lambda f: ((f("falling") == 90)[:, None, None] & (f("uneven") == 1)[:, None]) | (f("v") == 59),
    file="axes.nc",
)
_topic.where(
    "coordinate_by_position",
    "idx(falling) BETWEEN 1 AND 2 AND NOT idx(level) = 1 AND v > 20",
    "falling uneven level",
    lambda f: np.isin(np.arange(5), [1, 2])[:, None, None] & (np.arange(3) != 1) & (f("v") > 20),
    file="axes.nc",
)
_topic.where(
    "coordinates_compared_with_each_other",
    "falling > uneven",
    "falling uneven",
    lambda f: f("falling")[:, None] > f("uneven"),
    file="axes.nc",
)
_topic.sql(
    "coordinates_of_the_hits",
    "SELECT z_t, TLAT, TEMP FROM '{file}' WHERE TEMP > 28.5",
    ["z_t", "TLAT", "TEMP"],
    lambda f: table(f("TEMP") > 28.5, _z(f), f("TLAT"), f("TEMP")),
)
