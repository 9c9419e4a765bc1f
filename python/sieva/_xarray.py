"""xarray: the engine ``"sieva"`` for `xarray.open_dataset`, and the accessor ``ds.sieva``.

Opening reads metadata alone. Arrays are lazy: what is indexed is read, by the same reader that queries use,
with no global lock; datasets can be pickled, as Dask does with them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import xarray as xr
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from sieva import _native, _open, errors
from sieva import _xarray_unchanged as unchanged
from sieva._options import takes
from sieva._sparse import sparse, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from sieva._array import Array
    from sieva._expr import Expr
    from sieva._options import Running
    from sieva._query import Query
    from sieva._source import Source

# In the encoding of a dataset: how it was opened, for the accessor.
_OPENED = "sieva"
# What HDF5 and netCDF-4 keep in attributes for themselves, and xarray's other engines do not show.
_INTERNAL = frozenset(
    {
        "DIMENSION_LIST",
        "REFERENCE_LIST",
        "CLASS",
        "NAME",
        "_Netcdf4Dimid",
        "_Netcdf4Coordinates",
        "_NCProperties",
        "_nc3_strict",
    }
)


class Handle:
    """An open source that is opened again where it is unpickled."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.path, self.options = path, options
        self._source: Source | None = None

    @property
    def source(self) -> Source:
        """The source."""
        if self._source is None:
            self._source = _open.open(self.path, **self.options)
        return self._source

    def __reduce__(self) -> tuple[object, ...]:
        return (Handle, (self.path, self.options))


