"""Expressions and conditions built by Python operators: each is text of the query language, no more."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# How tightly operators bind, from the loosest; as in the parser of the query language.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _PRIMARY = range(9)

# The parser holds integers of 128 bits.
_INT_MIN, _INT_MAX = -(2**127), 2**127 - 1


class Expr:
    """A value or a condition over the arrays of a source, as the text of the query language.

    Made by the operators of `Array` and of other expressions, and by `col`, `idx` and `fn`; never changed.
    Text and expressions are the same to a query: ``str(expr)`` can be pasted into SQL.

    Parameters
    ----------
    text
        An expression of the query language.

    Examples
    --------
    >>> from sieva import col, fn
    >>> (col("TEMP") > 5) & (col("z_t") < 5000)
    <sieva.Expr "TEMP" > 5 AND "z_t" < 5000>
    >>> fn.sqrt(col("u") ** 2 + col("v") ** 2) >= 0.1
    <sieva.Expr sqrt("u" ^ 2 + "v" ^ 2) >= 0.1>
    """

    __slots__ = ("_binding", "_text")

    NAME = _PRIMARY
    """How tightly a name binds, for subclasses."""

    # An equality makes an expression, so that there is nothing to hash by.
    __hash__ = None  # type: ignore[assignment]
    # numpy scalars and arrays on the left leave the operator to us.
    __array_ufunc__ = None

    def __init__(self, text: str) -> None:
        self._text = text
        # Text from outside could be anything: it is put into parentheses wherever it is an operand.
        self._binding = -1

    @classmethod
    def _made(cls, text: str, binding: int) -> Expr:
        expr = Expr(text)
        expr._binding = binding
        return expr

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<sieva.Expr {self._text}>"

    def __reduce__(self) -> tuple[object, ...]:
        return (Expr._made, (self._text, self._binding))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value: join conditions by & | ~ instead of and, or, not, each in "
            "parentheses, and use isin() for in"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is an expression, not a sequence")

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError("use isin() or between() for what would be `in`")

    def _operand(self, least: int) -> str:
        return self._text if self._binding >= least else f"({self._text})"

    def _compare(self, symbol: str, other: object) -> Expr:
        if other is None:
            raise TypeError("nothing is equal to None, less or greater: use isnull() or notnull()")
        return Expr._made(
            f"{self._operand(_SUM)} {symbol} {as_expr(other)._operand(_SUM)}",
            _COMPARE,
        )

    def __lt__(self, other: object) -> Expr:
        return self._compare("<", other)

    def __le__(self, other: object) -> Expr:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Expr:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Expr:
        return self._compare(">=", other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._compare("<>", other)

    def __and__(self, other: object) -> Expr:
        return _binary(self, "AND", other, (_AND, _AND, _AND))

    def __rand__(self, other: object) -> Expr:
        return _binary(other, "AND", self, (_AND, _AND, _AND))

    def __or__(self, other: object) -> Expr:
        return _binary(self, "OR", other, (_OR, _OR, _OR))

    def __ror__(self, other: object) -> Expr:
        return _binary(other, "OR", self, (_OR, _OR, _OR))

    def __invert__(self) -> Expr:
        return Expr._made(f"NOT {self._operand(_PRIMARY)}", _NOT)

    def __add__(self, other: object) -> Expr:
        return _binary(self, "+", other, (_SUM, _SUM, _PRODUCT))

    def __radd__(self, other: object) -> Expr:
        return _binary(other, "+", self, (_SUM, _SUM, _PRODUCT))

    def __sub__(self, other: object) -> Expr:
        return _binary(self, "-", other, (_SUM, _SUM, _PRODUCT))

    def __rsub__(self, other: object) -> Expr:
        return _binary(other, "-", self, (_SUM, _SUM, _PRODUCT))

    def __mul__(self, other: object) -> Expr:
        return _binary(self, "*", other, (_PRODUCT, _PRODUCT, _SIGN))

    def __rmul__(self, other: object) -> Expr:
        return _binary(other, "*", self, (_PRODUCT, _PRODUCT, _SIGN))

    def __truediv__(self, other: object) -> Expr:
        return _binary(self, "/", other, (_PRODUCT, _PRODUCT, _SIGN))

    def __rtruediv__(self, other: object) -> Expr:
        return _binary(other, "/", self, (_PRODUCT, _PRODUCT, _SIGN))

    def __floordiv__(self, other: object) -> Expr:
        return _binary(self, "//", other, (_PRODUCT, _PRODUCT, _SIGN))

    def __rfloordiv__(self, other: object) -> Expr:
        return _binary(other, "//", self, (_PRODUCT, _PRODUCT, _SIGN))

    def __mod__(self, other: object) -> Expr:
        return _binary(self, "%", other, (_PRODUCT, _PRODUCT, _SIGN))

    def __rmod__(self, other: object) -> Expr:
        return _binary(other, "%", self, (_PRODUCT, _PRODUCT, _SIGN))

    def __pow__(self, other: object) -> Expr:
        return _binary(self, "^", other, (_POWER, _PRIMARY, _SIGN))

    def __rpow__(self, other: object) -> Expr:
        return _binary(other, "^", self, (_POWER, _PRIMARY, _SIGN))

    def __neg__(self) -> Expr:
        # The space keeps two signs from becoming a comment.
        return Expr._made(f"- {self._operand(_POWER)}", _SIGN)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return Expr._made(f"abs({self._text})", _PRIMARY)

    def isin(self, values: Iterable[object]) -> Expr:
        """Return the condition that the value is one of ``values``.

        Parameters
        ----------
        values
            Numbers, texts, dates or expressions; of none of them the condition holds nowhere.

        Examples
        --------
        >>> from sieva import col
        >>> col("KMT").isin([3, 4])
        <sieva.Expr "KMT" IN (3, 4)>
        """
        if isinstance(values, str | bytes):
            raise TypeError(f"isin() needs several values in a list, got {values!r}")
        texts = [str(as_expr(value)) for value in values]
        if not texts:
            return Expr._made("FALSE", _PRIMARY)
        return Expr._made(f"{self._operand(_SUM)} IN ({', '.join(texts)})", _COMPARE)

    def between(self, low: object, high: object) -> Expr:
        """Return the condition ``low <= value <= high``: both ends belong to it.

        Examples
        --------
        >>> from sieva import col
        >>> col("TLAT").between(18, 31)
        <sieva.Expr "TLAT" BETWEEN 18 AND 31>
        """
        ends = f"{as_expr(low)._operand(_SUM)} AND {as_expr(high)._operand(_SUM)}"
        return Expr._made(f"{self._operand(_SUM)} BETWEEN {ends}", _COMPARE)

    def isnull(self) -> Expr:
        """Return the condition that the value is missing: a fill value, or NaN."""
        return Expr._made(f"{self._operand(_SUM)} IS NULL", _COMPARE)

    def notnull(self) -> Expr:
        """Return the condition that there is a value."""
        return Expr._made(f"{self._operand(_SUM)} IS NOT NULL", _COMPARE)


def _binary(left: object, symbol: str, right: object, bindings: tuple[int, int, int]) -> Expr:
    """Return an operation; the bindings are its own, and the least of its operands without parentheses."""
    own, least_left, least_right = bindings
    a, b = as_expr(left), as_expr(right)
    return Expr._made(f"{a._operand(least_left)} {symbol} {b._operand(least_right)}", own)


def quote(name: str) -> str:
    """Return a name in double quotes, as the query language takes it literally.

    >>> quote("Data Fields/x")
    '"Data Fields/x"'
    """
    if not name:
        raise ValueError("a name must not be empty")
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text in single quotes, as a constant of the query language."""
    return "'" + text.replace("'", "''") + "'"


