"""xarray datasets, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sieva._extras import required
from sieva._output.fills import with_free_fills
from sieva._output.grid import write_arrays

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from sieva._output.variable import Variable
    from sieva._query import Layout, Query


def to_dataset(query: Query, layout: Layout | None) -> xr.Dataset:
    """Return the rows of a query as a dataset; values are decoded as xarray does it."""
    required("xarray", "xarray datasets")
    import xarray as xr

    def filled() -> MemoryContainer:
        container = MemoryContainer()
        write_arrays(query, container, layout)
        return container

    container = with_free_fills(query, filled)
    dataset = xr.Dataset(container.dataset_variables(), attrs=container.attrs)
    try:
        return xr.decode_cf(dataset).load()
    except (ImportError, ValueError):
        # Other calendars need cftime, which is optional, and xarray decodes no empty times: they stay
        # numbers with units. What else is wrong fails again.
        return xr.decode_cf(dataset, decode_times=False).load()


class MemoryContainer:
    """Variables as numpy arrays."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.values: dict[str, NDArray[Any]] = {}
        self.lengths: dict[str, int] = {}
        self.attrs: dict[str, Any] = {}

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make the arrays."""
        self.attrs = attrs
        self.lengths = {name: length or 0 for name, length in dims.items()}
        for variable in variables:
            shape = [self.lengths[name] for name in variable.dims]
            fill = 0 if variable.fill is None else variable.fill
            self.variables[variable.name] = variable
            self.values[variable.name] = np.full(shape, fill, dtype=variable.dtype)

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer, with room to spare, so that growing takes linear time in all."""
        self.lengths[dim] = length
        for name, values in self.values.items():
            if dim in self.variables[name].dims and len(values) < length:
                more = np.empty(max(length, 2 * len(values)) - len(values), dtype=values.dtype)
                self.values[name] = np.concatenate([values, more])

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        self.values[name][region] = values

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        return self.values[name][region].copy()

    def dataset_variables(self) -> dict[str, xr.Variable]:
        """Return the variables for xarray, not decoded yet."""
        import xarray as xr

        made = {}
        for name, variable in self.variables.items():
            shape = tuple(slice(0, self.lengths[dim]) for dim in variable.dims)
            attrs = dict(variable.attrs)
            if variable.fill is not None and variable.dtype != object:
                attrs["_FillValue"] = variable.fill
            made[name] = xr.Variable(variable.dims, self.values[name][shape], attrs)
        return made
