"""Pages of docs that keep what was measured between marks, ``<!-- name -->`` and ``<!-- /name -->``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def fill(target: Path, parts: Mapping[str, str], plots: Mapping[str, str]) -> None:
    """Put texts between the marks of a page, others stay; write plots beside it.

    Parameters
    ----------
    target
        The page.
    parts
        Texts by the name of their marks.
    plots
        Pictures by the name of their file.

    Raises
    ------
    SystemExit
        The page has no such marks.
    """
    text = target.read_text(encoding="utf-8")
    for name, part in parts.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not marks.search(text):
            raise SystemExit(f"{target}: there are no marks <!-- {name} --> and <!-- /{name} -->: add them")
        # A function, as in a replacement's text backslashes would be escapes.
        text = marks.sub(lambda found, part=part: f"{found[1]}\n{part}\n\n{found[2]}", text)
    target.write_text(text, encoding="utf-8")
    for name, drawn in plots.items():
        target.with_name(name).write_text(drawn, encoding="utf-8")
