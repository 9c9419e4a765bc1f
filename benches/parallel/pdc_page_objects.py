"""Tables of figure 5 of PDC: small objects by metadata and data."""

from statistics import median
from typing import Any

from pdc_objects import RANKS, gain, spread
from pdc_tables import Target, range_of, table, targets
from ranks import shown

Result = dict[str, Any]
STATES = ("warm", "cold")
# The targets: of the traversal, and how much the slowest share may take longer than the fastest.
WANTED, FLAT = 50.0, 0.20


def page(found: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return tables by mark, and no plots."""
    size = found["catalog_bytes"] / 1e9
    about = (
        f"{found['groups']:,} groups in {found['files']} files are asked. Their collection has "
        f"{found['catalog_objects']:,} groups and arrays, and its catalog {size:.2f} GB."
    )
    return {"fig5-about": about, "fig5-times": times(found), "fig5-targets": goals(found)}, {}


def times(found: Result) -> str:
    """Return the table of all ranges of flux."""
    rows = []
    for row in found["rows"]:
        cells = [f"{row['ranks']}", row["state"], row["way"], f"{row['share']} %", shown(row["seconds"])]
        is_ours = row["way"] == "sieva"
        times_faster = gain(found["rows"], row["ranks"], row["state"], row["share"]) if is_ours else 1.0
        rows.append([*cells, f"{times_faster:.1f}x"])
    return table(
        ["ranks", "pages", "way", "elements selected", "ms", "of the traversal on as many ranks"], rows
    )


def goals(found: Result) -> str:
    """Return the targets."""
    rows = []
    for n in RANKS:
        for state in STATES:
            shares = sorted({row["share"] for row in found["rows"]})
            gains = [gain(found["rows"], n, state, share) for share in shares]
            name = f"{n} rank{'s' if n > 1 else ''}, {state}"
            note = f"{range_of(gains)}, median {median(gains):.1f}x"
            rows.append(
                Target(f"{name}: least gain over the traversal", "50x", WANTED, min(gains), note=note)
            )
            over = spread(found["rows"], n, state)
            told = f"slowest share {100 * over:.0f} % over the fastest"
            # As a gain that is to be large: the fastest share of the slowest one.
            flat = Target(f"{name}: flat within 20 %", "0.83x", 1 / (1 + FLAT), 1 / (1 + over), note=told)
            rows.append(flat)
    return targets(rows)
