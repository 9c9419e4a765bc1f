"""Element types and the comparison of numbers: widths, byte orders, special values, beyond 2^53."""

from pathlib import Path

import h5py
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file

_topic = Topic("numbers", "numbers.h5")

_INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
_FLOATS = ("f2", "f4", "f8")


def _labelled(f: h5py.File, name: str, values: np.ndarray, label: str, **options: object) -> None:
    f.create_dataset(name, data=values, **options).dims[0].label = label


def _integer_values(kind: str) -> np.ndarray:
    """Both ends of the range, what is next to them, and small values."""
    info = np.iinfo(kind)
    return np.array([info.min, info.min + 1, 0, 1, 2, 100, info.max - 1, info.max], kind)


def _float_values(kind: str) -> np.ndarray:
    """Zeros of both signs, denormals, extremes, infinities, NaN, and what a decimal literal is near to."""
    info = np.finfo(kind)
    special = [0.0, -0.0, info.smallest_subnormal, -info.smallest_subnormal, info.max, info.min]
    return np.array([*special, np.inf, -np.inf, np.nan, 1.7, 0.1, -1.5], kind)


@file("numbers.h5")
def write_numbers(path: Path) -> None:
    """Write one small array for each element type and byte order, and arrays of values hard to compare."""
    with h5py.File(path, "w") as f:
        for kind in _INTEGERS:
            _labelled(f, kind, _integer_values(kind), "n")
            if kind[1] != "1":
                _labelled(f, f"{kind}_be", _integer_values(kind).astype(f">{kind}"), "n")
        for kind in _FLOATS:
            _labelled(f, kind, _float_values(kind), "m")
            _labelled(f, f"{kind}_be", _float_values(kind).astype(f">{kind}"), "m", chunks=(5,), shuffle=True)
        _labelled(f, "flag", np.array([True, False, True, True, False]), "k")
        colours = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i1")
        _labelled(f, "colour", np.array([0, 1, 42, 42, 0], "i1").astype(colours), "k")
        near = 2**53
        _labelled(f, "wide", np.array([near - 1, near, near + 1, near + 2, 2**62 + 1], "i8"), "k")
        _labelled(f, "wide_u", np.array([near, near + 1, 2**63, 2**63 + 1, 2**64 - 1], "u8"), "k")


def _int_cases(kind: str) -> None:
    info = np.iinfo(kind)
    for name in (kind, f"{kind}_be") if kind[1] != "1" else (kind,):
        _end_cases(name, info)
    below = info.min - 1
    _topic.where(f"{kind}_below_its_range", f"{kind} > {below}", "n", lambda f: f.raw(kind) >= info.min)
    fraction = f"{kind} > 1.5 AND {kind} < 100.5"
    _topic.where(f"{kind}_fraction", fraction, "n", lambda f: np.isin(f.raw(kind), [2, 100]))


def _end_cases(name: str, info: np.iinfo) -> None:
    reads = {name: lambda f: f.raw(name)}
    last, second = info.max - 1, info.min + 2
    _topic.where(f"{name}_max", f"{name} >= {last}", "n", lambda f: f.raw(name) >= last, reads)
    _topic.where(f"{name}_min", f"{name} < {second}", "n", lambda f: f.raw(name) < second, reads)


for _kind in _INTEGERS:
    _int_cases(_kind)


def _float_cases(kind: str) -> None:
    for name in (kind, f"{kind}_be"):
        _zero_cases(name)
    reads = {kind: lambda f: f.raw(kind)}
    # 1.7 and 0.1 are rounded when they are stored: the comparison is of the numbers, as float64.
    _topic.where(f"{kind}_above_decimal", f"{kind} > 1.7", "m", lambda f: f(kind) > 1.7, reads)
    around = f"{kind} >= 0.1 AND {kind} < 2"
    _topic.where(f"{kind}_from_decimal", around, "m", lambda f: (f(kind) >= 0.1) & (f(kind) < 2))
    _topic.where(f"{kind}_missing", f"{kind} IS NULL", "m", lambda f: np.isnan(f(kind)))
    _topic.where(f"{kind}_not_less", f"NOT {kind} < 1", "m", lambda f: f(kind) >= 1)
    _topic.where(f"{kind}_infinite", f"{kind} = inf OR {kind} = -inf", "m", lambda f: np.isinf(f(kind)))


