"""Conditions that hypothesis draws, each with its answer by Python's and numpy's rules alone.

An answer is a pair of masks, true and false; where neither holds the condition is unknown, SQL's third value.
Numbers are compared by Python's operators, which compare integers and floats of any size exactly.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from draws import DIMS, DrawnArray
from hypothesis import strategies as st

Answer = tuple[np.ndarray, np.ndarray]
_OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}


@dataclass(frozen=True)
class Condition:
    """A condition: its text, the dimensions of what it names, and its answer over a row space."""

    text: str
    dims: frozenset[str]
    answer: Callable[[tuple[str, ...]], Answer] = field(repr=False)


def align(dims: tuple[str, ...], values: np.ndarray, rows: tuple[str, ...]) -> np.ndarray:
    """Return values over ``dims`` with the axes of the row space, of length 1 where they have none."""
    order = [dims.index(d) for d in rows if d in dims]
    return np.transpose(values, order).reshape([DIMS[d] if d in dims else 1 for d in rows])


def exactly(symbol: str, left: np.ndarray | float, right: np.ndarray | float) -> np.ndarray:
    """Compare as real numbers, element by element."""
    compare = np.frompyfunc(_OPERATORS[symbol], 2, 1)
    with np.errstate(invalid="ignore"):
        return np.asarray(compare(np.asarray(left, object), np.asarray(right, object)), bool)


def literal(value: float) -> str:
    """Return a number as query text."""
    return repr(value)


@st.composite
def near(draw: st.DrawFn, array: DrawnArray) -> float:
    """Draw a literal at, next to, or between the values of an array."""
    values, missing = array.decoded()
    present = values[~missing].ravel().tolist() or [0]
    value = draw(st.sampled_from(present))
    nudge = draw(st.sampled_from(["at", "above", "below", "half", "float", "far"]))
    if nudge == "far":
        return draw(st.sampled_from([0, 1e300, 2**53, 2**63, -(2**63), -(2**63) - 1, 2**64, 0.1, 1.7, -0.0]))
    if isinstance(value, int):
        return {
            "at": value,
            "above": value + 1,
            "below": value - 1,
            "half": value + 0.5,
            "float": float(value),
        }[nudge]
    ahead = {"above": math.inf, "below": -math.inf}.get(nudge)
    return math.nextafter(value, ahead) if ahead is not None else value


def _of_array(array: DrawnArray, text: str, test: Callable[[np.ndarray], np.ndarray]) -> Condition:
    values, missing = array.decoded()
    holds = test(values)
    true, false = holds & ~missing, ~holds & ~missing
    return Condition(
        text,
        frozenset(array.dims),
        lambda rows: (align(array.dims, true, rows), align(array.dims, false, rows)),
    )


def _everywhere(array: DrawnArray, text: str, holds: bool) -> Condition:
    full = np.full(array.stored.shape, holds)
    return Condition(
        text,
        frozenset(array.dims),
        lambda rows: (align(array.dims, full, rows), align(array.dims, ~full, rows)),
    )


@st.composite
def comparisons(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw a comparison of an array with a literal, on either side."""
    array, symbol = draw(st.sampled_from(file)), draw(st.sampled_from(sorted(_OPERATORS)))
    value = draw(near(array))
    if draw(st.integers(0, 4)) == 0:
        return _of_array(
            array, f"{literal(value)} {symbol} {array.name}", lambda v: exactly(symbol, value, v)
        )
    return _of_array(array, f"{array.name} {symbol} {literal(value)}", lambda v: exactly(symbol, v, value))


