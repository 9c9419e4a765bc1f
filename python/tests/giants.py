"""Tiny files that declare giant sizes: shapes, chunks and counts that no memory holds."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

GIANT = 1 << 60


class Cdf:
    """A netCDF-3 header of any lengths; ``wide``: CDF-5, whose lengths take 64 bits."""

    def __init__(self, version: int) -> None:
        self.wide = version == 5
        self.version = version

    def _n(self, value: int) -> bytes:
        return struct.pack(">q" if self.wide else ">i", value)

    def _name(self, text: str) -> bytes:
        return self._n(len(text)) + text.encode().ljust(-(-len(text) // 4) * 4, b"\0")

    def _items(self, tag: int, count: int, items: list[bytes]) -> bytes:
        return struct.pack(">i", tag) + self._n(count) + b"".join(items) if count else bytes(4) + self._n(0)

    def file(
        self,
        dims: list[tuple[str, int]],
        variables: list[tuple[str, list[int], int]],
        *,
        records: int = 0,
        counts: tuple[int, int] | None = None,
        tail: bytes = bytes(64),
    ) -> bytes:
        """Return a file of dimensions, and of variables by name, dimensions and type."""

        def variable(name: str, of: list[int], kind: int, begin: int) -> bytes:
            head = (
                self._name(name) + self._n(len(of)) + b"".join(self._n(d) for d in of) + self._items(0, 0, [])
            )
            offset = struct.pack(">i" if self.version == 1 else ">q", begin)
            return (
                head + struct.pack(">i", kind) + (self._n(-4) if not self.wide else self._n(1 << 62)) + offset
            )

        def whole(begin: int) -> bytes:
            count_of_dims, count_of_vars = counts or (len(dims), len(variables))
            head = b"CDF" + bytes([self.version]) + self._n(records)
            head += self._items(10, count_of_dims, [self._name(d) + self._n(n) for d, n in dims])
            head += self._items(0, 0, [])
            return head + self._items(11, count_of_vars, [variable(*v, begin) for v in variables])

        return whole(len(whole(0))) + tail


def nc3_classic(path: Path) -> None:
    n = (1 << 31) - 4
    path.write_bytes(Cdf(1).file([("x", n), ("y", 1 << 28)], [("a", [0, 1], 5), ("x", [0], 6)]))


def nc3_records(path: Path) -> None:
    variables = [("a", [0, 1], 5), ("x", [1], 6), ("time", [0], 6)]
    path.write_bytes(Cdf(2).file([("time", 0), ("x", 1 << 20)], variables, records=(1 << 31) - 2))


def nc3_counts(path: Path) -> None:
    path.write_bytes(Cdf(1).file([("x", 3)], [("a", [0], 5)], counts=((1 << 31) - 1, (1 << 31) - 1)))


def nc3_rank(path: Path) -> None:
    path.write_bytes(Cdf(1).file([("x", 2)], [("a", [0] * 1000, 1)]))


def cdf5_long(path: Path) -> None:
    path.write_bytes(Cdf(5).file([("x", GIANT)], [("a", [0], 5), ("x", [0], 6)]))


def cdf5_product(path: Path) -> None:
    dims = [("x", 1 << 62), ("y", 1 << 62), ("none", 0)]
    path.write_bytes(Cdf(5).file(dims, [("a", [0, 1], 1), ("x", [0], 6)]))


def cdf5_records(path: Path) -> None:
    dims, variables = [("x", 0), ("y", 7)], [("a", [0, 1], 5), ("x", [0], 6)]
    path.write_bytes(Cdf(5).file(dims, variables, records=1 << 55))


def _h5(path: Path, name: str, shape: tuple[int, ...], dtype: str, **how: Any) -> None:
    with h5py.File(path, "a") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if "chunks" in how:
            plist.set_chunk(how["chunks"])
        if "deflate" in how:
            plist.set_deflate(1)
        if "fill" in how:
            plist.set_fill_value(np.array(how["fill"], dtype))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE if "chunks" not in how else h5py.h5d.ALLOC_TIME_INCR)
        space = h5py.h5s.create_simple(shape)
        kind = how.get("kind") or h5py.h5t.py_create(np.dtype(dtype))
        h5py.h5d.create(f.id, name.encode(), kind, space, plist)
        for at, value in how.get("values", {}).items():
            f[name][at] = value


def _patched(path: Path, old: tuple[int, ...], new: tuple[int, ...]) -> None:
    """Replace the lengths of dimensions in an HDF5 file of the old format, which has no checksums."""
    data = path.read_bytes()
    before, after = (b"".join(struct.pack("<Q", n) for n in shape) for shape in (old, new))
    assert before in data
    path.write_bytes(data.replace(before, after))


def h5_unwritten(path: Path) -> None:
    _h5(path, "a", (GIANT,), "f4", fill=7)
    _h5(path, "x", (GIANT,), "f8")
    _h5(path, "wide", (1 << 30, 1 << 31), "f4")


def h5_contiguous(path: Path) -> None:
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        f["a"] = np.zeros((3, 12345), "f4")
        f["x"] = np.zeros(12345)
    _patched(path, (12345,), (GIANT // 4,))


def h5_compact(path: Path) -> None:
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((1234,))
        h5py.h5d.create(f.id, b"a", h5py.h5t.IEEE_F32LE, space, plist)
    _patched(path, (1234,), (GIANT,))


def h5_chunks(path: Path) -> None:
    values = {5: 9.0, GIANT // 2: 10.0}
    _h5(path, "a", (GIANT,), "f4", chunks=(1000,), deflate=1, fill=1, values=values)
    _h5(path, "x", (GIANT,), "f8", chunks=(1,))


def h5_odd_numbers(path: Path) -> None:
    """Write integers of 16 bits in 4 bytes, which only the format's own reader gives."""
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(16)
    values = {5: 9, GIANT // 2: 10}
    _h5(path, "a", (GIANT,), "i4", chunks=(1000,), fill=1, values=values, kind=kind)
    _h5(path, "x", (GIANT,), "f8")


def h5_large_chunks(path: Path) -> None:
    _h5(path, "a", (1 << 40,), "f4", chunks=(1 << 28,), deflate=1)
    _h5(path, "x", (1 << 40,), "f8", chunks=(1 << 28,), deflate=1)


def h5_one_large_chunk(path: Path) -> None:
    """Write a chunk that decodes to 1 GiB of zeros, and takes few bytes."""
    _h5(path, "a", (1 << 31,), "f4", chunks=(1 << 28,), deflate=1)
    squeezed = zlib.compress(bytes(1 << 20), 9)
    with h5py.File(path, "a") as f:
        f["a"].id.write_direct_chunk((0,), squeezed)


def _json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _zarr2(path: Path, name: str, shape: list[int], chunks: list[int], dims: list[str]) -> None:
    meta = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": chunks,
        "dtype": "<f4",
        "compressor": None,
        "fill_value": 7,
        "order": "C",
        "filters": None,
    }
    _json(path / name / ".zarray", meta)
    _json(path / name / ".zattrs", {"_ARRAY_DIMENSIONS": dims})


