"""Several queries at once: what they have in common is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._memory import memory_bytes
from sieva._options import some
from sieva._query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sieva._options import Asking
    from sieva._source import Source


class Ran(list[Query]):
    """Queries that were run together: a list of them, in the order in which they were given.

    Attributes
    ----------
    errors : list of SievaError or None
        Of each query what it failed with.
    stats : dict of int
        What was done: ``queries``, of which ``together`` were evaluated together in ``scans`` and ``alone``
        by themselves; ``tiles``; ``asked`` and ``asked_bytes``, what queries took of arrays during the scans,
        for which ``read`` boxes of ``read_bytes`` were read; ``bytes_read``, ``requests``, ``chunks_decoded``
        and ``library_reads`` of the sources.
    """

    def __init__(
        self,
        queries: Iterable[Query],
        failed: list[errors.SievaError | None],
        stats: dict[str, int],
    ) -> None:
        super().__init__(queries)
        self.errors = failed
        self.stats = stats

    def raise_first(self) -> None:
        """Raise the first error, if there is one, with the query named in a note."""
        for number, error in enumerate(self.errors):
            if error is not None:
                error.add_note(f"query {number + 1} of {len(self)}: {self[number].text}")
                raise error


def run_in(
    session: _native.Session, queries: Iterable[Query | str], options: Asking, threads: int | None = None
) -> Ran:
    """Evaluate queries, or texts of SELECTs with FROM, together; none that fails raises."""
    if isinstance(queries, str | Query):
        raise TypeError(f"expected a list of queries, got {queries!r} ({type(queries).__name__})")
    made = asked_in(session, queries, options)
    run: Any = some("query", options)
    failed, stats = session.run(
        [query._native for query in made], memory=memory_bytes(run.get("memory")), threads=threads
    )
    return Ran(made, failed, stats)


def asked_in(session: _native.Session, queries: Iterable[Query | str], options: Asking) -> list[Query]:
    """Return queries, those given as texts made: a file that several name is opened once."""
    sources: dict[str, Source] = {}
    return [
        asked_text(session, query, options, sources) if isinstance(query, str) else _local(query)
        for query in queries
    ]


def asked_text(session: _native.Session, text: str, options: Asking, sources: dict[str, Source]) -> Query:
    """Return the query of a text; `sources` are those that were opened already, by the path in FROM."""
    from sieva._open import open_in

    run: Any = some("query", options)
    opening: Any = {name: value for name, value in options.items() if name not in run}
    path = _native.from_clause(text)
    if path is None and _native.collection_clause(text) is not None:
        raise _refused("a collection")
    if path is None:
        raise errors.SyntaxError_("the query has no FROM", "write SELECT ... FROM 'file.nc' WHERE ...")
    if path not in sources:
        sources[path] = open_in(session, path, opening)
    return _local(sources[path].sql(text, **run))


def _local(query: Query) -> Query:
    if not isinstance(query, Query):
        raise TypeError(f"expected a query or the text of one, got {query!r} ({type(query).__name__})")
    if type(query) is not Query:
        kinds = {
            "CollectionQuery": "a collection",
            "RemoteQuery": "a file on a GridFTP server",
        }
        raise _refused(kinds.get(type(query).__name__, "an engine"))
    return query


def _refused(what: str) -> errors.SievaError:
    return errors.Unsupported(
        f"a query of {what} is not run together with others", "ask it by itself: it does its work elsewhere"
    )
