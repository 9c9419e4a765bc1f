"""Results as files whose layout is known beforehand, read by each format's own library, against numpy."""

import csv

import h5py
import netCDF4
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sieva
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sieva import _native, errors
from sieva._output.columns import write as write_columns
from sieva._output.rows import write as write_rows
from sieva.cli import cli

FORMATS = [row["name"] for row in _native.formats()]
N = 700
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.7, 1e-30, -999.0])
# Stored types, and one that nothing is missing of.
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def _stored():
    """Return arrays of all types, `N` values each, by name."""
    rng = np.random.default_rng(7)
    made = {"row": np.arange(N, dtype="i4"), "wide": np.resize(ODD, N)}
    made |= {"f2": np.resize(ODD, N).astype("f2"), "f4": np.resize(ODD, N).astype("f4")}
    made["swapped"] = rng.normal(size=N).astype(">f4")
    for kind in INTEGERS:
        info = np.iinfo(kind)
        made[kind] = rng.integers(info.min, info.max, N, dtype=kind, endpoint=True)
        made[kind][:2] = info.min, info.max
    made["gaps"] = np.where(rng.random(N) < 0.3, -5, rng.integers(-9, 9, N)).astype("i2")
    made["packed"] = rng.integers(-100, 100, N).astype("i2")
    made["flag"] = rng.random(N) < 0.5
    made["time"] = np.arange(N) * 0.25
    made["text"] = np.array([("naïve " * (i % 5) + '"q",')[: i % 23] for i in range(N)], dtype=object)
    return made


@pytest.fixture(scope="module")
def stored():
    """Return what is in the file."""
    return _stored()


@pytest.fixture(scope="module")
def odd_path(tmp_path_factory, stored):
    """Return an HDF5 file of all types."""
    path = tmp_path_factory.mktemp("odd") / "odd.h5"
    with h5py.File(path, "w") as file:
        for name, values in stored.items():
            dtype = h5py.string_dtype() if values.dtype == object else values.dtype
            file.create_dataset(name, data=values, dtype=dtype, chunks=(96,), compression="gzip")
        file["plain"] = stored["swapped"].astype("f8")
        file["scalar"] = 2.5
        for name in ("f4", "wide"):
            file[name].attrs["_FillValue"] = file[name].dtype.type(-999)
        file["gaps"].attrs["_FillValue"] = np.int16(-5)
        file["gaps"].attrs["valid_min"] = np.int16(-8)
        file["packed"].attrs.update(scale_factor=0.5, add_offset=np.float32(10), _FillValue=np.int16(7))
        file["packed"].attrs.update(units="m", long_name="höhe")
        file["time"].attrs.update(units="days since 2001-01-01", calendar="standard")
    return path


@pytest.fixture(scope="module")
def odd(odd_path):
    """Return the open file."""
    return sieva.open(odd_path)


@pytest.fixture(scope="module")
def decoded(stored):
    """Return masked arrays of the values as they should come back."""
    made = {name: np.ma.array(values, mask=np.zeros(N, bool)) for name, values in stored.items()}
    made["swapped"] = np.ma.array(stored["swapped"].astype("f4"), mask=np.zeros(N, bool))
    made["plain"] = np.ma.array(stored["swapped"].astype("f8"), mask=np.zeros(N, bool))
    made["f2"] = np.ma.array(stored["f2"].astype("f4"), mask=np.zeros(N, bool))
    for name in ("f4", "wide"):
        made[name] = np.ma.array(stored[name], mask=stored[name] == -999)
    made["gaps"] = np.ma.array(stored["gaps"], mask=stored["gaps"] == -5)
    made["packed"] = np.ma.array(stored["packed"] * 0.5 + 10, mask=stored["packed"] == 7)
    return made


def encoded(query, kind, **options):
    return _native.Encoded(query._native, kind, **options)


def read_back(path, kind):
    """Return the columns of a file as masked arrays by name, read by the format's own library."""
    if kind == "netcdf":
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return {n: _masked(v[:], getattr(v, "_FillValue", None)) for n, v in file.variables.items()}
    if kind == "hdf5":
        with h5py.File(path) as file:
            read = {n: (d[:], d.attrs.get("_FillValue")) for n, d in file.items()}
        text = {
            n: np.char.decode(v, "utf-8").astype(object) for n, (v, _) in read.items() if v.dtype.kind == "S"
        }
        return {
            n: _masked(text.get(n, v), None if fill is None else fill[0]) for n, (v, fill) in read.items()
        }
    table = pq.read_table(path) if kind == "parquet" else pa.ipc.open_file(path).read_all()
    return {n: _of_arrow(table.column(n).combine_chunks()) for n in table.column_names}


