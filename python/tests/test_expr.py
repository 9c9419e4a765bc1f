"""Expressions: the text that operators make, and that it means what Python says."""

import datetime as dt
import functools
import operator
import pickle

import cftime
import numpy as np
import pytest
import sieva
from sieva import Expr, col, fn, idx

A, B, C = col("a"), col("b"), col("c")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A > 5, '"a" > 5'),
        (A < 5, '"a" < 5'),
        (A == 1.5, '"a" = 1.5'),
        (A != "x'y", "\"a\" <> 'x''y'"),
        ((A > 5) & (B <= 3) & ~(C < 1), '"a" > 5 AND "b" <= 3 AND NOT ("c" < 1)'),
        ((A > 5) | (B > 1) & (C > 2), '"a" > 5 OR "b" > 1 AND "c" > 2'),
        (((A > 5) | (B > 1)) & (C > 2), '("a" > 5 OR "b" > 1) AND "c" > 2'),
        (A + B * 2 - 1, '"a" + "b" * 2 - 1'),
        (A - (B - 1), '"a" - ("b" - 1)'),
        ((A + B) / 2 // 3 % 4, '("a" + "b") / 2 // 3 % 4'),
        (1 / A, '1 / "a"'),
        (2**A, '2 ^ "a"'),
        ((-A) ** 2, '(-"a") ^ 2'),
        (-(A**2), '-"a" ^ 2'),
        ((-A) * -1, '-"a" * -1'),
        ((A**2) ** 3, '("a" ^ 2) ^ 3'),
        (A ** (B**2), '"a" ^ "b" ^ 2'),
        (abs(A - 1) < 2, 'abs("a" - 1) < 2'),
        (A.isin([1, 2.5, "x"]), "\"a\" IN (1, 2.5, 'x')"),
        (A.isin([]), '"a" IN ()'),
        (A.between(1, B + 1), '"a" BETWEEN 1 AND "b" + 1'),
        (A.isnull() | A.notnull(), '"a" IS NULL OR "a" IS NOT NULL'),
        ((A > 1) == (B > 1), '("a" > 1) = ("b" > 1)'),
        (fn.sqrt(A**2 + 1), 'sqrt("a" ^ 2 + 1)'),
        (idx("n") < 3, 'idx("n") < 3'),
        (col('we"ird / name') > 0, '"we""ird / name" > 0'),
        (Expr("a > 1 OR b > 1") & (A > 2), '(a > 1 OR b > 1) AND "a" > 2'),
        (True & (A > 1), 'TRUE AND "a" > 1'),
    ],
)
def test_operators_make_the_text(expr, text):
    assert str(expr) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(1.7), repr(float(np.float32(1.7)))),
        (np.float64(0.1), "0.1"),
        (np.float16(0.1), "0.0999755859375"),
        (np.int64(-3), "-3"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.array(2), "2"),
        (np.bool_(True), "TRUE"),
        (np.str_("x"), "'x'"),
        (2**100, "1267650600228229401496703205376"),
        (1e300, "1e300"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (-0.0, "-0.0"),
        (dt.date(2000, 2, 3), "DATE '2000-02-03'"),
        (dt.datetime(2000, 2, 3, 4, 5, 6), "TIMESTAMP '2000-02-03T04:05:06'"),  # noqa: DTZ001 - naive is meant
        (
            dt.datetime(2000, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            "TIMESTAMP '1999-12-31T23:00:00'",
        ),
        (np.datetime64("2000-02-03T04"), "TIMESTAMP '2000-02-03T04'"),
        (cftime.DatetimeNoLeap(1, 2, 3, 4, 5, 6), "TIMESTAMP '0001-02-03T04:05:06'"),
    ],
)
def test_constants_are_exact(value, text):
    assert str(value < A) == f'"a" > {text}'
    # numpy on the left leaves the comparison to the expression.
    assert str(value < A) == f'"a" > {text}'


