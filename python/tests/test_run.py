"""Several queries at once: what they share is read once, and each has the answer that it has by itself."""

import h5py
import netCDF4
import numpy as np
import pytest
import sieva
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sieva import errors

SHAPE = (24, 160, 200)
CHUNK = (3, 80, 100)


def values():
    """Return the arrays of the files: real numbers with what is odd among them, and whole ones."""
    rng = np.random.default_rng(3)
    t = rng.normal(10, 8, SHAPE).astype("f4")
    t[rng.random(SHAPE) < 0.01] = np.nan
    t[0, 0, :4] = [-0.0, 0.0, np.inf, -np.inf]
    s = rng.normal(35, 1, SHAPE).astype("f4")
    n = rng.integers(-50, 50, SHAPE).astype("i2")
    return {"T": t, "S": s, "N": n}


def write_netcdf3(path, arrays):
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as f:
        for name, length in zip("tyx", SHAPE, strict=True):
            f.createDimension(name, length)
        for name, array in arrays.items():
            f.createVariable(name, array.dtype, ("t", "y", "x"))[:] = array


def write_hdf5(path, arrays):
    with h5py.File(path, "w") as f:
        for name, length in zip("tyx", SHAPE, strict=True):
            f[name] = np.arange(length)
            f[name].make_scale(name)
        for name, array in arrays.items():
            f.create_dataset(name, data=array, chunks=CHUNK, compression="gzip", shuffle=True)
            for d, dim in enumerate("tyx"):
                f[name].dims[d].attach_scale(f[dim])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory, arrays = tmp_path_factory.mktemp("run"), values()
    paths = {"netcdf3": directory / "plain.nc", "hdf5": directory / "deflated.h5"}
    write_netcdf3(paths["netcdf3"], arrays)
    write_hdf5(paths["hdf5"], arrays)
    return paths, arrays


def session():
    """Return a session that keeps nothing from query to query: what is shared is shared by the run."""
    return sieva.Session(cache=0)


def stored(path, *names):
    """Return the bytes and the number of the chunks of some arrays, as stored."""
    with h5py.File(path) as f:
        return (
            sum(f[name].id.get_storage_size() for name in names),
            sum(f[name].id.get_num_chunks() for name in names),
        )


# Each with numpy's answer. The grouped and the ordered ones read what the others read.
SCANS = [
    ("T > 25", lambda v: v["T"] > 25),
    ("T > 20 AND S < 34", lambda v: (v["T"] > 20) & (v["S"] < 34)),
    ("S BETWEEN 34.5 AND 34.6", lambda v: (v["S"] >= 34.5) & (v["S"] <= 34.6)),
    ("T < -10 OR S > 38", lambda v: (v["T"] < -10) | (v["S"] > 38)),
    ("sqrt(abs(T)) > 5.5", lambda v: np.sqrt(np.abs(v["T"])) > 5.5),
    ("T IS NULL", lambda v: np.isnan(v["T"])),
]


@pytest.mark.parametrize("kind", ["netcdf3", "hdf5"])
def test_what_several_scan_is_read_once(files, kind):
    paths, arrays = files
    with session() as own:
        source = own.open(paths[kind], learn=False)
        queries = [source.query(condition) for condition, _ in SCANS]
        grouped = source.sql("SELECT count(*) AS n, max(S) AS most WHERE T > 25")
        ran = own.run([*queries, grouped])
        if kind == "hdf5":
            size, chunks = stored(paths[kind], "T", "S")
            assert ran.stats["chunks_decoded"] == chunks
        else:
            size = arrays["T"].nbytes + arrays["S"].nbytes
            assert ran.stats["chunks_decoded"] == 0
        assert (ran.stats["together"], ran.stats["alone"], ran.stats["scans"]) == (7, 0, 1)
        assert ran.stats["bytes_read"] == size
        assert ran.stats["read_bytes"] == arrays["T"].nbytes + arrays["S"].nbytes
        assert ran.stats["asked_bytes"] > 3 * ran.stats["read_bytes"]
        for query, (_, expected) in zip(queries, SCANS, strict=True):
            mask = expected(arrays)
            assert query.count() == mask.sum()
            np.testing.assert_array_equal(query.selection().coords(), np.argwhere(mask))
        hot = arrays["T"] > 25
        (row,) = grouped.to_arrow().to_pylist()
        assert row == {"n": hot.sum(), "most": arrays["S"][hot].max()}
        # Nothing was evaluated again, nor read for it.
        assert queries[0].stats()["bytes_read"] == size
        assert all(query.stats()["evaluations"] == 1 for query in queries)


