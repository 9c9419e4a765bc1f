"""The three descriptors of a source, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from sieva._memory import size_text
from sieva._printable import shown

_WIDTH = 100


class Schema(Mapping[str, Any]):
    """What is known of a file without reading its data.

    A mapping with ``source`` and the three descriptors of Su et al. (SC13, section 3.3): ``physical`` says
    where and how arrays are stored, ``logical`` gives dimensions, types and coordinate values, and
    ``values`` what is known of the values. ``str()`` is for people, and shortens coordinates; `to_json` has
    all.

    References
    ----------
    Y. Su, Y. Wang, G. Agrawal, R. Kettimuthu: SDQuery DSI: integrating data management support with a wide
    area data transfer protocol. SC13.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _data(self) -> dict[str, Any]:
        # Of many arrays the values take four times what the text does: `to_json` alone needs none.
        data: dict[str, Any] = json.loads(self._text)
        return data

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - JSON
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def to_json(self, indent: int | None = None) -> str:
        """Return all of it as JSON text."""
        return self._text if indent is None else json.dumps(self._data, indent=indent, ensure_ascii=False)

    @shown
    def __str__(self) -> str:
        parts = [
            _source(self._data["source"]),
            _physical(self._data),
            _logical(self._data),
            _values(self._data),
        ]
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from sieva._html import schema_html

        return schema_html(self)


def _source(source: dict[str, Any]) -> list[str]:
    lines = [f"{source['path']}: {source['format']}, {size_text(source['bytes'])}"]
    lines += [f"  {name} = {_attribute(value)}" for name, value in source["attributes"].items()]
    lines += [f"  warning: {text}" for text in source["warnings"]]
    return lines


def _physical(data: dict[str, Any]) -> list[str]:
    rows = [("array", "stored as", "layout", "chunk shape", "filters", "in the file", "from byte")]
    for entry in data["physical"]:
        stored, offset = entry["stored_bytes"], entry["offset"]
        rows.append(
            (
                entry["array"],
                entry["stored_type"],
                entry["layout"],
                " x ".join(map(str, entry["chunk_shape"] or [])),
                ", ".join(entry["filters"]),
                "" if stored is None else size_text(stored),
                "" if offset is None else str(offset),
            )
        )
    return ["Physical storage", *columns_text(rows, right=(5, 6))]


def columns_text(rows: Sequence[tuple[str, ...]], right: tuple[int, ...] = ()) -> list[str]:
    """Return aligned lines of a table; columns that are empty but for their title are left out."""
    kept = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])] if len(rows) > 1 else []
    widths = {i: max(len(row[i]) for row in rows) for i in kept}
    aligned = (
        "  ".join(row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in kept)
        for row in rows
    )
    return [f"  {line}".rstrip() for line in aligned]


def _logical(data: dict[str, Any]) -> list[str]:
    logical = data["logical"]
    coordinates, arrays = logical["coordinates"], logical["arrays"]
    lines = ["Logical layout", "  dimensions"]
    for dim in logical["dimensions"]:
        notes = ["unlimited"] if dim["unlimited"] else []
        notes += [] if dim["named"] else ["not named in the file"]
        note = f" ({', '.join(notes)})" if notes else ""
        lines.append(f"    {dim['path']} = {dim['length']}{note}")
    lines.append("  arrays")
    lines += [f"    {_array(entry)}" for entry in arrays]
    if coordinates:
        lines.append("  coordinate values")
    units = {entry["path"]: entry["attributes"].get("units") for entry in arrays}
    width = max((len(path) for path in coordinates), default=0)
    for path, values in coordinates.items():
        unit = f" [{units.get(path)}]" if units.get(path) else ""
        lines.append(f"    {path.ljust(width)}  {_abbreviated(values)}{unit}")
    return lines


def _array(entry: dict[str, Any]) -> str:
    attributes = entry["attributes"]
    dtype = entry["dtype"]
    if entry["decoded_dtype"] != dtype:
        dtype = f"{dtype} unpacked to {entry['decoded_dtype']}"
    dims = f" ({', '.join(f'{d} {n}' for d, n in zip(entry['dimensions'], entry['shape'], strict=False))})"
    text = f"{dtype} {entry['path']}{dims if entry['shape'] else ''}"
    if isinstance(attributes.get("units"), str):
        text += f" [{attributes['units']}]"
    name = attributes.get("long_name") or attributes.get("standard_name")
    text += f" {name}" if isinstance(name, str) else ""
    if entry["coordinates"]:
        text += f"; coordinates {', '.join(entry['coordinates'])}"
    if entry["enumeration"]:
        text += "; " + ", ".join(f"{name} = {value}" for name, value in entry["enumeration"].items())
    return text


def _abbreviated(values: Any) -> str:  # noqa: ANN401 - a list, nested or not, or an error
    if isinstance(values, dict):
        return f"cannot be read: {values.get('error')}"
    if not isinstance(values, list):
        return str(values)
    flat = list(_flat(values))
    shown = [_number(v) for v in (flat if len(flat) <= 8 else flat[:4])]
    if len(flat) > 8:
        shown += ["...", *(_number(v) for v in flat[-2:])]
    return " ".join(shown)


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def _number(value: Any) -> str:  # noqa: ANN401 - JSON
    return "missing" if value is None else f"{value:.7g}" if isinstance(value, float) else str(value)


def _values(data: dict[str, Any]) -> list[str]:
    rows = [("array", "missing where", "scale_factor", "add_offset", "valid from", "valid to")]
    for entry in data["values"]:
        row = (
            ", ".join(_number(v) for v in entry["missing_values"]),
            *("" if entry[k] is None else _number(entry[k]) for k in ("scale_factor", "add_offset")),
            *("" if entry[k] is None else _number(entry[k]) for k in ("valid_min", "valid_max")),
        )
        if any(row):
            rows.append((entry["array"], *row))
    known = [e for e in data["values"] if e["distribution"] is not None]
    lines = ["Value distribution", *(columns_text(rows) if len(rows) > 1 else [])]
    lines += [f"  {entry['array']}: {_distribution(entry['distribution'])}" for entry in known]
    if not known:
        lines.append("  how often which values occur is not known: nothing has been scanned for it")
    return lines


def _distribution(known: dict[str, Any]) -> str:
    """Say where values lie: the bin that holds the middle one stands for all."""
    values = known["count"] - known["missing"]
    text = (
        f"{values} values from {_number(known['min'])} to {_number(known['max'])}, {known['missing']} missing"
    )
    bins = known["histogram"]
    if not values:
        return f"no values, {known['missing']} missing"
    if bins is None or not bins["counts"]:
        return text
    passed, half, low = bins["infinite"][0], values / 2, None
    if passed >= half:
        return text
    for start, end, count in zip(bins["edges"], bins["edges"][1:], bins["counts"], strict=False):
        passed += count
        if low is None and passed >= half:
            low = start
        # Where the halves meet at the end of a bin, the median lies as far as the next value.
        if passed > half:
            return f"{text}; their median lies between {_number(low)} and {_number(end)}"
    return text


def _attribute(value: Any) -> str:  # noqa: ANN401 - JSON
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
