"""Dimension names and how arrays line up: scales, labels, phony, named by the caller, broadcast, crossed."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np

from corpus.registry import Topic, file, table

_topic = Topic("dimensions", "scales.h5")


@file("scales.h5")
def write_scales(path: Path) -> None:
    """Write arrays whose dimensions are named by HDF5 dimension scales, one of them without values."""
    with h5py.File(path, "w") as f:
        lat, lon = np.linspace(-30, 30, 5), np.array([0.0, 90, 180, 270])
        f.create_dataset("lat", data=lat).make_scale("latitude")
        f.create_dataset("lon", data=lon).make_scale()
        values = f.create_dataset("field", data=np.arange(20.0).reshape(5, 4))
        values.dims[0].attach_scale(f["lat"])
        values.dims[1].attach_scale(f["lon"])
        turned = f.create_dataset("turned", data=np.arange(20.0).reshape(4, 5) * 2)
        turned.dims[0].attach_scale(f["lon"])
        turned.dims[1].attach_scale(f["lat"])
        per_lat = f.create_dataset("per_lat", data=np.array([5, 4, 3, 2, 1], "i2"))
        per_lat.dims[0].attach_scale(f["lat"])


@file("phony.h5")
def write_phony(path: Path) -> None:
    """Write arrays without names for their dimensions: those of equal length in a group are taken for one."""
    with h5py.File(path, "w") as f:
        f.create_dataset("grid", data=np.arange(12).reshape(3, 4))
        f.create_dataset("row_weight", data=np.array([0, 1, 2]))
        f.create_dataset("square", data=np.arange(9).reshape(3, 3))
        f.create_dataset("exchange/data", data=np.arange(24).reshape(2, 3, 4))
        f.create_dataset("angles/theta", data=np.array([0.0, 90.0]))


@file("grid.nc")
def write_grid(path: Path) -> None:
    """Write arrays of ranks 0 to 4 over shared dimensions, some of them transposed."""
    with netCDF4.Dataset(path, "w") as f:
        for name, size in (("time", None), ("z", 3), ("y", 4), ("x", 5)):
            f.createDimension(name, size)
        f.createVariable("z", "f4", ("z",))[:] = [10, 100, 1000]
        f.createVariable("y", "f4", ("y",))[:] = [-1, 0, 1, 2]
        temp = f.createVariable("temp", "f4", ("time", "z", "y", "x"), chunksizes=(1, 2, 3, 3), zlib=True)
        temp[:] = np.arange(120).reshape(2, 3, 4, 5) * 7 % 60
        f.createVariable("depth", "i4", ("y", "x"))[:] = np.arange(20).reshape(4, 5) % 4
        f.createVariable("turned", "f8", ("x", "y"))[:] = np.arange(20).reshape(5, 4)
        f.createVariable("per_z", "f8", ("z",))[:] = [0.5, 1.5, 2.5]
        f.createVariable("per_time", "f8", ("time",))[:] = [1, 2]
        f.createVariable("scale", "f8", ())[...] = 2.0
        f.createVariable("covariance", "f8", ("z", "z"))[:] = np.arange(9).reshape(3, 3)


_grid = "grid.nc"
_topic.where(
    "scales_name_dimensions",
    "field > 8 AND lat > 0",
    "lat lon",
    lambda f: (f("field") > 8) & (f("lat")[:, None] > 0),
)
_topic.where("scale_alone", "lon >= 180", "lon", lambda f: f("lon") >= 180, {"lon": lambda f: f.raw("lon")})
_topic.where(
    "transposed_arrays_line_up",
    "field > 5 AND turned < 20",
    "lat lon",
    lambda f: (f("field") > 5) & (f("turned").T < 20),
    {"field": lambda f: f.raw("field"), "turned": lambda f: f.raw("turned").T},
)
_topic.where(
    "one_dimension_broadcasts",
    "field > per_lat * 4",
    "lat lon",
    lambda f: f("field") > f("per_lat")[:, None] * 4,
)
_topic.where(
    "position",
    "idx(lat) = 2 AND idx(lon) < 2",
    "lat lon",
    lambda f: (np.arange(5)[:, None] == 2) & (np.arange(4) < 2),
)
_topic.where(
    "phony_by_length",
    "grid > 4 AND row_weight > 1",
    "phony_dim_4 phony_dim_5",
    lambda f: (f("grid") > 4) & (f("row_weight")[:, None] > 1),
    file="phony.h5",
)
_topic.where(
    "by_length_over_the_whole_file",
    "exchange/data > 12 AND theta > 45 AND grid > 4",
    "phony_dim_0 phony_dim_2 phony_dim_3",
    lambda f: (f("exchange/data") > 12) & (f("angles/theta") > 45)[:, None, None] & (f("grid") > 4),
    file="phony.h5",
)
_topic.error(
    "row_or_column",
    "square > 4 AND row_weight > 1",
    "unaligned-dimensions",
    'dims={"square": ["axis0", "axis1"], "row_weight": ["axis0"]}',
    file="phony.h5",
)
_topic.error(
    "no_product_unasked", "row_weight > 1 AND theta > 45", "unaligned-dimensions", "cross", file="phony.h5"
)
_topic.sql(
    "product",
    "SELECT row_weight, theta FROM '{file}' CROSS WHERE row_weight > 1 AND theta > 45",
    ["row_weight", "theta"],
    lambda f: table(
        (f("row_weight") > 1)[:, None] & (f("angles/theta") > 45), f("row_weight")[:, None], f("angles/theta")
    ),
    file="phony.h5",
)
_topic.where(
    "named_by_the_caller",
    "exchange/data > 12 AND theta > 45",
    "angle row column",
    lambda f: (f("exchange/data") > 12) & (f("angles/theta")[:, None, None] > 45),
    file="phony.h5",
    options={"dims": {"exchange/data": ["angle", "row", "column"], "angles/theta": ["angle"]}},
)
_topic.where(
    "four_ranks",
    "temp > 20 AND depth > 1 AND z < 500 AND per_time > 1 AND scale = 2",
    "time z y x",
    lambda f: (
        (f("temp") > 20)
        & (f("depth") > 1)
        & (f("z") < 500)[:, None, None]
        & (f("per_time") > 1)[:, None, None, None]
    ),
    {
        "temp": lambda f: f.raw("temp"),
        "depth": lambda f: f.raw("depth"),
        "z": lambda f: f.raw("z")[:, None, None],
    },
    file=_grid,
)
_topic.where(
    "disjunction_across_ranks",
    "temp > 55 OR depth = 3 AND per_z > 2",
    "time z y x",
    lambda f: (f("temp") > 55) | ((f("depth") == 3) & (f("per_z") > 2)[:, None, None]),
    file=_grid,
)
_topic.where(
    "cross_product",
    "per_z > 1 AND per_time > 1",
    "z time",
    lambda f: (f("per_z") > 1)[:, None] & (f("per_time") > 1),
    file=_grid,
)
_topic.where(
    "comparison_of_two_ranks",
    "turned > depth * 5",
    "x y",
    lambda f: f("turned") > f("depth").T * 5,
    file=_grid,
)
_topic.where("repeated_dimension", "covariance > 6", "z z_1", lambda f: f("covariance") > 6, file="square.h5")
_topic.sql(
    "coordinates_come_first",
    "SELECT * FROM '{file}' WHERE field > 15",
    ["lat", "lon", "field"],
    lambda f: table(f("field") > 15, f("lat")[:, None], f("lon"), f("field")),
)
_topic.sql(
    "positions_as_columns",
    "SELECT idx(z), idx(x), temp FROM '{file}' WHERE temp > 57",
    ["idx(z)", "idx(x)", "temp"],
    lambda f: table(f("temp") > 57, np.arange(3)[:, None, None], np.arange(5), f("temp")),
    file=_grid,
)
_topic.error("unknown_dimension", "idx(depht) > 3", "unknown-dimension", "depht", file=_grid)


@file("square.h5")
def write_square(path: Path) -> None:
    """Write a matrix both of whose dimensions have one name."""
    with h5py.File(path, "w") as f:
        f.create_dataset("z", data=np.arange(3.0)).make_scale()
        matrix = f.create_dataset("covariance", data=np.arange(9.0).reshape(3, 3))
        matrix.dims[0].attach_scale(f["z"])
        matrix.dims[1].attach_scale(f["z"])
