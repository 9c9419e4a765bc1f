"""Texts: fixed and variable length, padding, UTF-8, character arrays, as values and as conditions."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np

from corpus.registry import Topic, file, table

_topic = Topic("strings", "strings.h5")

_NAMES = ["Oslo", "Łódź", "Ny-Ålesund", "", "São Paulo", "oslo"]


@file("strings.h5")
def write_strings(path: Path) -> None:
    """Write the same names as fixed and variable texts, contiguous and chunked."""
    with h5py.File(path, "w") as f:
        arrays = {
            "vlen": (np.array(_NAMES, object), {"dtype": h5py.string_dtype()}),
            "vlen_chunked": (np.array(_NAMES, object), {"dtype": h5py.string_dtype(), "chunks": (4,)}),
            "fixed": ([n.encode() for n in _NAMES], {"dtype": h5py.string_dtype("utf-8", 14)}),
            "fixed_deflate": (
                [n.encode() for n in _NAMES],
                {"dtype": h5py.string_dtype("utf-8", 14), "chunks": (4,), "compression": "gzip"},
            ),
            "code": (np.array([b"AB", b"CDE", b"F", b"", b"GHIJ", b"AB"], "S4"), {}),
            "height": (np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), {}),
        }
        for name, (values, options) in arrays.items():
            f.create_dataset(name, data=values, **options).dims[0].label = "station"
        space_padded = h5py.h5t.C_S1.copy()
        space_padded.set_size(6)
        space_padded.set_strpad(h5py.h5t.STR_SPACEPAD)
        padded = h5py.h5d.create(f.id, b"padded", space_padded, h5py.h5s.create_simple((3,)))
        padded.write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab    ", b"a b   ", b"abcdef"], "S6"), space_padded
        )
        f.create_dataset("title", data="a scalar text")


@file("characters.nc")
def write_characters(path: Path) -> None:
    """Write names as a netCDF string variable and as character arrays with a dimension for the length."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("station", 6)
        f.createDimension("name_len", 14)
        f.createVariable("name", str, ("station",))[:] = np.array(_NAMES, object)
        chars = f.createVariable("char_name", "S1", ("station", "name_len"))
        chars._Encoding = "utf-8"  # noqa: SLF001 -- the attribute's name
        chars[:] = np.array(_NAMES, "U14")
        f.createVariable("height", "f4", ("station",))[:] = [1, 2, 3, 4, 5, 6]


def _equality(array: str) -> None:
    _topic.where(
        f"{array}_equals",
        f"{array} = 'Łódź'",
        "station",
        lambda f: f.texts(array) == "Łódź",
        {array: lambda f: f.texts(array)},
    )


for _array in ("vlen", "vlen_chunked", "fixed", "fixed_deflate"):
    _equality(_array)
_topic.where(
    "empty_text",
    "fixed = ''",
    "station",
    lambda f: f.texts("fixed") == "",
    {"vlen": lambda f: f.texts("vlen")},
)
_topic.where("unequal", "vlen <> 'Oslo'", "station", lambda f: f.texts("vlen") != "Oslo")
_topic.where(
    "in_list", "code IN ('AB', 'F', 'zz')", "station", lambda f: np.isin(f.raw("code"), [b"AB", b"F"])
)
_topic.where("case_matters", "vlen = 'oslo'", "station", lambda f: f.texts("vlen") == "oslo")
_topic.where(
    "like",
    "vlen LIKE '%o'",
    "station",
    lambda f: np.array([t.endswith("o") for t in f.texts("vlen")]),
    {"vlen": lambda f: f.texts("vlen")},
)
_topic.where("like_one_character", "vlen LIKE '_ódź'", "station", lambda f: f.texts("vlen") == "Łódź")
_topic.where(
    "text_and_number",
    "height > 1 AND code = 'AB'",
    "station",
    lambda f: (f("height") > 1) & (f.raw("code") == b"AB"),
    {"height": lambda f: f.raw("height")},
)
_topic.where("order_of_code_points", "vlen < 'P'", "station", lambda f: f.texts("vlen") < "P")
_topic.where(
    "netcdf_string",
    "name = 'São Paulo'",
    "station",
    lambda f: f.texts("name") == "São Paulo",
    file="characters.nc",
)
_topic.where(
    "netcdf_characters",
    "char_name = 'São Paulo' OR char_name = 'Łódź'",
    "station",
    lambda f: np.isin(f.texts("char_name").astype(str), ["São Paulo", "Łódź"]),
    {"char_name": lambda f: f.texts("char_name")},
    file="characters.nc",
)
_topic.sql(
    "listing",
    "SELECT vlen, fixed, code, height FROM '{file}' WHERE height >= 3 ORDER BY height DESC",
    ["vlen", "fixed", "code", "height"],
    lambda f: table(f("height") >= 3, f.texts("vlen"), f.texts("fixed"), f.texts("code"), f("height"))[::-1],
)
_topic.sql(
    "scalar_text",
    "SELECT title FROM '{file}'",
    ["title"],
    lambda f: [["a scalar text"]],
)
_topic.sql(
    "group_by_text",
    "SELECT code, count(*) AS n FROM '{file}' GROUP BY code ORDER BY code",
    ["code", "n"],
    lambda f: [["", 1], ["AB", 2], ["CDE", 1], ["F", 1], ["GHIJ", 1]],
)