class LazyArray(BackendArray):
    """An array that reads boxes when it is indexed; its values are the stored ones, which xarray decodes."""

    def __init__(self, handle: Handle, array: Array) -> None:
        self.handle, self.path = handle, array.path
        self.shape = array.shape
        # An empty box has the type of the whole; of a scalar there is none.
        self.dtype = array.read_stored([0] * array.ndim, [0] * array.ndim).dtype
        if self.dtype.kind == "O":
            self.dtype = create_vlen_dtype(str)  # type: ignore[no-untyped-call]

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:  # noqa: ANN401 - as xarray has it
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Return what an outer index means: the box around it, or its rows where they are far apart."""
        start, lengths, inner = [], [], []
        for part, length in zip(key, self.shape, strict=True):
            first, count, cut = _within(part, length)
            start.append(first)
            lengths.append(count)
            inner.append(cut)
        wanted = [_wanted(cut, count) for cut, count in zip(inner, lengths, strict=True)]
        found = sparse(lengths, wanted, self.dtype.itemsize)
        if found is None:
            values = self.handle.source[self.path].read_stored(start, lengths)
        else:
            parts = [(first, shape, None) for first, shape in found.boxes(start, lengths)]
            values = together(self.handle.source._native, self.path, found, parts, stored=True)
            for axis, positions in zip(found.axes, found.at, strict=True):
                inner[axis] = _among(inner[axis], positions)
        # One axis at a time: arrays of several axes would be paired by numpy, not crossed.
        for axis in reversed(range(len(inner))):
            values = values[(slice(None),) * axis + (inner[axis],)]
        return np.asarray(values)


def _within(part: Any, length: int) -> tuple[int, int, Any]:  # noqa: ANN401 - an integer, a slice or an array
    """Return first position and length of the box along an axis, and the index within it."""
    if isinstance(part, slice):
        positions = range(*part.indices(length))
        if not positions:
            return 0, 0, slice(None)
        low = min(positions[0], positions[-1])
        return low, max(positions[0], positions[-1]) - low + 1, slice(None, None, positions.step)
    if np.ndim(part) == 0:
        position = int(part)
        return position + length * (position < 0), 1, 0
    wanted = np.asarray(part)
    if wanted.size == 0:
        return 0, 0, wanted.astype(np.intp)
    wanted = np.where(wanted < 0, wanted + length, wanted)
    low = int(wanted.min())
    return low, int(wanted.max()) - low + 1, wanted - low


def _wanted(cut: Any, count: int) -> Sequence[int] | None:  # noqa: ANN401 - as `_within` gives it
    """Return the positions along an axis of the box that an index wants, ascending; None: all, or one."""
    if isinstance(cut, slice):
        return range(0, count, abs(cut.step)) if cut.step not in (None, 1, -1) else None
    return None if np.ndim(cut) == 0 else np.unique(cut).tolist()


def _among(cut: Any, positions: Sequence[int]) -> Any:  # noqa: ANN401 - as `_within` gives it
    """Return the same index within these positions alone."""
    if isinstance(cut, slice):
        return slice(None, None, 1 if cut.step > 0 else -1)
    return np.searchsorted(np.asarray(positions), cut)


class SievaDataStore(AbstractDataStore):
    """The arrays of one group of a source, as xarray's decoders take them."""

    def __init__(self, handle: Handle, group: str | None = None) -> None:
        self.handle = handle
        self.group = (group or "").strip("/")
        groups = handle.source._native.groups()
        if self.group not in groups:
            raise errors.InvalidValue(
                f"no group {group!r} in {handle.path!r}", f"it has {', '.join(g or '/' for g in groups[:20])}"
            )

    def get_variables(self) -> dict[str, xr.Variable]:
        """Return lazy variables, not decoded."""
        return {
            array.name: self._variable(array)
            for array in self.handle.source.arrays.values()
            if array.path.rpartition("/")[0] == self.group
        }

    def _variable(self, array: Array) -> xr.Variable:
        attrs = {name: value for name, value in array.attrs.items() if name not in _INTERNAL}
        lazy = LazyArray(self.handle, array)
        for name in ("_FillValue", "missing_value"):
            if isinstance(attrs.get(name), int | float | np.number) and lazy.dtype.kind in "iuf":
                # The decoders expect the type of the array.
                with np.errstate(all="ignore"):
                    cast = np.asarray(attrs[name]).astype(lazy.dtype)[()]
                attrs[name] = cast if cast == attrs[name] or lazy.dtype.kind == "f" else attrs[name]
        encoding: dict[str, Any] = {
            "source": _native.redacted(self.handle.path),
            "original_shape": array.shape,
        }
        if lazy.dtype.kind == "O":
            encoding["dtype"] = str
        if array.chunks is not None:
            encoding["chunksizes"] = array.chunks
            encoding["preferred_chunks"] = dict(zip(array.dims, array.chunks, strict=True))
        return xr.Variable(array.dims, indexing.LazilyIndexedArray(lazy), attrs, encoding)

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group."""
        attrs = self.handle.source._native.attrs(self.group)
        return {name: value for name, value in attrs.items() if name not in _INTERNAL}

    def get_dimensions(self) -> dict[str, int]:
        """Return lengths of dimensions by name."""
        arrays = self.handle.source.arrays.values()
        here = [a for a in arrays if a.path.rpartition("/")[0] == self.group]
        return {name: length for a in here for name, length in zip(a.dims, a.shape, strict=True)}

    def get_encoding(self) -> dict[str, Any]:
        """Return which dimensions grow."""
        used = self.get_dimensions()
        dims = self.handle.source._native.dims()
        return {"unlimited_dims": {d["name"] for d in dims if d["unlimited"] and d["name"] in used}}

    def close(self) -> None:
        """Do nothing: the file is closed when nobody has an array of it."""


class SievaBackendEntrypoint(BackendEntrypoint):
    """The engine ``"sieva"``: HDF5, netCDF-4 and netCDF-3 files through sieva's reader.

    Examples
    --------
    >>> ds = xr.open_dataset("pop.nc", engine="sieva")  # doctest: +SKIP
    >>> ds.sieva.query("TEMP > 5 AND z_t < 5000").count()  # doctest: +SKIP
    """

    description = "HDF5, netCDF-4 and netCDF-3 files, with value queries by ds.sieva.query()"
    url = ""
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "dims",
        "external",
        "join",
        "store",
        "learn",
        "memory",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:  # noqa: ANN401 - as xarray has it
        """Return False: the engine is used where it is asked for, so that installing it changes nothing."""
        del filename_or_obj
        return False

    def open_dataset(  # type: ignore[override] # ours has no decoder that xarray's has, and more options
        self,
        filename_or_obj: str | os.PathLike[str],
        *,
        mask_and_scale: bool = True,
        decode_times: Any = True,  # noqa: ANN401 - of xarray's decoders
        concat_characters: bool = True,
        decode_coords: Any = True,  # noqa: ANN401
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,  # noqa: ANN401
        group: str | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        external: Sequence[str | os.PathLike[str]] = (),
        store: str | os.PathLike[str] | None = None,
        learn: bool = True,
        join: str | None = None,
        memory: int | str | None = None,
    ) -> xr.Dataset:
        """Open a file (or a glob of files as one source), or one group of it, lazily.

        Parameters
        ----------
        filename_or_obj
            Path of the file, or a glob.
        mask_and_scale, decode_times, concat_characters, decode_coords, drop_variables, use_cftime,
        decode_timedelta
            As of `xarray.open_dataset`.
        group
            Path of a group; None is the root.
        dims, external, store, learn, join, memory
            As of `sieva.open`.
        """
        path = os.path.abspath(os.fspath(filename_or_obj))  # noqa: PTH100 - symbolic links stay
        options: dict[str, Any] = {
            "dims": dims,
            "external": external,
            "store": store,
            "learn": learn,
            "join": join,
            "memory": memory,
        }
        decoding: dict[str, Any] = {"decode_times": decode_times, "use_cftime": use_cftime}
        dataset = StoreBackendEntrypoint().open_dataset(
            SievaDataStore(Handle(path, options), group),
            mask_and_scale=mask_and_scale,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            decode_timedelta=decode_timedelta,
            **{name: value for name, value in decoding.items() if value is not None},
        )
        dataset.encoding["source"] = path
        again = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
            "group": group,
        }
        dataset.encoding[_OPENED] = {"source": options, "dataset": options | again}
        return dataset


@xr.register_dataset_accessor("sieva")  # type: ignore[no-untyped-call]
class SievaAccessor:
    """``ds.sieva``: queries over the file that a dataset was opened from.

    They ask the file as it is. A dataset that is not what its file holds, because something was selected from
    it or computed with it, is refused; variables that were dropped or added change nothing.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset
        self._opened: Source | None = None

    @property
    def source(self) -> Source:
        """The file as a `sieva.Source`.

        Raises
        ------
        InvalidValue
            The dataset was not opened from a file.
        """
        if self._opened is None:
            encoding = self._dataset.encoding
            path = encoding.get("source")
            if not isinstance(path, str):
                raise errors.InvalidValue(
                    "this dataset does not know the file that it is from",
                    "query the dataset that xarray.open_dataset(..., engine='sieva') returned",
                )
            self._opened = _open.open(path, **self._how().get("source", {}))
        return self._opened

    def _how(self) -> dict[str, dict[str, Any]]:
        """Return how the dataset was opened; empty where another engine did."""
        how: dict[str, dict[str, Any]] = self._dataset.encoding.get(_OPENED, {})
        return how

    def _opened_anew(self) -> xr.Dataset:
        path, how = self._dataset.encoding["source"], self._how()
        if not how:
            return xr.open_dataset(path)
        return xr.open_dataset(path, engine=SievaBackendEntrypoint, cache=False, **how["dataset"])

    @takes("query")
    def query(
        self,
        condition: str | Expr | None = None,
        select: Sequence[str | Expr] | None = None,
        **options: Unpack[Running],
    ) -> Query:
        """Return the query for the points of the file that satisfy a condition, see `sieva.Source.query`.

        Raises
        ------
        InvalidValue
            The dataset is not what its file holds: a variable has other dimensions or values.
        """
        source = self.source
        unchanged.check(self._dataset, self._opened_anew)
        return source.query(condition, select, **options)
