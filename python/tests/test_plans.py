"""Logical plans: one form for a question, through bytes, JSON and text and back, and the same answer."""

import json
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest
import sieva
from sieva import Plan, errors
from test_conformance import CASES, ask, check_rows, check_selection, files  # noqa: F401

ASKED = sorted(name for name, case in CASES.items() if "error" not in case)


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_asks_what_the_query_did(name, files):  # noqa: F811
    case = CASES[name]
    query = ask(case, files)
    plan = query.plan()
    assert Plan.from_bytes(bytes(plan)) == Plan.from_json(plan.to_json()) == plan
    again = query.source.sql(plan.sql())
    assert (again.plan(), again.plan().id) == (plan, plan.id), plan.sql()
    if "sql" in case:
        check_rows(case, query.source.query(plan))
    elif query.columns:
        assert query.source.query(plan).selection() == query.selection()
        assert list(query.source.query(plan).rows.items()) == list(query.rows.items())


@pytest.fixture
def source(tmp_path):
    """Two arrays whose dimensions are in another order, a time, texts, and a name that is also an alias."""
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        for name, dims in (("a", "xy"), ("b", "yx"), ("c", "x"), ("t", "x")):
            shape = tuple({"x": 3, "y": 4}[d] for d in dims)
            data = file.create_dataset(name, data=np.arange(np.prod(shape), dtype="f8").reshape(shape))
            for axis, dim in enumerate(dims):
                data.dims[axis].label = dim
        file["t"].attrs["units"] = "days since 2000-01-01"
        words = file.create_dataset("word", data=np.array([b"one", b"two", b"it's"]))
        words.dims[0].label = "x"
        file.create_dataset("u", data=np.array([1, 2, 2**64 - 1], "u8")).dims[0].label = "x"
    with sieva.open(path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a WHERE a > 1 AND c < 3", "select a where 3.0 > c and not a <= 1"),
        ("SELECT a WHERE c IN (1, 2)", "SELECT a WHERE c = 2 OR c = 1.0 OR (c = 1)"),
        ("SELECT a WHERE c BETWEEN 1 AND 2", "SELECT a WHERE c <= 2 AND c >= 1"),
        ("SELECT a WHERE t > '2000-01-02'", "SELECT a WHERE t > 1"),
        ("SELECT a WHERE word = 'two'", "SELECT a WHERE NOT word <> 'two'"),
        ("SELECT x, avg(a) AS m GROUP BY x", "SELECT idx(x) AS x, mean(a) AS m GROUP BY 1"),
        ("SELECT a AS k WHERE a > 2 + 3", "SELECT a AS k WHERE a > 5 AND TRUE"),
    ],
)
def test_equal_questions_are_equal_plans(source, one, other):
    first, second = source.sql(one).plan(), source.sql(other).plan()
    assert first == second
    assert (bytes(first), first.id, hash(first)) == (bytes(second), second.id, hash(second))
    assert source.sql(one).to_arrow() == source.sql(other).to_arrow()


def test_the_order_of_rows_stays(source):
    one, other = source.query("a > 5 AND b > 5", select=["c"]), source.query("b > 5 AND a > 5", select=["c"])
    assert (list(one.rows), list(other.rows)) == (["x", "y"], ["y", "x"])
    for query in (one, other):
        again = source.sql(query.plan().sql())
        assert (list(again.rows), again.plan()) == (list(query.rows), query.plan()), query.plan().sql()
        assert source.query(query.plan()).to_arrow() == query.to_arrow()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c AS a, a AS c ORDER BY a DESC",
        "SELECT c * 2 AS c, count(*) AS n GROUP BY c * 2 ORDER BY c DESC",
        "SELECT a AS c, c AS k ORDER BY k DESC, c",
        "SELECT max(a) AS c, c AS k GROUP BY k HAVING c > 0 ORDER BY k DESC",
        "SELECT 2 + 3 AS five, count(a) AS n GROUP BY 2 + 3",
        "SELECT DISTINCT c % 2 AS odd FROM '{path}' ORDER BY odd DESC LIMIT 1 OFFSET 1",
        "SELECT c WHERE a IN ()",
        "SELECT c WHERE FALSE AND a > 1",
        "SELECT c WHERE c > (SELECT avg(a))",
        "SELECT c WHERE c < (SELECT max(b) FROM '{path}' WHERE b < 9) ORDER BY -c",
        "SELECT month(t) AS m, count(*) AS n GROUP BY month(t) HAVING count(*) > 2",
        "SELECT word WHERE word LIKE 'it''s' OR word NOT LIKE '%o%'",
        "SELECT u WHERE u = 18446744073709551615 OR u + 1 > 2",
        'SELECT idx(x) AS "i ""x""" WHERE c IS NOT NULL AND NOT (c > 1 AND a < 5)',
        "SELECT quantile(a, 0.25) AS q, histogram(a, 3) AS h, count(DISTINCT c) AS n",
        "SELECT if(c > 1, c, -0.0) AS v, least(c, 1e300, NULL) AS w",
    ],
)
def test_a_plan_as_text_is_the_same_plan_and_answer(source, sql):
    query = source.sql(sql.replace("{path}", source.path))
    plan = query.plan()
    again = source.sql(plan.sql())
    assert again.plan() == plan, (plan.sql(), plan.to_json(), again.plan().to_json())
    assert source.query(plan).to_arrow() == again.to_arrow() == query.to_arrow()
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - our own


