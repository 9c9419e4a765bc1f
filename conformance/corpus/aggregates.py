"""Aggregates, groups, HAVING: over chunks, with missing values, of nothing, by coordinates and values."""

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file

_topic = Topic("aggregates", "aggregates.nc")
_CLOSE = 1e-12


@file("aggregates.nc")
def write_aggregates(path: Path) -> None:
    """Write a chunked field with gaps, a packed one, and classes to group by."""
    rng = np.random.default_rng(7)
    with netCDF4.Dataset(path, "w") as f:
        for name, size in (("time", 6), ("lat", 5), ("lon", 8)):
            f.createDimension(name, size)
        time = f.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "days since 2001-01-15", "noleap"
        time[:] = np.arange(6) * 30.5
        f.createVariable("lat", "f8", ("lat",))[:] = [-60, -30, 0, 30, 60]
        f.createVariable("lon", "f4", ("lon",))[:] = np.arange(8) * 45
        t = f.createVariable(
            "t", "f4", ("time", "lat", "lon"), fill_value=np.float32(-999), chunksizes=(2, 3, 5), zlib=True
        )
        values = rng.normal(15, 8, (6, 5, 8)).astype("f4")
        values[rng.random(values.shape) < 0.2] = -999
        t[:] = values
        f.createVariable("kind", "i2", ("lat", "lon"))[:] = rng.integers(0, 4, (5, 8))
        f.createVariable("big", "i8", ("lon",))[:] = 2**62 + np.arange(8)
        f.createVariable("tiny", "f8", ("lon",))[:] = 1e9 + np.arange(8) / 1024
        f.createVariable("cancels", "f8", ("lon",))[:] = [1e16, 1, -1e16, 1, 1e16, 1, -1e16, 1]
        f.createVariable("none", "f4", ("lon",), fill_value=np.float32(0))


def _warm(f: Reference) -> np.ndarray:
    return f("t") > 10


_topic.sql(
    "all_of_them",
    "SELECT count(*) AS n, count(t) AS k, min(t) AS lo, max(t) AS hi, sum(t) AS s, avg(t) AS m, "
    "stddev(t) AS sd, var(t) AS v FROM '{file}'",
    ["n", "k", "lo", "hi", "s", "m", "sd", "v"],
    lambda f: (lambda v: [[240, v.size, v.min(), v.max(), v.sum(), v.mean(), v.std(ddof=1), v.var(ddof=1)]])(
        f("t")[~np.isnan(f("t"))]
    ),
    tolerance=_CLOSE,
)
_topic.sql(
    "under_a_condition",
    "SELECT count(*), avg(t) FROM '{file}' WHERE t > 10 AND lat > -40",
    ["count(*)", "avg(t)"],
    lambda f: (lambda v: [[v.size, v.mean()]])(f("t")[_warm(f) & (f("lat") > -40)[:, None]]),
    tolerance=_CLOSE,
)
_topic.sql(
    "of_nothing",
    "SELECT count(*), count(t), sum(t), min(t), avg(t), stddev(t) FROM '{file}' WHERE t > 1e6",
    ["count(*)", "count(t)", "sum(t)", "min(t)", "avg(t)", "stddev(t)"],
    lambda f: [[0, 0, None, None, None, None]],
)
_topic.sql(
    "of_missing_only",
    "SELECT count(none), max(none) FROM '{file}'",
    ["count(none)", "max(none)"],
    lambda f: [[0, None]],
)
_topic.sql(
    "of_one_value",
    "SELECT stddev(t), var_pop(t) FROM '{file}' WHERE t = (SELECT max(t))",
    ["stddev(t)", "var_pop(t)"],
    lambda f: [[None, 0.0]],
)
_topic.sql(
    "population",
    "SELECT stddev_pop(t), var_pop(t) FROM '{file}'",
    ["stddev_pop(t)", "var_pop(t)"],
    lambda f: [[np.nanstd(f("t")), np.nanvar(f("t"))]],
    tolerance=_CLOSE,
)
_topic.sql(
    "variance_far_from_zero",
    "SELECT var(tiny) FROM '{file}'",
    ["var(tiny)"],
    lambda f: [[np.var(f("tiny") - 1e9, ddof=1)]],
    tolerance=_CLOSE,
)
_topic.sql("sum_that_cancels", "SELECT sum(cancels) FROM '{file}'", ["sum(cancels)"], lambda f: [[4.0]])
_topic.sql(
    "median_and_quantiles",
    "SELECT median(t), quantile(t, 0.1), quantile(t, 0.9) FROM '{file}' WHERE t > 10",
    ["median(t)", "quantile(t, 0.1)", "quantile(t, 0.9)"],
    lambda f: [np.quantile(f("t")[_warm(f)], [0.5, 0.1, 0.9]).tolist()],
    tolerance=_CLOSE,
)
_topic.sql(
    "count_distinct",
    "SELECT count(DISTINCT kind) FROM '{file}'",
    ["count(DISTINCT kind)"],
    lambda f: [[len(np.unique(f("kind")))]],
)
_topic.sql(
    "expressions_of_aggregates",
    "SELECT max(t) - min(t) AS span, sum(t) / count(t) AS mean FROM '{file}'",
    ["span", "mean"],
    lambda f: [[np.nanmax(f("t")) - np.nanmin(f("t")), np.nanmean(f("t"))]],
    tolerance=_CLOSE,
)
_topic.sql(
    "aggregates_of_expressions",
    "SELECT avg(t * 1.8 + 32), max(abs(lat)) FROM '{file}' WHERE t > 0",
    ["avg(t * 1.8 + 32)", "max(abs(lat))"],
    lambda f: [[(f("t")[f("t") > 0] * 1.8 + 32).mean(), 60.0]],
    tolerance=_CLOSE,
)
_topic.sql(
    "sum_of_integers", "SELECT sum(kind) FROM '{file}'", ["sum(kind)"], lambda f: [[int(f("kind").sum())]]
)
_topic.sql(
    "extremes_of_wide_integers",
    "SELECT min(big), max(big) FROM '{file}'",
    ["min(big)", "max(big)"],
    lambda f: [[2**62, 2**62 + 7]],
)


