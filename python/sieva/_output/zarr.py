"""Zarr v3: a group in a directory, with an array per variable, as xarray writes and reads it."""

from __future__ import annotations

import asyncio
import base64
import importlib
import struct
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from sieva._extras import required
from sieva._interrupt import uninterrupted
from sieva._output.grid import write_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from sieva._output.variable import Variable
    from sieva._query import Layout, Query

_CHUNK_BYTES = 8 << 20
# Seconds for chunks that are still written where another one could not be.
_PATIENCE = 30.0


def write(query: Query, path: Path, layout: Layout | None = None) -> None:
    """Write the rows of a query to a directory."""
    with opened(path) as container:
        write_arrays(query, container, layout)


@contextmanager
def opened(path: Path) -> Iterator[ZarrContainer]:
    """Give a new group in a directory as a container."""
    zarr = required("zarr", "Zarr")
    with warnings.catch_warnings():
        # zarr-python tells at each use that texts of any length are not in the specification yet.
        warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        with uninterrupted():
            group = zarr.create_group(path, zarr_format=3, overwrite=True)
        try:
            yield ZarrContainer(group)
        except BaseException:
            _wait_for_others()
            raise


def _wait_for_others() -> None:
    """Wait for chunks that are still written.

    Where one of them fails zarr-python leaves the others at work: in a directory that is removed meanwhile
    they would make files anew.
    """
    sync = importlib.import_module("zarr.core.sync")
    loop = sync.loop[0]
    if loop is not None and loop.is_running():
        asyncio.run_coroutine_threadsafe(_others(), loop).result()


async def _others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        done, _ = await asyncio.wait(others, timeout=_PATIENCE)
        for task in done:
            # What went wrong with the first of them is told.
            if not task.cancelled():
                task.exception()


class ZarrContainer:
    """A Zarr group that is open for writing."""

    def __init__(self, group: Any) -> None:  # noqa: ANN401 - optional package
        self.group = group
        self.arrays: dict[str, Any] = {}
        self.variables: list[Variable] = []

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make the arrays; their dimensions go by name alone."""
        self.variables = variables
        self.group.attrs.update({name: plain(value) for name, value in attrs.items()})
        for variable in variables:
            shape = tuple(dims[name] or 0 for name in variable.dims)
            is_text = variable.dtype == object
            attributes = {name: plain(value) for name, value in variable.attrs.items()}
            if is_text:
                # Of netCDF's characters: readers would decode once more what is text already.
                attributes.pop("_Encoding", None)
            if not is_text and variable.fill is not None:
                attributes["_FillValue"] = encoded_fill(variable.fill, variable.dtype)
            self.arrays[variable.name] = self.group.create_array(
                variable.name,
                shape=shape,
                chunks=variable.chunks or _chunks(shape, variable.dtype.itemsize),
                dtype=str if is_text else variable.dtype,
                fill_value="" if is_text else variable.fill,
                dimension_names=variable.dims,
                attributes=attributes,
            )

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer."""
        for variable in self.variables:
            if dim in variable.dims:
                array = self.arrays[variable.name]
                array.resize(
                    tuple(length if d == dim else n for d, n in zip(variable.dims, array.shape, strict=True))
                )

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        self.arrays[name][region] = values

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        return np.asarray(self.arrays[name][region])


def _chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the whole shape, cut along the first dimensions until a chunk is small enough."""
    chunks = [max(1, n) for n in shape]
    for axis in range(len(chunks)):
        size = int(np.prod(chunks, dtype=np.int64)) * max(1, itemsize)
        if size <= _CHUNK_BYTES:
            break
        chunks[axis] = max(1, chunks[axis] * _CHUNK_BYTES // size)
    return tuple(chunks)


def plain(value: Any) -> Any:  # noqa: ANN401 - an attribute's value
    """Return an attribute's value as JSON has it."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def encoded_fill(fill: Any, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - a scalar of dtype
    """Return a fill value as xarray keeps it in the attributes of Zarr v3: floats by their bytes."""
    if dtype.kind == "f":
        return base64.standard_b64encode(struct.pack("<d", float(fill))).decode()
    return int(fill)
