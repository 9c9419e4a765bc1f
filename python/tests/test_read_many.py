"""Many reads as one: the values of numpy, each chunk and byte once, errors where they belong."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import draws
import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import xarray as xr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_conformance import files  # noqa: F401
from test_isolated import fits_table

MANY = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def keys(draw, shape):
    """Draw an index of numpy: slices with steps, integers, an ellipsis."""
    parts = []
    for n in shape:
        bound = st.none() | st.integers(-n - 1, n + 1)
        step = draw(st.sampled_from([None, 1, 2, -1, -3]))
        one = st.integers(-n, n - 1)
        parts.append(draw(st.builds(slice, bound, bound, st.just(step)) | one))
    if parts and draw(st.booleans()):
        cut = draw(st.integers(0, len(parts)))
        return (*parts[:cut], ...)
    return tuple(parts)


@st.composite
def requests(draw, arrays):
    """Draw indices and positions of arrays, as (name, index) and (name, mask)."""
    found = []
    for _ in range(draw(st.integers(1, 12))):
        array = draw(st.sampled_from(arrays))
        shape = array.stored.shape
        if draw(st.integers(0, 2)):
            found.append((array.name, draw(keys(shape))))
        else:
            rng = np.random.default_rng(draw(st.integers(0, 2**32)))
            found.append(
                (array.name, np.asarray(rng.random(shape) < draw(st.sampled_from([0, 0.1, 0.5, 1]))))
            )
    return found


def selection_of(source, name, mask):
    """Return the selection of a mask's positions over an array's dimensions."""
    array = source[name]
    return sieva.Selection.from_positions(np.flatnonzero(mask), array.dims, array.shape)


def check(source, asked, values_of):
    """Assert that a batch gives what numpy cuts out of the values, and each request by itself."""
    batch = [(n, selection_of(source, n, k) if isinstance(k, np.ndarray) else k) for n, k in asked]
    for (name, key), got in zip(asked, source.read_many(batch), strict=True):
        want = values_of(name)[key]
        assert np.shape(got) == np.shape(want), (name, key)
        np.testing.assert_array_equal(got, want, err_msg=f"{name}[{key}]")
        if not isinstance(key, np.ndarray):
            own = source[name][key]
            assert np.asarray(got).dtype == np.asarray(own).dtype
            np.testing.assert_array_equal(got, own)


@MANY
@given(st.data())
def test_batches_are_what_numpy_cuts_out(data):
    file_format = data.draw(st.sampled_from(sorted(draws.FORMATS)))
    kinds = draws.FORMATS[file_format]
    dims = st.sampled_from([(), ("time",), ("time", "y"), ("z", "x"), ("time", "z", "y", "x")])
    arrays = [
        data.draw(draws.arrays(f"a{i}", data.draw(dims), kinds)) for i in range(data.draw(st.integers(1, 4)))
    ]
    asked = data.draw(requests(arrays))
    decoded = {array.name: array.decoded() for array in arrays}

    def values_of(name):
        values, missing = decoded[name]
        values = values.astype("f8") if missing.any() else values
        return np.where(missing, np.nan, values) if missing.any() else values

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "drawn.nc"
        draws.write(path, file_format, arrays, data.draw(st.booleans()))
        check(sieva.open(path, learn=False), asked, values_of)


@pytest.fixture(scope="module")
def values():
    """Return numbers of three dimensions, with what is hostile among them."""
    numbers = np.random.default_rng(1).normal(size=(12, 30, 40)).astype("f4")
    numbers[0, 0, :6] = [np.nan, -0.0, np.inf, -np.inf, 1e-45, 3.4e38]
    return numbers


def write_fits(path, values):
    """Write a FITS file of one image of float32, by hand."""
    axes = [f"NAXIS{i + 1}  = {n:20d}" for i, n in enumerate(reversed(values.shape))]
    cards = [
        "SIMPLE  =                    T",
        "BITPIX  =                  -32",
        f"NAXIS   = {values.ndim:20d}",
        *axes,
        "END",
    ]
    head = "".join(card.ljust(80) for card in cards).encode()
    body = values.astype(">f4").tobytes()
    path.write_bytes(head.ljust(2880) + body.ljust(-(-len(body) // 2880) * 2880, b"\0"))


@pytest.mark.parametrize("kind", ["zarr2", "zarr3", "fits", "joined", "compound"])
def test_batches_of_other_formats(kind, values, tmp_path):
    path, name = tmp_path / "data", "v"
    if kind.startswith("zarr"):
        group = zarr.open_group(path, mode="w", zarr_format=int(kind[-1]))
        group.create_array("v", shape=values.shape, chunks=(5, 7, 40), dtype="f4")[:] = values
    elif kind == "fits":
        write_fits(path, values)
    elif kind == "joined":
        for i, (begin, end) in enumerate(itertools.pairwise([0, 3, 7, 10, 12])):
            with h5py.File(tmp_path / f"part{i}.h5", "w") as file:
                file.create_dataset("v", data=values[begin:end], chunks=(2, 30, 9), compression="gzip")
                for axis, dim in enumerate("tyx"):
                    file["v"].dims[axis].label = dim
        path = tmp_path / "part*.h5"
    else:
        records = np.zeros(values.shape, [("n", "i2"), ("v", ">f4"), ("w", "f8")])
        records["v"], records["w"], name = values, values.astype("f8") * 2, "c.v"
        with h5py.File(path, "w") as file:
            file.create_dataset("c", data=records, chunks=(4, 30, 11), compression="gzip")
    source = sieva.open(str(path), learn=False)
    names = list(source) if kind == "fits" else [name] + (["c.w"] if kind == "compound" else [])
    rng, asked = np.random.default_rng(5), []
    for i in range(60):
        start = rng.integers(0, values.shape)
        key = tuple(slice(s, s + 1 + rng.integers(0, 20), 1 + i % 3) for s in start)
        asked.append((names[i % len(names)], key if i % 4 else rng.random(values.shape) < 0.05))
    check(source, asked, lambda name: values.astype("f8") * 2 if name == "c.w" else values)


def test_texts_and_what_cannot_be_read_with_others(mixed):
    got = mixed.read_many([("text", ...), ("text", slice(1, 3)), ("byte", (slice(None), 1))])
    np.testing.assert_array_equal(got[0], ["plain", 'has "quotes"', "a,b", "line\nbreak", "", "ünï"])
    np.testing.assert_array_equal(got[1], ['has "quotes"', "a,b"])
    np.testing.assert_array_equal(got[2], mixed["byte"][:, 1])
    picked = sieva.Selection.from_positions([0, 5], ["time"], [6])
    np.testing.assert_array_equal(mixed.read_many([("text", picked)])[0], ["plain", "ünï"])


@pytest.fixture(scope="module")
def chunked(values, tmp_path_factory):
    """Return a file of compressed chunks, of plain bytes, and of one array whose chunk is damaged."""
    path = tmp_path_factory.mktemp("many") / "chunked.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(4, 10, 40), compression="gzip", shuffle=True)
        file.create_dataset("plain", data=values)
        bad = file.create_dataset("bad", data=values, chunks=(4, 30, 40), compression="gzip")
        place = bad.id.get_chunk_info_by_coord((4, 0, 0))
    with path.open("r+b") as raw:
        raw.seek(place.byte_offset)
        raw.write(b"\xff" * 40)
    return path


def test_each_chunk_is_read_and_decoded_once(chunked, values):
    source = sieva.open(chunked, learn=False)
    with h5py.File(chunked) as file:
        sizes = {
            file["v"].id.get_chunk_info(i).chunk_offset: file["v"].id.get_chunk_info(i).size for i in range(9)
        }
    source["v"].shape, source.read_many([("v", (0, 0, 0))])
    before = source._native.traffic()
    # Rows 3 to 9 touch all of the first dimension's chunks, columns 0 to 12 two of the second's.
    asked = [("v", (slice(3, 9), slice(i, i + 10))) for i in range(3)] * 5
    for (_, key), got in zip(asked, source.read_many(asked), strict=True):
        np.testing.assert_array_equal(got, values[key])
    did = {k: n - before[k] for k, n in source._native.traffic().items()}
    wanted = [size for (z, y, _), size in sizes.items() if y < 20]
    assert did["chunks_decoded"] == len(wanted) == 6
    # Chunks that lie side by side are read at once.
    assert did["bytes_read"] == sum(wanted)
    assert did["requests"] <= 6


def test_plain_bytes_are_read_once(chunked, values):
    source = sieva.open(chunked, learn=False)
    source.read_many([("plain", (0, 0, 0))])
    before = source._native.traffic()
    asked = [("plain", slice(i, i + 4)) for i in range(6)] * 2
    for (_, key), got in zip(asked, source.read_many(asked), strict=True):
        np.testing.assert_array_equal(got, values[key])
    did = {k: n - before[k] for k, n in source._native.traffic().items()}
    assert did["bytes_read"] == values[:9].nbytes
    assert did["requests"] <= 2


def test_an_error_is_that_of_who_needs_what_fails(chunked, values):
    source = sieva.open(chunked, learn=False)
    asked = [("bad", slice(0, 4)), ("bad", slice(3, 6)), ("v", 5), ("none", 0), ("v", 99), ("bad", 11)]
    got = source.read_many(asked, errors="return")
    kinds = [type(g) for g in got]
    assert kinds[1] is sieva.errors.CorruptFile
    assert "chunk [1, 0, 0]" in str(got[1])
    assert kinds[3] is sieva.errors.UnknownArray
    assert kinds[4] is IndexError
    for i in (0, 2, 5):
        np.testing.assert_array_equal(got[i], values[asked[i][1]])
    with pytest.raises(sieva.errors.CorruptFile, match="bad"):
        source.read_many(asked[:3])
    with pytest.raises(sieva.errors.CorruptFile, match=r"chunk \[1, 0, 0\]"):
        source["bad"][3:6]


def test_what_is_asked_is_checked(chunked, values):
    source = sieva.open(chunked, memory="2MiB", learn=False)
    assert source.read_many([]) == []
    with pytest.raises(sieva.errors.MemoryLimit, match="200 requests"):
        source.read_many([("v", ...)] * 200)
    other = sieva.Selection.from_positions([1], ["a", "b"], [3, 4])
    with pytest.raises(sieva.errors.DimensionMismatch, match="a: 3, b: 4"):
        source.read_many([("v", other)])
    for wrong in ("v", ("v",), (3, 0), ("v", 0, 0)):
        with pytest.raises(TypeError, match="a request is"):
            source.read_many([wrong])
    with pytest.raises(TypeError, match="indexed by integers"):
        source.read_many([("v", "x")], errors="return")
    with pytest.raises(ValueError, match="errors is"):
        source.read_many([], errors="ignore")
    np.testing.assert_array_equal(source.read_many([(source["v"], 3)], stored=True)[0], values[3])


def test_threads_that_read_at_once_get_their_own_values(chunked, values):
    source = sieva.open(chunked, learn=False)
    barrier, wrong = threading.Barrier(24), []

    def work(i):
        barrier.wait()
        for j in range(12):
            key = (slice(j % 8, j % 8 + 5), slice(i % 15, i % 15 + 10), slice(i, 40))
            name = ("v", "plain")[(i + j) % 2]
            if not np.array_equal(source[name][key], values[key], equal_nan=True):
                wrong.append((name, key))
            try:
                source["bad"][i % 12]
            except sieva.errors.CorruptFile:
                wrong.extend([] if 4 <= i % 12 < 8 else [("bad", i)])
            else:
                wrong.extend([("bad", i)] if 4 <= i % 12 < 8 else [])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def touched(keys, shape, chunks):
    """Return how many chunks indices of slices touch."""
    grid = np.zeros([-(-n // c) for n, c in zip(shape, chunks, strict=True)], bool)
    for key in keys:
        grid[tuple(slice(k.start // c, -(-k.stop // c)) for k, c in zip(key, chunks, strict=True))] = True
    return int(grid.sum())


@pytest.mark.parametrize("sources", [1, 64])
def test_64_threads_decode_each_chunk_once(sources, values, tmp_path):
    path = tmp_path / "shared.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(2, 5, 10), compression="gzip", shuffle=True)
    # One that is still being written is not shared.
    os.utime(path, (1e9, 1e9))
    keys = [(slice(i // 8, i // 8 + 4), slice(i % 12, i % 12 + 15), slice(i % 5, 30)) for i in range(64)]
    with sieva.Session(memory="1GiB") as session:
        opened = [session.open(path, learn=False) for _ in range(sources)]
        barrier, wrong = threading.Barrier(64), []

        def work(i):
            source = opened[i % sources]
            barrier.wait()
            got = source["v"][keys[i]] if i % 2 else source.read_many([("v", keys[i])] * 2)[1]
            if not np.array_equal(got, values[keys[i]], equal_nan=True):
                wrong.append(keys[i])

        threads = [threading.Thread(target=work, args=(i,)) for i in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        decoded = sum(source._native.traffic()["chunks_decoded"] for source in opened)
    assert decoded == touched(keys, values.shape, (2, 5, 10))


def test_batches_on_given_servers_are_the_same(chunked, values):
    rng = np.random.default_rng(9)
    for striping in ("stripe_size=64KiB,stripe_count=4", "stripe_size=100,stripe_count=3"):
        source = sieva.open(chunked, learn=False, striping=striping)
        asked = []
        for i in range(40):
            start = rng.integers(0, values.shape)
            key = tuple(slice(int(s), int(s + 1 + rng.integers(0, 20))) for s in start)
            asked.append((("v", "plain")[i % 2], key))
        for (_, key), got in zip(asked, source.read_many(asked), strict=True):
            np.testing.assert_array_equal(got, values[key])
        kinds = [type(g) for g in source.read_many([("bad", 0), ("bad", 5)], errors="return")]
        assert kinds == [np.ndarray, sieva.errors.CorruptFile]


def test_plans_are_counted_and_small_arrays_are_of_numpy(chunked, values):
    source = sieva.open(chunked, learn=False)
    before = source._native.traffic()["plan_nanoseconds"]
    asked = [("v", (slice(0, 2), i % 30, slice(None, None, -1))) for i in range(300)]
    got = source.read_many([*asked, ("v", ...)])
    assert source._native.traffic()["plan_nanoseconds"] > before
    for (_, key), own in zip(asked, got, strict=False):
        np.testing.assert_array_equal(own, values[key])
        own[...] = 7
    np.testing.assert_array_equal(got[-1], values)
    assert got[-1].shape == values.shape
    assert got[-1].flags.writeable


PROGRAM = """
import sys, sieva
source = sieva.open(sys.argv[1], learn=False)
source.read_many([("v", (0, 0, 0)), ("plain", (0, 0, 0))])
open(sys.argv[2]).close()
asked = [(n, (slice(i, i + 5), slice(i, i + 9))) for n in ("v", "plain") for i in range(8)] * 4
source.read_many(asked)
open(sys.argv[2]).close()
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_is_asked_for_no_byte_twice(chunked, tmp_path):
    marker, log = tmp_path / "marker", tmp_path / "trace"
    marker.touch()
    command = ["strace", "-f", "-y", "-s0", "-e", "trace=pread64,openat", "-o", log]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, chunked, marker],
        check=False,
        capture_output=True,
        text=True,
    )
    if "ptrace" in done.stderr and done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    _, between, _ = log.read_text().split(f'"{marker}"')
    ranges, ours = [], {}
    for line in between.splitlines():
        pid, call = line.split(None, 1)
        if "pread64(" in call:
            ours[pid] = str(chunked) in call
        # A call that another thread's came into is told in two lines.
        found = re.search(r"pread64.*, (\d+), (\d+)\) += (\d+)", call)
        if found and ours.get(pid):
            size, offset, got = map(int, found.groups())
            assert got == size
            ranges.append((offset, offset + size))
    ranges.sort()
    assert ranges
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges)), ranges


