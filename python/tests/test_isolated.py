"""Files that are parsed in a process of their own: the same answers, and errors where a reader crashes."""

import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from sieva import _native, _open, errors

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(os.environ.get("SIEVA_SHARED_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.arange(5000.0), chunks=(100,), compression="gzip")
        f.create_dataset("text", data=["one", "two", "three"])
        write_nbit(f, "packed", np.arange(50))
        f["out"] = h5py.ExternalLink("/etc/passwd", "/")
    return path


def write_nbit(f: h5py.File, name: str, values: np.ndarray) -> None:
    """Write integers with a filter that only libhdf5 undoes."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    plist.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
    space = h5py.h5s.create_simple(values.shape)
    h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist).write(
        h5py.h5s.ALL, h5py.h5s.ALL, values
    )


def test_answers_are_the_same(file):
    here, there = sieva.open(file), sieva.open(file, isolated=True)
    assert list(here) == list(there)
    for text in ("x > 4000.5", "packed < 7", "text = 'two'"):
        assert there.query(text).count() == here.query(text).count() > 0
    # What only the format's own library decodes is read by the worker.
    np.testing.assert_array_equal(there["packed"][...], np.arange(50))
    assert there["text"][...].tolist() == ["one", "two", "three"]


def test_many_threads_may_ask_one_worker(file):
    source = sieva.open(file, isolated=True)
    condition, counts = "packed >= 25 AND text IS NULL OR packed < 5", []
    ask = lambda: counts.append(source.query(condition, cross=True).count())  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(counts) == 6
    assert len(set(counts)) == 1


def test_a_worker_that_is_no_worker_is_an_error(file):
    for command in (["/nonexistent/program"], ["/bin/false"], ["/bin/echo", "hello"]):
        with pytest.raises(sieva.SievaError) as caught:
            _native.Source.open([str(file)], {"isolated": command})
        assert caught.value.kind in {"io-error", "corrupt-file", "file-not-found"}, command


def test_a_worker_loads_the_extension_module_alone():
    program, *arguments = _open.WORKER
    ours, theirs = socket.socketpair()
    ours.close()
    command = [program, "-X", "importtime", *arguments]
    with theirs:
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, check=True)
    loaded = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    assert len(loaded) > 5
    assert not {"sieva", "typing", "pathlib", "numpy", "site"} & set(loaded)
    # By hand it is an error of the package's, which is found for it.
    done = subprocess.run(_open.WORKER, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sieva.errors.InvalidValue: standard input is no socket" in done.stderr


def test_limits_are_kept(file):
    with pytest.raises(sieva.SievaError, match=r"a\.h5") as caught:
        _native.Source.open([str(file)], {"isolated": _open.WORKER}, limits=(1 << 20, 10))
    assert caught.value.kind in {"corrupt-file", "io-error", "memory-limit"}


def fits_table(path):
    """Write a binary table of a number, a text and an unsigned column; return its rows."""
    rows = np.zeros(700, dtype=[("x", ">f4"), ("name", "S5"), ("count", ">i2")])
    rows["x"] = np.linspace(-3, 3, 700)
    rows["name"] = [f"n{i % 9}".encode() for i in range(700)]
    rows["count"] = np.arange(700) - 2**15

    def header(*cards):
        text = "".join(f"{card:80}" for card in (*cards, "END"))
        return text.encode().ljust(-(-len(text) // 2880) * 2880)

    def card(key, value):
        return f"{key:8}= {value:>20}"

    table = [("XTENSION", "'BINTABLE'"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", rows.itemsize)]
    table += [("NAXIS2", len(rows)), ("PCOUNT", 0), ("GCOUNT", 1), ("TFIELDS", 3)]
    for n, (name, form) in enumerate((("x", "1E"), ("name", "5A"), ("count", "1I")), 1):
        table += [(f"TTYPE{n}", f"'{name:8}'"), (f"TFORM{n}", f"'{form:8}'")]
    table += [("TSCAL3", 1), ("TZERO3", 32768), ("EXTNAME", "'T       '")]
    data = rows.tobytes()
    path.write_bytes(
        header(card("SIMPLE", "T"), card("BITPIX", 8), card("NAXIS", 0))
        + header(*(card(*pair) for pair in table))
        + data.ljust(-(-len(data) // 2880) * 2880, b"\0")
    )
    return rows


def test_a_table_that_only_its_reader_can_fetch(tmp_path):
    rows = fits_table(tmp_path / "t.fits")
    source = sieva.open(tmp_path / "t.fits", isolated=True)
    np.testing.assert_array_equal(source["T/x"][...], rows["x"])
    assert source["T/name"][...].tolist() == [name.decode() for name in rows["name"]]
    assert source["T/count"][...].tolist() == list(range(700))
    got = source.query("x > 1.5 AND name = 'n3' AND count >= 600", select=["count"]).read("count")
    wanted = (rows["x"] > 1.5) & (rows["name"] == b"n3") & (np.arange(700) >= 600)
    assert got.tolist() == np.flatnonzero(wanted).tolist() != []


def test_what_no_worker_reads_is_refused(tmp_path):
    (tmp_path / "r.parq").mkdir()
    (tmp_path / "r.parq" / ".zmetadata").write_text('{"metadata": {}, "record_size": 10}')
    for path in ("http://127.0.0.1:9/a.h5", tmp_path / "r.parq"):
        with pytest.raises(errors.Unsupported, match="worker process"):
            sieva.open(path, isolated=True)


DEV = [p for kind in ("fits", "netcdf3", "netcdf4", "hdf5") for p in sorted((DATA / "dev" / kind).glob("*"))]


@pytest.mark.skipif(not DEV, reason=f"no files at {DATA}")
@pytest.mark.parametrize("path", DEV, ids=lambda path: path.name)
def test_every_array_is_the_same(path):
    def values(source, name):
        info = source._native.info(name)
        shape = [min(int(n), 50) for n in info["shape"]]
        try:
            return np.asarray(source._native.read(name, [0] * len(shape), shape, raw=True))
        except sieva.SievaError as error:
            return error.kind

    here, there = sieva.open(path), sieva.open(path, isolated=True)
    assert list(here) == list(there) != []
    for name in here:
        np.testing.assert_array_equal(values(there, name), values(here, name), err_msg=name)


ODD = sorted(p for p in (DATA / "odd").glob("*/*") if p.is_file()) if DATA.is_dir() else []


@pytest.mark.skipif(not ODD, reason=f"no odd files at {DATA}")
@pytest.mark.parametrize("part", range(20))
def test_no_odd_file_brings_us_down(part):
    """A crash or a hang of the reader would be one of the test's own process, or of its time."""
    seen, broken = 0, []
    for path in ODD[part::20]:
        seen += 1
        try:
            source = sieva.open(path, isolated=True)
            for name in list(source)[:5]:
                info = source._native.info(name)
                shape = [min(int(n), 4) for n in info["shape"]]
                source._native.read(name, [0] * len(shape), shape, raw=True)
        except sieva.SievaError as error:
            if error.kind == "internal-error":
                broken.append((path, str(error)))
    assert seen > 10
    assert broken == []


def test_items_that_are_not_all_stored_are_an_error(tmp_path):
    """Of items that are said to be larger than their storage, libhdf5 gives what its buffer held before."""
    path = tmp_path / "a.h5"
    records = np.zeros(3, np.dtype([("name", h5py.string_dtype()), ("v", "<f4", (3,))]))
    records["name"], records["v"] = ["a", "b", "c"], np.arange(9).reshape(3, 3)
    with h5py.File(path, "w") as f:
        f["r"] = records
    assert sieva.open(path)["r.v"][...].tolist() == records["v"].tolist()
    # A compound of two members, 16 + 12 bytes in the file: its size becomes 32, a blank.
    content, count = re.subn(rb"([\x16\x26\x36]\x02\0\0)\x1c\0\0\0", rb"\1 \0\0\0", path.read_bytes())
    assert count == 1
    path.write_bytes(content)
    for isolated in (False, True):
        with pytest.raises(errors.CorruptFile, match="3 items of 32 bytes in 84 bytes of storage"):
            sieva.open(path, isolated=isolated).query('"r.v" > 0').count()
