"""Questions that cannot be answered: each error has a code, and names what was given."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np

from corpus.registry import Topic, file

_topic = Topic("errors", "errors.nc")


@file("errors.nc")
def write_errors(path: Path) -> None:
    """Write numbers, texts and a time to ask wrongly for."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", 3)
        f.createDimension("n", 4)
        time = f.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = [0, 1, 2]
        f.createVariable("temperature", "f4", ("time", "n"))[:] = np.zeros((3, 4))
        f.createVariable("label", str, ("n",))[:] = np.array(list("abcd"), object)


@file("not_a_file.h5")
def write_nonsense(path: Path) -> None:
    """Write a text that has the suffix of a data file."""
    path.write_text("This is not what it says it is.\n" * 40)


@file("empty.nc")
def write_empty(path: Path) -> None:
    """Write no byte at all."""
    path.write_bytes(b"")


@file("cut_off.h5")
def write_cut_off(path: Path) -> None:
    """Write half of an HDF5 file."""
    with h5py.File(path, "w") as f:
        f.create_dataset("a", data=np.arange(4000.0))
    path.write_bytes(path.read_bytes()[:9000])


@file("damaged_chunk.h5")
def write_damaged_chunk(path: Path) -> None:
    """Write three deflated chunks of which the second is not what it should be."""
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", data=np.arange(30.0), chunks=(10,), compression="gzip")
        d.dims[0].label = "n"
        d.id.write_direct_chunk((10,), b"\x78\x9c" + b"\xff" * 40)
        c = f.create_dataset("checked", data=np.arange(10.0), chunks=(10,), fletcher32=True)
        c.dims[0].label = "m"
        c.id.write_direct_chunk((0,), np.arange(10.0).tobytes() + b"\1\2\3\4")


_topic.error("unknown_array", "temprature > 1", "unknown-array", "temprature")
_topic.error("unknown_function", "sine(temperature) > 1", "unknown-function", "sine")
_topic.error("text_above_number", "label > 3", "type-mismatch", "label")
_topic.error("number_equals_text", "temperature = 'warm'", "type-mismatch", "warm")
_topic.error("arithmetic_of_text", "label + 1 > 3", "type-mismatch", "label")
_topic.error("missing_operand", "temperature >", "syntax-error", "end of the text")
_topic.error("open_parenthesis", "(temperature > 1", "syntax-error", "')'")
_topic.error("two_operands", "temperature 5", "syntax-error", "'5'")
_topic.error("empty_condition", "  ", "syntax-error", "condition")
_topic.error("misspelt_select", "SELCT temperature FROM '{file}'", "syntax-error", "SELCT")
_topic.error("select_nothing", "SELECT FROM '{file}'", "syntax-error", "FROM")
_topic.error("open_string", "label = 'abc", "syntax-error", "string")
_topic.error("half_a_between", "temperature BETWEEN 1", "syntax-error", "AND")
_topic.error("argument_count", "sqrt(temperature, 2) > 1", "invalid-value", "sqrt")
_topic.error("aggregate_in_a_condition", "sum(temperature) > 1", "syntax-error", "sum")
_topic.error(
    "column_outside_of_the_groups",
    "SELECT n, temperature, count(*) FROM '{file}' GROUP BY n",
    "syntax-error",
    "temperature",
)
_topic.error("idx_of_nothing", "idx(nowhere) = 1", "unknown-dimension", "nowhere")
_topic.error(
    "unknown_selected_array",
    "SELECT salinity FROM '{file}' WHERE temperature > 0",
    "unknown-array",
    "salinity",
)
_topic.error("nested_too_deep", "(" * 300 + "temperature" + ")" * 300 + " > 1", "syntax-error", "deep")
_topic.error("not_a_data_file", "a > 0", "unknown-format", "not_a_file.h5", file="not_a_file.h5")
_topic.error("empty_file", "a > 0", "unknown-format", "empty.nc", file="empty.nc")
_topic.error("cut_off_file", "a > 0", "corrupt-file", "cut_off.h5", file="cut_off.h5")
_topic.error("no_such_file", "a > 0", "file-not-found", "absent.nc", file="absent.nc")
_topic.error("damaged_chunk", "a > 5", "corrupt-file", "a", file="damaged_chunk.h5")
_topic.error("wrong_checksum", "checked > 5", "corrupt-file", "checked", file="damaged_chunk.h5")
_topic.where(
    "the_rest_is_readable",
    "a > 7 AND idx(n) < 10",
    "n",
    lambda f: np.isin(np.arange(30), [8, 9]),
    file="damaged_chunk.h5",
)
