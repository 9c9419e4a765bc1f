"""Opening files: the source, its arrays, and the queries that are made of it."""

from __future__ import annotations

import glob as globbing
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypedDict

from sieva import _index, _native, errors
from sieva._array import Array, Arrays
from sieva._expr import Expr, quote
from sieva._index import BuildReport, Calibration, Histogram, IndexStatus, Progress, VerifyReport
from sieva._memory import memory_bytes
from sieva._query import Query
from sieva._schema import Schema

_GLOB = ("*", "?", "[")


class _Running(TypedDict):
    """How a query is run."""

    access: str
    fetch: str
    memory: int | None
    threads: int | None


class Source:
    """An open file; made by `sieva.open`.

    Attributes
    ----------
    arrays : Mapping of str to Array
        All arrays by path.
    attrs : dict
        The attributes of the root group.
    path, format : str
        The file, and what it is: ``"HDF5"``, ``"netCDF-4"`` ...
    warnings : list of str
        What in the file could not be understood.
    """

    def __init__(self, native: _native.Source) -> None:
        self._native = native
        self.arrays = Arrays(native)

    @property
    def path(self) -> str:
        """The path as it was given."""
        return self._native.path

    @property
    def format(self) -> str:
        """What the file is: ``"HDF5"``, ``"netCDF-4"``, ``"netCDF-3 classic"`` ..."""
        return self._native.format

    @property
    def warnings(self) -> list[str]:
        """What could not be understood and was left out or read otherwise."""
        return list(self._native.warnings)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the root group."""
        return dict(self._native.attrs())

    def __getitem__(self, name: str) -> Array:
        """Return an array by its path or, where it is unique, by the last part of it.

        Raises
        ------
        UnknownArray, AmbiguousName
            Both also a `KeyError`; with the names that are near, or the paths that it could mean.
        """
        return self.arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def schema(self) -> Schema:
        """Return what is known of the file: storage, layout, and values.

        Returns
        -------
        Schema
            A mapping of the three descriptors; ``print()`` and notebooks show it. Reads coordinates,
            nothing else.
        """
        return Schema(self._native.schema())

    def query(
        self,
        condition: str | Expr | None = None,
        select: Sequence[str | Expr] | None = None,
        *,
        access: str = "auto",
        fetch: str = "auto",
        memory: int | str | None = None,
        threads: int | None = None,
    ) -> Query:
        """Return the query for the points that satisfy a condition. Reads no data yet.

        Parameters
        ----------
        condition
            Text, or an expression made of arrays; None is satisfied by all points.
        select
            Names or expressions of exactly what comes back. None: the coordinates, then the arrays in the
            condition.
        access
            ``"auto"``, or the one way to evaluate it: ``"scan"``, ``"zonemap"``, ``"bitmap"``, ``"sorted"``.
            The last three need an index, made by `build_index`.
        fetch
            ``"auto"``, or the one way to fetch values at the selected positions: ``"direct"``, a read for
            each segment of them; ``"block"``, whole blocks that are filtered in memory.
        memory
            Bytes that reading and results in flight may take, as a number or text: ``"512MiB"``; by default
            1 GiB.
        threads
            By default one for each core.

        Returns
        -------
        Query
            Its rows are the points of all dimensions of all arrays that it names, in C order.

        Raises
        ------
        SyntaxError_, UnknownArray, AmbiguousName, TypeMismatch
            The condition cannot be understood; the error lists what would have been valid.

        Examples
        --------
        >>> q = src.query("TEMP > 5 AND z_t < 5000", select=["TEMP"])  # doctest: +SKIP
        >>> q = src.query((src["TEMP"] > 5) & (src["z_t"] < 5000))  # doctest: +SKIP
        """
        if isinstance(select, str | Expr):
            raise TypeError(f"select is a list, got {select!r}: write select=[{str(select)!r}]")
        text = _condition_text(condition)
        items = None if select is None else [self._item(item) for item in select]
        options = _running(access, fetch, memory, threads)

        def extended(extra: list[str], columns: list[str]) -> _native.Query:
            return self._native.query(text, (items or columns) + extra, **options)

        return Query(self._native.query(text, items, **options), self, text or "", extended)

    def sql(
        self,
        text: str,
        *,
        access: str = "auto",
        fetch: str = "auto",
        memory: int | str | None = None,
        threads: int | None = None,
    ) -> Query:
        """Return the query of a SELECT over this source; its FROM, if it has one, is not looked at.

        Parameters
        ----------
        text
            Such as ``"SELECT TEMP, SALT WHERE TEMP > 5"``.
        access, fetch, memory, threads
            As in `query`.
        """
        from sieva._sqltext import with_columns

        options = _running(access, fetch, memory, threads)

        def extended(extra: list[str], columns: list[str]) -> _native.Query | None:
            longer = with_columns(text, columns, extra)
            return None if longer is None else self._native.sql(longer, **options)

        return Query(self._native.sql(text, **options), self, text, extended)

    def build_index(
        self,
        *arrays: str,
        kinds: Sequence[str] = ("zonemap", "bitmap"),
        jobs: int | None = None,
        memory: int | str | None = None,
        precision: int = 2,
        columns: Sequence[str] | None = None,
        progress: Progress = False,
    ) -> BuildReport:
        """Build augmentations of arrays beside the file, as far as they are not there yet.

        The file itself is never changed. A build that was stopped goes on where it was when called again.

        Parameters
        ----------
        *arrays
            Names; none: all arrays of numbers.
        kinds
            ``"zonemap"``: least and greatest value, missing ones, and a histogram of each region;
            ``"bitmap"``: a bitmap index, and zone maps; ``"sorted"``: a replica sorted by each of the arrays.
        jobs
            Workers; by default one for each core.
        memory
            Bytes that a sort may take, as a number or text: ``"512MiB"``; by default 1 GiB.
        precision
            Significant decimal digits of the bounds of bitmaps' bins: conditions with constants of so many
            digits are answered without reading data.
        columns
            Arrays that a sorted replica carries besides its key; None: all of the same dimensions.
        progress
            True: a bar, if stderr is a terminal. A function is called with bytes done and bytes in all.

        Returns
        -------
        BuildReport
            What was built, and what was there already.

        Raises
        ------
        UnknownArray, TypeMismatch, Unsupported
            An array that is named is not there, or cannot be indexed.
        PermissionDenied
            The store cannot be written; give a directory by ``store=`` of `open` or by SIEVA_STORE.

        Examples
        --------
        >>> src.build_index("TEMP", "SALT", jobs=2, progress=True)  # doctest: +SKIP
        """
        return _index.build(
            self._native,
            [self._array_name(a) for a in arrays],
            [kinds] if isinstance(kinds, str) else kinds,
            jobs=jobs,
            memory=memory_bytes(memory),
            precision=precision,
            columns=columns,
            progress=progress,
        )

    def index_status(self) -> IndexStatus:
        """Return what there is of augmentations: regions and bytes by array, sorted replicas, and damage."""
        return _index.status(self._native)

    def verify_index(self, all: bool = False, progress: Progress = False) -> VerifyReport:  # noqa: A002
        """Compare augmentations with the data.

        Parameters
        ----------
        all
            Everything; by default a sample of regions and rows.
        progress
            As of `build_index`.

        Returns
        -------
        VerifyReport
            True where nothing differs.

        Raises
        ------
        NoIndex
            There is no index of this state of the file.
        """
        with _index.told(progress, "verifying") as tell:
            return VerifyReport(**_native.verify_index(self._native, all, tell))

    def drop_index(self, *arrays: str, kinds: Sequence[str] | None = None) -> bool:
        """Remove augmentations: all of them, or sorted replicas.

        Parameters
        ----------
        *arrays
            With ``kinds=["sorted"]``: the keys of replicas to remove; none: all replicas.
        kinds
            None: everything. Zone maps and bitmaps are not removed one by one: drop all and build again.

        Returns
        -------
        bool
            Whether there was something to remove.
        """
        if kinds is None and not arrays:
            return _native.drop_index(self._native)
        if kinds is None or list(kinds) != ["sorted"]:
            raise errors.Unsupported(
                "only sorted replicas are removed by name",
                "drop the whole index and build what is wanted again",
            )
        return _native.drop_replicas(self._native, [self._array_name(a) for a in arrays]) > 0

    def histogram(self, *arrays: str) -> Histogram:
        """Return the histogram of whole arrays, from their augmentations. Reads no data.

        Parameters
        ----------
        *arrays
            One or more; those of several are added.

        Raises
        ------
        NoIndex
            The statistics of not all regions are known: `build_index` makes them.

        Examples
        --------
        >>> counts, edges = src.histogram("TEMP")  # doctest: +SKIP
        """
        if not arrays:
            raise TypeError("histogram() needs the name of an array")
        first, *rest = (Histogram(_native.Histogram.of(self._native, self._array_name(a))) for a in arrays)
        return sum(rest, start=first)

    def calibrate(self) -> Calibration:
        """Measure what reading this file costs here, and keep it in its store for the planner.

        Returns
        -------
        Calibration
            Costs of a request and of a byte in nanoseconds, by kind of layout.
        """
        found, kept_in = _native.calibrate(self._native)
        costs = {name: value for name, value, _ in found}
        return Calibration(costs, {name: n for name, _, n in found}, str(kept_in))

    @property
    def index_notes(self) -> list[str]:
        """Why augmentations that exist are not used, and what of them is damaged."""
        return list(_native.index_notes(self._native))

    def close(self) -> None:
        """Write what scans learnt of the file to its store. The source can be used again afterwards."""
        _native.save_learnt(self._native)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _array_name(self, name: str) -> str:
        """Return the path of an array."""
        return self.arrays[name].path

    def _item(self, item: str | Expr) -> str:
        """Return an item of select as text; a path is always taken as one, whatever characters it has."""
        return quote(item) if isinstance(item, str) and item in self.arrays._paths else str(item)

    def __repr__(self) -> str:
        return f"<sieva.Source {self.path}: {self.format}, {len(self)} arrays>"

    def _repr_html_(self) -> str:
        from sieva._html import source_html

        return source_html(self)


def _running(access: str, fetch: str, memory: int | str | None, threads: int | None) -> _Running:
    return {"access": access, "fetch": fetch, "memory": memory_bytes(memory), "threads": threads}


def _condition_text(condition: object) -> str | None:
    if condition is None or isinstance(condition, str | Expr):
        return None if condition is None else str(condition)
    kind = type(condition).__name__
    raise TypeError(f"a condition is text or an expression of arrays, got {condition!r} ({kind})")


def open(  # noqa: A001 - sieva.open is the name that is fixed
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    external: Sequence[str | os.PathLike[str]] = (),
    valid_range: bool = False,
    store: str | os.PathLike[str] | None = None,
    learn: bool = True,
) -> Source:
    """Open a file; its format is told by its first bytes, not by its name.

    Parameters
    ----------
    path
        Of a file of HDF5, netCDF-4 or netCDF-3; or a glob or list that comes to exactly one file.
    dims
        Names of dimensions by array, where the file does not name them, so that arrays of different groups
        line up: ``{"exchange/theta": ["angle"]}``.
    external
        Directories that external links and external raw storage may lead into; by default none.
    valid_range
        Whether values outside of the attributes valid_range, valid_min and valid_max are missing.
    store
        A directory for the augmentations of sources. None: what SIEVA_STORE says, else ``<path>.sieva``
        beside the file.
    learn
        Whether scans leave zone maps and histograms of what they read in the store, which takes under 3 %
        of their time. ``SIEVA_LEARN=0`` in the environment switches it off for all.

    Returns
    -------
    Source
        The file is never changed.

    Raises
    ------
    FileNotFound
        There is no such file; also a `FileNotFoundError`.
    UnknownFormat, CorruptFile
        The file cannot be read; also a `ValueError`.
    Unsupported
        Several files, or a URL.

    Examples
    --------
    >>> src = sieva.open("pop.nc")  # doctest: +SKIP
    >>> src["TEMP"].shape  # doctest: +SKIP
    (4, 20, 300, 400)
    """
    if isinstance(external, str | os.PathLike):
        external = [external]
    native = _native.Source.open(
        one_file(path),
        dims={array: list(names) for array, names in (dims or {}).items()} or None,
        external_roots=[os.fspath(root) for root in external],
        valid_range=valid_range,
        store=None if store is None else os.fspath(store),
        learn=None if learn else (0.0, 0),
    )
    return Source(native)


def sql(
    text: str,
    *,
    access: str = "auto",
    fetch: str = "auto",
    memory: int | str | None = None,
    threads: int | None = None,
    **options: Any,  # noqa: ANN401 - those of `open`, checked there
) -> Query:
    """Return the query of a SELECT whose FROM names the file.

    Parameters
    ----------
    text
        Such as ``"SELECT TEMP, SALT FROM 'pop.nc' WHERE TEMP > 5 LIMIT 10"``.
    access, fetch, memory, threads
        As in `Source.query`.
    **options
        As in `open`: dims, external, valid_range, store, learn.

    Raises
    ------
    SyntaxError_
        The text is no SELECT, or has no FROM.

    Examples
    --------
    >>> q = sieva.sql("SELECT avg(TEMP) FROM 'pop.nc' GROUP BY z_t")  # doctest: +SKIP
    """
    path = _native.from_clause(text)
    if path is None:
        raise errors.SyntaxError_("the query has no FROM", "write SELECT ... FROM 'file.nc' WHERE ...")
    return open(path, **options).sql(text, access=access, fetch=fetch, memory=memory, threads=threads)


def one_file(path: object) -> str:
    """Return the one file that a path, glob or list means.

    A path that exists is never taken for a glob.
    """
    if isinstance(path, str | os.PathLike):
        text = os.fspath(path)
        if not isinstance(text, str):
            raise TypeError(f"a path is text, got {path!r}")
        if "://" in text and not Path(text).exists():
            raise errors.Unsupported(
                f"{text!r} is a URL: only local files can be opened", "download it first"
            )
        if not any(c in text for c in _GLOB) or Path(text).exists():
            return text
        found = sorted(globbing.glob(text, recursive=True))  # noqa: PTH207 - absolute patterns, too
        if not found:
            raise errors.FileNotFound(f"no file matches {text!r}")
        return _only(found, f"{text!r} matches")
    if isinstance(path, Sequence) and not isinstance(path, bytes):
        found = [one_file(item) for item in path]
        if not found:
            raise ValueError("the list of files is empty")
        return _only(found, "the list has")
    raise TypeError(f"expected a path, a glob or a list of paths, got {path!r} ({type(path).__name__})")


def _only(found: list[str], what: str) -> str:
    if len(found) > 1:
        raise errors.Unsupported(
            f"{what} {len(found)} files: several files as one source are not supported",
            "open one of them, and loop over the rest",
        )
    return found[0]
