"""Where outputs go: never to what is asked, and never in the place of a device, a pipe or a link."""

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
import threading

import h5netcdf
import h5py
import numpy as np
import pytest
import sieva
import zarr
from sieva import _layout_plan, errors
from sieva.cli import main

REFUSED = "is a file that is asked: it is never changed"
FORMATS = ("csv", "json", "arrow", "netcdf", "zarr")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Make files that can be joined along ``t``, and stand beside them."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        with h5netcdf.File(f"f{number}.nc", "w") as file:
            file.dimensions = {"t": 4}
            file.create_variable("t", ("t",), "f8", data=np.arange(4.0) + 4 * number)
            file.create_variable("v", ("t",), "f8", data=np.array([np.nan, -0.0, np.inf, 1.5]) + number)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", ["f0.nc", "f1.nc", "f2.nc"])
@pytest.mark.parametrize("way", ["name", "link", "hard link"])
@pytest.mark.parametrize("kind", FORMATS)
def test_no_file_of_a_joined_source_is_written_to(files, name, way, kind):
    target = name
    if way == "link":
        (files / "other").symlink_to(name)
        target = "other"
    elif way == "hard link":
        (files / "other").hardlink_to(name)
        target = "other"
    before = contents(files)
    query = sieva.open(["f0.nc", "f1.nc", "f2.nc"]).query("v > 1")
    with pytest.raises(sieva.errors.InvalidValue, match=REFUSED):
        query._write(target, kind)
    assert contents(files) == before


@pytest.mark.usefixtures("files")
def test_an_output_of_a_joined_source_is_written_again():
    query = sieva.open("f*.nc").query("v > 1", select=["v"])
    for _ in range(2):
        query.to_netcdf("out.cdf", "points")
        with h5netcdf.File("out.cdf") as out:
            assert np.asarray(out.variables["v"]).tobytes() == query.read("v").tobytes()


def test_the_source_of_a_subquery_is_not_written_to(files):
    query = sieva.sql("SELECT v FROM 'f0.nc' WHERE v < (SELECT max(v) FROM 'f1.nc')")
    before = contents(files)
    with pytest.raises(sieva.errors.InvalidValue, match=REFUSED):
        query.to_csv("f1.nc")
    assert contents(files) == before


@pytest.mark.parametrize("references", ["set.json", "set.parq"])
def test_what_a_reference_set_leads_to_is_not_written_to(files, references):
    sieva.open("f0.nc").to_references(references)
    before = contents(files)
    with pytest.raises(sieva.errors.InvalidValue, match=REFUSED):
        sieva.open(references).query("v > 1").to_csv("f0.nc")
    assert contents(files) == before


def test_a_template_of_a_reference_set_is_filled_in(files):
    sieva.open("f0.nc").to_references("set.json")
    known = json.loads((files / "set.json").read_text())
    for value in known["refs"].values():
        if isinstance(value, list):
            value[0] = "{{u}}"
    (files / "set.json").write_text(json.dumps({**known, "templates": {"u": "f0.nc"}}))
    before = contents(files)
    with pytest.raises(sieva.errors.InvalidValue, match=REFUSED):
        sieva.open("set.json").query("v > 1").to_csv("f0.nc")
    assert contents(files) == before


def test_references_are_not_written_over_their_source(files):
    (files / "f0.nc").rename(files / "f0.json")
    before = contents(files)
    with pytest.raises(sieva.errors.InvalidValue, match=REFUSED):
        sieva.open("f0.json").to_references("f0.json")
    assert contents(files) == before


def test_nothing_is_written_into_a_directory_that_is_asked(files):
    sieva.open("f0.nc").query("v > 1").to_zarr("a.zarr")
    query = sieva.open("a.zarr").query("v > 1")
    for target in ("a.zarr", "a.zarr/new.csv"):
        with pytest.raises(sieva.errors.InvalidValue, match=REFUSED):
            query.to_csv(target)
    assert not (files / "a.zarr" / "new.csv").exists()


def test_a_selection_takes_the_place_of_a_selection_alone(files):
    selection = sieva.open("f0.nc").query("v > 1").selection()
    before = contents(files)
    with pytest.raises(sieva.errors.InvalidValue, match="a file of something else than a selection"):
        selection.save("f0.nc")
    assert contents(files) == before
    os.mkfifo("pipe")
    with pytest.raises(sieva.errors.InvalidValue, match="it is no regular file"):
        selection.save("pipe")
    assert (files / "pipe").is_fifo()
    for _ in range(2):
        selection.save("kept.sel")
    assert sieva.Selection.load("kept.sel") == selection


def test_a_picture_is_not_drawn_over_what_is_asked(files, capsys):
    (files / "f0.nc").rename(files / "f0.svg")
    before = contents(files)
    assert main(["explain", "SELECT v FROM 'f0.svg'", "--plot", "f0.svg"]) == 1
    assert REFUSED in capsys.readouterr().err
    assert contents(files) == before


