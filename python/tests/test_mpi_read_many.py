"""Boxes that all ranks ask for together, on Open MPI and MPICH, against other libraries' values."""

import json

import h5py
import numpy as np
import pytest
from read_many_files import write_files, write_records
from test_mpi import PROGRAM, mpirun, on_one, start  # noqa: F401 - a fixture

pytest.importorskip("mpi4py", reason="the extra mpi is not installed")
MODES = ("independent", "collective", "nonblocking")


def told(mpirun, ranks, *arguments):  # noqa: F811
    done = start(mpirun, ranks, PROGRAM.with_name("mpi_read_program.py"), *arguments, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(line)


@pytest.mark.parametrize("program", ["mpi_read_program.py", "mpi_program.py"])
def test_a_rank_that_fails_ends_all_of_them(program, mpirun):  # noqa: F811
    done = start(mpirun, 3, PROGRAM.with_name(program), "one_fails", check=False)
    assert done.returncode != 0
    assert "AssertionError: this rank found something else" in done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read-many")
    write_files(folder)
    return folder


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_random_boxes_of_all_layouts(ranks, folder, mpirun):  # noqa: F811
    found = told(mpirun, ranks, "boxes", folder)
    # 12 arrays, 3 boxes, 6 batches; one rank has none in one batch.
    assert found["asked"] == 12 * 3 * (6 * ranks - (ranks > 1))
    # The last batch had 2 KiB; one rank sends nothing.
    assert min(found["waves"]) > 3 or ranks == 1


@on_one
@pytest.mark.parametrize(("mode", "ranks"), [("independent", 2), ("collective", 4), ("nonblocking", 3)])
def test_each_byte_is_read_once_by_all_ranks(mode, ranks, mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "whole.h5"
    values = np.random.default_rng(2).normal(size=(80, 60, 40))
    with h5py.File(path, "w") as file:
        file["T"] = values
    for striping in ("", "stripe_size=65536,stripe_count=3,stripe_offset=1"):
        found = told(mpirun, ranks, "once", path, mode, striping)
        assert found["union"] <= found["read"] <= found["bytes"] <= values.nbytes
        assert found["bytes"] < found["asked"]
        assert all(found["readers"])
    chunked = tmp_path / "chunked.h5"
    with h5py.File(chunked, "w") as file:
        file.create_dataset("T", data=values, chunks=(14, 60, 10), compression="gzip")
    found = told(mpirun, ranks, "once", chunked, mode, "")
    # No chunk by two ranks, nor twice by one.
    assert 0 < found["chunks"] <= 6 * 4


@on_one
@pytest.mark.parametrize("mode", MODES)
def test_who_asks_for_what_nobody_else_wants_reads_it(mode, mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file["T"] = np.random.default_rng(3).normal(size=(64, 4096))
    for striping in ("", "stripe_size=65536,stripe_count=4"):
        found = told(mpirun, 4, "rows", path, mode, striping)
        assert found["sent"] == 0
        assert found["read"] == found["asked"] == 64 * 4096 * 8
    # Columns of every row: fewer requests, and each byte once.
    found = told(mpirun, 4, "columns", path, mode, "")
    assert found["sent"] > 0
    assert found["bytes"] <= 64 * 4096 * 8


@on_one
@pytest.mark.parametrize("mode", MODES)
def test_an_error_reaches_who_asked_for_the_piece(mode, mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "broken.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("v", data=np.arange(4096.0), chunks=(512,), fletcher32=True)
        place = data.id.get_chunk_info(2).byte_offset
    with path.open("r+b") as file:
        file.seek(place + 100)
        file.write(b"\xff" * 8)
    found = told(mpirun, 4, "broken", path, mode)
    assert found["said"][0][:3] == [True, True, True]
    assert found["said"][0][4:] == [True] * 3
    kind, words = found["said"][2][0]
    assert kind == "corrupt-file"
    assert words.startswith("rank ")
    assert found["said"][0][3] == [kind, words]
    assert [found["said"][1], found["said"][3]] == [[True], [True]]
    assert found["raised"] == [kind, None, kind, None]


@on_one
@pytest.mark.parametrize("mode", MODES)
def test_what_one_rank_cannot_read_is_nobody_elses_zeros(mode, mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "broken.h5"
    values = np.arange(1, 4097, dtype="i4").reshape(64, 64)
    with h5py.File(path, "w") as file:
        file["good"] = values
        data = file.create_dataset("broken", data=values, chunks=(64, 64), compression="gzip")
        file["later"] = np.arange(50_000)
        chunk = data.id.get_chunk_info_by_coord((0, 0))
    with path.open("r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(b"\xff" * 6)
    assert told(mpirun, 2, "others", path, mode)["said"] == ["corrupt-file", "right"]


@on_one
@pytest.mark.parametrize("mode", MODES)
def test_integers_stay_exact_beside_missing_ones(mode, mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "marks.h5"
    wide = np.array([2**53 + 1, 2**60 + 1, 7, -1, 9, -1])
    with h5py.File(path, "w") as file:
        file["wide"] = wide
        file.create_dataset("chunked", data=wide, chunks=(4,), compression="gzip")
        file["narrow"] = np.array([1, 2, 255, 4, 255, 6], "u1")
        for name, fill in (("wide", -1), ("chunked", -1), ("narrow", 255)):
            file[name].attrs["_FillValue"] = np.array(fill, file[name].dtype)
    found = told(mpirun, 2, "marks", path, mode)
    assert found == {"exact": "<i8", "first": [2**53 + 1, 2**60 + 1], "missing": "<f8"}


def test_an_interrupt_before_anything_is_read_leaves_nobody_waiting(mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "records.nc"
    write_records(path, "NETCDF3_CLASSIC")
    found = told(mpirun, 2, "interrupted_at_first", path, "nonblocking")
    assert found["raised"] == ["KeyboardInterrupt", None]


@on_one
def test_a_plan_of_more_than_the_memory_is_refused(mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.arange(150_000.0)
    found = told(mpirun, 2, "scattered", path, "collective")
    assert found == {"raised": ["memory-limit"] * 2, "few": list(range(9))}


@on_one
def test_a_wrong_request_is_its_ranks_own(mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "records.nc"
    write_records(path, "NETCDF3_CLASSIC")
    found = told(mpirun, 3, "wrong", path, "nonblocking")
    assert found["mine"] == [[], [], ["UnknownArray", "IndexError", "TypeError", "TypeError"]]
    assert found["raised"] == [None, None, "unknown-array"]


@on_one
def test_a_source_that_was_replaced_is_stale(mpirun, tmp_path):  # noqa: F811
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.arange(9000.0)
    assert told(mpirun, 2, "stale", path, "collective")["said"] == ["stale-source"] * 2
