"""Names of files that the system does not even look up."""

import h5py
import pytest
import sieva
from sieva import errors

# No file system has names of more than 255 bytes.
TOO_LONG = "a" * 300


@pytest.mark.parametrize("name", [TOO_LONG, f"{TOO_LONG}.nc", f"{TOO_LONG}.bp", f"{TOO_LONG}/x.h5"])
def test_a_file_that_cannot_be_looked_up_is_an_error_that_names_it(tmp_path, name):
    with pytest.raises(errors.IoError, match=TOO_LONG):
        sieva.open(tmp_path / name)


@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "zarr", "parquet", "csv"])
def test_so_is_a_result(tmp_path, kind):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = [1, 2, 3]
    query = sieva.open(tmp_path / "in.h5").sql("SELECT x")
    with pytest.raises(errors.IoError, match=f"cannot write '.*{TOO_LONG}'"):
        getattr(query, f"to_{kind}")(tmp_path / TOO_LONG)
    assert [file.name for file in tmp_path.iterdir()] == ["in.h5"]


def test_a_catalog_knows_nothing_of_it(tmp_path):
    catalog = sieva.Catalog(tmp_path / "catalog.sqlite")
    assert catalog.augmentations(tmp_path / TOO_LONG) == []
