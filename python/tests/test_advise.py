"""``sieva advise``: what queries leave behind, what follows from it, and what it never disturbs."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva
from sieva import _native
from test_cli import run

N = 400_000
HOT = "hot BETWEEN 0.10 AND 0.12"


def write(path, seed=1):
    """Write a clustered array, one of noise, and one that nobody asks."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        file["hot"] = rng.random(N).astype("f4")
        file["warm"] = np.sort(rng.random(N))
        file["cold"] = rng.random(N).astype("f4")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a directory with a source, whose queries are noted in a catalog beside it."""
    monkeypatch.setenv("SIEVA_CATALOG", str(tmp_path / "catalog.sqlite"))
    monkeypatch.delenv("SIEVA_LEARN", raising=False)
    monkeypatch.delenv("SIEVA_STORE", raising=False)
    write(tmp_path / "a.h5")
    return tmp_path


def ask(path, condition=HOT, times=3):
    """Ask a condition; return the stats and the answer of the last time."""
    for _ in range(times):
        query = sieva.open(path).query(condition)
        selection = query.selection()
    assert _native.flush_usage(10)
    return query.stats(), selection.coords()[:, 0]


def notes(place, where="1"):
    with closing(sqlite3.connect(place / "catalog.sqlite")) as db:
        names = ("location", "path", "operation", "condition", "selectivity", "seconds", "bytes_read")
        found = db.execute(f"SELECT {', '.join(names)} FROM usage WHERE {where} ORDER BY id").fetchall()
    return [dict(zip(names, row, strict=True)) for row in found]


def slow(place, seconds=1.0, where="1"):
    """Let the notes say that queries took longer than they did."""
    with closing(sqlite3.connect(place / "catalog.sqlite")) as db, db:
        db.execute(f"UPDATE usage SET seconds = {seconds} WHERE {where}")


def chosen(advice, verdict="build"):
    return {(item.array, item.kind) for item in advice.items if item.verdict == verdict}


def stored_bytes(path):
    status = sieva.open(path, learn=False).index_status()
    arrays = sum(a.zonemap_bytes + a.bitmap_bytes for a in status.arrays)
    return arrays + sum(r.bytes for r in status.replicas)


def truth(path, low=0.10, high=0.12):
    with h5py.File(path) as file:
        hot = file["hot"][:].astype("f8")
    return np.flatnonzero((hot >= low) & (hot <= high))


def test_queries_leave_notes(place):
    source = sieva.open(place / "a.h5")
    source.query(HOT).count()
    query = source.query(f"{HOT} AND warm > 0.5")
    hits = query.count()
    query.read("cold")
    assert _native.flush_usage(10)
    # What counting found is read at: the condition is evaluated once.
    first, *second, read = notes(place)
    assert (first["location"], first["path"]) == (str(place / "a.h5"), "hot")
    assert first["operation"] == "count"
    asked = json.loads(first["condition"])
    assert (asked["way"], asked["in"], asked["alone"]) == (
        "scan",
        [pytest.approx([0.10, 0.12], abs=1e-6)],
        True,
    )
    assert first["selectivity"] == len(truth(place / "a.h5")) / N
    assert first["seconds"] > 0
    assert first["bytes_read"] == N * 4
    assert [n["path"] for n in second] == ["hot", "warm"]
    assert json.loads(second[0]["condition"])["with"] == ["warm"]
    # float64 is twice as wide.
    assert [json.loads(n["condition"])["share"] for n in second] == [0.333, 0.667]
    assert second[0]["selectivity"] == hits / N
    assert (read["operation"], read["path"]) == ("read", "cold")


def test_the_hot_array_is_advised_and_built(place):
    before, rows = ask(place / "a.h5")
    assert (before["by_bitmap"], before["by_replica"]) == (0, 0)
    ask(place / "a.h5", "cold > 2", times=1)
    slow(place, 2.0, "path = 'hot'")
    slow(place, 1e-6, "path = 'cold'")
    advice = sieva.advise(place)
    assert ("hot", "bitmap") in chosen(advice) or ("hot", "sorted") in chosen(advice)
    assert {array for array, _ in chosen(advice)} == {"hot"}
    assert 0 < advice.saves_seconds <= 6.0
    assert advice.saves_seconds <= advice.bound_seconds
    done = advice.apply()
    assert {(d.array, d.kind) for d in done if d.what == "built"} == chosen(advice)
    after, again = ask(place / "a.h5", times=1)
    assert after["by_bitmap"] + after["by_replica"] > 0
    assert after["bytes_read"] < before["bytes_read"]
    np.testing.assert_array_equal(again, rows)
    np.testing.assert_array_equal(again, truth(place / "a.h5"))
    settled = sieva.advise(place)
    assert not settled, repr(settled)
    assert settled.apply() == []
    with closing(sqlite3.connect(place / "catalog.sqlite")) as db:
        recorded = db.execute("SELECT path, kind, bytes, seconds FROM augmentations").fetchall()
    # Beside a bitmap there are zone maps.
    assert {(path, kind) for path, kind, *_ in recorded} >= {(d.array, d.kind) for d in done}
    assert all(size > 0 and seconds > 0 for *_, size, seconds in recorded)


def test_pruning_is_advised_where_it_is_enough(place):
    ask(place / "a.h5", "warm < 0.01")
    slow(place, 2.0)
    advice = sieva.advise(place / "a.h5", budget="64KiB")
    assert (advice.items[0].array, advice.items[0].kind) == ("warm", "zonemap")
    assert {array for array, _ in chosen(advice)} == {"warm"}
    assert ("warm", "sorted") not in chosen(advice)
    advice.apply()
    stats, rows = ask(place / "a.h5", "warm < 0.01", times=1)
    assert stats["tiles_skipped"] > 0
    with h5py.File(place / "a.h5") as file:
        np.testing.assert_array_equal(rows, np.flatnonzero(file["warm"][:] < 0.01))


@pytest.mark.parametrize("budget", [1, 1000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000])
def test_the_budget_is_kept(place, budget):
    ask(place / "a.h5")
    ask(place / "a.h5", "warm > 0.3 AND cold < 0.6", times=1)
    slow(place, 3.0)
    advice = sieva.advise(budget=budget)
    assert advice.bytes_then <= budget
    advice.apply()
    assert stored_bytes(place / "a.h5") <= budget
    later = sieva.advise(budget=budget)
    assert later.bytes_now == stored_bytes(place / "a.h5")
    assert not chosen(later, "evict")


def test_what_is_not_used_is_removed_where_room_is_needed(place):
    sieva.open(place / "a.h5", learn=False).build_index("cold", "hot", kinds=["bitmap"])
    sieva.open(place / "a.h5", learn=False).build_index("cold", kinds=["sorted"], columns=[])
    ask(place / "a.h5")
    slow(place, 3.0)
    there = sieva.open(place / "a.h5").index_status()
    hot = next(a for a in there.arrays if a.path == "hot")
    budget = hot.bitmap_bytes + hot.zonemap_bytes + 5000
    assert not chosen(sieva.advise(place), "evict")
    advice = sieva.advise(place, budget=budget)
    assert chosen(advice, "evict") >= {("cold", "bitmap"), ("cold", "sorted")}
    assert ("hot", "bitmap") in chosen(advice, "keep")
    done = advice.apply()
    assert {d.what for d in done} == {"removed"}
    assert stored_bytes(place / "a.h5") <= budget
    after = {a.path: a for a in sieva.open(place / "a.h5").index_status().arrays}
    assert after["hot"] == hot
    assert "cold" not in after or after["cold"].bitmap_bytes == 0
    # What is left is whole, and is what was there.
    assert sieva.open(place / "a.h5").verify_index(True)
    stats, rows = ask(place / "a.h5", times=1)
    assert stats["by_bitmap"] > 0
    np.testing.assert_array_equal(rows, truth(place / "a.h5"))


def test_pins_and_forbids(place):
    ask(place / "a.h5")
    slow(place, 3.0)
    at = place / "a.h5"
    assert (
        run("advise", "--pin", f"{at}:cold=sorted", "--forbid", f"{at}:hot=bitmap", cwd=place).returncode == 0
    )
    assert run("advise", "--forbid", f"{at}:hot=sorted", cwd=place).returncode == 0
    shown = json.loads(run("advise", "--rules", "--json", cwd=place).stdout)
    assert {(r["array"], r["kind"], r["pinned"]) for r in shown} == {
        ("cold", "sorted", True), ("hot", "bitmap", False), ("hot", "sorted", False),
    }  # fmt: skip
    advice = sieva.advise(place, budget=1)
    assert chosen(advice) == {("cold", "sorted")}
    advice.apply()
    assert [r.key for r in sieva.open(at).index_status().replicas] == ["cold"]
    assert not chosen(sieva.advise(place, budget=1), "evict")
    # What is forbidden goes, whatever it saves.
    sieva.open(at, learn=False).build_index("hot", kinds=["bitmap"])
    assert ("hot", "bitmap") in chosen(sieva.advise(place), "evict")
    run("advise", "--free", f"{at}:hot=bitmap", "--free", f"{at}:cold=sorted", cwd=place)
    freed = sieva.advise(place)
    assert ("hot", "bitmap") in chosen(freed, "keep")


def test_an_empty_log(place):
    sieva.open(place / "a.h5", learn=False).query(HOT).count()
    assert _native.flush_usage(10)
    with pytest.raises(sieva.errors.FileNotFound):
        sieva.advise(place)
    ask(place / "a.h5", times=1)
    elsewhere = sieva.advise(place / "b.h5")
    assert (elsewhere.items, elsewhere.uses, bool(elsewhere)) == ([], 0, False)
    assert "nothing to build or remove" in repr(elsewhere)


def test_sources_that_changed_or_went(place):
    for name in ("b.h5", "c.h5", "d.h5"):
        write(place / name, seed=2)
        ask(place / name)
    slow(place, 3.0)
    (place / "b.h5").unlink()
    with h5py.File(place / "c.h5", "w") as file:
        file["other"] = np.arange(10)
    sieva.advise(place / "d.h5").apply()
    write(place / "d.h5", seed=3)
    advice = sieva.advise(place)
    told = {Path(what.partition(":")[0]).name for what, _ in advice.skipped}
    assert told == {"b.h5", "c.h5"}
    stale = [item for item in advice.items if item.source.endswith("d.h5") and item.bytes_now]
    assert stale
    assert all(item.stale for item in stale)
    advice.apply()
    status = sieva.open(place / "d.h5").index_status()
    assert (status.exists, status.stale) == (True, False)
    stats, rows = ask(place / "d.h5", times=1)
    assert stats["by_bitmap"] + stats["by_replica"] > 0
    np.testing.assert_array_equal(rows, truth(place / "d.h5"))


def test_a_prefix_is_a_directory_not_a_beginning(place):
    (place / "x").mkdir()
    (place / "xy").mkdir()
    for name in ("x/a.h5", "xy/a.h5"):
        shutil.copy(place / "a.h5", place / name)
        ask(place / name, times=1)
    assert sieva.advise(place / "x").uses == 1
    assert sieva.advise(str(place / "x") + "/").uses == 1
    assert sieva.advise(place).uses == 2
    assert sieva.advise(place / "a.h").uses == 0


def test_many_files_as_one(place):
    rng = np.random.default_rng(5)
    for part in range(3):
        with h5py.File(place / f"part{part}.h5", "w") as file:
            time = file.create_dataset("time", data=np.arange(part * 100, part * 100 + 100.0))
            time.make_scale("time")
            values = file.create_dataset("v", data=rng.random((100, 1000)).astype("f4"))
            values.dims[0].attach_scale(time)
    pattern = str(place / "part*.h5")
    _, rows = ask(pattern, "v > 0.99")
    slow(place, 3.0)
    advice = sieva.advise(pattern)
    assert {item.source for item in advice.items} == {pattern}
    # A replica of each file is not used by queries over all of them.
    assert ("v", "bitmap") in chosen(advice)
    assert ("v", "sorted") not in chosen(advice)
    done = advice.apply()
    assert {d.what for d in done} == {"built"}
    stats, again = ask(pattern, "v > 0.99", times=1)
    assert stats["by_bitmap"] > 0
    np.testing.assert_array_equal(again, rows)


def test_nothing_is_noted_where_that_is_not_wanted(place, monkeypatch):
    monkeypatch.setenv("SIEVA_LEARN", "0")
    ask(place / "a.h5")
    assert not (place / "catalog.sqlite").exists()
    monkeypatch.delenv("SIEVA_LEARN")
    monkeypatch.delenv("SIEVA_CATALOG")
    monkeypatch.setenv("XDG_DATA_HOME", str(place))
    script = f"import sieva; print(sieva.open({str(place / 'a.h5')!r}).query('hot > 2').count())"
    own = place / "sieva" / "catalog.sqlite"
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout == b"0\n"
    assert not own.exists()


@pytest.mark.parametrize("damage", ["read-only", "garbage", "directory", "missing directory", "no server"])
def test_a_catalog_that_fails_disturbs_no_query(place, damage):
    catalog = place / "bad" / "catalog.sqlite"
    if damage != "missing directory":
        catalog.parent.mkdir()
    url = str(catalog)
    at = place / "a.h5"
    command = []
    if damage == "garbage":
        catalog.write_bytes(b"no database" * 1000)
    elif damage == "directory":
        catalog.mkdir()
    elif damage == "read-only":
        url = f"sqlite:{catalog}"
        ask(at, times=1)
        shutil.move(place / "catalog.sqlite", catalog)
        catalog.chmod(0o444)
        catalog.parent.chmod(0o555)
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                pytest.skip("root may write what is read-only, and setpriv is not there to take that away")
            command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    elif damage == "no server":
        url = "postgresql://nobody@127.0.0.1:1/none"
    script = (
        f"import sieva; q = sieva.open({str(at)!r}).query({HOT!r}); "
        "print(len(q.selection()), len(q.read('cold')))"
    )
    done = subprocess.run(
        [*command, sys.executable, "-c", script], env={**os.environ, "SIEVA_CATALOG": url},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    n = len(truth(place / "a.h5"))
    assert (done.stdout, done.stderr) == (f"{n} {n}\n", "")
    if damage == "read-only":
        with closing(sqlite3.connect(f"file:{catalog}?immutable=1", uri=True)) as db:
            assert db.execute("SELECT count(*) FROM usage").fetchone() == (1,)


def test_notes_are_written_at_the_end_of_a_process(place):
    script = f"import sieva; sieva.open({str(place / 'a.h5')!r}).query({HOT!r}).count()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert [n["path"] for n in notes(place)] == ["hot"]


def test_a_forked_process_notes_as_well(place):
    ask(place / "a.h5", times=1)
    child = os.fork()
    if child == 0:
        try:
            sieva.open(place / "a.h5").query("warm > 0.5").count()
            _native.flush_usage(10)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [n["path"] for n in notes(place)] == ["hot", "warm"]


def test_the_command_shows_and_does_it(place):
    ask(place / "a.h5")
    slow(place, 3.0)
    shown = run("advise", "a.h5", "--budget", "10MiB", cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].split() == [
        "verdict", "index", "of", "kind", "saves", "size", "build", "why",
    ]  # fmt: skip
    assert f"{place}/a.h5:hot" in shown.stdout
    assert shown.stderr == "nothing was changed; --apply does it\n"
    assert not (place / "a.h5.sieva").exists()
    told = json.loads(run("advise", "a.h5", "--budget", "10MiB", "--json", cwd=place).stdout)
    assert told["budget"] == 10 << 20
    assert {"source", "array", "kind", "saves_seconds", "bytes", "build_seconds", "verdict", "why"} <= set(
        told["items"][0]
    )
    done = run("advise", "a.h5", "--budget", "10MiB", "--apply", cwd=place)
    assert done.returncode == 0, done.stderr
    assert f"built: {place}/a.h5:hot=" in done.stdout
    again = run("advise", "a.h5", "--budget", "10MiB", "--apply", cwd=place)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "nothing to build or remove\n")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--pin", "a.h5:hot"], 1, "is not of the form SOURCE:ARRAY=KIND"),
        (["--pin", "a.h5:hot=tree"], 1, "index kind 'tree' is not one of"),
        (["--pin", "a.h5:hat=bitmap"], 1, "hat"),
        (["--pin", "none.h5:hot=bitmap"], 1, "none.h5"),
        (["--apply", "--dry-run"], 2, "do not go together"),
        (["a.h5", "--forbid", "a.h5:hot=bitmap"], 2, "stand alone"),
        (["--budget", "much"], 2, "no size"),
        (["--catalog", "none.sqlite"], 1, "none.sqlite"),
    ],
)
def test_wrong_use_is_told(place, args, code, message):
    done = run("advise", *args, cwd=place)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "none.sqlite").exists()


def test_a_step_that_fails_lets_the_others_go_on(place):
    for name in ("b.h5", "c.h5"):
        write(place / name, seed=2)
        ask(place / name)
    slow(place, 3.0)
    advice = sieva.advise(place)
    (place / "b.h5").unlink()
    done = advice.apply()
    assert {(Path(d.source).name, d.what) for d in done} == {("b.h5", "failed"), ("c.h5", "built")}
    assert all("b.h5" in d.error for d in done if d.what == "failed")


def test_what_was_stopped_goes_on(place):
    """Each step stands for itself; what costs were learnt on the way may change what else is advised."""
    ask(place / "a.h5")
    ask(place / "a.h5", "cold BETWEEN 0.10 AND 0.12")
    slow(place, 3.0)
    begun = []

    def told(_source, array, kind, _verdict):
        if len(begun) == 1:
            raise InterruptedError
        begun.append((array, kind))

    advice = sieva.advise(place)
    assert len(chosen(advice)) > 1
    with pytest.raises(InterruptedError):
        advice.apply(told=told)
    rest = sieva.advise(place)
    assert chosen(rest)
    assert not chosen(rest) & set(begun)
    done = rest.apply()
    assert {(item.array, item.kind) for item in done} == chosen(rest)
    assert {item.what for item in done} == {"built"}
    assert not chosen(sieva.advise(place)) & (chosen(rest) | set(begun))


def programs():
    """Return where PostgreSQL's programs are, or None."""
    packaged = [str(d) for d in Path("/usr/lib/postgresql").glob("*/bin")]
    found = shutil.which("initdb", path=os.pathsep.join([*packaged, os.environ.get("PATH", "")]))
    return None if found is None else Path(found).parent


