"""A query of a collection whose objects an engine looks at; asked as any other, with the same answers."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._collection import Collection, CollectionQuery
from sieva.engines._driver import PARTS, tell_price
from sieva.engines._work import Work

if TYPE_CHECKING:
    from sieva.engines import Engine


class EngineCollectionQuery(CollectionQuery):
    """A query of a collection whose condition the workers of an engine evaluate, object by object.

    The values of rows are read here, at the positions that were found.
    """

    def __init__(
        self,
        native: _native.CollectionQuery,
        collection: Collection,
        text: str,
        engine: Engine,
        running: dict[str, Any],
    ) -> None:
        super().__init__(native, collection, text)
        self.engine = engine
        self._running = running
        self._answering = threading.Lock()
        self._answer: _native.CollectionQuery | None = None

    def _asked(self) -> Any:  # noqa: ANN401 - asked as a native query of a source
        with self._answering:
            if self._answer is None:
                self._answer = self._finished(None)
                self._ran = self._answer  # type: ignore[assignment]
            return self._answer

    def _finished(self, kind: str | None) -> _native.CollectionQuery:
        engine, catalog = self.engine, self.source
        if getattr(engine, "is_here", False):
            return self._native
        tell_price(engine, self._native, self._running)
        self._take_listing()
        n = engine.workers() * int(getattr(engine, "parts_of_each", PARTS))
        # All of those who ask the same, or none: one that fails alone would be waited for.
        agreed = getattr(engine, "agreed", lambda work: work())
        try:
            tasks = agreed(lambda: self._native.tasks(n, kind))
        except errors.Unsupported:
            return self._native
        if not tasks:
            return self._native  # the catalog left no object
        running = {name: value for name, value in self._running.items() if name != "cross"}
        where = {"catalog": _anywhere(catalog.catalog), "name": catalog.name, "options": catalog._plain}
        how = json.dumps({"collection": where, "run": running}, sort_keys=True)
        work = [Work("collection", bytes(task), None, task.objects[1], how) for task in tasks]
        return self._native.finish(
            [_native.CollectionPartial.from_bytes(found) for _, found in engine.run(work)]
        )

    def _take_listing(self) -> None:
        """Let one of those who ask the same open all sources for their states, and tell the others."""
        engine, native = self.engine, self._native
        if (from_root := getattr(engine, "from_root", None)) is None:
            return
        listing = from_root(native.listing)

        def take() -> None:
            # Who has it takes it once more.
            if listing is not None:
                native.take_listing(listing)

        engine.agreed(take)  # type: ignore[attr-defined] # who has the one has the other

    def count(self) -> int:
        """Return the number of rows that come back."""
        if self._answer is None and not self._native.grouped:
            return self._finished("count").count()
        found: int = self._asked().count()
        return found

    def settled(self) -> CollectionQuery:
        """Return the query that knows its answer, to be asked here."""
        return CollectionQuery(self._asked(), self.source, self.text)


def _anywhere(catalog: str) -> str:
    """Return the URL or path of a catalog for processes of another directory."""
    if "://" in catalog:
        return catalog
    return os.path.abspath(catalog.removeprefix("sqlite:"))  # noqa: PTH100 - as it was named, links and all
