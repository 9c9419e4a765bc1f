"""Every way to ask: the bytes are those of the local query, the values those of numpy."""

import json
import shutil
import subprocess
from urllib.parse import quote

import netCDF4
import numpy as np
import pytest
import sieva
from conftest import FEW, MANY, NONE
from gridftp_server import Server, fetch, reply, retrieve
from local_result import local_result


def check_few(path, values):
    """Compare the result of FEW with numpy."""
    hits = np.nonzero(values["TEMP"] > 20)
    assert hits[0].size > 100
    with netCDF4.Dataset(path) as file:
        assert list(file.variables) == ["TEMP", "z_t"]
        np.testing.assert_array_equal(np.asarray(file["TEMP"][:]), values["TEMP"][hits])
        np.testing.assert_array_equal(np.asarray(file["z_t"][:]), values["z_t"][hits[1]])


@pytest.mark.parametrize("route", [";sql={}", "%3Fsql={}", "%3Bsql={}", "%253Fsql={}"])
def test_in_the_path(server, ocean_file, ocean_values, target, route):
    url = server.url(ocean_file) + route.format(quote(FEW))
    assert fetch(url, target) == local_result(ocean_file, FEW)
    check_few(target, ocean_values)


def test_in_the_path_with_spaces(server, ocean_file, target):
    url = f"{server.url(ocean_file)};sql={FEW.replace('>', '%3E')}"
    assert fetch(url, target) == local_result(ocean_file, FEW)


def test_encoded_twice(server, ocean_file, target):
    url = server.url(ocean_file, f";sql={quote(FEW)}")
    assert fetch(url, target) == local_result(ocean_file, FEW)


@pytest.mark.parametrize("dsi", ["sieva", "file"])
@pytest.mark.parametrize("words", [FEW, f"sql={FEW}"])
def test_as_a_module_of_eret(share, ocean_file, ocean_values, target, *, dsi, words):
    with Server(share, dsi=dsi) as server:
        got = fetch(server.url(ocean_file), target, "-smn", "sieva", "-smp", words)
        assert got == local_result(ocean_file, FEW)
        assert server.requests()[-1]["result"] == "ok"
    check_few(target, ocean_values)


def test_by_site_sieva_for_the_next_retr_alone(session, ocean_file):
    assert reply(session, f"SITE SIEVA {FEW}").startswith("250 ")
    assert session.size(str(ocean_file)) == len(local_result(ocean_file, FEW))
    assert retrieve(session, ocean_file) == local_result(ocean_file, FEW)
    assert retrieve(session, ocean_file) == ocean_file.read_bytes()


def test_an_empty_site_sieva_clears(session, ocean_file):
    session.sendcmd(f"SITE SIEVA {FEW}")
    assert reply(session, "SITE SIEVA").startswith("250 ")
    assert session.size(str(ocean_file)) == ocean_file.stat().st_size
    assert retrieve(session, ocean_file) == ocean_file.read_bytes()


def test_site_dsi_loads_it_into_a_running_server(share, ocean_file):
    with Server(share, dsi="file") as server:
        session = server.session()
        assert reply(session, "SITE DSI sieva").startswith("250 ")
        assert retrieve(session, f"{ocean_file};sql={FEW}") == local_result(ocean_file, FEW)
        assert retrieve(session, ocean_file) == ocean_file.read_bytes()
        session.close()


@pytest.mark.parametrize("mark", ["?", ";"])
def test_ftplib_in_stream_mode(session, ocean_file, mark):
    assert retrieve(session, f"{ocean_file}{mark}sql={MANY}") == local_result(ocean_file, MANY)


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl: `make gridftp-packages` installs it")
def test_curl(server, ocean_file, target):
    def run(*words):
        # It opens the data connection before it asks for binary transfers: the server makes it one of text.
        options = ("-sS", "--ftp-method", "nocwd", "-Q", "TYPE I", "-o", target)
        subprocess.run(["curl", *options, *words], check=True, timeout=60)
        return target.read_bytes()

    # `//`: from the root of the server's files.
    url = server.url(f"/{ocean_file}")
    for mark in (";", "%3F"):
        assert run(f"{url}{mark}sql={quote(FEW)}") == local_result(ocean_file, FEW)
    assert run("-Q", f"SITE SIEVA {FEW}", url) == local_result(ocean_file, FEW)
    assert run(url) == ocean_file.read_bytes()


def test_a_bare_condition(session, ocean_file):
    assert retrieve(session, f"{ocean_file};sql=TEMP > 20") == local_result(ocean_file, "TEMP > 20")


