"""Tables and plots of figure 3 of PDC: 15 queries in sequence, by regions of several sizes."""

from statistics import median
from typing import Any

import plots
from pdc_series import BY_REGIONS, CHOICE, H5PY, SIZES, WAYS
from pdc_tables import Target, range_of, ratio, table, targets
from plots import Bar, Panel
from ranks import shown

Result = dict[str, Any]
STATES = ("warm", "cold")
# Section VI.A, against the full scan whose reading is shared by the 15 queries.
WANTED = {"zonemap": (2.0, "2x to 3x"), "bitmap": (4.0, "4x to 14x")}
RAREST = 1000.0


class Series:
    """The rows of figure 3, by size of regions, way and state.

    Parameters
    ----------
    found
        What `pdc_series.measure` returned.
    """

    def __init__(self, found: Result) -> None:
        self.sizes: list[float] = [built["mib"] for built in found["built"]]
        self.deflated: list[Result] = found["deflated"]
        self.particles: int = found["particles"]
        self._rows: dict[tuple[float, str, str], list[Result]] = {}
        for row in found["rows"]:
            self._rows.setdefault((row["mib"], row["way"], row["state"]), []).append(row)

    def of(self, size: float, way: str, state: str = "warm") -> list[Result]:
        """Return the queries of a series, in order; where no regions are looked at, for any size."""
        return self._rows[size if way in BY_REGIONS else self.sizes[0], way, state]

    def total(self, size: float, way: str, state: str = "warm", what: str = "select") -> list[float]:
        """Return the seconds of each run of a whole series."""
        return [sum(run) for run in zip(*(row[what] for row in self.of(size, way, state)), strict=True)]

    def gains(self, size: float, way: str, state: str = "warm", rival: str = H5PY) -> list[float]:
        """Return how many times faster each query is than by another way."""
        pairs = zip(self.of(size, way, state), self.of(size, rival, state), strict=True)
        return [ratio(theirs["select"], ours["select"]) for ours, theirs in pairs]

    def best(self, state: str = "warm") -> float:
        """Return the size whose series are fastest, over the ways that have regions."""
        return min(self.sizes, key=lambda size: self.cost(size, state))

    def cost(self, size: float, state: str) -> float:
        """Return the seconds of a series by each of the ways that have regions."""
        return sum(median(self.total(size, way, state)) for way in BY_REGIONS)


