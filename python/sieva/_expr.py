"""Expressions and conditions built by Python operators: trees of the query language, held by the engine."""

from __future__ import annotations

import datetime as dt
import numbers
from typing import TYPE_CHECKING, Any, NoReturn

from sieva import _native, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# The query language holds integers of 128 bits.
_INT_MIN, _INT_MAX = -(2**127), 2**127 - 1


class Expr:
    """A value or a condition over the arrays of a source, as the query language has them.

    Made by the operators of `Array` and of other expressions, and by `col`, `idx` and `fn`; never changed.
    Text and expressions are the same to a query: ``str(expr)`` can be pasted into SQL.

    Parameters
    ----------
    text
        An expression of the query language.

    Raises
    ------
    SyntaxError_
        The text is no expression.

    Examples
    --------
    >>> from sieva import col, fn
    >>> (col("TEMP") > 5) & (col("z_t") < 5000)
    <sieva.Expr "TEMP" > 5 AND "z_t" < 5000>
    >>> fn.sqrt(col("u") ** 2 + col("v") ** 2) >= 0.1
    <sieva.Expr sqrt("u" ^ 2 + "v" ^ 2) >= 0.1>
    """

    __slots__ = ("_tree",)

    _tree: _native.Expr

    # An equality makes an expression, so that there is nothing to hash by.
    __hash__ = None  # type: ignore[assignment]
    # numpy scalars and arrays on the left leave the operator to us.
    __array_ufunc__ = None

    def __init__(self, text: str) -> None:
        self._tree = _native.Expr.parse(text)

    @staticmethod
    def _of(tree: _native.Expr) -> Expr:
        expr = Expr.__new__(Expr)
        expr._tree = tree
        return expr

    def __str__(self) -> str:
        return str(self._tree)

    def __repr__(self) -> str:
        return f"<sieva.Expr {self}>"

    def __reduce__(self) -> tuple[object, ...]:
        return (Expr, (str(self),))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value: join conditions by & | ~ instead of and, or, not, each in "
            "parentheses, and use isin() for in"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is an expression, not a sequence")

    def __contains__(self, _: object) -> NoReturn:
        raise TypeError("use isin() or between() for what would be `in`")

    def _compare(self, symbol: str, other: object) -> Expr:
        if other is None:
            raise TypeError("nothing is equal to None, less or greater: use isnull() or notnull()")
        return Expr._of(self._tree.compare(symbol, as_expr(other)._tree))

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
        return Expr._of(self._tree.both(as_expr(other)._tree))

    def __rand__(self, other: object) -> Expr:
        return Expr._of(as_expr(other)._tree.both(self._tree))

    def __or__(self, other: object) -> Expr:
        return Expr._of(self._tree.either(as_expr(other)._tree))

    def __ror__(self, other: object) -> Expr:
        return Expr._of(as_expr(other)._tree.either(self._tree))

    def __invert__(self) -> Expr:
        return Expr._of(self._tree.opposite())

    def __add__(self, other: object) -> Expr:
        return _binary(self, "+", other)

    def __radd__(self, other: object) -> Expr:
        return _binary(other, "+", self)

    def __sub__(self, other: object) -> Expr:
        return _binary(self, "-", other)

    def __rsub__(self, other: object) -> Expr:
        return _binary(other, "-", self)

    def __mul__(self, other: object) -> Expr:
        return _binary(self, "*", other)

    def __rmul__(self, other: object) -> Expr:
        return _binary(other, "*", self)

    def __truediv__(self, other: object) -> Expr:
        return _binary(self, "/", other)

    def __rtruediv__(self, other: object) -> Expr:
        return _binary(other, "/", self)

    def __floordiv__(self, other: object) -> Expr:
        return _binary(self, "//", other)

    def __rfloordiv__(self, other: object) -> Expr:
        return _binary(other, "//", self)

    def __mod__(self, other: object) -> Expr:
        return _binary(self, "%", other)

    def __rmod__(self, other: object) -> Expr:
        return _binary(other, "%", self)

    def __pow__(self, other: object) -> Expr:
        return _binary(self, "^", other)

    def __rpow__(self, other: object) -> Expr:
        return _binary(other, "^", self)

    def __neg__(self) -> Expr:
        return Expr._of(self._tree.negative())

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return _call("abs", self)

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
        return Expr._of(self._tree.one_of([as_expr(value)._tree for value in values]))

    def between(self, low: object, high: object) -> Expr:
        """Return the condition ``low <= value <= high``: both ends belong to it.

        Examples
        --------
        >>> from sieva import col
        >>> col("TLAT").between(18, 31)
        <sieva.Expr "TLAT" BETWEEN 18 AND 31>
        """
        return Expr._of(self._tree.between(as_expr(low)._tree, as_expr(high)._tree))

    def isnull(self) -> Expr:
        """Return the condition that the value is missing: a fill value, or NaN."""
        return Expr._of(self._tree.is_null(False))

    def notnull(self) -> Expr:
        """Return the condition that there is a value."""
        return Expr._of(self._tree.is_null(True))


def _binary(left: object, symbol: str, right: object) -> Expr:
    """Return an operation."""
    return Expr._of(as_expr(left)._tree.binary(symbol, as_expr(right)._tree))


def _call(name: str, *args: object) -> Expr:
    """Return a function's value."""
    return Expr._of(_native.Expr.call(name, [as_expr(arg)._tree for arg in args]))


def _name(name: str) -> _native.Expr:
    """Return a name, which is taken literally."""
    if not name:
        raise errors.InvalidValue("a name must not be empty")
    return _native.Expr.name(name)


def col(name: str) -> Expr:
    """Return the array or dimension ``name``, by its path or, where it is unique, by its last part.

    Examples
    --------
    >>> from sieva import col
    >>> col("ocean/TEMP") > 5
    <sieva.Expr "ocean/TEMP" > 5>
    """
    return Expr._of(_name(name))


def idx(dimension: str) -> Expr:
    """Return the position along a dimension, counted from 0.

    Examples
    --------
    >>> from sieva import idx
    >>> idx("nlat") < 100
    <sieva.Expr idx("nlat") < 100>
    """
    return _call("idx", col(dimension))


class Functions:
    """The functions of the query language as methods: ``fn.sqrt(x)``, ``fn.month(col("time"))``.

    Whether a function exists is known when the query is made, and the error lists those that do.
    """

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: object) -> Expr:
            return _call(name, *args)

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
        return Expr._of(_native.Expr.text(value))
    if isinstance(value, bool):
        return Expr._of(_native.Expr.boolean(value))
    if isinstance(value, numbers.Integral):
        return _integer(int(value))
    if isinstance(value, float):
        return Expr._of(_native.Expr.number(value))
    if isinstance(value, dt.date) or hasattr(value, "calendar"):
        return Expr._of(_native.Expr.date(_date_text(value)))
    raise TypeError(
        f"{value!r} ({type(value).__name__}) cannot be compared with arrays: "
        "expected a number, a text, a date or an expression"
    )


def asked(item: object) -> str | _native.Expr:
    """Return what the engine is given for an expression, or for its text."""
    return item._tree if isinstance(item, Expr) else str(item)


def _integer(value: int) -> Expr:
    if not _INT_MIN <= value <= _INT_MAX:
        raise ValueError(f"integer {value} does not fit into 128 bits: write it as a float")
    return Expr._of(_native.Expr.integer(value))


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
