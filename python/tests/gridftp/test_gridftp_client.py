"""Sources on a server: what the package and the command line bring is what they find in the file itself."""

import csv
import shutil

import netCDF4
import numpy as np
import pyarrow.parquet as pq
import pytest
import sieva
from conftest import FEW, MANY, NONE
from gridftp_server import Server
from local_result import local_result
from sieva import errors
from sieva._gridftp.address import Address
from test_cli import run


@pytest.fixture
def remote(server, ocean_file):
    """Return the ocean as a source of the server."""
    return sieva.open(server.url(ocean_file))


@pytest.mark.parametrize(
    "sql", [FEW, MANY, NONE, "SELECT TEMP, z_t WHERE TEMP > 20 ORDER BY TEMP DESC LIMIT 7"]
)
def test_rows_are_those_of_the_file(remote, ocean_file, sql):
    here, there = sieva.open(ocean_file).sql(sql), remote.sql(sql)
    assert there.count() == here.count()
    assert there.to_arrow().equals(here.to_arrow())
    assert there.columns == here.columns
    assert there.dtypes == here.dtypes
    assert there.count() == here.count() == sum(batch.num_rows for batch in there.batches(100))


def test_groups_dates_and_expressions(remote, ocean_file):
    local = sieva.open(ocean_file)
    for sql in (
        "SELECT z_t, avg(TEMP) AS mean, count(*) GROUP BY z_t",
        "SELECT time, TEMP WHERE TEMP > (SELECT avg(TEMP) + 5) AND idx(nlon) < 30",
        "SELECT count(*) WHERE TEMP IS NULL",
    ):
        assert remote.sql(sql).to_arrow().equals(local.sql(sql).to_arrow()), sql
    condition = (remote["TEMP"] > 20) & (remote["z_t"] < 5000)
    got = remote.query(condition, select=["SALT"]).read()
    np.testing.assert_array_equal(got, local.query(str(condition), select=["SALT"]).read("SALT"))


def test_values_are_read_as_of_a_file_here(remote, ocean_file):
    """Selected or not, and times as the numbers that the file has."""
    local = sieva.open(ocean_file)
    here, there = (s.query("TEMP > 20", select=["TEMP", "time"]) for s in (local, remote))
    for name in ("TEMP", "time", "SALT", "TEMP * 2 + z_t", remote["SALT"] * 2):
        got, expected = there.read(name), here.read(name)
        assert got.dtype == expected.dtype, name
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(errors.UnknownArray, match="no column 'SALT'"):
        remote.sql("SELECT TEMP WHERE TEMP > 20 LIMIT 5").read("SALT")
    with pytest.raises(errors.UnknownArray, match="nothing"):
        there.read("nothing")


def test_the_from_of_a_query_may_be_a_url(server, ocean_file):
    url = server.url(ocean_file)
    there = sieva.sql(f"SELECT TEMP FROM '{url}' WHERE TEMP > 20")
    assert (
        there.to_pandas()["TEMP"].tolist() == sieva.open(ocean_file).query("TEMP > 20").read("TEMP").tolist()
    )


def test_nothing_is_brought_twice_nor_before_it_is_asked(server, remote):
    before = len(server.requests())
    query = remote.sql(FEW)
    assert len(server.requests()) == before
    query.count()
    assert [int(r["bytes"]) < 1000 for r in server.requests()[before:]] == [True]
    query.to_arrow()
    query.to_pandas()
    assert len(server.requests()) == before + 2


def test_the_schema_is_that_of_the_file(remote, ocean_file):
    local = sieva.open(ocean_file)
    here, there = local.schema(), remote.schema()
    assert there["logical"] == here["logical"]
    assert list(remote) == list(local)
    assert remote.format == local.format


