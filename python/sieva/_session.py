"""A session: what queries share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from sieva import _native, errors
from sieva._memory import memory_bytes
from sieva._options import takes
from sieva._printable import shown

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from sieva._catalog import Catalog
    from sieva._options import Asking, Opening, Running
    from sieva._query import Query
    from sieva._run import Ran
    from sieva._source import Source


class Session:
    """Sources and queries that share a limit of memory, and what was found before.

    What a query decoded, found and fetched is kept for the next ones, as far as the session's caches allow:
    the same question asked again, by the same or another `Query`, reads nothing. A file that has changed is
    read anew; one that changed within the last two seconds is not kept.
    `sieva.open` and `sieva.sql` use a session of the process, which keeps nothing from query to query.

    Parameters
    ----------
    memory
        What queries and caches may take together: bytes, or text such as ``"4GiB"``. A query has a share of
        it while it runs; one that finds no room waits. None: half of the system's memory, at least 1 GiB.
    cache
        The part of it for caches. None: a quarter, at most 1 GiB; 0 keeps nothing.
    threads
        Threads of a query that does not say how many. None: one for each core.
    queries
        Queries that may run at once. None: four for each thread.
    catalog, allow
        As in `sieva.open`, for all sources of the session.

    Examples
    --------
    >>> with sieva.Session(memory="4GiB") as session:  # doctest: +SKIP
    ...     src = session.open("pop.nc")
    ...     src.query("TEMP > 25").count()  # reads
    ...     src.query("TEMP > 25").read("TEMP")  # reads what is not known
    ...     src.query("TEMP > 25").read("TEMP")  # reads nothing
    """

    def __init__(
        self,
        *,
        memory: int | str | None = None,
        cache: int | str | None = None,
        threads: int | None = None,
        queries: int | None = None,
        catalog: Catalog | str | os.PathLike[str] | bool | None = None,
        allow: Sequence[str | os.PathLike[str]] | None = None,
    ) -> None:
        self._native = _native.Session(
            memory=memory_bytes(memory), cache=_cache_bytes(cache), threads=threads, queries=queries
        )
        self._catalog = catalog
        self._allow = allow

    @takes("open")
    def open(
        self, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Unpack[Opening]
    ) -> Source:
        """Open a file, or several as one source, as `sieva.open` does; its queries belong to the session."""
        from sieva._open import open_in

        return open_in(self._native, path, self._given(options))

    @takes("query", "open")
    def sql(self, text: str, **options: Unpack[Asking]) -> Query:
        """Return the query of a SELECT whose FROM names the file, as `sieva.sql` does."""
        from sieva._open import sql_in

        return sql_in(self._native, text, self._given(options))

    @takes("query")
    def query(self, plan: _native.Plan, **options: Unpack[Running]) -> Query:
        """Return the query of a plan that names its source, as `Query.plan` makes it.

        Raises
        ------
        InvalidValue
            The plan names no file.
        """
        path = plan.source
        if path is None:
            raise errors.InvalidValue("the plan names no file", "open the source, and ask it for the plan")
        return self.open(path).query(plan, **options)

    @takes("query", "open")
    def run(
        self, queries: Iterable[Query | str], *, return_errors: bool = False, **options: Unpack[Asking]
    ) -> Ran:
        """Evaluate several queries at once: what they have in common is read and decoded once.

        Each is pruned by what is known of the values first. Then queries of one source that read an array in
        common are evaluated tile by tile in the order in which the data lie, all on a tile before the next.
        The answers are those of asking one by one, to the bit. Others are evaluated one after another.

        Parameters
        ----------
        queries
            Queries, or texts of SELECTs with FROM; a file that several texts name is opened once.
        return_errors
            Whether errors of single queries are told in the ``errors`` of the result, not raised. What fails
            one query does not stop the others.
        memory
            What those that are evaluated together may take: by default the share of one query.
        threads
            Threads of all; by default as many as the query of them that takes most.
        access, fetch, spill, cross, functions
            As in `Source.query`, for texts.
        dims, external, valid_range, store, learn, join, isolated, storage_options, catalog, allow, manifest
            As in `open`, for texts.

        Returns
        -------
        Ran
            A list of the queries. Their conditions and groups are known: `Query.count`, `Query.selection`,
            `Query.read`, `Query.to_arrow` and all else evaluate nothing again; rows are fetched then. Its
            ``stats`` tell what was read.

        Raises
        ------
        SievaError
            The first error of a query, once all were run; what a text is wrong with before any is.
        Unsupported
            A query of a collection, of a GridFTP server or of an engine.

        Examples
        --------
        >>> session = sieva.Session()  # doctest: +SKIP
        >>> src = session.open("pop.nc")  # doctest: +SKIP
        >>> warm, means = session.run(  # doctest: +SKIP
        ...     [src.query("TEMP > 25"), src.sql("SELECT z_t, avg(TEMP) GROUP BY z_t")]
        ... )
        >>> warm.count()  # doctest: +SKIP
        81230

        References
        ----------
        J. Liu, B. Crysler, Y. Lu, Y. Chen, *Locality-driven High-level I/O Aggregation for Processing
        Scientific Datasets*, section V.C.
        """
        from sieva._run import run_in

        ran = run_in(self._native, queries, self._given(options), options.get("threads"))
        if not return_errors:
            ran.raise_first()
        return ran

    def _given(self, options: Any) -> Any:  # noqa: ANN401 - some of the options
        own = {"catalog": self._catalog, "allow": self._allow}
        return {name: value for name, value in own.items() if value is not None} | options

    def stats(self) -> dict[str, int]:
        """Return what the session did and holds: queries, evaluations, shares of memory, caches."""
        return self._native.stats()

    def cancel(self) -> None:
        """Stop the queries that run now, in whatever thread: they raise `Cancelled`, and stay stopped."""
        self._native.cancel()

    def forget(self) -> None:
        """Drop what is kept from query to query."""
        self._native.forget()

    def close(self) -> None:
        """Stop its queries, drop what is kept, and let no more queries of it run."""
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @shown
    def __repr__(self) -> str:
        stats = self._native.stats()
        state = "closed" if self.closed else f"{stats['running']} of {stats['queries']} queries run"
        return f"<sieva.Session {stats['memory']} bytes: {state}>"


def _cache_bytes(cache: int | str | None) -> int | None:
    return None if cache is None else _native.size_bytes(cache, zero=True)
