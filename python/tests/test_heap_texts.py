"""Texts of variable length, which lie in heaps of the file: as h5py and netCDF4 read them."""

import subprocess
import sys
import threading

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from sieva import errors

TEXTS = ["", "a", "zwölf", "t" * 5000, "x\N{SNOWMAN}", " padded ", "T" * 70000, "end"]


def draws(n, seed):
    """Return n texts, few of them long."""
    rng = np.random.default_rng(seed)
    return np.array([TEXTS[i] if i < len(TEXTS) else f"text {i}" for i in rng.integers(0, 60, n)], object)


def assert_read(path, name, expected):
    """Read the whole, a part, and by a condition."""
    source = sieva.open(path)
    expected = np.asarray(expected, object)
    shape = expected.shape
    assert source[name].read_stored([0] * len(shape), list(shape)).tolist() == expected.tolist()
    start, stop = [n // 3 for n in shape], [n - n // 4 for n in shape]
    part = source[name].read_stored(start, [b - a for a, b in zip(start, stop, strict=True)])
    assert part.tolist() == expected[tuple(map(slice, start, stop))].tolist()
    assert source.query(f"\"{name}\" = 'text 9'").count() == np.count_nonzero(expected == "text 9")


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(
    "options", [{}, {"chunks": (4, 9)}, {"chunks": (3, 7), "compression": "gzip", "shuffle": True}]
)
def test_contiguous_and_chunked(tmp_path, libver, options):
    texts = draws(11 * 23, 1).reshape(11, 23)
    for kind in ("utf-8", "ascii"):
        path = tmp_path / f"{kind}.h5"
        expected = texts if kind == "utf-8" else np.vectorize(ascii, otypes=[object])(texts)
        with h5py.File(path, "w", libver=libver) as f:
            f.create_dataset("t", data=expected, dtype=h5py.string_dtype(kind), **options)
        assert_read(path, "t", expected)


def test_in_place_of_what_was_written_before(tmp_path):
    """Objects of collections that were removed and made anew."""
    path = tmp_path / "a.h5"
    texts = draws(300, 2)
    with h5py.File(path, "w") as f:
        f.create_dataset("t", data=texts, dtype=h5py.string_dtype())
    with h5py.File(path, "r+") as f:
        for i in range(0, 300, 3):
            texts[i] = "new " * (i % 40)
            f["t"][i] = texts[i]
        f.create_dataset("later", data=texts[::-1], dtype=h5py.string_dtype())
    assert_read(path, "t", texts)
    assert_read(path, "later", texts[::-1])


def test_members_of_compounds(tmp_path):
    """With numbers before, between and after them, in nested compounds and in blocks."""
    text = h5py.string_dtype()
    record = np.dtype(
        [
            ("id", "i2"),
            ("t", text),
            ("x", "f8"),
            ("in", [("name", text), ("n", "i4")]),
            ("two", text, (2,)),
            ("ref", h5py.ref_dtype),
            ("region", h5py.regionref_dtype),
            ("last", ">u4"),
        ]
    )
    n = 50
    records = np.zeros(n, record)
    records["id"], records["x"], records["last"] = np.arange(n), np.arange(n) / 7, np.arange(n) * 1000
    records["t"], records["two"] = draws(n, 3), draws(2 * n, 4).reshape(n, 2)
    records["in"]["name"], records["in"]["n"] = draws(n, 5), -np.arange(n)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        records["ref"], records["region"] = f.ref, f.create_dataset("other", data=np.arange(9)).regionref[2:5]
        f.create_dataset("plain", data=records)
        f.create_dataset("chunked", data=records, chunks=(7,), compression="gzip")
    source = sieva.open(path)
    for name in ("plain", "chunked"):
        for member, expected in [
            ("id", records["id"]),
            ("x", records["x"]),
            ("in.n", records["in"]["n"]),
            ("last", records["last"]),
        ]:
            assert source[f"{name}.{member}"].read_stored([0], [n]).tolist() == expected.tolist(), member
        assert source.query(f'"{name}.x" > 3 and "{name}.last" < 40000').count() == np.sum(
            (records["x"] > 3) & (records["last"] < 40000)
        )
        assert_read(path, f"{name}.t", records["t"])
        assert_read(path, f"{name}.in.name", records["in"]["name"])
        assert_read(path, f"{name}.two", records["two"])
        # Numbers beside texts lie in the file like any others.
        assert "libhdf5" not in str(source.query(f'"{name}.x" > 3').explain())


def test_where_nothing_was_written(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("contiguous", (5,), h5py.string_dtype())
        d = f.create_dataset("chunked", (9,), h5py.string_dtype(), chunks=(3,))
        d[4] = "four"
        filled = f.create_dataset("filled", (9,), h5py.string_dtype(), chunks=(3,), fillvalue="none")
        filled[4] = "four"
        f.create_dataset("empty", (0, 4), h5py.string_dtype(), maxshape=(None, 4))
    source = sieva.open(path)
    assert source["contiguous"].read_stored([0], [5]).tolist() == [""] * 5
    assert source["chunked"].read_stored([0], [9]).tolist() == [""] * 4 + ["four"] + [""] * 4
    # Which h5py cannot read where it may not write.
    assert source["filled"].read_stored([0], [9]).tolist() == ["none"] * 4 + ["four"] + ["none"] * 4
    assert source["empty"].read_stored([0, 0], [0, 4]).tolist() == []


def test_netcdf_strings(tmp_path):
    """Of an unlimited dimension that another variable made longer, with fill values and without."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("station", 4)
        nc.createVariable("n", "i4", ("time",))[:] = np.arange(6)
        nc.createVariable("name", str, ("station",))[:] = draws(4, 6)
        nc.createVariable("note", str, ("time", "station"))[:3] = draws(12, 7).reshape(3, 4)
        nc.createVariable("marked", str, ("time",), fill_value="missing")[:2] = np.array(["a", "b"], object)
    source = sieva.open(path)
    with netCDF4.Dataset(path) as nc:
        for name in ("name", "note", "marked"):
            expected = nc[name][...]
            got = source[name].read_stored([0] * expected.ndim, list(expected.shape))
            assert got.tolist() == expected.tolist(), name


def test_behind_a_user_block_and_with_short_addresses(tmp_path):
    texts = draws(40, 8)
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=1024) as f:
        f.create_dataset("t", data=texts, dtype=h5py.string_dtype())
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(4, 4)
    fid = h5py.h5f.create(bytes(tmp_path / "short.h5"), h5py.h5f.ACC_TRUNC, plist)
    with h5py.File(fid) as f:
        f.create_dataset("t", data=texts, dtype=h5py.string_dtype())
        record = np.zeros(40, [("t", h5py.string_dtype()), ("n", "i8")])
        record["t"], record["n"] = texts, np.arange(40)
        f["r"] = record
    for name in ("block.h5", "short.h5"):
        assert_read(tmp_path / name, "t", texts)
    assert_read(tmp_path / "short.h5", "r.t", texts)
    assert sieva.open(tmp_path / "short.h5")["r.n"].read_stored([0], [40]).tolist() == list(range(40))


def test_behind_an_external_link(tmp_path):
    texts = draws(60, 9)
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f.create_dataset("t", data=texts, dtype=h5py.string_dtype())
        f.create_dataset(
            "n", data=np.arange(60, dtype=">i4"), chunks=(7,), compression="gzip", fletcher32=True
        )
        f["s"] = np.array([b"ab", b"c"])
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["t"], f["n"], f["s"] = (h5py.ExternalLink("other.h5", name) for name in "tns")
    source = sieva.open(tmp_path / "a.h5", external=tmp_path)
    assert source["t"].read_stored([0], [60]).tolist() == texts.tolist()
    assert source["n"].read_stored([0], [60]).tolist() == list(range(60))
    assert source["s"].read_stored([0], [2]).tolist() == ["ab", "c"]
    assert source.query("n > 40").count() == 19


def test_a_linked_file_that_is_changed_is_stale(tmp_path):
    """What is kept of it must not be mixed with what is there now."""
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f.create_dataset("n", data=np.arange(1000), chunks=(100,), compression="gzip")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["n"] = h5py.ExternalLink("other.h5", "n")
    source = sieva.open(tmp_path / "a.h5", external=tmp_path)
    assert source["n"].read_stored([2], [3]).tolist() == [2, 3, 4]
    with h5py.File(tmp_path / "other.h5", "r+") as f:
        f["n"][...] = 7
    for start, n in ((2, 3), (0, 1000)):
        with pytest.raises(errors.StaleSource):
            source["n"].read_stored([start], [n])
    assert sieva.open(tmp_path / "a.h5", external=tmp_path)["n"].read_stored([2], [3]).tolist() == [7] * 3


def test_many_threads(tmp_path):
    """More collections than are kept, asked for from all sides."""
    texts = np.array([f"{i} " * 300 for i in range(30000)], object)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("t", data=texts, dtype=h5py.string_dtype(), chunks=(1000,))
    source = sieva.open(path)
    wrong = []

    def ask(seed):
        rng = np.random.default_rng(seed)
        starts = rng.integers(0, 29000, 12).tolist()
        got = {start: source["t"].read_stored([start], [900]).tolist() for start in starts}
        wrong.extend(start for start in starts if got[start] != texts[start : start + 900].tolist())

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_damaged_collection_is_named(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("t", data=draws(9, 1)[:5], dtype=h5py.string_dtype())
        f["n"] = np.arange(5)
    content = path.read_bytes()
    at = content.index(b"GCOL")
    for damage, why in [(b"GCUL", "none of version 1"), (b"GCOL\x02", "none of version 1")]:
        path.write_bytes(content[:at] + damage + content[at + len(damage) :])
        source = sieva.open(path)
        assert source["n"].read_stored([0], [5]).tolist() == list(range(5))
        with pytest.raises(errors.CorruptFile, match=f"heap collection at {at}: .*{why}"):
            source["t"].read_stored([0], [5])


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_fill_value_longer_than_the_file(tmp_path, libver):
    """Asked for any property of the dataset, libhdf5 takes memory for as many bytes as it says."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as f:
        f.create_dataset("t", (9,), h5py.string_dtype(), chunks=(4,), fillvalue="none")
        f["n"] = np.arange(5)
    assert sieva.open(path)["t"].read_stored([0], [9]).tolist() == ["none"] * 9
    content = path.read_bytes()
    heap = content.index(b"GCOL")
    at = content.index((4).to_bytes(4, "little") + heap.to_bytes(8, "little"))
    path.write_bytes(content[:at] + b"\xf0\xff\xff\xff" + content[at + 4 :])
    source = sieva.open(path)
    assert source["n"].read_stored([0], [5]).tolist() == list(range(5))
    # New headers have a checksum, which is wrong then.
    message = "fill value has 4294967280 elements" if libver == "earliest" else "cannot open an object"
    with pytest.raises(errors.SievaError, match=message):
        source["t"]


def test_lists_of_dimensions_that_are_lists_of_something_else(tmp_path):
    """One item of what they hold may be of any size: of 4 GB here, if it were read."""
    path = tmp_path / "a.h5"
    lists = np.empty(1, object)
    lists[0] = np.array([b"abc"], "S8")
    with h5py.File(path, "w", libver="earliest") as f:
        f["n"] = np.arange(5)
        f["n"].attrs.create("DIMENSION_LIST", lists, dtype=h5py.vlen_dtype(np.dtype("S8")))
    content = path.read_bytes()
    kind = b"\x13\x01\x00\x00\x08\x00\x00\x00"
    assert content.count(kind) == 1
    path.write_bytes(content.replace(kind, kind[:4] + (4_000_000_000).to_bytes(4, "little")))
    code = (
        "import sys, resource, sieva; n = sieva.open(sys.argv[1])['n'].read_stored([0], [5]).tolist();"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    values, _, kilobytes = done.stdout.rpartition(" ")
    assert values == "[0, 1, 2, 3, 4]"
    assert int(kilobytes) < 2_000_000
