"""Indexes that lie beside remote objects: made elsewhere, used where they are, and only of that object."""

import contextlib
import os
import shutil
import time

import h5py
import numpy as np
import pytest
import sieva
from services.range_server import RangeServer
from services.stores import moto

CONDITION = "v > 4.5"


@pytest.fixture
def values():
    """Return values of which few regions have any beyond 4.5."""
    rng = np.random.default_rng(3)
    values = rng.uniform(-1, 1, (40, 256, 256)).astype("f4")
    values[17, 5:9, 7] = 5
    values[30:] = np.nan
    return values


@pytest.fixture
def folder(tmp_path, values, monkeypatch):
    """Return a directory of a file that was written a while ago."""
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SIEVA_LEARN", "0")
    folder = tmp_path / "web"
    folder.mkdir()
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(1, 256, 256), compression="gzip", compression_opts=1)
        file["other"] = np.arange(40)
    age(folder / "a.h5", 60)
    return folder


@pytest.fixture
def server(folder):
    """Return a server of the directory."""
    with RangeServer(folder) as server:
        yield server


def age(path, seconds):
    """Set the time of a file's last change back from now."""
    then = time.time_ns() - seconds * 10**9
    os.utime(path, ns=(then, then))


def build(folder, **options):
    """Index the local file, in a store beside it."""
    with sieva.open(folder / "a.h5") as source:
        source.build_index("v", **options)


def asked(server):
    """Return the requests for the object, and for what is beside it, since the last time."""
    paths = server.reset().by_path()
    beside = {path: n for path, n in paths.items() if "/a.h5.sieva/" in path}
    return paths["/a.h5"], beside


def check(source, values):
    """Compare the hits and some of their places with numpy."""
    query = source.query(CONDITION)
    assert query.count() == np.count_nonzero(values > 4.5) == 4
    assert query.selection().coords().tolist() == np.argwhere(values > 4.5).tolist()


def test_an_index_of_the_file_that_is_served(folder, server, values):
    check(sieva.open(f"{server.url}/a.h5"), values)
    without = asked(server)[0]
    shutil.rmtree(os.environ["SIEVA_CACHE"])
    build(folder)
    source = sieva.open(f"{server.url}/a.h5")
    check(source, values)
    requests, beside = asked(server)
    # One of forty chunks, and what tells that it is this one.
    assert requests < without, (requests, without)
    assert beside["/a.h5.sieva/manifest.json"] == 1
    assert len(beside) >= 2
    assert source.index_notes == []
    status = source.index_status()
    assert (status.exists, status.store) == (True, f"{server.url}/a.h5.sieva")
    assert source.verify_index().differences == ()
    assert not list(folder.glob("*.absent"))


@pytest.mark.parametrize("way", ["bitmap", "sorted", "scan"])
def test_every_way_of_using_it(folder, server, values, way):
    build(folder, kinds=("zonemap", "bitmap"))
    build(folder, kinds=("sorted",))
    source = sieva.open(f"{server.url}/a.h5")
    with contextlib.closing(source):
        query = source.query("v > 0.25 and v < 0.26", access=way)
        assert query.count() == np.count_nonzero((values > 0.25) & (values < 0.26))
    assert asked(server)[1]["/a.h5.sieva/manifest.json"] == 1


def test_an_index_of_the_object_itself(folder, server, values, tmp_path):
    """Built through its address, in a directory of stores, and then put beside it."""
    url = f"{server.url}/a.h5"
    with sieva.open(url, store=tmp_path / "stores") as source:
        source.build_index("v")
    [store] = (tmp_path / "stores").glob("*.sieva")
    # The file's time says nothing then: the object's tag is in it.
    age(folder / "a.h5", 60)
    with sieva.open(url, store=tmp_path / "stores") as source:
        source.build_index("v")
        [store] = (tmp_path / "stores").glob("*.sieva")
        shutil.copytree(store, folder / "a.h5.sieva")
    source = sieva.open(url)
    check(source, values)
    assert source.index_status().store == f"{url}.sieva"
    assert source.index_notes == []


def test_one_of_another_state_is_not_used(folder, server, values):
    build(folder)
    with h5py.File(folder / "a.h5", "r+") as file:
        values = file["v"][...]
        values[3, 0, 0] = 9
        file["v"][3] = values[3]
    source = sieva.open(f"{server.url}/a.h5")
    assert source.query(CONDITION).count() == np.count_nonzero(values > 4.5) == 5
    assert any("was made for another state of the object" in note for note in source.index_notes)


def test_one_put_there_in_the_second_of_the_change_is_not_used(folder, server, values):
    """Times of HTTP are whole seconds: what was changed after it in that second could not be told."""
    build(folder)
    change = (folder / "a.h5").stat().st_mtime
    manifest = folder / "a.h5.sieva" / "manifest.json"
    os.utime(manifest, (int(change) + 0.99, int(change) + 0.99))
    source = sieva.open(f"{server.url}/a.h5")
    check(source, values)
    assert any("another state of the object" in note for note in source.index_notes)
    os.utime(manifest, (int(change) + 1, int(change) + 1))
    assert sieva.open(f"{server.url}/a.h5").index_notes == []


