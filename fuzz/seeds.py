"""Fills fuzz/corpus with what targets begin with: small files of directories, and what tests are made of.

Run as ``python fuzz/seeds.py DIR...`` in the project's environment, after ``make conformance``. What is
larger than a target is fed with is left out.
"""

import json
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import sieva

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
sys.path.insert(0, str(ROOT / "python" / "tests"))

from services.range_server import RangeServer  # noqa: E402

# The largest input of a target, as docs/benchmarks/fuzzing.md has them.
MOST = {"hdf5_file": 24576, "fits_file": 20160, "manifest_file": 8192, "reference_set": 8192}
SIGNATURES = {
    b"\x89HDF\r\n\x1a\n": "hdf5_file",
    b"CDF": "netcdf3_file",
    b"SIMPLE": "fits_file",
    b"SVMF": "manifest_file",
}
# What lies between two objects of a tree in one input of zarr_tree.
BETWEEN = b"\0\0=="

# The filters of filter_pipeline in its order, and the bytes of the data in the fixtures.
FILTERS = (1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32015, 32026, 32013)
NBIT = 5
SCALE_OFFSET = 6
LENGTHS = {"ramp": 256, "steps": 600, "grid": 480, "zeros": 1040}


def keep(target: str, content: bytes) -> None:
    """Add an input to a target's corpus."""
    if len(content) > MOST.get(target, 16384):
        return
    directory = CORPUS / target
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"seed_{zlib.crc32(content):08x}").write_bytes(content)


def keep_files(directory: Path) -> None:
    """Add the files of all formats, by what they begin with."""
    for path in directory.rglob("*"):
        if not path.is_file() or path.stat().st_size > max(MOST.values()):
            continue
        content = path.read_bytes()
        target = next((t for signature, t in SIGNATURES.items() if content.startswith(signature)), None)
        if target:
            keep(target, content)
        if path.name in ("zarr.json", ".zgroup", ".zarray") and not is_within_a_tree(path.parent):
            keep("zarr_tree", BETWEEN.join(objects(path.parent)))


def is_within_a_tree(directory: Path) -> bool:
    """Return whether the directory above is a Zarr group, too."""
    return any((directory.parent / name).exists() for name in ("zarr.json", ".zgroup"))


def objects(tree: Path) -> Iterator[bytes]:
    """Yield the objects of a Zarr hierarchy, each after its key."""
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(tree)).encode() + b"\n" + path.read_bytes()


def keep_manifests(directory: Path) -> None:
    """Add the manifests that sieva keeps of remote files, and reference sets made of them."""
    with tempfile.TemporaryDirectory() as cache, RangeServer(directory) as server:
        os.environ["SIEVA_CACHE"] = cache
        for path in (p for p in directory.rglob("*") if p.is_file() and p.stat().st_size < 1 << 20):
            references = Path(cache) / "references.json"
            try:
                with sieva.open(f"{server.url}/{path.relative_to(directory)}") as source:
                    for name in source:
                        shape = source[name].shape
                        source[name].read_stored([0] * len(shape), [min(1, n) for n in shape])
                    source.to_references(references)
                    keep("reference_set", references.read_bytes())
            except (sieva.SievaError, OSError, ValueError):
                continue
        keep_files(Path(cache))


def keep_texts() -> None:
    """Add the conditions and queries of the conformance cases."""
    for path in (ROOT / "conformance" / "cases").glob("*.json"):
        for line in path.read_text().splitlines():
            case = json.loads(line.strip().rstrip(",")) if line.startswith("{") else {}
            for key in ("where", "sql", "select"):
                if isinstance(case.get(key), str):
                    keep("query_text", case[key].encode())
                    keep("query_run", case[key].encode())
                    keep("catalog_find", case[key].encode())


def keep_chunks() -> None:
    """Add the stored chunks of the filters' tests."""
    fixtures = ROOT / "crates" / "format" / "src" / "filters" / "fixtures" / "chunks.txt"
    for line in fixtures.read_text().splitlines():
        data, filters, stored = line.split(" | ")
        stages = [stage.split(":") for stage in filters.split(";")]
        content = bytes([len(stages)])
        for number, client_data in stages:
            words = [int(n) for n in client_data.split(",") if n][:5]
            content += struct.pack("<B5H", FILTERS.index(int(number)), *words, *[0] * (5 - len(words)))
        keep("filter_pipeline", content + struct.pack("<BH", 0, LENGTHS[data]) + bytes.fromhex(stored))


