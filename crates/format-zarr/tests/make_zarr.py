# ruff: noqa: ARG001, D401, E501, E731, PERF401, PLR0124, PLR0917, PTH123, SLF001 (a table of cases more than a program)
"""Write Zarr hierarchies by zarr-python, with the values that it reads back, as one JSON file.

``make_zarr.py OUT`` writes the cases that are kept in ``data/cases.json``; ``make_zarr.py OUT COUNT SEED`` writes
that many random ones, for which the tests are run with ``SIEVA_ZARR_CASES=OUT``. Needs zarr 3, numcodecs and xarray.
"""

from __future__ import annotations

import base64
import json
import sys
import warnings
from typing import Any

import numcodecs
import numcodecs.zarr3 as n3
import numpy as np
import xarray as xr
import zarr
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)
from zarr.storage import MemoryStore

warnings.simplefilter("ignore")

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "b1"]
Group = Any


def values(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Random bits of any type of numbers, texts of any length that fits; few distinct ones, so that codecs bite."""
    count = int(np.prod(shape))
    if dtype.names:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            field = dtype[name]
            inner = shape + field.shape
            out[name] = values(rng, field.base, inner)
        return out
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "SU":
        words = ["", "a", "bcd", "efghi"] if dtype.kind == "S" else ["", "é", "漢字", "a😀b"]
        return np.array([words[i] for i in rng.integers(0, 4, count)], dtype=dtype).reshape(shape)
    pool = np.frombuffer(rng.bytes(dtype.itemsize * 7), dtype)
    return pool[rng.integers(0, 7, count)].reshape(shape)


def expected(array: Any) -> dict[str, Any]:
    """What zarr-python reads, as bytes in C order, or texts."""
    data = np.asarray(array[...])
    if data.dtype.names:
        return {"members": {name: expected_of(data[name]) for name in data.dtype.names}}
    return expected_of(data)


def expected_of(data: np.ndarray[Any, Any]) -> dict[str, Any]:
    if data.dtype.kind in "SUTO":
        texts = [t.decode("latin-1") if isinstance(t, bytes) else str(t) for t in data.reshape(-1).tolist()]
        return {"shape": data.shape, "texts": texts}
    if data.dtype.kind in "Mm":
        data = (
            data.view(data.dtype.newbyteorder("=")).view("i8")
            if data.dtype.isnative
            else data.astype(data.dtype.newbyteorder("=")).view("i8")
        )
    if data.dtype.kind == "f" and data.dtype.itemsize == 2:
        wide = np.ascontiguousarray(data).astype("<f4")
        return {"shape": data.shape, "dtype": "float16", "base64": base64.b64encode(wide.tobytes()).decode()}
    little = np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<"))
    return {
        "shape": data.shape,
        "dtype": data.dtype.name,
        "base64": base64.b64encode(little.tobytes()).decode(),
    }


def missing(store: MemoryStore, group: str) -> dict[str, Any]:
    """What xarray takes for ``_FillValue`` of each array of a group, as the number's shortest text."""
    out: dict[str, Any] = {}
    dataset = xr.open_zarr(
        store, group=group or None, mask_and_scale=False, decode_times=False, consolidated=False
    )
    for name, variable in dataset.variables.items():
        fill = variable.attrs.get("_FillValue")
        if variable.dtype.kind in "iuf" and not isinstance(fill, str | type(None)):
            out[str(name)] = None if fill != fill else repr(np.asarray(fill).item())
    return out


def case(name: str, make: Any, with_missing: bool = False) -> dict[str, Any]:
    store = MemoryStore()
    made = make(store)
    objects = {k: base64.b64encode(b.to_bytes()).decode() for k, b in sorted(store._store_dict.items())}
    root = zarr.open(store, mode="r")
    arrays = (
        {"data": root}
        if isinstance(root, zarr.Array)
        else {path: a for path, a in root.members(max_depth=None) if isinstance(a, zarr.Array)}
    )
    out = {"name": name, "objects": objects, "arrays": {p: expected(a) for p, a in sorted(arrays.items())}}
    dims = {
        p: list(a.metadata.dimension_names or [])
        if a.metadata.zarr_format == 3
        else a.attrs.get("_ARRAY_DIMENSIONS", [])
        for p, a in arrays.items()
    }
    out["dims"] = {p: d for p, d in dims.items() if d and None not in d}
    if with_missing:
        out["missing"] = missing(store, "")
    if made:
        out.update(made)
    return out


def array_v2(
    dtype: Any, shape: Any, chunks: Any, seed: int, data: Any = None, unwritten: bool = False, **more: Any
) -> Any:
    def make(store: MemoryStore) -> None:
        rng = np.random.default_rng(seed)
        array = zarr.create_array(store, zarr_format=2, shape=shape, chunks=chunks, dtype=dtype, **more)
        fill_in(array, values(rng, np.dtype(dtype), shape) if data is None else data, unwritten)

    return make


def array_v3(
    dtype: Any,
    shape: Any,
    chunks: Any,
    codecs: Any,
    seed: int,
    data: Any = None,
    unwritten: bool = False,
    **more: Any,
) -> Any:
    def make(store: MemoryStore) -> None:
        rng = np.random.default_rng(seed)
        array = zarr.Array.create(
            store, zarr_format=3, shape=shape, chunk_shape=chunks, dtype=dtype, codecs=codecs, **more
        )
        fill_in(array, values(rng, np.dtype(dtype), shape) if data is None else data, unwritten)

    return make


def fill_in(array: Any, data: Any, unwritten: bool) -> None:
    if unwritten and data.ndim:
        half = data.shape[0] // 2
        array[:half] = data[:half]
    else:
        array[...] = data


def compressors_v2(size: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "none": None,
        "gzip": numcodecs.GZip(5),
        "zlib": numcodecs.Zlib(1),
        "zstd": numcodecs.Zstd(3),
        "lz4": numcodecs.LZ4(),
        "bz2": numcodecs.BZ2(5),
    }
    for inner in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"]:
        for shuffle in [0, 1, 2]:
            out[f"blosc-{inner}-{shuffle}"] = numcodecs.Blosc(inner, 5, shuffle)
    return out


def codecs_v3(size: int) -> dict[str, list[Any]]:
    return {
        "none": [],
        "gzip": [GzipCodec()],
        "zstd": [ZstdCodec()],
        "zstd-sum": [ZstdCodec(checksum=True)],
        "blosc": [BloscCodec(cname="lz4", shuffle="shuffle", typesize=size)],
        "blosc-bit": [BloscCodec(cname="zstd", shuffle="bitshuffle", typesize=size)],
        "crc32c": [Crc32cCodec()],
        "gzip-crc32c": [GzipCodec(), Crc32cCodec()],
        "zlib": [n3.Zlib()],
        "lz4": [n3.LZ4()],
        "bz2": [n3.BZ2()],
        "shuffle-zlib": [n3.Shuffle(elementsize=size), n3.Zlib()],
        "crc32": [n3.CRC32()],
        "adler32": [n3.Adler32()],
        "fletcher32": [n3.Fletcher32()],
        "crc32-zstd": [n3.CRC32(), ZstdCodec()],
    }


def kept() -> list[dict[str, Any]]:
    cases = []
    for i, dtype in enumerate(NUMBERS):
        order = "CF"[i % 2]
        spelled = (">" if i % 3 else "<") + dtype if dtype not in ("i1", "u1", "b1") else dtype
        cases.append(
            case(f"v2 {spelled} {order}", array_v2(spelled, (5, 4), (2, 3), i, order=order, compressors=None))
        )
        endian = ["little", "big"][i % 2]
        codecs = [BytesCodec(endian=endian), GzipCodec()]
        cases.append(case(f"v3 {dtype} {endian}", array_v3(np.dtype(dtype), (5, 4), (2, 3), codecs, i)))
    for name, codec in compressors_v2(4).items():
        cases.append(
            case(
                f"v2 {name}",
                array_v2("<i4", (300,), (160,), 1, compressors=codec, unwritten=True, fill_value=-7),
            )
        )
    for name, tail in codecs_v3(4).items():
        cases.append(
            case(
                f"v3 {name}",
                array_v3(
                    np.dtype("i4"), (300,), (160,), [BytesCodec(), *tail], 2, unwritten=True, fill_value=9
                ),
            )
        )
    cases += filters() + shards() + texts() + types() + fills() + groups()
    return cases


def filters() -> list[dict[str, Any]]:
    ramp = (np.arange(50) * 3 - 20).astype("i8")
    f8 = np.arange(50) / 10 + 1000.0

    def v2(name: str, dtype: str, data: Any, *filters: Any) -> dict[str, Any]:
        return case(
            f"v2 {name}",
            array_v2(
                dtype,
                (50,),
                (20,),
                0,
                data=data.astype(dtype),
                filters=list(filters),
                compressors=numcodecs.Zlib(),
            ),
        )

    def v3(name: str, dtype: str, data: Any, *filters: Any, endian: Any = "little") -> dict[str, Any]:
        codecs = [*filters, BytesCodec(endian=endian), GzipCodec()]
        return case(f"v3 {name}", array_v3(np.dtype(dtype), (50,), (20,), codecs, 0, data=data.astype(dtype)))

    return [
        v2("delta", "<i4", ramp, numcodecs.Delta("<i4", "<i1")),
        v2("delta float", "<f4", ramp / 7, numcodecs.Delta("<f4")),
        v2("delta big", ">i2", ramp, numcodecs.Delta(">i2", ">i2")),
        v2("fixedscaleoffset", "<f8", f8, numcodecs.FixedScaleOffset(1000, 10, "<f8", "<u1")),
        v2("fixedscaleoffset float", "<f4", f8, numcodecs.FixedScaleOffset(1000.25, 8.5, "<f4", "<f4")),
        v2("astype", "<i2", ramp, numcodecs.AsType("<f8", "<i2")),
        v2("astype wide", "<f4", ramp, numcodecs.AsType("<i2", "<f4")),
        v2("quantize", "<f8", f8, numcodecs.Quantize(1, "<f8")),
        v2("quantize narrow", "<f8", f8, numcodecs.Quantize(1, "<f8", "<f4")),
        v2("bitround", "<f4", f8, numcodecs.BitRound(7)),
        v2("packbits", "|b1", ramp % 2, numcodecs.PackBits()),
        v2("shuffle", "<i8", ramp, numcodecs.Shuffle(8)),
        v2("fletcher32", "<i8", ramp, numcodecs.Fletcher32()),
        v2("crc32", "<i8", ramp, numcodecs.CRC32()),
        v2("crc32 end", "<i8", ramp, numcodecs.CRC32(location="end")),
        v2("crc32c", "<i8", ramp, numcodecs.CRC32C()),
        v2("adler32", "<i8", ramp, numcodecs.Adler32()),
        v2("jenkins_lookup3", "<i8", ramp, numcodecs.JenkinsLookup3(initval=7)),
        v3("delta", "i4", ramp, n3.Delta(dtype="<i4", astype="<i4")),
        # Not with big-endian bytes: zarr-python 3.1 reads other numbers than it was given.
        v3(
            "fixedscaleoffset",
            "f8",
            f8,
            n3.FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype="<u2"),
        ),
        v3("astype", "f8", ramp, n3.AsType(encode_dtype="<i4", decode_dtype="<f8")),
        v3("bitround", "f4", f8, n3.BitRound(keepbits=7)),
        v3("packbits", "bool", ramp % 2, n3.PackBits()),
    ]


