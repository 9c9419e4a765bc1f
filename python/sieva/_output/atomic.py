"""Files that appear complete or not at all, written where nobody else can put something in the way."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sieva import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

# What tells a directory that we or another writer made: Zarr, the fourth in a table of references, and BP.
_OURS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata", "md.idx")


@contextmanager
def replacing(path: Path, *, is_directory: bool = False) -> Iterator[Path]:
    """Give the path of a file that takes the name of ``path`` at the end.

    It is written in a new directory beside ``path``, which is of this user alone and has a name that nobody
    could foresee: in a directory that others may write to, a link put there in advance would lead what is
    written somewhere else. What was at ``path`` stays as it is until the end. On any exception, Ctrl-C
    included, what was written is removed.

    Parameters
    ----------
    path
        The name in the end. A link is replaced, never followed. A directory there is replaced only by a
        directory, and only if it is a Zarr store or a BP file; devices, pipes and sockets are not replaced.
    is_directory
        Whether it is one that is written.

    Raises
    ------
    IoError, FileNotFound, PermissionDenied
        There is no such directory, or it cannot be written to.
    """
    try:
        _check(path, is_directory=is_directory)
        with _opened(path.parent) as folder, _private(folder, path) as (private, within):
            aside = within / path.name
            yield aside
            _sync(aside)
            _rename(private, folder, path.name)
            with suppress(OSError):  # some file systems cannot
                os.fsync(folder)
    except OSError as error:
        raise _explained(error, path) from error


def is_special(path: Path) -> bool:
    """Return whether a device, a pipe or a socket has a name, or is what it leads to."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def written_through(path: Path) -> Iterator[BinaryIO]:
    """Open a device or a pipe for writing, which stays what it is; errors name it.

    Raises
    ------
    IoError, PermissionDenied
        It cannot be written to, as a socket.
    """
    try:
        found = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        with open(found, "wb") as out:  # noqa: PTH123 - of a descriptor
            yield out
    except OSError as error:
        raise _explained(error, path) from error


def _check(path: Path, *, is_directory: bool) -> None:
    if not path.parent.is_dir():
        raise errors.FileNotFound(f"cannot write {str(path)!r}: there is no directory {str(path.parent)!r}")
    if is_special(path):
        raise errors.InvalidValue(
            f"cannot write {str(path)!r}: it is a device, a pipe or a socket, and is never replaced",
            "rows go there as csv, json, a table or arrow; other formats need a file",
        )
    if path.is_symlink() or not path.is_dir():
        return
    if not is_directory:
        raise errors.InvalidValue(f"cannot write {str(path)!r}: it is a directory")
    if any(path.iterdir()) and not any((path / name).exists() for name in _OURS):
        raise errors.InvalidValue(
            f"cannot write {str(path)!r}: it is a directory of something else than Zarr or BP",
            "choose another name, or remove it",
        )


@contextmanager
def _opened(folder: Path | str, dir_fd: int | None = None) -> Iterator[int]:
    """Open a directory that is no link where it is named within another one."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if dir_fd is None else os.O_NOFOLLOW)
    opened = os.open(folder, flags, dir_fd=dir_fd)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def _private(folder: int, path: Path) -> Iterator[tuple[int, Path]]:
    """Make a directory of this user alone in the one that is open; give it open, and a path to it.

    The path is that of the descriptor, so that it leads there whatever is renamed meanwhile.
    """
    # A name is at most 255 bytes long: that of the file is only repeated as far as it fits.
    name = f".{path.name[:40]}.{secrets.token_hex(8)}.part"
    os.mkdir(name, 0o700, dir_fd=folder)
    try:
        with _opened(name, folder) as private:
            # Of this process by its number: programs that it starts come that way, too.
            through = Path(f"/proc/{os.getpid()}/fd/{private}")
            yield private, through if through.exists() else path.parent / name
    finally:
        shutil.rmtree(name, ignore_errors=True, dir_fd=folder)


def _sync(path: Path) -> None:
    """Have the contents on disk before the name is."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())


def _rename(private: int, folder: int, name: str) -> None:
    """Put what was written in the place of what has its name."""

    def is_dir(at: int) -> bool:
        with suppress(OSError), _opened(name, at):
            return True
        return False

    if is_dir(folder):
        # A directory cannot be put onto one that is not empty: the old one goes out of the way first.
        old = secrets.token_hex(8)
        os.rename(name, old, src_dir_fd=folder, dst_dir_fd=private)
        try:
            os.rename(name, name, src_dir_fd=private, dst_dir_fd=folder)
        except OSError:
            os.rename(old, name, src_dir_fd=private, dst_dir_fd=folder)
            raise
        return
    if is_dir(private):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
    os.rename(name, name, src_dir_fd=private, dst_dir_fd=folder)


def _explained(error: OSError, path: Path) -> Exception:
    """Return an error of the system as one of ours that names the file that was asked for."""
    if isinstance(error, errors.SievaError | BrokenPipeError):
        return error
    kind = "permission-denied" if isinstance(error, PermissionError) else "io-error"
    return errors.make(kind, f"cannot write {str(path)!r}: {error.strerror or error}")
