"""Questions that are drawn end, and are right: whatever columns, format, memory, threads, streams and blocks.

``SIEVA_GRIDFTP_DRAWS=1000`` draws more of them than the suite does, ``SIEVA_GRIDFTP_SEED`` others.
"""

import contextlib
import os
import random
import time

import h5py
import netCDF4
import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from gridftp_server import SECONDS, Server, fetch, retrieve
from local_result import local_result

DRAWS = int(os.environ.get("SIEVA_GRIDFTP_DRAWS", "60"))
SEED = int(os.environ.get("SIEVA_GRIDFTP_SEED", "20261122"))
SHAPE = (5, 40, 50)
MEMORY = ("24M", "96M", "1G")
THREADS = (1, 2, 5)
FORMATS = ("netcdf", "hdf5", "arrow", "parquet", "csv")
TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4")


@pytest.fixture(scope="module")
def drawn(share):
    """Return a file of arrays of many types, and their values."""
    path, drawing, values = share / "drawn.nc", np.random.default_rng(SEED), {}
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip("tyx", SHAPE, strict=True):
            file.createDimension(name, length)
        for i, kind in enumerate(TYPES):
            name = f"v_{kind}"
            # Every other array is chunked and compressed.
            storage = {"zlib": True, "chunksizes": (2, 16, 25)} if i % 2 else {"contiguous": True}
            variable = file.createVariable(name, kind, tuple("tyx"), fill_value=False, **storage)
            values[name] = drawing.integers(0, 100, SHAPE).astype(kind) + np.dtype(kind).type(
                0.5 if kind[0] == "f" else 0
            )
            variable[:] = values[name]
    path.chmod(0o644)
    return path, values


@pytest.fixture(scope="module")
def servers(share):
    """Return a server for each memory and number of threads."""
    with contextlib.ExitStack() as stack:
        found = {}
        for memory in MEMORY:
            for threads in THREADS:
                settings = {"SIEVA_GRIDFTP_MEMORY": memory, "SIEVA_GRIDFTP_THREADS": str(threads)}
                found[memory, threads] = stack.enter_context(Server(share, settings=settings))
        yield found


def draw_column(draw, values, number):
    """Return a column's text and its values."""
    name = draw.choice(list(values))
    if draw.random() < 0.6:
        return f"{name} AS c{number}", values[name]
    factor, other = draw.randrange(1, 5), draw.choice(list(values))
    wide = np.float64 if name.endswith(("f4", "f8")) or other.endswith(("f4", "f8")) else np.int64
    computed = values[name].astype(wide) * factor + values[other].astype(wide)
    return f"{name} * {factor} + {other} AS c{number}", computed


def draw_condition(draw, values):
    """Return a condition's text and where it is true; from all to nothing."""
    if draw.random() < 0.1:
        return "", np.ones(SHAPE, bool)
    name, least = draw.choice(list(values)), draw.choice([-1, 3, 30, 70, 95, 98, 99, 200])
    text, true = f"{name} > {least}", values[name] > least
    if draw.random() < 0.5:
        other, most = draw.choice(list(values)), draw.choice([5, 50, 90])
        if draw.random() < 0.5:
            return f" WHERE {text} AND {other} < {most}", true & (values[other] < most)
        return f" WHERE {text} OR {other} < {most}", true | (values[other] < most)
    return f" WHERE {text}", true


def draw_query(draw, values):
    """Return a query's text and its columns' values."""
    columns = [draw_column(draw, values, i) for i in range(draw.randrange(1, 21))]
    condition, true = draw_condition(draw, values)
    # Where all columns and conditions have the same dimensions, rows are in C order.
    hits = np.flatnonzero(true)
    text = f"SELECT {', '.join(text for text, _ in columns)}{condition}"
    if draw.random() < 0.3:
        most = draw.choice([0, 1, 7, 300, 5000])
        text, hits = f"{text} LIMIT {most}", hits[:most]
    return text, {f"c{i}": value.ravel()[hits] for i, (_, value) in enumerate(columns)}


def read_table(table):
    return {name: table[name].to_numpy() for name in table.column_names}


def read(path, form):
    """Return what a result's own library reads."""
    if form == "netcdf":
        with netCDF4.Dataset(path) as file:
            return {name: np.asarray(variable[:]) for name, variable in file.variables.items()}
    if form == "hdf5":
        with h5py.File(path) as file:
            return {name: file[name][:] for name in file}
    readers = {
        "arrow": pyarrow.feather.read_table,
        "parquet": pyarrow.parquet.read_table,
        "csv": pyarrow.csv.read_csv,
    }
    return read_table(readers[form](path))


def ask(draw, server, session, target, resource):
    """Return the way by which a result was asked for, and its bytes."""
    way = draw.choice(["ftp", "copy", "streams", "blocks"])
    if way == "ftp":
        return way, retrieve(session, "".join(resource))
    options = {
        "copy": (),
        "streams": ("-p", draw.randrange(1, 9)),
        "blocks": ("-p", draw.randrange(1, 5), "-bs", draw.choice([5000, 65_536, 1_000_003, 30_000_000])),
    }[way]
    return " ".join(map(str, options)), fetch(server.url(*resource), target, *options)


def check(drawn, servers, sessions, draw, target):
    """Draw a question, ask it, compare the answer with the library's here and with numpy's."""
    path, values = drawn
    sql, columns = draw_query(draw, values)
    form, setting = draw.choice(FORMATS), (draw.choice(MEMORY), draw.choice(THREADS))
    started = time.monotonic()
    resource = (str(path), f";sql={sql};format={form}")
    way, got = ask(draw, servers[setting], sessions[setting], target, resource)
    seconds = time.monotonic() - started
    told = f"{sql} as {form} by {way or 'copy'} with {setting}"
    assert seconds < SECONDS, told
    assert got == local_result(path, sql, form), told
    target.write_bytes(got)
    found = read(target, form)
    assert list(found) == list(columns) or sorted(found) == sorted(columns), told
    for name, expected in columns.items():
        np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} of {told}")
    return seconds


def test_drawn_questions_end_and_are_right(drawn, servers, target):
    with contextlib.ExitStack() as stack:
        sessions = {}
        for setting, server in servers.items():
            sessions[setting] = server.session()
            stack.callback(sessions[setting].close)
        draw, longest = random.Random(SEED), 0.0  # noqa: S311 - of tests
        for _ in range(DRAWS):
            longest = max(longest, check(drawn, servers, sessions, draw, target))
        print(f"{DRAWS} questions, the longest took {longest:.2f} s")
