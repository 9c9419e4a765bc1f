"""Members of compound types as arrays: padded, nested, array-valued, big-endian, chunked."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np

from corpus.registry import Topic, file, table

_topic = Topic("compounds", "compounds.h5")

_VECTOR = np.dtype([("x", "f4"), ("y", "f4")])
_ROW = np.dtype(
    [("id", ">u4"), ("mass", "f8"), ("name", "S5"), ("at", _VECTOR), ("moments", "i2", (3,)), ("ok", "?")],
    align=True,
)


def _rows(count: int) -> np.ndarray:
    rows = np.zeros(count, _ROW)
    n = np.arange(count)
    rows["id"], rows["mass"], rows["name"] = n * 10, np.sqrt(n), [f"p{i}" for i in n]
    rows["at"]["x"], rows["at"]["y"] = n * 0.5, -n
    rows["moments"], rows["ok"] = n[:, None] * [1, 10, 100], n % 2 == 0
    return rows


@file("compounds.h5")
def write_compounds(path: Path) -> None:
    """Write one table contiguous and one in deflated chunks."""
    with h5py.File(path, "w") as f:
        g = f.create_group("run")
        for name, options in (
            ("table", {}),
            ("packed", {"chunks": (7,), "compression": "gzip", "shuffle": True}),
        ):
            g.create_dataset(name, data=_rows(25), **options).dims[0].label = "row"
        g.create_dataset("weight", data=np.arange(25.0)[::-1]).dims[0].label = "row"


@file("compounds.nc")
def write_netcdf(path: Path) -> None:
    """Write a compound variable the netCDF way."""
    kind = np.dtype([("speed", "f4"), ("direction", "i2")], align=True)
    with netCDF4.Dataset(path, "w") as f:
        wind = f.createCompoundType(kind, "wind_t")
        f.createDimension("station", 4)
        values = np.array([(1.5, 10), (2.5, 350), (9.0, 90), (12.25, 180)], kind)
        f.createVariable("wind", wind, ("station",))[:] = values


def _member_cases(table_name: str) -> None:
    path = f"run/{table_name}"

    def member(f: object, *keys: str) -> np.ndarray:
        values = f.raw(path)
        for key in keys:
            values = values[key]
        return values

    def ask(name: str, condition: str, hits: object, reads: dict[str, object] | None = None) -> None:
        _topic.where(
            f"{table_name}_{name}", condition.replace("T.", f"run/{table_name}."), "row", hits, reads
        )

    ask(
        "float",
        "T.mass > 4.5",
        lambda f: member(f, "mass") > 4.5,
        {f"{path}.mass": lambda f: member(f, "mass")},
    )
    ask(
        "big_endian",
        "T.id >= 220",
        lambda f: member(f, "id") >= 220,
        {f"{path}.id": lambda f: member(f, "id").astype("u4")},
    )
    ask(
        "nested",
        "T.at.x > 10 AND T.at.y > -23",
        lambda f: (member(f, "at", "x") > 10) & (member(f, "at", "y") > -23),
    )
    ask("text", "T.name = 'p7'", lambda f: member(f, "name") == b"p7")
    ask("bool", "T.ok AND T.mass > 4.5", lambda f: member(f, "ok") & (member(f, "mass") > 4.5))
    ask(
        "beside_an_array",
        "T.mass > 4 AND run/weight > 5",
        lambda f: (member(f, "mass") > 4) & (f("run/weight") > 5),
    )


_member_cases("table")
_member_cases("packed")
_topic.sql(
    "array_member",
    "SELECT count(*), sum(moments) FROM '{file}' WHERE run/table.moments > 1000",
    ["count(*)", "sum(moments)"],
    lambda f: (lambda m: [[int((m > 1000).sum()), int(m[m > 1000].sum())]])(
        f.raw("run/table")["moments"].astype("i8")
    ),
    file="array_member.h5",
)
_topic.where("double_colon", "run/table::mass > 4.5", "row", lambda f: f.raw("run/table")["mass"] > 4.5)
_topic.sql(
    "netcdf_compound",
    "SELECT speed, direction FROM '{file}' WHERE wind.speed > 2 ORDER BY direction",
    ["speed", "direction"],
    lambda f: [[9.0, 90], [12.25, 180], [2.5, 350]],
    file="compounds.nc",
)
_topic.error("ambiguous_member", "mass > 1", "ambiguous-name", "run/packed.mass")


@file("array_member.h5")
def write_array_member(path: Path) -> None:
    """Write one table, so that bare names of members are unique."""
    with h5py.File(path, "w") as f:
        f.create_group("run").create_dataset("table", data=_rows(25))


_topic.sql(
    "all_members_by_leaf",
    "SELECT id, mass, x FROM '{file}' WHERE mass > 4.7",
    ["id", "mass", "x"],
    lambda f: (lambda t: table(t["mass"] > 4.7, t["id"], t["mass"], t["at"]["x"]))(f.raw("run/table")),
    file="array_member.h5",
)