def col(name: str) -> Expr:
    """Return the array or dimension ``name``, by its path or, where it is unique, by its last part.

    Examples
    --------
    >>> from sieva import col
    >>> col("ocean/TEMP") > 5
    <sieva.Expr "ocean/TEMP" > 5>
    """
    return Expr._made(quote(name), _PRIMARY)


def idx(dimension: str) -> Expr:
    """Return the position along a dimension, counted from 0.

    Examples
    --------
    >>> from sieva import idx
    >>> idx("nlat") < 100
    <sieva.Expr idx("nlat") < 100>
    """
    return Expr._made(f"idx({quote(dimension)})", _PRIMARY)


class Functions:
    """The functions of the query language as methods: ``fn.sqrt(x)``, ``fn.month(col("time"))``.

    Whether a function exists is known when the query is made, and the error lists those that do.
    """

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: object) -> Expr:
            return Expr._made(f"{name}({', '.join(str(as_expr(arg)) for arg in args)})", _PRIMARY)

        call.__name__ = call.__qualname__ = name
        return call

    def __repr__(self) -> str:
        return "<sieva.fn: the functions of the query language, such as fn.sqrt(x)>"


fn = Functions()


def as_expr(value: object) -> Expr:
    """Return a constant as the expression of it; an expression is returned as it is.

    Parameters
    ----------
    value
        An expression, or a number, text, date or truth value, of Python, numpy or cftime.

    Raises
    ------
    TypeError
        The value is nothing that the query language has.
    ValueError
        The value is out of range, or is not a time.
    """
    if isinstance(value, Expr):
        return value
    if type(value).__module__ == "numpy":
        value = _of_numpy(value)
    if isinstance(value, str):
        return Expr._made(quote_text(value), _PRIMARY)
    if isinstance(value, bool):
        return Expr._made("TRUE" if value else "FALSE", _PRIMARY)
    if isinstance(value, numbers.Integral):
        return _integer(int(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dt.date) or hasattr(value, "calendar"):
        return Expr._made(f"TIMESTAMP '{_date_text(value)}'", _PRIMARY)
    raise TypeError(
        f"{value!r} ({type(value).__name__}) cannot be compared with arrays: "
        "expected a number, a text, a date or an expression"
    )


def _integer(value: int) -> Expr:
    if not _INT_MIN <= value <= _INT_MAX:
        raise ValueError(f"integer {value} does not fit into 128 bits: write it as a float")
    return Expr._made(str(value), _SIGN if value < 0 else _PRIMARY)


def _float(value: float) -> Expr:
    # The shortest text that reads back to the same bits; `inf` and `nan` are words of the language.
    negative = math.copysign(1.0, value) < 0 and not math.isnan(value)
    return Expr._made(repr(abs(value) if math.isnan(value) else value), _SIGN if negative else _PRIMARY)


def _of_numpy(value: Any) -> object:  # noqa: ANN401 - a numpy scalar of any type
    """Return a numpy scalar, or an array of one, as Python's own value of exactly the same worth."""
    if getattr(value, "shape", ()) != ():
        raise TypeError(
            f"an array of shape {value.shape} cannot be compared with arrays of a source: "
            "use isin() for a set of values"
        )
    value = value[()] if hasattr(value, "__getitem__") and not isinstance(value, str | bytes) else value
    kind = value.dtype.kind
    if kind == "M":
        if str(value) == "NaT":
            raise ValueError("NaT is not a time: use isnull() or notnull()")
        # All digits that it holds; the query language reads to the microsecond, and refuses more.
        return _Moment(str(value))
    if kind == "f" and value.dtype.itemsize > 8:
        if float(value) != value:
            raise TypeError(
                f"{value!r} has more digits than a 64-bit float: convert it by float() if that is meant"
            )
        return float(value)
    if kind in "biufU":
        return value.item()
    raise TypeError(f"{value!r} ({value.dtype}) cannot be compared with arrays")


class _Moment:
    """A date that is already text."""

    calendar = "proleptic_gregorian"

    def __init__(self, text: str) -> None:
        self.text = text


def _date_text(value: Any) -> str:  # noqa: ANN401 - a date of Python, of cftime, or a _Moment
    if isinstance(value, _Moment):
        return value.text
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        return str(value.isoformat())
    if isinstance(value, dt.date):
        return value.isoformat()
    if not all(hasattr(value, name) for name in ("year", "month", "day", "hour", "minute", "second")):
        raise TypeError(f"{value!r} ({type(value).__name__}) is not a date")
    sign, micro = "-" if value.year < 0 else "", getattr(value, "microsecond", 0)
    day = f"{sign}{abs(value.year):04d}-{value.month:02d}-{value.day:02d}"
    time = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return f"{day}T{time}.{micro:06d}" if micro else f"{day}T{time}"