@pytest.mark.parametrize("kind", ["netcdf3", "hdf5"])
def test_what_overlaps_of_boxes_is_read_once(files, kind):
    paths, arrays = files
    boxes = [(0, 9), (6, 15), (7, 8), (14, 15), (21, 24)]
    with session() as own:
        source = own.open(paths[kind], learn=False)
        texts = [f"T > 12 AND idx(t) >= {a} AND idx(t) < {b}" for a, b in boxes]
        ran = own.run([source.query(text) for text in texts])
        planes = sorted({t for a, b in boxes for t in range(a, b)})
        if kind == "hdf5":
            # Chunks are three planes thick.
            thick = {t // CHUNK[0] for t in planes}
            assert ran.stats["chunks_decoded"] == len(thick) * 4
        else:
            assert ran.stats["bytes_read"] == len(planes) * arrays["T"][0].nbytes
        for query, (a, b) in zip(ran, boxes, strict=True):
            mask = np.zeros(SHAPE, bool)
            mask[a:b] = arrays["T"][a:b] > 12
            np.testing.assert_array_equal(query.selection().coords(), np.argwhere(mask))


def test_statistics_leave_the_union_of_open_tiles(tmp_path):
    # Ascending but for noise, so that few chunks are open; a chunk is a region of the index.
    n, chunk = 40 * 65536, 65536
    rng = np.random.default_rng(5)
    x = (np.arange(n) / chunk + rng.normal(0, 0.2, n)).astype("f4")
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("x", data=x, chunks=(chunk,), compression="gzip")
    parts = x.reshape(-1, chunk)
    least, most = parts.min(axis=1), parts.max(axis=1)
    with session() as own:
        source = own.open(tmp_path / "x.h5", learn=False)
        source.build_index("x", kinds=["zonemap"])
        ranges = [(5.0, 5.5), (5.2, 7.0), (6.9, 7.1), (30.0, 30.1), (90.0, 91.0)]
        ran = own.run([source.query(f"x > {a} AND x < {b}", access="zonemap") for a, b in ranges])
        is_open = np.zeros(len(parts), bool)
        for query, (a, b) in zip(ran, ranges, strict=True):
            inside = (x > np.float32(a)) & (x < np.float32(b))
            all_in = inside.reshape(parts.shape).all(axis=1)
            is_open |= (most > np.float32(a)) & (least < np.float32(b)) & ~all_in
            assert query.count() == inside.sum()
        assert ran.stats["chunks_decoded"] == is_open.sum()
        assert 0 < is_open.sum() < 15


def test_rows_are_fetched_without_evaluating_again(files):
    paths, arrays = files
    with session() as own:
        source = own.open(paths["hdf5"], learn=False)
        queries = [source.query(f"T > {low} AND S > 30", select=["T", "S"]) for low in (24, 26, 28)]
        assert own.run(queries).stats["chunks_decoded"] == stored(paths["hdf5"], "T", "S")[1]
        for query, low in zip(queries, (24, 26, 28), strict=True):
            mask = (arrays["T"] > low) & (arrays["S"] > 30)
            np.testing.assert_array_equal(query.to_arrow()["S"].to_numpy(), arrays["S"][mask])
            np.testing.assert_array_equal(query.read("T"), arrays["T"][mask])
            assert query.stats()["evaluations"] == 1


COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal}


