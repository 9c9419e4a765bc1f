"""TileDB with query conditions: a dense array, and a sparse one whose dimension is Energy.

The sparse array is TileDB's own way to have data in the order of a value: bounds of Energy become a
range of the dimension, the others a query condition. Its aggregate `count` is of no use on the dense
one: it counts all cells, whatever the condition.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tiledb
from protocol import NAMES, Columns, Job, Query, Variant, seconds, serve, size

TILE = 1 << 17
CAPACITY = 1 << 16
BLOCK = 1 << 24


def _condition(terms: tuple[tuple[str, str, float], ...]) -> str | None:
    return " and ".join(f"{array} {op} {value!r}" for array, op, value in terms) or None


class Dense:
    """An array by row; what does not satisfy the condition comes back as fill values, which are cut out."""

    def __init__(self, job: Job, context: tiledb.Ctx) -> None:
        self.job, self.context = job, context
        self.path = job.store / "dense"
        self.array: tiledb.Array | None = None

    def load(self) -> dict[str, float]:
        """Write all columns."""
        spent = seconds(self._write)
        self.array = tiledb.open(str(self.path), ctx=self.context)
        return {"seconds": spent, "bytes": size(self.path)}

    def _write(self) -> None:
        columns = self.job.columns()
        rows = len(columns["Energy"])
        domain = tiledb.Domain(
            tiledb.Dim("row", (0, rows - 1), min(TILE, rows), dtype="u8", ctx=self.context)
        )
        attrs = [tiledb.Attr(name, dtype="f4", ctx=self.context) for name in NAMES]
        tiledb.Array.create(str(self.path), tiledb.ArraySchema(domain, attrs, ctx=self.context))
        with tiledb.open(str(self.path), "w", ctx=self.context) as array:
            array[:] = columns

    def _ask(self, query: Query, names: tuple[str, ...]) -> Columns:
        assert self.array is not None  # noqa: S101 -- load comes first
        result = self.array.query(attrs=list(names), cond=_condition(query.terms))[:]
        # The fill value of float32 is NaN, and no value here is.
        kept = ~np.isnan(result[names[0]])
        return {name: result[name][kept] for name in names}

    def count(self, query: Query) -> int:
        """Count what is left of the first array of the condition."""
        return len(self._ask(query, (query.terms[0][0],))[query.terms[0][0]])

    def fetch(self, query: Query) -> Columns:
        """Return the columns."""
        return self._ask(query, query.fetch)

    def close(self) -> None:
        """Remove the array."""
        assert self.array is not None  # noqa: S101 -- load comes first
        self.array.close()
        shutil.rmtree(self.path)


class Sparse:
    """An array whose cells lie in the order of Energy."""

    def __init__(self, job: Job, context: tiledb.Ctx) -> None:
        self.job, self.context = job, context
        self.path = job.store / "sparse"
        self.array: tiledb.Array | None = None

    def load(self) -> dict[str, float]:
        """Write all columns in blocks, and make one fragment of them."""
        written = seconds(self._write)
        joined = seconds(self._consolidate)
        self.array = tiledb.open(str(self.path), ctx=self.context)
        return {"seconds": written, "index_seconds": joined, "bytes": size(self.path)}

    def _write(self) -> None:
        columns = self.job.columns()
        energy = columns.pop("Energy")
        # One sort here: cells in global order make one fragment, which is the fastest to ask.
        order = np.argsort(energy, kind="stable")
        energy = energy[order]
        low, high = energy[0], energy[-1]
        dim = tiledb.Dim("Energy", (low, high), np.float32(high - low), dtype="f4", ctx=self.context)
        attrs = [tiledb.Attr(name, dtype="f4", ctx=self.context) for name in columns]
        schema = tiledb.ArraySchema(
            tiledb.Domain(dim), attrs, sparse=True, allows_duplicates=True, capacity=CAPACITY
        )
        tiledb.Array.create(str(self.path), schema)
        with tiledb.open(str(self.path), "w", ctx=self.context) as array:
            for start in range(0, len(energy), BLOCK):
                part = order[start : start + BLOCK]
                array[energy[start : start + BLOCK]] = {
                    name: values[part] for name, values in columns.items()
                }

    def _consolidate(self) -> None:
        # The blocks do not overlap, so that to join them gains little: only what is listed is joined.
        for mode in ("fragment_meta", "commits"):
            config = tiledb.Config({"sm.consolidation.mode": mode})
            tiledb.consolidate(str(self.path), config=config)

    def _ask(self, query: Query, names: tuple[str, ...]) -> Columns:
        assert self.array is not None  # noqa: S101 -- load comes first
        low, high = self.array.nonempty_domain()[0]
        for array, op, value in query.terms:
            if array == "Energy":
                bound = np.float32(value)
                if op.startswith(">"):
                    low = max(low, bound if op == ">=" else np.nextafter(bound, np.float32(np.inf)))
                else:
                    high = min(high, bound if op == "<=" else np.nextafter(bound, np.float32(-np.inf)))
        rest = tuple(term for term in query.terms if term[0] != "Energy")
        attrs = [name for name in names if name != "Energy"]
        wanted = self.array.query(
            attrs=attrs, dims=["Energy"] if "Energy" in names else [], cond=_condition(rest), order="U"
        )
        return wanted.multi_index[low:high]  # type: ignore[no-any-return]

    def count(self, query: Query) -> int:
        """Count the cells of the dimension, or of one array."""
        name = query.terms[-1][0]
        return len(self._ask(query, (name,))[name])

    def fetch(self, query: Query) -> Columns:
        """Return the columns."""
        return self._ask(query, query.fetch)

    def close(self) -> None:
        """Remove the array."""
        assert self.array is not None  # noqa: S101 -- load comes first
        self.array.close()
        shutil.rmtree(self.path)


def variants(job: Job) -> Iterator[Variant]:
    """Yield the two arrays."""
    threads = str(job.threads)
    config = {
        "sm.compute_concurrency_level": threads,
        "sm.io_concurrency_level": threads,
        "py.init_buffer_bytes": str(1 << 28),
    }
    context = tiledb.Ctx(tiledb.Config(config))
    for name, kind in (("dense, query condition", Dense), ("sparse by Energy, query condition", Sparse)):
        path: Path = job.store / name.split(",", 1)[0].split()[0]
        shutil.rmtree(path, ignore_errors=True)
        array = kind(job, context)
        yield Variant(name, array.load, array.count, array.fetch, array.close)


if __name__ == "__main__":
    serve(variants, {"tiledb": tiledb.__version__})
