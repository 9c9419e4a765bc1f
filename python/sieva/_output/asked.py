"""The files that a question reads, which no output may take the place of."""

from __future__ import annotations

import glob
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sieva import errors
from sieva._local import exists, is_directory
from sieva._query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sieva._source import Source

# Reference sets are not longer.
_MOST = 1 << 30
_TEMPLATE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_Place = tuple[int, int]


class Asked:
    """Files that are asked, known by device and inode: a name may lead to them in many ways.

    Parameters
    ----------
    questions
        Queries, with the sources of their subqueries; sources.
    names
        Other files that are read.
    """

    def __init__(self, questions: Iterable[Query | Source], names: Iterable[str] = ()) -> None:
        self._names = list(names)
        for question in questions:
            self._names += _names_of(question)
        self._places: dict[_Place, Path] | None = None
        self._all_places: dict[_Place, Path] | None = None

    def check(self, path: Path) -> None:
        """Raise where writing to a path would change what is asked.

        Raises
        ------
        InvalidValue
            It is one of the files, or lies in a directory that is asked, or such lies in it.
        """
        target = Path(os.path.realpath(path))
        if self._places is None:
            self._places = _places(self._names)
        known = self._places
        if exists(target):
            if self._all_places is None:
                # What reference sets lead to is found by reading them.
                self._all_places = _places(within for name in self._names for within in _read_by(name))
            known = self._all_places
        above = {place for one in (target, *target.parents) if (place := _place(one)) is not None}
        own = _place(target) if is_directory(target) else None
        for place, file in known.items():
            if place in above or (own is not None and own in map(_place, file.parents)):
                raise errors.InvalidValue(
                    f"{str(path)!r} is a file that is asked: it is never changed", "write to another file"
                )


def check_output(path: Path, *questions: Query | Source) -> None:
    """Raise where writing to a path would change what these questions read; see `Asked`."""
    Asked(questions).check(path)


def _places(names: Iterable[str]) -> dict[_Place, Path]:
    found = {}
    for name in dict.fromkeys(names):
        place = _place(Path(name))
        if place is not None:
            found[place] = Path(os.path.realpath(name))
    return found


def _place(path: Path) -> _Place | None:
    try:
        known = path.stat()
    except (OSError, ValueError):
        return None
    return known.st_dev, known.st_ino


def _names_of(question: Query | Source) -> Iterator[str]:
    """Yield the paths of what a question reads, as they are named: those that are no URLs."""
    source = question.source if isinstance(question, Query) else question
    names = list(source.files)
    opened = source._opened
    if opened is not None:
        # As seen from wherever it was opened.
        names += opened.names
    if isinstance(question, Query):
        try:
            plan = json.loads(question.plan().to_json())
        except errors.SievaError:
            plan = {}
        names += _sources_in(plan)
    for name in names:
        path = _local(name)
        if path is not None:
            yield path
            yield from glob.glob(path, recursive=True)  # noqa: PTH207 - as the path was written


def _sources_in(plan: Any) -> Iterator[str]:  # noqa: ANN401 - any part of JSON
    """Yield the sources that a plan and its subqueries name."""
    if isinstance(plan, list):
        for part in plan:
            yield from _sources_in(part)
    elif isinstance(plan, dict):
        source = plan.get("source")
        if isinstance(source, dict) and isinstance(source.get("path"), str):
            yield source["path"]
        for part in plan.values():
            yield from _sources_in(part)


def _local(name: str) -> str | None:
    """Return the path of a name; None of a URL of another place."""
    if name.startswith("file://"):
        return unquote(name.removeprefix("file://"))
    return None if "://" in name else name


def _read_by(name: str) -> Iterator[str]:
    """Yield a file and, of a reference set, the files that it leads to."""
    yield name
    path = Path(name)
    try:
        found = _led_to_by_tables(path) if path.is_dir() else _led_to_by_json(path)
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return
    for one in found:
        local = _local(one)
        if local is not None:
            yield str(path.parent / local)


def _led_to_by_json(path: Path) -> set[str]:
    if not path.is_file() or path.stat().st_size > _MOST:
        return set()
    with path.open("rb") as file:
        if not file.read(64).lstrip().startswith(b"{"):
            return set()
        file.seek(0)
        known = json.load(file)
    templates = known.get("templates", {})
    references = known.get("refs", known)
    places = {value[0] for value in references.values() if isinstance(value, list) and value}
    return {_TEMPLATE.sub(lambda found: str(templates.get(found[1], "")), place) for place in places}


def _led_to_by_tables(folder: Path) -> set[str]:
    from sieva._references import is_tables

    if not is_tables(str(folder)):
        return set()
    import pyarrow.parquet as pq

    found: set[str] = set()
    for file in folder.rglob("refs.*.parq"):
        column = pq.read_table(file, columns=["path"])["path"]
        found.update(str(value) for value in column.unique().to_pylist() if value)
    return found
