"""Files that many processes of many nodes share: each appears whole, and tells whether it still is."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from sieva import errors

if TYPE_CHECKING:
    from pathlib import Path

# Of a piece of work or a result, and of what is told of a job.
MOST_BYTES, MOST_TOLD = 1 << 30, 16 << 20
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


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file: a pipe would be waited for, and what is huge fills the memory.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    CorruptFile
        It is no regular file, cannot be read, or is longer than `most` bytes.
    """
    try:
        found = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(found, "rb") as file:  # noqa: PTH123 - of a descriptor
            known = os.fstat(found)
            if not stat.S_ISREG(known.st_mode):
                raise errors.CorruptFile(f"{path} is damaged: it is no regular file")
            data = file.read(most + 1) if known.st_size <= most else b""
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, errors.SievaError):
            raise
        raise errors.CorruptFile(f"{path} is damaged: it cannot be read: {error.strerror}") from error
    if known.st_size > most or len(data) > most:
        raise errors.CorruptFile(f"{path} is damaged: it is longer than {most} bytes")
    return data


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
