"""Indexes of a source: what is built, what there is, and whether it is right.

The words: a *region* is a block of an array, its unit of indexing. A *zone map* is the least and greatest
value of each region, with a histogram. A *bitmap* index tells which of its elements lie in which range.
A *sorted replica* is a copy of arrays, ordered by one of them. All lie in the *store* of the source.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._memory import memory_bytes, size_text
from sieva._printable import printable, shown
from sieva._progress import progress_to

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_DIGITS = 17
_LONGEST_WAIT = 86_400
_MOST_NAMES = 6
KINDS = ("zonemap", "bitmap", "sorted")


@dataclass(frozen=True)
class BuildReport:
    """What `Source.build_index` did."""

    regions_built: int
    """Regions of which zone maps or bitmaps were built."""
    regions_kept: int
    """Regions that had all that was asked for."""
    regions_renewed: int
    """Of those built, regions whose data were as before: what was known of them was taken over."""
    bytes_read: int
    """Bytes of data, decoded. Sorting reads its own, which are not in it."""
    replicas_built: int
    """Sorted replicas written."""
    unreadable: tuple[tuple[str, str], ...]
    """Arrays that were left out as their data cannot be read, and why; a named one is an error instead."""
    seconds: float
    """How long it took."""
    notes: tuple[str, ...] = ()
    """What went wrong besides, such as a catalog that could not be told of what was built."""

    @shown
    def __repr__(self) -> str:
        parts = [f"{self.regions_built:,} regions built, {self.regions_kept:,} kept"]
        if self.regions_renewed:
            parts.append(f"{self.regions_renewed:,} of those built unchanged")
        if self.replicas_built:
            parts.append(f"{self.replicas_built} sorted replicas")
        parts.append(f"{size_text(self.bytes_read)} read in {self.seconds:.1f} s")
        parts += [f"{_plain(path)} left out: {why}" for path, why in self.unreadable]
        parts += map(_plain, self.notes)
        return f"<sieva.BuildReport {'; '.join(parts)}>"


@dataclass(frozen=True)
class ArrayStatus:
    """What is indexed of an array."""

    path: str
    """Path of the array."""
    regions: int
    """Regions that it is cut into."""
    region: tuple[int, ...]
    """Shape of the largest one."""
    region_bytes: int
    """Bytes of its elements, decoded."""
    with_zonemap: int
    """Of those, regions that have a zone map."""
    with_bitmap: int
    """Of those, regions that have a bitmap index."""
    zonemap_bytes: int
    """Bytes of zone maps and histograms in the store."""
    bitmap_bytes: int
    """Bytes of bitmap indexes in the store."""
    data_bytes: int
    """Bytes of the array's data, decoded."""


@dataclass(frozen=True)
class ReplicaStatus:
    """A sorted replica."""

    key: str
    """Path of the array that it is sorted by."""
    columns: tuple[str, ...]
    """Paths of the arrays that it carries, the key first."""
    path: Path | str
    """Its directory, which is a Zarr group; its address where it lies beside a remote object."""
    bytes: int
    """Bytes that it takes."""


@dataclass(frozen=True)
class IndexStatus:
    """What there is of indexes of a source; prints as a table."""

    store: Path | str
    """Where they are, or would be; an address where they lie beside a remote object."""
    exists: bool
    """Whether there is a store."""
    stale: bool
    """Whether it was made for another state of the file: it is not used; building renews it."""
    arrays: tuple[ArrayStatus, ...]
    """Arrays with zone maps or bitmaps."""
    replicas: tuple[ReplicaStatus, ...]
    """Sorted replicas."""
    notes: tuple[str, ...]
    """What is damaged or not used, and why."""

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(asdict(self), indent=2, default=str)

    @shown
    def __repr__(self) -> str:
        lines = [f"store  {_plain(str(self.store))}{self._state()}"]
        if self.arrays:
            head = ("array", "regions", "each", "zone maps", "bitmaps", "bytes", "% of data")
            lines += ["", *_table(head, map(_array_cells, self.arrays))]
        if self.replicas:
            sizes = {a.path: a.data_bytes for a in self.arrays}
            rows = [_replica_cells(replica, sizes) for replica in self.replicas]
            lines += ["", *_table(("sorted by", "columns", "bytes", "% of data"), rows)]
        lines += [f"note   {_plain(note)}" for note in self.notes]
        return "\n".join(lines)

    def _state(self) -> str:
        if self.stale:
            return " (stale: the file was changed; building renews it)"
        return "" if self.exists else " (there is none)"


