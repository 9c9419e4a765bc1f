"""What a job's directory says of itself, read from places that others may have written to."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from sieva import errors
from sieva.engines.batch.files import MOST_TOLD

VERSION = 1
# What every job says, of these types.
_SAID: dict[str, type | tuple[type, ...]] = {
    "version": int,
    "id": str,
    "engine": str,
    "works": int,
    "created": (int, float),
}
# What a job may say besides, and what holds where it does not: earlier versions said less.
_ALSO: dict[str, tuple[type | tuple[type, ...], Any]] = {
    "kind": (str, "query"),
    "what": (str, ""),
    "command": ((list, type(None)), None),
    "cwd": (str, "."),
    "options": (dict, {}),
}


def about_of(path: Path) -> dict[str, Any]:
    """Return what `job.json` in a directory says.

    Raises
    ------
    FileNotFound
        There is no job.
    PermissionDenied
        It is somebody else's: a job is a command that is run again, and results that are believed.
    CorruptFile
        It is nothing that a job says.
    Unsupported
        It is of a later version.
    """
    try:
        owner = path.stat().st_uid
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing(path) from error
    if owner != os.geteuid():
        raise errors.PermissionDenied(f"the job in {str(path)!r} is of somebody else")
    try:
        about = object_of(path, "job.json")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing(path) from error
    wrong = [name for name, kind in _SAID.items() if not isinstance(about.get(name), kind)]
    if wrong or about["works"] < 0:
        raise damaged(path, f"job.json has no {', '.join(wrong) or 'number of works'}")
    if about["version"] > VERSION:
        raise errors.Unsupported(f"the job in {str(path)!r} is of a later version of sieva")
    about = {**{name: default for name, (_, default) in _ALSO.items()}, **about}
    if wrong := [name for name, (kind, _) in _ALSO.items() if not isinstance(about[name], kind)]:
        raise damaged(path, f"what job.json has as {', '.join(wrong)} is none")
    return about


def object_of(path: Path, name: str) -> dict[str, Any]:
    """Return the object in a file of a job, which is a regular one: a pipe would be waited for.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    CorruptFile
        It is no JSON object.
    """
    try:
        fd = os.open(path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise damaged(path, f"{name} cannot be read: {error.strerror}") from error
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise damaged(path, f"{name} is no regular file")
        data = file.read(MOST_TOLD + 1)
    if len(data) > MOST_TOLD:
        raise damaged(path, f"{name} is longer than {MOST_TOLD} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"{name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise damaged(path, f"{name} is no JSON object")
    return found


def _missing(path: Path) -> errors.SievaError:
    return errors.FileNotFound(f"there is no job in {str(path)!r}", "`sieva jobs` lists those of yours")


def damaged(path: Path, why: str) -> errors.SievaError:
    """Return the error of a job whose files are not as they were written."""
    return errors.CorruptFile(
        f"the job in {str(path)!r} is damaged: {why}", "remove the directory, and ask again"
    )
