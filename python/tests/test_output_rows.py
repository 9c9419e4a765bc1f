"""Outputs of rows, read back by each format's own library: table, CSV, JSON, Arrow, Parquet."""

import csv
import io
import json

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import sieva
from sieva._output import writer

ALL = ["time", "packed", "real", "big", "unsigned", "text"]


@pytest.fixture
def query(mixed):
    return mixed.query("time >= 0", ALL)


def written(query, kind):
    out = io.BytesIO()
    writer(kind)(query, out)
    return out.getvalue()


def test_csv_reads_back(query, tmp_path):
    query.to_csv(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ALL
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    assert columns["time"][:3] == ("2000-01-01T00:00:00", "2000-01-01T01:30:00", "2000-01-02T00:00:00")
    assert columns["packed"] == ("10.0", "10.5", "", "11.5", "12.0", "12.5")
    # Shortest for a float32, not for the float64 that it would be widened to.
    assert columns["real"] == ("0.1", "", "inf", "-inf", "1e-20", "16777216.0")
    assert columns["big"] == tuple(str(v) for v in (2**53 + 1, -(2**63), 0, 1, 2, 2**63 - 1))
    assert columns["unsigned"][0] == str(2**64 - 1)
    assert columns["text"] == ("plain", 'has "quotes"', "a,b", "line\nbreak", "", "ünï")


def test_csv_quotes_only_what_needs_it(query):
    text = written(query, "csv").decode()
    assert "plain\n" in text
    assert '"has ""quotes"""' in text
    assert '"a,b"' in text
    assert "\r" not in text


def test_csv_floats_round_trip(ocean):
    query = ocean.query("TEMP > -100", ["TEMP", "TLAT"])
    lines = written(query, "csv").decode().splitlines()[1:]
    temp, lat = np.array([line.split(",") for line in lines]).T
    np.testing.assert_array_equal(temp.astype("f4"), query.read("TEMP"))
    np.testing.assert_array_equal(lat.astype("f8"), query.read("TLAT"))


def test_json_reads_back(query):
    answer = json.loads(written(query, "json"))
    assert list(answer) == ["columns", "rows", "stats"]
    assert answer["columns"] == ALL
    columns = dict(zip(ALL, zip(*answer["rows"], strict=True), strict=True))
    assert columns["time"][1] == "2000-01-01T01:30:00"
    assert columns["packed"] == (10.0, 10.5, None, 11.5, 12.0, 12.5)
    assert columns["real"] == (0.1, None, "Infinity", "-Infinity", 1e-20, 16777216.0)
    assert columns["big"] == (2**53 + 1, -(2**63), 0, 1, 2, 2**63 - 1)
    assert columns["unsigned"][0] == 2**64 - 1
    assert columns["text"] == ("plain", 'has "quotes"', "a,b", "line\nbreak", "", "ünï")
    assert answer["stats"]["hits"] == 6


@pytest.mark.parametrize("kind", ["csv", "json", "table"])
def test_no_rows_still_have_columns(mixed, kind):
    text = written(mixed.query("real > 1e30 AND real < 0", ["real", "text"]), kind).decode()
    if kind == "json":
        assert json.loads(text)["rows"] == []
    else:
        assert text.splitlines()[0].replace(",", " ").split() == ["real", "text"]
        assert len(text.splitlines()) == (1 if kind == "csv" else 2)


def test_table_is_aligned(mixed):
    lines = written(mixed.query("time >= 0", ["packed", "text"]), "table").decode().splitlines()
    assert lines == [
        "packed  text",
        "------  ------------",
        "  10.0  plain",
        '  10.5  has "quotes"',
        "     -  a,b",
        "  11.5  line\\nbreak",
        "  12.0",
        "  12.5  ünï",
    ]


def test_groups_are_written(ocean):
    answer = json.loads(
        written(ocean.sql("SELECT z_t, count(TEMP) AS n GROUP BY z_t ORDER BY z_t DESC"), "json")
    )
    assert answer["columns"] == ["z_t", "n"]
    depths = [row[0] for row in answer["rows"]]
    assert depths == sorted(depths, reverse=True)
    assert sum(row[1] for row in answer["rows"]) == ocean.query("TEMP IS NOT NULL").count()


def test_histogram_is_written_as_json_and_arrow(ocean):
    query = ocean.sql("SELECT histogram(TEMP, 4) AS h WHERE TEMP > 0")
    ((histogram,),) = json.loads(written(query, "json"))["rows"]
    counts, edges = np.histogram(ocean.query("TEMP > 0").read("TEMP"), 4)
    assert histogram["counts"] == counts.tolist()
    np.testing.assert_allclose(histogram["edges"], edges)
    assert query.to_arrow().column("h")[0].as_py()["counts"] == counts.tolist()


def test_arrow_and_parquet_read_back(query, tmp_path):
    expected = query.to_arrow()
    query.to_parquet(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    query._write(tmp_path / "out.arrow", "arrow")
    with pa.memory_map(str(tmp_path / "out.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().equals(expected)


def test_data_frames_are_the_same_rows(query):
    table = query.to_arrow()
    assert table.schema.field("real").type == pa.float32()
    assert table.column("packed").null_count == 1
    assert query.to_polars().equals(pl.DataFrame(table))
    assert pl.DataFrame(query).equals(pl.DataFrame(table))  # by __arrow_c_stream__
    assert query.to_pandas()["big"].tolist() == table.column("big").to_pylist()


def test_batches_are_of_the_size_asked_for(ocean):
    query = ocean.query("TEMP > -100", ["TEMP"])
    batches = list(query.batches(100))
    assert [b.num_rows for b in batches[:-1]] == [100] * (len(batches) - 1)
    assert sum(b.num_rows for b in batches) == len(query)
    np.testing.assert_array_equal(
        np.concatenate([b.column(0).to_numpy() for b in batches]), query.read("TEMP")
    )


def test_html_is_escaped(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "evil.h5", "w") as file:
        file.attrs["title"] = "<script>alert(1)</script>"
        file["<b>x"] = np.arange(3)
    source = sieva.open(tmp_path / "evil.h5")
    for shown in (source, source.schema(), source.query(source["<b>x"] > 0)):
        html = shown._repr_html_()
        assert "<script>" not in html
        assert "<b>x" not in html
        assert "&lt;b&gt;x" in html


def test_schema_shows_the_three_descriptors(mixed, mixed_path):
    schema = mixed.schema()
    text = str(schema)
    for part in ("Physical storage", "Logical layout", "Value distribution", "coordinate values", "-99"):
        assert part in text
    assert json.loads(schema.to_json())["logical"]["coordinates"]["time"] == [0, 1.5, 24, 48, 72, 96]
    assert schema["source"]["path"] == str(mixed_path)
    assert schema["source"]["bytes"] == mixed_path.stat().st_size


@pytest.mark.parametrize("layout", [None, "columns"])
def test_one_column_with_missing_values_has_all_its_rows(tmp_path, layout):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = np.array([1.5, np.nan, np.nan, 2.0], "f4")
        file["n"] = np.array([7, -1, 8, -1], "i2")
        file["n"].attrs["_FillValue"] = np.int16(-1)
    source = sieva.open(tmp_path / "in.h5")
    for name, expected in (("x", [1.5, None, None, 2.0]), ("n", [7, None, 8, None])):
        path = tmp_path / f"{name}.csv"
        query = source.query(None, [name])
        if layout is None:
            query.to_csv(path)
        else:
            query._write(path, "csv", layout)
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        assert (head, len(rows), all(len(row) == 1 for row in rows)) == ([name], 4, True)
        assert [float(row[0]) if row[0] else None for row in rows] == expected
        read = pa_csv.read_csv(path)[name].to_pylist()
        assert read == expected
        frame = pd.read_csv(path)
        np.testing.assert_array_equal(frame[name], np.array(expected, "f8"))
