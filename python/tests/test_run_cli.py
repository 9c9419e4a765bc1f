"""``sieva query -f``: statements of a file, their results in order, and what is told of those that fail."""

import csv
import io
import json
import os

import pytest
import sieva
from sieva._statements import Statement, split
from sieva.cli import main


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; -- nothing\n;", []),
        ("SELECT 1", [Statement(1, "SELECT 1")]),
        (
            "-- ; first\nSELECT a -- 'open\nFROM 'x;--''y.nc';\n\n  SELECT \"b;\"\n;",
            [Statement(2, "SELECT a  \nFROM 'x;--''y.nc'"), Statement(5, 'SELECT "b;"')],
        ),
        ("a;b;\nc", [Statement(1, "a"), Statement(1, "b"), Statement(2, "c")]),
        ("a 'x\n;y'\n;\nb", [Statement(1, "a 'x\n;y'"), Statement(4, "b")]),
        ("a - -b -- c", [Statement(1, "a - -b")]),
    ],
)
def test_statements_end_with_semicolons(text, expected):
    assert split(text) == expected


def test_a_quote_without_an_end_names_its_line():
    with pytest.raises(sieva.errors.SyntaxError_, match="line 2: a text in ' has no end"):
        split("SELECT a;\nSELECT b FROM 'x.nc")


@pytest.fixture
def statements(ocean_path, tmp_path):
    path = tmp_path / "queries.sql"
    path.write_text(
        f"-- warm water\nSELECT TEMP FROM '{ocean_path}' WHERE TEMP > 5;\n"
        f"SELECT count(*) AS n FROM '{ocean_path}' WHERE TEMP > 5 AND SALT > 30;\n"
    )
    return path


def answers(ocean_path):
    source = sieva.open(ocean_path)
    warm = source.query("TEMP > 5").read("TEMP")
    both = source.query("TEMP > 5 AND SALT > 30").count()
    return warm, both


def test_results_follow_one_another(statements, ocean_path, capfdbinary):
    assert main(["query", "-f", str(statements), "--format", "csv", "--stats"]) == 0
    out, err = capfdbinary.readouterr()
    rows = list(csv.reader(io.StringIO(out.decode())))
    warm, both = answers(ocean_path)
    assert rows[0] == ["TEMP"]
    assert [float(row[0]) for row in rows[1 : 1 + len(warm)]] == pytest.approx(warm.tolist())
    assert rows[1 + len(warm) :] == [["n"], [str(both)]]
    assert b"2 evaluated together in 1 scans, 0 alone" in err


def test_results_go_to_files(statements, ocean_path, tmp_path, capfd):
    assert main(["query", "-f", str(statements), "-o", str(tmp_path / "out"), "--format", "json"]) == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["1.json", "2.json"]
    told = json.loads((tmp_path / "out" / "2.json").read_text())
    assert (told["columns"], told["rows"]) == (["n"], [[answers(ocean_path)[1]]])
    assert capfd.readouterr().out == ""


def test_a_statement_that_fails_is_named_and_the_others_are_answered(statements, ocean_path, capfd):
    text = statements.read_text()
    statements.write_text(f"SELECT nothing FROM '{ocean_path}';\n{text}\nSELECT TEMP\nFROM 'missing.nc'")
    assert main(["query", "-f", str(statements), "--format", "csv"]) == 1
    out, err = capfd.readouterr()
    assert "sieva: statement 1 (line 1): " in err
    assert "sieva: statement 4 (line 6): " in err
    assert "missing.nc" in err
    assert out.splitlines()[-1] == str(answers(ocean_path)[1])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "give a query, or a file of them by -f"),
        (["SELECT 1", "-f", "x.sql"], "a query and -f: give one of them"),
        (["-f", "x.sql", "--engine", "local"], "-f is for queries that this process answers"),
        (["-f", "x.sql", "--format", "parquet"], "name a directory by -o"),
    ],
)
def test_wrong_usage(args, message, capfd):
    assert main(["query", *args]) == 2
    assert message in capfd.readouterr().err


