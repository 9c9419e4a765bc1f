"""Conditions as trees: three-valued logic, arithmetic, functions, precedence, subqueries."""

from pathlib import Path

import netCDF4
import numpy as np

from corpus.registry import Answer, Topic, file, table

_topic = Topic("expressions", "expressions.nc")


@file("expressions.nc")
def write_expressions(path: Path) -> None:
    """Write small integers, floats of both signs, and an array with gaps."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("n", 20)
        n = np.arange(20)
        f.createVariable("i", "i4", ("n",))[:] = n - 8
        f.createVariable("j", "i8", ("n",))[:] = n * 37 % 11 + 1
        f.createVariable("u", "u1", ("n",))[:] = n * 13 % 256
        f.createVariable("x", "f8", ("n",))[:] = (n - 10) / 4
        f.createVariable("y", "f4", ("n",))[:] = np.sqrt(n)
        gappy = f.createVariable("g", "f8", ("n",), fill_value=-99.0)
        gappy[:] = np.where(n % 3 == 0, -99, n * 1.5)


def _ask(name: str, condition: str, hits: Answer) -> None:
    _topic.where(name, condition, "n", hits, {"i": lambda f: f.raw("i")})


_ask("and_or_not", "NOT (i > 0 AND x < 1) OR y > 4", lambda f: ~((f("i") > 0) & (f("x") < 1)) | (f("y") > 4))
_ask("or_binds_looser", "i = 1 OR i = 2 AND x > 100", lambda f: f("i") == 1)
_ask("not_binds_looser_than_comparison", "NOT i = 1 AND i < 3", lambda f: (f("i") != 1) & (f("i") < 3))
_ask("between_includes_both_ends", "i BETWEEN -2 AND 2", lambda f: abs(f("i")) <= 2)
_ask("not_between", "x NOT BETWEEN -2 AND 2", lambda f: abs(f("x")) > 2)
_ask("between_reversed_is_empty", "i BETWEEN 2 AND -2", lambda f: f("i") > 99)
_ask("in_list", "j IN (1, 5, 11, 1000)", lambda f: np.isin(f("j"), [1, 5, 11]))
_ask("not_in_list", "j NOT IN (1, 5, 11)", lambda f: ~np.isin(f("j"), [1, 5, 11]))
_ask("in_list_of_floats", "x IN (0.25, -1.5, 3.14)", lambda f: np.isin(f("x"), [0.25, -1.5]))
_ask("in_with_null", "i IN (1, NULL)", lambda f: f("i") == 1)
_ask("not_in_with_null", "i NOT IN (1, NULL)", lambda f: f("i") > 99)
_ask("chain_of_comparisons", "-1 < x <= 1", lambda f: (f("x") > -1) & (f("x") <= 1))
_ask(
    "python_operators",
    "(i > 3) & ~(j < 5) | (x == -2.5)",
    lambda f: ((f("i") > 3) & ~(f("j") < 5)) | (f("x") == -2.5),
)
_ask("literal_on_the_left", "3 < i", lambda f: f("i") > 3)
_ask("arrays_of_two_types", "x + 3 > y", lambda f: f("x") + 3 > f("y"))
_ask("integer_beside_float", "i = x * 4 + 2", lambda f: f("i") == f("x") * 4 + 2)
_ask("always_true", "TRUE AND i > 8", lambda f: f("i") > 8)
_ask("constant_folded", "i > 2 + 3 * 2", lambda f: f("i") > 8)
_ask("missing_is_unknown", "NOT g > 5", lambda f: f("g") <= 5)
_ask("unknown_or_true", "g > 5 OR i > 0", lambda f: (f("g") > 5) | (f("i") > 0))
_ask("unknown_and_false", "NOT (g > 5 AND i > 100)", lambda f: np.ones(20, bool))
_ask("not_of_unknown_or", "NOT (g > 5 OR i > 3)", lambda f: (f("g") <= 5) & (f("i") <= 3))
_ask("is_null", "g IS NULL AND i > 0", lambda f: np.isnan(f("g")) & (f("i") > 0))
_ask("is_not_null", "g + x IS NOT NULL", lambda f: ~np.isnan(f("g")))
_topic.error("nothing_equals_null", "g = NULL", "syntax-error", "NULL")
_ask("coalesce", "coalesce(g, 100) > 20", lambda f: np.nan_to_num(f("g"), nan=100) > 20)
_ask("nullif", "nullif(i, 0) IS NULL", lambda f: f("i") == 0)
_ask("if", "if(i > 0, x, -x) > 1.5", lambda f: np.where(f("i") > 0, f("x"), -f("x")) > 1.5)
_ask("least_passes_over_missing", "least(g, i) > 5", lambda f: np.fmin(f("g"), f("i")) > 5)

_arithmetic: dict[str, tuple[str, Answer]] = {
    "true_division": ("i / 3 > 1.5", lambda f: f("i") / 3 > 1.5),
    "floor_division": ("i // 3 = -2", lambda f: f("i") // 3 == -2),
    "remainder_of_the_divisor": ("i % 3 = 1", lambda f: f("i") % 3 == 1),
    "float_remainder": ("x % 1 = 0.5", lambda f: f("x") % 1 == 0.5),
    "negative_power": ("x ^ 2 > 4", lambda f: f("x") ** 2 > 4),
    "minus_binds_looser_than_power": ("-x ^ 2 < -4", lambda f: -(f("x") ** 2) < -4),
    "unsigned_difference": ("u - 100 < -50", lambda f: f("u").astype("i8") - 100 < -50),
    "unsigned_sum_beyond_its_width": ("u + u > 400", lambda f: f("u").astype("i8") * 2 > 400),
    "mixed": ("(i + j) * x - y / 2 > 20", lambda f: (f("i") + f("j")) * f("x") - f("y") / 2 > 20),
    "no_spaces": ("i+j*2>25", lambda f: f("i") + f("j") * 2 > 25),
    "two_float_arrays": ("x*y > 5", lambda f: f("x") * f("y") > 5),
}
for _name, (_condition, _hits) in _arithmetic.items():
    _ask(_name, _condition, _hits)

_functions: dict[str, tuple[str, Answer]] = {
    "abs": ("abs(i) >= 8", lambda f: abs(f("i")) >= 8),
    "sqrt_of_negative_is_missing": ("sqrt(x) IS NULL", lambda f: f("x") < 0),
    "sqrt": ("sqrt(x) > 1", lambda f: f("x") > 1),
    "floor_and_ceil": (
        "floor(x) = -2 OR ceil(x) = 2",
        lambda f: (np.floor(f("x")) == -2) | (np.ceil(f("x")) == 2),
    ),
    "round_half_to_even": ("round(x) = 2", lambda f: np.round(f("x")) == 2),
    "trunc": ("trunc(x) = 0", lambda f: np.trunc(f("x")) == 0),
    "sign": ("sign(i) = 0", lambda f: np.sign(f("i")) == 0),
    "exp_and_ln": ("abs(ln(exp(x)) - x) > 1e-9", lambda f: np.zeros(20, bool)),
    "trigonometry": ("sin(x) ^ 2 + cos(x) ^ 2 > 1.1", lambda f: np.zeros(20, bool)),
    "greatest": ("greatest(i, j) = 5", lambda f: np.maximum(f("i"), f("j")) == 5),
    "hypot": ("hypot(x, 1.5) = 2.5", lambda f: np.hypot(f("x"), 1.5) == 2.5),
    "position": ("idx(n) IN (0, 19)", lambda f: np.isin(np.arange(20), [0, 19])),
    "mod": ("mod(i, 5) = 4", lambda f: f("i") % 5 == 4),
    "is_finite": ("NOT isfinite(1 / (x - 1))", lambda f: f("x") == 1),
    "atan2": ("degrees(atan2(y, x)) > 170", lambda f: np.degrees(np.arctan2(f("y"), f("x"))) > 170),
}
for _name, (_condition, _hits) in _functions.items():
    _ask(f"function_{_name}", _condition, _hits)

_ask("subquery", "x > (SELECT avg(x) WHERE x > 0)", lambda f: f("x") > f("x")[f("x") > 0].mean())
_ask("subquery_maximum", "i = (SELECT max(i) WHERE x < 1)", lambda f: f("i") == f("i")[f("x") < 1].max())
_topic.sql(
    "computed_columns",
    "SELECT i * 2 AS twice, x + y, -i, g FROM '{file}' WHERE i BETWEEN 0 AND 3",
    ["twice", "x + y", "-i", "g"],
    lambda f: table((f("i") >= 0) & (f("i") <= 3), f("i") * 2, f("x") + f("y"), -f("i"), f("g")),
)
_topic.sql(
    "comparisons_as_columns",
    "SELECT i > 2 AS big, g IS NULL AS gone FROM '{file}' WHERE i IN (1, 3, 4)",
    ["big", "gone"],
    lambda f: table(np.isin(f("i"), [1, 3, 4]), f("i") > 2, np.isnan(f("g"))),
)
