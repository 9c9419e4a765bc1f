"""The arrays of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sieva import _native
from sieva._box import as_box
from sieva._expr import Expr
from sieva._printable import shown
from sieva._sparse import together

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray


class Array(Expr):
    """An array of a source: an expression by its operators, and its values by slicing.

    Comparisons and arithmetic make expressions for `Source.query` and read nothing. ``array[...]`` reads,
    with the slices of numpy, and gives decoded values.

    Examples
    --------
    >>> temp = src["TEMP"]  # doctest: +SKIP
    >>> temp.dims, temp.shape, temp.units  # doctest: +SKIP
    (('time', 'z_t', 'nlat', 'nlon'), (4, 20, 300, 400), 'degC')
    >>> temp[0, :2, ::10, 5]  # doctest: +SKIP
    >>> src.query((temp > 5) & (src["z_t"] < 5000)).count()  # doctest: +SKIP
    """

    __slots__ = ("_info", "_native", "path")

    def __init__(self, native: _native.Source, path: str) -> None:
        self._tree = _native.Expr.name(path)
        self._native = native
        self._info = native.info(path)
        self.path: str = path
        """Path in the source: ``group/name``."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("an array belongs to an open source and cannot be pickled; str() of it can")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, outermost first."""
        return tuple(self._info["dims"])

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return tuple(self._info["shape"])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the decoded values; texts are objects."""
        import numpy as np

        name = self._info["decoded_dtype"]
        return np.dtype(object if name == "str" else name)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of the chunks, None where the array is not chunked."""
        chunks = self._info["chunk_shape"]
        # Texts stored as characters have one more dimension in the file.
        return None if chunks is None else tuple(chunks)[: self.ndim]

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, in the order of the file."""
        return dict(self._info["attrs"])

    @property
    def dim_paths(self) -> tuple[str, ...]:
        """Paths of the dimensions, which tell those of one name in different groups apart."""
        return tuple(self._info["dim_paths"])

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Paths of the auxiliary coordinates."""
        return tuple(self._info["coordinates"])

    @property
    def missing_values(self) -> tuple[int | float, ...]:
        """The stored values that mean a missing one, besides NaN, whatever the format calls them."""
        return tuple(self._info["missing"])

    @property
    def enumeration(self) -> dict[str, int]:
        """Names of the values of an enumeration; empty where it is none."""
        return dict(self._info["enum"] or {})

    @property
    def is_time(self) -> bool:
        """Whether the values are times: numbers in units since a date, in a calendar."""
        return bool(self._info["time"])

    def read_stored(self, start: list[int], shape: list[int]) -> NDArray[Any]:
        """Return the stored values of a box, not decoded; texts as an object array."""
        return self._native.read(self.path, start, shape, raw=True)

    @property
    def units(self) -> str | None:
        """The units attribute, None where there is none."""
        units = self._info["attrs"].get("units")
        return units if isinstance(units, str) else None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"array {self.path!r} is a scalar and has no length")
        return self.shape[0]

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - an array, or a scalar
        """Return decoded values, with the indexing of numpy by integers, slices and ``...``."""
        box = as_box(key, self.shape, self.path)
        if (parts := box.apart(self.dtype.itemsize)) is not None:
            return box.cut(together(self._native, self.path, *parts, stored=False))
        values = self._native.read(self.path, box.start, box.shape, raw=False, steps=box.steps)
        return box.cut(values)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        import numpy as np

        if copy is False:
            raise ValueError(
                f"the values of {self.path!r} have to be read: they cannot be had without a copy"
            )
        return np.asarray(self[...], dtype=dtype)

    @shown
    def __repr__(self) -> str:
        dims = ", ".join(f"{name}: {n}" for name, n in zip(self.dims, self.shape, strict=True))
        units = f" [{self.units}]" if self.units else ""
        return f"<sieva.Array {self.path} ({dims}) {self._info['decoded_dtype']}{units}>"


class Arrays(Mapping[str, Array]):
    """The arrays of a source by path, in the order of the file; names are found as in queries."""

    def __init__(self, native: _native.Source) -> None:
        self._native = native
        self._paths = native.arrays()

    def __getitem__(self, name: str) -> Array:
        if not isinstance(name, str):
            raise TypeError(f"arrays go by name, got {name!r} ({type(name).__name__})")
        return Array(self._native, self._native.resolve(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    @shown
    def __repr__(self) -> str:
        lines = [f"  {self[path]!r}" for path in self._paths[:40]]
        more = [f"  ... and {len(self) - 40} more"] if len(self) > 40 else []
        return "\n".join([f"<sieva.Arrays: {len(self)}>", *lines, *more])
