"""Errors: a class for each code of the engine, and messages that help."""

import pickle
import threading

import h5py
import numpy as np
import pytest
import sieva
from sieva import _native, errors


def test_every_kind_of_the_engine_has_a_class():
    assert set(_native.error_kinds) == set(errors._BY_KIND)


@pytest.mark.parametrize("kind", list(errors._BY_KIND))
def test_errors_say_their_message_and_pickle(kind):
    error = errors.make(kind, "what was given", "what to do")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    for e in (error, again):
        assert (str(e), e.kind, e.hint) == ("what was given", kind, "what to do")
        assert isinstance(e, sieva.SievaError)


def test_unknown_kind_is_the_base_class():
    assert type(errors.make("new-kind", "x")) is sieva.SievaError


def test_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.nc") as caught:
        sieva.open(tmp_path / "nothing.nc")
    assert caught.value.kind == "file-not-found"


def test_foreign_file_is_a_value_error(tmp_path):
    path = tmp_path / "notes.nc"
    path.write_text("nothing that can be read")
    with pytest.raises(ValueError, match="not a file that can be read") as caught:
        sieva.open(path)
    assert caught.value.kind == "unknown-format"


def test_unknown_array_is_a_key_error_with_near_names(ocean):
    with pytest.raises(KeyError) as caught:
        ocean["TMEP"]
    assert str(caught.value) == "no array or dimension 'TMEP'"
    assert caught.value.hint.startswith("did you mean 'TEMP'")
    with pytest.raises(errors.UnknownArray, match="TMEP"):
        ocean.query("TMEP > 5")


def test_syntax_error_is_told_with_its_place(ocean):
    with pytest.raises(errors.SyntaxError_, match="column 8"):
        ocean.query("TEMP > > 5")


def test_a_glob_or_list_of_one_file_is_that_file(tmp_path, ocean_path):
    (tmp_path / "a.nc").write_bytes(ocean_path.read_bytes())
    assert sieva.open(str(tmp_path / "a*.nc")).files == [str(tmp_path / "a.nc")]
    assert len(sieva.open([tmp_path / "a.nc"])) == 7
    with pytest.raises(FileNotFoundError, match="no file matches"):
        sieva.open(str(tmp_path / "c*.nc"))


def test_query_arguments_are_checked(ocean):
    with pytest.raises(TypeError, match="select is a list"):
        ocean.query("TEMP > 5", select="TEMP")
    with pytest.raises(TypeError, match="a condition is text"):
        ocean.query(True)
    with pytest.raises(ValueError, match="no size"):
        ocean.query("TEMP > 5", memory="much")
    with pytest.raises(errors.InvalidValue, match="access 'fast'"):
        ocean.query("TEMP > 5", access="fast")
    with pytest.raises(errors.SyntaxError_, match="no FROM"):
        sieva.sql("SELECT TEMP WHERE TEMP > 5")


def test_nested_types_do_not_overflow_a_thread(tmp_path):
    """libhdf5 goes down into them by recursion; threads have smaller stacks than the process."""
    nested = h5py.h5t.NATIVE_INT8
    for _ in range(4000):
        outer = h5py.h5t.create(h5py.h5t.COMPOUND, nested.get_size())
        outer.insert(b"a", 0, nested)
        nested = outer
    path = tmp_path / "deep.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["y"] = np.arange(10)
        h5py.h5d.create(file.id, b"x", nested, h5py.h5s.create(h5py.h5s.SCALAR))
    counts = []
    before = threading.stack_size(512 << 10)
    try:
        thread = threading.Thread(target=lambda: counts.append(sieva.open(path).query("y > 3").count()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert counts == [6]
