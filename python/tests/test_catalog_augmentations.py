"""What the catalog is told of indexes, and indexing by the last part of a name and by collection."""

import json
import shutil
import time

import h5py
import numpy as np
import pytest
import sieva
from sieva import _native
from test_cli import run as run_command

N = 20_000


def run(*args):
    """Run sieva; return its exit code, what it wrote, and what it said."""
    done = run_command(*args)
    return done.returncode, done.stdout, done.stderr


def write(path, seed=1, groups=("",)):
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        for group in groups:
            file[f"{group}/flux"] = rng.random(N).astype("f4")
            file[f"{group}/sky"] = rng.integers(0, 100, N, dtype="i2")
            file[f"{group}/name"] = np.array([b"text"] * 3)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a directory with a source and a catalog that knows it and is named in the environment."""
    monkeypatch.setenv("SIEVA_CATALOG", str(tmp_path / "catalog.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("SIEVA_LEARN", raising=False)
    monkeypatch.delenv("SIEVA_STORE", raising=False)
    write(tmp_path / "a.h5")
    with sieva.Catalog() as catalog:
        catalog.add(tmp_path / "a.h5")
    return tmp_path


def known(place="", **options):
    with sieva.Catalog(read_only=not options) as catalog:
        return {(a.array, a.kind): a for a in catalog.augmentations(place, **options)}


def states(**options):
    return {key: one.state for key, one in known(**options).items()}


def test_what_is_built_is_known_by_its_size_and_its_state(place):
    report = sieva.open(place / "a.h5").build_index("flux", "sky")
    assert report.notes == ()
    found = known()
    assert set(found) == {(array, kind) for array in ("flux", "sky") for kind in ("zonemap", "bitmap")}
    status = sieva.open(place / "a.h5").index_status()
    for array in status.arrays:
        for kind in ("zonemap", "bitmap"):
            one = found[array.path, kind]
            assert (one.bytes, one.data_bytes) == (getattr(array, f"{kind}_bytes"), array.data_bytes)
            assert (one.source, one.store, one.state) == (
                str((place / "a.h5").resolve()),
                str((place / "a.h5.sieva").resolve()),
                "current",
            )
            assert one.build_seconds > 0
            assert abs(one.at - time.time()) < 600
            assert one.fingerprint.startswith(f"{(place / 'a.h5').stat().st_size}-")
    # What is there already is not told again.
    sieva.open(place / "a.h5").build_index("flux", "sky")
    assert known() == found


def test_jobs_replicas_and_dropping_are_told(place):
    source = sieva.open(place / "a.h5")
    job = source.index_job("flux")
    while tasks := job.tasks(2):
        job.take([source.run_index_task(task) for task in tasks])
    assert known() == {}
    assert job.finish().notes == ()
    assert states() == {("flux", "zonemap"): "current", ("flux", "bitmap"): "current"}
    source.build_index("flux", kinds=["sorted"], columns=["sky"])
    replica = known()["flux", "sorted"]
    assert (replica.state, replica.data_bytes) == ("current", N * 6)
    assert source.drop_index("flux", kinds=["sorted"])
    assert states()["flux", "sorted"] == "gone"
    assert states()["flux", "bitmap"] == "current"
    assert source.drop_index()
    assert set(states().values()) == {"gone"}
    source.build_index("flux")
    assert states()["flux", "bitmap"] == "current"


def test_stale_ones_are_told_by_queries_and_by_the_status(place):
    sieva.open(place / "a.h5").build_index("flux")
    write(place / "a.h5", seed=2)
    assert set(states().values()) == {"current"}
    with h5py.File(place / "a.h5") as file:
        truth = int((file["flux"][:] > 0.5).sum())
    assert sieva.open(place / "a.h5").query("flux > 0.5").count() == truth
    assert _native.flush_usage(10)
    assert set(states().values()) == {"stale"}
    sieva.open(place / "a.h5").build_index("flux")
    assert set(states().values()) == {"current"}
    write(place / "a.h5", seed=3)
    assert sieva.open(place / "a.h5", learn=False).index_status().stale
    assert set(states().values()) == {"stale"}


def test_verifying_looks_at_the_files(place):
    store = place / "stores"
    sieva.open(place / "a.h5").build_index("flux")
    sieva.open(place / "a.h5", store=store).build_index("sky")
    shutil.rmtree(place / "a.h5.sieva")
    assert set(states().values()) == {"current"}
    assert states(verify=True) == {
        ("flux", "zonemap"): "gone",
        ("flux", "bitmap"): "gone",
        ("sky", "zonemap"): "current",
        ("sky", "bitmap"): "current",
    }
    write(place / "a.h5", seed=5)
    assert states(verify=True)["sky", "bitmap"] == "stale"
    (place / "a.h5").unlink()
    assert set(states(verify=True).values()) == {"gone"}


def test_no_catalog_is_made_and_unknown_sources_are_left_out_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SIEVA_CATALOG", str(tmp_path / "none.sqlite"))
    write(tmp_path / "a.h5")
    assert sieva.open(tmp_path / "a.h5").build_index("flux").notes == ()
    monkeypatch.delenv("SIEVA_CATALOG")
    sieva.open(tmp_path / "a.h5").build_index("sky")
    assert not (tmp_path / "none.sqlite").exists()
    assert not (tmp_path / "data").exists()
    with sieva.Catalog():
        pass
    sieva.open(tmp_path / "a.h5").index_status()
    assert known() == {}
    with sieva.Catalog() as catalog:
        catalog.add(tmp_path / "a.h5")
    sieva.open(tmp_path / "a.h5").index_status()
    assert set(known()) == {(array, kind) for array in ("flux", "sky") for kind in ("zonemap", "bitmap")}


def test_a_catalog_that_cannot_be_written_fails_no_build(place):
    (place / "catalog.sqlite").write_bytes(b"no database at all, however long one looks at it" * 100)
    report = sieva.open(place / "a.h5").build_index("flux")
    assert report.regions_built > 0
    assert len(report.notes) == 1
    assert report.notes[0].startswith("the catalog was not told: ")
    code, _, err = run("index", str(place / "a.h5"), "--var", "sky")
    assert (code, "note: the catalog was not told: " in err) == (0, True)


def test_the_command_lists_them(place, monkeypatch):
    code, _, _ = run("index", str(place / "a.h5"), "--var", "flux", "--catalog", str(place / "other.sqlite"))
    assert code == 0
    assert known() == {}
    code, out, _ = run("catalog", "augmentations", "--catalog", str(place / "other.sqlite"), "--json")
    assert code == 0
    listed = json.loads(out)
    assert {(a["array"], a["kind"], a["state"]) for a in listed} == {
        ("flux", "zonemap", "current"),
        ("flux", "bitmap", "current"),
    }
    monkeypatch.setenv("SIEVA_CATALOG", str(place / "other.sqlite"))
    shutil.rmtree(place / "a.h5.sieva")
    code, out, _ = run("catalog", "augmentations", str(place / "a.h5"), "--verify")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert [(row[1], row[2], row[-1]) for row in rows] == [
        ("flux", "bitmap", "gone"),
        ("flux", "zonemap", "gone"),
    ]
    assert run("catalog", "augmentations", "/nowhere")[1] == ""


def test_a_name_in_several_groups_is_indexed_in_all(tmp_path):
    write(tmp_path / "b.h5", groups=("1", "2", "deep/3"))
    source = sieva.open(tmp_path / "b.h5")
    with pytest.raises(sieva.errors.AmbiguousName):
        source.query("flux > 0.5").count()
    code, _, err = run("index", str(tmp_path / "b.h5"), "--var", "flux")
    assert (code, "flux: 3 arrays of that name" in err) == (0, True)
    status = sieva.open(tmp_path / "b.h5").index_status()
    assert [a.path for a in status.arrays] == ["1/flux", "2/flux", "deep/3/flux"]
    assert all(a.with_bitmap == a.regions > 0 for a in status.arrays)
    source.build_index("1/sky")
    assert len(source.index_status().arrays) == 4
    with pytest.raises(sieva.errors.AmbiguousName):
        source.build_index("name")
    with pytest.raises(sieva.errors.UnknownArray):
        source.build_index("fluxx")


def test_a_collection_is_indexed_file_by_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_CATALOG", str(tmp_path / "catalog.sqlite"))
    names = [tmp_path / f"{n}.h5" for n in range(3)]
    for seed, name in enumerate(names):
        write(name, seed, groups=("1", "2"))
    with h5py.File(tmp_path / "3.h5", "w") as file:
        file["other"] = np.arange(10)
    with sieva.Catalog() as catalog:
        catalog.add(*names, tmp_path / "3.h5", collection="boss")
    reports = sieva.collection("boss").build_index("flux")
    assert list(reports) == [str(name.resolve()) for name in names]
    assert all(report.regions_built > 0 for report in reports.values())
    assert {key: one.state for key, one in known().items()} == {
        (f"{group}/flux", kind): "current" for group in (1, 2) for kind in ("zonemap", "bitmap")
    }
    with pytest.raises(sieva.errors.UnknownArray, match="fluxx"):
        sieva.collection("boss").build_index("fluxx")
    code, _, err = run("index", "catalog:boss", "--var", "sky")
    # The file without such an array is told, and the others are done.
    assert (code != 0, "3.h5: " in err, "1 of the 4 sources" in err) == (True, True, True)
    for name in names:
        arrays = [a.path for a in sieva.open(name).index_status().arrays]
        assert arrays == ["1/flux", "1/sky", "2/flux", "2/sky"]
    code, _, err = run("index", "catalog:none")
    assert (code != 0, "no collection 'none'" in err) == (True, True)
