"""A file that HDF5 writes to, and that never fails before HDF5 is done with it.

A write that fails leaves the HDF5 library with what it cannot write, and its objects crash the process when
they are freed. Here the error is held: what is written from there on is kept in memory, so that the library
closes its file as ever. It is raised after the call that it happened in, which is soon: memory holds what the
library writes within one call, and what it has cached.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sieva._interrupt import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from numpy.typing import NDArray

    from sieva._output.variable import Container, Variable


@contextmanager
def held(
    path: Path,
    make: Callable[[Any], AbstractContextManager[Any]],
    contain: Callable[[Any], Container],
) -> Iterator[Container]:
    """Give a new file of a library as a container, whose calls raise what went wrong in the system.

    Parameters
    ----------
    path
        The file; one that is there is written anew.
    make
        Opens the library's file on a file object.
    contain
        Returns the container of it.

    Raises
    ------
    OSError
        The file could not be written: as of the first write that failed.
    """
    file = HeldFile(path)
    try:
        with opened(lambda: make(file)) as made:
            yield _Checked(contain(made), file)
        file.check()
    finally:
        file.close()


class HeldFile:
    """A new file that can be read and written anywhere; an error of the system is kept for `check`."""

    def __init__(self, path: Path) -> None:
        self._opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._at = self._size = 0
        self._error: OSError | None = None
        # What was written since, by its place.
        self._kept: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raise what went wrong, if something did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Close the file."""
        os.close(self._opened)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def write(self, data: bytes | memoryview) -> int:
        """Write all of the bytes."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and self._error is None:
            with self._holding():
                done += os.pwrite(self._opened, view[done:], self._at + done)
        if done < len(view):
            self._kept.append((self._at + done, bytes(view[done:])))
        self._at += len(view)
        self._size = max(self._size, self._at)
        return len(view)

    def read(self, size: int) -> bytes:
        """Read so many bytes; libraries tell a file object from a name by this method."""
        found = bytearray(size)
        self.readinto(found)
        return bytes(found)

    def readinto(self, into: bytearray | memoryview) -> int:
        """Read into a buffer, of what was kept in memory from there; what is not there is zero."""
        view = memoryview(into).cast("B")
        start, end = self._at, self._at + len(view)
        done = 0
        with self._holding():
            while done < len(view) and (part := os.pread(self._opened, len(view) - done, start + done)):
                view[done : done + len(part)] = part
                done += len(part)
        view[done:] = bytes(len(view) - done)
        for at, data in self._kept:
            first, last = max(at, start), min(at + len(data), end)
            if first < last:
                view[first - start : last - start] = data[first - at : last - at]
        self._at = end
        return len(view)

    def truncate(self, size: int) -> int:
        """Give the file its length."""
        self._size = size
        if self._error is None:
            with self._holding():
                os.ftruncate(self._opened, size)
        return size

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    @contextmanager
    def _holding(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._error = self._error or error


class _Checked:
    """A container whose calls raise what went wrong in the system."""

    def __init__(self, container: Container, file: HeldFile) -> None:
        self._container = container
        self._file = file

    def define(self, dims: dict[str, int | None], variables: list[Variable], attrs: dict[str, Any]) -> None:
        """Make dimensions and variables."""
        self._container.define(dims, variables, attrs)
        self._file.check()

    def grow(self, dim: str, length: int) -> None:
        """Make a dimension longer."""
        self._container.grow(dim, length)
        self._file.check()

    def write(self, name: str, region: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Write values to a region of a variable."""
        self._container.write(name, region, values)
        self._file.check()

    def read(self, name: str, region: tuple[slice, ...]) -> NDArray[Any]:
        """Return the values of a region."""
        found = self._container.read(name, region)
        self._file.check()
        return found