@dataclass(frozen=True)
class VerifyReport:
    """What `Source.verify_index` found. It is true where nothing differs."""

    regions: int
    """Regions whose indexes were compared with the data."""
    rows: int
    """Rows of sorted replicas that were compared with the data."""
    differences: tuple[str, ...]
    """What differs from the data, or is damaged; the first 20."""

    def __bool__(self) -> bool:
        return not self.differences

    @shown
    def __str__(self) -> str:
        found = "all as it should be" if self else f"{len(self.differences)} differences"
        lines = [
            f"{self.regions:,} regions and {self.rows:,} rows of replicas compared with the data: {found}"
        ]
        return "\n".join([*lines, *map(_plain, self.differences)])


@dataclass(frozen=True)
class Calibration:
    """What reading costs on this host, as `Source.calibrate` measured it; prints as a table."""

    costs: dict[str, tuple[float, int]]
    """By name: nanoseconds, and the number of observations that they come from."""
    kept_in: Path
    """The file that keeps them for later queries."""

    @shown
    def __repr__(self) -> str:
        rows = [(name, f"{cost:.3f}", f"{seen:,}") for name, (cost, seen) in self.costs.items()]
        return "\n".join(_table(("cost", "nanoseconds", "observations"), rows))


def build(
    native: _native.Source,
    arrays: Sequence[str],
    *,
    kinds: Sequence[str],
    jobs: int | None,
    memory: int | str | None,
    precision: int,
    region_size: int | str | None,
    columns: Sequence[str] | None,
    lock_timeout: float,
    progress: bool | Callable[[int, int], None],
) -> BuildReport:
    """Build indexes; see `Source.build_index`."""
    check_options(arrays, kinds, precision, columns, lock_timeout)
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs={jobs}: expected at least 1")
    started = time.perf_counter()
    with progress_to(progress, "indexing") as told:
        done = _native.build_index(
            native,
            list(arrays),
            list(kinds),
            jobs=jobs,
            memory=memory_bytes(memory),
            precision=precision,
            region_size=memory_bytes(region_size),
            columns=None if columns is None else list(columns),
            lock_timeout=timedelta(seconds=lock_timeout),
            progress=told,
        )
    return report(done, time.perf_counter() - started)


def report(done: dict[str, Any], seconds: float) -> BuildReport:
    """Return what a build did, as the core tells it."""
    done["unreadable"] = tuple((path, why) for path, why in done["unreadable"])
    done["notes"] = tuple(done["notes"])
    return BuildReport(**done, seconds=seconds)


def check_options(
    arrays: Sequence[str],
    kinds: Sequence[str],
    precision: int,
    columns: Sequence[str] | None,
    lock_timeout: float,
) -> None:
    """Refuse what no build can do."""
    _check_list(kinds, "kinds")
    if "sorted" in kinds and not arrays:
        raise errors.InvalidValue(
            "a sorted replica is sorted by one array: none is named", 'build_index("TEMP", kinds=["sorted"])'
        )
    if columns is not None and "sorted" not in kinds:
        raise errors.InvalidValue("columns are those of a sorted replica", 'kinds=["sorted"] builds one')
    if not 1 <= precision <= _MOST_DIGITS:
        raise ValueError(f"precision={precision}: expected 1 to {_MOST_DIGITS} decimal digits")
    if not 0 <= lock_timeout <= _LONGEST_WAIT:
        raise ValueError(f"lock_timeout={lock_timeout}: expected 0 to {_LONGEST_WAIT} seconds")


def status(native: _native.Source) -> IndexStatus:
    """Return what there is; see `Source.index_status`."""
    found = _native.index_status(native)
    replicas = [
        ReplicaStatus(r["key"], tuple(r["columns"]), _place(r["path"]), r["bytes"]) for r in found["replicas"]
    ]
    order = {path: i for i, path in enumerate(native.arrays())}

    def in_order(array: ArrayStatus) -> int:
        # Of a file that was changed, the store may have arrays that are gone.
        return order.get(array.path, len(order))

    return IndexStatus(
        store=_place(found["store"]),
        exists=found["exists"],
        stale=found["stale"],
        arrays=tuple(sorted((ArrayStatus(**array) for array in found["arrays"]), key=in_order)),
        replicas=tuple(replicas),
        notes=tuple(found["notes"]),
    )


def verify(
    native: _native.Source, everything: bool, progress: bool | Callable[[int, int], None]
) -> VerifyReport:
    """Compare indexes with the data; see `Source.verify_index`."""
    with progress_to(progress, "verifying", is_bytes=False) as told:
        found = _native.verify_index(native, everything, told)
    return VerifyReport(found["regions"], found["rows"], tuple(found["differences"]))


