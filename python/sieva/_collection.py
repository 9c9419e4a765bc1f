"""Collections: many small arrays of a catalog's sources, asked by keys and by data in one query."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack

from sieva import _native, errors
from sieva._options import portable, some, takes
from sieva._printable import shown
from sieva._query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sieva._index import BuildReport
    from sieva._native import CollectionPartial, CollectionTask, Selection
    from sieva._native import CollectionQuery as NativeQuery
    from sieva._options import OpeningCollection, Running, RunningTask
    from sieva._query import Layout
    from sieva._source import Source


class Collection:
    """A named set of sources in a catalog, whose objects are asked as one; made by `sieva.collection`.

    Examples
    --------
    >>> stars = sieva.collection("h5boss", catalog="boss.sqlite")  # doctest: +SKIP
    >>> q = stars.sql(
    ...     "SELECT object, count(*) WHERE RADEG = 153.17 AND flux BETWEEN 0 AND 20 GROUP BY object"
    ... )  # doctest: +SKIP
    >>> q.to_pandas()  # doctest: +SKIP
    """

    def __init__(self, native: _native.Collection, catalog: str, plain: dict[str, Any] | None = None) -> None:
        self._native = native
        self.catalog = catalog
        # Options of opening it once more, in another process.
        self._plain = plain or {}

    @property
    def name(self) -> str:
        """Its name in the catalog."""
        return self._native.name

    @takes("collection_query")
    def sql(self, text: str, *, engine: object = None, **options: Unpack[Running]) -> CollectionQuery:
        """Return the query of a SELECT over the objects.

        The catalog answers the conditions on keys (attributes and tags) at once; files are opened when rows
        are asked for, and only those that hold objects which are left.

        Parameters
        ----------
        text
            Names are keys of the catalog, or arrays by their path within the object. ``object`` is the path
            of the object, ``source`` the location of its file. FROM may be left out.
        engine
            Who evaluates the condition: as of `Source.query`. All workers have to reach the catalog.
        access, fetch, memory, spill, threads, cross, functions
            As in `Source.query`. Nothing is spilled so far: rows have no order of their own, and groups stay
            within the limit of memory.

        Raises
        ------
        UnknownArray
            A name is neither a key nor an array.
        AmbiguousName
            A name is both: ``tag(NAME)`` is the key, ``"NAME"`` in double quotes the array.
        """
        run: Any = portable(options)
        native = self._native.sql(text, run)
        if engine is None:
            return CollectionQuery(native, self, text)
        from sieva.engines import engine_of
        from sieva.engines._collection import EngineCollectionQuery

        return EngineCollectionQuery(native, self, text, engine_of(engine), run)

    @takes("collection_query")
    def query(self, plan: _native.Plan, **options: Unpack[Running]) -> CollectionQuery:
        """Return the query that a plan of this collection stands for, as `CollectionQuery.plan` gave it.

        Parameters
        ----------
        plan
            Of this collection. What its names are in the objects, each object tells when it is asked.
        access, fetch, memory, spill, threads, cross, functions
            As in `Source.query`.

        Raises
        ------
        InvalidValue
            The plan is of another source.
        """
        return CollectionQuery(self._native.query_plan(plan, portable(options)), self, plan.sql())

    @takes("run_task")
    def run_task(
        self, task: _native.CollectionTask, **options: Unpack[RunningTask]
    ) -> _native.CollectionPartial:
        """Run a part of the work of a query of this collection, made anywhere by `CollectionQuery.tasks`.

        What names mean, which objects are looked at, and the values of their keys, the task says.

        Parameters
        ----------
        task
            The part. Its bytes are enough: ``CollectionTask.from_bytes``.
        access, fetch, memory, spill, threads
            As in `sql`; they change the time, not the answer.

        Returns
        -------
        CollectionPartial
            To be sent back, and given to `CollectionQuery.finish` with the others.

        Raises
        ------
        StaleSource
            A source is in another state than the one that the task was made of.
        InvalidValue
            The collection was opened in another way: `valid_range` differs.
        """
        return self._native.run_task(task, options)

    def build_index(self, *arrays: str, **options: Any) -> dict[str, BuildReport]:  # noqa: ANN401 - those of a source
        """Build indexes of arrays of all sources, one after the other; see `Source.build_index`.

        Parameters
        ----------
        *arrays
            Names, such as the last part of the paths of the arrays of all objects: ``"flux"``. None: all of
            numbers. A source that has none of them is left out.
        **options
            Those of `Source.build_index`.

        Returns
        -------
        dict of str to BuildReport
            By the location of the source. Damaged sources are left out.

        Raises
        ------
        UnknownArray
            No source has an array of one of the names.

        Examples
        --------
        >>> stars.build_index("flux")  # doctest: +SKIP
        """
        from sieva._catalog import Catalog
        from sieva._open import open as open_source

        sources = sources_of(self.name, self.catalog)
        reports: dict[str, BuildReport] = {}
        missing = dict.fromkeys(arrays)
        with Catalog(self.catalog) as catalog:
            told = None if catalog.read_only else catalog
            for location in sources:
                source = open_source(location, catalog=told, learn=False, **self._plain)
                held = [name for name in arrays if _has(source, name)]
                for name in held:
                    missing.pop(name, None)
                if held or not arrays:
                    reports[location] = source.build_index(*held, **options)
                source.close()
        if missing:
            names = ", ".join(map(repr, missing))
            raise errors.UnknownArray(
                f"no source of the collection {self.name!r} has an array {names}",
                "sieva catalog find --collection NAME lists its arrays",
            )
        return reports

    def close(self) -> None:
        """Do nothing: files are closed when a query is done with them."""

    @shown
    def __repr__(self) -> str:
        return f"<sieva.Collection {self.name!r} of {self.catalog}>"


class CollectionQuery(Query):
    """Rows of a collection's objects that satisfy a condition, or groups of them.

    Rows come by source, object and position; groups by their keys. Results are taken as those of any `Query`,
    but for what needs one space of rows: selections, positions, and the formats of arrays.
    """

    _native: NativeQuery  # type: ignore[assignment] # what is asked of it is the same
    source: Collection  # type: ignore[assignment] # a collection is what was asked

    def __init__(self, native: NativeQuery, collection: Collection, text: str) -> None:
        super().__init__(native, collection, text)  # type: ignore[arg-type]

    def _with_columns(self, more: object) -> None:
        """Add nothing: rows of many objects have no positions."""
        del more

    def tasks(  # type: ignore[override] # its parts are objects, not boxes of rows
        self,
        n: int = 1,
        *,
        kind: Literal["count", "selection", "groups"] | None = None,
        objects: Iterable[tuple[int, int]] | None = None,
    ) -> list[CollectionTask]:
        """Return the work in ``n`` parts or fewer, for other processes to run; no values are read for it.

        Parts have objects that follow one another, and about as many bytes to read each. Sources that are no
        larger than a part are not cut. All sources are opened, to tell their states.

        Parameters
        ----------
        n
            The most parts.
        kind
            What is wanted: the number of rows, their positions, or groups; None: groups of a query that has
            them, else positions, of which all else is fetched in the end.
        objects
            The parts, in place of `n`: the number of the first object of each, from 0, and how many it has.
            Together they must have each object once.

        Returns
        -------
        list of CollectionTask
            Each to be run by `Collection.run_task`, anywhere.

        Raises
        ------
        Unsupported
            A histogram without a range, a count of groups.

        Examples
        --------
        >>> parts = [stars.run_task(task) for task in q.tasks(8)]  # doctest: +SKIP
        >>> q.finish(parts).to_pandas()  # doctest: +SKIP
        """
        ranges = None if objects is None else [(first, count) for first, count in objects]
        return self._native.tasks(n, kind, ranges)

    def finish(
        self,
        parts: CollectionPartial | Iterable[CollectionPartial],  # type: ignore[override] # of tasks of a collection
    ) -> CollectionQuery:
        """Return this query, which knows its answer by what all its tasks found.

        Parameters
        ----------
        parts
            Partial results in any order, merged or not.

        Returns
        -------
        CollectionQuery
            Its answers are those of this one, to the bit. What tasks looked at is not evaluated again; the
            values of rows are read here.

        Raises
        ------
        InvalidValue
            Parts are missing, there twice, or of another query.
        StaleSource
            The catalog tells of other objects than when the tasks were made, or a source is in another state.
        """
        from sieva import _native

        given = [parts] if isinstance(parts, _native.CollectionPartial) else list(parts)
        return CollectionQuery(self._native.finish(given), self.source, self.text)

    @property
    def rows(self) -> dict[str, int]:
        """No dimensions: each object has rows of its own."""
        return {}

    def estimate(self) -> tuple[int, int]:
        """Refuse: what files hold is not looked at before rows are asked for."""
        self._refuse("estimate()", "price().rows has bounds of the rows; the sources are opened for them")

    def selection(self) -> Selection:
        """Refuse: positions of different objects lie in no common space."""
        self._refuse("selection()", "select object, source and the arrays, and take the rows")

    def histogram(self, name: object, bins: int = 64) -> NoReturn:
        """Refuse: the range of the bins has to be given."""
        self._refuse("histogram()", f"SELECT histogram({name}, {bins}, low, high)")

    def read(self, name: object = None) -> NoReturn:
        """Refuse: the columns come together."""
        del name
        self._refuse("read()", "name the arrays in SELECT, and take to_arrow() or to_pandas()")

    def _again(self) -> NoReturn:
        self._refuse("await", "ask in a thread: asyncio.to_thread(query.count)")

    def explain_json(self, analyze: bool = False) -> str:
        """Return the plan as JSON text."""
        import json

        return json.dumps({"plan": self.explain(analyze).splitlines(), "stats": self.stats()})

    def to_xarray(self, layout: Layout | None = None) -> NoReturn:
        """Refuse: rows of many objects are no grid."""
        del layout
        self._refuse("to_xarray()", "take to_arrow(), to_pandas() or to_polars()")

    def _write(
        self,
        path: str | os.PathLike[str],
        kind: str,
        layout: Layout | None = None,
        deflate: int | None = None,
    ) -> None:
        if layout == "columns":
            self._refuse("the layout columns", "write csv, json, arrow or parquet without it")
        from sieva._output import output_path, write_file

        write_file(self, output_path(path), kind, layout, deflate)

    def check_output(self, path: Path, kind: str) -> None:
        """Raise where rows cannot be written to such a file, or it is one of those that are asked."""
        from sieva._output import ARRAY_FORMATS
        from sieva._output.asked import Asked

        if kind in ARRAY_FORMATS:
            self._refuse(f"the format {kind}", "write csv, json, arrow or parquet")
        asked = [*self._native.sources(), self.source.catalog.removeprefix("sqlite:")]
        Asked([], asked).check(path)

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise errors.Unsupported(f"{what} of a query of a collection", hint)

    @shown
    def __repr__(self) -> str:
        kind = "groups" if self._native.grouped else "rows"
        return f"<sieva.CollectionQuery {kind} -> {', '.join(self.columns)}; {self.text}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


@takes("collection")
def collection(name: str, **options: Unpack[OpeningCollection]) -> Collection:
    """Return a collection of a catalog.

    Parameters
    ----------
    name
        As it was given to ``sieva catalog add --collection``.
    catalog
        A path, ``sqlite:PATH`` or ``postgresql://USER@HOST/DATABASE``. None: what SIEVA_CATALOG says, else
        ``sieva/catalog.sqlite`` in the user's data directory.
    external, valid_range, store, isolated, allow
        As in `sieva.open`, for every source.

    Raises
    ------
    FileNotFound
        There is no such catalog.
    UnknownAttribute
        It has no such collection.

    Examples
    --------
    >>> sieva.collection("h5boss", catalog="boss.sqlite")  # doctest: +SKIP
    <sieva.Collection 'h5boss' of boss.sqlite>
    """
    from sieva._open import WORKER
    from sieva._opened import Opened

    given: dict[str, Any] = {**options}
    url = catalog_place(given.pop("catalog", None))
    plain = Opened.of([], given).options
    given["isolated"] = WORKER if given.get("isolated") else []
    return Collection(_native.Collection.open(url, name, given), url, plain)


def sources_of(name: str, url: str) -> list[str]:
    """Return the locations of the sources of a collection that could be read when they were registered."""
    from sieva._catalog import Catalog

    with Catalog(url, read_only=True) as catalog:
        names = [known.name for known in catalog.collections()]
        if name not in names:
            raise errors.UnknownAttribute(
                f"the catalog has no collection {name!r}",
                f"there are: {', '.join(names)}" if names else "there are none",
            )
        return [one.location for one in catalog.list() if name in one.collections and one.error is None]


def _has(source: Source, name: str) -> bool:
    try:
        source._native.meant(name)
    except errors.UnknownArray:
        return False
    return True


def catalog_place(catalog: str | os.PathLike[str] | None) -> str:
    """Return where the catalog is: as given, by SIEVA_CATALOG, or in the user's data directory."""
    if catalog is not None:
        return os.fspath(catalog)
    if place := os.environ.get("SIEVA_CATALOG"):
        return place
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return str(Path(data) / "sieva" / "catalog.sqlite")


def sql_of_collection(
    text: str,
    name: str,
    run: Any,  # noqa: ANN401 - checked there
    options: Any,  # noqa: ANN401
    engine: object = None,
) -> CollectionQuery:
    """Return the query of a SELECT ... FROM collection('name'); what no collection takes may not be set."""
    for row in _native.options():
        why = row["not_of"].get("collection")
        # Scans of small arrays leave nothing, whatever is said.
        if why is not None and row["name"] != "learn" and options.get(row["name"]):
            raise errors.Unsupported(f"{row['name']}= with FROM collection(...)", why)
    return collection(name, **some("collection", options)).sql(text, engine=engine, **run)
