"""Queries on a communicator: each rank evaluates its share, and reads its share of what was found.

All functions and methods are collective: every rank of the communicator calls them, in the same order, with
the same arguments. Rank 0 opens the source and plans; the others are told. Errors of one rank are raised on
all, with its number.

>>> from mpi4py import MPI
>>> import sieva.mpi
>>> src = sieva.mpi.open("pop.nc", MPI.COMM_WORLD)  # doctest: +SKIP
>>> warm = src.query("TEMP > 25", select=["TEMP"])  # doctest: +SKIP
>>> warm.count()  # the same number on all ranks  # doctest: +SKIP
>>> mine = warm.read("TEMP", gather="none")  # this rank's part  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from sieva import _native, _open, errors
from sieva._opened import Opened
from sieva._options import some, takes
from sieva._source import Source
from sieva.engines import _work, engine_of
from sieva.engines._collection import EngineCollectionQuery
from sieva.engines._query import EngineQuery
from sieva.engines.mpi import MpiEngine

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from sieva._expr import Expr
    from sieva._options import Asking, Opening, Running

    Gather = Literal["all", "root", "none"]
    Mode = Literal["nonblocking", "collective", "independent"]

__all__ = ["MpiQuery", "MpiSource", "open", "read_many", "sql"]


@takes("open")
def open(  # noqa: A001 - as sieva.open
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    comm: Any = None,  # noqa: ANN401 - an mpi4py communicator
    **options: Unpack[Opening],
) -> MpiSource:
    """Open a source on all ranks; only rank 0 reads its metadata.

    Parameters
    ----------
    path
        As of `sieva.open`; that of rank 0 counts.
    comm
        An mpi4py communicator; None: that of all ranks.
    **options
        As of `sieva.open`.

    Returns
    -------
    MpiSource

    Raises
    ------
    SievaError
        As of `sieva.open`, on all ranks.
    """
    from sieva._open import file_names, open_in

    engine = _engine_of(comm)
    session = _work.this_worker().session._native

    def at_first() -> Source | None:
        if engine.rank:
            return None
        # By the names that the others open: a plan says of which source it is.
        names = Opened.of(file_names(path), options).names
        return open_in(session, list(names), options)

    first = engine.agreed(at_first)
    told = engine.comm.bcast(_told(first) if first is not None else None)
    opened = Opened.from_json(told[0])

    def mine() -> Source:
        if first is not None:
            return first
        how: Any = opened.options if told[1] is None else {**opened.options, "manifest": told[1]}
        return open_in(session, file_names(list(opened.names)), how)

    source = MpiSource(engine.agreed(mine)._native, opened, engine)
    # What runs the parts on this rank has it open, too.
    _work.this_worker().adopt(opened, source)
    return source


def _engine_of(comm: Any) -> MpiEngine:  # noqa: ANN401 - an mpi4py communicator
    engine = engine_of("mpi") if comm is None else engine_of(comm)
    assert isinstance(engine, MpiEngine)  # noqa: S101 - that is what the name means
    return engine


def _told(source: Source) -> tuple[str, bytes | None]:
    """Return how rank 0 opened a source, and what it learnt of its structure."""
    if source._opened is None:
        raise errors.Unsupported(
            f"{source.path!r} cannot be opened on other ranks", "open a file by its name"
        )
    try:
        manifest = source.manifest()
    except errors.Unsupported:
        manifest = None  # the others open it for themselves
    return source._opened.to_json(), manifest


@takes("query", "open")
def sql(
    text: str,
    comm: Any = None,  # noqa: ANN401 - an mpi4py communicator
    **options: Unpack[Asking],
) -> MpiQuery | EngineCollectionQuery:
    """Return the query of a SELECT whose FROM names a file or a collection, as `sieva.sql`.

    Each rank looks at some of a collection's objects; the values of rows are read by all.
    """
    run: Any = some("query", options)
    opening: Any = {name: value for name, value in options.items() if name not in run}
    engine = _engine_of(comm)
    # What is wrong with the text is told by all ranks alike, and by the command line once.
    path, named = engine.agreed(lambda: (_native.from_clause(text), _native.collection_clause(text)))
    if path is None and named is not None:
        asked = engine.agreed(lambda: _open.sql(text, engine=engine, **options))
        assert isinstance(asked, EngineCollectionQuery)  # noqa: S101 - that is what the clause means
        return asked
    if path is None:
        raise errors.SyntaxError_("the query has no FROM", "write SELECT ... FROM 'file.nc' WHERE ...")
    source = open(path, comm, **opening)
    return engine.agreed(lambda: source.sql(text, **run))


def read_many(
    comm: Any,  # noqa: ANN401 - an mpi4py communicator
    requests: Sequence[tuple[Source, str, Any]],
    *,
    mode: Mode = "nonblocking",
    errors: Literal["raise", "return"] = "raise",
    memory: int | str | None = None,
) -> list[Any]:
    """Return the values of boxes, each rank those that it asks for; what several want is read once.

    Collective, but each rank has requests of its own, or none. What all ranks ask for is cut by where its
    bytes lie: by servers and stripes, where these are known, chunks, and blocks. Each server's pieces are
    read by one rank, or divided among several where ranks are more than servers; overlaps are removed, and
    values are sent to whoever asked (HiLa, section IV.B, Algorithm 1).

    Parameters
    ----------
    comm
        An mpi4py communicator; None: that of all ranks.
    requests
        Of this rank: ``(source, name, index)`` with a source that `sieva.open` or `sieva.mpi.open` gave, the
        name of an array, and numpy's basic index: integers, slices with steps, ``...``.
    mode
        ``"nonblocking"``: what was read is sent while more is read. ``"collective"``: it is read and sent by
        turns, by all ranks. ``"independent"``: it is sent point to point as soon as it is read, and no rank
        waits for whom it needs nothing of.
    errors
        ``"raise"`` raises the first error of this rank's requests, once all ranks have what they asked for;
        ``"return"`` puts errors where the arrays of the requests that they befell would be. Other ranks'
        errors are not this one's, unless it asked for what could not be read.
    memory
        What is read, sent and received may take besides what is returned: bytes, or text such as
        ``"256MiB"``. The least of all ranks holds. None: a quarter of what a query of this rank may take.

    Returns
    -------
    list of ndarray
        For each request what ``source[name][index]`` gives, dtype and shape included.

    Raises
    ------
    SievaError
        A piece could not be read; the message names the rank that failed.
    TypeError, IndexError
        As of indexing an array.
    KeyboardInterrupt
        This rank was interrupted while it read. It still gives the others what it has, so that none waits for
        it; what it had not read is an error of kind ``cancelled`` of whoever needs it. A rank that is killed
        ends all of them, as MPI has it.

    Examples
    --------
    >>> rows = slice(comm.rank, comm.rank + 8)  # doctest: +SKIP
    >>> (mine,) = sieva.mpi.read_many(comm, [(src, "TEMP", (rows, 0))])  # doctest: +SKIP
    """
    from sieva._memory import memory_bytes
    from sieva._ranks.together import read_many as read_by

    _one_of("mode", mode, ("nonblocking", "collective", "independent"))
    _one_of("errors", errors, ("raise", "return"))
    found = read_by(lambda: _engine_of(comm), list(requests), mode, memory_bytes(memory) or 0)
    wrong = next((one for one in found if isinstance(one, BaseException)), None)
    if wrong is not None and errors == "raise":
        raise wrong
    return found


def _one_of(name: str, given: object, words: tuple[str, ...]) -> None:
    if given not in words:
        from sieva.errors import InvalidValue

        raise InvalidValue(f"{name}={given!r}: expected one of {', '.join(map(repr, words))}")


class MpiSource(Source):
    """A source that is open on all ranks; made by `sieva.mpi.open`. Its queries are asked by all of them."""

    def __init__(self, native: _native.Source, opened: Opened, engine: MpiEngine) -> None:
        super().__init__(native, opened)
        self._engine = engine

    @property
    def comm(self) -> Any:  # noqa: ANN401 - an mpi4py communicator
        """The communicator, of sieva's own."""
        return self._engine.comm

    def refresh(self) -> Source:
        """Refuse: ranks would see a change at different moments.

        Raises
        ------
        Unsupported
            Always.
        """
        raise errors.Unsupported(
            "a source that is open on a communicator is not looked at again", "open it anew, on all ranks"
        )

    def _by(self, engine: object, native: _native.Query, text: str, options: Running) -> MpiQuery:
        if engine is not None and engine is not self._engine:
            raise TypeError("engine= of a source that is open on a communicator: its ranks run it")
        running: dict[str, Any] = {"threads": self._engine.threads, **options}
        return MpiQuery(native, self, text, running, self._engine)

    if TYPE_CHECKING:

        def query(self, *args: Any, **options: Any) -> MpiQuery:  # noqa: ANN401, D102 - as of Source
            ...

        def sql(self, text: str, *, engine: object = None, **options: Any) -> MpiQuery:  # noqa: ANN401, D102
            ...


