"""The benchmarks run on small files and their answers agree; nothing is said of speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def test_quick_benchmarks_agree(tmp_path):
    pytest.importorskip("xarray")
    data, results = tmp_path / "data", tmp_path / "results"
    command = [sys.executable, ROOT / "benches" / "run.py", "--quick", "--data", data, "--results", results]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (record,) = (json.loads(path.read_text()) for path in results.glob("*.json"))
    assert {figure["unit"] for figure in record["figures"]} == {"x", "%", "MiB", "s"}
    assert len(record["figures"]) >= 9
    assert next(results.glob("*.md")).read_text().startswith("| figure | target |")
