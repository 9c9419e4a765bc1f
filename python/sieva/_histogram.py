"""The histogram of whole arrays, from their indexes: nothing of the data is read."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from sieva import _native

_RANGES = {"int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}


def _array(values: list[int], dtype: str) -> NDArray[Any]:
    made: NDArray[Any] = importlib.import_module("numpy").array(values, dtype)
    return made


class Histogram:
    """Counts of an array's values by bins whose width is a power of two; made by `Source.histogram`.

    Bins are aligned: a bound is a multiple of the width. So histograms of arrays of one type and packing have
    common bins, and ``+`` merges them exactly, also those of different files. It unpacks as numpy's does.

    Examples
    --------
    >>> counts, edges = src.histogram("TEMP")  # doctest: +SKIP
    >>> total = sum((sieva.open(p).histogram("TEMP") for p in rest), src.histogram("TEMP"))  # doctest: +SKIP
    """

    def __init__(self, native: _native.Histogram, is_integer: bool) -> None:
        self._native = native
        self._is_integer = is_integer

    @functools.cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of values in each bin: ``(bins,)``, int64. Missing values and infinities are in none."""
        return self._native.counts

    @functools.cached_property
    def edges(self) -> NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.float64]:
        """Bounds of the bins: ``(bins + 1,)``, ascending; a bin holds its lower one and not its upper one.

        Those of decoded values, float64; of integers that are not packed int64, or uint64 where int64 does
        not hold them. Where neither does, float64: the last bound is rounded up then, all others down. Where
        ``scale_factor`` is negative, a bin holds its upper bound instead. A bound is infinite where unpacking
        makes it so; such a bin may hold infinities.
        """
        whole = self._native.whole_edges if self._is_integer else None
        edges = self._native.edges
        if whole is None:
            return edges
        for name, (low, high) in _RANGES.items():
            if all(low <= edge <= high for edge in (whole[:1] + whole[-1:])):
                return _array(whole, name)
        return edges

    @property
    def missing(self) -> int:
        """Number of missing values: fill values and NaN."""
        return self._native.missing

    @property
    def infinities(self) -> tuple[int, int]:
        """Number of values that are -infinity, and that are +infinity.

        Stored numbers that ``scale_factor`` makes infinite count where all of their bin are.
        """
        return self._native.infinities

    @property
    def rows(self) -> int:
        """Number of all values: those in bins, infinities and missing ones."""
        return self._native.rows

    @property
    def range(self) -> tuple[float, float] | None:
        """Least and greatest decoded value, infinities included; None where all are missing."""
        whole = self._native.whole_range if self._is_integer else None
        return self._native.range if whole is None else whole

    def __add__(self, other: Histogram) -> Histogram:
        """Return the histogram of the values of both.

        Raises
        ------
        TypeMismatch
            They are of different types or packing, so that they have no common bins.
        """
        if not isinstance(other, Histogram):
            return NotImplemented
        return Histogram(self._native.merged(other._native), self._is_integer)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        yield self.counts
        yield self.edges

    def __len__(self) -> int:
        return len(self.counts)

    def plot(self, ax: Any = None, **options: Any) -> Any:  # noqa: ANN401 - matplotlib's
        """Draw it by matplotlib, as steps; returns the axes.

        Parameters
        ----------
        ax
            Axes to draw on; by default those that matplotlib is at.
        **options
            Of `matplotlib.axes.Axes.stairs`.

        Raises
        ------
        ImportError
            matplotlib is not installed, and no axes are given.
        """
        if ax is None:
            try:
                ax = importlib.import_module("matplotlib.pyplot").gca()
            except ImportError as error:
                raise ImportError(
                    "Histogram.plot() needs the package matplotlib: pip install matplotlib"
                ) from error
        ax.stairs(self.counts, self.edges, **options)
        return ax

    def __repr__(self) -> str:
        span = "" if self.range is None else f" from {self.range[0]:g} to {self.range[1]:g}"
        counted = f"{self.rows - self.missing:,} values{span} in {len(self)} bins"
        return f"<sieva.Histogram {counted}; {self.missing:,} missing>"
