"""Queries as work for engines, and answers to be compared to the bit."""

import json
import os

import sieva
from sieva.engines._work import Work


def work_of(query, path, n):
    """Return a query in at most `n` pieces of work."""
    how = json.dumps({"open": {"names": [os.fspath(path)], "options": {}}, "run": {}})
    return [Work("query", bytes(task), None, 0, how) for task in query.tasks(n)]


def ask_in_parts(query, path, engine):
    """Return the query that knows its answer by what an engine found."""
    work = work_of(query, path, engine.workers())
    found = dict(engine.run(work))
    assert sorted(found) == list(range(len(work)))
    return query.finish([sieva.Partial.from_bytes(part) for part in found.values()])


def answer(query):
    """Return all rows as text, which tells NaN from a number and -0.0 from 0.0."""
    return repr(query.to_arrow().to_pydict())