@st.composite
def ranges(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw a BETWEEN, negated or not, its ends in any order."""
    array = draw(st.sampled_from(file))
    low, high = draw(near(array)), draw(near(array))
    negated = draw(st.booleans())
    text = f"{array.name} {'NOT ' if negated else ''}BETWEEN {literal(low)} AND {literal(high)}"
    return _of_array(array, text, lambda v: (exactly(">=", v, low) & exactly("<=", v, high)) != negated)


@st.composite
def lists(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw an IN, sometimes of so many values that they are searched by bisection."""
    array = draw(st.sampled_from(file))
    values = draw(st.lists(near(array), max_size=14))
    negated = draw(st.booleans())
    text = f"{array.name} {'NOT ' if negated else ''}IN ({', '.join(map(literal, values))})"
    if not values:
        # Of no values nothing is one, a missing value neither.
        return _everywhere(array, text, negated)
    return _of_array(array, text, lambda v: np.any([exactly("=", v, x) for x in values], axis=0) != negated)


@st.composite
def null_tests(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw an IS NULL, which is never unknown."""
    array, negated = draw(st.sampled_from(file)), draw(st.booleans())
    missing = array.decoded()[1] != negated
    text = f"{array.name} IS {'NOT ' if negated else ''}NULL"
    return Condition(
        text,
        frozenset(array.dims),
        lambda rows: (align(array.dims, missing, rows), align(array.dims, ~missing, rows)),
    )


@st.composite
def positions(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw a comparison of the position along a dimension."""
    dim = draw(st.sampled_from(sorted({d for array in file for d in array.dims})))
    symbol, value = draw(st.sampled_from(sorted(_OPERATORS))), draw(st.integers(-1, DIMS[dim]))
    holds = exactly(symbol, np.arange(DIMS[dim]), value)
    return Condition(
        f"idx({dim}) {symbol} {value}",
        frozenset([dim]),
        lambda rows: (align((dim,), holds, rows), align((dim,), ~holds, rows)),
    )


@st.composite
def pairs(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw a comparison of two arrays, of any rank and type, as they are or in floating-point arithmetic."""
    left, right = draw(st.sampled_from(file)), draw(st.sampled_from(file))
    symbol = draw(st.sampled_from(sorted(_OPERATORS)))
    in_floats = draw(st.booleans())
    text = (
        f"{left.name} * 0.5 {symbol} {right.name} - 1.25"
        if in_floats
        else f"{left.name} {symbol} {right.name}"
    )

    def answer(rows: tuple[str, ...]) -> Answer:
        (a, no_a), (b, no_b) = left.decoded(), right.decoded()
        a, no_a = align(left.dims, a, rows), align(left.dims, no_a, rows)
        b, no_b = align(right.dims, b, rows), align(right.dims, no_b, rows)
        missing = no_a | no_b
        if in_floats:
            with np.errstate(invalid="ignore", over="ignore"):
                a, b = a.astype("f8") * 0.5, b.astype("f8") - 1.25
            missing = missing | np.isnan(a) | np.isnan(b)
        holds = exactly(symbol, a, b)
        return holds & ~missing, ~holds & ~missing

    return Condition(text, frozenset(left.dims) | frozenset(right.dims), answer)


@st.composite
def guarded(draw: st.DrawFn, file: list[DrawnArray]) -> Condition:
    """Draw a comparison of what a guard keeps from overflowing, so that every way must keep it."""
    whole = [a for a in file if not a.is_packed and a.decoded()[0].dtype.kind in "iu"]
    if not whole:
        return draw(comparisons(file))
    array, symbol = draw(st.sampled_from(whole)), draw(st.sampled_from(sorted(_OPERATORS)))
    most, value = 2**61, draw(near(array))
    name = array.name
    text = f"if({name} BETWEEN {-most} AND {most}, {name} * 3, 0) {symbol} {literal(value)}"
    values, missing = array.decoded()
    exact = values.astype(object)
    # Of a single number Python's arithmetic makes one that is no array, and may be beyond 64 bits.
    tripled = np.asarray(exact * 3, object)
    kept = np.where(np.asarray(~missing & (abs(exact) <= most), bool), tripled, 0)
    holds = exactly(symbol, kept, value)
    return Condition(
        text,
        frozenset(array.dims),
        lambda rows: (align(array.dims, holds, rows), align(array.dims, ~holds, rows)),
    )


def _combined(parts: list[Condition], word: str) -> Condition:
    def answer(rows: tuple[str, ...]) -> Answer:
        true, false = parts[0].answer(rows)
        for part in parts[1:]:
            more_true, more_false = part.answer(rows)
            if word == "AND":
                true, false = true & more_true, false | more_false
            else:
                true, false = true | more_true, false & more_false
        return true, false

    dims = frozenset().union(*(part.dims for part in parts))
    return Condition(f" {word} ".join(f"({part.text})" for part in parts), dims, answer)


def conditions(file: list[DrawnArray]) -> st.SearchStrategy[Condition]:
    """Return a strategy for trees of conditions over the arrays of a file."""
    leaves = st.one_of(
        comparisons(file),
        comparisons(file),
        ranges(file),
        lists(file),
        null_tests(file),
        pairs(file),
        guarded(file),
    )
    if any(array.dims for array in file):
        leaves = st.one_of(leaves, positions(file))

    def extend(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(inner, min_size=2, max_size=3)
        negated = inner.map(lambda c: Condition(f"NOT ({c.text})", c.dims, lambda rows: c.answer(rows)[::-1]))
        return st.one_of(
            st.tuples(several, st.sampled_from(["AND", "OR"])).map(lambda pair: _combined(*pair)), negated
        )

    return st.recursive(leaves, extend, max_leaves=5)
