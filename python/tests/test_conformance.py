"""The conformance suite: every case of conformance/cases, asked through the Python package."""

import datetime as dt
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sieva

ROOT = Path(__file__).resolve().parent.parent.parent
CONFORMANCE = ROOT / "conformance"
CASES = {
    f"{path.stem}/{case['name']}": case
    for path in sorted((CONFORMANCE / "cases").glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))
}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Write the files in a process of their own: the plug-ins of HDF5 must be loaded in a fixed order."""
    directory = tmp_path_factory.mktemp("conformance")
    subprocess.run([sys.executable, CONFORMANCE / "generate.py", directory], check=True)
    return directory


def test_there_are_many_cases():
    assert len(CASES) > 400


def test_the_answers_are_those_of_numpy():
    """The committed answers are what the oracle computes; ``conformance/complete.py`` writes them anew."""
    command = [sys.executable, CONFORMANCE / "complete.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "ok\n"), run.stdout + run.stderr


@pytest.mark.parametrize("name", CASES)
def test_case(name, files):
    case = CASES[name]
    if "error" in case:
        check_error(case, files)
    elif "sql" in case:
        check_rows(case, ask(case, files))
    else:
        check_selection(case, ask(case, files))


def ask(case, files):
    """Return the query of a case."""
    path = files / case["file"]
    if "sql" in case:
        return sieva.sql(case["sql"].replace("{file}", str(path)), **case.get("options", {}))
    reads = list(case.get("values", {})) or None
    options = dict(case.get("options", {}))
    cross = options.pop("cross", False)
    return sieva.open(path, **options).query(case["where"], select=reads, cross=cross)


def check_error(case, files):
    with pytest.raises(sieva.SievaError) as caught:
        ask(case, files).to_arrow()
    expected = case["error"]
    assert caught.value.kind == expected["kind"], str(caught.value)
    said = f"{caught.value} {caught.value.hint or ''}"
    assert expected["message"] in said


def check_selection(case, query):
    selection = query.selection()
    assert tuple(selection.dims) == tuple(case["dims"])
    assert tuple(selection.shape) == tuple(case["shape"])
    coordinates = selection.coords()
    assert (len(selection), query.count()) == (case["count"], case["count"])
    linear = (
        np.ravel_multi_index(tuple(coordinates.T), tuple(case["shape"]))
        if case["dims"]
        else np.zeros(len(selection), int)
    )
    if case["count"]:
        assert (linear[0], linear[-1], linear.sum()) == (case["first"], case["last"], case["sum"])
    if "positions" in case and case["dims"]:
        assert coordinates.tolist() == case["positions"]
    for name, expected in case.get("values", {}).items():
        got = query.read(name)
        assert got.dtype.name == ("object" if case["dtypes"][name] == "str" else case["dtypes"][name])
        check_column(name, [plain(v) for v in got.tolist()], expected, 0.0)


def check_rows(case, query):
    table = query.to_arrow()
    assert table.column_names == case["columns"]
    rows = [[plain(v) for v in row] for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
    assert len(rows) == len(case["rows"])
    for index, name in enumerate(case["columns"]):
        expected = [row[index] for row in case["rows"]]
        check_column(name, [row[index] for row in rows], expected, case.get("tolerance", 0.0))


def check_column(name, got, expected, tolerance):
    if tolerance:
        assert got == pytest.approx(expected, rel=tolerance, abs=0), name
    else:
        assert got == expected, name
        assert [is_negative_zero(v) for v in got] == [is_negative_zero(v) for v in expected], name


def is_negative_zero(value):
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def plain(value):
    """Return a value as the case files have it: missing is None, infinities and dates are texts."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
