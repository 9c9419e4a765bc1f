"""Results in deflated chunks: many of them, of one row more or less, that do not become smaller."""

import h5netcdf
import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from click.testing import CliRunner
from sieva import _native, errors
from sieva.cli import cli

# Values of a chunk: 1 MiB.
CHUNK = {"noise": 1 << 17, "same": 1 << 18, "byte": 1 << 20}
N = 2 * CHUNK["byte"] + 3


@pytest.fixture(scope="module")
def stored():
    """Return values that do not become smaller, that become nothing, and bytes."""
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 1 << 64, N, dtype="u8").view("f8")
    return {
        "row": np.arange(N, dtype="i4"),
        "noise": np.where(np.isnan(noise), 1.0, noise),
        "same": np.full(N, 1.5, "f4"),
        "byte": rng.integers(0, 4, N, dtype="u1"),
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory, stored):
    """Return a file of them, in chunks that are no part of those of results."""
    path = tmp_path_factory.mktemp("source") / "source.h5"
    with h5py.File(path, "w") as file:
        for name, values in stored.items():
            file.create_dataset(name, data=values, chunks=(10_007,), compression="gzip", compression_opts=1)
    return sieva.open(path)


def readers(path, kind):
    """Yield the columns of a file as each library that knows the format reads them."""
    with h5py.File(path) as file:
        yield {name: file[name][:] for name in file if name != "obs"}
    if kind == "netcdf":
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            yield {name: variable[:] for name, variable in file.variables.items()}
        with h5netcdf.File(path) as file:
            yield {name: variable[:] for name, variable in file.variables.items()}
    own = sieva.open(path)
    names = [name for name in own.arrays if name != "obs"]
    yield {name: own.sql(f'SELECT "{name}"').read(name) for name in names}


@pytest.mark.parametrize("form", [(kind, name) for kind in ("netcdf", "hdf5") for name in CHUNK])
@pytest.mark.parametrize("case", [(1, -1), (1, 0), (1, 1), (2, -1), (2, 0), (2, 1)])
def test_chunks_of_one_row_more_or_less(source, stored, tmp_path, form, case):
    (kind, name), (chunks, more) = form, case
    rows = chunks * CHUNK[name] + more
    query = source.sql(f"SELECT {name}, same AS other WHERE row < {rows}")
    path = tmp_path / "out.nc"
    query._write(path, kind, "columns", 1)
    for found in readers(path, kind):
        assert list(found) == [name, "other"]
        assert found[name].tobytes() == stored[name][:rows].tobytes()
        np.testing.assert_array_equal(found["other"], stored["same"][:rows])


