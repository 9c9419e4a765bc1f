"""``sieva catalog`` as a command: tables, JSON, exit codes, and what a killed run leaves."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import sieva
from catalog_files import write_spectra


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the command on a catalog of its own."""
    environment = {**os.environ, "SIEVA_CATALOG": str(tmp_path / "c.sqlite")}

    def run(*arguments, code=0):
        command = [sys.executable, "-m", "sieva", "catalog", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def spectra(tmp_path):
    """Return a directory of three files."""
    directory = tmp_path / "boss"
    directory.mkdir()
    for plate in (4000, 4001, 4002):
        write_spectra(directory / f"p{plate}.h5", plate)
    return directory


def test_a_round_of_commands(run, spectra):
    path = spectra / "p4001.h5"
    assert "3 added (42 objects)" in run("add", spectra, "--collection", "boss").stderr
    report = json.loads(run("add", spectra, "--stats", "--json").stdout)
    assert (report["unchanged"], report["described"], report["damaged"]) == (3, 3, [])
    assert len(run("list").stdout.splitlines()) == 3
    assert json.loads(run("list", str(spectra) + "/p4001", "--json").stdout)[0]["location"] == str(path)
    assert run("tag", f"{path}:4001/3", "a=1", "b=1.5", "c=true", 'd="1"', "e=x=y").stderr.endswith(
        "5 changed\n"
    )
    found = run("find", "a = 1 AND b = 1.5 AND c = TRUE AND d = '1' AND e = 'x=y'").stdout
    assert found == f"{path}\t4001/3/flux\tarray\n"
    shown = run("show", path).stdout
    assert "a = 1  (tag)" in shown
    assert 'd = "1"  (tag)' in shown
    objects = json.loads(run("show", path, "--json").stdout)["objects"]
    assert next(o for o in objects if o["path"] == "4001/3")["tags"]["e"] == "x=y"
    assert "2 removed" in run("untag", f"{path}:4001/3", "a", "b").stderr
    assert run("find", "a = 1 OR b = 1.5").stdout == ""
    assert run("find", "fiber = 2", "--collection", "boss", "--count").stdout == "3\n"
    assert len(json.loads(run("find", "fiber = 2", "--limit", 2, "--json").stdout)) == 2
    assert run("where", "flux", 4001.9, "-").stdout.splitlines()[-1] == str(spectra / "p4002.h5")
    assert run("where", "flux", -5, -4).stdout == ""
    assert "1 added" in run("collection", "mine", "--add", path, "--description", "my own").stderr
    assert "my own" in run("collection").stdout
    assert json.loads(run("collection", "mine", "--json").stdout)[0]["sources"] == 1
    run("collection", "mine", "--remove")
    path.unlink()
    assert "1 forgotten" in run("add", spectra, "--prune").stderr
    assert "2 forgotten" in run("remove", f"{spectra}/").stderr
    assert run("list").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["find", "a = "], 1, "sieva: "),
        (["find", "a = 1", "--collection", "none"], 1, "no collection 'none'"),
        (["show", "/absent.h5"], 1, "hint: register it: sieva catalog add SOURCE"),
        (["tag", "/absent.h5", "a=1"], 1, "is not in the catalog"),
        (["tag", "/absent.h5", "a"], 2, "not of the form KEY=VALUE"),
        (["remove", "/absent.h5"], 1, "hint: "),
        (["where", "flux", "low", "1"], 2, "'low' is no number"),
        (["collection", "--remove"], 2, "name the collection"),
        (["collection", "none", "--remove"], 1, "there are none"),
        (["add", "/absent"], 1, "/absent"),
        (["add", "--prune", "*.h5"], 2, "'*.h5' is none"),
        (["add"], 2, "Missing argument"),
    ],
)
def test_what_goes_wrong_is_said(run, spectra, arguments, code, said):
    run("add", spectra)
    done = run(*arguments, code=code)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_catalog_that_is_not_there_is_not_made_by_looking(run, tmp_path):
    assert "hint: make one: sieva catalog add DIR" in run("list", code=1).stderr
    assert not (tmp_path / "c.sqlite").exists()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_is_taken_up_again(tmp_path, sent):
    directory = tmp_path / "many"
    directory.mkdir()
    write_spectra(directory / "p0.h5", 7, fibers=40)
    data = (directory / "p0.h5").read_bytes()
    for i in range(1, 1500):
        (directory / f"p{i}.h5").write_bytes(data)
    environment = {**os.environ, "SIEVA_CATALOG": str(tmp_path / "c.sqlite")}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    process = subprocess.Popen(
        [sys.executable, "-m", "sieva", "catalog", "add", str(directory), "--jobs", "1"],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    signal.signal(signal.SIGINT, before)
    known = 0
    while process.poll() is None and known == 0:
        if (tmp_path / "c.sqlite").exists():
            with sieva.Catalog(tmp_path / "c.sqlite") as catalog:
                known = len(list(catalog.list()))
        time.sleep(0.01)
    process.send_signal(sent)
    process.wait()
    with sieva.Catalog(tmp_path / "c.sqlite") as catalog:
        kept = len(list(catalog.list()))
        assert kept >= known > 0
        report = catalog.add(directory)
        assert (report.added, report.unchanged) == (1500 - kept, kept)
        assert catalog.count() == 1500 * 40


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:/me:pw@h/db",
        "postgresql:me:pw@h/db",
        "POSTGRESQL://me:pw@h/db",
        "postgresql%3A//me:pw@h/db",
        "me:pw@h/db",
        "//me:pw@h/db",
        "host=h user=me password=pw",
        "host=h password='a pw' user=me",
        "postgresql://me:p/pw@h/db",
        "postgresql://me:p?pw@h/db",
        "postgresql://me:p@pw@127.0.0.1:1/db",
        "postgresql://me:pw@127.0.0.1:1/db?password=pw",
    ],
)
def test_a_password_is_in_no_message(tmp_path, address):
    """As an option, in the environment, and in Python: however the address is spelt."""
    environment = {**os.environ, "SIEVA_CATALOG": address}
    for arguments, given in (
        (["catalog", "list", "--catalog", address], None),
        (["catalog", "list"], environment),
        (["catalog", "add", str(tmp_path), "--catalog", address], None),
        (["advise", "--catalog", address], None),
    ):
        command = [sys.executable, "-m", "sieva", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=given, check=False, cwd=tmp_path)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert "pw" not in done.stdout + done.stderr
    with pytest.raises(sieva.errors.SievaError) as caught:
        sieva.Catalog(address, read_only=True)
    assert "pw" not in f"{caught.value}{caught.value!r}"
    with pytest.raises(sieva.errors.SievaError) as caught:
        sieva.collection("c", catalog=address)
    assert "pw" not in f"{caught.value}{caught.value!r}"


def test_the_users_own_catalog_is_his_alone(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "SIEVA_CATALOG"}
    environment["XDG_DATA_HOME"] = str(tmp_path / "share")
    command = [sys.executable, "-m", "sieva", "catalog", "add", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env=environment, umask=0)
    modes = [(tmp_path / "share/sieva" / name).stat().st_mode & 0o777 for name in (".", "catalog.sqlite")]
    assert modes == [0o700, 0o600]
