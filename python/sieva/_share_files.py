"""Files that questions to a group are given in: code, and documents."""

from __future__ import annotations

import os
from pathlib import Path

from sieva import errors

# Bytes of a document.
_MOST_DOCUMENT = 4 << 20
# Bytes of code.
_MOST_CODE = 1 << 20


def code_bytes(code: str | os.PathLike[str] | bytes | None) -> bytes | None:
    """Return the bytes of code: those of a file, or of text, which has a bracket or a semicolon."""
    if code is None or isinstance(code, bytes):
        return code
    if isinstance(code, str) and any(sign in code for sign in "{;"):
        return code.encode()
    path = Path(code)
    try:
        with path.open("rb") as file:
            # What is longer is refused for its length.
            return file.read(_MOST_CODE + 1)
    except FileNotFoundError:
        raise errors.FileNotFound(f"there is no file of code {os.fspath(path)!r}") from None
    except OSError as error:
        raise errors.IoError(f"{os.fspath(path)!r} cannot be read: {error.strerror}") from None


def document_text(path: str | os.PathLike[str]) -> str:
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