def test_a_plan_of_another_source_is_refused(source, tmp_path):
    plan = source.query("a > 1").plan()
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as file:
        file["z"] = [1.0]
    with sieva.open(path) as other:
        with pytest.raises(
            errors.InvalidValue, match=r"the plan is of '.*data\.h5', and was asked of '.*other\.h5'"
        ):
            other.query(plan)
        data = json.loads(plan.to_json())
        data["source"] = None
        with pytest.raises(errors.UnknownArray):
            other.query(Plan.from_json(json.dumps(data)))
    with pytest.raises(TypeError, match="select= beside a plan"):
        source.query(plan, select=["a"])


@pytest.mark.parametrize(("shape", "dtype"), [((4, 3), "f8"), ((3, 4), "S3"), ((3, 4), "i4")])
def test_a_plan_means_nothing_else_elsewhere(source, tmp_path, shape, dtype):
    """The names are there, but what they are of is not the same."""
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", shape, dtype)
        for axis, name in enumerate("xy"):
            file["a"].dims[axis].label = name if shape == (3, 4) else "yx"[axis]
    data = json.loads(source.query("a IS NULL").plan().to_json())
    data["source"] = None
    plan = Plan.from_json(json.dumps(data))
    with (
        sieva.open(path) as other,
        pytest.raises(errors.InvalidValue, match="arrays of other dimensions or types than those in"),
    ):
        other.query(plan)


def test_a_missing_argument_is_not_a_null(source):
    query = source.sql("SELECT count(*) AS n, count(NULL) AS none WHERE c >= 0")
    plan = Plan.from_json(query.plan().to_json())
    assert plan == query.plan()
    assert source.query(plan).to_arrow().to_pylist() == [{"n": 3, "none": 0}]


def test_the_deepest_plans_are_answered_or_refused(source):
    data = json.loads(source.query("c > 1").plan().to_json())
    for depth in (100, 250, 300):
        value = {"column": data["columns"][0]["id"]}
        for _ in range(depth):
            value = {"call": "abs", "arguments": [value]}
        data["steps"] = [{"project": [{"name": "v", "value": value}]}]
        if depth > 256:
            with pytest.raises(errors.InvalidValue, match="nested deeper"):
                Plan.from_json(json.dumps(data))
        else:
            assert source.query(Plan.from_json(json.dumps(data))).read("c").tolist() == [0, 1, 2]


def test_what_is_no_plan_is_named(source):
    plan = source.query("a > 1", select=["c"]).plan()
    with pytest.raises(errors.InvalidValue, match="damaged plan: its checksum is another"):
        Plan.from_bytes(bytes(plan)[:-1] + b"?")
    with pytest.raises(errors.InvalidValue, match="there is no column 9"):
        Plan.from_json(plan.to_json().replace('"column": 1', '"column": 9'))
    with pytest.raises(errors.InvalidValue, match="not a plan in JSON: expected"):
        Plan.from_json("SELECT a")


def printed(*arguments):
    """Return what the command line prints."""
    command = [sys.executable, "-m", "sieva", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_command_line_shows_plans(source):
    sql = f"SELECT c FROM '{source.path}' WHERE 1 < a"
    first, text = printed("plan", sql).splitlines()
    assert first == source.sql(sql).plan().id
    assert text == f"SELECT c FROM '{source.path}' WHERE a > 1"
    assert Plan.from_json(printed("plan", sql, "--json")) == source.sql(sql).plan()


@pytest.mark.parametrize("literal", [2**64 + 1, 2**70 + 3, -(2**63) - 1, 10**30 + 1])
def test_a_number_beyond_64_bits_has_one_form(source, literal):
    for equal in (
        (f"a < {literal}", f"a <= {literal}", f"NOT a >= {literal}", f"NOT a > {literal}", f"{literal} > a"),
        (f"a > {literal}", f"a >= {literal}", f"NOT a <= {literal}", f"NOT a < {literal}", f"{literal} < a"),
        (f"a = {literal}", f"NOT a <> {literal}", f"{literal} = a"),
        (f"a <> {literal}", f"NOT a = {literal}", f"{literal} <> a"),
    ):
        plans = [source.query(text).plan() for text in equal]
        assert {plan.id for plan in plans} == {plans[0].id}, equal
        again = source.sql(plans[0].sql())
        assert again.plan().id == plans[0].id
    assert source.query(f"a < {literal}").count() == (12 if literal > 0 else 0)
    assert source.query(f"a <> {literal}").count() == 12
