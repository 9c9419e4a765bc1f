"""What a plan of a collection means in each object: dates, enumerations, attributes, positions, keys."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

COLOURS = {"red": 0, "green": 1, "blue": 7}


def station(group: h5py.Group, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Write one station: days since another date in each, a colour and an unsigned packed value at each."""
    days, colour = np.arange(40.0) + n, rng.choice(list(COLOURS.values()), 40)
    packed = rng.integers(0, 60_000, 40).astype(">u2")
    packed[rng.integers(0, 40, 5)] = 65_535
    group["time"] = days
    group["time"].attrs["units"] = f"days since 2000-01-{1 + n:02}"
    group["time"].make_scale("time")
    group.create_dataset("colour", data=colour, dtype=h5py.enum_dtype(COLOURS, "i1"))
    group.create_dataset("level", data=packed)
    group["level"].attrs["_FillValue"] = np.array(65_535, ">u2")
    group["level"].attrs["scale_factor"] = 0.5 + n
    group["level"].attrs["offset_of_user"] = n
    for name in ("colour", "level"):
        group[name].dims[0].attach_scale(group["time"])
    # The first day of all is 2000-01-01.
    day = days + n
    if n % 3:
        group.attrs["height"] = 10 * n
    group.attrs["kind"] = "sea" if n % 2 else "land"
    missing = packed == 65_535
    level = np.where(missing, np.nan, packed.astype("f8") * (0.5 + n))
    return {"day": day, "colour": colour, "packed": packed, "missing": missing, "level": level, "n": n}


@pytest.fixture(scope="module")
def stations(tmp_path_factory: pytest.TempPathFactory) -> tuple[sieva.Collection, dict[str, dict[str, Any]]]:
    """Return a collection of seven stations in two files, and their values."""
    folder, rng, truth = tmp_path_factory.mktemp("stations"), np.random.default_rng(11), {}
    for file, numbers in (("a.h5", range(4)), ("b.h5", range(4, 7))):
        with h5py.File(folder / file, "w") as f:
            for n in numbers:
                truth[f"s{n}"] = station(f.create_group(f"s{n}"), n, rng)
    catalog = str(folder / "catalog.sqlite")
    with sieva.Catalog(catalog) as known:
        known.add(folder / "a.h5", folder / "b.h5", collection="stations")
    return sieva.collection("stations", catalog=catalog), truth


def hits(query: Any) -> dict[str, int]:
    table = query.to_arrow()
    return dict(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("condition", "keep"),
    [
        ("time >= '2000-01-20'", lambda s: s["day"] >= 19),
        ("time IN ('2000-01-08', '2000-01-09', NULL)", lambda s: np.isin(s["day"], [7, 8])),
        (
            "'2000-01-08' < time AND time BETWEEN '2000-01-01' AND '2000-01-11'",
            lambda s: (s["day"] > 7) & (s["day"] <= 10),
        ),
        ("colour = 'green'", lambda s: s["colour"] == 1),
        ("colour IN ('red', 'blue')", lambda s: s["colour"] != 1),
        (
            "NOT colour = 'blue' AND month(time) = 2",
            lambda s: (s["colour"] != 7) & (s["day"] >= 31) & (s["day"] < 60),
        ),
        ("raw(level) = 65535", lambda s: s["missing"]),
        ("level IS NULL OR raw(level) < 100", lambda s: s["missing"] | (s["packed"] < 100)),
        ("idx(time) < 3 AND level >= 0", lambda s: (np.arange(40) < 3) & ~s["missing"]),
        ("raw(level) * attr(level, 'scale_factor') > 9000", lambda s: s["packed"] * (0.5 + s["n"]) > 9000),
        ("level > 1000 * attr(level, 'offset_of_user')", lambda s: s["level"] > 1000 * s["n"]),
        ("level > height", lambda s: s["level"] > 10 * s["n"] if s["n"] % 3 else np.zeros(40, bool)),
        ("height IS NULL AND level > 5000", lambda s: (s["level"] > 5000) & (s["n"] % 3 == 0)),
        ("level > coalesce(height, 20000)", lambda s: s["level"] > (10 * s["n"] if s["n"] % 3 else 20_000)),
        ("NOT (level > height)", lambda s: s["level"] <= 10 * s["n"] if s["n"] % 3 else np.zeros(40, bool)),
        (
            "if(kind = 'sea', level, raw(level)) > 9000",
            lambda s: s["level"] > 9000 if s["n"] % 2 else s["packed"] > 9000,
        ),
    ],
)
def test_names_mean_what_they_do_in_each_object(stations: Any, condition: str, keep: Any) -> None:
    collection, truth = stations
    found = hits(collection.sql(f"SELECT object, count(colour) WHERE {condition} GROUP BY object"))
    want = {name: int(np.count_nonzero(keep(s))) for name, s in truth.items()}
    assert found == {name: n for name, n in want.items() if n}
    assert collection.sql(f"SELECT object, colour WHERE {condition}").count() == sum(want.values())


def test_missing_keys_have_a_type(stations: Any) -> None:
    collection, truth = stations
    table = collection.sql("SELECT object, height, height + 1, level WHERE idx(time) = 0").to_arrow()
    assert [str(f.type) for f in table.schema][1:3] == ["int64", "int64"]
    heights = [10 * s["n"] if s["n"] % 3 else None for s in truth.values()]
    assert table[1].to_pylist() == heights
    assert table[2].to_pylist() == [None if h is None else h + 1 for h in heights]
    groups = collection.sql("SELECT height, count(*), max(time) GROUP BY height").to_arrow()
    assert sorted(map(str, groups[0].to_pylist())) == sorted({str(h) for h in heights})


def test_parameters_of_aggregates_may_be_computed(stations: Any) -> None:
    collection, truth = stations
    values = np.concatenate([s["level"][~s["missing"]] for s in truth.values()])
    got = collection.sql("SELECT quantile(level, 0.5 + 0.25), quantile(level, 3 / 4)").to_arrow()
    assert got[0].to_pylist() == got[1].to_pylist() == [pytest.approx(np.quantile(values, 0.75), rel=1e-15)]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "SELECT level WHERE level > 'high'",
            errors.TypeMismatch,
            "'high' is text, but s0/level holds numbers",
        ),
        ("SELECT level WHERE colour = 'pink'", errors.InvalidValue, "'pink' is no value of the enumeration"),
        ("SELECT level WHERE time > 'soon'", errors.InvalidValue, "soon"),
        ("SELECT month(level)", errors.TypeMismatch, "needs one time coordinate"),
        ("SELECT raw(level + 1)", errors.TypeMismatch, "needs the name of an array"),
        ("SELECT idx(level)", errors.TypeMismatch, "needs the name of one dimension"),
        ("SELECT attr(level, 'colour')", errors.UnknownAttribute, "has no attribute 'colour'"),
        ("SELECT level WHERE max(level) > 1", errors.SyntaxError_, "an aggregate cannot stand here: max"),
        ("SELECT max(avg(level))", errors.SyntaxError_, "an aggregate cannot stand here: avg"),
        ("SELECT level, count(*) GROUP BY kind", errors.SyntaxError_, "'level' varies within a group"),
        ("SELECT quantile(level, height)", errors.TypeMismatch, "needs a constant, got height"),
        ("SELECT lower(level)", errors.TypeMismatch, "lower needs text, got float64"),
        ("SELECT nothing(level)", errors.UnknownFunction, "no function 'nothing'"),
    ],
)
def test_what_no_object_can_answer_is_told(
    stations: Any, text: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        stations[0].sql(text)