def test_a_file_of_nothing_is_an_error(tmp_path, capfd):
    path = tmp_path / "empty.sql"
    path.write_text("-- nothing yet\n")
    assert main(["query", "-f", str(path)]) == 1
    assert "has no statement" in capfd.readouterr().err
    assert main(["query", "-f", str(tmp_path / "missing.sql")]) == 1
    assert "missing.sql" in capfd.readouterr().err


def test_a_long_statement_is_split_piece_by_piece():
    words = "a" * 200_000 + " -\n" + "('x' OR \"y\") " * 200_000
    found = split(f"\n-- no\n{words};b")
    assert found == [Statement(3, words.strip()), Statement(4, "b")]


def test_results_on_stdout_say_which_statement_they_are_of(ocean_path, tmp_path, capfd):
    path = tmp_path / "queries.sql"
    one = f"SELECT count(*) AS n FROM '{ocean_path}' WHERE TEMP > 5"
    path.write_text(f"{one};\nSELECT nothing FROM '{ocean_path}';\n\n{one}")
    assert main(["query", "-f", str(path), "--format", "json"]) == 1
    out = capfd.readouterr().out
    decoder, told = json.JSONDecoder(), []
    while out.strip():
        found, end = decoder.raw_decode(out.lstrip())
        told.append(found)
        out = out.lstrip()[end:]
    assert [(t["statement"], t["line"], "error" in t) for t in told] == [
        (1, 1, False),
        (2, 2, True),
        (3, 4, False),
    ]
    assert told[0]["rows"] == told[2]["rows"] == [[answers(ocean_path)[0].size]]
    assert told[1]["error"]["kind"] == "unknown-array"
    assert main(["query", "-f", str(path)]) == 1
    lines = capfd.readouterr().out.splitlines()
    heads = [line for line in lines if line.startswith("-- statement")]
    assert heads == ["-- statement 1 (line 1)", "-- statement 2 (line 2)", "-- statement 3 (line 4)"]
    assert lines[lines.index(heads[1]) + 1] == "failed"


def test_a_mark_of_byte_order_is_no_part_of_a_statement(ocean_path, tmp_path, capfd):
    path = tmp_path / "queries.sql"
    path.write_text(f"SELECT count(*) AS n FROM '{ocean_path}' WHERE TEMP > 5", encoding="utf-8-sig")
    assert main(["query", "-f", str(path), "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ["n", str(answers(ocean_path)[0].size)]


@pytest.mark.parametrize(
    "data", ["SELECT a FROM 'b'".encode("utf-16"), b"\x89HDF\r\n\x1a\n\xff", b"SELECT\0"]
)
def test_what_is_no_text_is_named(tmp_path, capfd, data):
    path = tmp_path / "queries.sql"
    path.write_bytes(data)
    assert main(["query", "-f", str(path)]) == 1
    assert f"sieva: '{path}' is no text in UTF-8\nhint: save it as UTF-8" in capfd.readouterr().err


def test_only_a_regular_file_of_statements_is_read(tmp_path, capfd):
    os.mkfifo(tmp_path / "pipe")
    for name, wrong in (
        ("pipe", "it is no regular file"),
        ("", "a directory"),
        ("nofile.sql", "No such file"),
    ):
        path = tmp_path / name
        assert main(["query", "-f", str(path)]) == 1
        err = capfd.readouterr().err
        assert f"'{path}'" in err
        assert wrong in err


def test_a_file_of_statements_has_an_end(tmp_path, capfd):
    path = tmp_path / "queries.sql"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert main(["query", "-f", str(path)]) == 1
    assert f"'{path}' is longer than 64 MiB" in capfd.readouterr().err


def test_a_directory_of_results_is_not_named_as_a_file(statements, tmp_path, capfd):
    target = tmp_path / "x.csv"
    assert main(["query", "-f", str(statements), "-o", str(target)]) == 2
    assert "-o with -f names a directory" in capfd.readouterr().err
    assert not target.exists()
