"""Names and texts of files steer no terminal."""

import json

import h5py
import numpy as np
import pytest
import sieva
from click.testing import CliRunner
from sieva import cli, errors
from sieva._printable import printable

EVIL = "a\x1b]0;owned\x07\x9b2J\u202eb"
SHOWN = "a\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}b"


@pytest.fixture
def path(tmp_path):
    """Return a file whose names and texts command a terminal, under a name that does."""
    made = tmp_path / f"{EVIL}.h5"
    with h5py.File(made, "w") as file:
        file[EVIL] = np.arange(5)
        file[EVIL].attrs["units"] = EVIL
        file["text"] = np.array([EVIL, "plain"], dtype=object)
    return made


def is_calm(text):
    return not any(c in text for c in "\x1b\x07\x9b\u202e\r")


def test_what_is_escaped():
    assert printable(EVIL) == SHOWN
    assert printable("a\nb\t\udc80") == "a\\nb\\t\\udc80"
    assert printable("ü\nb\t", lines=True) == "ü\nb\t"


def test_reprs_plans_and_errors_are_calm_and_json_is_exact(path):
    source = sieva.open(path)
    query = source.query(source[EVIL] > 2)
    source.build_index()
    for text in (
        str(source.schema()),
        repr(source),
        repr(source.arrays),
        repr(query),
        repr(source.index_status()),
        query.explain(analyze=True),
    ):
        assert is_calm(text), text
        assert SHOWN in text
    assert any(array["path"] == EVIL for array in json.loads(source.schema().to_json())["logical"]["arrays"])
    with pytest.raises(errors.UnknownArray) as raised:
        source[f"no {EVIL}"]
    assert is_calm(str(raised.value) + str(raised.value.hint))
    assert SHOWN in str(raised.value)


def test_the_command_line_is_calm(path, tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(cli.cli, [str(a) for a in arguments], catch_exceptions=True)
        return done.output + str(done.exception or "")

    name = f'"{EVIL}"'
    catalog = tmp_path / "c.sqlite"
    for arguments in (
        ("schema", path),
        ("index", path),
        ("index", path, "--status"),
        ("query", f"SELECT {name}, text FROM '{path}'"),
        ("explain", f"SELECT {name} FROM '{path}' WHERE {name} > 1"),
        ("schema", f"{path}x"),
        ("catalog", "add", path, "--catalog", catalog),
        ("catalog", "find", "", "--catalog", catalog),
    ):
        text = run(*arguments)
        assert is_calm(text), (arguments, text)
