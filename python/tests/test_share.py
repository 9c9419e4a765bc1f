"""Sharing through a directory: the command line and the package, beside numpy."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sieva
import sieva.share
from sieva import _share_cli, errors


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a directory with a producer's step; locks are kept in it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "steps").mkdir()
    write_step(tmp_path / "steps" / "run.0000.h5", 0)
    return tmp_path


def values_of(number):
    values = np.arange(24_000, dtype="f4").reshape(20, 30, 40) % 997 + number
    values[0, 0, :5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    return values


def write_step(path, number):
    aside = path.with_name(f".{path.name}.part")
    with h5py.File(aside, "w") as file:
        data = file.create_dataset("T", data=values_of(number), chunks=(5, 10, 40), compression="gzip")
        for axis, name in enumerate(["z", "y", "x"]):
            data.dims[axis].label = name
        file.create_dataset("P", data=values_of(number) * 2)
    aside.rename(path)


def sieva_share(*args, check=True):
    command = [sys.executable, "-m", "sieva", "share", *map(str, args)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def test_commands_lead_from_a_directory_to_a_folder(place):
    group = place / "group"
    sieva_share("create", group, place / "steps", "--as", "model")
    listed = sieva_share("list", group).stdout
    assert "run.0000" not in listed
    assert "known after the first pass: sieva share produce" in listed
    for user in ("ada", "bob"):
        sieva_share("ask", group, "hot", "SELECT T WHERE T > 990", "--format", "parquet", "--as", user)
    planned = sieva_share("plan", group, "--settle", "0s").stdout
    assert "ada/hot, bob/hot" in planned
    done = sieva_share("produce", group, "--once", "--settle", "0s")
    assert "1 object put" in done.stderr
    followed = sieva_share("follow", group, "hot", "-o", place / "hot", "--once", "--as", "ada")
    (path,) = followed.stdout.split()
    values = values_of(0)
    assert np.array_equal(pq.read_table(path)["T"].to_numpy(), values[values > 990])
    listed = sieva_share("list", group).stdout
    assert "1 file" in listed
    assert "known after" not in listed
    assert "T  float32 (z 20, y 30, x 40)" in listed
    told = json.loads(sieva_share("status", group, "--json").stdout)
    assert [(one["user"], one["answered"], len(one["waiting"])) for one in told["asks"]] == [
        ("ada", 1, 0),
        ("bob", 1, 1),
    ]
    sieva_share("leave", group, "--as", "bob")
    assert "1 deleted" in sieva_share("produce", group, "--once", "--settle", "0s").stderr
    assert not (group / "data").exists()


@pytest.mark.parametrize("kind", ["netcdf", "hdf5", "arrow", "parquet", "csv", "json"])
def test_answers_are_those_of_a_query_of_the_file(place, kind):
    group = sieva.share.create(place / "group", place / "steps")
    sql = "SELECT T, P, T * 2 AS twice WHERE T >= 0 AND P < 900 ORDER BY T DESC"
    group.ask("all", sql, format=kind, user="ada")
    assert group.produce(settle=0).objects == 1
    (path,) = group.follow("all", place / "all", user="ada").files
    if kind in ("csv", "json"):
        values = values_of(0)
        hits = int(((values >= 0) & (values * 2 < 900)).sum())
        text = path.read_text()
        assert (text.count("\n") - 1 if kind == "csv" else len(json.loads(text)["rows"])) == hits
        return
    values = values_of(0)
    hits = np.sort(values[(values >= 0) & (values * 2 < 900)])[::-1]
    if kind == "parquet":
        found = pq.read_table(path)["T"].to_numpy()
    elif kind == "arrow":
        found = pa.ipc.open_file(path).read_all()["T"].to_numpy()
    else:
        found = sieva.open(path).query(None, select=["T"]).read("T")
    assert np.array_equal(found, hits)


def test_a_directory_that_fills_is_followed(place):
    group = sieva.share.create(place / "group", place / "steps")
    group.ask("top", "SELECT max(T) AS top, count(T) AS n WHERE T < 1e30", format="csv", user="ada")
    command = [sys.executable, "-m", "sieva", "share"]
    loop = ["--interval", "0.1s"]
    started = [
        subprocess.Popen([*command, "produce", str(place / "group"), "--settle", "0s", *loop]),
        subprocess.Popen(
            [*command, "follow", str(place / "group"), "top", "-o", str(place / "top"), "--as", "ada", *loop]
        ),
    ]
    try:
        for number in range(1, 4):
            write_step(place / "steps" / f"run.{number:04}.h5", number)
        until = time.monotonic() + 60
        while len(list(place.glob("top/*.csv"))) < 4 and time.monotonic() < until:
            assert all(process.poll() is None for process in started)
            time.sleep(0.05)
    finally:
        for process in started:
            process.send_signal(signal.SIGINT)
        codes = [process.wait(30) for process in started]
    assert codes == [130, 130]
    for number in range(4):
        text = (place / "top" / f"run.{number:04}.csv").read_text().split()
        values = values_of(number)
        finite = values[values < 1e30]
        assert [float(v) for v in text[1].split(",")] == [finite.max(), finite.size]


def test_a_producer_that_is_killed_goes_on(place):
    """Killed for real, while results are put: what was put is whole, and the next pass makes the rest."""
    group = sieva.share.create(place / "group", place / "steps")
    for number in range(1, 40):
        write_step(place / "steps" / f"run.{number:04}.h5", number)
    group.ask("all", "SELECT T WHERE T > 0", format="parquet", user="ada")
    for _ in range(4):
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "sieva",
                "share",
                "produce",
                str(place / "group"),
                "--once",
                "--settle",
                "0s",
            ],
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 60
        while len(list(place.glob("group/data/*/*.parquet"))) < 5 and time.monotonic() < until:
            if process.poll() is not None:
                break
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        group.follow("all", place / "all", user="ada")
    assert group.produce(settle=0).troubles == []
    group.follow("all", place / "all", user="ada")
    assert len(list(place.glob("all/*.parquet"))) == 40
    for number in range(40):
        values = values_of(number)
        found = pq.read_table(place / "all" / f"run.{number:04}.parquet")["T"].to_numpy()
        assert np.array_equal(found, values[values > 0]), number
    group.produce(settle=0)
    assert list(place.glob("group/data/*/*.parquet")) == []


def test_many_asks_are_one_object_and_each_has_its_answer(place):
    group = sieva.share.create(place / "group", place / "steps")
    bounds = range(0, 990, 90)
    pairs = [(f"above-{bound}", f"SELECT count(*) AS n WHERE T > {bound}") for bound in bounds]
    asks = group.ask_many(pairs, format="csv", user="ada")
    assert [(ask.name, ask.sql, ask.format) for ask in asks] == [(*pair, "csv") for pair in pairs]
    assert group.asks("ada") == sorted(asks, key=lambda ask: ask.name)
    assert len(list(place.glob("group/group/members/*"))) == 1
    assert group.produce(settle=0).answers == len(pairs)
    folders = {name: place / name for name, _ in pairs}
    done = group.follow_many(folders, user="ada")
    assert list(done) == list(folders)
    for bound in bounds:
        (path,) = done[f"above-{bound}"].files
        assert int(path.read_text().split()[1]) == int((values_of(0) > bound).sum())
    nothing = sieva.share.Followed([], 0, [], [])
    assert group.follow_many(folders, user="ada") == dict.fromkeys(folders, nothing)
    assert group.follow("above-0", folders["above-0"], user="ada") == nothing
    with pytest.raises(errors.FileNotFound, match="asks for nothing by the name 'else'"):
        group.follow_many({**folders, "else": place / "else"}, user="ada")
    before = group.asks("ada")
    with pytest.raises(errors.SyntaxError_):
        group.ask_many([("new", "SELECT T"), ("wrong", "SELECT")], user="ada")
    with pytest.raises(errors.InvalidValue, match="two questions by the name 'new'"):
        group.ask_many([("new", "SELECT T"), ("new", "SELECT P")], user="ada")
    assert group.asks("ada") == before


def test_small_results_share_an_object_and_limits_are_told(place):
    group = sieva.share.create(place / "group", place / "steps")
    found = json.loads(
        sieva_share(
            "calibrate", place / "group", "--size", "1KB", "--size", "8KB", "--threads", "1", "--json"
        ).stdout
    )
    assert [(size, threads) for size, threads, _ in found["put"]] == [(1000, 1), (8000, 1)]
    assert not (place / "group" / "calibrate").exists()
    pairs = [(f"z{z}", f"SELECT avg(T) AS mean WHERE T > 0 AND T < 1e30 AND idx(z) = {z}") for z in range(20)]
    group.ask_many(pairs, format="json", user="ada")
    assert (
        "1 object put"
        in sieva_share("produce", group.place, "--once", "--settle", "0s", "--objects", "partial").stderr
    )
    for z in range(20):
        (path,) = group.follow(f"z{z}", place / f"z{z}", user="ada").files
        (row,) = json.loads(path.read_text())["rows"]
        values = values_of(0)[z].astype("f8")
        assert row[0] == pytest.approx(values[(values > 0) & (values < 1e30)].mean(), rel=1e-12)
    assert group.produce(settle=0).deleted == 1
    group.ask("all", "SELECT T, P", user="eve")
    done = group.produce(settle=0, result_size="1KB", ask_memory="64MB", ask_time=60)
    assert (done.answers, done.failed, done.deferred) == (1, 1, 0)
    (failure,) = group.follow("all", place / "eve", user="eve").failures
    assert failure[1:] == ("memory-limit", failure[2])
    assert "a result of more than 1000 bytes" in failure[2]
    with pytest.raises(errors.InvalidValue, match="an ask may take 0 s"):
        group.plan(settle=0, ask_time=0)
    with pytest.raises(errors.InvalidValue, match="no way to put results"):
        group.produce(settle=0, objects="some")


def test_what_cannot_be_is_told(place):
    group = place / "group"
    for args, code, text in [
        (("status", group), 1, "there is no group at"),
        (("create", group, place / "none"), 1, "there is no"),
        (("create", group, "--expires", "soon"), 2, "is no duration"),
        (("ask", group, "a", "SELECT T"), 1, "there is no group at"),
    ]:
        done = sieva_share(*args, check=False)
        assert (done.returncode, text in done.stderr, "Traceback" in done.stderr) == (code, True, False), (
            done.stderr
        )
    sieva_share("create", group, place / "steps", "--as", "model")
    for args, text in [
        (("ask", group, "a/b", "SELECT T"), "is no name of an ask"),
        (("ask", group, "a", "SELECT T FROM 'x.nc'"), "FROM 'x.nc' in a question to a group"),
        (("ask", group, "a", "SELECT T", "--format", "xls"), "is no format of results in a group"),
        (("follow", group, "a", "-o", place / "a", "--once"), "is no member"),
        (("produce", group, "--once", "--as", "other"), "has no producer 'other'"),
    ]:
        done = sieva_share(*args, check=False)
        assert done.returncode == 1, done.stderr
        assert text in done.stderr
    with pytest.raises(errors.InvalidValue, match="is no name of a user"):
        sieva.share.open_group(group).ask("a", "SELECT T", user="../x")


def test_troubles_of_a_pass_are_told_with_what_can_be_done(capsys):
    trouble = errors.make("unsupported", "the C library of ADIOS2 is not found", "set SIEVA_ADIOS2")
    _share_cli._show_produced(sieva.share.Produced(0, 0, 0, 0, 0, 0, 0, 0, [("a.bp", trouble)]))
    _share_cli._show_followed(sieva.share.Followed([], 0, [], [trouble]))
    said = "the C library of ADIOS2 is not found\nhint: set SIEVA_ADIOS2\n"
    assert capsys.readouterr().err == f"sieva: a.bp: {said}sieva: {said}"


def test_an_answer_that_is_an_error_reaches_who_asked(place):
    group = sieva.share.create(place / "group", place / "steps")
    group.ask("wrong", "SELECT Q", user="ada")
    (place / "steps" / "broken.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    done = group.produce(settle=0)
    assert (done.answers, done.failed) == (1, 1)
    ((step, error),) = done.troubles
    assert step == "broken.h5"
    assert isinstance(error, errors.SievaError)
    (failure,) = group.follow("wrong", place / "wrong", user="ada").failures
    assert failure[:2] == ("run.0000.h5", "unknown-array")


def share_with_code(place, code, **options):
    group = sieva.share.create(place / "group", place / "steps", producer="model", **options)
    group.ask("own", "SELECT T", format="parquet", user="eve", code=code)
    group.ask("plain", "SELECT T", format="parquet", user="ada")
    done = group.produce("model", settle=0)
    plain = group.follow("plain", place / "plain", user="ada")
    assert plain.failures == []
    np.testing.assert_array_equal(table_of(plain), values_of(0).ravel())
    return done, group.follow("own", place / "own", user="eve")


def table_of(followed):
    return pq.read_table(followed.files[0]).column(0).to_numpy()


def test_code_is_run_on_what_was_asked(place):
    text = "float map(float t) { return t > 500 ? t * 0.5f : -t; }"
    _, own = share_with_code(place, text)
    values = values_of(0).ravel()
    expected = np.where(values > 500, values * np.float32(0.5), -values)
    assert own.failures == []
    np.testing.assert_array_equal(table_of(own), expected)
    np.testing.assert_array_equal(np.signbit(table_of(own))[1:], np.signbit(expected)[1:])


def test_a_filter_and_a_file_of_code_by_the_command_line(place):
    (place / "keep.c").write_text(
        "int filter(float t) { return (int)fmin(t, 1e9) % 100 == 7; }", encoding="utf-8"
    )
    group = place / "group"
    sieva_share("create", group, place / "steps", "--as", "model")
    asked = ("ask", group, "keep", "SELECT T WHERE T >= 0", "--format", "parquet", "--as", "ada")
    sieva_share(*asked, "--code", place / "keep.c")
    sieva_share("produce", group, "--once", "--settle", "0s", "--as", "model")
    path = sieva_share("follow", group, "keep", "-o", place / "keep", "--once", "--as", "ada").stdout.strip()
    values = values_of(0).ravel()
    values = values[values >= 0]
    expected = values[np.trunc(np.fmin(values, 1e9)) % 100 == 7]
    np.testing.assert_array_equal(pq.read_table(path).column(0).to_numpy(), expected)
    missing = sieva_share(*asked, "--code", place / "none.c", check=False)
    assert "there is no file of code" in missing.stderr
    assert missing.returncode != 0


def test_code_that_fails_gives_the_data_and_is_told(place):
    done, own = share_with_code(place, "int map(float t) { return 1 / ((int)0 * 1); }")
    assert (done.answers, done.failed, done.troubles) == (2, 1, [])
    [(step, code, message)] = own.failures
    assert (step, code) == ("run.0000.h5", "invalid-value")
    assert message.startswith(
        "the code failed, and these are the data that it was asked of: line 1, column 29: "
    )
    np.testing.assert_array_equal(table_of(own), values_of(0).ravel())


def test_a_strict_group_answers_code_that_fails_by_an_error(place):
    _, own = share_with_code(place, "int map(float t) { return 1 / ((int)0 * 1); }", strict_code=True)
    assert own.files == []
    assert own.failures[0][2] == "line 1, column 29: an integer is divided by zero"


def test_code_that_is_none_is_refused_when_it_is_asked(place):
    group = sieva.share.create(place / "group", place / "steps", producer="model")
    with pytest.raises(errors.SyntaxError_, match="line 1, column 33: ';' is expected, found '}'"):
        group.ask("x", "SELECT T", code="double map(double x) { return x }")
    with pytest.raises(errors.SievaError, match="the WebAssembly module is not valid"):
        group.ask("x", "SELECT T", code=b"\0asm\1\0\0\0\5")
    with pytest.raises(FileNotFoundError):
        group.ask("x", "SELECT T", code=place / "none.wasm")
    assert group.asks() == []


def test_a_plan_says_what_each_consumer_costs_and_what_would_be_too_large(place):
    group = sieva.share.create(place / "group", place / "steps", producer="model")
    for user in ("ada", "bob"):
        group.ask("all", "SELECT T", format="hdf5", user=user)
    group.ask("mean", "SELECT avg(T) AS mean", format="csv", user="bob")
    ada, bob = sieva.share.consumers_of(group.plan(settle=0))
    (step,) = group.plan(settle=0)
    price = {result.sql: result.price for result in step.results}
    (whole,) = (known for sql, known in price.items() if "avg" not in sql)
    (mean,) = (known for sql, known in price.items() if "avg" in sql)
    size = whole.bytes_returned.expected
    assert (ada.user, ada.results, ada.bytes_sent, ada.bytes_stored) == ("ada", 1, size, size / 2)
    assert (bob.user, bob.results) == ("bob", 2)
    assert bob.bytes_sent == size + mean.bytes_returned.expected
    assert bob.bytes_read == whole.bytes_read.expected + mean.bytes_read.expected
    (step,) = group.plan(settle=0, result_size=10_000)
    refused = {(user, ask) for user, ask, _ in step.refused}
    assert refused == {("ada", "all"), ("bob", "all")}
    assert all("a result of more than 10000 bytes" in str(error) for _, _, error in step.refused)
    assert [result.given for result in step.results] == [[("csv", [("bob", "mean")])]]
    shown = sieva_share("plan", place / "group", "--settle", "0s", "--result-size", "10 kB").stdout
    assert "ada/all cannot be asked" in shown
    assert "bob: 1 result, about" in shown


def test_a_bp_file_that_ends_its_reader_costs_itself_alone(place, monkeypatch):
    """A library that ends the process takes the place of one that a damaged file makes do so."""
    compiler = shutil.which("cc") or pytest.skip("cc is not installed")
    source = place / "ends.c"
    source.write_text("void abort(void);\n__attribute__((constructor)) static void end(void) { abort(); }\n")
    library = place / "libadios2_c.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setenv("SIEVA_ADIOS2", str(library))
    damaged = place / "steps" / "a.bp"
    damaged.mkdir()
    for name in ("md.idx", "md.0", "data.0"):
        (damaged / name).write_bytes(bytes(64))
    group = place / "group"
    sieva_share("create", group, place / "steps", "--as", "model")
    sql = "SELECT min(T) AS least WHERE T > 990"
    sieva_share("ask", group, "least", sql, "--format", "csv", "--as", "ada")
    done = sieva_share("produce", group, "--once", "--settle", "0s", check=False)
    assert (done.returncode, "a.bp" in done.stderr) == (1, True), done.stderr
    sieva_share("follow", group, "least", "-o", place / "least", "--once", "--as", "ada")
    (found,) = (place / "least").glob("*.csv")
    assert found.read_text().split() == ["least", "991.0"]


def test_a_record_that_cannot_be_opened_is_the_matter_of_whom_it_is_of(place):
    group = sieva.share.create(str(place / "group"), place / "steps", producer="model")
    for user in ("ada", "bob"):
        group.ask("mean", "SELECT avg(T) AS m", user=user)
    group.produce(settle=0)
    group.follow("mean", place / "bob", user="bob")
    record = place / "group" / "users" / "bob" / "taken.json"
    kept = record.read_bytes()
    record.unlink()
    record.mkdir()
    before = sorted((place / "group" / "data").rglob("*"))
    write_step(place / "steps" / "run.0001.h5", 1)
    for answers in (1, 0):
        done = group.produce(settle=0)
        assert (done.answers, done.deleted, len(done.troubles)) == (answers, 0, 1)
        assert "not a regular file" in str(done.troubles[0])
    # Nothing is deleted that it might name.
    assert set(before) <= set((place / "group" / "data").rglob("*"))
    assert len(group.follow("mean", place / "ada", user="ada").files) == 2
    assert any("not a regular file" in one for one in group.status()["wrong"])
    record.rmdir()
    record.write_bytes(kept)
    done = group.produce(settle=0)
    assert (done.answers, done.troubles) == (1, [])
    assert len(group.follow("mean", place / "bob", user="bob").files) == 1
