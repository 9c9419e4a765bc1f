"""Sources that are opened by what the catalog knows: the same answers, and nothing parsed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sieva
from catalog_files import write_spectra, write_step
from sieva import _adios, errors


@pytest.fixture
def steps(tmp_path):
    """Return a directory of 60 time steps, and a catalog that knows them."""
    directory = tmp_path / "steps"
    directory.mkdir()
    for step in range(60):
        write_step(directory / f"s{step:02}.nc", step)
    with sieva.Catalog(tmp_path / "c.sqlite") as catalog:
        catalog.add(directory)
        yield directory, catalog


def _same(known, plain, condition):
    assert known.schema().to_json() == plain.schema().to_json()
    for access in ("auto", "scan"):
        a, b = (
            s.query(condition, select=["time", "x", "TEMP", "SALT"], access=access) for s in (known, plain)
        )
        assert a.count() == b.count()
        for name in ("time", "x", "TEMP", "SALT"):
            assert np.array_equal(
                np.asarray(a.read(name), "f8").view("u8"), np.asarray(b.read(name), "f8").view("u8")
            )


CONDITIONS = [
    "TEMP > 30.5",
    "TEMP > 1000",
    "SALT < 3 OR TEMP BETWEEN 40 AND 41.5",
    "NOT TEMP > 3",
    "TEMP IS NULL",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("statistics", [False, True])
def test_known_files_answer_as_they_do_without_the_catalog(steps, condition, statistics):
    directory, catalog = steps
    plain = sieva.open(directory / "*.nc", store=directory / "none", learn=False)
    if statistics:
        catalog.add(directory, statistics=True)
    known = sieva.open(directory / "*.nc", catalog=catalog, learn=False)
    _same(known, plain, condition)
    one = [sieva.open(directory / "s07.nc", catalog=c, learn=False) for c in (catalog, None)]
    _same(*one, condition)


def test_files_that_cannot_hold_a_hit_are_not_looked_at(steps):
    directory, catalog = steps
    catalog.add(directory, statistics=True)
    known = sieva.open(directory / "*.nc", catalog=catalog, store=directory / "none", learn=False)
    query = known.query("TEMP > 58")
    expected = (
        sieva.open(directory / "*.nc", store=directory / "none", learn=False).query("TEMP > 58").count()
    )
    assert query.count() == expected > 0
    stats = query.stats()
    assert 0 < stats["tiles_scanned"] < 10
    assert stats["tiles_skipped"] > 50


def test_an_outline_costs_no_read(steps):
    directory, catalog = steps
    known = sieva.open(directory / "*.nc", catalog=catalog)
    assert known["TEMP"].shape == (60, 5)
    descriptors = Path("/proc/self/fd").iterdir() if sys.platform == "linux" else []
    opened = [os.path.realpath(fd) for fd in descriptors]
    assert not [name for name in opened if name.startswith(str(directory))]
    query = known.query("time > 1e9")
    assert query.count() == 0
    assert query.stats()["bytes_read"] == 0


def test_changed_files_are_opened_really_and_the_catalog_stays(steps):
    directory, catalog = steps
    catalog.add(directory, statistics=True)
    before = [catalog.show(info.location) for info in catalog.list()]
    write_step(directory / "s05.nc", 5000)
    plain = sieva.open(directory / "*.nc", store=directory / "none", learn=False)
    known = sieva.open(directory / "*.nc", catalog=catalog, learn=False)
    assert known.query("TEMP > 4000").count() == plain.query("TEMP > 4000").count() > 0
    _same(known, plain, "TEMP > 40")
    assert [catalog.show(info.location) for info in catalog.list()] == before


def test_a_file_that_changes_after_opening_is_noticed(steps):
    directory, catalog = steps
    known = sieva.open(directory / "*.nc", catalog=catalog, learn=False)
    write_step(directory / "s05.nc", 7)
    with pytest.raises(errors.StaleSource):
        known.query("TEMP > 0").count()


def test_a_reregistered_file_does_not_lend_its_statistics_to_an_open_source(steps):
    directory, catalog = steps
    catalog.add(directory, statistics=True)
    known = sieva.open(directory / "*.nc", catalog=catalog, store=directory / "none", learn=False)
    write_step(directory / "s59.nc", -500)
    catalog.add(directory, statistics=True)
    with pytest.raises(errors.StaleSource):
        known.query("TEMP > 58").count()


def test_files_that_are_gone_are_missed(steps):
    directory, catalog = steps
    names = [directory / f"s{step:02}.nc" for step in range(10)]
    names[3].unlink()
    with pytest.raises(errors.FileNotFound):
        sieva.open(names, catalog=catalog)


def test_the_catalog_is_given_in_several_ways(steps, monkeypatch):
    directory, catalog = steps
    monkeypatch.setenv("SIEVA_CATALOG", catalog.url)
    for way in (catalog, catalog.url, True, False, None):
        assert sieva.open(directory / "*.nc", catalog=way)["TEMP"].shape == (60, 5)
    with pytest.raises(TypeError, match="expected a Catalog"):
        sieva.open(directory / "*.nc", catalog=3)  # type: ignore[arg-type]
    with pytest.raises(errors.FileNotFound):
        sieva.open(directory / "*.nc", catalog=directory / "absent.sqlite")
    # What a user says of dimensions is not in the catalog.
    path = directory / "p.h5"
    write_spectra(path, 1)
    catalog.add(path)
    given = sieva.open(path, catalog=catalog, dims={"1/0/flux": ["wave"]})
    assert given["1/0/flux"].dims == ("wave",)


LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    # The byte that all who use the database hold together (walformat: DMS).
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
"""


def test_a_catalog_among_what_it_registers_keeps_its_locks(tmp_path):
    directory = tmp_path / "steps"
    directory.mkdir()
    for step in range(5):
        write_step(directory / f"s{step}.nc", step)
    path = directory / "c.sqlite"

    def others_may_take_it():
        command = [sys.executable, "-c", LOCK, f"{path}-shm"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    with sieva.Catalog(path) as catalog:
        report = catalog.add(directory)
        assert report.added == 5
        assert not others_may_take_it()
        for name in ("c.sqlite", "c.sqlite-wal", "c.sqlite-shm"):
            with pytest.raises(errors.SievaError, match="catalog that is open"):
                sieva.open(directory / name)
        assert not others_may_take_it()
        assert len(list(catalog.list())) == 5
    # Closed, it is a file as others.
    with pytest.raises(errors.UnknownFormat):
        sieva.open(path)


def test_a_catalog_that_is_open_is_not_looked_into_as_data(tmp_path, monkeypatch):
    """When a file is closed, all locks of the process on it are gone."""

    def refuse(*_, **__):
        raise AssertionError("it was opened")

    def is_looked_into(name):
        with monkeypatch.context() as patched:
            patched.setattr("builtins.open", refuse)
            try:
                return _adios.is_adios(str(tmp_path / name))
            except AssertionError:
                return True

    for name in ("other-wal", "other.bp"):
        (tmp_path / name).write_bytes(b"data")
    with sieva.Catalog(tmp_path / "c.sqlite"):
        (tmp_path / "linked.bp").hardlink_to(tmp_path / "c.sqlite")
        (tmp_path / "named.bp").symlink_to("c.sqlite")
        assert not any(map(is_looked_into, ("c.sqlite", "linked.bp", "named.bp")))
        # A name that a file of a database might have tells nothing.
        assert all(map(is_looked_into, ("other-wal", "other.bp")))
    assert is_looked_into("linked.bp")
