"""Reference sets of kerchunk: what Zarr libraries and sieva read by them is what the file holds."""

import json

import h5py
import numpy as np
import pytest
import sieva
import zarr
from fsspec.implementations.reference import ReferenceFileSystem

ROWS = 20


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a file of the kinds of chunks that a reference set has words for, and one that it has not."""
    path = tmp_path_factory.mktemp("references") / "all.h5"
    rng = np.random.default_rng(7)
    with h5py.File(path, "w") as f:
        for name, dtype, options in (
            ("plain", ">f4", {}),
            ("gzip", "<i2", {"chunks": (7, 5), "compression": "gzip", "shuffle": True}),
            ("checked", "<f8", {"chunks": (20, 3), "fletcher32": True}),
            ("group/deep", "<u8", {"chunks": (4, 6)}),
            ("lzf", "<f4", {"chunks": (4, 6), "compression": "lzf"}),
        ):
            values = rng.integers(0, 1000, (ROWS, 6)).astype(dtype)
            data = f.create_dataset(name, data=values, **options)
            data.attrs["units"] = "K"
        # Half of its chunks were never written.
        holes = f.create_dataset("holes", (ROWS, 6), "<i4", chunks=(5, 6), fillvalue=-9)
        holes[5:10] = 3
    return path


def expected(path, name):
    with h5py.File(path) as f:
        return f[name][...]


NAMES = ("plain", "gzip", "checked", "group/deep", "holes")


def test_zarr_reads_the_file_by_references(source, tmp_path):
    notes = sieva.open(source).to_references(tmp_path / "all.json")
    assert any("'lzf' is left out" in note for note in notes)
    files = ReferenceFileSystem(str(tmp_path / "all.json"), asynchronous=False)
    keys = json.loads((tmp_path / "all.json").read_text())["refs"]
    assert f"lzf/.zarray" not in keys  # noqa: F541 - beside those that are
    for name in NAMES:
        meta = json.loads(files.cat(f"{name}/.zarray"))
        assert meta["shape"] == [ROWS, 6], name
    store = zarr.storage.FsspecStore.from_url(
        "reference://",
        storage_options={"fo": str(tmp_path / "all.json"), "asynchronous": True},
        read_only=True,
    )
    group = zarr.open_group(store, mode="r", zarr_format=2)
    for name in NAMES:
        np.testing.assert_array_equal(group[name][...], expected(source, name))


@pytest.mark.parametrize("suffix", ["json", "parq"])
def test_sieva_reads_its_own_references(source, tmp_path, suffix):
    target = tmp_path / f"all.{suffix}"
    sieva.open(source).to_references(target, url=str(source))
    back = sieva.open(target, external=[source.parent])
    for name in NAMES:
        np.testing.assert_array_equal(back[name].read_stored([0, 0], [ROWS, 6]), expected(source, name))
    values = expected(source, "gzip")
    assert back.query("gzip > 500").count() == (values > 500).sum()
    # Written once more in its place, and whole.
    sieva.open(source).to_references(target, url=str(source))
    assert list(sieva.open(target, external=[source.parent])) == list(back)


def test_references_lead_nowhere_that_is_not_allowed(source, tmp_path):
    target = tmp_path / "all.json"
    sieva.open(source).to_references(target)
    with pytest.raises(sieva.errors.LinkRefused, match=r"all\.h5"):
        sieva.open(target)
    (tmp_path / "up.json").write_text(
        json.dumps({
            "version": 1,
            "refs": {
                ".zgroup": '{"zarr_format": 2}',
                "a/.zarray": json.dumps({
                    "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None,
                    "filters": None, "fill_value": 0, "order": "C",
                }),
                "a/0": ["../../../../etc/passwd", 0, 4],
            },
        })
    )  # fmt: skip
    with pytest.raises(sieva.errors.LinkRefused, match="passwd"):
        sieva.open(tmp_path / "up.json")


def test_a_suffix_that_names_nothing_and_a_damaged_set(source, tmp_path):
    with pytest.raises(sieva.errors.InvalidValue, match="suffix"):
        sieva.open(source).to_references(tmp_path / "all.txt")
    (tmp_path / "bad.json").write_text('{"version": 1, "refs": {"a/.zarray": 5')
    with pytest.raises(sieva.SievaError, match=r"bad\.json"):
        sieva.open(tmp_path / "bad.json")
    folder = tmp_path / "bad.parq"
    folder.mkdir()
    (folder / ".zmetadata").write_text('{"metadata": {"a/.zarray": "{}"}, "record_size": 10}')
    with pytest.raises(sieva.SievaError):
        sieva.open(folder)
    (tmp_path / "mine.parq").mkdir()
    (tmp_path / "mine.parq" / "notes").write_text("keep")
    with pytest.raises(sieva.errors.InvalidValue, match="exists"):
        sieva.open(source).to_references(tmp_path / "mine.parq")
    assert (tmp_path / "mine.parq" / "notes").read_text() == "keep"


def test_templates_make_no_text_without_end(tmp_path):
    """400 KB of templates would be 6 GB of URLs."""
    array = {"zarr_format": 2, "shape": [1200], "chunks": [4], "dtype": "<f4", "compressor": None}
    array |= {"fill_value": 0, "order": "C", "filters": None}
    refs = {f"a/{i}": ["{{u}}" * 200 + str(i), 0, 4] for i in range(300)}
    refs |= {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(array)}
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"version": 1, "templates": {"u": "x" * 100_000}, "refs": refs}))
    with pytest.raises(sieva.errors.CorruptFile, match="a template makes a URL of more than 8192 bytes"):
        sieva.open(path)
