"""One outcome on every path: values that cannot be represented, guards, and what decides without them.

A file whose arrays have several regions is asked by every way. What is expected comes from Python's integers.
"""

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

N, CHUNK = 210_000, 30_000
LAST = 2**63 - 1
WAYS = ("scan", "zonemap", "bitmap", "sorted", "auto")


def arrays():
    """Return x, and integers of which few are as large as they can be, all in one region."""
    x = np.arange(N, dtype="f8") - 100
    i = np.arange(N, dtype="i8") % 1000
    u = (np.arange(N) % 7).astype("u8")
    i[70_000:70_010] = LAST
    i[75_000] = -(2**63)
    u[70_020] = 2**64 - 1
    return {"x": x, "i": i, "u": u}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Give the file with indexes of all kinds."""
    path = tmp_path_factory.mktemp("outcomes") / "large.h5"
    with h5py.File(path, "w") as f:
        scale = f.create_dataset("t", data=np.arange(N))
        scale.make_scale("t")
        # One dimension beside it, so that conditions on fewer dimensions are made ahead.
        f.create_dataset("y", data=np.array([0, LAST, 3])).make_scale("y")
        for name, values in arrays().items():
            f.create_dataset(name, data=values, chunks=(CHUNK,)).dims[0].attach_scale(scale)
        wide = f.create_dataset("w", data=np.arange(3 * N, dtype="i4").reshape(3, N), chunks=(3, CHUNK))
        wide.dims[0].attach_scale(f["y"])
        wide.dims[1].attach_scale(scale)
    source = sieva.open(path)
    source.build_index()
    source.build_index("x", "i", "w", kinds=["sorted"])
    return source


def outcomes(ask):
    """Return what each way comes to: an answer, or the kind of the error."""

    def of(access, threads):
        try:
            return ask(access, threads)
        except errors.NoIndex:
            return None
        except errors.SievaError as error:
            return error.kind

    found = [of(access, threads) for access in WAYS for threads in (1, 2)]
    return {repr(outcome) for outcome in found if outcome is not None}


CONDITIONS = {
    # Each side decides by itself, in either order.
    "i * 2 > 0 OR x >= -1000": N,
    "x >= -1000 OR i * 2 > 0": N,
    "i * 2 > 0 OR x >= 0": N - 1,
    "x >= 0 OR i * 2 > 0": N - 1,
    "i < 1000 AND i >= 0 AND i * 2 > 10": None,
    "i * 2 > 10 AND i BETWEEN 0 AND 999": None,
    "NOT (i * 2 <= 10 OR i NOT BETWEEN 0 AND 999)": None,
    "i + 1 > 5 AND idx(t) < 60000": None,
    # Guards take what they take.
    "if(i BETWEEN 0 AND 999, i * 2, 0) > 10": None,
    "coalesce(if(i < 1000, 1, NULL), 0) = 1 AND i < 1000": None,
    "coalesce(i, i * 2) >= 0": N - 1,
    "u - 5 < 0 AND u >= 5": 0,
    "u >= 5 AND u - 5 = 0": N // 7,
    "int64(u) > 3 AND u < 100": None,
    # A value that is needed.
    "i * 2 > 0": "arithmetic-overflow",
    "coalesce(if(i < 1000, 1, NULL), i + 1) = 1": "arithmetic-overflow",
    "i * 2 > 0 AND x > 0": "arithmetic-overflow",
    "x > 0 AND i * 2 > 0": "arithmetic-overflow",
    "i * 2 > 0 OR x < 0": "arithmetic-overflow",
    "NOT (i * 2 > 0)": "arithmetic-overflow",
    "(i * 2 > 0) IS NULL": "arithmetic-overflow",
    "u - 5 < 0": "arithmetic-overflow",
    "-i > 0": "arithmetic-overflow",
    "abs(i) > 5": "arithmetic-overflow",
    "int64(u) > 3": "arithmetic-overflow",
    # Over another dimension: made ahead.
    "y * 2 > 0 AND w >= 0": "arithmetic-overflow",
    "y * 2 > 0 AND y < 100 AND w >= 0": N,
    "y < 100 AND w >= 0 AND y * 2 > 0": N,
    "y * 2 > 0 OR w >= 0": 3 * N,
    "w >= 0 AND (w < 0 OR y * 2 >= 0) AND (y = 0 OR y = 3)": 2 * N,
    "y * 2 > 0 AND w < 0": 0,
}


def expected(condition):
    """Return what Python's integers say, or what is written above."""
    given = CONDITIONS[condition]
    if given is not None:
        return given
    names = {name: values.astype(object) for name, values in arrays().items()}
    i, u, t = names["i"], names["u"], np.arange(N)
    return int(
        {
            "i < 1000 AND i >= 0 AND i * 2 > 10": ((i >= 0) & (i < 1000) & (i > 5)),
            "i * 2 > 10 AND i BETWEEN 0 AND 999": ((i >= 0) & (i < 1000) & (i > 5)),
            "NOT (i * 2 <= 10 OR i NOT BETWEEN 0 AND 999)": ((i >= 0) & (i < 1000) & (i > 5)),
            "i + 1 > 5 AND idx(t) < 60000": ((i + 1 > 5) & (t < 60_000)),
            "if(i BETWEEN 0 AND 999, i * 2, 0) > 10": ((i >= 0) & (i < 1000) & (i > 5)),
            "coalesce(if(i < 1000, 1, NULL), 0) = 1 AND i < 1000": (i < 1000),
            "int64(u) > 3 AND u < 100": ((u > 3) & (u < 100)),
        }[condition].sum()
    )


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_index_does_not_change_the_outcome(source, condition):
    def count(access, threads):
        return source.query(condition, access=access, threads=threads).count()

    def selection(access, threads):
        return len(source.query(condition, access=access, threads=threads).selection())

    def aggregate(access, threads):
        text = f"SELECT count(*) AS n WHERE {condition}"
        return source.sql(text, access=access, threads=threads).to_arrow()["n"][0].as_py()

    for ask in (count, selection, aggregate):
        assert outcomes(ask) == {repr(expected(condition))}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT sum(i * 2) AS s WHERE i BETWEEN 0 AND 999", None),
        ("SELECT sum(if(i BETWEEN 0 AND 999, i * 2, 0)) AS s WHERE x >= -1000", None),
        ("SELECT sum(i * 2) AS s WHERE x >= 0", "arithmetic-overflow"),
        ("SELECT i * 2 AS s, count(*) WHERE i BETWEEN 0 AND 3 GROUP BY i * 2", [0, 2, 4, 6]),
        (
            "SELECT i * 2 AS s, count(*) WHERE i BETWEEN 0 AND 3 OR i > 1000 GROUP BY i * 2",
            "arithmetic-overflow",
        ),
        ("SELECT i * 2 AS s WHERE i BETWEEN 0 AND 999 ORDER BY i + 1, x LIMIT 2", [0, 0]),
        ("SELECT i AS s WHERE x >= 0 ORDER BY i + 1 LIMIT 2", "arithmetic-overflow"),
        # Rows before the last one that is wanted are needed, others are not.
        ("SELECT i AS s WHERE i * 2 > 10 LIMIT 3", [6, 7, 8]),
        ("SELECT i AS s WHERE i * 2 > 10 LIMIT 2 OFFSET 69000", "any"),
        ("SELECT i AS s WHERE i * 2 > 10 LIMIT 2 OFFSET 69700", "arithmetic-overflow"),
        ("SELECT i AS s WHERE i * 2 = 1998 LIMIT 70", "any"),
        ("SELECT i AS s WHERE i * 2 = 1998 LIMIT 71", "arithmetic-overflow"),
    ],
)
def test_only_what_is_needed_is_an_error(source, text, wanted):
    i = arrays()["i"].astype(object)
    fine = i[(i >= 0) & (i < 1000)]

    def ask(access, threads):
        return source.sql(text, access=access, threads=threads).to_arrow()["s"].to_pylist()

    found = outcomes(ask)
    assert len(found) == 1
    if wanted == "any":
        assert found != {repr("arithmetic-overflow")}
    else:
        assert found == {repr([int(fine.sum()) * 2] if wanted is None else wanted)}


