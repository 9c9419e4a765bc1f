"""HDF5 files with very many objects: what opening them takes has a limit, and an end."""

import signal
import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest
import sieva


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Return a file of many arrays."""
    path = tmp_path_factory.mktemp("wide") / "wide.h5"
    with h5py.File(path, "w") as f:
        for n in range(20_000):
            f.create_dataset(f"d{n}", (3,), "f4")
    return path


def test_groups_have_a_depth(tmp_path):
    with h5py.File(tmp_path / "deep.h5", "w") as f:
        group = f
        for depth in range(3000):
            if depth in {1024, 1025}:
                group[f"at{depth}"] = np.arange(depth)
            group = group.create_group("g")
        f["soft"] = h5py.SoftLink("/" + "g/" * 1024 + "at1024")
    source = sieva.open(tmp_path / "deep.h5")
    assert list(source) == ["g/" * 1024 + "at1024"]
    assert source.query("at1024 < 5").count() == source.query("soft < 5").count() == 5
    [said] = source.warnings
    assert said.endswith("it is more than 1024 groups deep, and is not looked into")


def test_the_list_of_a_file_has_a_limit(wide, tmp_path):
    assert len(sieva.open(wide)) == len(sieva.open(wide, memory="128MiB")) == 20_000
    with pytest.raises(sieva.errors.MemoryLimit, match=r"wide\.h5.* more than the limit of 16777216 bytes"):
        sieva.open(wide, memory="16MiB")
    with h5py.File(tmp_path / "attributes.h5", "w") as f:
        for n in range(300):
            f.create_group(f"g{n}").attrs["text"] = "x" * 60_000
    assert len(sieva.open(tmp_path / "attributes.h5")) == 0
    with pytest.raises(sieva.errors.MemoryLimit):
        sieva.open(tmp_path / "attributes.h5", memory="8MiB")
    with h5py.File(tmp_path / "links.h5", "w") as f:
        group = f.create_group("n" * 1000)
        group["x"] = np.arange(3)
        for n in range(5000):
            group[f"s{n}"] = h5py.SoftLink("nowhere")
            group[f"h{n}"] = group["x"]
    assert len(sieva.open(tmp_path / "links.h5")) == 1
    with pytest.raises(sieva.errors.MemoryLimit):
        sieva.open(tmp_path / "links.h5", memory="4MiB")


MEASURE = """
import resource, sys, sieva
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    sieva.open(sys.argv[1], memory=sys.argv[2])
except sieva.errors.MemoryLimit:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(("memory", "mebibytes"), [("1GiB", 120), ("8MiB", 60)])
def test_what_a_file_of_many_arrays_takes(wide, memory, mebibytes):
    """Of 20000 arrays libhdf5 alone would keep 90 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, wide, memory], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < mebibytes << 10


def test_opening_is_interrupted(wide):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            [sieva.open(wide) for _ in range(1000)]
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert len(sieva.open(wide)) == 20_000


def test_lengths_that_a_scale_has_not_are_named_in_time(tmp_path):
    """Each axis of another length than its scale is a dimension of its own."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["n"] = np.arange(3)
        f["n"].make_scale()
        for k in range(3000):
            d = f.create_dataset(f"d{k}", (k + 4,), "i1")
            d.dims[0].label = "m"
            if k < 100:
                d.dims[0].attach_scale(f["n"])
    source = sieva.open(tmp_path / "a.h5")
    assert [source[f"d{k}"].dims for k in (0, 1, 99, 100)] == [("n_1",), ("n_2",), ("n_100",), ("m",)]
    paths = [dim["path"] for dim in source._native.dims() if dim["name"] == "m"]
    assert paths == ["m", *(f"m_{k}" for k in range(1, 2900))]
