"""Reference sets of kerchunk: JSON files, and the Parquet tables of fsspec."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sieva import _native, errors

if TYPE_CHECKING:
    from sieva._source import Source

RECORD_SIZE = 100_000
_COLUMNS = ("path", "offset", "size", "raw")


def export(source: Source, path: str | os.PathLike[str], url: str | None = None) -> list[str]:
    """Write the reference set of a source to a JSON file, or to a directory of Parquet tables.

    Returns
    -------
    list of str
        What is not, or not quite, in it.
    """
    target = Path(path)
    # Readers resolve neither links nor working directories.
    url = url or (source.path if "://" in source.path else str(Path(source.path).resolve()))
    if target.suffix == ".json":
        text, notes = _native.references_json(source._native, url)
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        aside.write_text(text, encoding="utf-8")
        aside.replace(target)
    elif target.suffix in {".parq", ".parquet"}:
        tables, notes = _native.references_tables(source._native, url)
        _write_tables(target, *tables)
    else:
        raise errors.InvalidValue(
            f"the suffix of {str(path)!r} names no kind of reference set",
            "write .json for one file, .parq for a directory of tables",
        )
    left_out, warnings = notes
    return [f"'{array}' is left out: {why}" for array, why in left_out] + list(warnings)


def is_tables(path: str) -> bool:
    """Return whether a path is a directory of Parquet references."""
    folder = Path(path)
    metadata = folder / ".zmetadata"
    if not metadata.is_file():
        return False
    return '"record_size"' in metadata.read_text(encoding="utf-8")


def open_tables(path: str, **options: Any) -> _native.Source:  # noqa: ANN401 - handed on
    """Open a directory of Parquet references; options are those of ``_native.open_tables``."""
    import pyarrow.parquet as pq

    folder = Path(path)
    try:
        known = json.loads((folder / ".zmetadata").read_text(encoding="utf-8"))
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
    return _native.open_tables(str(folder), metadata, arrays, **options)  # type: ignore[arg-type]


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

    if target.exists() and not is_tables(str(target)):
        raise errors.InvalidValue(f"{str(target)!r} exists and is no set of Parquet references")
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent or Path()))
    try:
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
        if target.exists():
            shutil.rmtree(target)
        aside.rename(target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