@pytest.mark.parametrize("compressor", [None, "auto"])
@pytest.mark.parametrize("chunks", [(3, 4, 5), (2, 4, 3)])
def test_selections_of_chunks_in_fortran_order(tmp_path, compressor, chunks):
    values = np.arange(60, dtype="i4").reshape(3, 4, 5)
    group = zarr.open_group(tmp_path / "f.zarr", mode="w", zarr_format=2)
    made = group.create_array(
        "a",
        shape=values.shape,
        dtype="i4",
        chunks=chunks,
        order="F",
        compressors=compressor,
        fill_value=None,
    )
    made[...] = values
    made.attrs["_ARRAY_DIMENSIONS"] = ["z", "y", "x"]
    source = sieva.open(tmp_path / "f.zarr", learn=False)
    masks = [values >= 0, values % 7 == 3, values < 0]
    check(
        source,
        [*(("a", mask) for mask in masks), ("a", (1, slice(None), slice(None, None, 2)))],
        lambda _: values,
    )


def test_selections_of_files_with_fill_values_of_their_own(tmp_path):
    paths, values = [tmp_path / f"{i}.h5" for i in range(3)], []
    for i, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            scale = file.create_dataset("t", data=np.arange(4.0) + 4 * i)
            scale.make_scale("t")
            made = file.create_dataset("a", (4,), dtype="i4", chunks=(2,), fillvalue=7 * i)
            made[:2] = [1, 2]
            made.dims[0].attach_scale(scale)
            values.append(made[...])
    source, values = sieva.open(paths, learn=False), np.concatenate(values)
    masks = [values > -1, values == 7, np.arange(12) % 5 == 2]
    check(source, [*(("a", mask) for mask in masks), ("a", slice(1, 11))], lambda _: values)


