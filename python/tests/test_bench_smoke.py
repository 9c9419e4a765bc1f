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
