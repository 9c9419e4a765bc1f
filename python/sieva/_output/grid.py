"""Layouts of array formats: the grid around the points, and the list of them.

A grid is written slab by slab along the first dimension, so that no more than a slab of each variable is
held.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sieva import _native, errors
from sieva._interrupt import Uninterrupted
from sieva._output.points import points_of
from sieva._output.variable import Variable, kept_attrs, missing_values, safe_name, values_of, variable_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sieva._array import Array
    from sieva._output.points import Axis, Column, Points
    from sieva._output.variable import Container
    from sieva._query import Layout, Query

_SLAB_BYTES = 16 << 20
_COPY_BYTES = 32 << 20
_POINTS_CHUNK = 65536
_POSITIONS = 1 << 20
OBS = "obs"


def write_arrays(query: Query, container: Container, layout: Layout | None) -> None:
    """Write the rows of a query to a container.

    Parameters
    ----------
    layout
        See `sieva.Query.to_xarray`.

    Raises
    ------
    Unsupported
        A grid of groups or of DISTINCT rows, which are no points.
    """
    if layout not in (None, "grid", "points"):
        raise ValueError(f"layout {layout!r} is not one of 'grid', 'points'")
    points = points_of(query)
    container = Uninterrupted(container)
    if layout == "grid" and not points.axes:
        raise errors.Unsupported(
            "the rows of this query are no points of a grid: they are groups, DISTINCT, or of no dimension",
            "use the layout points",
        )
    if layout == "grid" or (layout is None and len(points.axes) > 1):
        _Grid(points, container).write()
    else:
        _write_points(points, container)


def _global_attrs(points: Points) -> dict[str, Any]:
    source = points.query.source
    attrs = kept_attrs(source.attrs, decoded=False)
    return attrs | {"sieva_source": _native.redacted(source.path), "sieva_query": points.query.text}


def _write_points(points: Points, container: Container) -> None:
    taken = {OBS}
    columns = [*points.columns, *points.coordinates]
    batches = points.batches()
    first = next(batches, None)
    rows = 0 if first is None else first[0].num_rows
    chunks = (min(max(rows, 1), _POINTS_CHUNK),)
    variables = [variable_of(c, safe_name(c.short_name, taken), (OBS,), has_gaps=False) for c in columns]
    indices = [
        Variable(
            safe_name(f"{axis.name}_index", taken),
            (OBS,),
            np.dtype("i8"),
            {"long_name": f"position along {axis.name} in the source, from 0", "units": "1"},
        )
        for axis in points.axes
    ]
    for variable in [*variables, *indices]:
        variable.chunks = chunks
    _name_coordinates(points, variables)
    attrs = _global_attrs(points) | {"featureType": "point"} if points.axes else _global_attrs(points)
    container.define({OBS: None}, [*variables, *indices], attrs)
    n = 0
    while first is not None:
        batch, positions = first
        region = (slice(n, n + batch.num_rows),)
        n += batch.num_rows
        container.grow(OBS, n)
        for column, variable in zip(columns, variables, strict=True):
            container.write(variable.name, region, values_of(batch.column(column.at), variable))
        for variable, values in zip(indices, positions, strict=True):
            container.write(variable.name, region, values_of(values, variable))
        first = next(batches, None)


def _name_coordinates(points: Points, variables: list[Variable]) -> None:
    """Have each variable that is none name the coordinates, as CF has it."""
    paths = {a.path for a in _all_coordinates(points)}
    columns = [*points.columns, *points.coordinates]
    names = [
        v.name
        for c, v in zip(columns, variables, strict=True)
        if c.array is not None and c.array.path in paths
    ]
    for variable in variables:
        if names and variable.name not in names:
            variable.attrs["coordinates"] = " ".join(names)


def _all_coordinates(points: Points) -> list[Array]:
    """Return the coordinates of axes, then auxiliary ones, columns or not."""
    dims = {axis.path for axis in points.axes}
    found = {axis.coordinate.path: axis.coordinate for axis in points.axes if axis.coordinate is not None}
    source = points.query.source
    for column in points.columns:
        if column.array is not None:
            for path in column.array.coordinates:
                if set(source[path].dim_paths) <= dims:
                    found.setdefault(path, source[path])
    return list(found.values())


class _Grid:
    """The bounding box of the points; missing outside of the selection, coordinates everywhere."""

    def __init__(self, points: Points, container: Container) -> None:
        self.points = points
        self.container = container
        taken: set[str] = set()
        self.names = [safe_name(axis.name.rsplit("/", 1)[-1], taken) for axis in points.axes]
        self.start, self.shape = _box(points)
        self.by_path = {axis.path: i for i, axis in enumerate(points.axes)}

    def write(self) -> None:
        """Write coordinates, then variables."""
        taken: set[str] = set(self.names)
        coordinates = _all_coordinates(self.points)
        fixed: list[tuple[Array, Variable]] = []
        for array in coordinates:
            own = next((i for i, axis in enumerate(self.points.axes) if _same(axis.coordinate, array)), None)
            name = self.names[own] if own is not None else safe_name(array.name, taken)
            fixed.append((array, self._coordinate(array, name)))
        positions = [
            (i, self._position_variable(axis, name))
            for i, (axis, name) in enumerate(zip(self.points.axes, self.names, strict=True))
            if axis.coordinate is None
        ]
        skipped = {a.path for a in coordinates}
        columns = [c for c in self.points.columns if not self._is_axis(c, skipped)]
        data = [(c, self._variable(c, taken)) for c in columns]
        auxiliary = [v.name for _, v in fixed if v.name not in self.names]
        for _, variable in data:
            named = [v for _, v in fixed if v.name in auxiliary and set(v.dims) <= set(variable.dims)]
            if named:
                variable.attrs["coordinates"] = " ".join(v.name for v in named)
        variables = [v for _, v in fixed] + [v for _, v in positions] + [v for _, v in data]
        dims: dict[str, int | None] = dict(zip(self.names, self.shape, strict=True))
        self.container.define(dims, variables, _global_attrs(self.points))
        for array, variable in fixed:
            self._copy(array, variable)
        for i, variable in positions:
            for at in range(0, self.shape[i], _POSITIONS):
                end = min(at + _POSITIONS, self.shape[i])
                values = np.arange(self.start[i] + at, self.start[i] + end, dtype="i8")
                self.container.write(variable.name, (slice(at, end),), values)
        self._fill(data)

    def _is_axis(self, column: Column, coordinates: set[str]) -> bool:
        """Return whether a column is a coordinate or a position, which the grid has anyway."""
        if column.array is not None:
            return column.array.path in coordinates
        return column.is_position

    def _axes_of(self, array: Array | None) -> list[int]:
        every = list(range(len(self.shape)))
        if array is None or len(set(array.dim_paths)) < array.ndim:
            return every
        return [self.by_path[path] for path in array.dim_paths]

    def _dims(self, axes: list[int]) -> tuple[str, ...]:
        return tuple(self.names[i] for i in axes)

    def _coordinate(self, array: Array, name: str) -> Variable:
        """Return the variable of a coordinate: values and attributes as they are stored."""
        dtype = array.read_stored([0] * array.ndim, [0] * array.ndim).dtype
        attrs = kept_attrs(array.attrs, decoded=False)
        fill: Any = None
        if dtype.kind == "O":
            fill = ""
        elif missing := missing_values(array, dtype):
            # Of several one is the fill value, and the others an attribute.
            fill, others = missing[0], missing[1:]
            if others:
                attrs["missing_value"] = np.array(others, dtype)
        if dtype.kind == "b":
            dtype = np.dtype("i1")
        return Variable(name, self._dims(self._axes_of(array)), dtype, attrs, fill)

    def _position_variable(self, axis: Axis, name: str) -> Variable:
        attrs = {"long_name": f"position along {axis.name} in the source, from 0", "units": "1"}
        return Variable(name, (name,), np.dtype("i8"), attrs)

    def _variable(self, column: Column, taken: set[str]) -> Variable:
        axes = self._axes_of(column.array)
        variable = variable_of(column, safe_name(column.short_name, taken), self._dims(axes), has_gaps=True)
        chunks = None if column.array is None else column.array.chunks
        if chunks is not None and len(chunks) == len(axes):
            variable.chunks = tuple(max(1, min(c, self.shape[i])) for c, i in zip(chunks, axes, strict=True))
        return variable

    def _copy(self, array: Array, variable: Variable) -> None:
        axes = self._axes_of(array)
        start, shape = [self.start[i] for i in axes], [self.shape[i] for i in axes]
        if 0 in shape:
            return
        if not axes:
            self.container.write(variable.name, (), array.read_stored([], []))
            return
        step = max(1, _COPY_BYTES // max(1, math.prod(shape[1:]) * 8))
        rest = tuple(slice(0, n) for n in shape[1:])
        for at in range(0, shape[0], step):
            n = min(step, shape[0] - at)
            values = array.read_stored([start[0] + at, *start[1:]], [n, *shape[1:]])
            self.container.write(variable.name, (slice(at, at + n), *rest), values)

    def _fill(self, data: list[tuple[Column, Variable]]) -> None:
        """Scatter the rows into slabs."""
        slabs = [_Slabs(self.container, variable, self._sizes(variable)) for _, variable in data]
        for batch, positions in self.points.batches():
            within = [p.to_numpy() - s for p, s in zip(positions, self.start, strict=True)]
            for (column, variable), slab in zip(data, slabs, strict=True):
                values = values_of(batch.column(column.at), variable)
                slab.put([within[self.names.index(name)] for name in variable.dims], values)
        for slab in slabs:
            slab.flush()

    def _sizes(self, variable: Variable) -> list[int]:
        return [self.shape[self.names.index(name)] for name in variable.dims]


class _Slabs:
    """A variable that is filled a slab of its first dimension after the other."""

    def __init__(self, container: Container, variable: Variable, shape: list[int]) -> None:
        self.container, self.variable, self.shape = container, variable, shape
        per_step = math.prod(shape[1:]) * max(variable.dtype.itemsize, 1)
        self.steps = max(1, _SLAB_BYTES // max(1, per_step))
        self.number: int | None = None
        self.values: NDArray[Any] | None = None
        self.written: set[int] = set()

    def put(self, positions: list[NDArray[np.int64]], values: NDArray[Any]) -> None:
        """Put values at their positions; rows come in C order, or in any other."""
        if not self.shape:
            if len(values):
                self.container.write(self.variable.name, (), np.asarray(values[-1]))
            return
        numbers = positions[0] // self.steps
        for number in np.unique(numbers):
            here = numbers == number
            self._turn_to(int(number))
            assert self.values is not None  # noqa: S101 - a slab is open now
            rest = tuple(p[here] for p in positions[1:])
            self.values[(positions[0][here] - number * self.steps, *rest)] = values[here]

    def flush(self) -> None:
        """Write the open slab."""
        if self.number is not None:
            self.container.write(self.variable.name, self._region(self.number), self.values)  # type: ignore[arg-type]
            self.written.add(self.number)
            self.number = self.values = None

    def _region(self, number: int) -> tuple[slice, ...]:
        first = number * self.steps
        return (slice(first, min(first + self.steps, self.shape[0])), *(slice(0, n) for n in self.shape[1:]))

    def _turn_to(self, number: int) -> None:
        if number == self.number:
            return
        self.flush()
        region = self._region(number)
        if number in self.written:
            self.values = self.container.read(self.variable.name, region)
        else:
            shape = [part.stop - part.start for part in region]
            self.values = np.full(shape, self.variable.fill, dtype=self.variable.dtype)
        self.number = number


def _same(a: Array | None, b: Array) -> bool:
    return a is not None and a.path == b.path


def _box(points: Points) -> tuple[list[int], list[int]]:
    """Return start and shape of the smallest box around the rows."""
    native = points._native
    selection = native.selection()
    if native.count() == len(selection):
        box = selection.bounding_box()
        return (
            ([0] * len(points.axes), [0] * len(points.axes)) if box is None else (list(box[0]), list(box[1]))
        )
    # LIMIT leaves fewer rows than were selected: they tell themselves where they lie.
    low: list[int] | None = None
    high: list[int] = []
    for batch, positions in points.batches(watched=False):
        if not batch.num_rows:
            continue
        ends = [(int(p.to_numpy().min()), int(p.to_numpy().max())) for p in positions]
        low = (
            [a for a, _ in ends] if low is None else [min(a, b) for (a, _), b in zip(ends, low, strict=True)]
        )
        high = [b for _, b in ends] if not high else [max(b, h) for (_, b), h in zip(ends, high, strict=True)]
    if low is None:
        return [0] * len(points.axes), [0] * len(points.axes)
    return low, [b - a + 1 for a, b in zip(low, high, strict=True)]
