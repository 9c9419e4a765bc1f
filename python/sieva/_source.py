"""The source: its arrays, and the queries and indexes that are made of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from sieva import _index, _index_job, _native, _read_many, _refresh
from sieva._array import Array, Arrays
from sieva._expr import Expr, asked
from sieva._histogram import Histogram
from sieva._index import BuildReport, Calibration, IndexStatus, VerifyReport
from sieva._index_job import IndexJob
from sieva._opened import Opened, reopen
from sieva._options import portable, takes
from sieva._printable import shown
from sieva._query import Query
from sieva._schema import Schema

if TYPE_CHECKING:
    from sieva._options import Running, RunningTask


class Source:
    """An open file; made by `sieva.open`.

    Attributes
    ----------
    arrays : Mapping of str to Array
        All arrays by path.
    attrs : dict
        The attributes of the root group.
    path, format : str
        The file or glob, and what it is: ``"HDF5"``, ``"netCDF-4"`` ...
    files : list of str
        The files that it is made of.
    warnings : list of str
        What in the file could not be understood.
    """

    def __init__(self, native: _native.Source, opened: Opened | None = None) -> None:
        self._native = native
        self._opened = opened  # how to open it once more; None where Python code reads it
        self._engine: Any = None  # who runs its queries where they do not say
        self.arrays = Arrays(native)

    @property
    def path(self) -> str:
        """The path as it was given; of an address, with what it may hold of user, password and signature."""
        return self._native.path

    @property
    def files(self) -> list[str]:
        """The files that it is made of, in the order of the list or glob."""
        return list(self._native.files())

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

    read_many = _read_many.read_many

    def schema(self) -> Schema:
        """Return what is known of the file: storage, layout, and values.

        Returns
        -------
        Schema
            A mapping of the three descriptors; ``print()`` and notebooks show it. Reads coordinates,
            nothing else.
        """
        return Schema(self._native.schema())

    @takes("query")
    def query(
        self,
        condition: str | Expr | _native.Plan | None = None,
        select: Sequence[str | Expr] | None = None,
        *,
        engine: object = None,
        **options: Unpack[Running],
    ) -> Query:
        """Return the query for the points that satisfy a condition. Reads no data yet.

        Parameters
        ----------
        condition
            Text, or an expression made of arrays; None is satisfied by all points. Or a plan, which says all:
            then there is no `select`.
        select
            Names or expressions of exactly what comes back. None: the coordinates, then the arrays in the
            condition.
        engine
            Who runs it: None, this process; ``"local"``, other processes of this machine; or another engine
            of `sieva.engines`. `memory` and `threads` are those of each worker then.
        access
            ``"auto"``, or the one way to evaluate it: ``"scan"``, ``"zonemap"``, ``"bitmap"``, ``"sorted"``.
            The last three need an index, made by `build_index`.
        fetch
            ``"auto"``, or the one way to fetch values at the selected positions: ``"direct"``, a read for
            each segment of them; ``"block"``, whole blocks that are filtered in memory.
        memory
            Bytes that reading and results in flight may take, as a number or text: ``"512MiB"``; by default
            1 GiB.
        spill
            Bytes that ORDER BY and DISTINCT may write to temporary files (in ``TMPDIR``) where memory does
            not do; by default 16 GiB. 0: none, and what does not fit is an error.
        threads
            By default one for each core.
        cross
            Whether arrays that do not line up make a product, each position with each; else it is an error.
        functions
            Functions of your own by name: text of the C subset, the bytes of a WebAssembly module, or the
            path of a file with either. A map gives a value of each row, a filter is a condition.

        Returns
        -------
        Query
            Its rows are the points of all dimensions of all arrays that it names, in C order.

        Raises
        ------
        SyntaxError_, UnknownArray, AmbiguousName, TypeMismatch
            The condition cannot be understood; the error lists what would have been valid.
        UnalignedDimensions
            Arrays do not line up; the error says which `dims` of `open` would mend it.

        Examples
        --------
        >>> q = src.query("TEMP > 5 AND z_t < 5000", select=["TEMP"])  # doctest: +SKIP
        >>> q = src.query((src["TEMP"] > 5) & (src["z_t"] < 5000))  # doctest: +SKIP
        """
        if isinstance(select, str | Expr):
            raise TypeError(f"select is a list, got {select!r}: write select=[{str(select)!r}]")
        run: Any = portable(options)
        if isinstance(condition, _native.Plan):
            return self._query_plan(condition, select, engine, run)
        where = _condition(condition)
        items = None if select is None else [self._item(item) for item in select]
        return self._by(engine, self._native.query(where, items, run), str(where or ""), run)

    def _by(self, engine: object, native: _native.Query, text: str, options: Running) -> Query:
        """Return a query that an engine runs; None is this process."""
        running: dict[str, Any] = {**options}
        engine = self._engine if engine is None else engine
        if engine is None:
            return Query(native, self, text, running)
        from sieva.engines import engine_of
        from sieva.engines._query import EngineQuery

        return EngineQuery(native, self, text, running, engine_of(engine))

    def _query_plan(self, plan: _native.Plan, select: object, engine: object, options: Running) -> Query:
        if select is not None:
            raise TypeError("select= beside a plan, which says what comes back")
        return self._by(engine, self._native.query_plan(plan, options), plan.sql(), options)

    @takes("run_task")
    def run_task(self, task: _native.Task, **options: Unpack[RunningTask]) -> _native.Partial:
        """Run a part of the work of a query of this source, wherever it was made by `Query.tasks`.

        Parameters
        ----------
        task
            The part. Its bytes are enough: ``Task.from_bytes``.
        access, fetch, memory, spill, threads
            As in `query`; they change the time, not the answer.
        functions
            Those of the query.

        Returns
        -------
        Partial
            To be sent back, and given to `Query.finish` with the others.

        Raises
        ------
        StaleSource
            This source is in another state than the one that the task was made of.
        InvalidValue
            It was opened in another way: `dims`, `valid_range` or `join` differ.
        """
        return self._native.run_task(task, options)

    @takes("query")
    def sql(self, text: str, *, engine: object = None, **options: Unpack[Running]) -> Query:
        """Return the query of a SELECT over this source; its FROM, if it has one, is not looked at.

        Parameters
        ----------
        text
            Such as ``"SELECT TEMP, SALT WHERE TEMP > 5"``.
        engine
            As in `query`.
        access, fetch, memory, spill, threads, cross, functions
            As in `query`; ``CROSS`` in the text says the same as `cross`.

        Examples
        --------
        >>> f = {"fahrenheit": "double map(double c) { return c * 1.8 + 32; }"}  # doctest: +SKIP
        >>> q = src.sql("SELECT TEMP WHERE fahrenheit(TEMP) > 77", functions=f)  # doctest: +SKIP
        """
        run: Any = portable(options)
        return self._by(engine, self._native.sql(text, run), text, run)

    def manifest(self) -> bytes:
        """Return what opening this file learnt, for ``sieva.open(path, manifest=...)`` in other processes.

        They parse nothing, and read nothing of the file before values are wanted; indexes know its state from
        these bytes. One that finds the file with another length or time of modification gets `StaleSource`.
        The bytes are for processes that trust this one. Making them reads where all chunks lie, and 64 KiB of
        samples.

        Raises
        ------
        Unsupported
            The source is not one file or object: several files, a Zarr group, a reference set; or its server
            gives it no tag.
        StaleSource
            It was changed since it was opened.

        Examples
        --------
        >>> known = comm.bcast(sieva.open("pop.nc").manifest() if rank == 0 else None)  # doctest: +SKIP
        >>> src = sieva.open("pop.nc", manifest=known)  # doctest: +SKIP
        """
        return self._native.manifest()

    def build_index(
        self,
        *arrays: str | Array,
        kinds: Sequence[str] = ("zonemap", "bitmap"),
        jobs: int | None = None,
        memory: int | str | None = None,
        precision: int = 2,
        region_size: int | str | None = None,
        columns: Sequence[str | Array] | None = None,
        lock_timeout: float = 60,
        progress: bool | Callable[[int, int], None] = False,
        engine: object = None,
    ) -> BuildReport:
        """Build indexes of arrays, as far as they are not there; answers do not depend on them.

        The data are read once for zone maps and bitmaps of all arrays, and once more for each sorted replica.
        A build that was stopped goes on where it was, and one of a file that was changed takes over what is
        known of data that were not.

        Parameters
        ----------
        *arrays
            None: all numeric ones.
        kinds
            ``"zonemap"``: least and greatest value and a histogram of each region. ``"bitmap"``: which
            elements lie in which range, with the zone maps. ``"sorted"``: a copy of arrays ordered by the
            named one.
        jobs
            Workers; by default one for each core.
        memory
            Bytes that a sort may take, as a number or text: ``"512MiB"``; by default 1 GiB.
        precision
            Significant decimal digits of the bounds of a bitmap's bins: conditions whose constants have no
            more are answered without the data.
        region_size
            Bytes of a region of zone maps and bitmaps, about, as a number or text: ``"4MiB"``. Regions are
            whole chunks, at least one; an array has at most some 260 000 of them. None: as the index that
            there is, else a chunk, or 65 536 elements and more. Where an index has other regions, all that
            it has of the arrays is built anew, and takes the place of what there was.
        columns
            Arrays that a sorted replica carries besides its key; None: all numeric ones of its dimensions.
        lock_timeout
            Seconds for which somebody else's lock on the store is waited for.
        progress
            True shows a bar on stderr, if that is a terminal. A function is called with the bytes that are
            done and those in all, from any thread; an exception that it raises stops the build.
        engine
            Who builds: None, threads of this process; else as of `query`. `jobs` and `memory` are those of
            each worker then, and there is no progress to be told.

        Raises
        ------
        UnknownArray, TypeMismatch, Unsupported
            A named array is not there, is text, or is read through the HDF5 library.
        PermissionDenied
            The store cannot be written: open the file with ``store=``.
        IoError
            Writing failed, or another process held the lock of the store for longer than ``lock_timeout``.
        StaleSource
            The file is not as it was when it was opened.

        Examples
        --------
        >>> src.build_index("TEMP", "SALT", progress=True)  # doctest: +SKIP
        <sieva.BuildReport 48 regions built, 0 kept; 37.6 MiB read in 0.2 s>
        >>> src.build_index("TEMP", kinds=["sorted"], columns=["SALT"])  # doctest: +SKIP
        """
        engine = self._engine if engine is None else engine
        if engine is not None:
            asked = {
                "arrays": [_path_of(array) for array in arrays],
                "kinds": list(kinds),
                "memory": memory,
                "precision": precision,
                "region_size": region_size,
                "columns": None if columns is None else [_path_of(c) for c in _listed(columns, "columns")],
                "lock_timeout": lock_timeout,
            }
            from sieva.engines import engine_of
            from sieva.engines._driver import build_index

            given = {"jobs": jobs, "memory": memory, "lock_timeout": lock_timeout}
            return build_index(self, asked, engine_of(engine), given)
        return _index.build(
            self._native,
            [_path_of(array) for array in arrays],
            kinds=kinds,
            jobs=jobs,
            memory=memory,
            precision=precision,
            region_size=region_size,
            columns=None if columns is None else [_path_of(c) for c in _listed(columns, "columns")],
            lock_timeout=lock_timeout,
            progress=progress,
        )

    def index_job(
        self,
        *arrays: str | Array,
        kinds: Sequence[str] = ("zonemap", "bitmap"),
        memory: int | str | None = None,
        precision: int = 2,
        region_size: int | str | None = None,
        columns: Sequence[str | Array] | None = None,
        lock_timeout: float = 60,
    ) -> IndexJob:
        """Return what builds indexes in parts, which other processes may run; parameters as of `build_index`.

        `memory` is that of each process that sorts. Nothing is built yet.
        """
        return IndexJob(
            self._native,
            [_path_of(array) for array in arrays],
            kinds=kinds,
            memory=memory,
            precision=precision,
            region_size=region_size,
            columns=None if columns is None else [_path_of(c) for c in _listed(columns, "columns")],
            lock_timeout=lock_timeout,
        )

    def run_index_task(
        self,
        task: _native.IndexTask | bytes,
        *,
        jobs: int | None = None,
        memory: int | str | None = None,
        lock_timeout: float = 60,
    ) -> bytes:
        """Run a part of the work of an `IndexJob` of this source, and return what the job takes.

        A task that is run again leaves out what is there already.

        Parameters
        ----------
        task
            The part, or its bytes.
        jobs, memory, lock_timeout
            As of `build_index`, for this process.

        Raises
        ------
        StaleSource
            This source is in another state than the one that the task was made of.
        """
        return _index_job.run(self._native, task, jobs=jobs, memory=memory, lock_timeout=lock_timeout)

    def index_status(self) -> IndexStatus:
        """Return what there is of indexes of this file; prints as a table. Reads the store alone."""
        return _index.status(self._native)

    def verify_index(
        self,
        all: bool = False,  # noqa: A002 - the option's name everywhere
        progress: bool | Callable[[int, int], None] = False,
    ) -> VerifyReport:
        """Compare indexes with the data that they are of.

        Parameters
        ----------
        all
            Everything instead of a sample: it reads all data of the indexed arrays.
        progress
            As in `build_index`; what is counted are arrays and replicas.

        Returns
        -------
        VerifyReport
            It is true where nothing differs.

        Raises
        ------
        NoIndex
            There is none for this state of the file.
        """
        return _index.verify(self._native, all, progress)

    def drop_index(self, *arrays: str | Array, kinds: Sequence[str] | None = None) -> bool:
        """Remove indexes; returns whether there was something to remove.

        Parameters
        ----------
        *arrays
            Whose sorted replicas go, with ``kinds=["sorted"]``; none: all of them.
        kinds
            None: the whole store goes, with all that is in it.

        Raises
        ------
        Unsupported
            Zone maps or bitmaps alone, or those of one array: drop all and build again.
        """
        return _index.drop(self._native, [_path_of(array) for array in arrays], kinds)

    def calibrate(self) -> Calibration:
        """Measure what reading this file costs on this host, for choosing between ways to answer.

        Queries learn it as well; this is for a new machine or file system. It is kept in the store.

        Raises
        ------
        PermissionDenied
            The store cannot be written.
        """
        return _index.calibrate(self._native)

    @property
    def index_notes(self) -> list[str]:
        """Why indexes that exist are not used, and what of them is damaged."""
        return _native.index_notes(self._native)

    def histogram(self, *arrays: str | Array) -> Histogram:
        """Return the histogram of arrays, all their values together. Reads their zone maps alone.

        Parameters
        ----------
        *arrays
            One, or several of the same type and packing.

        Raises
        ------
        NoIndex
            An array has no zone maps, or not of all of its regions: `build_index` makes them.
        TypeMismatch
            The arrays' bins do not go together; or an array is text.

        Examples
        --------
        >>> counts, edges = src.histogram("TEMP")  # doctest: +SKIP
        """
        if not arrays:
            raise TypeError("histogram() takes the names of arrays, got none")
        first, *rest = (self._histogram(_path_of(array)) for array in arrays)
        for other in rest:
            first += other
        return first

    def _histogram(self, name: str) -> Histogram:
        # Errors of names come from there, as of all of these methods.
        found = _native.Histogram.of(self._native, name)
        info = self._native.info(self._native.resolve(name))
        return Histogram(found, info["decoded_dtype"].startswith(("int", "uint", "bool")))

    def to_references(self, path: str | os.PathLike[str], *, url: str | None = None) -> list[str]:
        """Write where every chunk lies, as a reference set of kerchunk, by which Zarr libraries read it.

        Parameters
        ----------
        path
            A file ``*.json``, or a directory ``*.parq`` of Parquet tables, as fsspec reads them.
        url
            Where readers find the file; None: where it was opened.

        Returns
        -------
        list of str
            What is not, or not quite, in the set: arrays with filters that Zarr has no codec for, say.

        Examples
        --------
        >>> src.to_references("pop.json")  # doctest: +SKIP
        >>> xr.open_dataset("pop.json", engine="kerchunk")  # doctest: +SKIP
        """
        from sieva._references import export

        return export(self, path, url)

    def by(self, engine: object) -> Source:
        """Return the same open source, whose queries and indexes an engine makes; `engine` as of `query`.

        Examples
        --------
        >>> src = sieva.open("pop.nc").by(client)  # doctest: +SKIP
        >>> src.query("TEMP > 25").count()  # doctest: +SKIP
        """
        from sieva.engines import engine_of

        source = Source(self._native, self._opened)
        source._engine = engine_of(engine)
        return source

    def __reduce__(self) -> tuple[object, ...]:
        if self._opened is None:
            raise TypeError(f"{self!r} is read by Python code, and cannot be pickled")
        # Where it is and in which state; no metadata, no values.
        return reopen, (self._opened.to_json(), self._native.state())

    refresh = _refresh.refresh

    def close(self) -> None:
        """Save what scans learnt of the file; the source can be asked on.

        It is saved as well when the source and its queries are no longer used.
        """
        _native.save_learnt(self._native)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _item(self, item: str | Expr) -> str | _native.Expr:
        """Return an item of select; a path is always taken as one, whatever characters it has."""
        if isinstance(item, str) and item in self.arrays._paths:
            return _native.Expr.name(item)
        return asked(item)

    @shown
    def __repr__(self) -> str:
        return f"<sieva.Source {_native.redacted(self.path)}: {self.format}, {len(self)} arrays>"

    def _repr_html_(self) -> str:
        from sieva._html import source_html

        return source_html(self)


def _listed(items: Sequence[Any], name: str) -> Sequence[Any]:
    if isinstance(items, str):
        raise TypeError(f"{name} is a list, got {items!r}")
    return items


def _path_of(array: object) -> str:
    """Return the name of an array that is given by name, or itself."""
    if isinstance(array, Array):
        return array.path
    if isinstance(array, str):
        return array
    raise TypeError(f"an array is given by its name, or as src[name], got {array!r}")


def _condition(condition: object) -> str | _native.Expr | None:
    if condition is None or isinstance(condition, str | Expr):
        return None if condition is None else asked(condition)
    kind = type(condition).__name__
    raise TypeError(f"a condition is text or an expression of arrays, got {condition!r} ({kind})")
