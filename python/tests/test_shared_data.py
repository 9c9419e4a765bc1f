"""Real and odd files: every one opens or says why not, and no value differs from what the reference read.

The files are not part of the repository: ``../shared/data`` beside the checkout, or ``SIEVA_SHARED_DATA``.
"""

import hashlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(os.environ.get("SIEVA_SHARED_DATA") or ROOT.parent / "shared" / "data")
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data at {DATA}")

SECONDS = 20
READABLE = {"netcdf3", "netcdf4", "hdf5", "zarr", "fits"}
CANNOT = {
    "unknown-format",
    "corrupt-file",
    "unsupported",
    "filter-unavailable",
    "link-refused",
    "io-error",
    "invalid-value",
}


def load(name):
    path = DATA / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


DEV = load("dev/oracle.json")
ODD = load("odd/oracle.json")
QUERIES = load("dev/queries.json") or []


def is_readable(name):
    return name.split("/", 1)[0] in READABLE


def digest(values, kind):
    stored = np.ascontiguousarray(values.astype(np.dtype(kind).newbyteorder("<")))
    return hashlib.sha1(stored.tobytes(), usedforsecurity=False).hexdigest()


def unique(dims):
    """Return names as sieva tells apart the axes of an array that has a dimension twice: D1, D1_1."""
    return [name if name not in dims[:k] else f"{name}_{dims[:k].count(name)}" for k, name in enumerate(dims)]


@pytest.mark.parametrize("name", [name for name in DEV if is_readable(name)])
def test_values_of_real_files(name):
    source = sieva.open(DATA / "dev" / name)
    for path, expected in DEV[name].items():
        if "sha1_le" not in expected:
            continue
        array = array_of(path, name)
        info = source._native.info(array)
        assert list(info["shape"]) == expected["shape"], array
        if ".fits" in name and not is_stored(source[array], info, expected):
            continue
        assert info["dtype"] == np.dtype(expected["dtype"]).newbyteorder("=").name, array
        if "dims" in expected:
            assert list(info["dims"]) == unique(expected["dims"]), array
        values = source._native.read(array, [0] * len(info["shape"]), list(info["shape"]), raw=True)
        assert digest(values, expected["dtype"]) == expected["sha1_le"], array


def array_of(name, file):
    """Return our name of an array: the reference numbers HDUs, and writes columns as ``1:COL``.

    An array that is the root of a Zarr store has no name there.
    """
    if ".fits" not in file:
        return name.lstrip("/") or "data"
    number, _, column = name.partition(":")
    return f"hdu{number}/{column}" if column else f"hdu{number}"


def is_stored(array, info, expected):
    """Tell whether the reference has values as they are stored; else compare what it has with ours.

    Of scaled images it has them scaled in float32, where ours are float64; texts come with their blanks.
    """
    if info["dtype"] == "str":
        texts = np.char.rstrip(np.asarray(array[...]).astype(str))
        assert np.dtype(expected["dtype"]).kind in "SU"
        assert max(map(len, texts.ravel())) <= np.dtype(expected["dtype"]).itemsize
        return False
    if info["decoded_dtype"] == info["dtype"]:
        return True
    # Of scaled images the reference has float32, ours are float64.
    values = array[...]
    np.testing.assert_allclose(
        [np.nanmin(values), np.nanmax(values)], [float(expected["min"]), float(expected["max"])], rtol=1e-6
    )
    return False


def quoted(name, file):
    """Return a name of the manifest as query text: ``raw:x``, ``path::member``, ``path@k``."""
    stored, _, path = name.rpartition("raw:")
    text = '"' + array_of(path.split("@", 1)[0], file) + '"'
    return f"raw({text})" if stored or name.startswith("raw:") else text


def condition_text(query):
    parts = []
    for name, operator, *literals in query["conditions"]:
        array = quoted(name, query["file"])
        if operator == "between":
            parts.append(f"{array} BETWEEN {literals[0]!r} AND {literals[1]!r}")
        else:
            parts.append(f"{array} {operator} {literals[0]!r}")
    return " AND ".join(parts)


def lined_up(query):
    """Return names for the dimensions of an HDF5 file, where arrays of different groups meet."""
    if not query["file"].startswith("hdf5/"):
        return None
    axes = [f"axis{k}" for k in range(len(query["shape"]))]
    names = {}
    for name in (query["target"], *(condition[0] for condition in query["conditions"])):
        path, _, axis = name.removeprefix("raw:").partition("@")
        names[path.replace("::", ".")] = [axes[int(axis)]] if axis else axes
    return names


# What a file says of no array: which of two dimensions of one length it runs along.
AMBIGUOUS = {'raw("dsp_band_1") > 200 AND "HDF4_DIMGROUP/lat" > 38'}


