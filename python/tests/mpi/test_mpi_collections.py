"""Collections asked by all ranks: answers are those of numpy, rank 0 alone has the catalog."""

import os
import re

import h5py
import numpy as np
import pytest
import sieva
from collection_files import make_files, objects
from mpi_programs import run

RANKS = (1, 2, 3, 7)


@pytest.fixture(scope="module")
def plates(tmp_path_factory):
    """Return hostile files of many small objects, and their catalog."""
    folder = tmp_path_factory.mktemp("plates")
    paths = make_files(folder)
    for path in paths:
        os.utime(path, (1.7e9, 1.7e9))
    with sieva.Catalog(folder / "catalog.sqlite") as catalog:
        catalog.add(*paths, collection="plates")
    return folder / "catalog.sqlite", paths


def hits_of(paths, keys, condition):
    """Return ivar at the hits of a condition on the keys and arrays of each object that has flux."""
    found = []
    for _, path, own, arrays in objects(paths):
        if "flux" in arrays and keys(own):
            with np.errstate(invalid="ignore"):
                found.append((path, arrays["ivar"][condition(arrays["flux"])]))
    return found


@pytest.mark.parametrize("ranks", RANKS)
def test_answers_are_those_of_one_process_and_numpy(mpi, ranks, plates, tmp_path):
    catalog, paths = plates
    queries = {
        "SELECT flux, ivar WHERE flux > 12": (lambda _: True, lambda flux: flux > 12),
        "SELECT ivar WHERE flux <= 0 AND fiber >= 6 AND class = 'QSO'": (
            lambda own: own["fiber"] >= 6 and own.get("class") == "QSO",
            lambda flux: flux <= 0,
        ),
        "SELECT flux WHERE flux > 1e300 AND flux < 2e300": (lambda _: True, lambda flux: flux < -np.inf),
    }
    groups = "SELECT class, count(*) AS n, max(flux) WHERE flux IS NOT NULL GROUP BY class ORDER BY class"
    asked = [*queries, groups]
    done = run(
        mpi, ranks, "tests/stars", catalog, "plates", "ivar", tmp_path / "out", *asked, tmp_path=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    rows = [int(n) for n in re.findall(r"^rows (\d+)$", done.stdout, re.MULTILINE)]
    histograms = re.findall(r"^histogram (.*)$", done.stdout, re.MULTILINE)
    alone = sieva.collection("plates", catalog=catalog)
    for number, (sql, (keys, condition)) in enumerate(queries.items()):
        parts = [values for _, values in hits_of(paths, keys, condition)]
        expected = np.concatenate(parts) if parts else np.array([])
        np.testing.assert_array_equal(np.fromfile(tmp_path / f"out.{number}.values"), expected)
        assert rows[number] == len(expected)
        counts, _ = np.histogram(expected[~np.isnan(expected)], 5, (-1000, 1000))
        assert [int(n) for n in histograms[number].split()] == counts.tolist()
        assert (tmp_path / f"out.{number}.csv").read_text().count("\n") == 1 + len(expected)
        assert alone.sql(sql).count() == len(expected)
    table = alone.sql(groups).to_arrow()
    lines = (tmp_path / "out.3.csv").read_text().splitlines()
    assert rows[3] == len(table) == len(lines) - 1
    assert [int(line.split(",")[1]) for line in lines[1:]] == table["n"].to_pylist()


def without_metadata(path):
    """Fill a file with zeros but for the values of its arrays; its length and time of modification stay."""
    with h5py.File(path) as file:
        places = []
        file.visititems(
            lambda _, found: (
                places.append((found.id.get_offset(), found.nbytes))
                if isinstance(found, h5py.Dataset)
                else None
            )
        )
    data = path.read_bytes()
    state = path.stat()
    empty = bytearray(len(data))
    for place, size in places:
        empty[place : place + size] = data[place : place + size]
    path.write_bytes(empty)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.fixture
def stars(tmp_path):
    """Return files of equal objects, their values, and their catalog."""
    draw = np.random.default_rng(11)
    paths, values = [], []
    for number in range(9):
        paths.append(tmp_path / f"star{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            for group in range(2):
                values.append(draw.normal(size=1000))
                file.create_group(f"g{group}")["flux"] = values[-1]
        os.utime(paths[-1], (1.7e9, 1.7e9))
    with sieva.Catalog(tmp_path / "catalog.sqlite") as catalog:
        catalog.add(*paths, collection="stars")
    return tmp_path / "catalog.sqlite", paths, values


@pytest.mark.parametrize("ranks", RANKS)
def test_ranks_read_values_alone_and_each_once(mpi, ranks, stars, tmp_path):
    """The files have no metadata any more, and only rank 0 is told where the catalog is."""
    catalog, paths, values = stars
    for path in paths:
        without_metadata(path)
    done = run(mpi, ranks, "tests/star_reader", catalog, "stars", "flux", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    assert "unknown-attribute: rank 0: no collection 'none'" in done.stdout
    told = re.findall(
        r"^rank (\d+) opened with (\d+) bytes, scanned (\d+), count (\d+) of (\d+), sum (\S+)$",
        done.stdout,
        re.MULTILINE,
    )
    rank, opening, scanned, count, hits = np.array(sorted(tuple(map(int, line[:5])) for line in told)).T
    assert rank.tolist() == list(range(ranks))
    everything = np.concatenate(values)
    positive = everything[everything > 0]
    assert set(hits.tolist()) == {len(positive)}
    assert count.max() - count.min() <= 1
    assert count.sum() == len(positive)
    assert sum(float(line[5]) for line in told) == pytest.approx(positive.sum())
    assert opening[1:].tolist() == [0] * (ranks - 1)
    # Of the other ranks each byte that is scanned is one of flux, and no other rank scans it.
    own = everything.nbytes - scanned[1:].sum()
    assert (scanned[1:] > 0).all()
    assert (scanned[1:] % values[0].nbytes == 0).all()
    # Rank 0 looks at samples of each file, by which its state is known.
    sampled = sum(path.stat().st_size for path in paths)
    assert 0 <= scanned[0] - own <= 3 * sampled


def test_a_file_that_changes_is_stale_on_all_ranks(mpi, stars, tmp_path):
    catalog, paths, _ = stars
    done = run(mpi, 3, "tests/star_reader", catalog, "stars", "flux", paths[-1], tmp_path=tmp_path)
    assert "0 failures" in done.stdout.splitlines(), done.stdout + done.stderr
    assert "stale-source: rank 2: " in done.stdout


@pytest.mark.parametrize("ranks", [1, 4])
def test_fortran_tells_the_objects_of_a_share(mpi, ranks, stars, tmp_path):
    catalog, paths, values = stars
    done = run(mpi, ranks, "tests/stars_f", catalog, "stars", "flux", tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no error" not in done.stdout
    assert "not all" not in done.stdout
    heads = re.findall(
        r"^rank (\d+) first (\d+) count (\d+) of (\d+) sum\s+(\S+)$", done.stdout, re.MULTILINE
    )
    hits = [own[own > 0] for own in values]
    everything = np.concatenate(hits)
    end = 1
    for rank, first, count, all_hits, total in sorted(heads, key=lambda head: int(head[0])):
        assert int(first) == end
        mine = everything[end - 1 : end - 1 + int(count)]
        assert float(total) == pytest.approx(mine.sum(), rel=1e-12), rank
        assert int(all_hits) == len(everything)
        end += int(count)
    assert end - 1 == len(everything)
    counted = {}
    for number, file, path, own in re.findall(r"^object (\d+) (\S+) (\S+) (\d+)$", done.stdout, re.MULTILINE):
        assert (file, path) == (paths[(int(number) - 1) // 2].name, f"g{(int(number) - 1) % 2}")
        counted[int(number)] = counted.get(int(number), 0) + int(own)
    assert counted == {number: len(own) for number, own in enumerate(hits, 1)}
    position, length = re.search(r"^rank 0 position (\d+) of (\d+)$", done.stdout, re.MULTILINE).groups()
    assert (int(position) - 1, int(length)) == (int(np.flatnonzero(values[0] > 0)[0]), 1000)
