"""The benchmarks run on small files and their answers agree; nothing is said of speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


SCANS = ["contiguous", "deflated", "scattered", "ocean", "memory", "start"]
INDEXES = ["sds", "pdc", "needles", "builds", "leaving"]
# Its files are made by a generator beside the checkout. Peers need an environment of their own.
OF_SHARED = ["fetching"]


def test_quick_benchmarks_agree(tmp_path):
    pytest.importorskip("xarray")
    data, results = tmp_path / "data", tmp_path / "results"
    groups = SCANS + INDEXES + (OF_SHARED if (ROOT.parent / "shared" / "datasets").is_dir() else [])
    command = [sys.executable, ROOT / "benches" / "run.py", "--quick"]
    command += ["--data", data, "--results", results]
    command += [word for group in groups for word in ("--only", group)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (record,) = (json.loads(path.read_text()) for path in results.glob("*.json"))
    assert {figure["unit"] for figure in record["figures"]} >= {"x", "%", "MiB", "s", "ms"}
    assert len(record["figures"]) >= 30
    assert next(results.glob("*.md")).read_text().startswith("| figure | target |")


def test_regret_is_measured_beside_load(tmp_path):
    command = [sys.executable, ROOT / "benches" / "regret.py", "--runs", "12", "--asks", "1", "--waves"]
    command += ["--particles", "100000", "--data", tmp_path / "data", "--results", tmp_path / "results"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (record,) = (json.loads(path.read_text()) for path in (tmp_path / "results").glob("*-regret.json"))
    chosen, share, median, worst = record["figures"]
    assert 0 <= chosen["measured"] <= 100
    assert (share["unit"], share["notes"]["runs"], median["unit"]) == ("%", 12, "x")
    assert 0 <= share["measured"] <= 100
    assert worst["measured"] >= median["measured"] > 0
    assert {len(times["seconds"]) for times in share["times"].values()} == {12}


@pytest.mark.parametrize("bound", ["60", "0.0001"])
def test_groups_tell_which_peers_did_not_answer(tmp_path, bound):
    pytest.importorskip("xarray")
    results = tmp_path / "groups.json"
    command = [
        sys.executable,
        ROOT / "benches" / "groups.py",
        "--megabytes",
        "13",
        "--runs",
        "2",
        "--this-python",
    ]
    command += ["--only", "zonal mean", "--bound", bound, "--data", tmp_path, "--results", results]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    contiguous, deflated = json.loads(results.read_text())["figures"]
    assert (contiguous["layout"], deflated["layout"]) == ("contiguous", "deflated")
    is_stopped = bound != "60"
    for name in ("numpy", "xarray"):
        assert len(contiguous[name]) == (0 if is_stopped else 2)
    assert len(contiguous["sieva"]) == 2
    assert ("(> 0 s)" in run.stdout) == is_stopped