def _masked(values, fill):
    gone = np.zeros(len(values), bool)
    if fill is not None:
        gone = np.isnan(values) if values.dtype.kind == "f" else values == fill
    return np.ma.array(values, mask=gone)


def _of_arrow(column):
    gone = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    zero = {"string": "", "bool": False}.get(str(column.type), 0)
    return np.ma.array(column.fill_null(zero).to_numpy(zero_copy_only=False), mask=gone)


def assert_same(got, want):
    """Compare values bit by bit where there are any; NaN is none."""
    gone = np.ma.getmaskarray(want)
    if want.dtype.kind == "f":
        gone = gone | np.isnan(want.data)
    np.testing.assert_array_equal(np.ma.getmaskarray(got), gone)
    a, b = got.data[~gone], want.data[~gone]
    if want.dtype == object:
        assert a.tolist() == b.tolist()
    elif want.dtype.kind == "f":
        assert a.dtype == b.dtype.newbyteorder("=") or a.dtype.itemsize == b.dtype.itemsize
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_array_equal(a.astype(b.dtype), b)


ALL = [
    *("row", "wide", "f2", "f4", "swapped", "plain", *INTEGERS),
    *("gaps", "packed", "flag", "text", "time"),
]


@pytest.mark.parametrize(
    "form",
    [("netcdf", 0), ("hdf5", 0), ("arrow", 0), ("parquet", 0), ("netcdf", 1), ("hdf5", 1), ("hdf5", 9)],
)
@pytest.mark.parametrize(
    "case",
    [
        ("", np.arange(N)),
        ("WHERE row >= 0", np.arange(N)),
        ("WHERE row % 7 = 3", np.arange(3, N, 7)),
        ("WHERE row % 7 = 3 LIMIT 20 OFFSET 5", np.arange(3, N, 7)[5:25]),
        ("WHERE row < 90 ORDER BY row DESC", np.arange(90)[::-1]),
        ("WHERE row < 90 ORDER BY row DESC LIMIT 4 OFFSET 3", np.arange(90)[::-1][3:7]),
        ("WHERE row > 5000", np.arange(0)),
    ],
)
def test_all_types_read_back(odd, decoded, tmp_path, form, case):
    (kind, deflate), (rest, rows) = form, case
    query = odd.sql(f"SELECT {', '.join(ALL)} {rest}")
    path = tmp_path / "out"
    write_columns(query, path, kind, deflate)
    got = read_back(path, kind)
    assert list(got) == ALL if kind != "hdf5" else sorted(got) == sorted(ALL)
    for name in ALL:
        want = decoded[name][rows]
        if name == "time" and kind in ("arrow", "parquet"):
            want = np.ma.array((want * 86_400e6).astype("i8") + 978_307_200_000_000)
        if name == "flag" and kind in ("netcdf", "hdf5"):
            want = want.astype("i1")
        assert_same(got[name], want)
    file = encoded(query, kind, deflate=deflate)
    assert file.rows == len(rows)
    assert file.read(0, file.nbytes) == path.read_bytes()


@pytest.mark.parametrize(
    "rest", ["", "WHERE row % 7 = 3", "WHERE row < 30 ORDER BY row DESC", "WHERE row > 9000"]
)
def test_csv_is_that_of_the_command_line(odd, tmp_path, rest):
    query = odd.sql(f"SELECT {', '.join(ALL)}, wide * 1e9, -wide / 3 {rest}")
    write_columns(query, tmp_path / "out.csv", "csv")
    with (tmp_path / "want.csv").open("wb") as out:
        write_rows(query, "csv", out)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "want.csv").read_bytes()


def test_csv_of_groups_and_histograms(odd, tmp_path):
    query = odd.sql("SELECT gaps, count(*), avg(plain), max(time), histogram(plain, 3) GROUP BY gaps")
    write_columns(query, tmp_path / "out.csv", "csv")
    with (tmp_path / "want.csv").open("wb") as out:
        write_rows(query, "csv", out)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "want.csv").read_bytes()
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == query.count() + 1


