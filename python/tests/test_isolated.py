"""Files that are parsed in a process of their own: the same answers, and errors where a reader crashes."""

import os
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from sieva import _native, _open

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(os.environ.get("SIEVA_SHARED_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.arange(5000.0), chunks=(100,), compression="gzip")
        f.create_dataset("text", data=["one", "two", "three"])
        f.create_dataset("packed", data=np.arange(50), chunks=(10,), scaleoffset=0)
        f["out"] = h5py.ExternalLink("/etc/passwd", "/")
    return path


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
    counts = []
    ask = lambda: counts.append(source.query("packed >= 25 AND text IS NULL OR packed < 5").count())  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(counts) == 6
    assert len(set(counts)) == 1


def test_a_worker_that_is_no_worker_is_an_error(file):
    for command in (["/nonexistent/program"], ["/bin/false"], ["/bin/echo", "hello"]):
        with pytest.raises(sieva.SievaError) as caught:
            _native.Source.open([str(file)], isolated=command)
        assert caught.value.kind in {"io-error", "corrupt-file", "file-not-found"}, command


def test_limits_are_kept(file):
    with pytest.raises(sieva.SievaError, match=r"a\.h5") as caught:
        _native.Source.open([str(file)], isolated=_open.WORKER, limits=(1 << 20, 10))
    assert caught.value.kind in {"corrupt-file", "io-error", "memory-limit"}


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
