"""PyTables with completely sorted indexes (CSI): in the order of the source, and in that of Energy.

The first with an index on Energy, and on Energy, x, y, z: the latter only up to 20 million rows, because
there it was slower for every query with more than one array, and takes four times as long to index.
Tables are not compressed.
"""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import tables
from protocol import NAMES, Columns, Job, Query, Variant, seconds, serve, size

BLOCK = 1 << 22
MOST_ROWS = 20_000_000


def _fill(job: Job, path: Path, is_sorted: bool) -> None:
    columns = job.columns()
    order = np.argsort(columns["Energy"], kind="stable") if is_sorted else slice(None)
    rows = len(columns["Energy"])
    kind = np.dtype([(name, "f4") for name in NAMES])
    with tables.open_file(path, "w") as f:
        table = f.create_table("/", "particles", kind, expectedrows=rows)
        for start in range(0, rows, BLOCK):
            part = np.empty(min(BLOCK, rows - start), kind)
            for name in NAMES:
                values, here = columns[name], slice(start, start + len(part))
                part[name] = values[order[here]] if isinstance(order, np.ndarray) else values[here]
            table.append(part)


def _index(path: Path, names: tuple[str, ...]) -> None:
    with tables.open_file(path, "a") as f:
        for name in names:
            getattr(f.root.particles.cols, name).create_csindex(tmp_dir=str(path.parent))


class Indexed:
    """An open table whose given columns are indexed."""

    def __init__(self, job: Job, names: tuple[str, ...], is_sorted: bool) -> None:
        self.job = job
        self.is_sorted = is_sorted
        self.names = names
        self.path = job.store / f"{'_'.join(names)}.h5"
        # Without the store of whole answers: every other one here works its answer out each time, too.
        self.options = {
            "ITERSEQ_MAX_SLOTS": 0,
            "MAX_NUMEXPR_THREADS": job.threads,
            "MAX_BLOSC_THREADS": job.threads,
        }
        self.file: tables.File | None = None
        self.table: tables.Table | None = None

    def load(self) -> dict[str, float]:
        """Write the table, then index it, each timed by itself."""
        filled = seconds(lambda: _fill(self.job, self.path, self.is_sorted))
        plain = size(self.path)
        indexed = seconds(lambda: _index(self.path, self.names))
        self.file = tables.open_file(self.path, **self.options)
        self.table = self.file.root.particles
        total = size(self.path)
        return {"seconds": filled, "index_seconds": indexed, "bytes": total, "index_bytes": total - plain}

    def _rows(self, query: Query) -> np.ndarray:
        assert self.table is not None  # noqa: S101 -- load comes first
        # Columns of the condition are the table's; the bounds go by name, so that they stay float32.
        bounds = {f"bound{i}": np.float32(value) for i, (_, _, value) in enumerate(query.terms)}
        condition = " & ".join(f"({array} {op} bound{i})" for i, (array, op, _) in enumerate(query.terms))
        return np.asarray(self.table.get_where_list(condition, bounds))

    def count(self, query: Query) -> int:
        """Count by the list of rows: PyTables has no shorter way."""
        return len(self._rows(query))

    def fetch(self, query: Query) -> Columns:
        """Read the rows of the list, of which a table has all fields together."""
        assert self.table is not None  # noqa: S101 -- load comes first
        rows = self.table.read_coordinates(self._rows(query))
        return {name: rows[name] for name in query.fetch}

    def close(self) -> None:
        """Remove the file."""
        assert self.file is not None  # noqa: S101 -- load comes first
        self.file.close()
        self.path.unlink()


def variants(job: Job) -> Iterator[Variant]:
    """Yield the choices of order and indexes."""
    with h5py.File(job.source) as f:
        rows = len(f[job.group]["Energy"])
    choices: list[tuple[str, tuple[str, ...], bool]] = [
        ("source order, CSI on Energy", ("Energy",), False),
        ("sorted by Energy, CSI", ("Energy",), True),
    ]
    if rows <= MOST_ROWS:
        choices.append(("source order, CSI on Energy, x, y, z", ("Energy", "x", "y", "z"), False))
    for name, indexed, is_sorted in choices:
        table = Indexed(job, indexed, is_sorted)
        yield Variant(name, table.load, table.count, table.fetch, table.close)


if __name__ == "__main__":
    serve(variants, {"tables": tables.__version__})
