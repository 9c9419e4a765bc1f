"""What follows the condition: ORDER BY, LIMIT, OFFSET, DISTINCT, aliases, order of rows."""

from pathlib import Path

import h5py
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file, table

_topic = Topic("results", "results.h5")


@file("results.h5")
def write_results(path: Path) -> None:
    """Write a chunked table of columns with ties and gaps."""
    n = np.arange(50)
    with h5py.File(path, "w") as f:
        columns = {
            "id": n.astype("i4"),
            "value": (n * 17 % 50).astype("f4"),
            "bucket": (n * 7 % 4).astype("i1"),
            "gappy": np.where(n % 9 == 0, np.nan, 50.0 - n),
            "signed": np.array([0.0, -0.0] * 25),
        }
        for name, values in columns.items():
            f.create_dataset(name, data=values, chunks=(8,), compression="gzip").dims[0].label = "row"


def _select(f: Reference, order: np.ndarray, *names: str) -> list[list[object]]:
    return table(np.ones(len(order), bool), *(f(name)[order] for name in names))


_topic.sql(
    "rows_come_in_file_order",
    "SELECT id, value FROM '{file}' WHERE value > 40",
    ["id", "value"],
    lambda f: table(f("value") > 40, f("id"), f("value")),
)
_topic.sql(
    "order_by",
    "SELECT id, value FROM '{file}' WHERE value > 40 ORDER BY value",
    ["id", "value"],
    lambda f: _select(f, np.argsort(f("value"))[41:], "id", "value"),
)
_topic.sql(
    "order_by_descending",
    "SELECT id FROM '{file}' WHERE id < 5 ORDER BY value DESC",
    ["id"],
    lambda f: [[int(i)] for i in np.argsort(-f("value")[:5])],
)
_topic.sql(
    "ties_keep_the_order_of_rows",
    "SELECT bucket, id FROM '{file}' WHERE id < 12 ORDER BY bucket",
    ["bucket", "id"],
    lambda f: _select(f, np.argsort(f("bucket")[:12], kind="stable"), "bucket", "id"),
)
_topic.sql(
    "two_keys",
    "SELECT bucket, value FROM '{file}' WHERE id < 12 ORDER BY bucket DESC, value",
    ["bucket", "value"],
    lambda f: _select(f, np.lexsort((f("value")[:12], -f("bucket")[:12].astype(int))), "bucket", "value"),
)
_topic.sql(
    "limit",
    "SELECT id FROM '{file}' WHERE value < 25 LIMIT 3",
    ["id"],
    lambda f: table(f("value") < 25, f("id"))[:3],
)
_topic.sql(
    "limit_and_offset",
    "SELECT id FROM '{file}' WHERE value < 25 LIMIT 4 OFFSET 20",
    ["id"],
    lambda f: table(f("value") < 25, f("id"))[20:24],
)
_topic.sql(
    "offset_behind_the_end",
    "SELECT id FROM '{file}' WHERE value < 25 OFFSET 1000",
    ["id"],
    lambda f: [],
)
_topic.sql("limit_zero", "SELECT id FROM '{file}' LIMIT 0", ["id"], lambda f: [])
_topic.sql(
    "greatest_first",
    "SELECT id, value FROM '{file}' ORDER BY value DESC LIMIT 5",
    ["id", "value"],
    lambda f: _select(f, np.argsort(-f("value"))[:5], "id", "value"),
)
_topic.sql(
    "missing_first",
    "SELECT gappy FROM '{file}' WHERE id < 10 ORDER BY gappy NULLS FIRST",
    ["gappy"],
    lambda f: [[None], [None], *([float(v)] for v in np.sort(f("gappy")[:10]) if not np.isnan(v))],
)
_topic.sql(
    "missing_last",
    "SELECT gappy FROM '{file}' WHERE id < 10 ORDER BY gappy NULLS LAST",
    ["gappy"],
    lambda f: [*([float(v)] for v in np.sort(f("gappy")[:10]) if not np.isnan(v)), [None], [None]],
)
_topic.sql(
    "distinct",
    "SELECT DISTINCT bucket FROM '{file}' WHERE id > 10 ORDER BY bucket",
    ["bucket"],
    lambda f: [[0], [1], [2], [3]],
)
_topic.sql(
    "distinct_pairs",
    "SELECT DISTINCT bucket, value > 25 AS high FROM '{file}' WHERE id < 6 ORDER BY bucket, high",
    ["bucket", "high"],
    lambda f: sorted(
        map(list, {(int(b), bool(v > 25)) for b, v in zip(f("bucket")[:6], f("value")[:6], strict=True)})
    ),
)
_topic.sql(
    "order_by_what_is_not_selected",
    "SELECT id FROM '{file}' WHERE value > 45 ORDER BY -value",
    ["id"],
    lambda f: [[int(i)] for i in np.argsort(-f("value"))[:4]],
)
_topic.sql(
    "negative_zero_is_kept",
    "SELECT signed FROM '{file}' WHERE id < 4 AND signed = 0",
    ["signed"],
    lambda f: [[0.0], [-0.0], [0.0], [-0.0]],
)
_topic.sql(
    "no_condition",
    "SELECT count(*), max(id) FROM '{file}'",
    ["count(*)", "max(id)"],
    lambda f: [[50, 49]],
)
_topic.sql(
    "names_without_case_of_keywords",
    "select id as ID from '{file}' where id = 3 order by id limit 1;",
    ["ID"],
    lambda f: [[3]],
)