def page(found: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and plots by file."""
    series = Series(found)
    tables = {
        "fig3-built": built(found),
        "fig3-sizes": "\n\n".join([sizes(series), verdict(series)]),
        "fig3-plot": "![Milliseconds of each query, by ways and sizes of regions](pdc-3.svg)",
        "fig3-queries": "\n\n".join(queries(series, size) for size in _told(series)),
        "fig3-data": data(series),
        "fig3-targets": goals(series),
    }
    return tables, {"pdc-3.svg": draw(series)}


def _told(series: Series) -> list[float]:
    """Return the sizes that are told query by query: that of indexes by themselves, and the best."""
    return list(dict.fromkeys([series.sizes[0], series.best()]))


def _size(mib: float) -> str:
    return f"{mib * 1024:g} KiB (default)" if mib == SIZES[0] else f"{mib:g} MiB"


def built(found: Result) -> str:
    """Return the table of the indexes."""
    rows = [
        [
            _size(one["mib"]),
            f"{one['regions']:,}",
            f"{one['region']:,}",
            f"{one['bytes']:,}",
            f"{one['seconds']:.2f}",
        ]
        for one in found["built"]
    ]
    return table(
        ["regions of", "regions", "bytes of each", "zone maps and bitmaps, bytes", "s to build"], rows
    )


def sizes(series: Series) -> str:
    """Return the table of whole series: milliseconds of the 15 queries, and the gain of each query."""
    rows = []
    for state in STATES:
        scan = series.total(series.sizes[0], H5PY, state)
        rows.append([state, "any", "h5py, full scan", f"{len(scan)}", shown(scan), "1.0x", "", ""])
        for size in series.sizes:
            for way in WAYS if size == series.sizes[0] else BY_REGIONS:
                gains = series.gains(size, way, state)
                own = range_of(series.gains(size, way, state, "scan"))
                runs = series.total(size, way, state)
                cells = [f"{len(runs)}", shown(runs), range_of(gains), f"{median(gains):.1f}x", own]
                rows.append([state, _size(size) if way in BY_REGIONS else "any", way, *cells])
    head = [
        "pages",
        "regions of",
        "way",
        "runs",
        "ms of 15 queries",
        "of the full scan, by query",
        "its median",
    ]
    return table([*head, "of sieva's scan, by query"], rows)


def verdict(series: Series) -> str:
    """Say which size is best, by the series of zone maps and of bitmaps together."""
    said = []
    for state in STATES:
        best, first = series.best(state), series.sizes[0]
        over = series.cost(first, state) / series.cost(best, state)
        if best == first:
            said.append(f"With {state} pages regions of {_size(best)} are best.")
        else:
            of_first = f"those of {_size(first)} take {over:.2f} times as long"
            said.append(f"With {state} pages regions of {_size(best)} are best; {of_first}.")
    return "By zone maps and bitmaps together: " + " ".join(said)


def queries(series: Series, size: float) -> str:
    """Return the table of all queries by regions of one size."""
    rows = []
    alone = {row["query"]: row["alone"] for row in series.of(size, H5PY)}
    for number, row in enumerate(series.of(size, H5PY)):
        share = f"{100 * row['hits'] / series.particles:.4f}"
        cells = [row["query"].removeprefix("PDC "), f"{row['hits']:,}", share]
        cells += [shown(alone[row["query"]]), shown(row["select"])]
        for way in WAYS:
            mine = series.of(size, way)[number]
            cells.append(f"{shown(mine['select'])}, {ratio(row['select'], mine['select']):.1f}x")
        rows.append(cells)
    head = ["query", "hits", "% of all", "h5py, reads for itself, ms", "h5py, reading shared, ms"]
    return f"Regions of {_size(size)}, warm:\n\n" + table([*head, *(f"{way}, ms" for way in WAYS)], rows)


def data(series: Series) -> str:
    """Return the table of getting the values, and of asking again by the choice."""
    rows = []
    size = series.sizes[0]
    for way in WAYS:
        found = series.of(size, way)
        read = [f"{sum(max(row[what]) for row in found):,}" for what in ("bytes", "bytes_get")]
        cells = [read[0], shown(series.total(size, way, what="read")), read[1]]
        rows.append(["contiguous", way, *cells, *(_again(found) if way == CHOICE else [""] * 4)])
    found = series.deflated
    read = [f"{sum(row[what] for row in found):,}" for what in ("bytes", "bytes_get")]
    cells = [read[0], f"{1e3 * sum(row['read'] for row in found):.1f}", read[1]]
    rows.append(["deflated, no index", CHOICE, *cells, *_again(found)])
    head = ["layout", "way", "bytes of the file read by evaluating", "ms to get data", "bytes read by that"]
    head += ["ms to evaluate again", "bytes read by that", "ms to get data again", "bytes read by that"]
    return table(head, rows)


def _again(found: list[Result]) -> list[str]:
    cells = []
    for seconds, read in (("again", "again_bytes"), ("again_read", "again_bytes_get")):
        cells.append(f"{1e3 * sum(row[seconds] for row in found):.1f}")
        cells.append(f"{sum(row[read] for row in found):,}")
    return cells


def goals(series: Series) -> str:
    """Return the targets: by the size that is best, and by that of indexes by themselves."""
    rows = []
    for size in _told(series):
        for way in BY_REGIONS:
            least, paper = WANTED[way]
            gains = series.gains(size, way)
            reached = sum(gain >= least for gain in gains)
            note = f"reached by {reached} of {len(gains)}"
            rows.append(
                Target(f"{way}, {_size(size)}, least gain", f"{least:g}x", least, min(gains), paper, note)
            )
    gains = series.gains(series.sizes[0], "sorted")
    rows.append(Target("sorted, most hits", "4x", 4.0, gains[0], "4x"))
    rows.append(Target("sorted, fewest hits", "1000x", RAREST, gains[-1], "1000x"))
    again = series.of(series.sizes[0], CHOICE)
    for name, found in (("contiguous", again), ("deflated", series.deflated)):
        for what, spent in (
            ("evaluating again", sum(row["again_bytes"] for row in found)),
            ("getting data after evaluating", sum(_most(row["bytes_get"]) for row in found)),
        ):
            rows.append(Target(f"{name}: bytes read by {what}", "0", 0, -spent, "0"))
    return targets(rows)


def _most(spent: int | list[int]) -> int:
    return max(spent) if isinstance(spent, list) else spent


def draw(series: Series) -> str:
    """Return figure 3: a panel for each size of regions, warm."""
    ways = (H5PY, *WAYS)
    panels = []
    for size in series.sizes:
        groups = []
        for number, row in enumerate(series.of(size, WAYS[0])):
            runs = [[1e3 * s for s in series.of(size, way)[number]["select"]] for way in ways]
            bars = [Bar((median(run),), (min(run), max(run))) for run in runs]
            groups.append((row["query"].split()[1], bars))
        panels.append(Panel(f"regions of {_size(size)}: ms by least energy", groups))
    return plots.figure(panels, ("h5py, reading shared", *WAYS), "ms", is_log=True)