class MpiQuery(EngineQuery):
    """A query on a communicator: the condition is evaluated once, each rank a share of it."""

    engine: MpiEngine

    def my_rows(self) -> tuple[int, int]:
        """Return the first and last + 1 of the hits that this rank reads: as many on each, within one."""
        n, size, rank = len(self.selection()), self.engine.comm.size, self.engine.rank
        return n * rank // size, n * (rank + 1) // size

    def read(self, name: str | Expr | None = None, *, gather: Gather = "all") -> NDArray[Any]:
        """Return the values of an array or expression at the points, read by all ranks together.

        Parameters
        ----------
        name
            As of `Query.read`.
        gather
            ``"all"``: every rank gets all values. ``"root"``: rank 0 gets them, the others an array of
            length 0. ``"none"``: each rank keeps what it read, `my_rows` of all hits.

        Returns
        -------
        (n,) ndarray
        """
        import numpy as np

        item = None if name is None else self._item(name)
        asked = self._asked()
        part = asked if asked.grouped else self._native.at(asked.selection().part(*self.my_rows()))
        mine = self.engine.agreed(lambda: part.read(item))
        if _check(gather) == "none":
            return mine
        comm = self.engine.comm
        parts = comm.allgather(mine) if gather == "all" else comm.gather(mine)
        return mine[:0] if parts is None else np.concatenate(parts)

    def to_arrow(self, *, gather: Gather = "all") -> pa.Table:
        """Return the rows as an Arrow table; `gather` as of `read`.

        Rows that are groups, sorted, distinct or limited are the same on every rank; with ``"none"`` rank 0
        has them.
        """
        import pyarrow as pa

        asked = self._asked()
        if asked is self._native or not self._is_plain():
            table = self.engine.agreed(super().to_arrow)
            return table if _check(gather) == "all" or self.engine.rank == 0 else table.slice(0, 0)
        part = self._native.at(asked.selection().part(*self.my_rows()))
        mine = self.engine.agreed(lambda: _table(part))
        if _check(gather) == "none":
            return mine
        comm = self.engine.comm
        parts = comm.allgather(mine) if gather == "all" else comm.gather(mine)
        return mine.slice(0, 0) if parts is None else pa.concat_tables(parts)


def _table(native: _native.Query) -> pa.Table:
    from sieva._query import reader_of

    return reader_of(native, 1 << 20).read_all()


def _check(gather: str) -> str:
    if gather not in ("all", "root", "none"):
        raise errors.InvalidValue(f"gather={gather!r}", 'it is "all", "root" or "none"')
    return gather
