"""Sources that grow: what came is taken up without opening everything again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sieva import errors

if TYPE_CHECKING:
    from sieva import _native
    from sieva._source import Source


def refresh(self: Source) -> Source:
    """Return the source as it is now: with records that a file got, and files of a glob that came or went.

    Of many files only those are opened that changed or are new, and one of each kind. This source, its arrays
    and its queries stay what they were: they give the values of before, or raise `StaleSource` where a file
    changed, and never values of both.

    Returns
    -------
    Source
        This one where nothing changed. Of what Python code reads (an ADIOS2 file), and of a hierarchy of
        Zarr, that is not known without reading it: it is opened again.

    Raises
    ------
    FileNotFound
        Nothing is there any more.
    DimensionMismatch
        A new file does not fit to the others.

    Examples
    --------
    >>> src = sieva.open("run7/*.nc")  # doctest: +SKIP
    >>> while True:  # doctest: +SKIP
    ...     src = src.refresh()
    ...     print(src.sql("SELECT max(time) AS last").to_pandas())
    ...     time.sleep(60)
    """
    fresh = _refreshed(self)
    if fresh is None:
        return self
    source = type(self)(fresh, self._opened)
    source._engine = self._engine
    return source


def _refreshed(source: Source) -> _native.Source | None:
    """Return the source as it is now; None where that is what it was."""
    try:
        return source._native.refreshed()
    except errors.Unsupported:
        # Python code reads it: it is opened as it was.
        if source._opened is None:
            raise
        return source._opened.open()._native
