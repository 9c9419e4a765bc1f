"""Bad networks: what passes loses nothing, what stays ends in an error that says what happened."""

import subprocess
import sys
import time
from functools import partial

import h5py
import numpy as np
import pytest
import sieva
from services.range_server import RangeServer

PATIENT = {"retries": 8, "deadline": 60, "read_timeout": 10}
HASTY = {"retries": 1, "deadline": 5, "read_timeout": 0.5}


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(3).normal(0, 1, (40, 200, 200)).astype("f4")


@pytest.fixture
def path(tmp_path, values):
    path = tmp_path / "values.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(1, 100, 100), compression="gzip", shuffle=True)
        file["plain"] = values[:5]
    return path


@pytest.fixture
def server(path, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path_factory.mktemp("cache")))
    with RangeServer(path.parent) as server:
        yield server


def counts(url, options):
    source = sieva.open(url, storage_options=options)
    return source.query("v > 2.5").count(), source.query("plain > 2.5").count()


@pytest.mark.parametrize(
    "faults",
    [
        {"unavailable": 5},
        {"resets": 5},
        {"truncations": 5},
        {"every": 3},
        {"slow": 0.05},
        {"no_head": True},
        {"no_ranges": True},
    ],
    ids=lambda faults: next(iter(faults)),
)
def test_faults_that_pass_lose_nothing(faults, server, values):
    expected = (np.count_nonzero(values > 2.5), np.count_nonzero(values[:5] > 2.5))
    for name, value in faults.items():
        setattr(server.behaviour, name, value)
    assert counts(f"{server.url}/values.h5", PATIENT) == expected
    if not {"slow", "no_head", "no_ranges"} & faults.keys():
        assert server.traffic.failures > 0


def test_a_server_that_stays_down_is_told(server):
    server.behaviour.is_down = True
    started = time.monotonic()
    with pytest.raises(sieva.SievaError) as caught:
        counts(f"{server.url}/values.h5?signature=secret", HASTY)
    assert caught.value.kind == "io-error"
    assert "503" in str(caught.value)
    assert f"{server.url}/values.h5" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.hint
    assert time.monotonic() - started < 60


def test_a_server_that_goes_down_is_told(server):
    source = sieva.open(f"{server.url}/values.h5", storage_options=HASTY)
    server.behaviour.is_down = True
    with pytest.raises(sieva.SievaError) as caught:
        source.query("v > 2.5").count()
    assert caught.value.kind == "io-error"


def test_a_server_that_is_not_there_is_told(server):
    url = server.url
    server.__exit__()
    try:
        with pytest.raises(sieva.SievaError) as caught:
            sieva.open(f"{url}/values.h5", storage_options=HASTY)
        assert caught.value.kind == "io-error"
    finally:
        server._thread = type("Ended", (), {"join": lambda _: None})()


def test_a_replaced_object_is_stale_and_never_mixed(server, path, values):
    source = sieva.open(f"{server.url}/values.h5", storage_options=PATIENT)
    assert source["v"].shape == (40, 200, 200)
    aside = path.with_name("aside.h5")
    with h5py.File(aside, "w") as file:
        file.create_dataset("v", data=values + 100, chunks=(1, 100, 100), compression="gzip", shuffle=True)
        file["plain"] = values[:5] + 100
    aside.replace(path)
    with pytest.raises(sieva.SievaError) as caught:
        source.query("v > 50").count()
    assert caught.value.kind == "stale-source"
    again = sieva.open(f"{server.url}/values.h5", storage_options=PATIENT)
    assert again.query("v > 50").count() == values.size


@pytest.mark.parametrize("status", ["absent.h5", "values.h5/absent"])
def test_objects_that_are_not_there(status, server):
    with pytest.raises(sieva.SievaError) as caught:
        sieva.open(f"{server.url}/{status}", storage_options=HASTY)
    assert caught.value.kind == "file-not-found"
    assert isinstance(caught.value, FileNotFoundError)


def test_requests_are_few_and_go_side_by_side(server, path, values):
    server.behaviour.latency = 0.02
    source = sieva.open(f"{server.url}/values.h5")
    assert source.query("v > 2.5").count() == np.count_nonzero(values > 2.5)
    traffic = server.reset()
    # 160 chunks of some 35 KB: what lies side by side is one request.
    assert traffic.requests <= 16
    assert traffic.bytes < 1.3 * path.stat().st_size


def test_a_second_opening_parses_nothing(server, values):
    url = f"{server.url}/values.h5"
    expected = np.count_nonzero(values > 2.5)
    first = sieva.open(url)
    assert first.query("v > 2.5").count() == expected
    del first
    server.reset()
    again = sieva.open(url)
    assert again.query("v > 2.5").count() == expected
    assert server.reset().requests <= 2
    # What the manifest lacks is looked for in the object.
    assert again.query("plain > 2.5").count() == np.count_nonzero(values[:5] > 2.5)


def test_requests_are_counted(server):
    source = sieva.open(f"{server.url}/values.h5")
    before = server.traffic.by_path()["/values.h5"]
    query = source.query("v > 2.5")
    query.count()
    assert query.stats()["requests"] == server.traffic.by_path()["/values.h5"] - before


def test_options_of_the_command_line(server):
    """Few retries, and a clear word for what is no option."""
    server.behaviour.is_down = True
    command = [sys.executable, "-m", "sieva", "schema", f"{server.url}/values.h5", "--storage-option"]
    run = partial(subprocess.run, capture_output=True, text=True, check=False)
    failed = run([*command, "retries=1"])
    assert failed.returncode == 1
    assert "503" in failed.stderr
    assert server.traffic.requests == 2
    for wrong, why in [
        ("tries=1", "not of the form name=value"),
        ("retries=many", "retries: invalid literal"),
        ("cache_bytes=99999999TiB", "'99999999TiB' is too large: expected less than 2^64 bytes"),
    ]:
        refused = run([*command, wrong])
        assert refused.returncode == 2
        assert why in " ".join(refused.stderr.split())
    for wrong in ("retries=-1", "parallel=99999999999999999999"):
        refused = run([*command, wrong])
        assert refused.returncode == 1
        assert "is a whole number, not negative and not too large, got" in refused.stderr


def test_many_objects_are_told_of_ahead(tmp_path, monkeypatch):
    """One thread reads; the next files are opened, and their bytes fetched, side by side before."""
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path / "cache"))
    values = np.random.default_rng(5).normal(0, 1, (40, 400, 1000)).astype("f4")
    for n in range(40):
        with h5py.File(tmp_path / f"part.{n:02}.h5", "w") as file:
            file.create_dataset("v", data=values[n], chunks=(100, 1000))
    names = [f"part.{n:02}.h5" for n in range(40)]
    with RangeServer(tmp_path) as server:
        source = sieva.open([f"{server.url}/{name}" for name in names], join="file")
        server.reset()
        server.behaviour.latency = 0.02
        query = source.query("v > 1.5", select=["v"], threads=1)
        assert query.count() == np.count_nonzero(values > 1.5)
        assert server.traffic.most_at_once >= 4
        assert np.array_equal(query.read("v"), values[values > 1.5])
