"""Tiny files that declare giant sizes are answered right or refused, within limits of memory and time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import giants
import h5py
import numpy as np
import pytest

MEMORY = 64 << 20
# Limit, and what besides it may be taken.
MOST = MEMORY * 5 // 4 + (64 << 20)
PATIENCE = 2
# Seconds that ending may take after an interruption; many, as other tests may run beside.
GRACE = 15
ACTIONS = Path(__file__).with_name("giant_actions.py")

N = giants.GIANT
# What can be told of them without reading: never-written data are their fill value.
ANSWERS = {
    "unwritten.h5": {
        "count": N,
        "count-none": 0,
        "count-computed": 0,
        "count-either": 3,
        "coordinate": 0,
        "both": N,
        "aggregate": f"[{{'n': {N}, 'most': 7.0}}]",
        "groups": f"[{{'a': 7.0, 'n': {N}}}]",
        "first": [7, 7, 7],
        "last": [7, 7, 7],
        "read": "memory-limit",
        "all": "memory-limit",
    },
    "chunks.h5": {
        "count": 2,
        "count-none": 0,
        "count-either": 3,
        "coordinate": 0,
        "first": [1, 1, 1],
        "last": [1, 1, 1],
        "rows": "[{'a': 9.0}, {'a': 10.0}]",
        "ordered": "[{'a': 10.0}, {'a': 9.0}]",
        "aggregate": "[{'n': 2, 'most': 10.0}]",
        "read": 2,
        "all": "memory-limit",
    },
    "odd-numbers.h5": {
        "count": 2,
        "count-none": 0,
        "first": [1, 1, 1],
        "last": [1, 1, 1],
        "rows": "[{'a': 9}, {'a': 10}]",
        "read": 2,
        "all": "memory-limit",
    },
    "large-chunks.h5": {
        "count": 0,
        "count-computed": 0,
        "coordinate": 0,
        "first": [0, 0, 0],
        "aggregate": "[{'n': 0, 'most': None}]",
        "groups": f"[{{'a': 0.0, 'n': {1 << 40}}}]",
    },
    "one-chunk.h5": {"first": "memory-limit", "count": "memory-limit", "last": [0, 0, 0]},
    "contiguous.h5": {"first": "corrupt-file", "count": "corrupt-file"},
    "compact.h5": {"first": "corrupt-file", "count": "corrupt-file"},
    "classic.nc": {"count": "corrupt-file", "all": "corrupt-file", "build": "corrupt-file"},
    "long.nc5": {"last": "corrupt-file", "count": "corrupt-file", "both": "corrupt-file"},
    "records.nc5": {"count": "corrupt-file", "all": "corrupt-file"},
    "small-chunks.zarr": {"all": "memory-limit"},
    "image.fits": {"count": "corrupt-file", "all": "corrupt-file"},
    "table.fits": {"count": "corrupt-file"},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Make a file of the same names and few values."""
    path = tmp_path_factory.mktemp("small") / "small.h5"
    with h5py.File(path, "w") as f:
        for name in "ax":
            f[name] = np.arange(10.0)
        f["x"].make_scale("x")
        f["a"].dims[0].attach_scale(f["x"])
    return path


def outcomes(path, small, tmp_path, *actions, isolated=False):
    """Return what came of each action on a file, and the base of memory."""
    env = dict(os.environ, SIEVA_STORE=str(tmp_path / "store"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    if isolated:
        env["ISOLATED"] = "1"
    command = [sys.executable, str(ACTIONS), str(path), str(MEMORY), str(PATIENCE), str(small), *actions]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (told[-1:], done.stderr[-2000:])
    (base,) = (t["base"] for t in told if "base" in t)
    return base, {t["action"]: t for t in told if "action" in t}


@pytest.mark.parametrize("name", giants.FILES)
def test_a_tiny_file_that_declares_to_be_giant(name, small, tmp_path):
    path = tmp_path / name
    giants.FILES[name](path)
    base, found = outcomes(path, small, tmp_path)
    for told in found.values():
        assert "wrong" not in told, told
        assert told["seconds"] < PATIENCE + GRACE, told
        assert told["peak"] - base < MOST, told
    for action, expected in ANSWERS.get(name, {}).items():
        told = found[action]
        assert told.get("error", told.get("value")) == expected, told


ISOLATED = ["classic.nc", "unwritten.h5", "chunks.h5", "odd-numbers.h5", "large-chunks.h5", "table.fits"]


@pytest.mark.parametrize("name", ISOLATED)
def test_isolated_it_is_the_same(name, small, tmp_path):
    path = tmp_path / name
    giants.FILES[name](path)
    actions = ("open", "first", "last", "all", "count", "count-none", "rows", "explain", "build", "calibrate")
    base, found = outcomes(path, small, tmp_path, *actions, isolated=True)
    for action, told in found.items():
        assert "wrong" not in told, told
        assert told["peak"] - base < MOST, told
        expected = ANSWERS[name].get(action)
        assert expected in (None, told.get("error", told.get("value"))), told
