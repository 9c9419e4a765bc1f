"""CF decoding: packed, unsigned, fill and missing values, valid ranges, attributes that make no sense."""

from pathlib import Path

import netCDF4
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file, table

_topic = Topic("decoding", "decoding.nc")


@file("decoding.nc")
def write_decoding(path: Path) -> None:
    """Write one array for each way in which stored values become values, most with something missing."""
    ramp = np.arange(24).reshape(4, 6)
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("y", 4)
        f.createDimension("x", 6)

        def put(name: str, kind: str, values: np.ndarray, fill: object = None, **attrs: object) -> None:
            variable = f.createVariable(name, kind, ("y", "x"), fill_value=fill, chunksizes=(3, 4), zlib=True)
            variable.set_auto_maskandscale(False)
            variable.setncatts(attrs)
            variable[:] = values

        packed = (ramp * 100 - 1000).astype("i2")
        packed[1, 2:4] = -32768
        put("packed", "i2", packed, np.int16(-32768), scale_factor=0.01, add_offset=273.15)
        put(
            "packed_f4",
            "i2",
            packed,
            np.int16(-32768),
            scale_factor=np.float32(0.01),
            add_offset=np.float32(273.15),
        )
        put("scaled", "i4", ramp, scale_factor=0.1)
        put("offset", "u1", ramp.astype("u1"), add_offset=-10.0)
        put("packed_float", "f4", ramp.astype("f4") / 8, scale_factor=0.1, add_offset=1.0)
        unsigned = (ramp * 11).astype("u1").view("i1")
        unsigned[0, 0] = -1
        put("unsigned", "i1", unsigned, np.int8(-1), _Unsigned="true")
        put(
            "unsigned_packed", "i2", (ramp * 2500).astype("u2").view("i2"), _Unsigned="true", scale_factor=0.5
        )
        put("signed", "u1", (ramp - 12).astype("i1").view("u1"), _Unsigned="false")
        filled = ramp.astype("f4")
        filled[2] = 1e20
        put("filled", "f4", filled, np.float32(1e20))
        put("missing_f8", "f4", filled, missing_value=np.float64(1e20))
        put("two_missing", "i4", ramp, np.int32(3), missing_value=np.int32(17))
        put("several_missing", "i4", ramp, missing_value=np.array([2, 4, 6], "i4"))
        with_nan = ramp.astype("f8")
        with_nan[0, 1::2] = np.nan
        put("nan_fill", "f8", with_nan, np.float64("nan"))
        put("ranged", "i4", ramp, valid_range=np.array([5, 15], "i4"))
        put("bounded", "f4", ramp.astype("f4"), valid_min=np.float32(4.5), valid_max=np.float32(20))
        default = ramp.astype("f4")
        default[3] = netCDF4.default_fillvals["f4"]
        put("default_fill", "f4", default)
        put("text_scale", "i2", ramp.astype("i2"), scale_factor="0.005")


def _above(array: str, limit: float) -> None:
    def hits(f: Reference) -> np.ndarray:
        return f(array) > limit

    def values(f: Reference) -> np.ndarray:
        return f(array) if array in _PACKED else f.stored(array)

    _topic.where(f"{array}_above", f"{array} > {limit}", "y x", hits, {array: values})


_PACKED = ("packed", "packed_f4", "scaled", "offset", "packed_float", "unsigned_packed")


for _array, _limit in {
    "packed": 274.14,
    "packed_f4": 274.1,
    "scaled": 1.9,
    "offset": 8,
    "packed_float": 1.2,
    "unsigned": 200,
    "unsigned_packed": 25000,
    "signed": 7,
    "filled": 20,
    "missing_f8": 20,
    "two_missing": 14,
    "several_missing": 19,
    "nan_fill": 20,
}.items():
    _above(_array, _limit)

# 3 * 0.1 is not 0.3: the value of packed data is the product in float64, and literals are compared with that.
_topic.where("product_not_literal", "scaled = 0.3", "y x", lambda f: f("scaled") == 0.3)
_topic.where(
    "product_below", "scaled <= 0.6", "y x", lambda f: f("scaled") <= 0.6, {"scaled": lambda f: f("scaled")}
)
_topic.where("stored_values", "raw(packed) = -32768", "y x", lambda f: f.raw("packed") == -32768)
_topic.where("missing_is_null", "packed IS NULL", "y x", lambda f: np.isnan(f("packed")))
_topic.where("not_null", "two_missing IS NOT NULL AND two_missing < 6", "y x", lambda f: f("two_missing") < 6)
_topic.where(
    "missing_is_not_unequal",
    "two_missing <> 5",
    "y x",
    lambda f: ~np.isnan(f("two_missing")) & (f("two_missing") != 5),
)
_topic.where(
    "null_or_true", "filled > 100 OR y_all = 1", "y x", lambda f: np.ones((4, 6), bool), file="decoding_or.nc"
)
_topic.where(
    "range_not_applied", "ranged < 3", "y x", lambda f: f("ranged") < 3, {"ranged": lambda f: f.raw("ranged")}
)
_topic.where(
    "range_applied",
    "ranged < 8",
    "y x",
    lambda f: (f("ranged") < 8) & (f("ranged") >= 5),
    options={"valid_range": True},
)
_topic.where(
    "bounds_applied",
    "bounded > 0",
    "y x",
    lambda f: (f("bounded") >= 4.5) & (f("bounded") <= 20),
    options={"valid_range": True},
)
_topic.where("default_fill_is_a_value", "default_fill > 1e30", "y x", lambda f: f("default_fill") > 1e30)
_topic.where("textual_scale_is_ignored", "text_scale > 20", "y x", lambda f: f.raw("text_scale") > 20)
_topic.where("is_null_of_nothing_missing", "ranged IS NULL", "y x", lambda f: np.zeros((4, 6), bool))
_topic.sql(
    "aggregates_pass_over_missing",
    "SELECT count(*), count(packed), min(packed), max(packed), avg(two_missing) FROM '{file}'",
    ["count(*)", "count(packed)", "min(packed)", "max(packed)", "avg(two_missing)"],
    lambda f: [
        [
            24,
            22,
            float(np.nanmin(f("packed"))),
            float(np.nanmax(f("packed"))),
            float(np.nanmean(f("two_missing"))),
        ]
    ],
    tolerance=1e-14,
)
_topic.sql(
    "missing_values_are_listed_as_null",
    "SELECT packed, two_missing, ranged FROM '{file}' WHERE ranged BETWEEN 7 AND 10",
    ["packed", "two_missing", "ranged"],
    lambda f: table((f("ranged") >= 7) & (f("ranged") <= 10), f("packed"), f("two_missing"), f("ranged")),
)


@file("decoding_or.nc")
def write_or(path: Path) -> None:
    """Write a field of which all is missing, beside one that is always true."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("y", 4)
        f.createDimension("x", 6)
        f.createVariable("filled", "f4", ("y", "x"), fill_value=np.float32(-9))
        f.createVariable("y_all", "i1", ("y",))[:] = 1