def test_files_of_every_format(remote, ocean_file, tmp_path):
    wanted = sieva.open(ocean_file).sql(FEW)
    query = remote.sql(FEW)
    query.to_netcdf(tmp_path / "r.nc")
    assert (tmp_path / "r.nc").read_bytes() == local_result(ocean_file, FEW)
    query.to_hdf5(tmp_path / "r.h5")
    assert sieva.open(tmp_path / "r.h5")["TEMP"][...].tolist() == wanted.read("TEMP").tolist()
    query.to_parquet(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").equals(wanted.to_arrow())
    query.to_csv(tmp_path / "r.csv")
    wanted.to_csv(tmp_path / "w.csv")
    assert (tmp_path / "r.csv").read_text() == (tmp_path / "w.csv").read_text()


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("kind", ["nc", "h5", "parquet", "arrow", "csv"])
def test_get(server, ocean_file, tmp_path, kind, streams):
    target = tmp_path / f"out.{kind}"
    done = run("get", server.url(ocean_file), FEW, "-o", target, "--streams", streams)
    assert done.returncode == 0, done.stderr
    assert str(target) in done.stderr
    formats = {"nc": "netcdf", "h5": "hdf5"}
    assert target.read_bytes() == local_result(ocean_file, FEW, formats.get(kind, kind))


def test_get_a_condition_and_a_whole_file(server, ocean_file, tmp_path):
    assert run("get", server.url(ocean_file), "TEMP > 20", "-o", tmp_path / "c.csv").returncode == 0
    with (tmp_path / "c.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sieva.open(ocean_file).query("TEMP > 20").count() > 100
    assert run("get", server.url(ocean_file), "-o", tmp_path / "whole.nc").returncode == 0
    assert (tmp_path / "whole.nc").read_bytes() == ocean_file.read_bytes()


def test_the_command_line_asks_a_server(server, ocean_file, tmp_path):
    sql = "SELECT z_t, TEMP FROM '{}' WHERE TEMP > 20 LIMIT 5"
    for options in (["--format", "csv"], ["--format", "table"]):
        there, here = (
            run("query", sql.format(name), *options) for name in (server.url(ocean_file), ocean_file)
        )
        assert there.returncode == 0, there.stderr
        assert there.stdout == here.stdout
    assert run("query", sql.format(server.url(ocean_file)), "-o", tmp_path / "q.nc").returncode == 0
    with netCDF4.Dataset(tmp_path / "q.nc") as file:
        assert file["TEMP"].shape == (5,)
    done = run("query", sql.format(server.url(ocean_file)), "--format", "csv", "--stats")
    assert done.returncode == 0
    assert done.stderr.startswith("received ")


def test_errors_are_those_of_the_engine(remote, server, share, tmp_path):
    with pytest.raises(errors.UnknownArray, match="TEMPO") as caught:
        remote.query("TEMPO > 1").to_arrow()
    assert caught.value.hint is None or "TEMP" in caught.value.hint
    with pytest.raises(errors.SyntaxError_):
        remote.sql("SELECT TEMP WHERE TEMP >").count()
    with pytest.raises(errors.FileNotFound, match=r"none\.nc"):
        sieva.open(server.url(share / "none.nc")).sql(FEW).count()
    done = run("get", server.url(share / "none.nc"), FEW, "-o", tmp_path / "x.nc")
    assert done.returncode == 1
    assert done.stderr.startswith("sieva: ")
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_the_plug_in_is_told(file_server, ocean_file):
    with pytest.raises(errors.FileNotFound) as caught:
        sieva.open(file_server.url(ocean_file)).sql(FEW).count()
    assert "plug-in" in caught.value.hint


def test_nobody_at_the_address():
    with pytest.raises(errors.IoError, match=r"127\.0\.0\.1:9/"):
        sieva.open("ftp://127.0.0.1:9/a.nc").sql(FEW).count()


def test_a_server_that_goes_away_leaves_no_file(share, ocean_file, tmp_path):
    with Server(share) as server:
        url = server.url(ocean_file)
    done = run("get", url, FEW, "-o", tmp_path / "x.nc")
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_the_servers_to_know_is_refused(remote, server, ocean_file, tmp_path):
    query = remote.sql(FEW)
    for ask in (query.estimate, query.selection, query.explain, query.to_xarray):
        with pytest.raises(errors.Unsupported):
            ask()
    with pytest.raises(errors.Unsupported, match="zarr"):
        query.to_zarr(tmp_path / "r.zarr")
    with pytest.raises(errors.Unsupported, match="grid"):
        query.to_netcdf(tmp_path / "r.nc", layout="grid")
    with pytest.raises(errors.Unsupported, match="access"):
        remote.query("TEMP > 20", access="scan")
    for name in ("build_index", "histogram", "calibrate", "arrays"):
        with pytest.raises(errors.Unsupported, match=f"{name} of .* on a server"):
            getattr(remote, name)
    for words in (["index"], ["calibrate"], ["references", "-"]):
        done = run(words[0], server.url(ocean_file), *words[1:])
        assert (done.returncode, done.stderr.splitlines()[0][:7]) == (1, "sieva: "), words
        assert "server" in done.stderr
        assert "Traceback" not in done.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        remote.nothing  # noqa: B018
    with pytest.raises(errors.Unsupported, match="isolated"):
        sieva.open(server.url(ocean_file), isolated=True)


def test_gsiftp_needs_the_program(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(errors.Unsupported, match="globus-url-copy"):
        sieva.open("gsiftp://localhost/a.nc").sql(FEW).count()


@pytest.mark.parametrize("url", ["ftp://", "ftp:///a.nc", "gsiftp://host", "ftp://host:x/a.nc"])
def test_addresses_that_name_no_file(url):
    with pytest.raises(errors.InvalidValue, match="ftp"):
        sieva.open(url)


def test_addresses_keep_names_and_hide_passwords():
    address = Address.parse("ftp://me:p%2Fw@h:2121/a%20b/c?d#e.nc")
    assert (address.user, address.password, address.path) == ("me", "p/w", "/a b/c?d#e.nc")
    assert address.url() == "ftp://me:p%2Fw@h:2121/a%20b/c%3Fd%23e.nc"
    assert str(address) == "ftp://me@h:2121/a%20b/c%3Fd%23e.nc"
    assert Address.parse("gsiftp://[::1]/a").url() == "gsiftp://[::1]:2811/a"