@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "arrow", "parquet"])
def test_groups_read_back(odd, decoded, tmp_path, kind):
    query = odd.sql("SELECT gaps, count(*) AS n, max(time) AS t, sum(i4) AS s GROUP BY gaps ORDER BY gaps")
    write_columns(query, tmp_path / "out", kind)
    got = read_back(tmp_path / "out", kind)
    keys = decoded["gaps"]
    present = sorted(set(keys.compressed().tolist()))
    at = [int(np.flatnonzero(got["gaps"].data == k)[0]) for k in present]
    for key, i in zip(present, at, strict=True):
        chosen = (keys == key).filled(False)
        assert got["n"][i] == chosen.sum()
        assert got["s"][i] == decoded["i4"][chosen].astype("i8").sum()
        if kind in ("netcdf", "hdf5"):
            assert got["t"][i] == decoded["time"][chosen].max()
    assert len(got["n"]) == query.count() == len(present) + 1
    assert np.ma.getmaskarray(got["gaps"]).sum() == 1


@pytest.mark.parametrize("kind", ["netcdf", "hdf5"])
def test_distinct_rows_read_back(odd, decoded, tmp_path, kind):
    query = odd.sql("SELECT DISTINCT gaps, flag WHERE gaps > 0 ORDER BY gaps, flag LIMIT 9 OFFSET 2")
    write_columns(query, tmp_path / "out", kind)
    got = read_back(tmp_path / "out", kind)
    here = (decoded["gaps"] > 0).filled(False)
    pairs = sorted(set(zip(decoded["gaps"][here].tolist(), decoded["flag"][here].tolist(), strict=True)))
    assert list(zip(got["gaps"].tolist(), got["flag"].astype(bool).tolist(), strict=True)) == pairs[2:11]


def test_netcdf_says_what_the_source_says(odd, tmp_path):
    query = odd.sql("SELECT packed, gaps, time, flag, row, packed * 2 AS twice, text WHERE row < 3")
    write_columns(query, tmp_path / "out.nc", "netcdf")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert file.file_format == "NETCDF3_64BIT_OFFSET"
        assert file.source == "odd.h5"
        assert file.query.startswith(
            'SELECT packed, gaps, time, flag, row, packed * 2 AS "twice", text WHERE row < 3'
        )
        assert file.Conventions == "CF-1.8"
        packed = file["packed"]
        assert (packed.units, packed.long_name, packed.dtype) == ("m", "höhe", np.dtype("f8"))
        assert "scale_factor" not in packed.ncattrs()
        assert file["gaps"]._FillValue == -5
        assert file["gaps"].valid_min == -8
        assert "_FillValue" not in file["row"].ncattrs()
        assert (file["time"].units, file["time"].calendar) == ("days since 2001-01-01", "standard")
        assert file["flag"].flag_meanings == "false true"
        assert file["twice"].ncattrs() == ["_FillValue"]
        assert file.dimensions["obs"].size == 3
        assert file["text"].dimensions[1].startswith("string")
    write_columns(odd.sql("SELECT u4 WHERE row < 3"), tmp_path / "out.nc", "netcdf")
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert file.file_format == "NETCDF3_64BIT_DATA"


def test_grids_with_coordinates(ocean, tmp_path):
    query = ocean.sql("SELECT * WHERE TEMP > 10 AND z_t < 20000")
    for kind in ("netcdf", "hdf5"):
        write_columns(query, tmp_path / kind, kind)
        got = read_back(tmp_path / kind, kind)
        assert set(got) == set(query.columns)
        for name in query.columns:
            np.testing.assert_array_equal(
                np.ma.filled(got[name].astype("f8"), np.nan), query.read(name).astype("f8")
            )


def test_names_that_formats_do_not_allow(odd, tmp_path):
    query = odd.sql('SELECT -row, row AS "a/b", row AS "a_b", row AS obs WHERE row < 2')
    for kind in ("netcdf", "hdf5"):
        write_columns(query, tmp_path / kind, kind)
        assert sorted(read_back(tmp_path / kind, kind)) == ["_-row", "a_b", "a_b_2", "obs_2"]


def test_a_scalar_is_one_row(odd, tmp_path):
    for kind in ("netcdf", "hdf5", "arrow"):
        write_columns(odd.sql("SELECT scalar"), tmp_path / kind, kind)
        assert read_back(tmp_path / kind, kind)["scalar"].tolist() == [2.5]