def test_texts_have_no_order_of_bytes(tmp_path):
    """Those of FITS lie among big-endian numbers, those of Zarr are numbers."""
    names = np.array(["PSF", "DEV", "EXP", "COMP"])
    group = zarr.open_group(tmp_path / "t.zarr", mode="w", zarr_format=2)
    for name, kind in (("big", ">U4"), ("little", "<U4"), ("pair", ">U2")):
        made = group.create_array(name, shape=(4,), dtype=kind, chunks=(4,))
        made[...] = names.astype(kind)
        made.attrs["_ARRAY_DIMENSIONS"] = ["row"]
    source = sieva.open(tmp_path / "t.zarr", learn=False)
    for name, width in (("big", 4), ("little", 4), ("pair", 2)):
        want = [text[:width] for text in names]
        many = source.read_many([(name, ...), (name, slice(1, 3)), (name, 2)])
        assert list(many[0]) == list(source[name][...]) == want
        assert (list(many[1]), many[2]) == (want[1:3], want[2])


def test_every_array_of_the_conformance_files_and_of_a_table(files, tmp_path):  # noqa: F811
    """A box of all, and a selection of every third row, in one batch of all arrays of a file."""
    fits_table(tmp_path / "table.fits")
    compared = 0
    for path in [
        *sorted(p for p in files.iterdir() if not p.name.endswith(".sieva")),
        tmp_path / "table.fits",
    ]:
        try:
            source = sieva.open(path, learn=False)
        except sieva.SievaError:
            continue  # Damaged ones are there, too.
        names = [name for name in source if source[name].size]
        asked = []
        for name in names:
            array = source[name]
            every = sieva.Selection.from_positions(range(0, array.size, 3), array.dims, array.shape)
            asked += [(name, ...), (name, every)]
        got = source.read_many(asked, errors="return")
        for name, whole, every in zip(names, got[::2], got[1::2], strict=True):
            if isinstance(whole, sieva.SievaError):
                with pytest.raises(type(whole)):
                    source[name][...]
                continue
            want = np.asarray(source[name][...])
            np.testing.assert_array_equal(whole, want, err_msg=f"{path.name} {name}")
            np.testing.assert_array_equal(every, want.reshape(-1)[::3], err_msg=f"{path.name} {name}")
            compared += 1
    assert compared > 100


