"""Variables of array formats: names, types, fill values and attributes, and columns as values of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from sieva import errors
from sieva._output.fills import FillTaken, is_met

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sieva._array import Array
    from sieva._output.points import Column

# Attributes that say how stored values become values; they are not true of decoded ones.
_PACKING = ("scale_factor", "add_offset", "_Unsigned", "valid_range", "valid_min", "valid_max")
_REPLACED = ("_FillValue", "missing_value", "coordinates")
# What HDF5 and netCDF keep in attributes for themselves.
INTERNAL = ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "DIMENSION_LABELS")
# netCDF's default fill values, by numpy's type.
_FILLS = {
    "int8": -127,
    "uint8": 255,
    "int16": -32767,
    "uint16": 65535,
    "int32": -2147483647,
    "uint32": 4294967295,
    "int64": -9223372036854775806,
    "uint64": 18446744073709551614,
}
# In so few values a fill value would soon be met as a value: they are widened instead.
_WIDER = {"int8": "int16", "uint8": "int16", "int16": "int32", "uint16": "int32"}


@dataclass
class Variable:
    """A variable of an output: of texts where the type is ``object``."""

    name: str
    dims: tuple[str, ...]
    dtype: np.dtype[Any]
    attrs: dict[str, Any]
    fill: Any = None
    """What stands where there is no value; None: every place has one."""
    chunks: tuple[int, ...] | None = None
    is_raw: bool = False
    """Whether the values are stored ones, among which the fill value may be."""
    is_own_fill: bool = False
    """Whether the fill value is the source's."""
    column: str = ""
    """The column that it is of."""


class Container(Protocol):
    """Where variables are written to: an open file, or memory."""

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make dimensions (None: it grows) and variables, full of fill values."""

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer."""

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region that was written."""


def kept_attrs(attrs: dict[str, Any], *, decoded: bool) -> dict[str, Any]:
    """Return the attributes that are true of the output's values."""
    dropped = {*INTERNAL, *_REPLACED, *(_PACKING if decoded else ())}
    return {
        name: value
        for name, value in attrs.items()
        if name not in dropped and not name.startswith(("_Netcdf4", "_NC", "_nc3"))
    }


def safe_name(name: str, taken: set[str]) -> str:
    """Return a name that every array format allows and that is not taken, and take it."""
    plain = "".join("_" if c == "/" or ord(c) < 32 else c for c in name).strip() or "value"
    candidate, n = plain, 2
    while candidate in taken:
        candidate, n = f"{plain}_{n}", n + 1
    taken.add(candidate)
    return candidate


def variable_of(column: Column, name: str, dims: tuple[str, ...], *, has_gaps: bool) -> Variable:
    """Return the variable of a column.

    Parameters
    ----------
    column
        Of a query's rows.
    name, dims
        Of the variable.
    has_gaps
        Whether there are places that no row is at.
    """
    array, kind = column.array, column.field.type
    stored = {} if array is None else array.attrs
    is_packed = array is not None and not column.is_raw and any(n in stored for n in _PACKING[:3])
    attrs = kept_attrs(stored, decoded=is_packed)
    told = {key.decode(): value.decode() for key, value in (column.field.metadata or {}).items()}
    if array is None:
        attrs = told
    if pa.types.is_timestamp(kind):
        # Computed, or with no stored numbers at hand: what Arrow has, exactly.
        attrs |= {"units": "microseconds since 1970-01-01 00:00:00", "calendar": "proleptic_gregorian"}
        return Variable(name, dims, np.dtype("i8"), attrs, _FILLS["int64"])
    if pa.types.is_boolean(kind):
        attrs |= {"flag_values": np.array([0, 1], "i1"), "flag_meanings": "false true"}
        return Variable(name, dims, np.dtype("i1"), attrs, np.int8(-1))
    if pa.types.is_string(kind):
        return Variable(name, dims, np.dtype(object), attrs, "")
    if pa.types.is_nested(kind):
        raise errors.Unsupported(
            f"column {column.name!r} is a histogram, which array formats have no type for",
            "write it as JSON, Arrow or Parquet",
        )
    dtype = np.dtype(kind.to_pandas_dtype())
    if array is not None and array.enumeration and dtype.kind in "iu":
        attrs |= _flags(array, dtype)
    fill = own = _own_fill(array, dtype) if not is_packed else None
    if fill is None and dtype.kind in "iu" and column.free_fill is not None:
        fill = dtype.type(column.free_fill)
    elif fill is None and dtype.kind in "iu" and has_gaps:
        dtype = np.dtype(_WIDER.get(dtype.name, dtype.name))
    if fill is None and (has_gaps or dtype.kind == "f" or may_be_missing(column)):
        fill = dtype.type(np.nan if dtype.kind == "f" else _FILLS[dtype.name])
    return Variable(
        name,
        dims,
        dtype,
        attrs,
        fill,
        is_raw=column.is_raw,
        is_own_fill=own is not None,
        column=column.name,
    )


def may_be_missing(column: Column) -> bool:
    """Return whether a column of integers can have missing values: not all that is read or counted can."""
    if column.array is None:
        return not column.is_position
    if column.is_raw or column.array.missing_values:
        return True
    return any(name in column.array.attrs for name in _PACKING)


def _own_fill(array: Array | None, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - a scalar of dtype
    """Return a fill value of the source, which no value is equal to, if it has one of this type."""
    return next(iter(missing_values(array, dtype)), None) if array is not None else None


def missing_values(array: Array, dtype: np.dtype[Any]) -> list[Any]:
    """Return the values that mean missing ones in an array, those that a type holds, as its scalars."""
    found = []
    for number in array.missing_values:
        if dtype.kind == "f":
            found.append(dtype.type(number))
        elif dtype.kind in "iu" and number == int(number):
            limits = np.iinfo(dtype)
            if limits.min <= number <= limits.max:
                found.append(dtype.type(int(number)))
    return found


def _flags(array: Array, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return CF's attributes for the names of an enumeration."""
    names = [name.replace(" ", "_") for name in array.enumeration]
    return {
        "flag_values": np.array(list(array.enumeration.values()), dtype),
        "flag_meanings": " ".join(names),
    }


def values_of(column: pa.Array, variable: Variable) -> NDArray[Any]:
    """Return the values of a column as those of a variable, with its fill value where they are missing.

    Raises
    ------
    FillTaken
        A value is equal to the fill value, which would make it missing.
    """
    if variable.dtype == object:
        return np.array(column.fill_null("").to_pylist(), dtype=object)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    present = column.fill_null(0) if column.null_count else column
    values: NDArray[Any] = present.to_numpy(zero_copy_only=False).astype(
        variable.dtype, copy=missing is not None
    )
    if variable.fill is not None and variable.dtype.kind in "iu" and not variable.is_raw:
        # That of the source is none of its values; who reads as float64 takes neighbours for it there, too.
        met = values == variable.fill if variable.is_own_fill else is_met(values, variable.fill)
        if missing is not None:
            met &= ~missing
        if met.any():
            raise FillTaken(variable.column, variable.name, variable.dtype, variable.fill)
    if missing is not None:
        values[missing] = variable.fill
    return values