def drop(native: _native.Source, arrays: Sequence[str], kinds: Sequence[str] | None) -> bool:
    """Remove indexes; see `Source.drop_index`."""
    if kinds is not None:
        _check_list(kinds, "kinds")
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown or not kinds:
            raise errors.InvalidValue(f"kinds={list(kinds)!r}: expected some of {', '.join(KINDS)}")
    if not arrays and (kinds is None or set(kinds) == set(KINDS)):
        return _native.drop_index(native)
    if kinds is not None and set(kinds) == {"sorted"}:
        return _native.drop_replicas(native, list(arrays)) > 0
    what = f"of {', '.join(arrays)}" if arrays else f"of the kind {' or '.join(kinds or ())}"
    raise errors.Unsupported(
        f"zone maps and bitmaps {what} cannot be dropped alone",
        "drop the whole store, and build what is to stay again",
    )


def calibrate(native: _native.Source) -> Calibration:
    """Measure what reading costs; see `Source.calibrate`."""
    costs, kept_in = _native.calibrate(native)
    return Calibration({name: (cost, seen) for name, cost, seen in costs}, Path(kept_in))


def _check_list(items: object, name: str) -> None:
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise TypeError(f"{name} is a list, got {items!r}")


def percent(part: int, whole: int) -> str:
    """Return what share of the data an index takes."""
    if not whole:
        return "-"
    share = 100 * part / whole
    return f"{share:.2g} %" if share < 99.5 else f"{share:.0f} %"


def _place(name: str) -> Path | str:
    return name if "://" in name else Path(name)


def _array_cells(array: ArrayStatus) -> tuple[str, ...]:
    taken = array.zonemap_bytes + array.bitmap_bytes
    return (
        _plain(array.path),
        f"{array.regions:,}",
        size_text(array.region_bytes),
        f"{array.with_zonemap:,}",
        f"{array.with_bitmap:,}",
        size_text(taken),
        percent(taken, array.data_bytes),
    )


def _replica_cells(replica: ReplicaStatus, sizes: dict[str, int]) -> tuple[str, ...]:
    known = [sizes.get(column) for column in replica.columns]
    whole = sum(size for size in known if size is not None) if None not in known else 0
    columns = ", ".join(map(_plain, replica.columns))
    return _plain(replica.key), columns, size_text(replica.bytes), percent(replica.bytes, whole)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return aligned lines: numbers to the right, the text in front to the left."""
    cells = [head, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    texts = 2 if head[1] == "columns" else 1

    def line(row: tuple[str, ...]) -> str:
        parts = [
            c.ljust(w) if i < texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    return [line(row) for row in cells]


def _plain(text: str) -> str:
    """Return a text of a file without what would command a terminal, on one line."""
    return printable(text)


def summary(names: Sequence[str], report: BuildReport, found: IndexStatus, kinds: Sequence[str]) -> str:
    """Return what a build did, in one line for people.

    Parameters
    ----------
    names
        Paths of the arrays that were asked for; none: all.
    report, found
        What was done, and what there is now.
    kinds
        What was asked for.
    """
    mine = [array for array in found.arrays if not names or array.path in names]
    shown = names or [array.path for array in mine]
    who = ", ".join(map(_plain, shown)) if len(shown) <= _MOST_NAMES else f"{len(shown)} arrays"
    data = sum(array.data_bytes for array in mine)
    parts = []
    if "zonemap" in kinds or "bitmap" in kinds:
        parts += _regions(report)
        zones = sum(array.zonemap_bytes for array in mine)
        parts.append(f"zone maps {size_text(zones)} ({percent(zones, data)})")
    if "bitmap" in kinds:
        bitmaps = sum(array.bitmap_bytes for array in mine)
        parts.append(f"bitmaps {size_text(bitmaps)} ({percent(bitmaps, data)})")
    if "sorted" in kinds:
        replicas = [replica for replica in found.replicas if replica.key in names]
        size = size_text(sum(replica.bytes for replica in replicas))
        state = "" if report.replicas_built else ", there already"
        parts.append(f"sorted {size}{state}")
    return f"{who or 'no arrays'}: {', '.join(parts)} in {report.seconds:.1f} s"


def _regions(report: BuildReport) -> list[str]:
    if not report.regions_built:
        return [f"{report.regions_kept:,} regions there already"]
    parts = [f"{report.regions_built:,} regions"]
    if report.regions_renewed:
        parts[0] += f" ({report.regions_renewed:,} unchanged)"
    if report.regions_kept:
        parts.append(f"{report.regions_kept:,} there already")
    return [*parts, f"{size_text(report.bytes_read)} read"]
