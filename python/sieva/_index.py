"""Augmentations of a source: what was built, what there is, and global histograms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sieva import _native
from sieva._memory import size_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KINDS = ("zonemap", "bitmap", "sorted")
Progress = bool | Callable[[int, int], None]


@dataclass(frozen=True)
class BuildReport:
    """What a build did.

    Attributes
    ----------
    regions_built, regions_kept : int
        Regions that were read and indexed, and those that had all that was asked for.
    regions_renewed : int
        Of those read, regions whose content was the same as before, so that their records were taken over.
    bytes_read : int
        Bytes of data, as decoded.
    replicas_built : int
        Sorted replicas that were written.
    unreadable : list of tuple of str
        Where no array was named: arrays with data that cannot be read, and why.
    """

    regions_built: int
    regions_kept: int
    regions_renewed: int
    bytes_read: int
    replicas_built: int
    unreadable: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class ArrayStatus:
    """What there is of one array; sizes in bytes."""

    path: str
    regions: int
    with_zonemap: int
    with_bitmap: int
    zonemap_bytes: int
    bitmap_bytes: int
    data_bytes: int


@dataclass(frozen=True)
class ReplicaStatus:
    """A sorted replica: what it is sorted by, what it carries, its Zarr group and its size in bytes."""

    key: str
    columns: list[str]
    path: str
    bytes: int


@dataclass(frozen=True)
class IndexStatus:
    """What a source's store holds; ``print()`` shows it as a table.

    Attributes
    ----------
    store : str
        Where it is, or would be.
    exists, stale : bool
        Whether there is one; whether it was made for another state of the file, so that it is not used.
    arrays, replicas : list
        Of `ArrayStatus` and `ReplicaStatus`.
    notes : list of str
        What is damaged or not used, and why.
    """

    store: str
    exists: bool
    stale: bool
    arrays: list[ArrayStatus]
    replicas: list[ReplicaStatus]
    notes: list[str]

    def __str__(self) -> str:
        if not self.exists:
            return "\n".join([f"no store at {self.store}", *(f"note: {n}" for n in self.notes)])
        head = f"{self.store}{' (stale: not used; building again renews it)' if self.stale else ''}"
        rows = [("array", "regions", "zone maps", "bitmaps", "bytes", "of the data")]
        for a in self.arrays:
            size = a.zonemap_bytes + a.bitmap_bytes
            share = f"{100 * size / a.data_bytes:.2f} %" if a.data_bytes else ""
            rows.append(
                (a.path, str(a.regions), str(a.with_zonemap), str(a.with_bitmap), size_text(size), share)
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        lines = [head, *(table if self.arrays else [])]
        lines += [
            f"sorted by {r.key}: {', '.join(r.columns)} ({size_text(r.bytes)}) in {r.path}"
            for r in self.replicas
        ]
        return "\n".join([*lines, *(f"note: {n}" for n in self.notes)])


@dataclass(frozen=True)
class VerifyReport:
    """What a verification found: regions and rows compared, and what differs, in words."""

    regions: int
    rows: int
    differences: list[str]

    def __bool__(self) -> bool:
        """Whether all is well."""
        return not self.differences


@dataclass(frozen=True)
class Calibration:
    """Learnt costs in nanoseconds by name, how often each was observed, and the file that keeps them."""

    costs: dict[str, float]
    observations: dict[str, int]
    kept_in: str

    def __str__(self) -> str:
        lines = [
            f"{name:<20} {ns:>12.3f} ns  ({self.observations[name]} observations)"
            for name, ns in self.costs.items()
        ]
        return "\n".join([*lines, f"kept in {self.kept_in}"])


class Histogram:
    """Numbers of an array's values by bins that are powers of two wide; made by `Source.histogram`.

    It unpacks as ``counts, edges``. Histograms of arrays of one type and packing, also of different files,
    are added exactly by ``+`` (the merged one has the larger width; PDC, section IV).

    Attributes
    ----------
    counts : numpy.ndarray of int64, shape (n,)
    edges : numpy.ndarray of float64, shape (n + 1,)
        In decoded values. A bin holds its lower edge and not its upper one.
    missing : int
        Missing values, NaN included.
    infinities : tuple of int
        Values of minus and plus infinity, which no bin holds.
    rows : int
        All values, missing ones included.
    range : tuple of float or None
        Least and greatest value.
    """

    def __init__(self, native: _native.Histogram) -> None:
        self._native = native
        self.counts: NDArray[np.int64] = native.counts
        self.edges: NDArray[np.float64] = native.edges
        self.missing = native.missing
        self.infinities = native.infinities
        self.rows = native.rows
        self.range = native.range

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.counts, self.edges))

    def __add__(self, other: object) -> Histogram:
        if not isinstance(other, Histogram):
            return NotImplemented
        return Histogram(self._native.merged(other._native))

    def __repr__(self) -> str:
        span = "no values" if self.range is None else f"{self.range[0]:g} to {self.range[1]:g}"
        return (
            f"<sieva.Histogram {self.rows} values, {self.missing} missing, {span}, {len(self.counts)} bins>"
        )


def build(
    native: _native.Source,
    arrays: Sequence[str],
    kinds: Sequence[str],
    *,
    jobs: int | None,
    memory: int | None,
    precision: int,
    columns: Sequence[str] | None,
    progress: Progress,
) -> BuildReport:
    """Build augmentations; the work of `Source.build_index`."""
    if "sorted" in kinds and not arrays:
        raise ValueError("a sorted replica needs the name of the array to sort by")
    with told(progress, "indexing") as tell:
        report = _native.build_index(
            native,
            list(arrays),
            list(kinds),
            jobs=jobs,
            memory=memory,
            precision=precision,
            columns=None if columns is None else list(columns),
            progress=tell,
        )
    return BuildReport(**report)


def status(native: _native.Source) -> IndexStatus:
    """Return what a source's store holds."""
    found = _native.index_status(native)
    arrays = [ArrayStatus(**a) for a in found.pop("arrays")]
    replicas = [ReplicaStatus(**r) for r in found.pop("replicas")]
    return IndexStatus(arrays=arrays, replicas=replicas, **found)


@contextmanager
def told(progress: Progress, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give the function that is told of progress: the caller's, a bar on a terminal, or none."""
    if callable(progress):
        yield progress
        return
    if not progress or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