QUERIES = [
    "SELECT f4",
    "SELECT plain, text, i1 WHERE row % 3 = 1",
    "SELECT text, u8, wide WHERE row < 300 ORDER BY u8",
    "SELECT gaps, count(*), min(text) GROUP BY gaps",
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("sql", QUERIES)
def test_any_part_is_that_part_of_the_whole(odd, kind, sql):
    file = encoded(odd.sql(sql), kind)
    whole = file.read(0, file.nbytes)
    assert len(whole) == file.nbytes == len(whole + file.read(file.nbytes, 10))

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, len(whole) + 5), st.integers(0, 3000), st.integers(1, 2000))
    def check(offset, n, block):
        assert file.read(offset, n) == whole[offset : offset + n]
        at = min(offset, len(whole))
        for start, part in file.blocks(offset, offset + n, block):
            assert start == at
            assert part == whole[start : start + len(part)]
            at += len(part)
        assert at == max(min(offset + n, len(whole)), min(offset, len(whole)))

    check()
    ranges = file.split(3)
    assert [r[0] for r in ranges[1:]] == [r[1] for r in ranges[:-1]]
    assert (ranges[0][0], ranges[-1][1]) == (0, len(whole))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_streams_of_large_results_are_ascending_and_complete(tmp_path, threads):
    values = np.random.default_rng(1).normal(size=(40, 300, 301)).astype("f4")
    with h5py.File(tmp_path / "large.h5", "w") as file:
        file["plain"] = values
        file.create_dataset(
            "chunked", data=values, chunks=(7, 50, 60), compression="gzip", compression_opts=1
        )
    source = sieva.open(tmp_path / "large.h5")
    for name in ("plain", "chunked"):
        for rest, want in (("", values.ravel()), (f"WHERE {name} > 1.5", values[values > 1.5])):
            file = encoded(source.sql(f"SELECT {name} {rest}", threads=threads), "netcdf")
            parts = []
            for start, stop in file.split(2):
                at = start
                for offset, part in file.blocks(start, stop, 100_000):
                    assert offset == at
                    assert len(part) == min(100_000, stop - at)
                    at += len(part)
                    parts.append(part)
                assert at == stop
            whole = b"".join(parts)
            np.testing.assert_array_equal(np.frombuffer(whole[-4 * len(want) :], ">f4"), want)
            assert whole == file.read(0, file.nbytes)


def test_an_id_names_the_bytes(odd, odd_path, tmp_path):
    def name(source, sql, kind="netcdf"):
        return encoded(source.sql(sql), kind).id

    first = name(odd, "SELECT f4 WHERE row > 3")
    assert (
        first
        == name(odd, "select f4  where (row > 3)")
        == name(sieva.open(odd_path), "SELECT f4 WHERE row>3")
    )
    others = [
        name(odd, "SELECT f4 WHERE row > 4"),
        name(odd, "SELECT f4 AS x WHERE row > 3"),
        name(odd, "SELECT f4 WHERE row > 3", "hdf5"),
        name(sieva.open(odd_path, valid_range=True), "SELECT f4 WHERE row > 3"),
    ]
    copy = tmp_path / "odd.h5"
    copy.write_bytes(odd_path.read_bytes())
    others.append(name(sieva.open(copy), "SELECT f4 WHERE row > 3"))
    assert len({first, *others}) == 6


@pytest.mark.parametrize("kind", FORMATS)
def test_bytes_are_the_same_again(odd_path, kind):
    made = []
    for threads in (1, 3):
        query = sieva.open(odd_path).sql(f"SELECT {', '.join(ALL)} WHERE row % 2 = 1", threads=threads)
        file = encoded(query, kind)
        made.append(file.read(0, file.nbytes))
    assert made[0] == made[1]


