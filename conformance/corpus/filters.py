"""Filters of HDF5 chunks: the library's own, the registered ones, masks, and what no one here can decode."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np

from corpus.reference import Reference
from corpus.registry import Topic, file

_topic = Topic("filters", "filters.h5")


def _smooth(dtype: str) -> np.ndarray:
    """Values with something to compress: 61 by 47, so that no chunk divides them."""
    y, x = np.mgrid[0:61, 0:47]
    field = 100 * np.sin(y / 9) * np.cos(x / 7) + (y * 47 + x) % 5
    return np.rint(field).astype(dtype) if np.dtype(dtype).kind == "i" else field.astype(dtype)


def _blosc(**options: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return dict(hdf5plugin.Blosc(**options))


def _blosc2(**options: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return dict(hdf5plugin.Blosc2(**options))


_BLOSC_CODECS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
_DECODABLE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "deflate": ("i4", {"compression": "gzip", "compression_opts": 4}),
    "deflate_9": ("f8", {"compression": "gzip", "compression_opts": 9}),
    "shuffle": ("f4", {"shuffle": True}),
    "shuffle_deflate": ("f4", {"shuffle": True, "compression": "gzip"}),
    "fletcher32": ("i2", {"fletcher32": True}),
    "deflate_fletcher32": ("f8", {"compression": "gzip", "fletcher32": True}),
    "shuffle_deflate_fletcher32": ("i8", {"shuffle": True, "compression": "gzip", "fletcher32": True}),
    "lzf": ("f4", {"compression": "lzf"}),
    "lzf_shuffle": ("i4", {"compression": "lzf", "shuffle": True}),
    "scaleoffset_int": ("i4", {"scaleoffset": 0}),
    "zstd": ("f4", dict(hdf5plugin.Zstd())),
    "lz4": ("f4", dict(hdf5plugin.LZ4())),
    "bzip2": ("i4", dict(hdf5plugin.BZip2())),
    "bitshuffle": ("f4", dict(hdf5plugin.Bitshuffle(cname="none"))),
    "bitshuffle_lz4": ("i4", dict(hdf5plugin.Bitshuffle(cname="lz4"))),
    "bitshuffle_zstd": ("f8", dict(hdf5plugin.Bitshuffle(cname="zstd"))),
    "zfp_reversible": ("f4", dict(hdf5plugin.Zfp(reversible=True))),
    "blosc_noshuffle": ("f8", _blosc(cname="lz4", shuffle=0)),
    "blosc_bitshuffle": ("f4", _blosc(cname="zstd", shuffle=2)),
    "blosc2_bitshuffle": ("f4", _blosc2(cname="zstd", filters=2)),
    **{f"blosc_{codec}": ("f4", _blosc(cname=codec)) for codec in _BLOSC_CODECS},
    **{f"blosc2_{codec}": ("i4", _blosc2(cname=codec)) for codec in _BLOSC_CODECS},
}


def _write_nbit(f: h5py.File) -> None:
    """Write integers of 20 significant bits packed by the nbit filter."""
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(20)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((16, 16))
    plist.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
    space = h5py.h5s.create_simple((61, 47))
    dataset = h5py.h5d.create(f.id, b"nbit", kind, space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, _smooth("i4"))


@file("filters.h5")
def write_filters(path: Path) -> None:
    """Write the same field through every filter that h5py and hdf5plugin can write without loss."""
    with h5py.File(path, "w") as f:
        for name, (dtype, options) in _DECODABLE.items():
            f.create_dataset(name, data=_smooth(dtype), chunks=(16, 20), **options)
        _write_nbit(f)
        if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            f.create_dataset(
                "szip", data=_smooth("i4"), chunks=(16, 20), compression="szip", compression_opts=("nn", 8)
            )
        f.create_dataset("sperr", data=_smooth("f4"), chunks=(16, 20), **dict(hdf5plugin.Sperr(rate=16)))


@file("filter_masks.h5")
def write_masks(path: Path) -> None:
    """Write chunks with different filters left out, as a writer may that gains nothing by one."""
    values = _smooth("i4")[:32, :32]
    with h5py.File(path, "w") as f:
        d = f.create_dataset("masked", (32, 32), "i4", chunks=(16, 16), shuffle=True, compression="gzip")
        d[...] = values
        plain = np.ascontiguousarray(values[:16, :16])
        d.id.write_direct_chunk((0, 0), plain.tobytes(), 0b11)  # neither shuffled nor deflated
        shuffled = np.ascontiguousarray(values[:16, 16:]).view("u1").reshape(-1, 4).T
        d.id.write_direct_chunk((0, 16), shuffled.tobytes(), 0b10)  # shuffled only


def _field_case(name: str, file: str = "filters.h5") -> None:
    def hits(f: Reference) -> np.ndarray:
        return (f(name) > 101.5) | (f(name) < -98)

    condition = f"{name} > 101.5 OR {name} < -98"
    reads = {name: lambda f: f.raw(name)}
    _topic.where(name, condition, "y x", hits, reads, file=file, options={"dims": {name: ["y", "x"]}})


for _name in (*_DECODABLE, "nbit"):
    _field_case(_name)
_field_case("masked", "filter_masks.h5")
_topic.error("sperr_is_not_available", "sperr > 0", "filter-unavailable", "32028")