def shard(shape: Any, *codecs: Any, location: str = "end", index: Any = None) -> ShardingCodec:
    index = [BytesCodec(), Crc32cCodec()] if index is None else index
    return ShardingCodec(chunk_shape=shape, codecs=list(codecs), index_codecs=index, index_location=location)


def shards() -> list[dict[str, Any]]:
    plain = [BytesCodec()]
    packed = [BytesCodec(endian="big"), ZstdCodec()]
    turned = [TransposeCodec(order=(1, 0)), *packed]
    variants: dict[str, list[Any]] = {
        "end": [shard((2, 3), *packed)],
        "start": [shard((2, 3), *packed, location="start")],
        "plain index": [shard((2, 3), *plain, index=[BytesCodec(endian="big")])],
        "turned inside": [shard((2, 3), *turned)],
        "turned outside": [TransposeCodec(order=(1, 0)), shard((3, 2), *packed)],
        "turned twice": [TransposeCodec(order=(1, 0)), shard((3, 2), *turned)],
        "behind codecs": [shard((2, 3), *packed), Crc32cCodec(), GzipCodec()],
        "nested": [shard((6, 3), shard((2, 1), *packed))],
        "nested start": [shard((6, 3), shard((2, 1), *plain, location="start"), location="start")],
        "nested turned": [
            TransposeCodec(order=(1, 0)),
            shard((6, 3), TransposeCodec(order=(1, 0)), shard((3, 3), *turned)),
        ],
    }
    return [
        case(
            f"shards {name}",
            array_v3(np.dtype("i2"), (11, 7), (6, 6), codecs, 5, unwritten=True, fill_value=-1),
        )
        for name, codecs in variants.items()
    ]