@pytest.mark.parametrize("access", ["scan", "bitmap", "sorted"])
def test_bytes_do_not_depend_on_indexes(tmp_path, access):
    rng = np.random.default_rng(3)
    values = {"a": rng.normal(size=5000).astype("f4"), "b": rng.integers(0, 99, 5000)}
    values["a"][::50] = -0.0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, data in values.items():
            file[name] = data
    source = sieva.open(tmp_path / "a.h5", store=tmp_path / "store")
    source.build_index("a", kinds=["bitmap", "sorted"], columns=["b"])
    rows = (values["a"] > -0.5) & (values["a"] < 0.5)
    file = encoded(source.sql("SELECT a, b WHERE a > -0.5 AND a < 0.5", access=access), "hdf5")
    (tmp_path / "out.h5").write_bytes(file.read(0, file.nbytes))
    for name, got in read_back(tmp_path / "out.h5", "hdf5").items():
        assert got.data.tobytes() == values[name][rows].tobytes()


@pytest.mark.parametrize("kind", ["netcdf", "hdf5"])
def test_a_fill_value_is_none_of_the_values(odd, tmp_path, kind):
    """The default of 64 bits is -9223372036854775806, and its neighbours are equal to it as float64."""
    text = "SELECT if(row < 3, NULL, row - row - 9223372036854775805) AS low WHERE row < 9"
    file = encoded(odd.sql(text), kind)
    (tmp_path / "out").write_bytes(file.read(0, file.nbytes))
    with netCDF4.Dataset(tmp_path / "out") as made:
        low = made["low"][:]
        assert float(made["low"]._FillValue) != float(-(2**63))
    np.testing.assert_array_equal(low.mask, [True] * 3 + [False] * 6)
    assert set(low.compressed()) == {-9223372036854775805}


def test_a_changed_source_is_told(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(100.0)
    made = encoded(sieva.open(path).sql("SELECT a"), "netcdf")
    with h5py.File(path, "a") as file:
        file["b"] = np.arange(100.0)
    with pytest.raises(errors.StaleSource):
        made.read(0, made.nbytes)


@pytest.mark.parametrize("kind", ["table", "csv", "json", "arrow", "parquet"])
def test_spools_have_a_limit_and_leave_nothing(odd, tmp_path, kind):
    query = odd.sql("SELECT text, plain")
    file = encoded(query, kind, spool=tmp_path)
    assert file.nbytes > 5000
    with pytest.raises(errors.MemoryLimit, match="more than 5000 bytes"):
        encoded(query, kind, spool=tmp_path, spool_limit=5000)
    with pytest.raises(errors.FileNotFound, match="cannot write to"):
        encoded(query, kind, spool=tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_parquet_is_compressed(odd, tmp_path):
    path = tmp_path / "out.parquet"
    encoded(odd.sql("SELECT text, plain"), "parquet", spool=tmp_path).write(path)
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    assert {c.compression for c in columns} == {"ZSTD"}
    assert sum(c.total_compressed_size for c in columns) < sum(c.total_uncompressed_size for c in columns)


def test_what_formats_cannot_hold(odd):
    for kind in ("netcdf", "hdf5"):
        with pytest.raises(errors.Unsupported, match="is a histogram"):
            encoded(odd.sql("SELECT histogram(plain, 4) AS h"), kind)
    with pytest.raises(errors.InvalidValue, match="table, csv, json, arrow, parquet, netcdf, hdf5"):
        encoded(odd.sql("SELECT plain"), "zarr")


SUFFIXES = {row["name"]: row["suffixes"][0] for row in _native.formats()}
# JSON of the command line says what the query did, which differs from run to run.
SAME = [kind for kind in FORMATS if kind != "json"]


@pytest.mark.parametrize("kind", SAME)
def test_the_command_line_writes_the_same_bytes(odd_path, tmp_path, kind):
    path = tmp_path / f"out.{SUFFIXES[kind]}"
    sql = f"SELECT f4, text FROM '{odd_path}' WHERE row % 5 = 0"
    ran = CliRunner().invoke(cli, ["query", sql, "-o", str(path), "--layout", "columns"])
    assert ran.exit_code == 0, ran.output
    file = encoded(sieva.open(odd_path).sql("SELECT f4, text WHERE row % 5 = 0"), kind)
    assert path.read_bytes() == file.read(0, file.nbytes)


def test_the_command_line_says_what_columns_are_for(odd_path, tmp_path):
    sql = f"SELECT f4 FROM '{odd_path}'"
    for arguments in (["-o", str(tmp_path / "x.zarr")], ["--format", "csv"]):
        ran = CliRunner().invoke(cli, ["query", sql, *arguments, "--layout", "columns"])
        assert ran.exit_code == 2
        assert f"--layout columns is for files of {', '.join(FORMATS)}" in ran.output