def _grouped(f: Reference, keys: np.ndarray, *reduce: Any) -> list[list[Any]]:  # noqa: ANN401
    """Reduce the warm values of each key, in the order of the keys."""
    keys = np.broadcast_to(keys, f("t").shape)
    rows = []
    for key in np.unique(keys[_warm(f)]):
        values = f("t")[_warm(f) & (keys == key)]
        rows.append([key, *(function(values) for function in reduce)])
    return rows


_topic.sql(
    "by_coordinate",
    "SELECT lat, count(*), avg(t) FROM '{file}' WHERE t > 10 GROUP BY lat ORDER BY lat",
    ["lat", "count(*)", "avg(t)"],
    lambda f: _grouped(f, f("lat")[:, None], len, np.mean),
    tolerance=_CLOSE,
)
_topic.sql(
    "by_position",
    "SELECT idx(lon) AS i, min(t), max(t) FROM '{file}' WHERE t > 10 GROUP BY idx(lon) ORDER BY i",
    ["i", "min(t)", "max(t)"],
    lambda f: _grouped(f, np.arange(8), np.min, np.max),
)
_topic.sql(
    "by_values_of_another_array",
    "SELECT kind, count(*), stddev_pop(t) FROM '{file}' WHERE t > 10 GROUP BY kind ORDER BY kind",
    ["kind", "count(*)", "stddev_pop(t)"],
    lambda f: _grouped(f, f("kind"), len, np.std),
    tolerance=_CLOSE,
)
_topic.sql(
    "by_expression",
    "SELECT floor(lon / 90) AS q, sum(t) FROM '{file}' WHERE t > 10 GROUP BY floor(lon / 90) ORDER BY q",
    ["q", "sum(t)"],
    lambda f: _grouped(f, np.floor(f("lon") / 90), np.sum),
    tolerance=_CLOSE,
)
_topic.sql(
    "by_month",
    "SELECT month(time) AS m, count(*) FROM '{file}' WHERE t > 10 GROUP BY month(time) ORDER BY m",
    ["m", "count(*)"],
    lambda f: _grouped(f, np.array([1, 2, 3, 4, 5, 6])[:, None, None], len),
)
_topic.sql(
    "by_two_keys",
    "SELECT lat, kind, count(*) FROM '{file}' WHERE t > 15 GROUP BY lat, kind ORDER BY lat, kind",
    ["lat", "kind", "count(*)"],
    lambda f: [
        [lat, kind, int(((f("t") > 15) & (f("lat") == lat)[:, None] & (f("kind") == kind)).sum())]
        for lat in f("lat").tolist()
        for kind in range(4)
        if ((f("t") > 15) & (f("lat") == lat)[:, None] & (f("kind") == kind)).any()
    ],
)
_topic.sql(
    "having",
    "SELECT lat, count(*) AS n FROM '{file}' WHERE t > 10 GROUP BY lat "
    "HAVING count(*) > 28 ORDER BY n DESC, lat",
    ["lat", "n"],
    lambda f: sorted(
        (r for r in _grouped(f, f("lat")[:, None], len) if r[1] > 28), key=lambda r: (-r[1], r[0])
    ),
)
_topic.sql(
    "missing_is_a_group_of_its_own",
    "SELECT t IS NULL AS gone, count(*) FROM '{file}' GROUP BY t IS NULL ORDER BY gone",
    ["gone", "count(*)"],
    lambda f: [[False, int((~np.isnan(f("t"))).sum())], [True, int(np.isnan(f("t")).sum())]],
)
_topic.sql(
    "lower_rank_is_counted_once_per_row",
    "SELECT count(*), sum(kind) FROM '{file}' WHERE t > 10",
    ["count(*)", "sum(kind)"],
    lambda f: [[int(_warm(f).sum()), int(np.broadcast_to(f("kind"), _warm(f).shape)[_warm(f)].sum())]],
)
_topic.sql(
    "groups_of_nothing",
    "SELECT lat, count(*) FROM '{file}' WHERE t > 1e6 GROUP BY lat",
    ["lat", "count(*)"],
    lambda f: [],
)
