"""Conformance cases asked through an engine: the same answers, bits and order."""

import os

import sieva
from sieva import errors
from test_conformance import CASES, check_rows, check_selection

ASKED = sorted(name for name, case in CASES.items() if "error" not in case)
# All of them with any number of workers and ranks, which takes minutes; else a part where it is not two.
ALL = os.environ.get("SIEVA_ALL_CASES") == "1"


def ask(case, files, engine):
    """Return the query of a case, run by an engine."""
    path = files / case["file"]
    if "sql" in case:
        sql = case["sql"].replace("{file}", str(path))
        return sieva.sql(sql, engine=engine, **case.get("options", {}))
    reads = list(case.get("values", {})) or None
    options = dict(case.get("options", {}))
    cross = options.pop("cross", False)
    return sieva.open(path, **options).query(case["where"], select=reads, cross=cross, engine=engine)


def check(case, files, engine):
    """Ask a case, and compare with its answer; return whether workers took part."""
    query = ask(case, files, engine)
    if "sql" in case:
        check_rows(case, query)
    else:
        check_selection(case, query)
    return is_cut(query)


def is_cut(query):
    """Return whether a query is to be had in parts."""
    try:
        return len(query.tasks()) > 0
    except errors.Unsupported:
        return False