def test_the_type_is_that_of_what_is_given(tmp_path):
    values = np.array([[2**62 + 1, -9, 3, -9], [-9, -9, 2**53 + 1, 5]], "i8")
    with h5py.File(tmp_path / "few.h5", "w") as file:
        file["b"] = values
        file["b"].attrs["_FillValue"] = np.int64(-9)
    source = sieva.open(tmp_path / "few.h5")
    slices = [
        slice(None),
        slice(None, None, 2),
        slice(None, None, -2),
        slice(2, None, -2),
        slice(1, None, 2**70),
        0,
        -1,
    ]
    for rows in (slice(None), slice(None, None, -1), slice(None, None, 2), 0, 1):
        for columns in slices:
            want = values[rows, columns]
            if np.any(want == -9):
                want = np.where(want == -9, np.nan, want.astype("f8"))
            for got in (source["b"][rows, columns], source.read_many([("b", (rows, columns))])[0]):
                assert np.asarray(got).dtype == np.asarray(want).dtype, (rows, columns)
                np.testing.assert_array_equal(got, want)
            stored = source.read_many([("b", (rows, columns))], stored=True)[0]
            np.testing.assert_array_equal(stored, values[rows, columns])


FAR = (
    np.s_[::31],
    np.s_[:, ::60],
    np.s_[::-9, 5],
    np.s_[3::11, ::-70, 1:9],
    np.s_[-1, ::50, ::3],
    np.s_[::30, 1::80, -1],
)