@pytest.mark.parametrize("kind", ["netcdf", "hdf5"])
def test_what_does_not_become_smaller_is_stored_as_it_is(source, tmp_path, kind):
    path = tmp_path / "out"
    source.sql("SELECT noise, same")._write(path, kind, "columns", 9)
    with h5py.File(path) as file:
        for name, is_plain in (("noise", True), ("same", False)):
            ids = [file[name].id.get_chunk_info(i) for i in range(file[name].id.get_num_chunks())]
            assert len(ids) == -(-N // CHUNK[name])
            # Behind the values of the last one are zeros.
            assert {info.filter_mask != 0 for info in ids[:-1]} == {is_plain}
            assert {info.size == 1 << 20 for info in ids[:-1]} == {is_plain}
    # Of a chunk nothing but its head is added.
    assert path.stat().st_size < 8 * 17 * CHUNK["noise"] + (1 << 16)


@pytest.mark.parametrize("kind", ["netcdf", "hdf5"])
def test_more_chunks_than_a_node_has(tmp_path, kind):
    n = 3200
    with h5py.File(tmp_path / "ab.h5", "w") as file:
        file["a"], file["b"] = np.arange(n) * 1e4, np.arange(n) * 1.0
        for name in "ab":
            file[name].make_scale(name)
    query = sieva.open(tmp_path / "ab.h5").sql("SELECT a + b AS ab, a CROSS WHERE a >= 0 AND b >= 0")
    path = tmp_path / "out.nc"
    query._write(path, kind, "columns", 1)
    assert query.count() == n * n > 64 * CHUNK["noise"]
    expected = (np.arange(n)[:, None] * 1e4 + np.arange(n)).ravel()
    for found in readers(path, kind):
        np.testing.assert_array_equal(found["ab"], expected)


@pytest.mark.parametrize("options", [{"memory": "4MiB"}, {"threads": 1}, {"memory": "64MiB", "threads": 7}])
@pytest.mark.parametrize("block", [0, 1000, 3 << 20])
def test_the_bytes_are_the_same_however_they_are_made(source, options, block):
    sql = "SELECT byte, same, row WHERE row % 3 = 1 OR row < 1000000"
    whole = _native.Encoded(source.sql(sql)._native, "netcdf", deflate=1)
    expected = whole.read(0, whole.nbytes)
    file = _native.Encoded(source.sql(sql, **options)._native, "netcdf", deflate=1)
    got, seen = bytearray(len(expected)), []
    for offset, part in file.blocks_any_order(block):
        got[offset : offset + len(part)] = part
        seen.append((offset, len(part)))
    assert bytes(got) == expected
    # The head comes last, and nothing twice.
    head = seen.index(next(one for one in seen if one[0] == 0))
    assert head > 0
    assert [offset for offset, _ in seen[:head]] == sorted(offset for offset, _ in seen[:head])
    assert sum(n for _, n in seen) == len(expected)
    assert file.id == whole.id
    assert b"".join(part for _, part in file.blocks(5, len(expected) - 5, block)) == expected[5:-5]


def test_what_is_asked_wrongly(source, tmp_path):
    query = source.sql("SELECT row")
    for level in (-1, 10):
        with pytest.raises(errors.InvalidValue, match=f"deflate={level}: levels are 0"):
            query.to_netcdf(tmp_path / "out.nc", deflate=level)
    with pytest.raises(errors.InvalidValue, match="deflate=1: results as csv have no deflate"):
        _native.Encoded(query._native, "csv", deflate=1)
    with pytest.raises(errors.InvalidValue, match="levels are 0"):
        _native.Encoded(query._native, "hdf5", deflate=10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", [None, "points", "grid", "columns"])
@pytest.mark.parametrize("suffix", ["nc", "h5"])
@pytest.mark.parametrize("deflate", [None, 0, 1, 6])
def test_the_command_line(ocean, tmp_path, layout, suffix, deflate):
    path = tmp_path / f"out.{suffix}"
    words = ["query", f"SELECT TEMP FROM '{ocean.path}' WHERE TEMP > 10", "-o", str(path)]
    words += [] if layout is None else ["--layout", layout]
    words += [] if deflate is None else ["--deflate", str(deflate)]
    ran = CliRunner().invoke(cli, words)
    assert ran.exit_code == 0, ran.output
    # By default what is small, as this grid is, stays as it is; lists are of no length that is known.
    used = int(layout == "points") if deflate is None else deflate
    expected = ocean.sql("SELECT TEMP WHERE TEMP > 10").read("TEMP")
    if suffix == "nc" and layout == "columns" and not used:
        with netCDF4.Dataset(path) as file:
            assert file.data_model == "NETCDF3_64BIT_OFFSET"
            np.testing.assert_array_equal(file["TEMP"][:], expected)
        return
    with h5py.File(path) as file:
        assert (file["TEMP"].compression_opts or 0) == used
        values = file["TEMP"][:].ravel()
        np.testing.assert_array_equal(values[~np.isnan(values) & (values < 1e30)], expected)


def test_the_command_line_says_what_has_no_deflate(ocean, tmp_path):
    sql = f"SELECT TEMP FROM '{ocean.path}'"
    for arguments, words in (
        (["-o", str(tmp_path / "x.csv"), "--deflate", "1"], "--deflate is for netcdf and hdf5, not for csv"),
        (["-o", str(tmp_path / "x.nc"), "--deflate", "10"], "10 is not in the range 0<=x<=9"),
    ):
        ran = CliRunner().invoke(cli, ["query", sql, *arguments])
        assert ran.exit_code == 2
        assert words in ran.output
