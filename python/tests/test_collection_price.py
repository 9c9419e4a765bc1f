"""What a query of a collection takes lies within the bounds that were told before it was run."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import sieva
from sieva import errors
from test_collection_tasks import collection_of, folder  # noqa: F401 - a fixture

ASKED = (
    "SELECT flux",
    "SELECT object, source, flux, packed",
    "SELECT band, plate + 1, id, packed",
    "SELECT flux LIMIT 20 OFFSET 3",
    "SELECT count(*), avg(flux), median(packed)",
    "SELECT object, count(flux), sum(packed) GROUP BY object",
    "SELECT packed, plate, count(flux) AS n GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY n LIMIT 7 OFFSET 2",
    "SELECT count(flux) AS n HAVING count(flux) > 100000",
)
WHERE = ("", "WHERE flux > 0", "WHERE flux > plate AND plate < 8", "WHERE plate = 1000 AND flux > 1")


@pytest.mark.parametrize(("sql", "where"), list(product(ASKED, WHERE)))
def test_bounds_hold(folder: Path, sql: str, where: str) -> None:  # noqa: F811
    select, *rest = sql.split(" GROUP BY ")
    head, sep, tail = select.partition(" LIMIT ")
    if not sep:
        head, sep, tail = select.partition(" HAVING ")
    text = " ".join([head, where, sep + tail, *(f"GROUP BY {r}" for r in rest)])
    price = collection_of(folder).sql(text).price()
    query = collection_of(folder).sql(text)
    rows = query.to_arrow().num_rows
    stats = query.stats()
    assert rows in price.rows
    assert stats["bytes_read"] in price.bytes_read
    assert stats["requests"] in price.requests
    for part in (price.rows, price.bytes_read, price.bytes_returned, price.requests, price.seconds):
        assert part.low <= part.expected
        assert part.high is None or part.expected <= part.high


def test_no_value_is_read_and_nothing_is_noted(folder: Path) -> None:  # noqa: F811
    query = collection_of(folder).sql("SELECT flux WHERE flux > 0")
    price = query.price()
    assert query.stats()["hits"] is None
    assert query.stats()["evaluated"] == query.stats()["bytes_read"] == 0
    whole = collection_of(folder).sql("SELECT flux")
    assert price.rows.low == 0
    assert price.rows.high == whole.count() == whole.price().rows.high
    assert f"about {price.rows.expected} rows (0 to {price.rows.high})" in query.explain()


def test_a_source_that_is_gone_is_named(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    copy = tmp_path / "gone.h5"
    copy.write_bytes((folder / "run0.h5").read_bytes())
    kept = tmp_path / "kept.h5"
    kept.write_bytes((folder / "run1.h5").read_bytes())
    with sieva.Catalog(str(tmp_path / "catalog.sqlite")) as known:
        known.add(copy, kept, collection="runs")
    query = collection_of(tmp_path).sql("SELECT flux")
    copy.unlink()
    with pytest.raises(errors.SievaError, match=r"gone\.h5"):
        query.price()
