"""The units of systemd: what they start is run as they say it, with the directories that they have."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import sieva.share

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"


def service_of(name):
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    unit.optionxform = str
    unit.read(UNITS / name)
    return unit["Service"]


def start(name, base, variables):
    """Run what a unit starts: specifiers and variables filled in, `sieva` by this Python."""
    service = service_of(name)
    places = {"%S": str(base / "lib"), "%C": str(base / "cache")}
    for kind, place in (("StateDirectory", "%S"), ("CacheDirectory", "%C")):
        if kind in service:
            (Path(places[place]) / service[kind]).mkdir(parents=True, exist_ok=True)

    def fill(text):
        for specifier, place in places.items():
            text = text.replace(specifier, place)
        return text

    words = []
    for word in service["ExecStart"].split():
        if found := re.fullmatch(r"\$\{(\w+)\}", word):
            words.append(variables[found[1]])
        elif found := re.fullmatch(r"\$(\w+)", word):
            words += variables.get(found[1], "").split()
        else:
            words.append(fill(word))
    assert words.pop(0) == "/usr/bin/sieva"
    key, _, value = service["Environment"].partition("=")
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_STATE_HOME")} | {key: fill(value)}
    command = [sys.executable, "-m", "sieva", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=env)


def test_units_start_a_producer_and_a_follower_that_keep_to_their_directories(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["T"] = np.arange(10.0)
    group = sieva.share.create(tmp_path / "group", tmp_path / "a.h5", producer="model")
    group.ask("high", "SELECT T WHERE T > 6", format="csv", user="ada")
    made = start(
        "sieva-produce@.service",
        tmp_path,
        {
            "SIEVA_GROUP": str(tmp_path / "group"),
            "SIEVA_PRODUCER": "model",
            "SIEVA_PRODUCE_OPTIONS": "--once --settle 0s",
        },
    )
    assert "1 object put" in made.stderr
    start(
        "sieva-follow@.service",
        tmp_path,
        {
            "SIEVA_GROUP": str(tmp_path / "group"),
            "SIEVA_ASK": "high",
            "SIEVA_FOLDER": str(tmp_path / "high"),
            "SIEVA_USER": "ada",
            "SIEVA_FOLLOW_OPTIONS": "--once",
        },
    )
    assert (tmp_path / "high" / "a.csv").read_text().split() == ["T", "7.0", "8.0", "9.0"]
    # What they keep lies below the directory that systemd makes for them, and nowhere beside it.
    assert [path.name for path in (tmp_path / "lib").iterdir()] == ["sieva"]
    assert list((tmp_path / "lib" / "sieva" / "share").glob("*.lock"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("name", ["sieva-produce@.service", "sieva-follow@.service"])
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path, name):
    unit = tmp_path / name.replace("@", "@ocean")
    unit.write_text((UNITS / name).read_text().replace("/usr/bin/sieva", shutil.which("true")))
    done = subprocess.run(
        [shutil.which("systemd-analyze"), "verify", "--man=no", str(unit)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, unit.name in done.stderr) == (0, False), done.stderr
