"""Files that are replaced while they are open: nothing that was understood of one is said of the next."""

import os
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
import zarr
from sieva import errors

FIRST = np.arange(1000, dtype="f4")
"""Half of these is above 499.5, and all of what takes their place."""


def _hdf5(path, values):
    with h5py.File(path, "w") as file:
        file["a"] = values


def _netcdf3(path, values):
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", len(values))
        file.createVariable("a", "f4", ("x",))[:] = values


def _fits(path, values):
    cards = [
        "SIMPLE  =                    T",
        "BITPIX  =                  -32",
        "NAXIS   =                    1",
    ]
    cards += [f"NAXIS1  = {len(values):20}", "END"]
    head = "".join(card.ljust(80) for card in cards).ljust(2880).encode()
    data = values.astype(">f4").tobytes()
    path.write_bytes(head + data + bytes(-len(data) % 2880))


WRITERS = {"a.h5": _hdf5, "a.nc": _netcdf3, "a.fits": _fits}


def _array(source):
    return next(iter(source.arrays))


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_takes_the_place_of_an_open_one_is_noticed(tmp_path, name):
    path, other = tmp_path / name, tmp_path / f"other-{name}"
    WRITERS[name](path, FIRST)
    WRITERS[name](other, FIRST + 1000)
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    source = sieva.open(path)
    array = _array(source)
    assert source.query(f"{array} > 499.5").count() == 500
    assert source[array][:3].tolist() == FIRST[:3].tolist()
    other.replace(path)
    with pytest.raises(errors.StaleSource, match="was changed since it was opened"):
        source.query(f"{array} > 499.5").count()
    for read in (lambda: source[array][:3], lambda: source.read_many([(array, slice(3))])):
        with pytest.raises(errors.StaleSource, match="was changed since it was opened"):
            read()
    assert sieva.open(path).query(f"{array} > 499.5").count() == 1000


@pytest.mark.parametrize(("version", "shards"), [(2, None), (3, None), (3, (500,))])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_chunk_that_takes_the_place_of_one_is_noticed(tmp_path, version, shards, indexed):
    paths = [tmp_path / name for name in ("a.zarr", "b.zarr")]
    for path, values in zip(paths, (FIRST, FIRST + 1000), strict=True):
        group = zarr.open_group(path, mode="w", zarr_format=version)
        group.create_array("a", shape=(1000,), chunks=(100,), shards=shards, dtype="f4", compressors=None)[
            :
        ] = values
    source = sieva.open(paths[0])
    if indexed:
        source.build_index()
    assert source.query("a > 499.5").count() == 500
    chunk = "a/0" if version == 2 else "a/c/0"
    (paths[1] / chunk).replace(paths[0] / chunk)
    with pytest.raises(errors.StaleSource, match="were changed, added or removed since it was opened"):
        source.query("a > 499.5").count()
    above = (zarr.open_group(paths[0], mode="r")["a"][:] > 499.5).sum()
    assert sieva.open(paths[0]).query("a > 499.5").count() == above == (1000 if shards else 600)


def test_the_file_behind_a_reference_set_is_looked_at(tmp_path):
    path, other, references = tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "a.json"
    for each, values in ((path, FIRST), (other, FIRST + 1000)):
        _hdf5(each, values)
    command = [sys.executable, "-m", "sieva", "references", str(path), str(references)]
    subprocess.run(command, check=True, capture_output=True)
    source = sieva.open(references)
    source.build_index()
    assert source.query("a > 499.5").count() == 500
    unread = sieva.open(references)
    other.replace(path)
    for each in (source, unread):
        with pytest.raises(errors.StaleSource):
            each.query("a > 499.5", access="scan").count()
    again = sieva.open(references)
    assert again.index_status().stale
    assert again.query("a > 499.5").count() == 1000


def test_links_of_a_hierarchy_stay_in_it(tmp_path):
    """Who makes the directory could have a private file of others copied into an index that they can read."""
    path, private = tmp_path / "a.zarr", tmp_path / "private"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("a", shape=(1000,), chunks=(1000,), dtype="f4", compressors=None)[:] = FIRST
    private.write_bytes((FIRST + 1000).tobytes())
    (path / "a/0").unlink()
    (path / "a/0").symlink_to(private)
    source = sieva.open(path)
    for action in (lambda: source.query("a > 499.5").count(), lambda: source.build_index("a")):
        with pytest.raises(errors.LinkRefused, match="outside of what may be opened"):
            action()
    assert sieva.open(path, external=[tmp_path]).query("a > 499.5").count() == 1000