def texts() -> list[dict[str, Any]]:
    words = np.array([["", "a", "été"], ["漢字", "x" * 40, "😀"], ["b", "c", "d"]], dtype=object)

    def v2(**more: Any) -> dict[str, Any]:
        return case(
            "v2 vlen-utf8",
            array_v2(str, (3, 3), (2, 2), 0, data=words, unwritten=True, fill_value="", **more),
        )

    out = [
        v2(compressors=c, order=o)
        for c, o in [
            (None, "C"),
            (numcodecs.Zstd(), "C"),
            (numcodecs.Zlib(), "F"),
            (numcodecs.BZ2(), "C"),
            (numcodecs.Blosc(), "C"),
            (numcodecs.LZ4(), "C"),
            (numcodecs.GZip(), "C"),
        ]
    ]
    for dtype in ["|S5", "<U3", ">U3"]:
        out.append(case(f"v2 {dtype}", array_v2(dtype, (3, 4), (2, 3), 3, unwritten=True, order="F")))
    for dtype in ["S5", "U3"]:
        out.append(
            case(
                f"v3 {dtype}",
                array_v3(np.dtype(dtype), (3, 4), (2, 3), [BytesCodec(), GzipCodec()], 3, unwritten=True),
            )
        )

    def v3(store: MemoryStore) -> None:
        array = zarr.create_array(store, shape=(3, 3), chunks=(2, 2), dtype=str, fill_value="none")
        array[:2] = words[:2]

    out.append(case("v3 string", v3))

    def sharded(store: MemoryStore) -> None:
        array = zarr.create_array(store, shape=(3, 3), chunks=(1, 1), shards=(2, 2), dtype=str, fill_value="")
        array[:2] = words[:2]

    out.append(case("v3 string in shards", sharded))
    return out


