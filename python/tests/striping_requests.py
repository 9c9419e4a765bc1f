"""Stripes by arithmetic, and the requests that a query says it makes."""

import json

import sieva


def stripes_of(start, stop, size, count, first):
    """Return the stripes of bytes as (server, number, start, stop), by arithmetic."""
    return [
        ((n + first) % count, n, max(start, n * size), min(stop, (n + 1) * size))
        for n in range(start // size, (stop - 1) // size + 1)
    ]


def layout(path, sql, fetch="auto", **how):
    return json.loads(sieva.open(path, learn=False, **how).sql(sql, fetch=fetch).explain_layout_json())


def requests(file):
    """Return (server, stripe, start, stop) of all requests, in the order of the file."""
    found = [
        (server["server"], stripe["stripe"], *request)
        for server in file["servers"]
        for stripe in server["stripes"]
        for request in stripe["requests"]
    ]
    return sorted(found, key=lambda one: one[2])
