"""Share through a store what others asked for of your data, reduced where the data lie.

A group lies in a directory, or a place of an object store. Consumers ask by SQL; a producer answers all of
them in one scan of each file, equal questions once; followers keep folders current.

>>> import sieva.share
>>> group = sieva.share.create("shared/ocean", "run7/*.nc")  # doctest: +SKIP
>>> group.ask("warm", "SELECT TEMP, z_t WHERE TEMP > 25")  # doctest: +SKIP
>>> group.produce()  # doctest: +SKIP
>>> group.follow("warm", "warm")  # doctest: +SKIP

The protocol, and what each store promises: docs/understanding/sharing.md. Source: Huang et al., *Scibox:
Online Sharing of Scientific Data via the Cloud*.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._progress import progress_to
from sieva._share_files import code_bytes, document_text
from sieva._share_formats import converter
from sieva._share_names import this_host, this_user
from sieva._share_options import key_path, pass_options
from sieva._share_planned import PlannedConsumer, PlannedResult, PlannedStep, consumers_of
from sieva._share_published import Link, Published, Publishing
from sieva._share_store import Calibrated, calibrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "Ask",
    "Calibrated",
    "Followed",
    "Group",
    "Link",
    "PlannedConsumer",
    "PlannedResult",
    "PlannedStep",
    "Produced",
    "Published",
    "calibrate",
    "consumers_of",
    "create",
    "open_group",
]

# Seconds for which a file has to be left alone to count as complete.
SETTLE = 2.0
# Three centuries.
_MOST_SECONDS = 1e10


@dataclass(frozen=True)
class Ask:
    """What a user asks for of every step.

    Attributes
    ----------
    name
        Its name among those of the user.
    sql
        A SELECT without FROM.
    format
        The format of the results.
    only_new
        Whether only steps count that the producer did not have yet.
    code
        What the result of the SELECT is handed to, or None: text of C, or a module as ``wasm:`` and base64.
    """

    name: str
    sql: str
    format: str
    only_new: bool
    code: str | None = None

    @classmethod
    def _of(cls, known: dict[str, Any]) -> Ask:
        return cls(known["name"], known["sql"], known["format"], known["only_new"], known.get("code"))


@dataclass(frozen=True)
class Produced:
    """What a pass of a producer did.

    Attributes
    ----------
    steps
        Files that something was made of.
    answers, failed
        Asks that were answered, and those of them that were answered by an error.
    objects, bytes
        What was put for them.
    deleted
        Objects that nobody needs any more.
    waiting
        Files that may not be complete yet.
    deferred
        Asks that are left to the next pass, as others of the same member took the time of one already.
    troubles
        What could not be done this time, with the file; the next pass tries it again.
    """

    steps: int
    answers: int
    failed: int
    objects: int
    bytes: int
    deleted: int
    waiting: int
    deferred: int
    troubles: list[tuple[str, errors.SievaError]]


@dataclass(frozen=True)
class Followed:
    """What a pass of a follower did.

    Attributes
    ----------
    files, bytes
        Files that were put into the folder, and the bytes that were fetched for them: those that came by one
        request for several asks count for one of these.
    failures
        Answers that are errors, or the data in place of what code makes of them: the file, the error's code,
        and what it says.
    troubles
        What could not be fetched this time; the next pass tries it again.
    """

    files: list[Path]
    bytes: int
    failures: list[tuple[str, str, str]]
    troubles: list[errors.SievaError]

    @classmethod
    def _of(cls, done: dict[str, Any]) -> Followed:
        return cls([Path(path) for path in done["files"]], done["bytes"], done["failures"], done["troubles"])


class Group(Publishing):
    """A group in a store: `create` makes one, `open_group` opens it.

    Parameters
    ----------
    native
        The group of the engine.
    place
        Where it is.
    """

    def __init__(self, native: _native.Group, place: str) -> None:
        self._native = native
        self.place = place

    def __repr__(self) -> str:
        return f"Group({self.place!r})"

    def register(self, *sources: str | os.PathLike[str], producer: str | None = None) -> None:
        """Say what a producer has, in place of what was said before.

        Parameters
        ----------
        *sources
            Files, directories and patterns of this machine. New files of these two are taken up.
        producer
            The producer's name; by default that of the machine.

        Raises
        ------
        FileNotFoundError
            A source is not there.
        ValueError
            A name that is none, or two files of one name.
        """
        self._native.register(producer or this_host(), [os.fspath(source) for source in sources])

    def join(self, user: str | None = None) -> None:
        """Make a user a member; by default the one of this process."""
        self._native.join(user or this_user())

    def leave(self, user: str | None = None) -> None:
        """End a membership: what is asked for is withdrawn, what was made is deleted by the next pass."""
        self._native.leave(user or this_user())

    def ask(
        self,
        name: str,
        sql: str,
        *,
        format: str = "netcdf",  # noqa: A002 - as everywhere
        only_new: bool = False,
        user: str | None = None,
        code: str | os.PathLike[str] | bytes | None = None,
    ) -> Ask:
        """Ask for something of every step; who asks becomes a member.

        Parameters
        ----------
        name
            The name of the ask: another question by the same name takes its place.
        sql
            A SELECT without FROM.
        format
            netcdf, hdf5, arrow, parquet, csv or json.
        only_new
            Whether only files count that the producer does not have yet.
        user
            Who asks; by default the user of this process.
        code
            What the result of the SELECT is handed to, by the producer: a file of C or WebAssembly as a path,
            text of C, or the bytes of a module (docs/guides/user-code.md).

        Returns
        -------
        Ask
            As it is kept.

        Raises
        ------
        ValueError
            What is no SELECT or has a FROM (`sieva.errors.SyntaxError_`), no name, or no format.
        """
        kept = self._native.ask(user or this_user(), name, sql, format, only_new, code_bytes(code))
        return Ask._of(json.loads(kept))

    def ask_many(
        self,
        asks: Iterable[tuple[str, str]],
        *,
        format: str = "netcdf",  # noqa: A002 - as everywhere
        only_new: bool = False,
        user: str | None = None,
    ) -> list[Ask]:
        """Ask for many things at once: all of them or none, by one put.

        Parameters
        ----------
        asks
            The name and the SQL of each.
        format, only_new, user
            As of `ask`.

        Returns
        -------
        list of Ask
            In the order of `asks`.

        Raises
        ------
        ValueError
            As `ask`; one name twice, or more than 10000 asks of a user.
        """
        pairs = [(name, sql) for name, sql in asks]
        kept = self._native.ask_many(user or this_user(), pairs, format, only_new)
        return [Ask._of(known) for known in json.loads(kept)]

    def ask_document(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "netcdf",  # noqa: A002 - as everywhere
        only_new: bool = False,
        user: str | None = None,
    ) -> list[Ask]:
        """Ask for all that a ``reader.xml`` asks for, or the same as TOML: docs/understanding/reductions.md.

        Parameters
        ----------
        path
            The document; TOML where its name ends so.
        format, only_new, user
            As of `ask`.

        Returns
        -------
        list of Ask
            Named by function and variable.
        """
        is_toml = os.fspath(path).lower().endswith(".toml")
        text = document_text(path)
        asks = self._native.ask_document(user or this_user(), text, is_toml, format, only_new)
        return [Ask._of(known) for known in json.loads(asks)]

    def document(self, producer: str | None = None, *, toml: bool = False) -> str:
        """Return what a producer's newest file holds as ``writer.xml``, or TOML."""
        return self._native.document(self._producer(producer), toml)

    def withdraw(self, name: str, *, user: str | None = None) -> None:
        """Ask for something no longer."""
        self._native.withdraw(user or this_user(), name)

    def asks(self, user: str | None = None) -> list[Ask]:
        """Return what a user asks for, in order of the names."""
        return [Ask._of(known) for known in json.loads(self._native.asks(user or this_user()))]

    def producers(self) -> list[str]:
        """Return the names of the producers."""
        return self._native.producers()

    def schema(self, producer: str | None = None) -> dict[str, Any] | None:
        """Return what a producer's newest file holds, as of `Schema.to_json`; None before its first pass."""
        name = self._producer(producer)
        text = self._native.schema(name)
        if text is None:
            return None
        try:
            found = json.loads(text)
        except ValueError as error:
            raise errors.CorruptFile(f"the schema of {name!r} is damaged: {error}") from None
        arrays = found.get("logical", {}).get("arrays") if isinstance(found, dict) else None
        if not isinstance(arrays, list) or not all(isinstance(array, dict) for array in arrays):
            raise errors.CorruptFile(f"the schema of {name!r} is damaged: it has no list of arrays")
        return dict(found)

    def status(self) -> dict[str, Any]:
        """Return ``producers``, ``asks``, ``silent``, ``published``, ``wrong``, ``objects``."""
        found: dict[str, Any] = json.loads(self._native.status())
        return found

    def plan(
        self,
        producer: str | None = None,
        *,
        settle: float = SETTLE,
        memory: int | str | None = None,
        ask_memory: int | str | None = None,
        ask_time: float | None = None,
        result_size: int | str | None = None,
    ) -> list[PlannedStep]:
        """Return what a pass would make, for whom, and what that takes; no data are read.

        Parameters
        ----------
        producer
            Whose pass; by default the only one, or the one that is called as this machine.
        settle
            Seconds for which a file has to be left alone to count as complete.
        memory
            What evaluating may take, as of a query.
        ask_memory, ask_time, result_size
            What one ask may take: bytes, seconds, bytes of its result. What exceeds one for sure is
            refused.

        Returns
        -------
        list of PlannedStep
            A file each.
        """
        options = pass_options(
            settle=settle,
            memory=memory,
            ask_memory=ask_memory,
            ask_time=ask_time,
            result_size=result_size,
        )
        return [PlannedStep._of(one) for one in self._native.plan(self._producer(producer), options)]

    def produce(
        self,
        producer: str | None = None,
        *,
        settle: float = SETTLE,
        memory: int | str | None = None,
        ask_memory: int | str | None = None,
        ask_time: float | None = None,
        result_size: int | str | None = None,
        objects: str = "files",
        object_size: int | str | None = None,
        prices: tuple[float, float, float] | None = None,
        threads: int | None = None,
        spool: str | os.PathLike[str] | None = None,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Produced:
        """Make and put all that is asked for and not there yet, delete what nobody needs any more: one pass.

        A pass that was stopped anywhere goes on when it is asked again; ``sieva share produce`` makes pass
        after pass.

        Parameters
        ----------
        producer, settle, memory
            As of `plan`.
        ask_memory, ask_time, result_size
            What one ask may take: bytes, seconds of each file where it is evaluated by itself, bytes of the
            result. What exceeds a limit is answered by an error; the others get theirs.
        objects
            ``files``: each result is a plain file. Others lie several in one object: ``partial`` as large as
            the store moves best, ``whole`` no larger than what makes sharing dearer than files.
        object_size
            Bytes of such an object; by default what `calibrate` found best.
        prices
            For each gigabyte of storage, of transfer into the store, and out of it; by default those of the
            paper: 0.095, 0, 0.012.
        threads
            By default one for each core.
        spool
            Where results are kept until they are put; by default where temporary files are.
        progress
            True shows a bar on stderr, if that is a terminal; a function is called with the answers that are
            there, and those that the pass has to give, from any thread.

        Returns
        -------
        Produced

        Raises
        ------
        ValueError
            Another process of this machine is the producer.
        OSError
            The store does not answer.
        """
        options = pass_options(
            settle=settle,
            memory=memory,
            threads=threads,
            spool=spool,
            ask_memory=ask_memory,
            ask_time=ask_time,
            result_size=result_size,
            objects=objects,
            object_size=object_size,
            prices=prices,
        )
        name = self._producer(producer)
        with progress_to(progress, "answering", is_bytes=False) as told:
            return Produced(**self._native.produce(name, options, told))

    def follow(
        self,
        name: str,
        folder: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 - as everywhere
        user: str | None = None,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Followed:
        """Fetch the answers to an ask that are not in a folder yet: one pass.

        What was fetched is deleted in the group by the producer's next pass, once nobody else wants it.

        Parameters
        ----------
        name
            The name of the ask.
        folder
            Where the files go, one of each step; it is made, and is for this ask alone.
        format
            ``zarr`` or ``bp``: a Zarr v3 hierarchy or BP of ADIOS2 is made here of each file, a directory
            that has its name when all of it is there; what is asked for is netcdf or hdf5 then. None: the
            files as they come. A folder stays as it was begun.
        user
            Whose ask; by default the user of this process.
        progress
            As of `produce`, with bytes.

        Returns
        -------
        Followed

        Raises
        ------
        FileNotFoundError
            Nothing is asked for by that name.
        ValueError
            The folder is that of another ask or format, another process keeps it, or there is no such
            format of what is asked for.
        """
        who = user or this_user()
        convert = None if format is None else converter(format, name, self.asks(who))
        with progress_to(progress, f"fetching {name}") as told:
            return Followed._of(self._native.follow(who, name, os.fspath(folder), convert, told))

    def follow_many(
        self, folders: Mapping[str, str | os.PathLike[str]], *, user: str | None = None
    ) -> dict[str, Followed]:
        """Fetch the answers to many asks of a user, each into a folder of its own: one pass.

        What the group has for the user is read once for all of them.

        Parameters
        ----------
        folders
            The folder of each ask, by its name.
        user
            As of `follow`.

        Returns
        -------
        dict of str to Followed
            By the names of the asks.

        Raises
        ------
        FileNotFoundError
            Something is not asked for.
        ValueError
            A folder is that of another ask, or another process keeps it.
        """
        pairs = [(name, os.fspath(folder)) for name, folder in folders.items()]
        done = self._native.follow_many(user or this_user(), pairs)
        return {name: Followed._of(one) for (name, _), one in zip(pairs, done, strict=True)}

    def _producer(self, name: str | None) -> str:
        """Return the producer that is meant."""
        if name is not None:
            return name
        known = self.producers()
        return known[0] if len(known) == 1 else this_host()


def create(
    place: str | os.PathLike[str],
    *sources: str | os.PathLike[str],
    producer: str | None = None,
    expires: float | None = None,
    strict_code: bool = False,
    key: str | os.PathLike[str] | None = None,
    encrypt: bool = False,
) -> Group:
    """Make a group, or take the one that is there, and say what a producer has.

    Parameters
    ----------
    place
        A directory, or the address of a place in an object store.
    *sources, producer
        As of `Group.register`; none: the group alone.
    expires
        Seconds after which results are deleted that nobody took; None: never.
    strict_code
        Whether code that fails is answered by an error; else by the data that it was asked of, and a failure
        beside them.
    key, encrypt
        The file of the key of an encrypted group; with `encrypt` it is made where there is none.

    Returns
    -------
    Group
    """
    path = key_path(key, encrypt=encrypt)
    if expires is not None and not 0 <= expires < _MOST_SECONDS:
        raise errors.InvalidValue(f"expires={expires}: expected seconds, 0 or more")
    seconds = None if expires is None else math.ceil(expires)
    named = [os.fspath(source) for source in sources]
    made = _native.Group.create(os.fspath(place), named, seconds, strict_code, path, encrypt)
    group = Group(made, os.fspath(place))
    if sources:
        group.register(*sources, producer=producer)
    return group


def open_group(place: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None) -> Group:
    """Open the group at a place; one that is encrypted by the file of its key, or ``SIEVA_SHARE_KEY``.

    Raises
    ------
    FileNotFoundError
        There is none.
    PermissionError
        It is encrypted, and there is no key.
    ValueError
        The key is that of another group, or the group is not encrypted.
    """
    return Group(_native.Group.open(os.fspath(place), key_path(key)), os.fspath(place))
