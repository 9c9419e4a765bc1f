"""Where topics register their files and cases."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from corpus.reference import Reference

Answer = Callable[[Reference], Any]
Writer = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """A question and how numpy answers it; README.md says what becomes of the fields."""

    name: str
    topic: str
    file: str
    where: str | None = None
    sql: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dims: tuple[str, ...] = ()
    hits: Answer | None = None
    reads: Mapping[str, Answer] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: Answer | None = None
    tolerance: float = 0.0
    error: tuple[str, str] | None = None


FILES: dict[str, Writer] = {}
CASES: list[Case] = []


def file(name: str) -> Callable[[Writer], Writer]:
    """Register the decorated function as the writer of file ``name``."""

    def register(writer: Writer) -> Writer:
        FILES[name] = writer
        return writer

    return register


class Topic:
    """Registers the cases of one topic, which become ``cases/<topic>.json``."""

    def __init__(self, name: str, file: str) -> None:
        self.name = name
        self.file = file

    def where(
        self,
        name: str,
        condition: str,
        dims: str,
        hits: Answer,
        reads: Mapping[str, Answer] | None = None,
        file: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask for positions: ``hits`` is the mask over ``dims``, ``reads`` what arrays hold there."""
        names = tuple(dims.split())
        case = Case(
            name,
            self.name,
            file or self.file,
            where=condition,
            dims=names,
            hits=hits,
            reads=reads or {},
            options=options or {},
        )
        CASES.append(case)

    def sql(
        self,
        name: str,
        text: str,
        columns: Iterable[str],
        rows: Answer,
        file: str | None = None,
        tolerance: float = 0.0,
    ) -> None:
        """Ask for rows; ``{file}`` in the text stands for the file."""
        case = Case(
            name,
            self.name,
            file or self.file,
            sql=text,
            columns=tuple(columns),
            rows=rows,
            tolerance=tolerance,
        )
        CASES.append(case)

    def error(self, name: str, question: str, kind: str, message: str, file: str | None = None) -> None:
        """Expect an error of ``kind`` whose message holds ``message``."""
        is_select = question.upper().startswith(("SELECT", "SELCT"))
        asked = {"sql": question} if is_select else {"where": question}
        CASES.append(Case(name, self.name, file or self.file, **asked, error=(kind, message)))


def table(mask: Any, *columns: Any) -> list[list[Any]]:  # noqa: ANN401 -- whatever numpy broadcasts
    """Rows of the values of ``columns`` where ``mask`` holds, in C order; NaN becomes None."""
    mask = np.asarray(mask, bool)
    picked = [np.broadcast_to(column, mask.shape)[mask].tolist() for column in columns]
    return [
        [None if isinstance(v, float) and math.isnan(v) else v for v in row]
        for row in zip(*picked, strict=True)
    ]
