"""The netCDF classic formats: classic, 64-bit offset and 64-bit data, fixed and record variables, padding."""

from pathlib import Path

import netCDF4
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file

_topic = Topic("netcdf3", "classic.nc")

_FORMATS = {"classic": "NETCDF3_CLASSIC", "offset64": "NETCDF3_64BIT_OFFSET", "data64": "NETCDF3_64BIT_DATA"}
_KINDS = {"i1": "b", "i2": "s", "i4": "i", "f4": "f", "f8": "d"}
_KINDS_OF_DATA64 = {**_KINDS, "u1": "ub", "u2": "us", "u4": "ui", "u8": "ull", "i8": "ll"}


def _write_classic(path: Path, format_name: str) -> None:
    """Write fixed and interleaved record variables of every type, of odd lengths, so that padding matters."""
    kinds = _KINDS_OF_DATA64 if format_name == "NETCDF3_64BIT_DATA" else _KINDS
    with netCDF4.Dataset(path, "w", format=format_name) as f:
        f.createDimension("time", None)
        f.createDimension("x", 3)
        f.createDimension("len", 3)
        f.title = "odd lengths"
        for kind, name in kinds.items():
            fixed = f.createVariable(f"fixed_{name}", kind, ("x",))
            fixed[:] = np.arange(3) + 1
            record = f.createVariable(f"record_{name}", kind, ("time", "x"))
            record[0:5] = np.arange(15).reshape(5, 3)
        f.createVariable("letters", "S1", ("time", "len"))[0:5] = np.array(
            [list("abc")] * 4 + [list("xyz")], "S1"
        )
        f.createVariable("x", "f4", ("x",))[:] = [0.5, 1.5, 2.5]
        time = f.createVariable("time", "f8", ("time",))
        time.units = "days since 1970-01-01"
        time[:] = np.arange(5) * 10
        f.createVariable("alone", "f8", ())[...] = 3.5


def _write_single_record(path: Path, kind: str) -> None:
    """Write one record variable only: its records are then not padded to four bytes."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as f:
        f.createDimension("time", None)
        f.createDimension("x", 3)
        f.createVariable("fixed", "i1", ("x",))[:] = [7, 8, 9]
        f.createVariable("only", kind, ("time", "x"))[0:7] = np.arange(21).reshape(7, 3)


for _name, _format in _FORMATS.items():
    file(f"{_name}.nc")(lambda path, _format=_format: _write_classic(path, _format))
for _kind in ("i1", "i2", "f4"):
    file(f"single_record_{_kind}.nc")(lambda path, _kind=_kind: _write_single_record(path, _kind))


@file("no_records.nc")
def write_no_records(path: Path) -> None:
    """Write an unlimited dimension of length zero."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as f:
        f.createDimension("time", None)
        f.createVariable("v", "f4", ("time",))


def _format_cases(name: str, kinds: dict[str, str]) -> None:
    for kind in kinds.values():
        array = f"record_{kind}"

        def hits(f: Reference, array: str = array) -> np.ndarray:
            return f(array) > 10

        _topic.where(
            f"{name}_{array}",
            f"{array} > 10",
            "time x",
            hits,
            {array: lambda f, a=array: f.raw(a)},
            file=f"{name}.nc",
        )
    _topic.where(
        f"{name}_fixed_beside_record",
        "record_i > 3 AND fixed_s >= 2 AND x > 2 AND time < 40",
        "time x",
        lambda f: (f("record_i") > 3) & (f("fixed_s") >= 2) & (f("x") > 2) & (f("time") < 40)[:, None],
        {"record_f": lambda f: f.raw("record_f"), "fixed_d": lambda f: f.raw("fixed_d")},
        file=f"{name}.nc",
    )
    _topic.where(
        f"{name}_letters", "letters = 'xyz'", "time", lambda f: f.texts("letters") == "xyz", file=f"{name}.nc"
    )
    _topic.where(f"{name}_date", "time > '1970-01-25'", "time", lambda f: f("time") > 24, file=f"{name}.nc")


for _name in _FORMATS:
    _format_cases(_name, _KINDS_OF_DATA64 if _name == "data64" else _KINDS)
for _kind in ("i1", "i2", "f4"):
    _topic.where(
        f"single_record_{_kind}",
        "only > 16 AND fixed > 7",
        "time x",
        lambda f: (f("only") > 16) & (f("fixed") > 7),
        {"only": lambda f: f.raw("only")},
        file=f"single_record_{_kind}.nc",
    )
_topic.where("no_records", "v > 0", "time", lambda f: f("v") > 0, file="no_records.nc")
_topic.sql(
    "no_records_count", "SELECT count(v) FROM '{file}'", ["count(v)"], lambda f: [[0]], file="no_records.nc"
)