def zarr2_small_chunks(path: Path) -> None:
    _json(path / ".zgroup", {"zarr_format": 2})
    _zarr2(path, "a", [1 << 39], [1], ["x"])
    _zarr2(path, "x", [1 << 39], [1000], ["x"])
    (path / "a" / "0").write_bytes(struct.pack("<f", 3))


def zarr2_large_chunks(path: Path) -> None:
    _json(path / ".zgroup", {"zarr_format": 2})
    _zarr2(path, "a", [GIANT], [GIANT], ["x"])
    _zarr2(path, "x", [GIANT], [1 << 28], ["x"])
    (path / "a" / "0").write_bytes(struct.pack("<f", 3))
    (path / "x" / "0").write_bytes(struct.pack("<f", 3))


def zarr2_product(path: Path) -> None:
    _json(path / ".zgroup", {"zarr_format": 2})
    _zarr2(path, "a", [1 << 62, 1 << 62], [1 << 40, 1 << 40], ["x", "y"])
    _zarr2(path, "x", [1 << 62], [1 << 62], ["x"])


def _zarr3(path: Path, name: str, shape: list[int], chunks: list[int], codecs: list[object]) -> None:
    _json(
        path / name / "zarr.json",
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 7,
            "codecs": codecs,
            "dimension_names": ["x"],
            "attributes": {},
        },
    )


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def zarr3(path: Path) -> None:
    _json(path / "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}})
    _zarr3(path, "a", [GIANT], [1 << 28], [BYTES])
    _zarr3(path, "x", [GIANT], [1 << 40], [BYTES])
    (path / "a" / "c").mkdir()
    (path / "a" / "c" / "0").write_bytes(bytes(64))


def zarr3_shards(path: Path) -> None:
    _json(path / "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}})
    for name, inner, at in (("a", 1, "end"), ("x", 1 << 20, "start")):
        how = {
            "chunk_shape": [inner],
            "codecs": [BYTES],
            "index_codecs": [BYTES, {"name": "crc32c"}],
            "index_location": at,
        }
        sharding = {"name": "sharding_indexed", "configuration": how}
        _zarr3(path, name, [GIANT], [GIANT // 2], [sharding])
        (path / name / "c").mkdir()
        (path / name / "c" / "0").write_bytes(bytes(128))


def _fits(*cards: tuple[str, object]) -> bytes:
    def text(value: object) -> str:
        if isinstance(value, bool):
            return ("T" if value else "F").rjust(20)
        return f"'{value:8}'" if isinstance(value, str) else str(value).rjust(20)

    lines = [f"{key:8}= {text(value)}".ljust(80) for key, value in cards] + ["END".ljust(80)]
    raw = "".join(lines).encode()
    return raw.ljust(-(-len(raw) // 2880) * 2880, b" ")


PRIMARY = _fits(("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 0), ("EXTEND", True))


def fits_image(path: Path) -> None:
    axes = [("NAXIS", 2), ("NAXIS1", 1 << 40), ("NAXIS2", 1 << 20)]
    path.write_bytes(_fits(("SIMPLE", True), ("BITPIX", -32), *axes) + bytes(2880))


def fits_rank(path: Path) -> None:
    axes = [("NAXIS", 999), *((f"NAXIS{i}", 2) for i in range(1, 1000))]
    path.write_bytes(_fits(("SIMPLE", True), ("BITPIX", 8), *axes) + bytes(2880))


def fits_table(path: Path) -> None:
    table = [("XTENSION", "BINTABLE"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", 8), ("NAXIS2", 1 << 40)]
    table += [("PCOUNT", 0), ("GCOUNT", 1), ("TFIELDS", 2)]
    table += [("TTYPE1", "a"), ("TFORM1", "1E"), ("TTYPE2", "x"), ("TFORM2", "1E")]
    path.write_bytes(PRIMARY + _fits(*table) + bytes(2880))


def fits_tiles(path: Path) -> None:
    table = [("XTENSION", "BINTABLE"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", 8), ("NAXIS2", 1 << 40)]
    table += [("PCOUNT", 0), ("GCOUNT", 1), ("TFIELDS", 1), ("TTYPE1", "COMPRESSED_DATA")]
    table += [("TFORM1", "1PB(1)"), ("ZIMAGE", True), ("ZCMPTYPE", "RICE_1"), ("ZBITPIX", 16), ("ZNAXIS", 2)]
    table += [("ZNAXIS1", 1 << 30), ("ZNAXIS2", 1 << 40), ("ZTILE1", 1 << 30), ("ZTILE2", 1)]
    path.write_bytes(PRIMARY + _fits(*table) + bytes(2880))


def references(path: Path) -> None:
    def array(shape: list[int], chunks: list[int]) -> str:
        meta = {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "<f4", "order": "C"}
        return json.dumps(meta | {"compressor": None, "fill_value": 7, "filters": None})

    refs = {
        ".zgroup": json.dumps({"zarr_format": 2}),
        "a/.zarray": array([GIANT], [1 << 28]),
        "a/.zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["x"]}),
        "a/0": "base64:AAAA",
        "x/.zarray": array([GIANT], [1000]),
        "x/.zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["x"]}),
    }
    path.write_text(json.dumps({"version": 1, "refs": refs}))


FILES: dict[str, Callable[[Path], None]] = {
    "classic.nc": nc3_classic,
    "records.nc": nc3_records,
    "counts.nc": nc3_counts,
    "rank.nc": nc3_rank,
    "long.nc5": cdf5_long,
    "product.nc5": cdf5_product,
    "records.nc5": cdf5_records,
    "unwritten.h5": h5_unwritten,
    "contiguous.h5": h5_contiguous,
    "compact.h5": h5_compact,
    "chunks.h5": h5_chunks,
    "odd-numbers.h5": h5_odd_numbers,
    "large-chunks.h5": h5_large_chunks,
    "one-chunk.h5": h5_one_large_chunk,
    "small-chunks.zarr": zarr2_small_chunks,
    "large-chunks.zarr": zarr2_large_chunks,
    "product.zarr": zarr2_product,
    "three.zarr": zarr3,
    "shards.zarr": zarr3_shards,
    "image.fits": fits_image,
    "rank.fits": fits_rank,
    "table.fits": fits_table,
    "tiles.fits": fits_tiles,
    "references.json": references,
}