def types() -> list[dict[str, Any]]:
    packed = np.dtype([("a", "<u2"), ("b", "|u1"), ("c", ">f8"), ("d", "|S3")])
    out = [
        case(
            "v2 compound",
            array_v2(packed, (5,), (2,), 4, unwritten=True, compressors=numcodecs.Zlib(), order="C"),
        )
    ]
    out.append(case("v2 compound F", array_v2(packed, (5, 3), (2, 2), 4, compressors=None, order="F")))
    dates = np.arange(7).astype("M8[D]")
    for unit in ["ns", "us", "ms", "s", "m", "h", "D"]:
        out.append(
            case(f"v2 {unit}", array_v2(f">M8[{unit}]", (7,), (3,), 0, data=dates.astype(f">M8[{unit}]")))
        )
        delta = np.arange(7).astype(f"<m8[{unit}]")
        out.append(case(f"v3 {unit}", array_v3(delta.dtype, (7,), (3,), [BytesCodec()], 0, data=delta)))
    return out


def fills() -> list[dict[str, Any]]:
    """Arrays without any chunk: nothing but the fill value."""
    out = []
    given: dict[str, list[Any]] = {
        "f4": [0.1, np.nan, np.inf, -np.inf, -0.0, 1e20],
        "f8": [0.1, np.nan],
        "f2": [0.1, 65504, 6e-8],
        "i8": [-(2**63), 2**63 - 1],
        "u8": [2**64 - 1],
        "i1": [-128],
        "b1": [True],
        "U3": ["é"],
        "S4": [b"ab"],
    }
    for dtype, fill_values in given.items():
        for fill in fill_values:
            for version in (2, 3):

                def make(
                    store: MemoryStore, dtype: str = dtype, fill: Any = fill, version: int = version
                ) -> None:
                    zarr.create_array(
                        store, zarr_format=version, shape=(3,), chunks=(2,), dtype=dtype, fill_value=fill
                    )

                out.append(case(f"fill v{version} {dtype} {fill!r}", make))
    odd = np.array([0x7FC00123], "u4").view("f4")[0]
    out.append(
        case(
            "fill v3 payload",
            lambda s: zarr.create_array(s, shape=(2,), chunks=(2,), dtype="f4", fill_value=odd) and None,
        )
    )
    out.append(case("rank 0 v2", array_v2("<f4", (), (), 0)))
    out.append(case("rank 0 v3", array_v3(np.dtype("f4"), (), (), [BytesCodec()], 0)))
    out.append(case("empty", array_v3(np.dtype("f4"), (0, 3), (1, 3), [BytesCodec()], 0)))
    return out


