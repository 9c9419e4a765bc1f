"""Folders of followers in formats that are made here: Zarr."""

import subprocess
import sys

import h5py
import numpy as np
import pytest
import sieva
import sieva.share
import zarr
from sieva import errors
from sieva._output import copied
from sieva._output import zarr as zarr_output

SQL = "SELECT T, N, U, S, P, T * 2 AS x, T > 3 AS b"


@pytest.fixture
def step(tmp_path, monkeypatch):
    """Return the file of a producer, with hostile values."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "steps").mkdir()
    path = tmp_path / "steps" / "run.h5"
    write(path, 1.0)
    return path


def write(path, first):
    with h5py.File(path, "w") as file:
        file["T"] = np.array([first, np.nan, np.inf, -np.inf, -0.0, 6.0], ">f4")
        file["T"].attrs["units"] = "degC"
        file["N"] = np.array([1, -9, 3, -(2**62) - 1, 5, 6], "i8")
        file["N"].attrs["_FillValue"] = np.int64(-9)
        file["U"] = np.array([0, 2**64 - 1, 2**63, 1, 2, 3], "u8")
        file["S"] = np.array(["a", "", "dé", "\u2028", "x" * 300, "end"], dtype=object)
        file["P"] = np.array([1, 2, -9, 4, 5, 6], "i2")
        file["P"].attrs.update({"_FillValue": np.int16(-9), "scale_factor": 0.5})


def same(found, expected):
    """Compare all arrays of two sources, bit for bit."""
    assert sorted(found) == sorted(expected)
    for name in expected:
        one, other = found[name], expected[name]
        assert (one.dims, one.shape, one.dtype) == (other.dims, other.shape, other.dtype)
        ours, theirs = one[...], other[...]
        assert np.array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(theirs))
        if one.dtype == object:
            assert list(ours) == list(theirs)
        else:
            assert np.ma.getdata(ours).tobytes() == np.ma.getdata(theirs).tobytes(), name
        assert one.units == other.units


@pytest.mark.parametrize("kind", ["netcdf", "hdf5"])
def test_a_folder_of_hierarchies_has_what_a_folder_of_files_has(step, tmp_path, kind):
    group = sieva.share.create(tmp_path / "group", step.parent, producer="model")
    for user in ("ada", "bob"):
        group.ask("all", SQL, format=kind, user=user)
        group.ask("none", "SELECT T, S WHERE N > 100", format=kind, user=user)
    for first in (1.0, 2.5):
        # The second time the file has changed: its hierarchy takes the place of the one before.
        write(step, first)
        group.produce(settle=0)
        for name in ("all", "none"):
            plain = group.follow(name, tmp_path / "files" / name, user="bob")
            done = group.follow(name, tmp_path / "zarrs" / name, format="zarr", user="ada")
            # No rows are the same no rows of the changed file: they are not fetched again.
            assert len(done.files) == len(plain.files) == (0 if (first, name) == (2.5, "none") else 1)
            assert (done.failures, done.troubles) == ([], [])
            (file,) = (path for path in (tmp_path / "files" / name).iterdir() if path.name[0] != ".")
            same(sieva.open(tmp_path / "zarrs" / name / "run.zarr"), sieva.open(file))
            left = {path.name for path in (tmp_path / "zarrs" / name).iterdir()}
            assert {name for name in left if not name.startswith(".sieva-follow")} == {"run.zarr"}
    opened = zarr.open_group(tmp_path / "zarrs" / "all" / "run.zarr", mode="r")
    with h5py.File(step) as file:
        assert np.array_equal(opened["T"][:], file["T"][:], equal_nan=True)
        assert np.array_equal(opened["U"][:], file["U"][:])
    assert list(opened["S"][:]) == ["a", "", "dé", "\u2028", "x" * 300, "end"]
    # Taken, as files are: nothing is kept for anybody.
    group.produce(settle=0)
    assert not (tmp_path / "group" / "data").exists()


def test_large_arrays_are_made_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(copied, "_PIECE", 1000)
    values = np.random.default_rng(3).normal(size=(2357, 3)).astype("f8")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"], file["one"] = values, np.float32(7)
    copied.copier("zarr")(tmp_path / "a.h5", tmp_path / "a.zarr")
    opened = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert np.array_equal(opened["v"][...], values)
    assert opened["one"][...] == np.float32(7)


def test_what_cannot_be_made_is_told_and_nothing_half_is_there(step, tmp_path, monkeypatch):
    group = sieva.share.create(tmp_path / "group", step.parent, producer="model")
    group.ask("table", "SELECT T", format="csv", user="ada")
    group.ask("all", SQL, user="ada")
    group.produce(settle=0)
    folder = tmp_path / "folder"
    with pytest.raises(errors.InvalidValue, match="no zarr is made of csv, as 'table' is asked for"):
        group.follow("table", folder, format="zarr", user="ada")
    with pytest.raises(errors.InvalidValue, match="expected 'zarr' or 'bp'"):
        group.follow("all", folder, format="xls", user="ada")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(zarr_output.ZarrContainer, "write", full)
        done = group.follow("all", folder, format="zarr", user="ada")
    assert done.files == []
    assert ["No space left on device" in str(e) for e in done.troubles] == [True]
    assert not [path for path in folder.iterdir() if not path.name.startswith(".sieva-follow")]
    # It was not told as taken, and comes with the next pass.
    assert group.produce(settle=0).deleted == 0
    assert len(group.follow("all", folder, format="zarr", user="ada").files) == 1
    with pytest.raises(errors.InvalidValue, match=r"are kept as '.zarr', not as they come"):
        group.follow("all", folder, user="ada")


def test_the_command_makes_hierarchies(step, tmp_path):
    group = sieva.share.create(tmp_path / "group", step.parent, producer="model")
    group.ask("all", SQL, user="ada")
    group.produce(settle=0)
    command = [sys.executable, "-m", "sieva", "share", "follow", tmp_path / "group", "all", "--as", "ada"]
    command += ["-o", tmp_path / "folder", "--once", "--format", "zarr"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert zarr.open_group(tmp_path / "folder" / "run.zarr", mode="r")["T"].shape == (6,)
