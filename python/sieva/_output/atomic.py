"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replacing(path: Path, *, is_directory: bool = False) -> Iterator[Path]:
    """Give the path of a file beside ``path``, which takes the name of ``path`` at the end.

    What was at ``path`` stays as it is until then. On any exception, Ctrl-C included, what was written is
    removed.

    Parameters
    ----------
    path
        The name in the end. A directory there is replaced only by a directory, and only if it is a Zarr
        store.
    is_directory
        Whether it is one that is written.

    Raises
    ------
    IoError, FileNotFound, PermissionDenied
        There is no such directory, or it cannot be written to.
    """
    _check(path, is_directory=is_directory)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            yield aside
            _sync(aside)
            _rename(aside, path)
        except OSError as error:
            raise _explained(error, path) from error
    finally:
        _remove(aside)


def _check(path: Path, *, is_directory: bool) -> None:
    if not path.parent.is_dir():
        raise errors.FileNotFound(f"cannot write {str(path)!r}: there is no directory {str(path.parent)!r}")
    if not path.is_dir():
        return
    if not is_directory:
        raise errors.InvalidValue(f"cannot write {str(path)!r}: it is a directory")
    if any(path.iterdir()) and not any(
        (path / name).exists() for name in ("zarr.json", ".zgroup", ".zarray")
    ):
        raise errors.InvalidValue(
            f"cannot write {str(path)!r}: it is a directory of something else than Zarr",
            "choose another name, or remove it",
        )


def _sync(path: Path) -> None:
    """Have the contents on disk before the name is."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())


def _rename(aside: Path, path: Path) -> None:
    if not path.is_dir():
        if aside.is_dir():
            path.unlink(missing_ok=True)
        aside.replace(path)
    else:
        # A directory cannot be put onto one that is not empty: the old one goes out of the way first.
        old = aside.with_suffix(".old")
        path.rename(old)
        aside.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot
            os.fsync(directory)
    finally:
        os.close(directory)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _explained(error: OSError, path: Path) -> Exception:
    """Return an error of the system as one of ours that names the file that was asked for."""
    if isinstance(error, errors.SievaError | BrokenPipeError):
        return error
    kind = "permission-denied" if isinstance(error, PermissionError) else "io-error"
    return errors.make(kind, f"cannot write {str(path)!r}: {error.strerror or error}")