def test_statements_of_a_file_do_not_write_over_each_others_data(files, capsys):
    (files / "out").mkdir()
    (files / "f1.nc").rename(files / "out/1.csv")
    before = contents(files / "out")
    (files / "q.sql").write_text("SELECT v FROM 'f0.nc'; SELECT v FROM 'out/1.csv'")
    assert main(["query", "-f", "q.sql", "-o", "out"]) == 1
    assert REFUSED in capsys.readouterr().err
    assert contents(files / "out") == before


def test_a_link_is_replaced_and_what_it_leads_to_stays(files):
    query = sieva.open("f0.nc").query("v > 1", select=["v"])
    (files / "far").mkdir()
    (files / "far" / "real.csv").write_text("old")
    (files / "link.csv").symlink_to("far/real.csv")
    (files / "new.csv").symlink_to("far/fresh.csv")
    for link in ("link.csv", "new.csv"):
        query.to_csv(link)
        assert not (files / link).is_symlink()
        assert (files / link).read_text() == "v\ninf\n1.5\n"
    assert (files / "far" / "real.csv").read_text() == "old"
    assert sorted(contents(files / "far")) == ["real.csv"]


@pytest.mark.parametrize("kind", ["csv", "json", "arrow"])
def test_rows_go_through_a_pipe(files, kind):
    os.mkfifo("pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((files / "pipe").read_bytes()))
    reader.start()
    query = sieva.open("f0.nc").query("v > 1", select=["v"])
    query._write("pipe", kind)
    reader.join(30)
    assert (files / "pipe").is_fifo()
    if kind == "csv":
        assert got == [b"v\ninf\n1.5\n"]
    assert len(got[0]) > 0


@pytest.mark.parametrize("kind", ["parquet", "netcdf", "hdf5", "zarr", "bp"])
def test_a_pipe_is_not_replaced_by_a_file(files, kind):
    os.mkfifo("pipe")
    query = sieva.open("f0.nc").query("v > 1")
    with pytest.raises(sieva.errors.InvalidValue, match="a device, a pipe or a socket"):
        query._write("pipe", kind)
    assert (files / "pipe").is_fifo()


@pytest.mark.usefixtures("files")
def test_a_picture_is_a_whole_svg_or_none(capsys):
    os.mkfifo("pipe.svg")
    for target, wrong in (
        ("", "is empty"),
        ("a.png", "SVG"),
        ("pipe.svg", "a pipe"),
        ("no/a.svg", "no directory"),
    ):
        assert main(["explain", "SELECT v FROM 'f0.nc'", "--plot", target]) == 1
        out, err = capsys.readouterr()
        assert (out, wrong in err) == ("", True)
    assert "\\u{1b}" in _layout_plan._text(0, 0, "a\x1bb\udcff", "start")


PROGRAM = """
import gc, resource, signal, sys
import sieva
import zarr
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
query = sieva.open("big.h5").query("v > 0.1", select=["v"])
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    getattr(query, sys.argv[1])("out", sys.argv[2])
except sieva.errors.IoError as error:
    print(error)
del query
gc.collect()
print("alive")
"""


@pytest.mark.parametrize("layout", ["grid", "points", "columns"])
@pytest.mark.parametrize("method", ["to_netcdf", "to_hdf5"])
def test_a_disk_that_is_full_is_an_error_alone(files, method, layout):
    with h5py.File("big.h5", "w") as file:
        file["v"] = np.random.default_rng(1).random((50, 1000))
    before = set(contents(files))
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, method, layout],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.stdout == "cannot write 'out': File too large\nalive\n"
    assert (told.returncode, told.stderr) == (0, "")
    assert set(contents(files)) == before


def test_a_full_disk_leaves_nothing_of_zarr(tmp_path, monkeypatch):
    whole, remove, at_work = zarr.storage.LocalStore._set, shutil.rmtree, []

    async def full(self, key, *arguments, **options):
        if key == "x/c/0":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if "/c/" in key:
            # Chunks that are still written when another one could not be.
            await asyncio.sleep(0.2)
        return await whole(self, key, *arguments, **options)

    def removed(*arguments, **options):
        if str(arguments[0]).endswith(".part"):
            at_work.extend(task for task in asyncio.all_tasks(zarr.core.sync.loop[0]) if not task.done())
        return remove(*arguments, **options)

    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("x", data=np.arange(64.0), chunks=(8,))
    query = sieva.open(tmp_path / "in.h5").sql("SELECT x")
    monkeypatch.setattr(zarr.storage.LocalStore, "_set", full)
    monkeypatch.setattr(shutil, "rmtree", removed)
    with pytest.raises(errors.IoError, match="No space left on device"):
        query.to_zarr(tmp_path / "out.zarr", "grid")
    # They would make files in what is removed.
    assert at_work == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.h5"]
