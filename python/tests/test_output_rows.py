"""Outputs of rows, read back by each format's own library: table, CSV, JSON, Arrow, Parquet."""

import csv
import io
import json

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import sieva
from sieva import _native, errors
from sieva._output.rows import SHOWN_ROWS, write

ALL = ["time", "packed", "real", "big", "unsigned", "text"]


@pytest.fixture
def query(mixed):
    return mixed.query("time >= 0", ALL)


def written(query, kind):
    out = io.BytesIO()
    write(query, kind, out)
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


def test_parquet_keeps_what_is_said_of_columns(query, tmp_path):
    """Units and names are metadata of Arrow's fields: Parquet has a place for them in Arrow's own schema."""
    query.to_parquet(tmp_path / "out.parquet")
    read = pq.read_schema(tmp_path / "out.parquet")
    assert read.equals(query.to_arrow().schema, check_metadata=True)
    assert read.field("time").metadata[b"units"]


def test_parquet_holds_histograms(ocean, tmp_path):
    query = ocean.sql("SELECT z_t, histogram(TEMP, 5) AS h, count(*) AS n GROUP BY z_t ORDER BY z_t")
    query.to_parquet(tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.equals(query.to_arrow())
    found = {len(row["counts"]) for row in table.column("h").to_pylist()}
    assert 5 in found


ODD = pa.table(
    {
        "t": ["", "a,b", 'q"q', "\r\n", None, "\x00\x01\x1f\x7f\u2028", "\u202e", "é\t\\/\b\f"],
        "f": pa.array([0.0, -0.0, np.nan, np.inf, -np.inf, None, 5e-324, 1.7976931348623157e308], "f8"),
        "s": pa.array([0.1, 1e10, 123456.0, 1e-45, 3.4028235e38, None, np.nan, -1e-7], "f4"),
        "i": pa.array([2**63 - 1, -(2**63), 0, None, 1, 2, 3, 4], "i8"),
        "u": pa.array([2**64 - 1, None, 0, 1, 2, 3, 4, 5], "u8"),
        "b": [True, False, None, True, False, True, False, None],
        "d": pa.array([0, -1, 951782400500000, None, 253402300799999999, 1, 10, 10**6], pa.timestamp("us")),
    }
)


def rewritten(kind, table, size=3, out=None):
    """Return a table as a format, written in batches of so many rows."""
    out = out or io.BytesIO()
    sink = _native.RowWriter(kind, table.schema, out)
    for batch in table.to_batches(size):
        sink.write(batch)
    sink.finish()
    return out.getvalue()


def as_text(column):
    """Return the texts of a column as pyarrow casts it: floats say that they are some, times are ISO 8601."""
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        return pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")
    if pa.types.is_timestamp(column.type):
        text = pc.replace_substring(text, " ", "T")
        return pc.replace_substring_regex(text, r"\.0+$|(\.\d*[1-9])0+$", r"\1")
    return text


@pytest.mark.parametrize("size", [1, 3, 8])
def test_csv_is_what_pyarrow_and_the_csv_module_write(size):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(ODD.column_names)
    columns = [as_text(ODD.column(name)).to_pylist() for name in ODD.column_names]
    for row in zip(*columns, strict=True):
        # A missing text is empty, and an empty one is quoted.
        quoted = [
            ""
            if cell is None
            else f'"{cell.replace(chr(34), chr(34) * 2)}"'
            if cell == "" or set(cell) & set('",\r\n')
            else cell
            for cell in row
        ]
        out.write(",".join(quoted) + "\n")
    assert rewritten("csv", ODD, size).decode() == out.getvalue()


@pytest.mark.parametrize("size", [1, 3, 8])
def test_json_is_what_the_json_module_reads(size):
    made = rewritten("json", ODD, size).decode()
    answer = json.loads(made, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(answer) == ["columns", "rows"]
    assert answer["columns"] == ODD.column_names
    got = dict(zip(ODD.column_names, zip(*answer["rows"], strict=True), strict=True))
    special = {np.inf: "Infinity", -np.inf: "-Infinity"}
    for name in ("f", "s"):
        wanted = ODD.column(name).to_pylist()
        for here, value in zip(got[name], wanted, strict=True):
            if value is None or np.isnan(value):
                assert here is None
            elif np.isinf(value):
                assert here == special[value]
            else:
                assert (here, np.signbit(here)) == (
                    (value, np.signbit(value)) if name == "f" else (float(str(np.float32(value))), value < 0)
                )
    for name in ("t", "i", "u", "b"):
        assert list(got[name]) == ODD.column(name).to_pylist()
    assert list(got["d"]) == as_text(ODD.column("d")).to_pylist()
    texts = [line for line in made.split("\n") if line.startswith("[")]
    assert len(texts) == len(ODD)


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
@pytest.mark.parametrize("rows", [slice(0, 8), slice(2, 5), slice(0, 0)])
def test_columns_of_all_types_come_back(kind, rows):
    table = ODD.slice(rows.start, rows.stop - rows.start)
    made = pa.BufferReader(rewritten(kind, table))
    read = pq.read_table(made) if kind == "parquet" else pa.ipc.open_file(made).read_all()
    assert read.schema.equals(table.schema, check_metadata=True)
    for name in table.column_names:
        a, b = (t.column(name).combine_chunks() for t in (read, table))
        if pa.types.is_floating(a.type):
            bits = pa.uint64() if a.type == pa.float64() else pa.uint32()
            assert a.is_null().equals(b.is_null())
            a, b = a.drop_null().view(bits), b.drop_null().view(bits)
        assert a.equals(b)


def test_arrow_to_a_pipe_is_a_stream():
    out = io.BytesIO()
    sink = _native.RowWriter("arrow", ODD.schema, out, is_pipe=True)
    for batch in ODD.to_batches(5):
        sink.write(batch)
    sink.finish()
    assert pa.ipc.open_stream(out.getvalue()).read_all().schema.equals(ODD.schema)


class Full(io.BytesIO):
    """A stream that takes nothing."""

    def write(self, data):
        """Raise what a closed pipe does."""
        raise BrokenPipeError(32, f"no room for {len(data)} bytes")


@pytest.mark.parametrize("kind", ["table", "csv", "json", "arrow", "parquet"])
def test_what_a_stream_raises_is_raised(kind):
    with pytest.raises(BrokenPipeError, match="no room for"):
        rewritten(kind, ODD, out=Full())


def test_a_row_writer_says_what_it_cannot_do():
    for kind in ("netcdf", "hdf5"):
        with pytest.raises(errors.Unsupported, match=f"{kind} is not written row by row"):
            _native.RowWriter(kind, ODD.schema, io.BytesIO())
    with pytest.raises(errors.InvalidValue, match="table, csv, json, arrow, parquet, netcdf, hdf5"):
        _native.RowWriter("xml", ODD.schema, io.BytesIO())
    decimal = pa.table({"x": pa.array([1], pa.decimal128(5))})
    for kind in ("csv", "parquet"):
        with pytest.raises(errors.Unsupported, match="Decimal128"):
            rewritten(kind, decimal)
    sink = _native.RowWriter("csv", ODD.schema, io.BytesIO())
    sink.finish()
    with pytest.raises(errors.InvalidValue, match="finished already"):
        sink.finish()


class Terminal(io.BytesIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Return True."""
        return True


def test_a_terminal_is_shown_the_first_rows(ocean, capsys):
    query = ocean.query("TEMP > -100", ["TEMP"])
    out = Terminal()
    write(query, "table", out)
    assert len(out.getvalue().splitlines()) == SHOWN_ROWS + 2
    assert f"... {query.count() - SHOWN_ROWS:,} more rows" in capsys.readouterr().err
    few = ocean.query("TEMP > -100", ["TEMP"]).source.sql("SELECT TEMP WHERE TEMP > -100 LIMIT 3")
    out = Terminal()
    write(few, "table", out)
    assert len(out.getvalue().splitlines()) == 5
    assert capsys.readouterr().err == ""


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
