"""Progress of passes and of fetching: told to functions, shown on a terminal and nowhere else."""

import os
import pty
import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest
import sieva.share


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Return a group whose producer has two files, of which ada asks two things."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "steps").mkdir()
    for number in range(2):
        with h5py.File(tmp_path / "steps" / f"run.{number}.h5", "w") as file:
            file["T"] = np.arange(100_000, dtype="f8") + number
    group = sieva.share.create(tmp_path / "group", tmp_path / "steps", producer="model")
    group.ask("all", "SELECT T", user="ada")
    group.ask("mean", "SELECT avg(T) AS mean", format="csv", user="ada")
    return group


def test_functions_are_told_from_nothing_to_all(group, tmp_path):
    told = []

    def tell(*so_far):
        told.append(so_far)

    done = group.produce(settle=0, progress=tell)
    assert (done.answers, told[0], told[-1]) == (4, (0, 4), (4, 4))
    assert [so_far for so_far, _ in told] == sorted(so_far for so_far, _ in told)
    told.clear()
    fetched = group.fetch("ada/all/run.1.h5", tmp_path / "one.nc", progress=tell)
    assert told[-1] == (fetched.stat().st_size,) * 2
    told.clear()
    followed = group.follow("all", tmp_path / "all", user="ada", progress=tell)
    assert len(followed.files) == 2
    assert (told[0], told[-1]) == ((0, followed.bytes), (followed.bytes, followed.bytes))
    told.clear()
    # Nothing to do: nothing is told.
    group.follow("all", tmp_path / "all", user="ada", progress=tell)
    group.produce(settle=0, progress=tell)
    assert told == []


def test_a_function_that_raises_ends_the_pass(group, tmp_path):
    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        group.produce(settle=0, progress=stop)
    # The next one goes on.
    assert group.produce(settle=0).failed == 0
    with pytest.raises(RuntimeError, match="enough"):
        group.follow("all", tmp_path / "all", user="ada", progress=stop)
    group.follow("all", tmp_path / "all", user="ada")
    assert len([path for path in (tmp_path / "all").iterdir() if path.suffix == ".nc"]) == 2


def test_bars_are_shown_on_a_terminal_alone(group, tmp_path):
    commands = [
        ["produce", "--once", "--settle", "0s"],
        ["follow", "all", "-o", tmp_path / "all", "--once", "--as", "ada"],
        ["fetch", "ada/mean/run.0.h5", "-o", tmp_path / "mean.csv"],
    ]
    for name, *rest in commands:
        words = [sys.executable, "-m", "sieva", "share", name, tmp_path / "group", *rest]
        shown = on_terminal([str(word) for word in words])
        assert ("answering" if name == "produce" else "fetching") in shown
    for name, *rest in commands[:2]:
        words = [sys.executable, "-m", "sieva", "share", name, tmp_path / "group", *rest]
        plain = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
        assert "answering" not in plain.stderr
        assert "fetching" not in plain.stderr
    assert group.published() == []


def on_terminal(words):
    """Return what a command writes to a terminal that is its stderr."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read():
        while True:
            try:
                shown.extend(os.read(ours, 1 << 16) or b"")
            except OSError:
                return

    reader = threading.Thread(target=read)
    null = subprocess.DEVNULL
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(words, stdin=null, stdout=null, stderr=theirs, env=environment) as run:
        os.close(theirs)
        reader.start()
        assert run.wait(120) == 0
    reader.join(30)
    os.close(ours)
    return shown.decode(errors="replace")
