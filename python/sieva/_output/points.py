"""Rows as points: the columns of a query with what the file says of them, and the position of each row.

Array formats are written from this. The query is asked for more than it was: for the position along each
dimension, for coordinates, and for times as the numbers of the file, so that units and calendar stay true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sieva._expr import fn, idx
from sieva._query import BATCH_ROWS, reader_of, told_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from sieva._array import Array
    from sieva._expr import Expr
    from sieva._query import Query
    from sieva._source import Source


@dataclass
class Axis:
    """A dimension of the rows."""

    name: str
    length: int
    path: str
    """Path of the dimension in the source."""
    coordinate: Array | None
    """The coordinate array along it."""


@dataclass
class Column:
    """A column, and what it is in the source."""

    name: str
    array: Array | None
    """The array whose values it has; None: it is computed."""
    field: pa.Field = None
    is_raw: bool = False
    """Whether it has the stored values, to which all attributes apply."""
    at: int = 0
    """Its place in the batches."""
    short_name: str = ""
    """The last part of its path, or its name where that is not unique."""
    free_fill: int | None = None
    """A fill value that was found not to be among the values."""
    is_position: bool = False
    """Whether it is the position along a dimension, which is never missing."""


@dataclass
class Points:
    """The columns, dimensions and coordinates of a query."""

    query: Query
    columns: list[Column]
    axes: list[Axis] = field(default_factory=list)
    coordinates: list[Column] = field(default_factory=list)
    """Coordinates that are no columns, only with axes."""
    _native: Any = None
    """The native query of all of them."""
    _first_position: int = 0

    def batches(self, *, watched: bool = True) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        """Yield batches of all columns, and with each the positions along the axes."""
        told = self.query._on_rows if watched else None
        for batch in told_errors(self._native, reader_of(self._native, BATCH_ROWS)):
            yield batch, batch.columns[self._first_position :] if self.axes else []
            if told is not None:
                told(batch.num_rows)


def points_of(query: Query) -> Points:
    """Return the rows of a query as points; without axes where they are groups or DISTINCT."""
    native = query._native
    source = query.source
    fills = query._fills
    columns = [
        Column(name, _named(source, name), at=i, free_fill=fills.get(name))
        for i, name in enumerate(query.columns)
    ]
    leaves = [c.name.rsplit("/", 1)[-1] for c in columns]
    for column, leaf in zip(columns, leaves, strict=True):
        column.short_name = leaf if column.array is not None and leaves.count(leaf) == 1 else column.name
    if native.grouped:
        return _without_axes(query, columns)
    axes = _axes(query, columns)
    for column in columns:
        column.is_position = any(a.coordinate is None and column.name == a.name for a in axes)
    kinds = query.dtypes
    times = [
        c for c in columns if c.array is not None and c.array.is_time and kinds[c.name] in ("datetime", "str")
    ]
    coordinates = _coordinates(source, columns, axes)
    extra: list[Expr] = [fn.raw(c.array) for c in times]
    extra += [fn.raw(a) if a.is_time else a for a in coordinates]
    extra += [idx(axis.path) for axis in axes]
    extended = query._with_columns(extra) if extra else query._asked()
    if extended is None:
        return _without_axes(query, columns)
    # The condition is evaluated by this one alone, and it is this one that has something to tell.
    query._ran = extended
    wide = reader_of(extended, 1).schema
    _describe(columns, wide)
    n = len(columns)
    for i, column in enumerate(times, n):
        column.field, column.is_raw, column.at = wide.field(i).with_name(column.name), True, i
    n += len(times)
    added = [
        Column(a.name, a, wide.field(i), a.is_time, i, a.name, fills.get(a.name))
        for i, a in enumerate(coordinates, n)
    ]
    return Points(query, columns, axes, added, extended, n + len(added))


def _without_axes(query: Query, columns: list[Column]) -> Points:
    asked = query._asked()
    _describe(columns, reader_of(asked, 1).schema)
    return Points(query, columns, _native=asked)


def _named(source: Source, name: str) -> Array | None:
    return source[name] if name in source.arrays else None


def _describe(columns: list[Column], schema: pa.Schema) -> None:
    """Set the fields of columns, and take arrays from those that only have the name of one.

    A computed column may have been given the name of an array; it has none of that array's attributes.
    """
    names = ("units", "long_name", "standard_name", "calendar")
    for column in columns:
        column.field = schema.field(column.at)
        if column.array is not None:
            attrs = column.array.attrs
            told = {key.decode(): value.decode() for key, value in (column.field.metadata or {}).items()}
            expected = {name: attrs[name] for name in names if isinstance(attrs.get(name), str)}
            if {name: told[name] for name in names if name in told} != expected:
                column.array = None


def _axes(query: Query, columns: list[Column]) -> list[Axis]:
    used = {path for c in columns if c.array is not None for path in c.array.dim_paths}
    dims = query.source._native.dims()
    axes = []
    for name, length in query.rows.items():
        fitting = [d for d in dims if name in (d["path"], d["name"]) and d["length"] == length]
        dim = next((d for d in fitting if d["path"] in used), fitting[0])
        coordinate = None if dim["coordinate"] is None else query.source[dim["coordinate"]]
        if coordinate is not None and coordinate.dim_paths != (dim["path"],):
            coordinate = None
        axes.append(Axis(name, length, dim["path"], coordinate))
    return axes


def _coordinates(source: Source, columns: list[Column], axes: list[Axis]) -> list[Array]:
    """Return the coordinates of dimensions and arrays that are not among the columns."""
    dims = {axis.path for axis in axes}
    have = {c.array.path for c in columns if c.array is not None}
    wanted = [axis.coordinate for axis in axes if axis.coordinate is not None]
    for column in columns:
        if column.array is not None:
            auxiliary = (source[path] for path in column.array.coordinates)
            wanted += [a for a in auxiliary if set(a.dim_paths) <= dims]
    found = {a.path: a for a in wanted if a.path not in have}
    return list(found.values())
