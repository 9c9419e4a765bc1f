"""The catalog in Python: what is registered, found, kept and forgotten, on SQLite and PostgreSQL."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sieva
from catalog_files import postgres, write_spectra, write_step
from sieva import errors


@pytest.fixture(scope="module")
def server():
    """Run one server for all tests; its directory has to be open to its user."""
    directory = Path(tempfile.mkdtemp(prefix="sieva-pg-"))
    directory.chmod(0o755)
    with postgres(directory / "server") as url:
        yield url
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of an empty catalog."""
    if request.param == "sqlite":
        return str(tmp_path / "catalog.sqlite")
    found = request.getfixturevalue("server")
    if found is None:
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    with sieva.Catalog(found) as catalog:
        catalog.remove("/")
        for collection in catalog.collections():
            catalog.remove_collection(collection.name)
    return found


@pytest.fixture
def spectra(tmp_path):
    """Return a directory of five files, and what is said of each group."""
    directory = tmp_path / "boss"
    (directory / "deep").mkdir(parents=True)
    said = {}
    for plate in range(4000, 4005):
        path = directory / ("deep" if plate % 2 else ".") / f"p{plate}.h5"
        for group, attrs in write_spectra(path, plate).items():
            said[str(path.resolve()), group] = attrs
    (directory / "notes.txt").write_text("no data")
    (directory / "package.json").write_text('{"version": 2, "refs": 1}')
    (directory / ".hidden.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    return directory, said


def test_adding_twice_changes_nothing(url, spectra):
    directory, said = spectra
    with sieva.Catalog(url) as catalog:
        first = catalog.add(directory)
        assert (first.added, first.replaced, first.unchanged) == (5, 0, 0)
        assert first.others == 2
        assert first.objects == 5 * (1 + 1 + 6 + 6)
        assert first.left_out == 30
        assert first.damaged == first.unreadable == []
        before = [catalog.show(info.location) for info in catalog.list()]
        again = catalog.add(directory)
        assert (again.added, again.replaced, again.unchanged) == (0, 0, 5)
        assert [catalog.show(info.location) for info in catalog.list()] == before
        assert {info.location for info in catalog.list()} == {path for path, _ in said}


QUESTIONS = {
    "RADEG = 153.17 AND DECDEG = 23.06": lambda a: a["RADEG"] == 153.17 and a["DECDEG"] == 23.06,
    "RADEG < 152 OR kind = 'sky'": lambda a: a["RADEG"] < 152 or a["kind"] == "sky",
    "fiber BETWEEN 2 AND 4 AND NOT kind = 'star'": lambda a: 2 <= a["fiber"] <= 4 and a["kind"] != "star",
    "kind LIKE 'g%' AND survey = 'boss'": lambda a: a["kind"].startswith("g"),
    "fiber = '1'": lambda _: False,
    "nothing = 1": lambda _: False,
}


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_is_found_is_what_a_walk_finds(url, spectra, text):
    directory, said = spectra
    with sieva.Catalog(url) as catalog:
        catalog.add(directory)
        expected = {(path, f"{group}/flux") for (path, group), a in said.items() if QUESTIONS[text](a)}
        found = catalog.find(text)
        assert {(o.source, o.path) for o in found} == expected
        assert len(found) == len(expected) == catalog.count(text)
        assert {o.kind for o in found} <= {"array"}
        assert catalog.find(text, limit=2) == found[:2]


def test_a_changed_file_is_registered_again_and_keeps_its_tags(url, spectra):
    directory, _ = spectra
    path = directory / "p4000.h5"
    with sieva.Catalog(url) as catalog:
        catalog.add(directory)
        assert catalog.tag(path, "4000/2", {"good": True}, note="7", weight=1.5) == 3
        assert catalog.tag(path, "4000/2", good=True) == 0
        write_spectra(path, 4000, fibers=9)
        os.utime(path, ns=(1, 1))
        report = catalog.add(directory)
        assert (report.added, report.replaced, report.unchanged) == (0, 1, 4)
        (found,) = catalog.find("good = TRUE AND note = '7' AND weight > 1")
        assert (found.source, found.path) == (str(path.resolve()), "4000/2/flux")
        assert len(catalog.find("fiber >= 6")) == 3
        tagged = next(o for o in catalog.show(path)[1] if o.path == "4000/2")
        assert tagged.tags == {"good": True, "note": "7", "weight": 1.5}
        assert catalog.untag(path, "4000/2", "good", "absent") == 1
        assert catalog.find("good = TRUE") == []


def test_a_damaged_file_is_registered_with_its_error(url, spectra):
    directory, _ = spectra
    whole = (directory / "p4000.h5").read_bytes()
    (directory / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with sieva.Catalog(url) as catalog:
        report = catalog.add(directory)
        assert report.added == 6
        ((name, why),) = report.damaged
        assert name.endswith("cut.h5")
        info, objects = catalog.show(name)
        assert info.error == why
        assert why
        assert len(objects) == 1
        assert catalog.add(directory).damaged == []
        (directory / "cut.h5").write_bytes(whole)
        assert catalog.add(directory).replaced == 1
        assert catalog.show(name)[0].error is None


def test_statistics_tell_which_files_could_hold_a_value(url, tmp_path):
    directory = tmp_path / "steps"
    directory.mkdir()
    ranges = {}
    for step in range(0, 40, 4):
        path = directory / f"s{step:02}.nc"
        write_step(path, step)
        values = sieva.open(path).query(None, select=["TEMP"]).read("TEMP")
        ranges[str(path.resolve())] = (np.nanmin(values), np.nanmax(values), np.isnan(values).sum())
    with sieva.Catalog(url) as catalog:
        catalog.add(directory)
        assert set(catalog.could_contain("TEMP", 20)) == set(ranges)
        assert catalog.add(directory, statistics=True).described == 10
        assert catalog.add(directory, statistics=True).described == 0
        for low, high in [(20, None), (None, 3.5), (11.5, 16.25), (1e6, None), (None, None)]:
            expected = {
                path
                for path, (least, greatest, _) in ranges.items()
                if (low is None or greatest >= low) and (high is None or least <= high)
            }
            assert set(catalog.could_contain("TEMP", low, high)) == expected
        for path, (least, greatest, missing) in ranges.items():
            array = next(o for o in catalog.show(path)[1] if o.path == "TEMP")
            known = {"min": float(least), "max": float(greatest), "missing": missing, "count": 5}
            assert array.statistics == known


def test_collections(url, spectra):
    directory, said = spectra
    with sieva.Catalog(url) as catalog:
        catalog.add(directory / "deep", collection="odd")
        catalog.add(directory)
        assert {o.path for o in catalog.find(collection="odd")} == {
            f"{group}/flux" for path, group in said if "/deep/" in path
        }
        assert catalog.collect("all", directory, description="every plate") == 5
        write_spectra(directory / "p4100.h5", 4100)
        catalog.add(directory)
        (everything, odd) = catalog.collections()
        assert (everything.name, everything.description, everything.sources) == ("all", "every plate", 6)
        assert (odd.name, odd.sources) == ("odd", 2)
        catalog.add(directory / "p4000.h5", collection="odd")
        assert catalog.collections()[1].sources == 3
        assert catalog.remove_collection("odd")
        with pytest.raises(errors.UnknownAttribute, match="no collection 'odd'"):
            catalog.find("fiber = 1", collection="odd")
        with pytest.raises(errors.FileNotFound, match="is not in the catalog"):
            catalog.collect("all", directory / "absent.h5")


def test_vanished_files_are_forgotten_when_that_is_asked_for(url, spectra):
    directory, _ = spectra
    gone = directory / "p4000.h5"
    with sieva.Catalog(url) as catalog:
        catalog.add(directory)
        gone.unlink()
        assert catalog.add(directory).unchanged == 4
        assert len(list(catalog.list())) == 5
        assert catalog.prune(directory) == [str(gone.resolve())]
        assert len(list(catalog.list())) == 4
        assert catalog.prune(directory) == []
        with pytest.raises(errors.FileNotFound, match="is not there"):
            catalog.prune(directory / "absent")
        assert catalog.remove(str(directory / "deep") + "/") == 2
        assert catalog.remove(directory / "p4002.h5") == 1
        assert catalog.remove(directory / "p4002.h5") == 0


def test_two_that_add_the_same_do_not_disturb_one_another(url, spectra):
    directory, said = spectra
    raised = []

    def add():
        try:
            with sieva.Catalog(url) as catalog:
                catalog.add(directory)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []
    with sieva.Catalog(url) as catalog:
        assert len(list(catalog.list())) == 5
        assert catalog.count() == len(said)


def test_what_cannot_be(url, tmp_path):
    with sieva.Catalog(url) as catalog:
        with pytest.raises(errors.FileNotFound):
            catalog.add(tmp_path / "absent")
        with pytest.raises(errors.FileNotFound, match="is not in the catalog"):
            catalog.show(tmp_path / "absent")
        with pytest.raises(errors.SyntaxError_):
            catalog.find("RADEG = = 1")
        with pytest.raises(errors.InvalidValue, match="not one of array, group"):
            catalog.find("a = 1", kind="file")
        with pytest.raises(TypeError, match="an int, a float, a str or a bool"):
            catalog.tag(tmp_path, "", {"a": [1]})  # type: ignore[dict-item]
        with pytest.raises(errors.Overflow):
            catalog.tag(tmp_path, "", a=2**64)
    with pytest.raises(errors.InvalidValue, match="is closed"):
        catalog.find("a = 1")


def test_numpy_values_are_tags(tmp_path):
    write_step(tmp_path / "a.nc", 1)
    with sieva.Catalog(tmp_path / "c.sqlite") as catalog:
        catalog.add(tmp_path / "a.nc")
        given = {"i": np.int32(3), "u": 2**64 - 1, "f": np.float32(0.5), "b": np.bool_(1), "s": np.str_("x")}
        catalog.tag(tmp_path / "a.nc", "TEMP", given)
        found = catalog.find("i = 3 AND u = 18446744073709551615 AND f = 0.5 AND b = TRUE AND s = 'x'")
        assert [o.path for o in found] == ["TEMP"]


def test_a_catalog_that_may_only_be_read(tmp_path, spectra):
    directory, _ = spectra
    url = tmp_path / "c.sqlite"
    with pytest.raises(errors.FileNotFound):
        sieva.Catalog(url, read_only=True)
    with sieva.Catalog(url) as catalog:
        catalog.add(directory / "p4000.h5")
    with sieva.Catalog(url, read_only=True) as catalog:
        assert catalog.read_only
        assert catalog.count() == 6
        with pytest.raises(errors.PermissionDenied):
            catalog.add(directory)
        with pytest.raises(errors.PermissionDenied):
            catalog.tag(directory / "p4000.h5", a=1)


def test_the_default_catalog_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.delenv("SIEVA_CATALOG", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert sieva.Catalog().url == str(tmp_path / "data/sieva/catalog.sqlite")
    monkeypatch.setenv("SIEVA_CATALOG", str(tmp_path / "mine.sqlite"))
    assert sieva.Catalog().url == str(tmp_path / "mine.sqlite")


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE INDEX evil ON tags(hex(zeroblob(60000000) || key))"],
        ["CREATE TABLE evil(x DEFAULT (hex(zeroblob(60000000))))"],
        [f"CREATE TABLE evil{i}(x)" for i in range(300)],
    ],
    ids=["index", "default", "many"],
)
def test_expressions_of_a_catalog_file_are_not_run(tmp_path, statements):
    path = tmp_path / "c.sqlite"
    program = "import sieva, sys; print(sieva.Catalog(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True)
    with closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(statement)
    with pytest.raises(sieva.errors.CorruptFile, match=r"that no catalog has|more than 200 tables"):
        sieva.Catalog(path)
