"""The catalog: what is known of sources without opening them."""

from __future__ import annotations

import builtins
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sieva import _native, errors
from sieva._augmentation_info import AugmentationInfo
from sieva._local import exists, is_directory
from sieva._printable import shown
from sieva._progress import progress_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

Value: TypeAlias = int | float | str | bool
"""What an attribute or a tag may be."""

_PAGE = 1000
_FOUND = 20_000


@dataclass(frozen=True)
class ObjectRef:
    """An object that was found: a group or an array of a source."""

    source: str
    """Where its source is: an absolute path or a URL."""
    path: str
    """Its path there; empty for the source itself."""
    kind: str
    """``"group"`` or ``"array"``."""

    @shown
    def __str__(self) -> str:
        return f"{self.source}:{self.path}" if self.path else self.source


@dataclass(frozen=True)
class SourceInfo:
    """A source that the catalog knows."""

    location: str
    """An absolute path or a URL."""
    format: str
    """Such as ``"netCDF-4"``; empty where it could not be told."""
    size: int
    """Bytes."""
    version: str
    """What changes when the source does."""
    registered: float
    """When it was registered or last changed, in seconds since 1970."""
    error: str | None
    """Why it could not be read; None: it could."""
    objects: int
    """Its groups and arrays, with the root."""
    collections: list[str]
    """The collections that it is in."""


@dataclass(frozen=True)
class ObjectInfo:
    """A group or an array with what is said of it."""

    path: str
    """Empty for the source itself."""
    kind: str
    """``"group"`` or ``"array"``."""
    dtype: str
    """The stored type as numpy writes it; empty for a group."""
    shape: tuple[int, ...]
    """Empty for a group."""
    stored_bytes: int | None
    """Bytes in the file, where known."""
    attributes: dict[str, Value]
    """What the file says."""
    tags: dict[str, Value]
    """What users say."""
    statistics: dict[str, Any] | None
    """``min``, ``max``, ``missing`` and ``count``, where they are known."""


@dataclass(frozen=True)
class CollectionInfo:
    """A named set of sources."""

    name: str
    """Its name."""
    description: str
    """What it is, for people."""
    prefixes: list[str]
    """Sources that are registered under one of them join it."""
    sources: int
    """How many it has."""


@dataclass(frozen=True)
class AddReport:
    """What `Catalog.add` did."""

    added: int = 0
    """Sources that were not known."""
    replaced: int = 0
    """Sources that had changed."""
    unchanged: int = 0
    """Sources that were as they are known."""
    objects: int = 0
    """Groups and arrays of those added or replaced."""
    others: int = 0
    """Files of formats that are not read here."""
    left_out: int = 0
    """Attributes and objects that the catalog does not keep: long lists, values of no plain type."""
    described: int = 0
    """Unchanged sources whose statistics were recorded."""
    damaged: list[tuple[str, str]] = field(default_factory=list)
    """Sources that are registered as damaged, and why; the first 1000."""
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    """What could not be looked at, and why; the first 1000. Nothing is registered of it."""

    @shown
    def __str__(self) -> str:
        parts = [f"{self.added:,} added ({self.objects:,} objects)"]
        numbers = {
            "replaced": self.replaced,
            "unchanged": self.unchanged,
            "given statistics": self.described,
            "of other formats": self.others,
            "damaged": len(self.damaged),
            "unreadable": len(self.unreadable),
            "attributes left out": self.left_out,
        }
        return ", ".join(parts + [f"{n:,} {what}" for what, n in numbers.items() if n])