def test_an_empty_result(session, ocean_file, target):
    got = retrieve(session, f"{ocean_file};sql={NONE}")
    assert got == local_result(ocean_file, NONE)
    target.write_bytes(got)
    with netCDF4.Dataset(target) as file:
        assert file["TEMP"].shape == (0,)


@pytest.mark.parametrize("mark", [";", "?"])
def test_the_schema(session, ocean_file, mark):
    schema = json.loads(retrieve(session, f"{ocean_file}{mark}schema"))
    text = json.dumps(schema)
    assert all(f'"{name}"' in text for name in ("TEMP", "SALT", "TLAT", "z_t", "nlat"))
    assert len(schema) >= 3


def test_the_description(session, ocean_file):
    described = json.loads(retrieve(session, f"{ocean_file};sql={FEW};describe"))
    assert described["bytes"] == len(local_result(ocean_file, FEW))
    assert described["format"] == "netcdf"
    assert described["rows"] > 100
    assert len(described["id"]) == 32


def test_a_query_longer_than_a_path(session, ocean_file):
    sql = FEW + "".join(f" AND TEMP != {i}.5" for i in range(1000, 1500))
    assert len(sql) > 8000
    expected = local_result(ocean_file, sql)
    assert retrieve(session, f"{ocean_file};sql={sql}") == expected
    session.sendcmd(f"SITE SIEVA {sql}")
    assert retrieve(session, ocean_file) == expected
    assert "hint: RETR, SITE SIEVA and ERET take longer ones" in reply(
        session, f"SIZE {ocean_file};sql={sql}"
    )


def test_the_log_names_who_asked_what(server, session, ocean_file, ocean_values):
    retrieve(session, f"{ocean_file};sql={FEW}")
    request = server.requests()[-1]
    assert (request["verb"], request["path"], request["sql"]) == ("RETR", str(ocean_file), FEW)
    assert (request["format"], request["dn"], request["result"]) == ("netcdf", "-", "ok")
    assert int(request["rows"]) == np.count_nonzero(ocean_values["TEMP"] > 20)
    assert int(request["bytes"]) == len(local_result(ocean_file, FEW))


def test_questions_are_in_the_log_by_default(share, ocean_file):
    with Server(share, level="ERROR") as server:
        session = server.session()
        retrieve(session, f"{ocean_file};sql={FEW}")
        reply(session, f"SIZE {ocean_file};sql=NOSUCH > 1")
        session.close()
        asked = [(request["verb"], request["sql"], request["result"][:13]) for request in server.requests()]
    assert asked == [("RETR", FEW, "ok"), ("STAT", "NOSUCH > 1", "unknown-array")]


def test_a_file_may_be_called_like_a_question(session, share, ocean_file, tmp_path):
    directory = share / tmp_path.name
    directory.mkdir()
    directory.chmod(0o755)
    path = directory / "x;schema"
    path.write_bytes(ocean_file.read_bytes())
    assert retrieve(session, path) == ocean_file.read_bytes()
    assert session.size(str(path)) == ocean_file.stat().st_size
    assert retrieve(session, f"{path};sql={FEW}") == local_result(path, FEW)
    assert json.loads(retrieve(session, f"{path};schema"))["source"]["bytes"] == ocean_file.stat().st_size
    # Whoever may write beside a file does not answer for it.
    (directory / "x").write_bytes(ocean_file.read_bytes())
    assert json.loads(retrieve(session, path))["source"]["format"] == "netCDF-4"
    shutil.rmtree(directory)


def test_the_schema_tells_how_values_are_spread(server, share, ocean_file, ocean_values, tmp_path):
    path = share / f"{tmp_path.name}-spread.nc"
    path.write_bytes(ocean_file.read_bytes())
    path.chmod(0o644)
    before = json.loads(retrieve(server.session(), f"{path};schema"))
    assert [entry["distribution"] for entry in before["values"]] == [None] * len(before["values"])
    with sieva.open(path) as source:
        source.build_index("TEMP")
    # A session keeps its last answer: another one asks anew.
    after = json.loads(retrieve(server.session(), f"{path};schema"))
    spread = {entry["array"]: entry["distribution"] for entry in after["values"]}
    temp = spread["/TEMP"] if "/TEMP" in spread else spread["TEMP"]
    values = ocean_values["TEMP"]
    present = values[np.isfinite(values)]
    assert (temp["count"], temp["missing"]) == (values.size, values.size - present.size)
    assert (np.float32(temp["min"]), np.float32(temp["max"])) == (present.min(), present.max())
    histogram = temp["histogram"]
    assert histogram["infinite"] == [0, 0]
    assert histogram["counts"] == np.histogram(present, histogram["edges"])[0].tolist()
    assert spread["/SALT" if "/SALT" in spread else "SALT"] is None
