"""What is published in a group: whole files and results, also for those who have no sieva."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._output import format_of
from sieva._progress import progress_to
from sieva._query import Query
from sieva._share_names import this_user

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds for which a link is good, where nobody says.
_EXPIRES = 3600.0
# Three centuries.
_MOST_SECONDS = 1e10


@dataclass(frozen=True)
class Published:
    """A file or a result that was published.

    Attributes
    ----------
    user, name
        Who published it, and as what.
    location
        Its path or address, by which those read it who may read the place.
    size, checksum
        Its bytes; of these, XXH3 of 128 bits in hexadecimal digits.
    made, until
        When it was published, and when it is over; None: never.
    sql, rows
        Of a result: the question, and its rows. None of a file.
    zone_maps
        Whether zone maps lie beside it: who queries it by its address reads what it needs.
    complete
        False while it is put, and where whoever put it was stopped.
    """

    user: str
    name: str
    location: str
    size: int
    checksum: str
    made: datetime
    until: datetime | None
    sql: str | None
    rows: int | None
    zone_maps: bool
    complete: bool

    @classmethod
    def _of(cls, known: dict[str, Any]) -> Published:
        until = known["until"]
        return cls(
            known["user"],
            known["name"],
            known["location"],
            known["size"],
            known["checksum"],
            _time(known["made"]),
            None if until is None else _time(until),
            known.get("sql"),
            known.get("rows"),
            bool(known.get("zone_maps")),
            known["complete"],
        )


@dataclass(frozen=True)
class Link:
    """An address that takes no key.

    Attributes
    ----------
    url
        The address, which is as secret as what it leads to.
    expires
        Whether it leads nowhere when its time is over; that of a directory is good as long as the file.
    """

    url: str
    expires: bool


class Publishing:
    """The part of `sieva.share.Group` that publishes."""

    _native: _native.Group

    def publish(
        self,
        what: str | os.PathLike[str] | Query,
        name: str | None = None,
        *,
        format: str | None = None,  # noqa: A002 - as everywhere
        keep: float | None = None,
        zone_maps: bool = True,
        user: str | None = None,
        spool: str | os.PathLike[str] | None = None,
    ) -> Published:
        """Put a file, or the result of a query, into the group under a name, in place of what is there.

        It is put as it is: those who have no sieva read it by other tools, or by the address of `link`.
        Beside one of 4 MiB and more that is HDF5, netCDF or FITS zone maps are put, so that those who query
        it by its address (`Published.location`) read what they need; not in an encrypted group.

        Parameters
        ----------
        what
            A path, or a query, whose result is put.
        name
            Its name; by default that of the file.
        format
            Of a result: netcdf, hdf5, arrow, parquet, csv or json; by default as the name ends.
        keep
            Seconds after which it is deleted; None: it stays until `unpublish`.
        zone_maps
            Whether it carries zone maps, for which all of it is read once more.
        user
            Who publishes; by default the user of this process.
        spool
            Where a result is kept until it is put; by default where temporary files are.

        Returns
        -------
        Published

        Raises
        ------
        ValueError
            What is no name, or no format.
        OSError
            The file cannot be read, or the store does not answer: what was there before stays.
        """
        seconds = _seconds("keep", keep)
        who = user or this_user()
        if isinstance(what, Query):
            if name is None:
                raise errors.InvalidValue("a result without a name", "say one: name='warm.nc'")
            kind = format or format_of(Path(name))
            if kind is None:
                raise errors.InvalidValue(f"{name!r} ends as no format does", "say one: format='netcdf'")
            kept = os.fspath(spool or tempfile.gettempdir())
            done = _native.publish_query(
                self._native, who, name, what._native, kind, kept, seconds, zone_maps
            )
        else:
            if format is not None:
                raise errors.InvalidValue(f"format={format!r} of a file, which is put as it is")
            path = os.fspath(what)
            done = _native.publish_file(self._native, who, name or Path(path).name, path, seconds, zone_maps)
        return Published._of(json.loads(done))

    def unpublish(self, name: str, *, user: str | None = None) -> None:
        """Delete what a user published; by default the user of this process.

        Raises
        ------
        FileNotFoundError
            Nothing is published by that name.
        """
        _native.unpublish_named(self._native, user or this_user(), name)

    def published(self) -> list[Published]:
        """Return what is published, in order of users and names."""
        return [Published._of(known) for known in json.loads(_native.list_published(self._native))]

    def fetch(
        self,
        name: str,
        path: str | os.PathLike[str] | None = None,
        *,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Path:
        """Put what a name leads to into a file, when all of it is here and right.

        One that was stopped is gone on with: what came until then lies beside the file.

        Parameters
        ----------
        name
            That of something published, ``NAME`` or ``USER/NAME``, or of a result, ``USER/ASK/FILE`` with the
            producer's file.
        path
            The file; by default as the name ends, in this directory.
        progress
            True shows a bar on stderr, if that is a terminal; a function is called with the bytes that are
            here, and all of them.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        FileNotFoundError
            There is no such thing.
        ValueError
            What is no name, one that two users published, or another process fetches it.
        sieva.errors.CorruptFile
            The bytes are not those that were put.
        """
        target = Path(path) if path is not None else Path(_last(name))
        with progress_to(progress, f"fetching {target.name}") as told:
            _native.fetch_named(self._native, name, target, told)
        return target

    def link(self, name: str, *, expires: float = _EXPIRES) -> Link:
        """Return an address by which who has no key can read what a name leads to.

        Parameters
        ----------
        name
            As of `fetch`.
        expires
            Seconds for which it is good: on S3 604800 at most. That of a directory is good for ever.

        Returns
        -------
        Link
        """
        if not 0 < expires < _MOST_SECONDS:
            raise errors.InvalidValue(f"expires={expires}: expected seconds above 0")
        return Link(*_native.link_named(self._native, name, expires))


def _last(name: str) -> str:
    """Return the last part of a name, where a file here can be called so."""
    last = name.rsplit("/", maxsplit=1)[-1]
    if last in {"", ".", ".."} or last.startswith(".") or not last.isprintable():
        raise errors.InvalidValue(f"no file is made of {name!r} by itself", "name the file: path=...")
    return last


def _seconds(name: str, given: float | None) -> int | None:
    if given is not None and not 0 < given < _MOST_SECONDS:
        raise errors.InvalidValue(f"{name}={given}: expected seconds above 0")
    return None if given is None else math.ceil(given)


def _time(seconds: int) -> datetime:
    # Beyond the last year that there is: what others wrote may say anything.
    return datetime.fromtimestamp(min(seconds, 253402300799), tz=UTC)
