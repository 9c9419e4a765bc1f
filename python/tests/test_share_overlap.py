"""Overlapping ranges of members: kept once, by the stores' own listings, and numpy's values for everybody."""

import itertools

import h5py
import netCDF4
import numpy as np
import pytest
import sieva.share

SHAPE = (40, 60, 200)


@pytest.fixture
def step(tmp_path, monkeypatch):
    """Return the file of a producer with hostile values, and these."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rng = np.random.default_rng(11)
    floats = rng.normal(size=SHAPE).astype(">f4")
    floats.flat[::97] = np.nan
    floats.flat[5:9] = [np.inf, -np.inf, -0.0, 0.0]
    packed = rng.integers(-300, 300, size=SHAPE).astype("i2")
    packed.flat[::31] = -999
    whole = rng.integers(0, 2**64 - 1, size=SHAPE, dtype="u8")
    (tmp_path / "steps").mkdir()
    with h5py.File(tmp_path / "steps" / "run.h5", "w") as file:
        file.create_dataset("T", data=floats, chunks=(7, 11, 200), compression=4)
        file["P"], file["N"] = packed, whole
        file["P"].attrs.update({"_FillValue": np.int16(-999), "scale_factor": 0.25})
    values = np.where(packed == -999, np.nan, packed * 0.25)
    return tmp_path / "steps", {"T": floats, "P": values, "N": whole}


def boxes():
    """Return ranges that overlap: along the first dimension, along another one, of all, and of nothing."""
    return {
        "ada": (slice(0, 25), slice(None), slice(None)),
        "bob": (slice(10, 40), slice(None), slice(None)),
        "cyd": (slice(12, 30), slice(10, 60), slice(None)),
        "dan": (slice(None), slice(None), slice(None)),
        "eve": (slice(5, 6), slice(3, 9), slice(10, 20)),
        "fay": (slice(40, 40), slice(None), slice(None)),
    }


def where(box):
    dims = ("phony_dim_0", "phony_dim_1", "phony_dim_2")
    named = [(d, s.indices(n)) for d, s, n in zip(dims, box, SHAPE, strict=True)]
    return " AND ".join(f"idx({d}) >= {a} AND idx({d}) < {b}" for d, (a, b, _) in named)


def read(path, kind):
    if kind == "hdf5":
        with h5py.File(path) as file:
            return {name: file[name][...] for name in file}
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return {name: file[name][:] for name in file.variables}


@pytest.mark.parametrize("kind", ["netcdf", "hdf5"])
def test_what_overlaps_is_kept_once_and_everybody_has_its_own(place, step, tmp_path, kind):
    folder, values = step
    group = sieva.share.create(place.root, folder, producer="model")
    for user, box in boxes().items():
        group.ask("box", f"SELECT T, N WHERE {where(box)}", format=kind, user=user)
    group.ask("packed", f"SELECT P WHERE {where(boxes()['ada'])}", format=kind, user="ada")
    group.ask("packed", f"SELECT P, T WHERE {where(boxes()['bob'])}", format=kind, user="bob")
    done = group.produce(settle=0, objects="partial")
    assert (done.answers, done.failed) == (8, 0)
    held, unfinished = place.held()
    data = sum(size for key, (size, _) in held.items() if key.startswith("data/"))
    assert (data, unfinished) == (done.bytes, 0)
    # All of T, N and P once; again what cyd has of T and N, in runs that are not worth a range each.
    least = int(np.prod(SHAPE)) * 20 + 18 * 50 * 200 * 12
    assert least <= data < least + 64_000
    for user, box in boxes().items():
        followed = group.follow("box", tmp_path / user, user=user)
        assert (followed.troubles, followed.failures) == ([], [])
        found = read(followed.files[0], kind)
        for name in ("T", "N"):
            expected = values[name][box].ravel()
            assert found[name].astype(expected.dtype).tobytes() == expected.tobytes(), (user, name)
    for user, name in itertools.product(("ada", "bob"), ("packed",)):
        followed = group.follow(name, tmp_path / f"{user}-packed", user=user)
        found = read(followed.files[0], kind)["P"]
        assert np.array_equal(found, values["P"][boxes()[user]].ravel(), equal_nan=True)
    group.produce(settle=0, objects="partial")
    assert [key for key in place.held()[0] if key.startswith("data/")] == []


def test_who_leaves_takes_nothing_from_the_others(place, step, tmp_path):
    folder, values = step
    group = sieva.share.create(place.root, folder, producer="model")
    for user in ("ada", "bob"):
        group.ask("box", f"SELECT T WHERE {where(boxes()[user])}", user=user)
    group.produce(settle=0, objects="partial")
    group.leave("ada")
    group.produce(settle=0, objects="partial")
    followed = group.follow("box", tmp_path / "bob", user="bob")
    found = read(followed.files[0], "netcdf")["T"]
    assert found.astype(">f4").tobytes() == values["T"][boxes()["bob"]].tobytes()
    assert group.produce(settle=0, objects="partial").deleted == 1
    assert [key for key in place.held()[0] if key.startswith("data/")] == []
