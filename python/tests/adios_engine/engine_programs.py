"""Programs that write and read by the engine for ADIOS2, compiled by ``make adios2``, and their XML."""

import os
import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent
BUILD = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "adios2"

# Seconds until a program is taken for hung.
DEADLINE = 120


def require(program):
    """Return the path of a program, or skip and say how to get it."""
    path = BUILD / program
    if not path.exists() or not (BUILD / "libsieva_adios2.so").exists():
        pytest.skip(f"no {path}: `make adios2` builds it")
    return path


def environment(place):
    """Return variables for a program: where ADIOS2 finds the engine, and directories of its own."""
    own = {"ADIOS2_PLUGIN_PATH": str(BUILD), "XDG_STATE_HOME": str(place / "state"), "HOME": str(place)}
    return {**os.environ, **own}


def config(path, **ios):
    """Write an XML with the engine for each IO, ``io={parameter: value}``; another one by ``engine``."""
    lines = ['<?xml version="1.0"?>', "<adios-config>"]
    for io, given in ios.items():
        engine = given.get("engine", "Plugin")
        own = {"PluginName": "sieva", "PluginLibrary": "sieva_adios2"} if engine == "Plugin" else {}
        parameters = own | {key: value for key, value in given.items() if key != "engine"}
        said = [f"<parameter key={quoteattr(k)} value={quoteattr(str(v))}/>" for k, v in parameters.items()]
        lines += [f'<io name="{io}"><engine type="{engine}">', *said, "</engine></io>"]
    path.write_text("\n".join([*lines, "</adios-config>"]))
    return path


def start(place, program, *args):
    """Start a program in a directory."""
    command = [str(require(program)), *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=place, env=environment(place), **pipes)


def ended(process):
    """Wait for a program; return its code, what it printed and what it said of errors."""
    out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out, err


def run(place, program, *args):
    """Run a program that succeeds; return what it printed."""
    code, out, err = ended(start(place, program, *args))
    assert code == 0, err
    return out


def refused(place, program, *args):
    """Run a program that fails; return what it says."""
    code, _, err = ended(start(place, program, *args))
    assert code == 1, err
    return err
