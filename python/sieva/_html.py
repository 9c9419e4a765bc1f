"""What notebooks show: small, collapsible tables; all text of files is escaped."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from sieva import _native
from sieva._memory import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sieva._query import Query
    from sieva._schema import Schema
    from sieva._source import Source

_STYLE = (
    "<style>.sieva{font-size:13px}.sieva table{border-collapse:collapse}.sieva td,.sieva th{text-align:left;"
    "padding:1px 10px 1px 0;vertical-align:top;white-space:nowrap}"
    ".sieva summary{cursor:pointer;font-weight:600}"
    ".sieva .note{opacity:.65}.sieva details{margin-left:8px}</style>"
)
_SHOWN = 200
_ROWS = 10


def _page(title: str, *parts: str) -> str:
    return f'{_STYLE}<div class="sieva"><div>{title}</div>{"".join(parts)}</div>'


def _section(title: str, count: int, body: str, *, opened: bool = False) -> str:
    state = " open" if opened else ""
    head = f"<summary>{escape(title)} <span class='note'>({count})</span></summary>"
    return f"<details{state}>{head}{body}</details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(tag: str, cells: Iterable[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def schema_html(schema: Schema) -> str:
    """Return the three descriptors as collapsible tables."""
    source, logical = schema["source"], schema["logical"]
    title = f"<b>{escape(source['path'])}</b> <span class='note'>{escape(source['format'])}, "
    title += f"{size_text(source['bytes'])}</span>"
    dims = [(d["path"], d["length"], "unlimited" if d["unlimited"] else "") for d in logical["dimensions"]]
    arrays = [
        (
            a["path"],
            ", ".join(a["dimensions"]),
            a["decoded_dtype"],
            _text(a["attributes"].get("units", "")),
            _text(a["attributes"].get("long_name", "")),
        )
        for a in logical["arrays"]
    ]
    physical = [
        (p["array"], p["stored_type"], p["layout"], p["chunk_shape"] or "", ", ".join(p["filters"]))
        for p in schema["physical"]
    ]
    values = [
        (v["array"], _text(v["missing_values"]), _text(v["scale_factor"] or ""), _text(v["add_offset"] or ""))
        for v in schema["values"]
        if v["missing_values"] or v["scale_factor"] is not None or v["add_offset"] is not None
    ]
    coordinates = [(path, _text(given)) for path, given in logical["coordinates"].items()]
    attributes = [(name, _text(value)) for name, value in source["attributes"].items()]
    return _page(
        title,
        _section("Dimensions", len(dims), _table(("name", "length", ""), dims), opened=True),
        _section(
            "Arrays",
            len(arrays),
            _table(("path", "dimensions", "type", "units", "name"), arrays),
            opened=True,
        ),
        _section("Coordinate values", len(coordinates), _table(("array", "values"), coordinates)),
        _section(
            "Physical storage",
            len(physical),
            _table(("array", "stored as", "layout", "chunk shape", "filters"), physical),
        ),
        _section("Values", len(values), _table(("array", "missing", "scale_factor", "add_offset"), values)),
        _section("Attributes", len(attributes), _table(("name", "value"), attributes)),
    )


def source_html(source: Source) -> str:
    """Return the descriptors of a source."""
    return schema_html(source.schema())


def query_html(query: Query) -> str:
    """Return the first rows of a query; runs it."""
    head = [f"{name} ({kind})" for name, kind in query.dtypes.items()]
    rows: list[list[str]] = []
    batch = next(iter(query.batches(_ROWS)), None)
    if batch is not None:
        rows = _native.row_texts(batch)
    count = query.count()
    note = f"<div class='note'>{count - len(rows):,} more rows</div>" if count > len(rows) else ""
    title = f"<b>sieva.Query</b> <span class='note'>{escape(_text(query.text))}</span>"
    return _page(title, _section("Rows", count, _table(head, rows) + note, opened=True))