def keep_packed() -> None:
    """Add chunks of filters that depend on the type, nbit and scale-offset with ten numbers of it."""
    values = np.add.outer(np.arange(9) ** 2, np.arange(7))
    packings = [{"scaleoffset": 3}, *(hdf5plugin.Zfp(**mode) for mode in ({"rate": 6}, {"reversible": True}))]
    for dtype in ("i4", "i8", "f4", "f8"):
        for options in packings:
            with h5py.File("packed.h5", "w", driver="core", backing_store=False) as file:
                dataset = file.create_dataset("x", data=values.astype(dtype), chunks=(9, 7), **options)
                number, _, words, _ = dataset.id.get_create_plist().get_filter(0)
                if number == SCALE_OFFSET:
                    given = struct.pack("<10H", *(n & 0xFFFF for n in words[:10]))
                else:
                    given = struct.pack("<5I", *words[:5], *[0] * (5 - len(words)))
                head = bytes([1, FILTERS.index(number)]) + given + struct.pack("<BH", 0, dataset.nbytes)
                keep("filter_pipeline", head + dataset.id.read_direct_chunk((0, 0))[1])
    with h5py.File("packed.h5", "w", driver="core", backing_store=False) as file:
        for name, kind in odd_types().items():
            dataset = create(file, name, kind, (9, 7), packed=True)
            words = dataset.get_create_plist().get_filter(0)[2]
            given = struct.pack("<10H", *words[:10], *[0] * (10 - len(words)))
            head = bytes([1, FILTERS.index(NBIT)]) + given + struct.pack("<BH", 0, 63 * kind.get_size())
            keep("filter_pipeline", head + dataset.read_direct_chunk((0, 0))[1])


def odd_types() -> dict[str, h5py.h5t.TypeID]:
    """Return types of numbers that no machine computes with, and a compound of them."""
    small, big = h5py.h5t.STD_I32LE.copy(), h5py.h5t.STD_U64BE.copy()
    small.set_precision(20)
    small.set_offset(5)
    big.set_precision(33)
    half = h5py.h5t.IEEE_F64LE.copy()
    half.set_fields(15, 7, 8, 0, 7)
    half.set_precision(16)
    half.set_size(2)
    half.set_ebias(127)
    both = h5py.h5t.create(h5py.h5t.COMPOUND, 16)
    both.insert(b"n", 0, small)
    both.insert(b"x", 6, half)
    return {"small": small, "big": big, "half": half, "both": both}


def create(
    file: h5py.File, name: str, kind: h5py.h5t.TypeID, shape: tuple[int, ...], *, packed: bool
) -> h5py.h5d.DatasetID:
    """Create a dataset of a type, as one chunk packed by nbit or contiguous."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if packed:
        plist.set_chunk(shape)
        plist.set_filter(NBIT, 0, ())
    dataset = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), plist)
    values = np.arange(np.prod(shape)).reshape(shape)
    if kind.get_class() == h5py.h5t.COMPOUND:
        values = np.array([(n, n / 4) for n in values.flat], [("n", "i4"), ("x", "f8")]).reshape(shape)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return dataset


def keep_items() -> None:
    """Add files of items that elements are made of: odd numbers, texts in heaps, alone and in compounds."""
    record = [("id", "i2"), ("t", h5py.string_dtype()), ("x", ">f8"), ("r", h5py.ref_dtype)]
    texts = np.array(["", "one", "zwölf", "four" * 9] * 4, object)
    for libver in ("earliest", "latest"):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "a.h5"
            with h5py.File(path, "w", libver=libver) as file:
                for name, kind in odd_types().items():
                    create(file, name, kind, (6, 5), packed=False)
                    create(file, f"packed {name}", kind, (6, 5), packed=True)
                file["long"] = (np.arange(12) / 7).astype(np.longdouble)
            keep("hdf5_file", path.read_bytes())
            with h5py.File(path, "w", libver=libver) as file:
                file.create_dataset("plain", data=texts, dtype=h5py.string_dtype())
                file.create_dataset("fill", (9,), h5py.string_dtype(), chunks=(4,), fillvalue="none")
                file.create_dataset(
                    "chunked",
                    data=texts.reshape(4, 4),
                    dtype=h5py.string_dtype(),
                    chunks=(3, 3),
                    compression="gzip",
                )
                records = np.zeros(16, record)
                records["t"], records["r"] = texts, file.ref
                file["records"] = records
                file.create_dataset("packed", data=records, chunks=(5,), shuffle=True)
            keep("hdf5_file", path.read_bytes())


for given in (ROOT / "target" / "conformance", *map(Path, sys.argv[1:])):
    keep_files(given)
    keep_manifests(given)
keep_texts()
keep_chunks()
keep_packed()
keep_items()
for target in sorted(CORPUS.iterdir()):
    print(f"{target.name}: {len(list(target.iterdir()))} inputs")
