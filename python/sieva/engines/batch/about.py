"""What a job's directory says of itself, read from places that others may have written to."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

from sieva import errors

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1
# What every job says, of these types.
_SAID: dict[str, type | tuple[type, ...]] = {
    "version": int,
    "id": str,
    "engine": str,
    "works": int,
    "created": (int, float),
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
    about = _json_of(path)
    wrong = [name for name, kind in _SAID.items() if not isinstance(about.get(name), kind)]
    if wrong or about["works"] < 0:
        raise _damaged(path, f"job.json has no {', '.join(wrong) or 'number of works'}")
    if about["version"] > VERSION:
        raise errors.Unsupported(f"the job in {str(path)!r} is of a later version of sieva")
    return about


def _json_of(path: Path) -> dict[str, Any]:
    """Return the object in `job.json`, which is a regular file: a pipe would be waited for."""
    try:
        fd = os.open(path / "job.json", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing(path) from error
    except OSError as error:
        raise _damaged(path, f"job.json cannot be read: {error.strerror}") from error
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _damaged(path, "job.json is no regular file")
        data = file.read()
    try:
        about = json.loads(data)
    except ValueError as error:
        raise _damaged(path, f"job.json is no JSON: {error}") from error
    if not isinstance(about, dict):
        raise _damaged(path, "job.json is no JSON object")
    return about


def _missing(path: Path) -> errors.SievaError:
    return errors.FileNotFound(f"there is no job in {str(path)!r}", "`sieva jobs` lists those of yours")


def _damaged(path: Path, why: str) -> errors.SievaError:
    return errors.CorruptFile(f"the job in {str(path)!r} is damaged: {why}", "remove the directory")
