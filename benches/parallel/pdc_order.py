"""Figure 4 of PDC: queries of four objects, and the order in which their conditions are evaluated.

There is no option for the order. It is forced by what the planner goes by: a condition costs as many arrays
as it names, so that alternatives that no value satisfies make it dearer, and zone maps settle those on every
tile without reading. `explain` is asked whether the order is the one that was wanted, and counters tell what
it read.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import sieva
from pdc_cluster import Values, timed
from pdc_series import Answer, answer, checksum
from queries import AXES, Query

Result = dict[str, Any]
ARRAYS = ("Energy", *AXES)
# No particle is as far away, or as fast.
NEVER = "> 1e30"
PLANNED = "the planner's"
COUNTERS = ("bytes_read", "requests", "by_scan", "by_points", "by_bitmap", "tiles_scanned", "tiles_skipped")


def parts(query: Query) -> dict[str, str]:
    """Return the condition on each array."""
    found: dict[str, list[str]] = {}
    for array, operator, literal in query.terms:
        found.setdefault(array, []).append(f"{array} {operator} {literal}")
    return {array: " AND ".join(terms) for array, terms in found.items()}


def dearer(array: str, condition: str) -> str:
    """Return the same condition, which seems to cost four times as much."""
    return " OR ".join([f"({condition})", *(f"{other} {NEVER}" for other in ARRAYS if other != array)])


def forced(query: Query, last: set[str]) -> str:
    """Return the query with the conditions on some arrays behind the others."""
    texts = {array: dearer(array, text) if array in last else text for array, text in parts(query).items()}
    return " AND ".join(f"({text})" for text in texts.values())


def order_of(explained: str) -> list[str]:
    """Return the arrays of the conditions in the order of a plan."""
    text = explained.partition("condition  all of, in this order\n")[2]
    found = []
    for line in text.splitlines():
        if not line.startswith(" " * 13):
            break
        if name := re.search(r"(?:^ {13}| {15})\S*/(\w+):", line):
            found.append(name[1])
    # Of alternatives the first is the condition, the others are those that nothing satisfies.
    return list(dict.fromkeys(found))


def orders(query: Query) -> dict[str, tuple[str, str]]:
    """Return texts by the order that they are to have, with the array that has to come first or last."""
    others = {array for array in parts(query) if array != "Energy"}
    return {
        PLANNED: (query.text, ""),
        "Energy first": (forced(query, others), "first"),
        "Energy last": (forced(query, {"Energy"}), "last"),
    }


def measure(path: Path, store: Path, queries: list[Query], columns: Values, *, runs: int) -> list[Result]:
    """Measure each order by zone maps and by bitmaps, on one thread of this process."""
    rows = []
    source = sieva.open(path, store=store, learn=False)
    for query in queries:
        want = answer(Query(query.name, query.terms, ()), columns)
        for name, (text, place) in orders(query).items():
            for way in ("zonemap", "bitmap"):
                asked = source.query(text, access=way, threads=1)
                order = order_of(asked.explain())
                if place and order[0 if place == "first" else -1] != "Energy":
                    raise SystemExit(f"{query.name}: {name} was wanted, the plan has {', '.join(order)}")
                seconds = []
                for run in range(runs + 1):
                    asked = source.query(text, access=way, threads=1)
                    spent, selection = timed(asked.selection)
                    seconds += [spent] if run else []
                checked(query, selection, want)
                stats = asked.stats()
                row = {"query": query.name, "order": name, "way": way, "arrays": order, "seconds": seconds}
                rows.append({**row, **{counter: stats[counter] for counter in COUNTERS}})
    return rows


def checked(query: Query, selection: sieva.Selection, want: Answer) -> None:
    """Refuse another answer than numpy's."""
    positions: np.ndarray = selection.positions()
    if (len(positions), checksum(positions)) != (want.hits, want.positions):
        raise SystemExit(f"{query.name}: {len(positions)} positions, numpy has {want.hits}, or others")


def gain(rows: list[Result], query: str, way: str, counters: tuple[str, ...]) -> float:
    """Return what the best order took by some counters, as a part of what the planner's took."""
    of_query = [row for row in rows if (row["query"], row["way"]) == (query, way)]
    spent = {row["order"]: sum(row[counter] for counter in counters) for row in of_query}
    return min(spent.values()) / spent[PLANNED] if spent[PLANNED] else 1.0