def _zero_cases(name: str) -> None:
    reads = {name: lambda f: f.raw(name)}
    _topic.where(f"{name}_above_zero", f"{name} > 0", "m", lambda f: f(name) > 0, reads)
    _topic.where(f"{name}_equals_zero", f"{name} = 0", "m", lambda f: f(name) == 0, reads)


for _kind in _FLOATS:
    _float_cases(_kind)

_topic.where("float32_denormals", "f4 > 0 AND f4 < 1e-40", "m", lambda f: (f("f4") > 0) & (f("f4") < 1e-40))
_topic.where("nan_equals_nothing", "f8 = nan", "m", lambda f: np.zeros(12, bool))
_topic.where("nan_differs_from_nothing", "f8 <> 5", "m", lambda f: ~np.isnan(f("f8")))
_topic.where("bool_bare", "flag", "k", lambda f: f("flag"), {"flag": lambda f: f.raw("flag")})
_topic.where("bool_not", "NOT flag", "k", lambda f: ~f("flag"))
_topic.where("bool_equals", "flag = FALSE", "k", lambda f: ~f("flag"))
_topic.where(
    "enum_number", "colour = 42", "k", lambda f: f("colour") == 42, {"colour": lambda f: f.raw("colour")}
)
_topic.where("enum_name", "colour = 'BLUE'", "k", lambda f: f("colour") == 42)
_topic.where("enum_names", "colour IN ('RED', 'GREEN')", "k", lambda f: f("colour") < 2)


def _exactly(name: str, *values: int) -> "object":
    """Compare as Python integers, which have no width."""

    def hits(f: Reference) -> np.ndarray:
        return np.array([int(v) in values for v in f.raw(name)])

    return hits


_near = 2**53
_WIDE_CASES = {
    "int64_beyond_2_53": (f"wide = {_near + 1}", "wide", (_near + 1,)),
    "int64_above_2_53": (f"wide > {_near}", "wide", (_near + 1, _near + 2, 2**62 + 1)),
    "int64_above_float_literal": ("wide > 9007199254740992.0", "wide", (_near + 1, _near + 2, 2**62 + 1)),
    "int64_at_float_literal": ("wide <= 9007199254740992.0", "wide", (_near - 1, _near)),
    "int64_equals_float_literal": ("wide = 9007199254740992.0", "wide", (_near,)),
    "uint64_beyond_int64": (f"wide_u = {2**63 + 1}", "wide_u", (2**63 + 1,)),
    "uint64_max": (f"wide_u >= {2**64 - 1}", "wide_u", (2**64 - 1,)),
    "uint64_above_negative": ("wide_u > -1", "wide_u", (_near, _near + 1, 2**63, 2**63 + 1, 2**64 - 1)),
    "uint64_float_literal": ("wide_u > 9.223372036854775808e18", "wide_u", (2**63 + 1, 2**64 - 1)),
}
for _name, (_condition, _array, _values) in _WIDE_CASES.items():
    _topic.where(_name, _condition, "k", _exactly(_array, *_values), {_array: lambda f, a=_array: f.raw(a)})
_topic.where(
    "two_wide_arrays",
    "wide = wide_u - 1",
    "k",
    lambda f: np.array([int(a) == int(b) - 1 for a, b in zip(f.raw("wide"), f.raw("wide_u"), strict=True)]),
    file="numbers_small.h5",
)


@file("numbers_small.h5")
def write_small(path: Path) -> None:
    """Write int64 beside uint64, both beyond 2^53 but within int64."""
    near = 2**53
    with h5py.File(path, "w") as f:
        _labelled(f, "wide", np.array([near - 1, near, near + 1, near + 2], "i8"), "k")
        _labelled(f, "wide_u", np.array([near, near, near + 2, near + 4], "u8"), "k")