@contextmanager
def postgresql():
    """Run a server of the test's own on loopback; give the URL of its database."""
    place = Path(tempfile.mkdtemp(prefix="sieva-pg-advise-"))
    as_user = []
    if os.geteuid() == 0:
        shutil.chown(place, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]

    def call(program, *args):
        command = [*as_user, str(programs() / program), *map(str, args)]
        subprocess.run(command, check=True, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = place / "data"
    try:
        call("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", data)
        options = f"-h 127.0.0.1 -p {port} -k {place} -c fsync=off -c shared_buffers=32MB"
        call("pg_ctl", "-D", data, "-s", "-w", "-t", "60", "-o", options, "-l", place / "log", "start")
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-D", data, "-s", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.skipif(programs() is None, reason="PostgreSQL (initdb, pg_ctl) is not installed")
def test_a_catalog_in_postgresql(place, monkeypatch):
    at = place / "a.h5"
    with postgresql() as url:
        monkeypatch.setenv("SIEVA_CATALOG", url)
        script = f"import sieva\nfor _ in range(300): sieva.open({str(at)!r}).query({HOT!r}).selection()"
        subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
        advice = sieva.advise(place)
        assert advice.uses == 300
        assert {item.array for item in advice.items} <= {"hot"}
        assert run("advise", "--pin", f"{at}:hot=bitmap", cwd=place).returncode == 0
        pinned = sieva.advise(place)
        assert ("hot", "bitmap") in chosen(pinned)
        pinned.apply()
        assert ("hot", "bitmap") in chosen(sieva.advise(place), "keep")


def test_a_source_has_one_name_whatever_way_led_to_it(place, tmp_path_factory):
    way = tmp_path_factory.mktemp("way") / "linked"
    way.symlink_to(place, target_is_directory=True)
    ask(way / "a.h5", times=1)
    ask(place / "a.h5", times=1)
    assert {note["location"] for note in notes(place)} == {str((place / "a.h5").resolve())}
    slow(place)
    found = [[(item.array, item.kind) for item in sieva.advise(prefix).items] for prefix in (way, place)]
    assert found[0] == found[1] != []