def groups() -> list[dict[str, Any]]:
    def make(version: int, consolidate: bool) -> Any:
        def inner(store: MemoryStore) -> None:
            dataset = xr.Dataset(
                {
                    "t": (
                        ("x", "y"),
                        np.array([[1.5, np.nan, 3], [4, 5, 6]], "f4"),
                        {"units": "K", "n": [1, 2], "_FillValue": np.float32(-9)},
                    ),
                    "k": (("x",), np.array([3, -1], "i2"), {"_FillValue": np.int16(-1), "scale_factor": 0.5}),
                    "u": (("y",), np.array([1, 2, 3], "u1")),
                },
                {"x": ("x", [10.0, 20.0]), "y": ("y", [1, 2, 3])},
                {"title": "a group"},
            )
            dataset.to_zarr(store, zarr_format=version, consolidated=consolidate, mode="w")
            dataset.to_zarr(store, group="inner/most", zarr_format=version, consolidated=False, mode="a")
            if consolidate:
                zarr.consolidate_metadata(store)

        return inner

    return [
        case(f"group v{v} {'consolidated' if c else 'listed'}", make(v, c), with_missing=True)
        for v in (2, 3)
        for c in (False, True)
    ]


def random_case(i: int, rng: np.random.Generator) -> dict[str, Any]:
    pick = lambda options: options[int(rng.integers(len(options)))]
    dtype = np.dtype(pick(NUMBERS))
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, 14, rank))
    chunks = tuple(int(n) for n in rng.integers(1, 7, rank))
    unwritten, seed = bool(rng.integers(2)), int(rng.integers(1 << 30))
    if rng.integers(2):
        spelled = dtype.newbyteorder(pick("<>"))
        name, codec = pick(list(compressors_v2(dtype.itemsize).items()))
        order, separator = pick("CF"), pick("./")
        more = {"filters": [numcodecs.Shuffle(dtype.itemsize)]} if rng.integers(3) == 0 else {}
        make = array_v2(
            spelled,
            shape,
            chunks,
            seed,
            unwritten=unwritten,
            order=order,
            compressors=codec,
            chunk_key_encoding={"name": "v2", "separator": separator},
            **more,
        )
        return case(f"{i} v2 {spelled.str} {shape} {chunks} {name} {order} {separator} {list(more)}", make)
    name, tail = pick(list(codecs_v3(dtype.itemsize).items()))
    turn = lambda: (
        [TransposeCodec(order=tuple(int(d) for d in rng.permutation(rank)))] if rng.integers(2) else []
    )
    codecs: list[Any] = [*turn(), BytesCodec(endian=pick(["little", "big"])), *tail]
    depth, encoded = int(rng.integers(3)), None
    inner = tuple(int(n) for n in rng.integers(1, 4, rank))
    for _ in range(depth):
        index = [BytesCodec(endian=pick(["little", "big"])), *([Crc32cCodec()] if rng.integers(2) else [])]
        codecs = [shard(inner, *codecs, location=pick(["start", "end"]), index=index)]
        inner = tuple(n * int(rng.integers(1, 4)) for n in inner)
        encoded = inner
        order = turn()
        codecs = [*order, *codecs]
        if order:
            inverse = np.argsort(order[0].order)
            inner = tuple(encoded[int(d)] for d in inverse)
    make = array_v3(dtype, shape, inner if depth else chunks, codecs, seed, unwritten=unwritten)
    return case(f"{i} v3 {dtype} {shape} {inner if depth else chunks} {name} depth {depth}", make)


def main() -> None:
    out, *rest = sys.argv[1:]
    if rest:
        rng = np.random.default_rng(int(rest[1]))
        cases, refused = [], 0
        for i in range(int(rest[0])):
            try:
                cases.append(random_case(i, rng))
            except Exception as e:  # what the writer itself does not do is no case
                refused += 1
                print(f"{i}: {type(e).__name__}: {e}", file=sys.stderr)
        print(f"{len(cases)} cases, {refused} refused by the writer")
    else:
        cases = kept()
    with open(out, "w", encoding="utf-8") as file:
        json.dump(cases, file, indent=0, ensure_ascii=True)
        file.write("\n")


if __name__ == "__main__":
    main()
