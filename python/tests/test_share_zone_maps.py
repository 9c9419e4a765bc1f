"""Zone maps of what is shared, on stores that write down themselves what they sent."""

import contextlib
import json
import time
import uuid
from pathlib import Path
from urllib.parse import unquote

import h5py
import numpy as np
import pytest
import sieva
import sieva.share
from services.places import MAKE_BUCKET, run
from services.processes import Processes, free_ports, program
from services.stores import keys_of, swift
from sieva._native import Objects

COUNTED = Path(__file__).resolve().parents[2] / "benches" / "scibox" / "counted_moto.py"
# Seconds in which a server writes down what it answered.
PATIENCE = 20.0


@contextlib.contextmanager
def counted_moto(folder):
    """Run moto's S3, which writes down what each request moved."""
    processes, [port] = Processes(folder), free_ports(1)
    try:
        processes.start("moto", [program("python"), COUNTED, str(port)])
        processes.await_answer(f"http://127.0.0.1:{port}")
        yield keys_of(f"http://127.0.0.1:{port}", "someone", "anything")
    finally:
        processes.stop()


class Logged:
    """A container in a store, and the bytes that the store says that it sent."""

    def __init__(self, scheme, environment, log):
        self.log = log
        container = f"maps-{uuid.uuid4().hex[:8]}"
        if scheme == "s3":
            run(MAKE_BUCKET, json.dumps(dict(environment)), container)
        self.root = f"{scheme}://{container}/ocean"

    def sent(self, since):
        """Return the bytes of answers to GET since a place in the log, by the paths of objects."""
        mark = uuid.uuid4().hex
        Objects(self.root).get(f"end/{mark}")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            lines = self.log.read_bytes()[since:].decode(errors="replace").splitlines()
            if any(mark in line for line in lines):
                found = filter(None, map(answered, lines))
                return [(path, size) for path, size in found if "/end/" not in path]
            time.sleep(0.05)
        raise AssertionError(f"the log {self.log} does not have the last request")

    def mark(self):
        """Return where the log ends now."""
        self.sent(0)
        return self.log.stat().st_size


def answered(line):
    """Return the object and the bytes of an answer to GET: of counted moto, or of Swift's proxy."""
    server, _, rest = line.partition(": ")
    words = rest.split(" ")
    if server == "counted":
        method, path, _, _, sent = words
    elif server == "proxy-server" and len(words) > 16 and words[0] != "-" and words[5].startswith("HTTP/"):
        method, path, sent = words[3], words[4], words[11]
    else:
        return None
    return (unquote(path), 0 if sent == "-" else int(sent)) if method == "GET" else None


@pytest.fixture(scope="module", params=["moto", "swift-s3", "swift"])
def store(request, tmp_path_factory):
    """Return a container in a store that keeps a log."""
    folder = tmp_path_factory.mktemp("logged")
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if request.param == "moto":
            environment, log, scheme = stack.enter_context(counted_moto(folder)), folder / "moto.log", "s3"
        else:
            both = stack.enter_context(swift(folder, is_logged=True))
            one = both[0 if request.param == "swift-s3" else 1]
            environment, log, scheme = one.environment, folder / "proxy.log", one.scheme
        for name, value in environment.items():
            patch.setenv(name, value)
        yield Logged(scheme, environment, log)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Return a file whose values rise along it, with hostile ones, and the values."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng = np.random.default_rng(7)
    values = (np.arange(8_000_000) / 8000 + rng.normal(size=8_000_000)).astype("f4")
    values[::100_000] = np.nan
    values[5:10] = [np.inf, -np.inf, -0.0, 0.0, np.nan]
    (tmp_path / "steps").mkdir()
    path = tmp_path / "steps" / "run.h5"
    with h5py.File(path, "w") as file:
        file["T"] = values
    return path, values


def check(store, address, size, values, wanted):
    """Ask an object in the store for a few of its values; the store sends few of its bytes."""
    since = store.mark()
    found = sieva.open(address).sql(f"SELECT T WHERE {wanted}").to_arrow()["T"].to_numpy()
    sent = store.sent(since)
    assert np.array_equal(found, values)
    assert any(".sieva/" in path for path, _ in sent), sent
    assert sum(size for _, size in sent) * 8 < size, sent


def test_a_query_on_what_is_published_moves_what_it_needs(store, data):
    path, values = data
    group = sieva.share.create(store.root)
    done = group.publish(path, user="ada")
    assert done.zone_maps
    with np.errstate(invalid="ignore"):
        some = values[(values > 700) & (values < 703)]
    check(store, done.location, done.size, some, "T > 700 AND T < 703")
    assert sieva.open(done.location).verify_index(all=True)
    # Without them all of it comes.
    plain = group.publish(path, "plain.h5", zone_maps=False, user="ada")
    since = store.mark()
    assert sieva.open(plain.location).query("T > 700 AND T < 703").count() == some.size
    assert not plain.zone_maps
    assert sum(size for _, size in store.sent(since)) >= values.nbytes
    # Another file by that name: what lay beside the first one says nothing of it.
    with h5py.File(path, "r+") as file:
        file["T"][...] = values[::-1]
    again = group.publish(path, "run.h5", user="ada")
    assert again.zone_maps
    check(store, again.location, again.size, some[::-1], "T > 700 AND T < 703")
    held = [key for key, _ in Objects(store.root).list("published/")]
    assert len([key for key in held if key.startswith("published/ada/run.h5.sieva/")]) == 2
    group.unpublish("run.h5", user="ada")
    group.unpublish("plain.h5", user="ada")
    assert Objects(store.root).list("published/") == []


def test_a_query_on_a_result_moves_what_it_needs(store, data, tmp_path):
    path, values = data
    group = sieva.share.create(f"{store.root}/results", path.parent, producer="model")
    group.ask("high", "SELECT T WHERE T > 100", format="netcdf", user="ada")
    done = group.produce(settle=0)
    assert (done.answers, done.failed, done.objects) == (1, 0, 1)
    objects = Objects(f"{store.root}/results")
    ((key, size),) = [(key, size) for key, size in objects.list("data/") if ".sieva/" not in key]
    with np.errstate(invalid="ignore"):
        high = values[values > 100]
        some = high[(high > 900) & (high < 901)]
    check(store, objects.location(key), size, some, "T > 900 AND T < 901")
    # Who follows gets the file alone, and all of it goes when it was taken.
    followed = group.follow("high", tmp_path / "high", user="ada")
    assert [p.name for p in followed.files] == ["run.nc"]
    assert [p.name for p in (tmp_path / "high").iterdir() if not p.name.startswith(".")] == ["run.nc"]
    assert group.produce(settle=0).deleted == 1
    assert objects.list("data/") == []
