"""A cold page cache: drops the pages of files, and looks whether they are gone."""

import ctypes
import mmap
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from timing import Run

_LIBC = ctypes.CDLL(None, use_errno=True)


def evict(paths: Iterable[Path]) -> float:
    """Drop files from the page cache; return the share of their pages that stayed.

    Only this system's cache: a disk that is the file of another system may still be in that one's memory.
    """
    kept = pages = 0
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # Pages that are not written yet cannot be dropped.
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
        resident, total = residency(path)
        kept += resident
        pages += total
    return kept / max(pages, 1)


def residency(path: Path) -> tuple[int, int]:
    """Return how many pages of a file are in the page cache, and how many it has (mincore)."""
    length = path.stat().st_size
    if length == 0:
        return 0, 0
    with path.open("rb") as f, mmap.mmap(f.fileno(), length, prot=mmap.PROT_READ) as mapped:
        view = np.frombuffer(mapped, "u1")
        flags = np.zeros(-(-length // mmap.PAGESIZE), "u1")
        address = ctypes.c_void_p(view.ctypes.data)
        failed = _LIBC.mincore(address, ctypes.c_size_t(length), flags.ctypes.data_as(ctypes.c_void_p))
        del view
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
    return int((flags & 1).sum()), len(flags)


class Cold:
    """Runs with the files dropped before; remembers the largest share of pages that stayed."""

    def __init__(self, paths: Callable[[], Iterable[Path]]) -> None:
        self.paths = paths
        self.kept = 0.0

    def run(self, run: Run) -> Run:
        """Return the run after an eviction, which is not part of its time."""

        def cooled() -> float:
            self.kept = max(self.kept, evict(self.paths()))
            return run()

        return cooled

    def __str__(self) -> str:
        """Return what is to be said beside the times."""
        return (
            f"files dropped from the page cache before each run: {100 * self.kept:.2g} % of the pages stayed"
        )
