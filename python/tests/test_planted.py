"""What somebody else puts beside a file, or in the way of what is written there."""

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from index_files import energy_of, write
from sieva import _native, errors
from sieva._output import format_of, write_file
from sieva._output.atomic import replacing

NOBODY = 65534
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")

# All that is loaded lazily is loaded as root, who may read this Python; then another user asks.
ASK = """
import os, sys, sieva
def asked():
    source = sieva.open(sys.argv[1], learn=False)
    print(source.query("energy > 3.21").count())
    return source
asked().index_status()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
source = asked()
for note in source.index_status().notes:
    print(note)
"""


@pytest.fixture
def path(tmp_path):
    """Return the path of a file without indexes."""
    write(tmp_path / "data.h5")
    return tmp_path / "data.h5"


@pytest.fixture
def reached():
    """Return a directory that other users come to; those of pytest are one user's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def hits(path):
    return int((energy_of(path) > 3.21).sum())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def give(path, user):
    """Make a directory with all that is in it another user's."""
    for inner in [path, *path.rglob("*")]:
        os.chown(inner, user, user)


@ROOT
def test_a_store_of_somebody_else_changes_no_answer(path, tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path / "cache"))
    # A store of a file that differs in bytes that no fingerprint has.
    other = tmp_path / "other" / path.name
    other.parent.mkdir()
    zeroed_between_samples(path, other)
    sieva.open(other).build_index("energy")
    planted = path.with_name("data.h5.sieva")
    shutil.move(f"{other}.sieva", planted)
    assert sieva.open(path).query("energy > 3.21").count() != hits(path)  # of our own making: believed
    give(planted, NOBODY)
    source = sieva.open(path)
    assert source.query("energy > 3.21").count() == hits(path)
    note = "it belongs to user 65534, who is neither you, nor root, nor the source's owner: not used"
    assert any(note in told for told in source.index_status().notes)
    assert note in source.query("energy > 3.21").explain()
    # What is built goes to our own store, and is used.
    before = sorted(planted.iterdir())
    assert source.build_index("energy").regions_built > 0
    status = source.index_status()
    assert status.exists
    assert status.store.is_relative_to(tmp_path / "cache" / "stores")
    assert (mode(status.store), mode(tmp_path / "cache")) == (0o700, 0o700)
    assert source.query("energy > 3.21", access="bitmap").count() == hits(path)
    assert sorted(planted.iterdir()) == before


def zeroed_between_samples(path, other):
    """Copy a file, with zeros in "energy" wherever no sample of a fingerprint lies."""
    with h5py.File(path) as file:
        start, count = file["energy"].id.get_offset(), file["energy"].size * 4
    data = np.frombuffer(path.read_bytes(), "u1").copy()
    kept = np.zeros(len(data), bool)
    for i in range(16):
        first = (len(data) - 4096) * i // 15
        kept[first : first + 4096] = True
    kept[:start] = kept[start + count :] = True
    data[~kept] = 0
    other.write_bytes(data.tobytes())
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))