def test_floats_round_trip():
    rng = np.random.default_rng(1)
    for value in rng.integers(0, 2**64, 200, dtype="u8").view("f8"):
        if np.isfinite(value):
            assert float(str(value < A).removeprefix('"a" > ')) == value


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: bool(A > 5), TypeError, "join conditions by & | ~"),
        (lambda: 1 < A < 3, TypeError, "no truth value"),
        (lambda: A == None, TypeError, "isnull"),  # noqa: E711 - what people write
        (lambda: A > [1, 2], TypeError, "cannot be compared"),
        (lambda: np.array([1, 2]) < A, TypeError, "isin"),
        (lambda: A > 1j, TypeError, "cannot be compared"),
        (lambda: A > 2**200, ValueError, "128 bits"),
        (lambda: np.datetime64("NaT") < A, ValueError, "NaT"),
        (lambda: A.isin("abc"), TypeError, "several values"),
        (lambda: 3 in A, TypeError, "isin"),
        (lambda: list(A), TypeError, "not a sequence"),
        (lambda: {A: 1}, TypeError, "unhashable"),
        (lambda: col(""), ValueError, "empty"),
    ],
)
def test_misuse_says_what_to_do(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_text_is_read_where_it_is_given():
    with pytest.raises(sieva.errors.SyntaxError_, match="expected a value"):
        Expr("a >")


def test_chains_of_any_length_and_depths_of_some():
    every = A > 0
    for i in range(1, 20_000):
        every = every & (i < A)
    assert str(every).count("AND") == 19_999
    with pytest.raises(sieva.errors.Unsupported, match="200 deep"):
        functools.reduce(operator.add, [A] * 300)


def test_a_path_in_text_may_be_a_division(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "ab.h5", "w") as file:
        file["a"], file["b"], file["g/c"] = [1.0, 6.0, 9.0], [1.0, 2.0, 3.0], [0.0, 1.0, 2.0]
    source = sieva.open(tmp_path / "ab.h5")
    assert source.query(Expr("1/a/b < 1") & (col("g/c") > 0)).selection().mask().tolist() == [
        False,
        True,
        True,
    ]
    assert source.query(Expr("g/c > 1")).count() == 1


def test_expressions_pickle():
    assert str(pickle.loads(pickle.dumps((A > 5) & (B < 1))) | C) == '"a" > 5 AND "b" < 1 OR "c"'  # noqa: S301


def test_text_and_expression_select_the_same(ocean):
    temp, depth = ocean["TEMP"], ocean["z_t"]
    by_expr = ocean.query((temp > 5) & (depth < 5000) | ~(temp + 1 <= 20))
    by_text = ocean.query("TEMP > 5 AND z_t < 5000 OR NOT TEMP + 1 <= 20")
    assert by_expr.selection() == by_text.selection()
    assert by_expr.count() > 0


@pytest.mark.parametrize(
    ("expr", "oracle"),
    [
        (A - (B - 1) > 0, lambda a, b: a - (b - 1) > 0),
        (-(A**2) < -4, lambda a, _: -(a**2) < -4),
        ((-A) ** 2 > 4, lambda a, _: (-a) ** 2 > 4),
        (A // 2 % 3 == 1, lambda a, _: a // 2 % 3 == 1),
        (2**A / 4 >= B, lambda a, b: 2.0**a / 4 >= b),
        (A.isin([1, -2]) | ~A.between(-3, B), lambda a, b: np.isin(a, [1, -2]) | ~((a >= -3) & (a <= b))),
        (abs(A) + fn.sqrt(B * B) > 5, lambda a, b: abs(a) + np.sqrt(b * b) > 5),
    ],
)
def test_operators_mean_what_numpy_means(tmp_path, expr, oracle):
    h5py = pytest.importorskip("h5py")
    a, b = np.arange(-8.0, 8), np.arange(16.0)[::-1] / 2
    with h5py.File(tmp_path / "ab.h5", "w") as file:
        file["a"], file["b"] = a, b
    mask = sieva.open(tmp_path / "ab.h5").query(expr & (B >= 0)).selection().mask()
    np.testing.assert_array_equal(mask, oracle(a, b))
