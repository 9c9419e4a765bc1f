"""The options of Python and the command line are those of the engine's table."""

import inspect
import typing

import pytest
import sieva
from click.testing import CliRunner
from sieva import _native, _options, cli

ROWS = _native.options()
CALLS = {
    "query": (_options.Running, sieva.Source.query),
    "run_task": (_options.RunningTask, sieva.Source.run_task),
    "open": (_options.Opening, sieva.open),
    "collection": (_options.OpeningCollection, sieva.collection),
    "collection_query": (_options.Running, sieva.Collection.sql),
    "open_foreign": (_options.OpeningForeign, None),
}


def keywords(function):
    parameters = inspect.signature(function).parameters.values()
    # Engines are Python's, and not of the table.
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "engine"]


@pytest.mark.parametrize("call", CALLS)
def test_types_and_arguments_are_those_of_the_table(call):
    typed, function = CALLS[call]
    wanted = [row["name"] for row in ROWS if call in row["calls"]]
    assert len(wanted) >= 5
    assert typed.__optional_keys__ == set(wanted)
    if function is not None:
        assert keywords(function) == wanted


def test_arguments_of_building_are_those_of_the_table():
    wanted = [row["name"] for row in ROWS if "build_index" in row["calls"]]
    assert keywords(sieva.Source.build_index) == wanted


def test_words_are_those_of_the_table():
    words = {row["name"]: row["words"] for row in ROWS if row["words"]}
    assert words.pop("kinds") == ["zonemap", "bitmap", "sorted"]
    assert words == {
        "access": list(typing.get_args(_options.Access)),
        "fetch": list(typing.get_args(_options.Fetch)),
    }


def test_the_command_line_has_what_the_table_says():
    query, index = ({flag for param in c.params for flag in param.opts} for c in (cli.query, cli.index))
    for row in ROWS:
        has = index if row["stage"] == "building" else query
        assert set(row["command_line"]) <= has, row["name"]
        assert row["command_line"] or row["no_command_line"]


def test_unknown_options_are_told_with_the_nearest(ocean_path):
    source = sieva.open(ocean_path)
    with pytest.raises(TypeError, match=r"'memry' is no option of query\(\): did you mean 'memory'"):
        source.query("TEMP > 5", memry=1)
    with pytest.raises(TypeError, match=r"'jion' is no option of open\(\): did you mean 'join'"):
        sieva.open(ocean_path, jion="t")
    with pytest.raises(TypeError, match="its plan says it"):
        source.run_task(source.query("TEMP > 5").tasks(1)[0], cross=True)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"memory": "lots"}, ValueError, "'lots' is no size"),
        ({"memory": 0}, ValueError, "expected a positive one"),
        ({"memory": -1}, ValueError, "a size of -1 bytes"),
        ({"memory": True}, TypeError, "a size is a number of bytes"),
        ({"threads": "4"}, TypeError, "threads= is a whole number, not negative, got '4'"),
        ({"access": 1}, TypeError, "access= is a word, got 1"),
        ({"cross": "no"}, TypeError, "cross= is True or False, got 'no'"),
    ],
)
def test_wrong_values_are_told(ocean_path, options, error, text):
    with pytest.raises(error, match=text):
        sieva.open(ocean_path).query("TEMP > 5", **options)


def test_a_task_may_be_told_what_it_spills(ocean_path):
    source = sieva.open(ocean_path)
    query = source.query("TEMP > 5")
    parts = [source.run_task(task, spill=0, memory="64MiB") for task in query.tasks(2)]
    assert query.finish(parts).count() == query.count() > 0


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("public_only=maybe", "public_only: expected true or false, got 'maybe'"),
        ("retries=few", "retries: invalid literal"),
        ("deadline=", "is not of the form name=value, with one of the names retries, deadline"),
        ("colour=blue", ", ".join(row["name"] for row in _native.remote_option_rows())),
    ],
)
def test_wrong_options_of_remote_storage_are_told(ocean_path, option, said):
    ran = CliRunner().invoke(cli.cli, ["schema", str(ocean_path), "--storage-option", option])
    assert ran.exit_code == 2
    assert said in " ".join(ran.output.split())


@pytest.mark.parametrize("row", _native.remote_option_rows(), ids=lambda row: row["name"])
def test_options_of_remote_storage_are_read_by_their_kind(ocean_path, row, tmp_path):
    """A local file has none of them, but they are read."""
    right, wrong = {
        "seconds": (1.5, -1.0),
        "count": (3, -1),
        "bytes": (1 << 20, 2**70),
        "directory": (str(tmp_path), 5),
        "flag": (True, "yes"),
    }[row["kind"]]
    sieva.open(ocean_path, storage_options={row["name"]: right}).close()
    with pytest.raises((sieva.errors.InvalidValue, TypeError)):
        sieva.open(ocean_path, storage_options={row["name"]: wrong})
    text = str(right).lower() if row["kind"] == "flag" else str(right)
    ran = CliRunner().invoke(
        cli.cli, ["schema", str(ocean_path), "--storage-option", f"{row['name']}={text}"]
    )
    assert ran.exit_code == 0, ran.output


def test_an_address_of_no_store_is_told_with_all_of_them():
    with pytest.raises(sieva.errors.Unsupported, match="no storage of scheme 'gopher://'") as raised:
        sieva.open("gopher://host/a.nc")
    forms = ", ".join(store["form"] for store in _native.stores())
    assert raised.value.hint == f"use a local path, {forms}"
