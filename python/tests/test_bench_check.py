"""What got slower is named, and noise is not."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, str(BENCHES))
    try:
        yield importlib.import_module("check")
    finally:
        sys.path.remove(str(BENCHES))


def ratio(name, ours, rival):
    times = {"sieva, auto": {"seconds": ours}, "h5py": {"seconds": rival}}
    middle = sorted(rival)[len(rival) // 2] / sorted(ours)[len(ours) // 2]
    return {"name": name, "target": "", "measured": middle, "unit": "x", "times": times}


def bounded(name, target, measured):
    return {"name": name, "target": target, "measured": measured, "unit": "ms", "times": {}}


def compared(check, tmp_path, capsys, before, now):
    (tmp_path / "kept").mkdir()
    for at, figures in before.items():
        run = {"at": at, "figures": figures}
        (tmp_path / "kept" / f"{at}.json").write_text(json.dumps(run), encoding="utf-8")
    (tmp_path / "now.json").write_text(json.dumps({"at": "9", "figures": now}), encoding="utf-8")
    code = check.main([str(tmp_path / "now.json"), "--kept", str(tmp_path / "kept")])
    return code, capsys.readouterr().out.splitlines()


def test_a_ratio_that_fell_is_named(check, tmp_path, capsys):
    before = {"1": [ratio("count", [1, 1, 1], [9, 9, 9])], "2": [ratio("count", [1, 1, 1], [10, 10, 10])]}
    now = [ratio("count", [2, 2, 2], [10, 10, 10]), ratio("new", [1], [2])]
    code, lines = compared(check, tmp_path, capsys, before, now)
    assert code == 1
    assert lines == [
        "slower: count: 5 x, was 10",
        "1 figures compared, 1 slower; 1 have none to be compared with",
    ]


def test_one_slow_run_is_noise(check, tmp_path, capsys):
    before = {"1": [ratio("count", [1, 1, 1], [10, 10, 10])]}
    # The median is twice as slow, the fastest run as before.
    code, lines = compared(check, tmp_path, capsys, before, [ratio("count", [1, 2, 2], [10, 10, 10])])
    assert code == 0
    assert lines == ["1 figures compared, 0 slower; 0 have none to be compared with"]


def test_the_target_says_which_way_is_better(check, tmp_path, capsys):
    before = {"1": [bounded("memory", "< 10 ms", 5.0), bounded("share", ">= 95 ms", 99.0)]}
    now = [bounded("memory", "< 10 ms", 4.0), bounded("share", ">= 95 ms", 50.0)]
    code, lines = compared(check, tmp_path, capsys, before, now)
    assert code == 1
    assert lines[0] == "slower: share: 50 ms, was 99"


def test_kept_results_of_the_repository_are_read(check):
    figures = check.kept(BENCHES / "results")
    assert figures["SDS Q1, auto, warm"]["unit"] == "x"
