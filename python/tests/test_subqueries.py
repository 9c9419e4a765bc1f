"""Scalar subqueries: planned when a query is made, answered once, when it is run."""

import h5py
import numpy as np
import pyarrow as pa
import pytest
import sieva
from sieva import errors

A = np.array([[1.5, np.nan, 3.0, -0.0], [7.0, -np.inf, 2.0, 9.0], [4.0, 5.0, 6.0, 8.0]])
U = np.array([3, 2**63, 2**64 - 1], "u8")


@pytest.fixture
def path(tmp_path):
    """Write a file of two dimensions with values that are easily got wrong."""
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        for name, data, dims in (("a", A, "xy"), ("c", np.arange(3.0), "x"), ("u", U, "x")):
            file[name] = data
            for axis, dim in enumerate(dims):
                file[name].dims[axis].label = dim
    return path


@pytest.fixture
def session():
    """Give a session, which counts what is evaluated."""
    with sieva.Session() as made:
        yield made


def evaluations(session):
    return session.stats()["evaluations"]


MEAN = A[np.isfinite(A)].mean()
ASKED = [
    ("a > (SELECT avg(a) WHERE a > -1e300)", A > MEAN),
    ("a > (SELECT avg(a) WHERE a > -1e300) + 1", A > MEAN + 1),
    ("NOT a <= (SELECT max(c))", A > 2),
    ("a = (SELECT min(a))", np.isneginf(A)),
    ("a > (SELECT max(a) WHERE a > 100)", np.zeros(A.shape, bool)),
    ("a > (SELECT max(a) WHERE a > 100) OR c = 1", np.broadcast_to(np.arange(3)[:, None] == 1, A.shape)),
    ("a IS NULL AND (SELECT count(*) WHERE a > 3) = 6", np.isnan(A)),
    ("a BETWEEN (SELECT min(c)) AND (SELECT max(c) WHERE c < (SELECT max(c)))", (A >= 0) & (A <= 1)),
    ("idx(x) < (SELECT max(c))", np.broadcast_to(np.arange(3)[:, None] < 2, A.shape)),
]


@pytest.mark.parametrize(("condition", "expected"), ASKED)
def test_the_answer_is_that_of_numpy_and_making_the_query_runs_nothing(path, session, condition, expected):
    with session.open(path) as source:
        query = source.query(condition, select=["a"])
        plan = query.plan()
        assert list(query.rows.items()) == [("x", 3), ("y", 4)]
        text = query.explain()
        price = query.price()
        low, high = query.estimate()
        assert (evaluations(session), query.stats()["bytes_read"]) == (0, 0)
        assert "is not known before the query is run" in text
        again = source.query(plan)
        assert again.plan() == plan
        assert evaluations(session) == 0
        assert query.count() == expected.sum() == again.count()
        assert low <= expected.sum() <= high
        assert price.rows.low <= expected.sum() <= price.rows.high
        assert (price.bytes_read.low, price.bytes_read.high) == (0, None)
        for asked in (query, again):
            np.testing.assert_array_equal(asked.selection().mask(), expected)
            np.testing.assert_array_equal(asked.read("a"), A[expected])
        assert "is not known before" not in query.explain()


def test_a_subquery_is_answered_once(path, session):
    with session.open(path) as source:
        query = source.sql(
            "SELECT a, (SELECT max(c)) AS m WHERE a > (SELECT max(c)) ORDER BY a - (SELECT max(c))"
        )
        assert evaluations(session) == 0
        query.count()
        known = evaluations(session)
        assert known == 2
        assert query.to_arrow()["m"].to_pylist() == [2.0] * int((A > 2).sum())
        query.read("a - (SELECT max(c))")
        assert evaluations(session) == known


def test_a_missing_value_has_the_type_of_one_that_is_there(path):
    with sieva.open(path) as source:
        with pytest.raises(errors.SyntaxError_, match="nothing says which rows"):
            source.sql("SELECT (SELECT count(*)) AS n WHERE c = 0")
        sql = "SELECT (SELECT count(c)) AS n, (SELECT max(u) WHERE c > 9) AS none WHERE c = 0"
        table = source.sql(sql).to_arrow()
        assert table.to_pylist() == [{"n": 3, "none": None}]
        assert table.schema.types == [pa.int64(), pa.uint64()]
        beside = source.sql("SELECT u - (SELECT min(idx(x))) AS v").to_arrow()["v"]
        assert (beside.type, beside.to_pylist()) == (pa.uint64(), U.tolist())


def test_what_is_wrong_with_a_subquery_is_told_when_that_is_known(path):
    with sieva.open(path) as source:
        with pytest.raises(errors.TypeMismatch, match="has 2 columns, not one"):
            source.query("a > (SELECT a, c)")
        with pytest.raises(errors.TypeMismatch, match="needs a constant, got \\(SELECT") as caught:
            source.sql("SELECT quantile(a, (SELECT 0.5 * max(c)))")
        assert "before the query is run" in caught.value.hint
        with pytest.raises(errors.UnknownArray):
            source.query("a > (SELECT max(b))")
        query = source.query("a > (SELECT c)")
        with pytest.raises(errors.InvalidValue, match="more than one row"):
            query.count()


def test_a_subquery_of_another_file(path, tmp_path):
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["limit"] = np.array([6.5])
    with sieva.open(path) as source:
        query = source.query(f"a > (SELECT max(limit) FROM '{other}')", select=["a"])
        for asked in (query, source.query(query.plan())):
            np.testing.assert_array_equal(asked.selection().mask(), A > 6.5)
        with pytest.raises(FileNotFoundError):
            source.query("a > (SELECT max(limit) FROM 'nowhere.h5')")
