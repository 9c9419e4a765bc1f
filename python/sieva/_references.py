"""Reference sets of kerchunk: JSON files, and the Parquet tables of fsspec."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _native, errors
from sieva._local import exists, is_directory
from sieva._output.asked import check_output
from sieva._output.atomic import replacing

if TYPE_CHECKING:
    import os

    from sieva._source import Source

RECORD_SIZE = 100_000
# As of metadata of Zarr.
MAX_METADATA = 64 << 20
_COLUMNS = ("path", "offset", "size", "raw")


def export(source: Source, path: str | os.PathLike[str], url: str | None = None) -> list[str]:
    """Write the reference set of a source to a JSON file, or to a directory of Parquet tables.

    Returns
    -------
    list of str
        What is not, or not quite, in it.
    """
    _native.check_name(os.fspath(path), "the name of an output")
    target = Path(path)
    check_output(target, source)
    secret = False
    if url is None:
        url = _address(source.path)
        secret = url != source.path and "://" in source.path
    if target.suffix == ".json":
        text, notes = _native.references_json(source._native, url)
        with replacing(target) as aside:
            aside.write_text(text, encoding="utf-8")
    elif target.suffix in {".parq", ".parquet"}:
        tables, notes = _native.references_tables(source._native, url)
        _write_tables(target, *tables)
    else:
        raise errors.InvalidValue(
            f"the suffix of {str(path)!r} names no kind of reference set",
            "write .json for one file, .parq for a directory of tables",
        )
    left_out, warnings = notes
    if secret:
        warnings = [
            *warnings,
            f"references lead to '{url}', without user, password and signature: url= names another",
        ]
    return [f"'{array}' is left out: {why}" for array, why in left_out] + list(warnings)


def _address(path: str) -> str:
    """Return where readers find a source: they resolve neither links nor working directories."""
    return _native.without_secrets(path) if "://" in path else str(Path(path).resolve())


def is_tables(path: str) -> bool:
    """Return whether a path is a directory of Parquet references."""
    return is_directory(path) and '"record_size"' in _metadata(Path(path))


def _metadata(folder: Path) -> str:
    """Return the text of ``.zmetadata``; nothing where it is no file, or longer than any reader's."""
    try:
        # A pipe in its place would be waited for.
        found = os.open(folder / ".zmetadata", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(found, "rb") as file:  # noqa: PTH123 - of a descriptor
        known = os.fstat(found)
        if not stat.S_ISREG(known.st_mode) or known.st_size > MAX_METADATA:
            return ""
        return file.read(MAX_METADATA).decode("utf-8", errors="replace")


def open_tables(path: str, options: dict[str, Any]) -> _native.Source:
    """Open a directory of Parquet references."""
    import pyarrow.parquet as pq

    folder = Path(path)
    try:
        known = json.loads(_metadata(folder))
        metadata = {key: _text(value) for key, value in known["metadata"].items()}
        arrays = {}
        for key in metadata:
            array, _, leaf = key.rpartition("/")
            if leaf != ".zarray":
                continue
            files = sorted((folder / array).glob("refs.*.parq"), key=lambda p: int(p.name.split(".")[1]))
            tables = [pq.read_table(file).to_pydict() for file in files]
            merged = {name: [v for t in tables for v in _column(t, name)] for name in _COLUMNS}
            arrays[array] = tuple(merged[name] for name in _COLUMNS)
    except (KeyError, ValueError, OSError) as error:
        raise errors.CorruptFile(f"{path!r} is no set of Parquet references: {error}") from error
    # What it refers to is named from beside the directory, as from beside a file.
    return _native.open_tables(str(folder), metadata, arrays, options)  # type: ignore[arg-type]


def _column(table: dict[str, list[Any]], name: str) -> list[Any]:
    if name in table:
        return [None if value == "" else value for value in table[name]] if name == "path" else table[name]
    rows = len(next(iter(table.values()), []))
    return [None if name == "raw" else 0] * rows


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _write_tables(target: Path, metadata: dict[str, str], arrays: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if exists(target) and not is_tables(str(target)):
        raise errors.InvalidValue(f"{str(target)!r} exists and is no set of Parquet references")
    with replacing(target, is_directory=True) as aside:
        aside.mkdir()
        known = {"metadata": {k: json.loads(v) for k, v in metadata.items()}, "record_size": RECORD_SIZE}
        (aside / ".zmetadata").write_text(json.dumps(known), encoding="utf-8")
        for array, columns in arrays.items():
            (aside / array).mkdir(parents=True)
            rows = len(columns[0])
            for number, first in enumerate(range(0, max(rows, 1), RECORD_SIZE)):
                parts = [column[first : first + RECORD_SIZE] for column in columns]
                # The last table is as long as the others: rows are found by division.
                short = RECORD_SIZE - len(parts[0]) if rows > RECORD_SIZE else 0
                fill: tuple[Any, ...] = (None, 0, 0, None)
                parts = [part + [value] * short for part, value in zip(parts, fill, strict=True)]
                kinds = (pa.string(), pa.int64(), pa.int64(), pa.binary())
                values = [pa.array(part, kind) for part, kind in zip(parts, kinds, strict=True)]
                table = pa.table(values, names=list(_COLUMNS))
                pq.write_table(table, aside / array / f"refs.{number}.parq")
