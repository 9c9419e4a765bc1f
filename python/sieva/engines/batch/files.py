"""Files that many processes of many nodes share: each appears whole, and tells whether it still is."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from sieva import errors

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"SVBF\x01"
_DIGEST = 16
_HEAD = len(_MAGIC) + _DIGEST


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears complete or not at all, also after a crash, on network file systems, too.

    Who writes the same name at the same time replaces it by its own, as whole.
    """
    aside = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            # Before the name is there: else a node that fails could leave a name without its bytes.
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def packed(data: bytes) -> bytes:
    """Return bytes behind a checksum: ``SVBF``, 1, BLAKE2b-128 of what follows."""
    return _MAGIC + digest(data) + data


def unpacked(data: bytes, name: object, hint: str | None = None) -> bytes:
    """Return the bytes that were given to `packed`.

    Parameters
    ----------
    data
        What was read.
    name, hint
        Of the file, and what to do where it is damaged.

    Raises
    ------
    CorruptFile
        They are not as they were written.
    """
    rest = data[_HEAD:]
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : _HEAD] != digest(rest):
        raise errors.CorruptFile(f"{name} is damaged: {len(data)} bytes whose checksum is another", hint)
    return rest


def digest(data: bytes) -> bytes:
    """Return a checksum of 16 bytes."""
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