@pytest.mark.parametrize("layout", ["plain", "chunked"])
def test_long_steps_read_what_lies_at_them(tmp_path, layout):
    """Neither bytes nor memory are those of the box around rows that are far apart."""
    values = np.arange(90 * 150 * 40, dtype="i4").reshape(90, 150, 40)
    values[::14, 60, 3] = -9
    with h5py.File(tmp_path / "far.h5", "w") as file:
        options = {} if layout == "plain" else {"chunks": (3, 25, 40), "compression": "gzip"}
        made = file.create_dataset("v", data=values, **options)
        made.attrs["_FillValue"] = np.int32(-9)
    source = sieva.open(tmp_path / "far.h5", learn=False)
    for key in FAR:
        want = values[key]
        if np.any(want == -9):
            want = np.where(want == -9, np.nan, want.astype("f8"))
        before = source._native.traffic()["bytes_read"]
        got = source["v"][key]
        read = source._native.traffic()["bytes_read"] - before
        assert np.asarray(got).dtype == want.dtype, key
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(source.read_many([("v", key)])[0], want)
        np.testing.assert_array_equal(source.read_many([("v", key)], stored=True)[0], values[key])
        # Gaps of less than 16 KiB are read over.
        assert read < values.nbytes / 2 or (layout, key) == ("plain", FAR[1]), key
    small = sieva.open(tmp_path / "far.h5", learn=False, memory="1MiB")
    np.testing.assert_array_equal(small["v"][::40], np.where(values == -9, np.nan, values.astype("f8"))[::40])


