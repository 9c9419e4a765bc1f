"""Results as BP of ADIOS2: grids and points as ADIOS2 and sieva read them, and what BP has no place for."""

import shutil

import h5py
import numpy as np
import pytest
import sieva
import sieva.share
from sieva import errors
from sieva.cli import main

adios2 = pytest.importorskip("adios2")


@pytest.fixture
def source(tmp_path):
    """Return a file of a grid with values that are easily lost, and texts."""
    values = np.arange(600, dtype="f4").reshape(20, 30)
    values[0, :5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["T"] = values
        file["T"].attrs["units"] = "K"
        file["y"] = np.linspace(0, 1, 20)
        file["x"] = np.arange(30, dtype="i2")
        file["name"] = ["one", "two"]
        for axis, name in enumerate(["y", "x"]):
            file[name].make_scale(name)
            file["T"].dims[axis].attach_scale(file[name])
    return tmp_path / "in.h5"


def read(path):
    """Return all variables and attributes as ADIOS2 reads them."""
    with adios2.FileReader(str(path)) as file:
        variables = {name: file.read(name) for name in file.available_variables()}
        attributes = {name: about["Value"] for name, about in file.available_attributes().items()}
    return variables, attributes


def test_a_grid_is_the_box_around_the_hits(source, tmp_path):
    query = sieva.open(source).query("T > 310 AND T < 400")
    query.to_bp(tmp_path / "out.bp", "grid")
    found, attributes = read(tmp_path / "out.bp")
    with h5py.File(source) as file:
        values = file["T"][()]
        y, x = file["y"][()], file["x"][()]
    hit = (values > 310) & (values < 400)
    rows, columns = np.flatnonzero(hit.any(1)), np.flatnonzero(hit.any(0))
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    np.testing.assert_array_equal(found["T"], np.where(hit, values, np.nan)[box])
    assert found["T"].dtype == np.float32
    np.testing.assert_array_equal(found["y"], y[box[0]])
    np.testing.assert_array_equal(found["x"], x[box[1]])
    assert attributes["T/units"] == '"K"'
    assert attributes["T/_ARRAY_DIMENSIONS"] == '{ "y", "x" }'
    assert sieva.open(tmp_path / "out.bp").query("T > 320").count() == (values[hit] > 320).sum()


def test_points_are_rows_to_the_bit_and_replace_what_was_there(source, tmp_path, capsys):
    sql = f"SELECT T FROM '{source}' WHERE T < 3 OR T > 1e9"
    for _ in range(2):
        assert main(["query", sql, "-o", str(tmp_path / "out.bp")]) == 0
    capsys.readouterr()
    main(["query", sql, "-o", str(tmp_path / "points.bp"), "--layout", "points"])
    found, _ = read(tmp_path / "points.bp")
    expected = np.array([np.inf, -np.inf, -0.0, 0.0], "f4")
    assert (found["T"].view("u4") == expected.view("u4")).all()
    assert found["x_index"].tolist() == [1, 2, 3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.h5", "out.bp", "points.bp"]


def test_rows_of_none_are_arrays_of_no_length(source, tmp_path):
    sieva.open(source).query("T > 1000 AND T < 2000").to_bp(tmp_path / "out.bp", "points")
    again = sieva.open(tmp_path / "out.bp")
    assert again["T"].shape == (0,)
    assert again.attrs["featureType"] == "point"


def test_large_results_are_blocks(tmp_path):
    values = np.arange(6_000_000, dtype="u8") + 2**63
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["u"] = values
    sieva.open(tmp_path / "in.h5").query("u >= 9223372036854775809", ["u"]).to_bp(tmp_path / "out.bp")
    with adios2.FileReader(str(tmp_path / "out.bp")) as file:
        assert len(file.all_blocks_info("u")[0]) == 3
        np.testing.assert_array_equal(file.read("u"), values[1:])


def test_texts_are_refused_and_a_source_is_not_written_to(source, tmp_path):
    opened = sieva.open(source)
    with pytest.raises(errors.Unsupported, match="'name' is of texts, which BP has as single values only"):
        opened.sql("SELECT name").to_bp(tmp_path / "out.bp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.h5"]
    opened.query("T > 500").to_bp(tmp_path / "out.bp")
    with pytest.raises(errors.InvalidValue, match="never changed"):
        sieva.open(tmp_path / "out.bp").query("T > 510").to_bp(tmp_path / "out.bp")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    with pytest.raises(errors.InvalidValue, match="something else than Zarr or BP"):
        opened.query("T > 500").to_bp(tmp_path / "photos")


def test_a_followers_folder_is_kept_in_directories(source, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "steps").mkdir()
    shutil.copy(source, tmp_path / "steps" / "one.h5")
    group = sieva.share.create(tmp_path / "group", tmp_path / "steps", producer="model")
    group.ask("hot", "SELECT T, idx(x) AS i, T > 595 AS most WHERE T > 590 OR T > 1e9", user="ada")
    group.ask("names", "SELECT name", user="ada")
    group.produce(settle=0)
    (done,) = group.follow("hot", tmp_path / "hot", user="ada", format="bp").files
    assert done == tmp_path / "hot" / "one.bp"
    shutil.copy(source, tmp_path / "steps" / "two.h5")
    group.produce(settle=0)
    command = ["share", "follow", str(tmp_path / "group"), "hot", "-o", str(tmp_path / "hot"), "--once"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--as", "ada", "--format", "bp"])
    assert ended.value.code == 0
    with h5py.File(source) as file:
        values = file["T"][()]
    hit = values > 590
    for name in ("one", "two"):
        again = sieva.open(tmp_path / "hot" / f"{name}.bp")
        assert again["T"][:].tolist() == values[hit].tolist()
        assert again["i"][:].tolist() == np.nonzero(hit)[1].tolist()
        assert again["most"][:].tolist() == (values[hit] > 595).tolist()
        assert again["T"].attrs["units"] == "K"
    # Texts are no array of BP: the results wait, and the first one is told.
    names = group.follow("names", tmp_path / "names", user="ada", format="bp")
    assert [type(error) for error in names.troubles] == [errors.Unsupported]
    assert names.files == []
