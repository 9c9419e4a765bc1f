"""Run every action on one file, and report a line of JSON for each.

    python giant_actions.py PATH MEMORY PATIENCE SMALL [ACTION ...]

Told are what came of it, how long it took, and the peak of memory so far. An action that takes longer than
PATIENCE seconds is interrupted, as Ctrl-C does. SMALL is a file of the same names on which all is done first:
what the interpreter and the libraries take by themselves is told as the base.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import sieva
import xarray as xr
from sieva import cli

path, memory, patience = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


def source():
    # HDF5 does not name dimensions; both arrays are in these.
    unnamed = path.endswith(("unwritten.h5", "chunks.h5", "odd-numbers.h5"))
    dims = {name: ["x"] for name in "ax"} if unnamed else None
    return sieva.open(path, memory=memory, dims=dims, isolated="ISOLATED" in os.environ)


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist() if value.size <= 8 else f"{value.size} values"
    return value if isinstance(value, int | float | str) else str(value)[:60]


def query(condition):
    return source().query(condition, memory=memory)


def rows(text):
    return str(source().sql(text, memory=memory).to_arrow().to_pylist())[:80]


def command(*args):
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = cli.main([*args])
    out.flush()
    return f"{code}: {out.buffer.getvalue().decode()[-150:]}"


def last(name):
    array = source()[name]
    return array[tuple(slice(max(n - 3, 0), n) if i == 0 else slice(0, 1) for i, n in enumerate(array.shape))]


ACTIONS = {
    "open": lambda: len(source()),
    "repr": lambda: len(repr(source())),
    "schema": lambda: len(str(source().schema())),
    "json": lambda: len(source().schema().to_json()),
    "cli-schema": lambda: command("schema", path),
    "first": lambda: source()["a"][(slice(0, 3),) + (0,) * (source()["a"].ndim - 1)],
    "last": lambda: last("a"),
    "all": lambda: source()["a"][...],
    "count": lambda: query("a > 5").count(),
    "count-none": lambda: query("a > 50").count(),
    "count-computed": lambda: query("a * 2 > 50").count(),
    "count-either": lambda: query("a > 50 OR idx(x) < 3").count(),
    "coordinate": lambda: query("x > 5").count(),
    "both": lambda: query("a > 5 AND x < 3").count(),
    "rows": lambda: rows("SELECT a WHERE a > 5 LIMIT 3"),
    "ordered": lambda: rows("SELECT a WHERE a > 5 ORDER BY a DESC LIMIT 3"),
    "aggregate": lambda: rows("SELECT count(*) AS n, max(a) AS most WHERE a > 5"),
    "groups": lambda: rows("SELECT a, count(*) AS n GROUP BY a"),
    "read": lambda: query("a > 5").read("a").size,
    "explain": lambda: len(str(query("a > 5 AND x < 3").explain())),
    "histogram": lambda: source().histogram("a"),
    "calibrate": lambda: source().calibrate() and 1,
    "build": lambda: source().build_index("a", memory=memory) and 1,
    "sort": lambda: source().build_index("a", kinds=["sorted"], memory=memory) and 1,
    "xarray": lambda: len(xr.open_dataset(path, engine="sieva", memory=memory)),
    "cli-query": lambda: command(
        "query", f"SELECT count(*) FROM '{path}' WHERE a > 5", "--memory", str(memory)
    ),
}


def interrupt(*_args):
    raise KeyboardInterrupt


def peak():
    # Not that of getrusage, which begins with the size of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def tell(**found):
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def run(name):
    tell(begin=name)
    started, found = time.monotonic(), {}
    signal.setitimer(signal.ITIMER_REAL, patience)
    try:
        found["value"] = plain(ACTIONS[name]())
    except sieva.SievaError as e:
        found["error"], found["message"] = e.kind, str(e)[:300]
    except KeyboardInterrupt:
        found["error"] = "interrupted"
    except (KeyError, IndexError) as e:
        found["error"] = repr(e)[:100]
    except BaseException as e:
        found["wrong"] = f"{type(e).__name__}: {e}"[:300]
    signal.setitimer(signal.ITIMER_REAL, 0)
    tell(action=name, seconds=time.monotonic() - started, peak=peak(), **found)


def warm(small):
    global path  # noqa: PLW0603 - the actions are on the one file of this process
    giant, path = path, small
    for action in ACTIONS.values():
        with contextlib.suppress(sieva.SievaError):
            action()
    path = giant


def main():
    signal.signal(signal.SIGALRM, interrupt)
    warm(sys.argv[4])
    tell(base=peak())
    for name in sys.argv[5:] or ACTIONS:
        run(name)


if __name__ == "__main__":
    main()