class Catalog:
    """What is known of sources: their objects, attributes, tags and statistics.

    Parameters
    ----------
    url
        A path, ``sqlite:PATH`` or ``postgresql://user@host/database``. None: what SIEVA_CATALOG says, else
        ``sieva/catalog.sqlite`` in the user's data directory. It is made where there is none.
    read_only
        Whether nothing is to be written, and nothing made.

    Raises
    ------
    UnknownFormat
        There is a database of something else.
    FileNotFound
        It is to be read only, and there is none.

    Examples
    --------
    >>> with sieva.Catalog() as catalog:  # doctest: +SKIP
    ...     catalog.add("/data/boss")
    ...     catalog.find("RADEG = 153.17 AND DECDEG = 23.06")
    """

    def __init__(self, url: str | os.PathLike[str] | None = None, *, read_only: bool = False) -> None:
        self.url = _native.default_catalog() if url is None else os.fspath(url)
        self._open: _native.Catalog | None = _native.Catalog.open(self.url, read_only)

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; sources that were opened with it stay open."""
        self._open = None

    @property
    def _native(self) -> _native.Catalog:
        if self._open is None:
            raise errors.InvalidValue(
                f"the catalog {_native.redacted_database(self.url)!r} is closed", "open it again"
            )
        return self._open

    @shown
    def __repr__(self) -> str:
        state = " (closed)" if self._open is None else " (read only)" if self.read_only else ""
        return f"<sieva.Catalog {_native.redacted_database(self.url)!r}{state}>"

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        return self._native.read_only

    def add(
        self,
        *names: str | os.PathLike[str],
        collection: str | Iterable[str] = (),
        jobs: int | None = None,
        statistics: bool = False,
        store: str | os.PathLike[str] | None = None,
        isolated: bool = False,
        progress: bool | Callable[[int, int], None] = False,
    ) -> AddReport:
        """Register files, and directories with all that is under them.

        Known sources of the same size and time of modification are not opened again, so the same call goes on
        where an interrupted one stopped. Hidden files and stores of indexes are passed over, files of
        other formats are counted. A damaged file is registered with what is wrong with it.

        Parameters
        ----------
        names
            Files, directories, globs and URLs.
        collection
            One or more collections to put them into, made where they are not there.
        jobs
            Threads; by default one for each core.
        statistics
            Whether to build zone maps beside the files, and to record each array's least and greatest value.
        store
            A directory for these zone maps; see `sieva.open`.
        isolated
            Whether files are parsed by a process of its own, with limits; see `sieva.open`.
        progress
            True shows a bar on a terminal; a function is called with the files dealt with and found so far.

        Returns
        -------
        AddReport
            What was registered.

        Raises
        ------
        FileNotFound
            A name is nothing.
        PermissionDenied
            The catalog is read only.
        """
        from sieva._open import WORKER

        with progress_to(progress, "registering", is_bytes=False) as told:
            report = self._native.add(
                [_text(name) for name in names],
                collections=[collection] if isinstance(collection, str) else list(collection),
                jobs=jobs,
                statistics=statistics,
                store=None if store is None else os.fspath(store),
                isolated=WORKER if isolated else [],
                progress=told,
            )
        return AddReport(**report)

    def prune(self, directory: str | os.PathLike[str]) -> builtins.list[str]:
        """Forget the sources under a directory whose files are gone, with their tags; return them.

        Parameters
        ----------
        directory
            It has to be there: a disk that is not mounted has lost nothing.

        Raises
        ------
        FileNotFound
            There is no such directory.
        """
        gone = self._native.vanished(_text(directory))
        for location in gone:
            self._native.forget(location)
        return gone

    def list(self, prefix: str = "") -> Iterator[SourceInfo]:
        """Give the sources whose location begins with a prefix, in order.

        Parameters
        ----------
        prefix
            Such as ``"/data/boss/"``; all by default.
        """
        after: str | None = None
        while page := self._native.list(prefix, _PAGE, after):
            yield from (SourceInfo(**info) for info in page)
            after = page[-1]["location"]

    def show(self, source: str | os.PathLike[str]) -> tuple[SourceInfo, builtins.list[ObjectInfo]]:
        """Return a source with all of its objects, the root first.

        Parameters
        ----------
        source
            A path or URL.

        Raises
        ------
        FileNotFound
            It is not in the catalog.
        """
        found = self._native.show(location := self._location(source))
        if found is None:
            raise _unknown(location)
        info, objects = found
        return SourceInfo(**info), [ObjectInfo(**one) for one in objects]

    def tag(
        self,
        source: str | os.PathLike[str],
        path: str = "",
        tags: Mapping[str, Value] | None = None,
        **more: Value,
    ) -> int:
        """Set tags on a source, a group or an array; return how many this changed.

        Parameters
        ----------
        source
            A path or URL.
        path
            Of a group or array in it; empty: the source. A tag holds for all that is under it.
        tags
            Values by key.
        **more
            Values by key, too.

        Raises
        ------
        FileNotFound
            The source is not in the catalog.
        UnknownArray
            It has no such object.
        """
        given: builtins.list[tuple[str, Value | None]] = [*{**(tags or {}), **more}.items()]
        return self._native.set_tags(self._location(source), path.strip("/"), given)

    def untag(self, source: str | os.PathLike[str], path: str, *keys: str) -> int:
        """Remove tags; return how many there were.

        Parameters
        ----------
        source, path
            As in `tag`.
        keys
            The keys of the tags.

        Raises
        ------
        FileNotFound, UnknownArray
            As in `tag`.
        """
        return self._native.set_tags(self._location(source), path.strip("/"), [(key, None) for key in keys])

    def find(
        self,
        text: str = "",
        *,
        kind: str | None = "array",
        name: str | None = None,
        collection: str | None = None,
        limit: int | None = None,
    ) -> builtins.list[ObjectRef]:
        """Return the objects whose attributes and tags satisfy a condition.

        Parameters
        ----------
        text
            Such as ``"RADEG = 153.17 AND plate LIKE '40%'"``; empty: all. An object has the attributes of the
            groups above it, too.
        kind
            ``"array"``, ``"group"``, or None for both.
        name
            Only objects of this path, or this last part of a path.
        collection
            Only objects in sources of this collection.
        limit
            At most so many.

        Raises
        ------
        SyntaxError_
            The text is no condition.
        UnknownAttribute
            There is no such collection.
        """
        found = self._native.find(text, kind=kind, name=name, collection=collection, limit=limit)
        return [ObjectRef(location, path, kind_) for location, path, kind_, _ in found]

    def _find_pages(self, text: str, limit: int | None, **which: str | None) -> Iterator[ObjectRef]:
        """Give what `find` returns, page by page: a catalog may hold more than memory does."""
        after, left = None, limit
        while left is None or left > 0:
            page = self._native.find(
                text,
                **which,
                limit=_FOUND if left is None else min(left, _FOUND),
                after=after,
            )
            yield from (ObjectRef(location, path, kind) for location, path, kind, _ in page)
            if not page:
                return
            after = page[-1][3]
            left = None if left is None else left - len(page)

    def count(
        self,
        text: str = "",
        *,
        kind: str | None = "array",
        name: str | None = None,
        collection: str | None = None,
    ) -> int:
        """Return how many objects `find` would find.

        Parameters
        ----------
        text, kind, name, collection
            As in `find`.

        Raises
        ------
        SyntaxError_, UnknownAttribute
            As in `find`.
        """
        return self._native.count(text, kind=kind, name=name, collection=collection)

    def remove(self, source: str | os.PathLike[str]) -> int:
        """Forget a source, or all under a prefix that ends with ``/``, with their tags; return how many.

        Parameters
        ----------
        source
            A path, a URL, or a prefix. Files are not touched.
        """
        text = _text(source)
        if text.endswith("/"):
            is_folder = "://" not in text and is_directory(text)
            folder = self._location(text).rstrip("/") + "/" if is_folder else text
            return self._native.forget_prefix(folder)
        return int(self._native.forget(self._location(text)))

    def collections(self) -> builtins.list[CollectionInfo]:
        """Return all collections by name."""
        return [CollectionInfo(**one) for one in self._native.collections()]

    def collect(self, name: str, *sources: str | os.PathLike[str], description: str | None = None) -> int:
        """Put known sources into a collection, made where it is not there; return how many were not in it.

        Parameters
        ----------
        name
            The collection's name.
        sources
            Paths and URLs; a directory, or a prefix that ends with ``/``, stands for all under it, those that
            are registered later included.
        description
            What it is, for people.

        Raises
        ------
        FileNotFound
            A source is not in the catalog.
        """
        known = any(c.name == name for c in self.collections())
        if not known or description is not None:
            self._native.create_collection(name, description or "")
        added = 0
        for source in sources:
            text = _text(source)
            if text.endswith("/") or ("://" not in text and is_directory(text) and not self._knows(text)):
                prefix = text if "://" in text else self._location(text)
                added += self._native.collect_prefix(name, prefix.rstrip("/") + "/")
                continue
            if not self._knows(text):
                raise _unknown(text)
            added += self._native.collect(name, [self._location(text)])
        return added

    def remove_collection(self, name: str) -> bool:
        """Remove a collection, not its sources; return whether there was one.

        Parameters
        ----------
        name
            Its name.
        """
        return self._native.remove_collection(name)

    def could_contain(
        self,
        array: str,
        low: float | None = None,
        high: float | None = None,
        *,
        collection: str | None = None,
    ) -> builtins.list[str]:
        """Return the sources whose arrays of a name could hold a value within closed bounds; none is opened.

        Parameters
        ----------
        array
            The path of the array, or its last part.
        low, high
            The bounds; None is open.
        collection
            Only sources of this collection.

        Raises
        ------
        TypeMismatch
            A bound is no number.
        UnknownAttribute
            There is no such collection.
        """
        return self._native.could_contain(array, low, high, collection)

    def augmentations(
        self,
        prefix: str | os.PathLike[str] = "",
        *,
        verify: bool = False,
        store: str | os.PathLike[str] | None = None,
    ) -> builtins.list[AugmentationInfo]:
        """Return the indexes that the catalog was told of, by source, array and kind.

        It is told by builds, by `Source.drop_index` and `Source.index_status`, and by queries that find an
        index which was made for another state of the file. What others do to files it does not see.

        Parameters
        ----------
        prefix
            Only of sources whose location begins with it; the name of a file or directory that is there is
            made absolute.
        verify
            Whether the files are looked at, and the catalog is told what is there now. Nothing is rebuilt.
        store
            With `verify`: the directory for stores that builds were given.

        Raises
        ------
        PermissionDenied
            The catalog is to be told, and is open for reading only.

        Examples
        --------
        >>> [a for a in catalog.augmentations() if a.state == "stale"]  # doctest: +SKIP
        """
        text = _text(prefix)
        if verify and self.read_only:
            raise errors.PermissionDenied(
                "the catalog is open for reading only, and is to be told what is there", "open it for writing"
            )
        begins = self._location(text) if text and exists(text) else text
        where = None if store is None else os.fspath(store)
        return [AugmentationInfo(**one) for one in self._native.augmentations(begins, verify, where)]

    def _knows(self, source: str) -> bool:
        location = self._location(source)
        return any(info["location"] == location for info in self._native.list(location, 1))

    def _location(self, source: str | os.PathLike[str]) -> str:
        try:
            return _native.catalog_location(_text(source))
        except errors.FileNotFound:
            # Of a directory that is gone: as it was registered.
            return str(Path(_text(source)).absolute())


def native_of(catalog: object) -> _native.Catalog | None:
    """Return the engine's catalog of what `sieva.open` is given.

    Parameters
    ----------
    catalog
        A `Catalog`, a URL or path, True for the default one, None or False for none.
    """
    if catalog is None or catalog is False:
        return None
    if isinstance(catalog, Catalog):
        return catalog._native
    if catalog is True:
        return _native.Catalog.open(_native.default_catalog(), True)
    if isinstance(catalog, str | os.PathLike):
        return _native.Catalog.open(_text(catalog), True)
    raise TypeError(f"catalog: expected a Catalog, a URL or True, got {catalog!r}")


def _text(path: object) -> str:
    text = os.fspath(path)  # type: ignore[call-overload] # says itself what it takes
    if not isinstance(text, str):
        raise TypeError(f"a path is text, got {path!r}")
    return text


def _unknown(location: str) -> errors.FileNotFound:
    return errors.FileNotFound(f"{location!r} is not in the catalog", "register it: sieva catalog add SOURCE")