def test_the_message_is_of_the_row_that_matters(source):
    # Rows 70000 to 70009 are excluded, and the error is that of row 75000.
    with pytest.raises(errors.Overflow, match=r"^-9223372036854775808 - 1 is out of the range"):
        source.query("i - 1 < 5 AND i < 1000").count()
    with pytest.raises(errors.Overflow, match=r"^-9223372036854775808 \* 2 is out of the range"):
        source.query("i < 1000 AND i * 2 < 5").count()
    with pytest.raises(errors.Overflow, match=r"^-9223372036854775808 \* 2 is out of the range"):
        source.sql("SELECT sum(i * 2) WHERE i < 1000").to_arrow()
    with pytest.raises(errors.Overflow) as caught:
        source.query("i * 2 > 0").count()
    assert "float64(x)" in caught.value.hint


def test_of_no_values_nothing_is_one(source):
    assert source.query("x IN ()").count() == 0
    assert source.query("x NOT IN ()").count() == N
    assert source.query("x IN () OR x < -98").count() == 2
    assert source.query(sieva.col("x").isin([])).count() == 0
    assert source.query(~sieva.col("x").isin([]) & (sieva.col("x") < 0)).count() == 100
    assert source.sql("SELECT x IN () AS none WHERE x < -98").to_arrow()["none"].to_pylist() == [False, False]


def test_a_chain_goes_on_behind_a_guard(source):
    expected = sum(2 < v < 5 for v in arrays()["x"])
    assert source.query("1 < if(x > 2, x, 0) < 5").count() == expected == 2
