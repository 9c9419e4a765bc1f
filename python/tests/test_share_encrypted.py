"""Encrypted groups by commands and in Python, in a directory, on moto and on a real Swift."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import sieva.share


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Return a directory with a file of a producer; locks are beside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SIEVA_SHARE_KEY", raising=False)
    folder = tmp_path / "steps"
    folder.mkdir()
    with h5py.File(folder / "run.h5", "w") as file:
        file["T"] = values()
    return folder


def values():
    return np.random.default_rng(7).normal(size=200_000).astype("f4")


@pytest.mark.parametrize("objects", ["files", "partial"])
def test_consumers_with_the_key_have_what_they_asked_for(place, steps, tmp_path, objects):
    key = tmp_path / "key"
    group = sieva.share.create(place.root, steps, producer="model", key=key, encrypt=True)
    assert key.stat().st_mode & 0o777 == 0o600
    group.ask("high", "SELECT T WHERE T > -1", format="parquet", user="ada")
    group.ask("low", "SELECT T WHERE T < -3", format="parquet", user="ada")
    done = group.produce(settle=0, objects=objects, object_size="1 MiB")
    assert (done.answers, done.failed, done.troubles) == (2, 0, [])
    again = sieva.share.open_group(place.root, key=key)
    for name, expected in (("high", values()[values() > -1]), ("low", values()[values() < -3])):
        (path,) = again.follow(name, tmp_path / name, user="ada").files
        assert np.array_equal(pq.read_table(path)["T"].to_numpy(), expected)
    group.publish(steps / "run.h5", user="ada")
    back = again.fetch("run.h5", tmp_path / "back.h5")
    assert back.read_bytes() == (steps / "run.h5").read_bytes()
    with pytest.raises(sieva.errors.Unsupported, match="is encrypted"):
        group.link("run.h5")
    sizes = {key: size for key, (size, _) in place.held()[0].items()}
    assert sizes["published/ada/run.h5"] > back.stat().st_size
    if place.root.startswith("/"):
        for path in Path(place.root).rglob("*"):
            if path.is_file() and path.name != "group.json":
                assert path.read_bytes()[:8] == b"sievaenc", path
                assert b"SELECT" not in path.read_bytes()
    with pytest.raises(PermissionError, match="is encrypted"):
        sieva.share.open_group(place.root)
    other = tmp_path / "other"
    sieva.share.create(tmp_path / "elsewhere", key=other, encrypt=True)
    with pytest.raises(ValueError, match="the key is not the one of the group"):
        sieva.share.open_group(place.root, key=other)


def sieva_share(*args, check=True, **environment):
    command = [sys.executable, "-m", "sieva", "share", *map(str, args)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=environment)
    assert "Traceback" not in done.stderr
    if check:
        assert done.returncode == 0, done.stderr
    return done


def test_commands_take_the_key_by_a_file_or_the_environment(steps, tmp_path):
    group, key = tmp_path / "group", tmp_path / "key"
    refused = sieva_share("create", group, "--encrypt", check=False)
    assert refused.returncode == 1
    assert "--key FILE" in refused.stderr
    assert not group.exists()
    sieva_share("create", group, steps, "--as", "model", "--encrypt", "--key", key)
    sieva_share("ask", group, "mean", "SELECT avg(T) AS mean", "--format", "csv", "--as", "ada", "--key", key)
    sieva_share("produce", group, "--once", "--settle", "0s", SIEVA_SHARE_KEY=str(key))
    by_text = key.read_text().strip()
    sieva_share(
        "follow", group, "mean", "-o", tmp_path / "mean", "--once", "--as", "ada", SIEVA_SHARE_KEY=by_text
    )
    (path,) = (tmp_path / "mean").glob("*.csv")
    assert float(path.read_text().split()[1]) == pytest.approx(values().astype("f8").mean(), rel=1e-12)
    before = {path: path.read_bytes() for path in group.rglob("*") if path.is_file()}
    key.chmod(0o644)
    for environment, said in (
        ({}, "is encrypted"),
        ({"SIEVA_SHARE_KEY": str(key)}, "others may read it"),
        ({"SIEVA_SHARE_KEY": str(tmp_path / "none")}, "none"),
        ({"SIEVA_SHARE_KEY": by_text[:-1] + "g"}, "holds no key of a group"),
    ):
        done = sieva_share("status", group, check=False, **environment)
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
        assert by_text[-20:-1] not in done.stderr
    key.chmod(0o600)
    # Blanks and quotes around it do no harm; whatever looks like a key is never shown.
    digits = by_text.split(":")[1]
    for given in (f" {by_text}", f'"{by_text}"', f"'{by_text}'\n"):
        sieva_share("status", group, SIEVA_SHARE_KEY=given)
    for given in (digits, f" {digits}", by_text[:-2]):
        done = sieva_share("status", group, check=False, SIEVA_SHARE_KEY=given)
        assert (done.returncode, digits[:20] in done.stdout + done.stderr) == (1, False), done.stderr
    for given in (by_text, digits, f"'{by_text}'"):
        for args in (("status", group), ("create", group, "--encrypt")):
            done = sieva_share(*args, "--key", given, check=False)
            assert "the key itself is given where the path of its file belongs" in done.stderr
            assert (done.returncode, digits[:20] in done.stdout + done.stderr) == (1, False), done.stderr
    assert {path: path.read_bytes() for path in group.rglob("*") if path.is_file()} == before


def test_commands_that_are_named_do_what_they_say(steps, tmp_path):
    group, key = tmp_path / "a group", tmp_path / "key"
    made = sieva_share("create", group, steps, "--as", "model", "--encrypt", "--key", key)
    assert f"sieva share produce '{group}' --as model --key {key}" in made.stderr
    asked = sieva_share("ask", group, "mean", "SELECT avg(T) AS mean", "--as", "ada", "--key", key)
    assert f"sieva share follow '{group}' mean -o DIR --as ada --key {key}" in asked.stderr
    for command in (made.stderr, asked.stderr):
        words = shlex.split(command.splitlines()[-1].partition("sieva share ")[2])
        once = ["--once", *(["--settle", "0s"] if words[0] == "produce" else [])]
        sieva_share(*(str(tmp_path / "mean") if word == "DIR" else word for word in words), *once)
    assert list((tmp_path / "mean").glob("*.nc"))
    path = steps / "run.h5"
    done = sieva_share("publish", group, path, "--user", "ada", SIEVA_SHARE_KEY=str(key))
    # Links to what is encrypted there are none.
    assert f"sieva share fetch '{group}' ada/run.h5" in done.stderr
    assert "link" not in done.stderr
    back = shlex.split(done.stderr.splitlines()[0].partition("sieva share ")[2])
    assert back == ["unpublish", str(group), "run.h5", "--user", "ada"]
    sieva_share(*back, SIEVA_SHARE_KEY=str(key))
