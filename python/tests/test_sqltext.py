"""Columns added to a SELECT by its text."""

import pytest
from sieva._sqltext import with_columns


@pytest.mark.parametrize(
    ("sql", "longer"),
    [
        ("SELECT a FROM 'f' WHERE a > 1", "SELECT a, X  FROM 'f' WHERE a > 1"),
        ("select a, b from 'f'", "select a, b, X  from 'f'"),
        ("SELECT * FROM 'f' WHERE a > 1", 'SELECT "c", "d", X  FROM \'f\' WHERE a > 1'),
        ("SELECT a * b FROM 'f'", "SELECT a * b, X  FROM 'f'"),
        ("SELECT a", "SELECT a, X "),
        ("SELECT a;", "SELECT a, X ;"),
        ("SELECT * ;", 'SELECT "c", "d", X  ;'),
        ("SELECT a WHERE b = 'x FROM y'", "SELECT a, X  WHERE b = 'x FROM y'"),
        ("SELECT \"from\", 'from' AS b FROM 'f'", "SELECT \"from\", 'from' AS b, X  FROM 'f'"),
        ("SELECT g/from FROM 'f'", "SELECT g/from, X  FROM 'f'"),
        ("SELECT (SELECT max(a) FROM 'g') FROM 'f'", "SELECT (SELECT max(a) FROM 'g'), X  FROM 'f'"),
        ("SELECT a -- FROM here\nFROM 'f'", "SELECT a, X  -- FROM here\nFROM 'f'"),
        ("SELECT a /* FROM */ LIMIT 3", "SELECT a, X  /* FROM */ LIMIT 3"),
        ("SELECT a, limit LIMIT 3", "SELECT a, limit, X  LIMIT 3"),
        ("SELECT limit + offset FROM 'f'", "SELECT limit + offset, X  FROM 'f'"),
        ("SELECT * LIMIT 3", 'SELECT "c", "d", X  LIMIT 3'),
        ("SELECT a ORDER BY a", "SELECT a, X  ORDER BY a"),
        ("SELECT DISTINCT a FROM 'f'", None),
    ],
)
def test_columns_stand_behind_those_of_the_query(sql, longer):
    assert with_columns(sql, ["c", "d"], ["X"]) == longer
