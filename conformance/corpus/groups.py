"""Groups and links: paths, leaf names, hard and soft links, cycles, links out of the file."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np

from corpus.registry import Topic, file

_topic = Topic("groups", "groups.h5")


@file("groups.h5")
def write_groups(path: Path) -> None:
    """Write nested groups, several names for one array, cycles, and links that lead nowhere or outside."""
    with h5py.File(path, "w") as f:
        f.create_dataset("a/b/values", data=np.arange(6.0)).dims[0].label = "n"
        f.create_dataset("a/values", data=np.arange(6.0) * 10).dims[0].label = "n"
        f.create_dataset("a/b/only", data=np.arange(6, dtype="i4")).dims[0].label = "n"
        f.create_dataset('odd names/it\'s a "test"', data=np.arange(3)).dims[0].label = "k"
        f.create_dataset("odd names/1st", data=np.arange(3) + 1).dims[0].label = "k"
        f["hard"] = f["a/b/only"]
        f["soft"] = h5py.SoftLink("/a/b/only")
        f["a/b/up"] = f["a"]
        f["a/around"] = h5py.SoftLink("/a")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["outside"] = h5py.ExternalLink("target.h5", "/data")


@file("target.h5")
def write_target(path: Path) -> None:
    """Write what the external link leads to."""
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=np.arange(4)).dims[0].label = "n"


@file("groups.nc")
def write_netcdf_groups(path: Path) -> None:
    """Write a group that uses a dimension and a coordinate of its parent."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("x", 5)
        f.createVariable("x", "f8", ("x",))[:] = np.arange(5) * 2.5
        inner = f.createGroup("model").createGroup("run1")
        inner.createVariable("T", "f4", ("x",))[:] = [10, 11, 12, 13, 14]
        inner.createDimension("level", 2)
        inner.createVariable("S", "f4", ("level", "x"))[:] = np.arange(10).reshape(2, 5)


def _all(count: int, *hits: int) -> object:
    return lambda f: np.isin(np.arange(count), hits)


_topic.where("full_path", "a/b/values > 4", "n", lambda f: f("a/b/values") > 4)
_topic.where("leading_slash", "/a/b/values > 4", "n", lambda f: f("a/b/values") > 4)
_topic.where("tail_of_a_path", "b/values > 4", "n", lambda f: f("a/b/values") > 4)
_topic.where(
    "unique_leaf", "only >= 4", "n", lambda f: f("a/b/only") >= 4, {"only": lambda f: f.raw("a/b/only")}
)
_topic.where("hard_link", "hard >= 4", "n", lambda f: f("a/b/only") >= 4)
_topic.where("soft_link", "soft >= 4", "n", lambda f: f("a/b/only") >= 4)
_topic.where(
    "dimensions_of_two_groups",
    "a/values > 30 AND a/b/values < 2",
    "a/n a/b/n",
    lambda f: (f("a/values") > 30)[:, None] & (f("a/b/values") < 2),
    options={"cross": True},
)
_topic.error(
    "dimensions_of_two_groups_unasked",
    "a/values > 30 AND a/b/values < 2",
    "unaligned-dimensions",
    'dims={"a/b/values": ["a/n"]}',
)
_topic.where(
    "two_groups_lined_up",
    "a/values > 10 AND a/b/values < 4",
    "n",
    lambda f: (f("a/values") > 10) & (f("a/b/values") < 4),
    options={"dims": {"a/values": ["n"], "a/b/values": ["n"]}},
)
_topic.where("quoted_name", '"odd names/it\'s a ""test""" > 0', "k", _all(3, 1, 2))
_topic.where("quoted_digit_first", '"odd names/1st" = 2', "k", _all(3, 1))
_topic.where("backquotes", "`odd names/1st` = 2", "k", _all(3, 1))
_topic.where("division_of_paths", "a/values/2 > 20", "n", lambda f: f("a/values") / 2 > 20)
_topic.where("netcdf_group", "T > 12", "x", lambda f: f("model/run1/T") > 12, file="groups.nc")
_topic.where(
    "coordinate_of_the_parent",
    "model/run1/T > 10 AND x < 8",
    "x",
    lambda f: (f("model/run1/T") > 10) & (f("x") < 8),
    file="groups.nc",
)
_topic.where(
    "dimension_of_the_parent",
    "S > 3 AND T < 13",
    "level x",
    lambda f: (f("model/run1/S") > 3) & (f("model/run1/T") < 13),
    file="groups.nc",
)
_topic.error("ambiguous_leaf", "a = 1 OR values > 1", "unknown-array", "'a'")
_topic.error("external_link_refused", "outside > 0", "link-refused", "target.h5")
_topic.error("dangling_link", "dangling > 0", "unknown-array", "dangling")