@pytest.mark.parametrize("are_named", [True, False], ids=["dims", "as they are"])
@pytest.mark.parametrize(
    "query",
    [q for q in QUERIES if is_readable(q["file"])],
    ids=lambda q: f"{q['file']}: {condition_text(q)}",
)
def test_queries_on_real_files(query, are_named):
    condition = condition_text(query)
    source = sieva.open(DATA / "dev" / query["file"], dims=lined_up(query) if are_named else None)
    if condition in AMBIGUOUS and not are_named:
        with pytest.raises(sieva.errors.UnalignedDimensions, match="more than one way"):
            source.query(condition)
        return
    asked = source.query(condition, select=[quoted(query["target"], query["file"])])
    selection = asked.selection()
    assert list(selection.shape) == query["shape"]
    assert (asked.count(), len(selection)) == (query["hits"], query["hits"])
    coordinates = selection.coords()
    linear = (
        np.ravel_multi_index(tuple(coordinates.T), query["shape"])
        if query["shape"]
        else np.zeros(len(selection), int)
    )
    assert linear[0] == query["first"]
    assert linear[-1] == query["last"]
    assert linear.sum() == query["idxsum"]


class Worker:
    """A process that reads files; a new one takes over when it dies or takes too long."""

    def __init__(self):
        self.process = None

    def read(self, path, dtypes):
        """Return what the worker says of a file, or fail the test if it died or hung."""
        if self.process is None:
            script = Path(__file__).with_name("read_everything.py")
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                [sys.executable, script], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            self._ask(path.with_name("absent"), {}, seconds=60)  # imports are not part of any file's time
        return self._ask(path, dtypes, SECONDS)

    def _ask(self, path, dtypes, seconds):
        self.process.stdin.write(json.dumps({"path": str(path), "dtypes": dtypes}) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.process.kill()
        code = self._end()
        pytest.fail(f"the process died with code {code}" if ready else f"no answer in {seconds} s")

    def _end(self):
        process, self.process = self.process, None
        process.stdin.close()
        code = process.wait()
        process.stdout.close()
        return code

    def close(self):
        """End the process."""
        if self.process is not None:
            self._end()


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.close()


def test_odd_files_are_many():
    assert len(ODD) > 500


@pytest.mark.parametrize("name", list(ODD))
def test_odd_files(name, worker):
    path = DATA / "odd" / name
    arrays = ODD[name] if isinstance(ODD[name], dict) else {}
    asked = {array_of(p, name): a for p, a in arrays.items() if isinstance(a, dict) and "sha1_le" in a}
    found = worker.read(path, {p: a["dtype"] for p, a in asked.items()})
    if "error" in found:
        assert found["error"] in CANNOT, found
        assert path.name in found["message"], found
        assert name in UNREADABLE or not asked or found["error"] == "unknown-format", found
        return
    faults = [
        f"{array}: {found['arrays'][array]}, the reference has {expected}"
        for array, expected in asked.items()
        if array not in EXCEPTIONS.get(name, ())
        and not is_same(found["arrays"][array], expected)
        and not (".fits" in name and found["arrays"][array].get("packed"))
        and not (path.is_file() and h5py.is_hdf5(path) and is_dimension_only(path, array))
    ]
    assert not faults, "\n".join(faults)


def is_same(found, expected):
    if "error" in found:
        return found["error"] == "link-refused"  # virtual data sets of other files
    return "skipped" in found or (found["shape"], found["sha1_le"]) == (
        expected["shape"],
        expected["sha1_le"],
    )


def is_dimension_only(path, array):
    """Tell whether a data set is a dimension of netCDF-4, or not what that shows by its name."""
    with h5py.File(path) as f:
        name = bytes(f[array].attrs.get("NAME", b""))
        parent, leaf = f[array].parent, array.rsplit("/", 1)[-1]
        return name.startswith(b"This is a netCDF dimension but not") or f"_nc4_non_coord_{leaf}" in parent


# Where our answer differs from the reference's for a reason.
UNREADABLE: set[str] = {
    # Compressed as a whole, so that nothing in it can be read in place.
    "astropy/dist_lookup.fits.gz",
}
EXCEPTIONS = {
    # Random groups are left out, with the reason.
    "astropy/random_groups.fits": {
        "hdu0/UU",
        "hdu0/VV",
        "hdu0/WW",
        "hdu0/BASELINE",
        "hdu0/DATE",
        "hdu0/DATA",
    },
    # The unlimited dimension's length is 3, as the netCDF library says. h5py gives what is written of it.
    "compliance-checker/bad_missing_data.nc": {"time", "temp"},
    # Damaged chunks from which the reference reads what happens to be in its memory.
    "hdf5-cve/cve-2025-2308.h5": {"Scale_offset_long_long_data_le"},
    # Damaged attributes: the arrays are left out with a warning.
    "hdf5-cve/cve-2024-32608.h5": {"group_main/dset_main"},
    "hdf5-cve/cve-2020-18232.h5": {"dset1"},
    # Cut off within the data, which the reference takes for zeros.
    "pnetcdf/bad_padding_name_var.nc2": {"fix_var"},
    "pnetcdf/bad_padding_name_vattr.nc2": {"temp"},
    "pnetcdf/bad_xtype.nc2": {"var"},
    # The variable is another data set, by the name _nc4_non_coord_mismatched_dim.
    "pyfive/h5netcdf_test.hdf5": {"_nc4_non_coord_mismatched_dim"},
}
