"""Adds columns to a SELECT, by its text: what comes back stays first and as it was.

Outputs that lay points out along dimensions need the positions of each row beside the columns. The text was
parsed before, so that only the end of the list of columns has to be found here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sieva._expr import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<word>[^\W\d]\w*(?:(?:::|[/.\#:])\w+)*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
# What may follow the list of columns.
_CLAUSES = {"from", "where", "group", "having", "order", "limit", "offset"}
_OPERATORS = set(",+-*/%^&|<>=~")


def with_columns(sql: str, columns: list[str], extra: list[str]) -> str | None:
    """Return the SELECT with more columns behind its own.

    Parameters
    ----------
    sql
        A SELECT that was parsed without error.
    columns
        Names of its columns, which stand for ``*``.
    extra
        Expressions to add.

    Returns
    -------
    str or None
        None where more columns would change the rows: of SELECT DISTINCT.
    """
    tokens = _top_level(sql)
    next(tokens)  # SELECT itself
    items: list[tuple[int, int, str]] = []
    for start, stop, word in tokens:
        # Behind an operator it is a name: SELECT a, limit FROM ...
        is_operand = not items or (items[-1][2] in _OPERATORS and len(items) > 1)
        if word == ";" or (word in _CLAUSES and not is_operand):
            break
        items.append((start, stop, word))
    first = items[0]
    if first[2] == "distinct":
        return None
    if len(items) == 1 and first[2] == "*":
        kept = ", ".join(quote(name) for name in columns)
        return f"{sql[: first[0]]}{', '.join([kept, *extra])} {sql[first[1] :]}"
    end = items[-1][1]
    return f"{sql[:end]}, {', '.join(extra)} {sql[end:]}"


def without_from(sql: str) -> str:
    """Return a SELECT without its own FROM: that of the source which is asked. FROM in subqueries stays.

    A text without one, or that is no SELECT, comes back as it is: who parses it says what is wrong.
    """
    tokens = list(_top_level(sql))
    for i, (start, _, word) in enumerate(tokens[:-1]):
        _, stop, after = tokens[i + 1]
        if word == "from" and after == "''":
            return f"{sql[:start].rstrip()} {sql[stop:].lstrip()}".rstrip(" ;")
    return sql


def _top_level(sql: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and lower-case text of what stands in no parentheses, each group of them as one."""
    depth = opened = 0
    for token in _TOKEN.finditer(sql):
        if token.lastgroup == "space":
            continue
        text = token.group()
        if text == "(":
            opened = opened if depth else token.start()
            depth += 1
        elif text == ")":
            depth -= 1
            if depth == 0:
                yield opened, token.end(), "()"
        elif depth == 0:
            yield token.start(), token.end(), text.lower() if token.lastgroup != "text" else "''"
