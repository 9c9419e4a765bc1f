"""Advice from use: which indexes would have saved what, and what they cost."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sieva import _native
from sieva._memory import memory_bytes, size_text
from sieva._printable import shown

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class AdviceItem:
    """An index that there is or could be.

    Attributes
    ----------
    source, array, kind
        What it is of, and ``"zonemap"``, ``"bitmap"`` or ``"sorted"``.
    columns
        Of a sorted replica: the arrays that it carries, the key first.
    verdict
        ``"build"``, ``"keep"``, ``"evict"``, or ``"skip"``: it is not there, and that is as well.
    saves_seconds
        What it saves over the queries that were looked at, besides what comes before it in the list.
    bytes, bytes_now
        Its size, estimated where it is not there; and the size of what is there.
    build_seconds
        What building it takes, or took.
    uses
        Queries with a condition on the array.
    stale
        Whether what is there was made for another state of the source.
    why
        The reason for the verdict.
    """

    source: str
    array: str
    kind: str
    columns: list[str]
    verdict: str
    saves_seconds: float
    bytes: int
    bytes_now: int
    build_seconds: float
    uses: int
    stale: bool
    why: str


@dataclass(frozen=True)
class Done:
    """What was done about an item.

    Attributes
    ----------
    source, array, kind
        As of the item.
    what
        ``"built"``, ``"removed"``, ``"does not fit"`` (it turned out larger than estimated, and was removed
        again) or ``"failed"``.
    bytes, seconds
        Its size, and what building it took.
    error
        What went wrong, or None.
    """

    source: str
    array: str
    kind: str
    what: str
    bytes: int
    seconds: float
    error: str | None


class Advice:
    """What should be built, kept and removed, made by `advise`. True where there is something to do.

    Attributes
    ----------
    items
        A list of `AdviceItem`, first what is chosen, in the order of choice.
    budget
        Bytes that indexes may take, or None.
    bytes_now, bytes_then
        Bytes of what is there, and of what would be.
    saves_seconds
        What the choice saves over the queries that were looked at.
    bound_seconds
        No choice within the budget saves more.
    uses
        Notes of queries that were looked at.
    skipped
        Sources and arrays that were left out, with the reason.
    """

    def __init__(self, native: _native.Advised) -> None:
        self._native = native
        told = json.loads(native.to_json())
        self.items = [AdviceItem(**item) for item in told["items"]]
        self.budget: int | None = told["budget"]
        self.bytes_now: int = told["bytes_now"]
        self.bytes_then: int = told["bytes_then"]
        self.saves_seconds: float = told["saves_seconds"]
        self.bound_seconds: float = told["bound_seconds"]
        self.uses: int = told["uses"]
        self.skipped = [(one["what"], one["why"]) for one in told["skipped"]]

    def __bool__(self) -> bool:
        return not self._native.empty

    def to_json(self) -> str:
        """Return it as JSON text, as ``sieva advise --json`` prints it."""
        return self._native.to_json()

    def apply(
        self,
        *,
        memory: int | str | None = None,
        told: Callable[[str, str, str, str], None] | None = None,
    ) -> list[Done]:
        """Build and remove what is advised, and record it in the catalog.

        The budget holds for what is really written. What is stopped goes on where it was by new advice.

        Parameters
        ----------
        memory
            Limit of a sort's memory, such as ``"1GiB"``.
        told
            Called before each step with source, array, kind and verdict.

        Returns
        -------
        list of Done
            What was done. What failed is among them; the rest went on.

        Raises
        ------
        PermissionDenied
            The catalog may not be written.
        """
        done = self._native.apply(memory=memory_bytes(memory), told=told)
        return [Done(**json.loads(one)) for one in done]

    @shown
    def __repr__(self) -> str:
        return "\n".join([*self._table(), *self._sums()])

    def _table(self) -> list[str]:
        rows: list[tuple[str, ...]] = [("verdict", "index of", "kind", "saves", "size", "build", "why")]
        rows += [_row(item) for item in self.items]
        if len(rows) == 1:
            return []
        wide = [max(len(row[i]) for row in rows) for i in range(6)]
        right = (3, 4, 5)
        return [
            "  ".join(
                [
                    c.rjust(w) if i in right else c.ljust(w)
                    for i, (c, w) in enumerate(zip(row, wide, strict=False))
                ]
                + [row[6]]
            )
            for row in rows
        ]

    def _sums(self) -> list[str]:
        limit = "no limit" if self.budget is None else f"{size_text(self.budget)} allowed"
        lines = [] if self else ["nothing to build or remove"]
        lines.append(
            f"{self.uses:,} notes of queries; saves {_seconds(self.saves_seconds)} of at most "
            f"{_seconds(self.bound_seconds)}; {size_text(self.bytes_then)} in place of "
            f"{size_text(self.bytes_now)} ({limit})"
        )
        return lines + [f"left out: {what}: {why}" for what, why in self.skipped]


def _row(item: AdviceItem) -> tuple[str, ...]:
    return (
        item.verdict,
        f"{item.source}:{item.array}",
        item.kind,
        _seconds(item.saves_seconds),
        size_text(item.bytes),
        _seconds(item.build_seconds),
        item.why,
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


def advise(
    source: str | os.PathLike[str] = "",
    *,
    budget: int | str | None = None,
    catalog: str | None = None,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Advice:
    """Return which indexes would have saved what of the queries that were asked.

    Queries are noted in a catalog: that of ``SIEVA_CATALOG``, or the user's own if there is one.

    Parameters
    ----------
    source
        A source, a directory, or the beginning of locations; by default all that were asked.
    budget
        Bytes that the indexes of these sources may take together, such as ``"10GiB"``.
    catalog
        The catalog, a path or URL; by default that in which queries are noted.
    store
        Directory of indexes, if one was given to the queries.
    jobs
        Workers that a build would have; by default one for each core.

    Returns
    -------
    Advice
        What to build, keep and remove; `Advice.apply` does it.

    Raises
    ------
    FileNotFound
        There is no catalog.

    >>> sieva.advise("pop.nc", budget="2GiB").apply()  # doctest: +SKIP
    """
    found = _native.advise(
        os.fspath(source),
        catalog=catalog,
        budget=memory_bytes(budget),
        store=None if store is None else os.fspath(store),
        jobs=jobs,
    )
    return Advice(found)