def test_that_there_is_none_is_asked_once(folder, server, values):
    url = f"{server.url}/a.h5"
    for times in (1, 0):
        check(sieva.open(url), values)
        assert sum(asked(server)[1].values()) == times
    build(folder)
    check(sieva.open(url), values)
    assert asked(server)[1] == {}
    # Whoever asks for it gets it.
    assert sieva.open(url).index_status().exists
    check(sieva.open(url), values)
    assert asked(server)[1]["/a.h5.sieva/manifest.json"] >= 1
    # What is for one object alone leads to no other.
    check(sieva.open(f"{url}?token=1"), values)
    assert asked(server)[1] == {}


def test_a_page_of_the_server_in_its_place(folder, server, values):
    (folder / "a.h5.sieva").mkdir()
    (folder / "a.h5.sieva" / "manifest.json").write_text("<html>Nothing here.</html>")
    source = sieva.open(f"{server.url}/a.h5")
    check(source, values)
    assert source.index_notes == []


@pytest.mark.parametrize("damage", ["manifest", "cut", "gone", "changed"])
def test_damage_is_told_and_the_data_are_read(folder, server, values, damage):
    build(folder)
    store = folder / "a.h5.sieva"
    segments = sorted(store.glob("*.seg"))
    assert segments
    if damage == "manifest":
        text = (store / "manifest.json").read_text()
        (store / "manifest.json").write_text(text.replace('"len":', '"len": 1'))
    for segment in segments:
        content = bytearray(segment.read_bytes())
        if damage == "cut":
            segment.write_bytes(content[:-100])
        elif damage == "gone":
            segment.unlink()
        elif damage == "changed":
            content[64:-64] = bytes(len(content) - 128)
            segment.write_bytes(content)
    source = sieva.open(f"{server.url}/a.h5")
    check(source, values)
    assert source.index_notes


def test_a_server_that_fails_now_and_then(folder, server, values):
    build(folder, kinds=("zonemap", "bitmap", "sorted"))
    server.behaviour.every = 5
    check(sieva.open(f"{server.url}/a.h5"), values)
    assert server.traffic.failures > 0


def test_what_may_not_be_read(folder, server, values):
    """A replica whose shards are forbidden is left aside; a store that is wholly forbidden is not there."""
    build(folder, kinds=("zonemap", "sorted"))
    server.behaviour.forbidden = "/c/"
    source = sieva.open(f"{server.url}/a.h5")
    check(source, values)
    assert source.query("v between 0.25 and 0.2501").read("v").tolist() == list(
        values[(values >= 0.25) & (values <= np.float32(0.2501))]
    )
    assert any("sorted replica" in note for note in source.index_notes)
    server.behaviour.forbidden = ".sieva/"
    for times in (1, 0):
        asked(server)
        source = sieva.open(f"{server.url}/a.h5")
        check(source, values)
        assert source.index_notes == []
        assert sum(asked(server)[1].values()) == times


def test_a_replica_is_dropped_where_it_is(folder, tmp_path, values):
    """And what else is in that store stays in use."""
    build(folder, kinds=("zonemap", "sorted"))
    with sieva.open(folder / "a.h5", store=tmp_path / "stores") as source:
        assert source.drop_index("v", kinds=["sorted"])
    with sieva.open(folder / "a.h5", store=tmp_path / "stores") as source:
        status = source.index_status()
        assert (status.replicas, [array.path for array in status.arrays]) == ((), ["v"])
        check(source, values)


def test_what_is_built_here_goes_before(folder, server, values):
    build(folder)
    url = f"{server.url}/a.h5"
    with sieva.open(url) as source:
        source.build_index("other")
    asked(server)
    with sieva.open(url) as source:
        check(source, values)
        assert asked(server)[1] == {}
        assert source.drop_index()
    with sieva.open(url) as source:
        check(source, values)
        assert source.index_status().store == f"{url}.sieva"
        # That is not for us to remove.
        assert not source.drop_index()
    assert (folder / "a.h5.sieva" / "manifest.json").exists()


def test_beside_an_object_of_s3(folder, values, tmp_path, monkeypatch):
    """An object's time is that of its upload, so the index is made of the object."""
    with moto(tmp_path) as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        objects = tmp_path / "objects"
        objects.mkdir()
        shutil.copy(folder / "a.h5", objects / "a.h5")
        store.upload(objects)
        url = store.url("a.h5")
        with sieva.open(url, store=tmp_path / "stores") as source:
            source.build_index("v", kinds=("zonemap", "bitmap", "sorted"))
        [made] = (tmp_path / "stores").glob("*.sieva")
        shutil.copytree(made, objects / "a.h5.sieva")
        (objects / "a.h5").unlink()
        store.upload(objects)
        source = sieva.open(url)
        check(source, values)
        assert source.index_notes == []
        assert source.index_status().store == f"{url}.sieva"
        assert [replica.key for replica in source.index_status().replicas] == ["v"]
