"""How HDF5 lays arrays out: every chunk index, contiguous, compact, edge and unwritten chunks, user block."""

from pathlib import Path

import h5py
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file

_topic = Topic("layouts", "layouts.h5")


def _ramp(*shape: int, dtype: str = "i4") -> np.ndarray:
    """Values that are all different, and not in order."""
    count = int(np.prod(shape))
    return (np.arange(count) * 7919 % 10007).reshape(shape).astype(dtype)


def _early(f: h5py.File, name: str, values: np.ndarray, chunks: tuple[int, ...]) -> None:
    """Write an unfiltered array of fixed size whose chunks are allocated at once: the implicit index."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    space = h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)


def _compact(f: h5py.File, name: str, values: np.ndarray) -> None:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)


def _write_common(f: h5py.File) -> None:
    """Write arrays whose index depends on the version of the format: B-trees in the earliest."""
    one, two = (None,), (None, None)
    f.create_dataset("fixed", data=_ramp(23, 31), chunks=(5, 7))
    f.create_dataset("fixed_filtered", data=_ramp(23, 31), chunks=(5, 7), compression="gzip", shuffle=True)
    f.create_dataset("growing", data=_ramp(301), chunks=(4,), maxshape=one)
    f.create_dataset("growing_filtered", data=_ramp(301), chunks=(4,), maxshape=one, compression="gzip")
    f.create_dataset("growing_both", data=_ramp(37, 29), chunks=(3, 4), maxshape=two)
    f.create_dataset("both_filtered", data=_ramp(37, 29), chunks=(3, 4), maxshape=two, compression="lzf")
    f.create_dataset("many", data=_ramp(3001), chunks=(1,))
    f.create_dataset("many_growing", data=_ramp(3001), chunks=(1,), maxshape=one)
    f.create_dataset("single", data=_ramp(6, 5), chunks=(6, 5))
    f.create_dataset("single_filtered", data=_ramp(6, 5), chunks=(6, 5), compression="gzip", fletcher32=True)
    f.create_dataset("single_edge", data=_ramp(5, 5), chunks=(8, 8), maxshape=(8, 8))
    cube = f.create_dataset("holes", (9, 8, 7), "i2", chunks=(4, 3, 3), fillvalue=-7)
    cube[2:5, 1:3, 5:] = _ramp(3, 2, 2, dtype="i2")
    cube = f.create_dataset("holes_filtered", (9, 8), "f4", chunks=(4, 3), fillvalue=2.5, compression="gzip")
    cube[:2, :2] = 1.0
    f.create_dataset("unwritten", (4, 3), "i4", chunks=(2, 2))
    f.create_dataset("unwritten_fill", (4, 3), "f8", chunks=(2, 2), fillvalue=9.5)
    f.create_dataset("never_allocated", (5,), "i4", fillvalue=11)
    f.create_dataset("zero", (0, 3), "f8", maxshape=(None, 3), chunks=(2, 3))
    f.create_dataset("zero_fixed", (3, 0), "i4")
    f.create_dataset("scalar", data=np.float64(6.25))
    f.create_dataset("scalar_unwritten", (), "i4", fillvalue=11)
    f.create_dataset("contiguous", data=_ramp(13, 17))
    grown = f.create_dataset("grown", (3, 4), "i8", chunks=(2, 2), maxshape=two, fillvalue=-1)
    grown[...] = _ramp(3, 4)
    grown.resize((5, 6))
    shrunk = f.create_dataset("shrunk", data=_ramp(9, 9), chunks=(4, 4), maxshape=(9, 9))
    shrunk.resize((6, 5))
    _early(f, "implicit", _ramp(11, 13), (4, 5))
    _compact(f, "compact", _ramp(6, 7))


@file("layouts.h5")
def write_latest(path: Path) -> None:
    """Write the layouts of the newest format: single, implicit, fixed and extensible array, v2 B-tree."""
    with h5py.File(path, "w", libver="latest") as f:
        _write_common(f)


@file("layouts_v1.h5")
def write_earliest(path: Path) -> None:
    """Write the same arrays as the oldest format has them: all chunks in version 1 B-trees."""
    with h5py.File(path, "w", libver="earliest") as f:
        _write_common(f)


@file("user_block.h5")
def write_user_block(path: Path) -> None:
    """Write a file that begins with 1024 bytes of something else, so that all addresses are shifted."""
    with h5py.File(path, "w", userblock_size=1024) as f:
        f.create_dataset("fixed_filtered", data=_ramp(23, 31), chunks=(5, 7), compression="gzip")
        f.create_dataset("contiguous", data=_ramp(13, 17))
    with path.open("r+b") as raw:
        raw.write(b"#!/bin/sh\n" * 100)


def _threshold_case(name: str, array: str, above: float, file: str) -> None:
    def hits(f: Reference) -> np.ndarray:
        return f(array) > above

    with_rank = {1: "phony", 2: "rows columns", 3: "planes rows columns"}
    rank = {
        "growing": 1,
        "growing_filtered": 1,
        "many": 1,
        "many_growing": 1,
        "never_allocated": 1,
        "holes": 3,
    }
    dims = with_rank[rank.get(array, 2)].split()
    _topic.where(
        name,
        f"{array} > {above}",
        " ".join(dims),
        hits,
        {array: lambda f: f.raw(array)},
        file=file,
        options={"dims": {array: dims}},
    )


_THRESHOLDS = {
    "fixed": 9900,
    "fixed_filtered": 9900,
    "growing": 9800,
    "growing_filtered": 9800,
    "growing_both": 9950,
    "both_filtered": 9950,
    "many": 9995,
    "many_growing": 9995,
    "single": 8000,
    "single_filtered": 8000,
    "single_edge": 8000,
    "implicit": 9700,
    "compact": 8000,
    "contiguous": 9700,
    "grown": 6000,
    "shrunk": 8000,
    "holes": 9000,
    "holes_filtered": 1.5,
    "unwritten_fill": 9,
    "never_allocated": 10,
}
for _file, _suffix in (("layouts.h5", ""), ("layouts_v1.h5", "_v1")):
    for _array, _above in _THRESHOLDS.items():
        _threshold_case(f"{_array}{_suffix}", _array, _above, _file)
for _array in ("fixed_filtered", "contiguous"):
    _threshold_case(f"user_block_{_array}", _array, 9900, "user_block.h5")

_topic.where(
    "unwritten_is_zero",
    "unwritten = 0",
    "y x",
    lambda f: f("unwritten") == 0,
    {"unwritten": lambda f: f.raw("unwritten")},
    options={"dims": {"unwritten": ["y", "x"]}},
)
_topic.where("zero_sized", "zero > 0", "y x", lambda f: f("zero") > 0, options={"dims": {"zero": ["y", "x"]}})
_topic.where(
    "zero_sized_fixed",
    "zero_fixed > 0",
    "y x",
    lambda f: f("zero_fixed") > 0,
    options={"dims": {"zero_fixed": ["y", "x"]}},
)
_topic.sql("zero_sized_count", "SELECT count(*) FROM '{file}' WHERE zero > 0", ["count(*)"], lambda f: [[0]])
_topic.where(
    "scalar_true", "scalar = 6.25", "", lambda f: f("scalar") == 6.25, {"scalar": lambda f: f("scalar")}
)
_topic.where("scalar_false", "scalar < 6.25", "", lambda f: f("scalar") < 6.25)
for _name, _text, _test in (
    ("less", "scalar < scalar", lambda x: np.less(x, x)),
    ("equal", "scalar = scalar", lambda x: np.equal(x, x)),
    ("sum", "scalar + scalar > 12.5", lambda x: x + x > 12.5),
    ("sum_equal", "scalar + scalar >= 12.5", lambda x: x + x >= 12.5),
    ("both", "scalar > 0 AND scalar * scalar < 0", lambda x: (x > 0) & (x * x < 0)),
):
    _topic.where(f"scalar_computed_{_name}", _text, "", lambda f, test=_test: np.asarray(test(f("scalar"))))
for _name, _symbol, _test in (("less", "<", np.less), ("equal", "=", np.equal), ("more", ">", np.greater)):
    _topic.where(
        f"scalar_unwritten_{_name}",
        f"scalar_unwritten {_symbol} 11",
        "",
        lambda f, test=_test: test(f("scalar_unwritten"), 11),
    )
_topic.where(
    "scalar_broadcast",
    "compact > scalar * 1500",
    "y x",
    lambda f: f("compact") > 6.25 * 1500,
    options={"dims": {"compact": ["y", "x"]}},
)
_topic.sql(
    "holes_by_value",
    "SELECT count(*), min(holes), max(holes) FROM '{file}' WHERE holes <> -7",
    ["count(*)", "min(holes)", "max(holes)"],
    lambda f: [
        [int((f("holes") != -7).sum()), int(f("holes")[f("holes") != -7].min()), int(f("holes").max())]
    ],
)
