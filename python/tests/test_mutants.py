"""Damaged copies of small files of all formats: no crash, no hang, no memory without bound."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from test_conformance import files  # noqa: F401
from test_isolated import fits_table

FUZZ = Path(__file__).resolve().parent.parent.parent / "fuzz"


@pytest.fixture(scope="session")
def originals(files, tmp_path_factory):  # noqa: F811
    """Return a directory with the conformance files, a Zarr group and a FITS table."""
    directory = tmp_path_factory.mktemp("originals")
    shutil.copytree(files, directory / "files")
    fits_table(directory / "table.fits")
    for version in (2, 3):
        group = zarr.open_group(directory / f"v{version}.zarr", mode="w", zarr_format=version)
        group.create_array("x", data=np.arange(60.0).reshape(6, 10), chunks=(4, 4))
        group.create_array("n", data=np.arange(20, dtype="i2"), chunks=(7,))
    return directory


@pytest.mark.parametrize(("count", "how"), [(300, []), (150, ["--isolated"])])
def test_mutants_are_errors_or_answers(originals, count, how, tmp_path):
    command = [
        sys.executable,
        FUZZ / "mutants.py",
        "--count",
        str(count),
        "--keep",
        tmp_path,
        *how,
        originals,
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    report = json.loads(run.stdout)
    assert (run.returncode, report["findings"]) == (0, []), run.stdout + run.stderr
    assert report["mutants"] == count
    # Most are asked for more than their heads.
    assert report["outcomes"]["opened"] > count / 4
    assert report["outcomes"]["CorruptFile"] > count / 20


WATCHED = """
import json, os, resource, sys, time
sys.path.insert(0, sys.argv[1])
import asked, mutants
from pathlib import Path

mutants.GIVEN_UP, mutants.PATIENCE, mutants.MOST_SECONDS = 2, 3, 1
asked_last = None

def mutant(run, number, directory):
    global asked_last
    asked_last = number
    return Path("nothing")

def ask(path, isolated, now):
    now.say(f"question {asked_last}")
    match asked_last:
        case 3: os.abort()
        case 5: raise RuntimeError("a question failed")
        case 6: held = b"x" * (200 << 20)
        case 8:
            while True: pass
        case 9: time.sleep(60)
        case 10:
            while time.process_time() < 1.4: pass
    return "opened", []

mutants.Run.mutant, asked.ask = mutant, ask
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
report = mutants.feed(mutants.Run([], "seed", False), range(2, 13))
print(json.dumps(report.summary()))
"""


def test_each_finding_belongs_to_its_mutant():
    run = subprocess.run(
        [sys.executable, "-c", WATCHED, FUZZ], capture_output=True, text=True, check=True, timeout=300
    )
    report = json.loads(run.stdout)
    found = {finding["number"]: (finding["what"], finding["asked"]) for finding in report["findings"]}
    assert found.pop(6)[0].startswith("memory "), report
    assert found.pop(10)[0].startswith("time "), report
    assert found == {
        3: ("crash 6", "question 3"),
        5: ("an exception", "question 5"),
        8: ("over 2 s", "question 8"),
        9: ("hang", "question 9"),
    }
    assert report["mutants"] == 11
    assert "a question failed" in run.stderr


def test_a_mutant_is_the_same_whatever_was_before_it(originals, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FUZZ)
    import mutate  # noqa: PLC0415 - the directory is known now

    for name in ("v3.zarr", "files/layouts.h5"):
        once, again = mutate.Original(originals / name), mutate.Original(originals / name)
        for number in range(4):
            again.mutant(f"seed {number}", tmp_path / "again")
        first, second = once.mutant("seed 4", tmp_path), again.mutant("seed 4", tmp_path / "again")
        assert contents(first) == contents(second) != contents(originals / name)


def contents(path):
    """Return the bytes of a file, or of each file below a directory."""
    if path.is_file():
        return path.read_bytes()
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
