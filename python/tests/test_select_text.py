"""What is sent to a server: a SELECT as text, without FROM, whose columns keep their names."""

import pytest
from sieva import _native, col
from sieva._gridftp.source import RemoteSource


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("SELECT a FROM 'f' WHERE a > 1", "SELECT a WHERE a > 1"),
        ("select a, b from 'f'", "SELECT a, b"),
        ("SELECT * FROM 'f' LIMIT 3", "SELECT * LIMIT 3"),
        ("SELECT a+1 FROM 'f'", 'SELECT a + 1 AS "a+1"'),
        ("SELECT g/from FROM 'f'", "SELECT g/from"),
        ("SELECT a WHERE a > (SELECT avg(b) FROM 'g')", "SELECT a WHERE a > (SELECT avg(b) FROM 'g')"),
        ("SELECT a -- FROM here\nFROM 'f'", "SELECT a"),
        ("SELECT FROM", "SELECT FROM"),
    ],
)
def test_from_is_left_out_and_names_stay(sql, sent):
    assert _native.without_from(sql) == sent


def test_a_remote_query_is_text():
    source = RemoteSource("ftp://example.org/ocean.nc")
    assert source.query().text == "SELECT *"
    query = source.query((col("TEMP") > 5) & (col("z t") < 10), select=["TEMP", col("SALT") * 2])
    assert query.text == 'SELECT TEMP, "SALT" * 2 WHERE "TEMP" > 5 AND "z t" < 10'
    assert query._other("g/x").text == 'SELECT g/x WHERE "TEMP" > 5 AND "z t" < 10'