@st.composite
def conditions(draw):
    """Draw a condition and what numpy says of it."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        name, op = draw(st.sampled_from("TSN")), draw(st.sampled_from(list(COMPARED)))
        level = (
            draw(st.integers(-60, 60))
            if name == "N"
            else draw(st.sampled_from([-0.0, 5, 12.5, 25, 34.5, 36]))
        )
        parts.append(
            (f"{name} {op} {level}", lambda v, name=name, op=op, level=level: COMPARED[op](v[name], level))
        )
    word = draw(st.sampled_from(["AND", "OR"]))
    text = f" {word} ".join(text for text, _ in parts)
    merge = np.logical_and if word == "AND" else np.logical_or
    low = draw(st.none() | st.integers(0, SHAPE[0] - 1))
    if low is None:
        return text, lambda v: merge.reduce([mask(v) for _, mask in parts])

    def boxed(v):
        mask = merge.reduce([mask(v) for _, mask in parts])
        mask[:low] = False
        return mask

    return f"idx(t) >= {low} AND ({text})", boxed


@pytest.mark.parametrize("kind", ["netcdf3", "hdf5"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batch=st.lists(conditions(), min_size=2, max_size=6),
    memory=st.sampled_from([None, "64MiB", "16MiB"]),
    threads=st.sampled_from([1, 2]),
)
def test_batches_have_the_answers_of_numpy(files, kind, batch, memory, threads):
    paths, arrays = files
    with session() as own:
        source = own.open(paths[kind], learn=False)
        queries = [source.query(text) for text, _ in batch]
        queries += [
            source.sql(f"SELECT N, count(*) AS n, sum(S) AS s WHERE {text} GROUP BY N") for text, _ in batch
        ]
        queries += [source.sql(f"SELECT S WHERE {text} LIMIT 5 OFFSET 2") for text, _ in batch]
        ran = own.run(queries, memory=memory, threads=threads)
        assert ran.errors == [None] * len(queries)
        for i, (text, expected) in enumerate(batch):
            mask = expected(arrays)
            assert ran[i].count() == mask.sum()
            np.testing.assert_array_equal(ran[i].selection().coords(), np.argwhere(mask))
            keys, numbers = np.unique(arrays["N"][mask], return_counts=True)
            groups = ran[i + len(batch)].to_arrow()
            assert groups["N"].to_pylist() == keys.tolist()
            assert groups["n"].to_pylist() == numbers.tolist()
            alone = source.sql(f"SELECT sum(S) AS s WHERE {text} GROUP BY N").to_arrow()
            assert groups["s"].to_pylist() == alone["s"].to_pylist()
            first = ran[i + 2 * len(batch)].to_arrow()["S"].to_numpy()
            np.testing.assert_array_equal(first, arrays["S"][mask][2:7])


def test_other_rows_orders_and_subqueries_are_answered_as_by_themselves(ocean_path):
    texts = [
        "SELECT TEMP, SALT WHERE TEMP > 5 ORDER BY TEMP DESC, SALT LIMIT 7",
        "SELECT DISTINCT KMT WHERE KMT > 3",
        "SELECT z_t, avg(TEMP) AS a, median(SALT) AS m GROUP BY z_t HAVING count(TEMP) > 1 ORDER BY a",
        "SELECT TEMP WHERE TEMP > (SELECT avg(TEMP))",
        "SELECT histogram(TEMP, 8) AS h",
        "SELECT nlat, nlon, max(TEMP) AS most WHERE SALT > 30 GROUP BY nlat, nlon",
        "SELECT count(*) AS n WHERE TLAT > 0",
        "SELECT TEMP WHERE TEMP > 1e9",
        "SELECT count(TEMP) AS n",
    ]
    with session() as own:
        source = own.open(ocean_path)
        ran = own.run([source.sql(text) for text in texts])
        for query, text in zip(ran, texts, strict=True):
            assert query.to_arrow().equals(sieva.open(ocean_path).sql(text).to_arrow()), text
        assert len(ran) == len(texts)


def test_a_damaged_chunk_fails_those_who_need_it(files, tmp_path):
    paths, arrays = files
    path = tmp_path / "damaged.h5"
    path.write_bytes(paths["hdf5"].read_bytes())
    with h5py.File(path) as f:
        chunk = f["S"].id.get_chunk_info(17)
    with path.open("r+b") as f:
        f.seek(chunk.byte_offset)
        f.write(b"\xff" * 64)
    with session() as own:
        source = own.open(path, learn=False)
        at = chunk.chunk_offset[0]
        texts = ["T > 25", "S > 36", f"S > 36 AND idx(t) < {at}", "N > 40", "S < 33 OR T > 30"]
        ran = own.run([source.query(text) for text in texts], return_errors=True)
        assert [error is None for error in ran.errors] == [True, False, True, True, False]
        for error in ran.errors:
            assert error is None or (error.kind == "corrupt-file" and "array 'S'" in str(error))
        assert ran[0].count() == (arrays["T"] > 25).sum()
        assert ran[2].count() == (arrays["S"][:at] > 36).sum()
        assert ran[3].count() == (arrays["N"] > 40).sum()
        with pytest.raises(sieva.errors.CorruptFile, match="array 'S'") as raised:
            own.run([source.query(text) for text in texts])
        assert raised.value.__notes__ == ["query 2 of 5: " + source.query("S > 36").text]


def test_one_that_is_cancelled_stops_no_other(files):
    paths, arrays = files
    with session() as own:
        source = own.open(paths["hdf5"], learn=False)
        queries = [source.query(f"T > {low}") for low in (20, 21, 22)]
        queries[1].cancel()
        ran = own.run(queries, return_errors=True)
        assert [type(error) for error in ran.errors] == [type(None), sieva.errors.Cancelled, type(None)]
        assert [ran[i].count() for i in (0, 2)] == [(arrays["T"] > low).sum() for low in (20, 22)]
        own.close()
        with pytest.raises(sieva.errors.Cancelled, match="the session is closed"):
            own.run([source.query("T > 1"), source.query("T > 2")])


def test_texts_open_each_file_once(files):
    paths, arrays = files
    with session() as own:
        texts = [f"SELECT T FROM '{paths[kind]}' WHERE T > {low}" for kind in paths for low in (20, 22)]
        ran = own.run(texts, learn=False)
        assert ran[0].source is ran[1].source
        assert ran[2].source is ran[3].source is not ran[0].source
        assert ran.stats["scans"] == 2
        assert [len(query) for query in ran] == [(arrays["T"] > low).sum() for low in (20, 22, 20, 22)]


def test_what_cannot_be_run_is_refused(files):
    paths, _ = files
    with session() as own:
        with pytest.raises(sieva.errors.Unsupported, match="a query of a collection"):
            own.run(["SELECT count(*) FROM collection('boss') WHERE flux > 20"])
        with pytest.raises(sieva.errors.SyntaxError_, match="no FROM"):
            own.run(["SELECT T WHERE T > 2"])
        with pytest.raises(TypeError, match="expected a list of queries"):
            own.run("SELECT T FROM 'x.nc'")
        with pytest.raises(TypeError, match="expected a query or the text of one, got 3"):
            own.run([3])
        with pytest.raises(sieva.errors.MemoryLimit, match="in a session that has"):
            own.run([own.open(paths["hdf5"]).query("T > 2")], memory="1TiB")
        assert own.run([]).stats["queries"] == 0


def test_no_row_behind_the_last_that_a_limit_wants_counts(tmp_path):
    path = tmp_path / "overflow.h5"
    with h5py.File(path, "w") as file:
        file["i"] = np.array([1, 2, 3, 2**63 - 1])
        file["x"] = np.arange(4.0)
    session = sieva.Session()
    source = session.open(path)
    text = "SELECT DISTINCT x WHERE i + 5 > 0 LIMIT 2"
    queries = [
        source.sql(text),
        source.sql("SELECT count(*) WHERE x > 1"),
        source.sql("SELECT max(i) WHERE x > 0"),
    ]
    session.run(queries)
    assert queries[0].to_arrow()["x"].to_pylist() == [0.0, 1.0]
    assert queries[1].to_arrow()[0].to_pylist() == [2]
    whole = source.sql("SELECT DISTINCT x WHERE i + 5 > 0")
    with pytest.raises(errors.Overflow):
        session.run([whole, source.sql("SELECT count(*) WHERE x > 1")])
