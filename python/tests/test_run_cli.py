"""``sieva query -f``: statements of a file, their results in order, and what is told of those that fail."""

import csv
import io
import json

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
        (["SELECT 1", "-f", "x.sql"], "give a query, or a file of them by -f"),
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