@ROOT
def test_the_store_of_the_owner_serves_others_who_have_their_own(reached):
    path = reached / "data.h5"
    write(path)
    sieva.open(path).build_index("energy")
    home = reached / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}

    def ask(*extra):
        command = [sys.executable, "-c", ASK + "; ".join(extra), str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[1:]

    assert ask("print(source.index_status().store)") == [str(hits(path)), f"{path}.sieva"]
    # Not the owner's: builds in a store of one's own.
    built = ask('source.build_index("x")', "print(source.index_status().store)")
    assert built[0] == str(hits(path))
    assert built[-1].startswith(str(home / ".cache" / "sieva" / "stores"))
    assert mode(home / ".cache") == 0o700


@pytest.mark.parametrize(
    ("bits", "file", "folder"), [(0o600, 0o600, 0o700), (0o640, 0o640, 0o750), (0o644, 0o644, 0o755)]
)
def test_a_store_is_readable_as_its_source_is(path, bits, file, folder):
    path.chmod(bits)
    source = sieva.open(path)
    source.build_index("energy")
    source.build_index("energy", kinds=["sorted"], columns=["x"])
    source.calibrate()
    store = path.with_name("data.h5.sieva")
    kinds = set()
    for inner in [store, *store.rglob("*")]:
        expected = folder if inner.is_dir() else file
        assert mode(inner) == (0o600 if inner.name == "lock" else expected), inner
        assert inner.stat().st_gid == path.stat().st_gid
        kinds.add(inner.suffix)
    assert {".json", ".seg", ".zarr"} <= kinds


def test_what_scans_leave_is_readable_as_its_source_is(path):
    path.chmod(0o600)
    with sieva.open(path, learn=True) as source:
        source.query("energy > 3.21").count()
    for inner in [path.with_name("data.h5.sieva")]:
        assert not inner.exists() or mode(inner) == 0o700


def test_a_query_that_does_not_learn_writes_nothing(path, tmp_path, monkeypatch):
    monkeypatch.setenv("SIEVA_CACHE", str(tmp_path / "cache"))
    sieva.open(path).build_index("energy")
    store = path.with_name("data.h5.sieva")
    victim = tmp_path / "victim"
    victim.write_text("precious")

    def state():
        inner = sorted(tmp_path.rglob("*"))
        return [(str(i), i.lstat().st_mtime_ns, i.lstat().st_ino) for i in [tmp_path, *inner]]

    def ask(**options):
        with sieva.open(path, **options) as source:
            for bound in np.linspace(0, 5, 40):
                source.query(f"energy > {bound}").count()

    host = f"host-{os.uname().nodename}.json"
    (store / host).symlink_to(victim)
    before = state()
    ask(learn=False)
    assert state() == before
    ask()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("what", ["manifest.json", "lock", "host"])
def test_pipes_in_a_store_are_no_obstacle(path, what):
    sieva.open(path).build_index("energy")
    store = path.with_name("data.h5.sieva")
    name = f"host-{os.uname().nodename}.json" if what == "host" else what
    (store / name).unlink(missing_ok=True)
    os.mkfifo(store / name, 0o600)
    with sieva.open(path) as source:
        assert source.query("energy > 3.21").count() == hits(path)


def test_a_lock_that_is_held_ends_a_build_and_no_query(path):
    sieva.open(path).build_index("energy")
    with path.with_name("data.h5.sieva").joinpath("lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with sieva.open(path) as source:
            assert source.query("energy > 3.21").count() == hits(path)
            # Not every file system lets the kernel say whose lock it is.
            holder = rf"(process {os.getpid()} \(.*\)|another process)"
            with pytest.raises(errors.IoError, match=f"held by {holder}, and was waited for 0.1 s"):
                source.build_index("x", lock_timeout=0.1)
    assert sieva.open(path).build_index("x").regions_built > 0


@pytest.mark.parametrize("suffix", ["csv", "json", "arrow", "parquet", "nc", "h5", "zarr"])
def test_a_link_in_the_way_of_an_output_is_not_followed(ocean, tmp_path, suffix):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    target = tmp_path / "out" / f"o.{suffix}"
    target.parent.mkdir()
    for name in (f".{target.name}.{os.getpid()}.part", f".{target.name}.{os.getpid()}", target.name):
        (target.parent / name).symlink_to(victim)
    query = ocean.query("TEMP > 20", select=["TEMP"])
    old = os.umask(0o027)
    try:
        write_file(query, target, format_of(target))
    finally:
        os.umask(old)
    assert victim.read_text() == "precious"
    assert not target.is_symlink()
    assert mode(target) == (0o750 if target.is_dir() else 0o640)
    assert sorted(p.name for p in target.parent.iterdir() if not p.is_symlink()) == [target.name]


def test_a_link_in_the_way_of_a_selection_or_references_is_not_followed(ocean, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    pid = os.getpid()
    for name in (f"s.{pid}.part", f".r.json.{pid}", f".r.parq.{pid}.part", "s.sel", "r.json"):
        (tmp_path / name).symlink_to(victim)
    selection = ocean.query("TEMP > 20").selection()
    selection.save(tmp_path / "s.sel")
    ocean.to_references(tmp_path / "r.json")
    ocean.to_references(tmp_path / "r.parq")
    assert victim.read_text() == "precious"
    assert type(selection).load(tmp_path / "s.sel") == selection
    assert sieva.open(tmp_path / "r.json", external=[Path(ocean.path).parent]).query(
        "TEMP > 20"
    ).count() == len(selection)
    os.mkfifo(tmp_path / "p.sel")
    with pytest.raises(errors.IoError, match="not a regular file"):
        type(selection).load(tmp_path / "p.sel")


def test_while_it_is_written_an_output_is_of_this_user_alone(tmp_path):
    target = tmp_path / "o.csv"
    with replacing(target) as aside:
        (private,) = tmp_path.iterdir()
        assert mode(private) == 0o700
        assert private.name.startswith(".o.csv.")
        # Somebody who may write to the directory puts another in its place.
        private.rename(tmp_path / "away")
        private.mkdir()
        aside.write_text("x")
        assert list(private.iterdir()) == []
    assert target.read_text() == "x"


@pytest.mark.parametrize("kind", ["zonemap", "bitmap", "sorted"])
@pytest.mark.parametrize("at", [7, 150_001, 299_990])
def test_verification_finds_what_no_fingerprint_has(path, kind, at):
    energy = energy_of(path)
    sieva.open(path).build_index("energy", kinds=[kind])
    assert sieva.open(path).verify_index(all=True)
    before = path.stat()
    with h5py.File(path) as file:
        offset = file["energy"].id.get_offset() + 4 * at
    samples = [(before.st_size - 4096) * i // 15 for i in range(16)]
    if any(first - 4 < offset < first + 4096 for first in samples):
        offset += 4 * 2048
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(np.float32(energy.max() + 1).tobytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    source = sieva.open(path)
    assert not source.index_status().stale
    report = source.verify_index(all=True)
    assert not report
    told = "the data are not those" if kind != "sorted" else "is not what the source has"
    assert any(told in difference for difference in report.differences), report


def test_what_scans_left_is_verified_as_well(tmp_path):
    path = tmp_path / "data.h5"
    energy = np.linspace(0, 1, 1 << 22, dtype="f4")
    with h5py.File(path, "w") as file:
        file["energy"] = energy
        offset = file["energy"].id.get_offset() + 4 * 2_500_001
    with sieva.Source(_native.Source.open([str(path)], {"learn": (1e9, 0)})) as source:
        assert source.query("energy > 0.75").count() == (energy > 0.75).sum()
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(np.float32(7).tobytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    report = sieva.open(path).verify_index(all=True)
    assert any("its statistics are not those of the data" in one for one in report.differences), report


def test_a_file_that_took_the_name_of_an_open_one_is_noticed(ocean_path, tmp_path):
    for isolated in (False, True):
        path, other = tmp_path / "a.nc", tmp_path / "b.nc"
        shutil.copy2(ocean_path, path)
        shutil.copy2(ocean_path, other)
        source = sieva.open(path, isolated=isolated)
        assert source.query("TEMP > 20").count() > 0
        other.replace(path)
        with pytest.raises(errors.StaleSource, match="was changed since it was opened"):
            source.query("TEMP > 20").count()


@ROOT
@pytest.mark.parametrize("end", ["-wal", "-journal", "-shm"])
def test_a_log_that_somebody_put_beside_a_catalog_is_refused(tmp_path, end):
    """SQLite takes over what a log says, and in /tmp everybody may make one."""
    path = tmp_path / "c.sqlite"
    with sieva.Catalog(path) as catalog:
        catalog.add(tmp_path)
    planted = tmp_path / f"c.sqlite{end}"
    planted.write_bytes(b"")
    os.chown(planted, NOBODY, NOBODY)
    for options in ({}, {"read_only": True}):
        with pytest.raises(errors.PermissionDenied, match="belongs to user 65534, who may not write"):
            sieva.Catalog(path, **options)
    # Of a catalog into which others may write, they make logs.
    path.chmod(0o666)
    planted.chmod(0o666)
    with sieva.Catalog(path) as catalog:
        assert list(catalog.list()) == []


def test_stores_of_two_sources_never_share_a_name(tmp_path):
    """Names come of SHA-256: a hash that can be made to collide would let one file pass for another."""
    store = tmp_path / "stores"
    names = set()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "data.h5")
        source = sieva.open(tmp_path / folder / "data.h5", store=store)
        source.build_index("energy", kinds=["zonemap"])
        names.add(source.index_status().store.name)
    assert len(names) == 2
    assert all(len(name) == len("data.h5-.sieva") + 32 for name in names)
