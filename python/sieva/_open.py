"""Opening: a file, or several as one source."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sieva import _adios, _native, _references, errors
from sieva._catalog import native_of
from sieva._gridftp import is_gridftp
from sieva._opened import Opened
from sieva._options import some, takes
from sieva._query import Query
from sieva._source import Source

if TYPE_CHECKING:
    from sieva._options import Asking, Opening

# The main loop of a process that parses files for this one. Nothing of the user's Python is loaded in it.
WORKER = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_worker.py")), _native.__file__]


@takes("open")
def open(  # noqa: A001 - sieva.open is the name that is fixed
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Unpack[Opening]
) -> Source:
    """Open a file, or several as one source; formats are told by the first bytes, not by names.

    Parameters
    ----------
    path
        Of a file, a Zarr group or a kerchunk reference set; a URL (``http``, ``https``, ``s3``, ``swift``);
        or a glob or a list of paths and globs. Several files are put together: those that hold
        the same arrays follow one another along the dimension that they differ in, by the values of its
        coordinate where there are any; files of different arrays lie side by side. An ADIOS2 BP file or
        directory is read by the package adios2. ``gsiftp://`` and ``ftp://`` name a file on a GridFTP server
        that has the plug-in: queries run there, and only results come here.
    dims
        Names of dimensions by array, where the file does not name them, so that arrays of different groups
        line up: ``{"exchange/theta": ["angle"]}``.
    external
        Directories that external links, external raw storage and symbolic links of a Zarr directory may lead
        into; by default none.
    valid_range
        Whether values outside of the attributes valid_range, valid_min and valid_max are missing.
    store
        A directory for the augmentations of sources. None: what SIEVA_STORE says, else ``<path>.sieva``
        beside the file.
    learn
        Whether scans leave zone maps and histograms of what they read in the store, which takes under 3 %
        of their time. ``SIEVA_LEARN=0`` in the environment switches it off for all.
    join
        Of several files: the dimension along which they follow one another, where it cannot be told or is
        to be another; a name that no file has stacks them along a new dimension, in the order of the list.
    isolated
        Whether local files are parsed in a process of their own, with limits on memory and time. Zarr groups
        are read by this process all the same: no C library is involved. ADIOS2 files are read
        by such a process altogether. Refused for URLs and Parquet references.
    storage_options
        Of remote objects: time-outs, retries, requests in flight, cache; ``public_only=True`` refuses hosts
        with private, loopback and link-local addresses, whatever name or redirect leads there.
    catalog
        A `Catalog`, or its URL, or True for the default one: files that have not changed since they were
        registered there are not parsed, and of many files none is opened before its data are wanted. The
        catalog is only read. It is not used with ``dims`` and ``external``, which it knows nothing of.
    allow
        Directories, files and beginnings of URLs; nothing else is opened: neither this source nor those of
        subqueries, nor what files, links and redirects lead to. What counts is where a name really leads.
        None: what the system allows. For programs that answer for others. Refused for ADIOS2 files, Parquet
        references and GridFTP servers, which other libraries open.
    manifest
        What `Source.manifest` gave, here or in another process: the file is neither parsed nor read before
        values are wanted. It is believed as the process that made it is. None: the file is parsed.
    striping
        Where the file's bytes lie on servers, for programs that know it better than the storage tells:
        ``"stripe_size=1MiB,stripe_count=4,stripe_offset=0"``, or ``"single"``. It changes the order and size
        of reads, never what they give. None: what the storage tells (Lustre, CephFS, BeeGFS, GlusterFS,
        uploads in parts to S3), else one server.
    memory
        What reading a part of an array (``src["TEMP"][0, :100]``) may take, its values included, and what
        the metadata of Zarr groups and reference sets take: bytes, or text such as ``"4GiB"``. None: 1 GiB,
        or half of the system's memory where that is more. Queries and `Source.build_index` have a limit of
        their own.

    Returns
    -------
    Source
        Files are never changed.

    Raises
    ------
    StaleSource
        ``manifest`` was taken of another state of the file.
    CorruptIndex
        ``manifest`` is damaged.
    FileNotFound
        There is no such file; also a `FileNotFoundError`.
    PermissionDenied
        The file may not be read, or it is outside of ``allow``, whether there is one or not; also a
        `PermissionError`.
    UnknownFormat, CorruptFile
        The file cannot be read; also a `ValueError`.
    DimensionMismatch
        Several files do not fit together: the message names the files, the array, and what differs.

    Examples
    --------
    >>> src = sieva.open("pop.nc")  # doctest: +SKIP
    >>> src["TEMP"].shape  # doctest: +SKIP
    (4, 20, 300, 400)
    >>> src = sieva.open("archive/pop.*.nc")  # doctest: +SKIP
    """
    return open_in(None, path, options)


def open_in(
    session: _native.Session | None,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    options: Opening,
) -> Source:
    """As `open`, in a session; None: that of the process."""
    _native.check_options("open", list(options))
    given: dict[str, Any] = {**options}
    names = file_names(path)
    opened = Opened.of(names, given)
    allow, isolated = options.get("allow"), options.get("isolated", False)
    allowed = None if allow is None else file_names(allow) if allow else []
    if len(names) == 1 and is_gridftp(names[0]):
        _refuse_allowed(allowed, names[0], "a file on a GridFTP server")
        from sieva._gridftp.source import open_remote

        return open_remote(names[0], given)  # type: ignore[return-value] # asked as a Source is
    if isinstance(given.get("external"), str | os.PathLike):
        given["external"] = [given["external"]]
    if allowed is not None and len(names) == 1 and not set(names[0]) & set("*?["):
        _native.check_allowed(names[0], allowed)
    if len(names) == 1 and _references.is_tables(names[0]):
        _refuse_allowed(allowed, names[0], "a directory of Parquet references")
        _refuse_isolated(isolated, names[0], "a directory of Parquet references")
        return Source(_references.open_tables(names[0], some("open_tables", given)), opened)
    if len(names) == 1 and options.get("join") is None and _adios.is_adios(names[0]):
        _refuse_allowed(allowed, names[0], "an ADIOS2 file")
        foreign: Any = some("open_foreign", given)
        source = _adios.open_adios(names[0], isolated=isolated, options=foreign)
        source._opened = opened
        return source
    given["isolated"] = WORKER if isolated else []
    given["catalog"] = native_of(options.get("catalog"))
    given["allow"] = allowed
    return Source(_native.Source.open(names, given, session=session), opened)


def _refuse_allowed(allowed: list[str] | None, path: str, what: str) -> None:
    if allowed is not None:
        raise errors.Unsupported(
            f"{_native.redacted(path)!r} is {what}, which another library opens: allow= cannot hold it back",
            "open it without allow= if you trust it",
        )


def _refuse_isolated(isolated: bool, path: str, what: str) -> None:
    if isolated:
        raise errors.Unsupported(
            f"{path!r} is {what}, which a worker process does not read",
            "open it without isolation if you trust it",
        )


@takes("query", "open")
def sql(text: str, *, engine: object = None, **options: Unpack[Asking]) -> Query:
    """Return the query of a SELECT whose FROM names the file.

    Parameters
    ----------
    text
        Such as ``"SELECT TEMP, SALT FROM 'pop.nc' WHERE TEMP > 5 LIMIT 10"``; FROM may be a glob, or
        ``collection('name')``: see `collection`.
    engine
        As in `Source.query`: who runs it.
    access, fetch, memory, spill, threads, cross, functions
        As in `Source.query`.
    dims, external, valid_range, store, learn, join, isolated, storage_options, catalog, allow, manifest
        As in `open`; of a collection as in `collection`.
    striping
        As in `open`.

    Raises
    ------
    SyntaxError_
        The text is no SELECT, or has no FROM.

    Examples
    --------
    >>> q = sieva.sql("SELECT avg(TEMP) FROM 'pop.nc' GROUP BY z_t")  # doctest: +SKIP
    """
    return sql_in(None, text, options, engine)


def sql_in(session: _native.Session | None, text: str, options: Asking, engine: object = None) -> Query:
    """As `sql`, in a session; None: that of the process."""
    run: Any = some("query", options)
    opening: Any = {name: value for name, value in options.items() if name not in run}
    _native.check_options("open", list(opening))
    path = _native.from_clause(text)
    name = None if path is not None else _native.collection_clause(text)
    if name is not None:
        from sieva._collection import sql_of_collection

        return sql_of_collection(text, name, run, opening, engine)
    if path is None:
        raise errors.SyntaxError_("the query has no FROM", "write SELECT ... FROM 'file.nc' WHERE ...")
    source = open_in(session, path, opening)
    return source.sql(text, **run) if engine is None else source.sql(text, engine=engine, **run)


def file_names(path: object) -> list[str]:
    """Return the paths and globs that an argument names."""
    if isinstance(path, str | os.PathLike):
        text = os.fspath(path)
        if not isinstance(text, str):
            raise TypeError(f"a path is text, got {path!r}")
        _native.check_name(text, "the name of a source")
        return [text]
    if isinstance(path, Sequence) and not isinstance(path, bytes):
        names = [name for item in path for name in file_names(item)]
        if not names:
            raise errors.InvalidValue("the list of files is empty", "give at least one path")
        return names
    raise TypeError(f"expected a path, a glob or a list of paths, got {path!r} ({type(path).__name__})")
