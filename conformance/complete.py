"""Computes the answers of all cases by numpy and writes ``cases/*.json``; ``--check`` only compares.

The answers come from what h5py and netCDF4 read, never from sieva: a change of a case is reviewed by eye.
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from corpus import CASES
from corpus.reference import Reference
from corpus.registry import Case
from generate import generate

CASE_DIRECTORY = Path(__file__).resolve().parent / "cases"
# Positions and values are listed up to here; of more, their number, ends and sum are kept.
_LISTED = 64


def plain(value: Any) -> Any:  # noqa: ANN401 -- any scalar
    """Return a scalar as JSON can hold it: NaN as null, infinities as texts."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def answer(case: Case, files: Path) -> dict[str, Any]:
    """Return the expected part of a case."""
    if case.error:
        kind, message = case.error
        return {"error": {"kind": kind, "message": message}}
    with Reference(files / case.file) as reference:
        if case.rows:
            rows = [[plain(value) for value in row] for row in case.rows(reference)]
            expected: dict[str, Any] = {"columns": list(case.columns), "rows": rows}
            return expected | ({"tolerance": case.tolerance} if case.tolerance else {})
        return _selection(case, reference)


def _selection(case: Case, reference: Reference) -> dict[str, Any]:
    if case.hits is None:
        raise ValueError(f"{case.topic}/{case.name} has no answer")
    mask = np.asarray(case.hits(reference), bool)
    if mask.ndim != len(case.dims):
        raise ValueError(f"{case.topic}/{case.name}: {mask.ndim} dimensions for {case.dims}")
    linear = np.flatnonzero(mask)
    expected: dict[str, Any] = {"dims": list(case.dims), "shape": list(mask.shape), "count": len(linear)}
    if len(linear):
        expected |= {"first": int(linear[0]), "last": int(linear[-1]), "sum": int(linear.sum())}
    if len(linear) <= _LISTED:
        expected["positions"] = np.argwhere(mask).tolist()
        reads = {
            name: np.broadcast_to(read(reference), mask.shape)[mask] for name, read in case.reads.items()
        }
        if reads:
            expected["values"] = {name: [plain(v) for v in values.tolist()] for name, values in reads.items()}
            expected["dtypes"] = {name: _dtype(values) for name, values in reads.items()}
    return expected


def _dtype(values: np.ndarray[Any, Any]) -> str:
    return "str" if values.dtype.kind in "OSU" else values.dtype.newbyteorder("=").name


def _record(case: Case, files: Path) -> dict[str, Any]:
    question = {"where": case.where} if case.where is not None else {"sql": case.sql}
    options = {"options": dict(case.options)} if case.options else {}
    return {"name": case.name, "file": case.file, **options, **question, **answer(case, files)}


def complete() -> dict[str, str]:
    """Return the text of each case file by its name."""
    topics: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        generate(Path(directory))
        for case in CASES:
            topics.setdefault(case.topic, []).append(_record(case, Path(directory)))
    return {f"{topic}.json": _text(records) for topic, records in topics.items()}


def _text(records: list[dict[str, Any]]) -> str:
    """One line per case: short enough to review, long enough to compare."""
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> int:
    """Write or compare the case files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a case file is not up to date")
    is_check = parser.parse_args().check
    texts = complete()
    present = {path.name: path.read_text(encoding="utf-8") for path in CASE_DIRECTORY.glob("*.json")}
    stale = sorted(name for name in texts | present if texts.get(name) != present.get(name))
    if is_check:
        print("\n".join(f"not up to date: {name}" for name in stale) or "ok")
        return 1 if stale else 0
    CASE_DIRECTORY.mkdir(exist_ok=True)
    for name in stale:
        path = CASE_DIRECTORY / name
        path.write_text(texts[name], encoding="utf-8") if name in texts else path.unlink()
    print(f"{len(CASES)} cases in {len(texts)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
