"""Unsigned 64-bit integers beside literals: as numpy has them (NEP 50), and errors where numpy wraps."""

import h5py
import numpy as np
import pytest
import sieva
from sieva import errors

U = np.array([0, 1, 5, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1], "u8")
I = np.arange(len(U)) - 3  # noqa: E741
C = np.arange(len(U)) % 2 == 0
LITERALS = [0, 1, 5, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("unsigned") / "u.h5"
    with h5py.File(path, "w") as f:
        f["u"], f["i"] = U, I
        f["m"] = U
        f["m"].attrs["_FillValue"] = np.uint64(5)
        for name in "uim":
            f[name].dims[0].label = "x"
    return sieva.open(path)


def column(source, text):
    table = source.sql(f"SELECT {text} AS r, u").to_arrow()
    return table.schema.field("r").type, table["r"].to_pylist()


CHOICES = {
    "coalesce(m, {k})": lambda k: np.where(U == 5, np.uint64(k), U),
    "coalesce({k}, m)": lambda k: np.full(len(U), k, "u8"),
    "if(i % 2 = 1, u, {k})": lambda k: np.where(C, U, np.uint64(k)),
    "if(i % 2 = 1, {k}, u)": lambda k: np.where(C, np.uint64(k), U),
    "least(u, {k})": lambda k: np.minimum(U, k),
    "greatest({k}, u)": lambda k: np.maximum(U, k),
    "least(u, {k}, m, NULL)": lambda k: np.minimum(U, k),
}


@pytest.mark.parametrize("k", LITERALS)
@pytest.mark.parametrize("text", CHOICES)
def test_a_literal_is_of_the_type_beside_it(source, text, k):
    kind, got = column(source, text.format(k=k))
    assert (str(kind), got) == ("uint64", CHOICES[text](k).tolist())


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else None,
    "%": lambda a, b: a % b if b else None,
    "mod": lambda a, b: a % b if b else None,
}


@pytest.mark.parametrize("k", LITERALS)
@pytest.mark.parametrize("op", OPERATORS)
def test_arithmetic_is_exact_or_refused(source, op, k):
    """Whole numbers of Python are the oracle: numpy wraps where a result does not fit."""
    for first in (False, True):
        a, b = ("{k}", "u") if first else ("u", "{k}")
        text = (f"mod({a}, {b})" if op == "mod" else f"{a} {op} {b}").format(k=k)
        for u in U.tolist():
            exact = OPERATORS[op](*((k, u) if first else (u, k)))
            query = source.sql(f"SELECT {text} AS r WHERE u = {u}")
            if exact is None or 0 <= exact < 2**64:
                table = query.to_arrow()
                assert (str(table.schema.field("r").type), table["r"].to_pylist()) == ("uint64", [exact]), (
                    text,
                    u,
                )
            else:
                with pytest.raises(errors.Overflow):
                    query.to_arrow()


@pytest.mark.parametrize(
    "text", ["coalesce(m, -1)", "least(u, -1)", "greatest(u, -1, 5)", "if(i < 9, u, -1)", "u + -1"]
)
def test_beside_a_negative_one_it_is_int64(source, text):
    """Numpy refuses: -1 is beyond the range of uint64. What fits is given, and the rest is an error."""
    with pytest.raises(OverflowError):
        np.minimum(U, -1)
    low = source.sql(f"SELECT {text} AS r WHERE u < 9 AND u <> 5").to_arrow()
    assert str(low.schema.field("r").type) == "int64"
    with pytest.raises(errors.Overflow):
        source.sql(f"SELECT {text} AS r WHERE u > 9223372036854775807").to_arrow()


def test_conditions_and_groups(source):
    top = 2**64 - 1
    assert source.query(f"coalesce(m, 0) = {top}").count() == 1
    assert source.query("greatest(u, 9223372036854775808) = 9223372036854775808").count() == 5
    (row,) = source.sql("SELECT coalesce(max(u), 0) AS m, least(max(u), 7) AS l").to_arrow().to_pylist()
    assert row == {"m": top, "l": 7}
    # Beside other kinds nothing changes.
    assert source.sql("SELECT coalesce(i, 1) AS r, u").to_arrow()["r"].to_pylist() == I.tolist()
    assert source.sql("SELECT coalesce(u, 0.5) AS r").to_arrow()["r"].to_pylist() == U.astype("f8").tolist()
    assert (
        str(source.sql("SELECT least(u, i, 5) AS r WHERE u < 9").to_arrow().schema.field("r").type) == "int64"
    )