def test_long_steps_of_xarray(tmp_path):
    values = np.random.default_rng(3).normal(size=(400, 60, 50)).astype("f4")
    xr.Dataset({"v": (("t", "y", "x"), values)}).to_netcdf(tmp_path / "v.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "v.nc", engine="sieva") as data:
        chosen = data.v.isel(t=[399, 3, 3, 120], y=slice(None, None, 10), x=slice(40, None, -3))
        np.testing.assert_array_equal(chosen.values, values[[399, 3, 3, 120]][:, ::10, 40::-3])
        np.testing.assert_array_equal(data.v.isel(t=slice(None, None, -90)).values, values[::-90])


def test_single_elements_of_records_are_read_and_not_the_records_between(tmp_path):
    """Positions that follow one another in a variable lie a record of 100 KB apart in the file."""
    records, width = 200, 25_000
    with netCDF4.Dataset(tmp_path / "records.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("t", None)
        file.createDimension("x", width)
        step = file.createVariable("step", "i4", ("t",))
        file.createVariable("T", "f4", ("t", "x"))[:] = np.ones((records, width), "f4")
        step[:] = np.arange(records)
    source = sieva.open(tmp_path / "records.nc")
    selection = source.query("step < 150").selection()
    before = source._native.traffic()["bytes_read"]
    (found,) = source.read_many([("step", selection)])
    assert np.array_equal(found, np.arange(150))
    assert source._native.traffic()["bytes_read"] - before < 1_000_000
