"""Who one is in a group, and documents that are given by their names."""

from __future__ import annotations

import getpass
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

# Bytes of a document.
_MOST_DOCUMENT = 4 << 20


def document_of(path: str | os.PathLike[str]) -> str:
    """Return the text of a document, which is not read where it is longer than one may be."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_DOCUMENT + 1)
        if len(data) > _MOST_DOCUMENT:
            raise errors.InvalidValue(f"{os.fspath(path)!r} is longer than {_MOST_DOCUMENT >> 20} MiB")
        return data.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidValue(f"{os.fspath(path)!r} is no text in UTF-8: {error}") from None
    except FileNotFoundError:
        raise errors.FileNotFound(f"there is no {os.fspath(path)!r}") from None
    except OSError as error:
        raise errors.IoError(f"{os.fspath(path)!r} cannot be read: {error.strerror}") from None


def _plain(parts: Iterable[str]) -> str:
    """Return the first of these as a name of a group, where it can be one."""
    for part in parts:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", part).lstrip("-.")[:64]
        if name and name != "taken":
            return name
    return "unnamed"


def this_user() -> str:
    """Return who asks, where nobody says."""
    try:
        return _plain([getpass.getuser()])
    except (KeyError, OSError):
        return _plain([f"uid{os.getuid()}"])


def this_host() -> str:
    """Return who produces, where nobody says."""
    return _plain([socket.gethostname().split(".")[0], "producer"])
