"""The cases of SDS, section IV, beside its main tables: balance, the choice, little memory.

`sds.py` runs them after its own, on the store that holds zone maps, bitmaps of Energy, x, y, z and the
replica sorted by Energy.
"""

import shutil
import statistics
import zlib
from collections.abc import Callable
from pathlib import Path

import conventional
import data
import numpy as np
import sieva
from queries import AXES, Query, sds
from ranks import Result, shown

Ask = Callable[[int, Query, Path, Result], Result]
# Figure 13 asks the first on as many ranks as may be; the second's hits lie in one half of the rows.
BALANCE = ((Query("SDS Q1", (("Energy", ">", "1.7"),), AXES), (4, 8)),)
UNEVEN = (Query("half", (("Energy", ">", "1.7"), ("z", "<", "0")), AXES), (2,))
# What a rank may hold, where conventional reading needs its whole share.
LITTLE = "64MiB"
# What is taken away in turn, and what is left.
LEFT = {
    "all": "",
    "no replica": "replica",
    "no bitmaps": "bitmap",
    "neither": "both",
}


def digest(path: Path, query: Query) -> tuple[int, dict[str, int]]:
    """Return numpy's number of hits, and a checksum of each fetched array."""
    want = conventional.values(path, query)
    return len(want[query.fetch[0]]), {name: zlib.crc32(v.tobytes()) for name, v in want.items()}


def checked(
    ask: Ask, asked: tuple[int, Query, Path], how: Result, want: tuple[int, dict[str, int]]
) -> Result:
    """Return what the ranks measured; their answer is numpy's."""
    n, query, store = asked
    done = ask(n, query, store, how)
    if (sum(done["hits"]), done["digest"]) != want:
        raise SystemExit(f"{query.name} on {n} ranks, {how}: another answer than numpy's")
    return done


def balance(ask: Ask, path: Path, store: Path) -> list[Result]:
    """Measure figure 13: hits that are shared out evenly, beside those that each rank found itself."""
    rows = []
    for query, numbers in (*BALANCE, UNEVEN):
        want = digest(path, query)
        for n in numbers:
            for way in ("sieva", "unbalanced"):
                how = {"way": way, "access": "bitmap"}
                done = checked(ask, (n, query, store), how, want)
                rows.append({"query": query.text, "ranks": n, "way": way, **done})
    return rows


def choice(ask: Ask, path: Path, store: Path) -> list[Result]:
    """Measure figure 5: each augmentation is taken away in turn, and the choice follows what is left."""
    rows = []
    for name, without in LEFT.items():
        own = store.with_name(f"without-{without or 'nothing'}")
        shutil.rmtree(own, ignore_errors=True)
        if without in ("", "replica"):
            shutil.copytree(store, own)
        if without == "replica":
            with sieva.open(path, store=own) as source:
                source.drop_index(f"{data.GROUP}/Energy", kinds=["sorted"])
        if without == "bitmap":
            with sieva.open(path, store=own) as source:
                arrays = [f"{data.GROUP}/{array}" for array in AXES]
                source.build_index(f"{data.GROUP}/Energy", kinds=["zonemap"])
                source.build_index(f"{data.GROUP}/Energy", kinds=["sorted"], columns=arrays)
        for query in sds():
            done = checked(ask, (2, query, own), {"way": "sieva", "access": "auto"}, digest(path, query))
            rows.append({"left": name, "query": query.name, "taken": taken(path, own, query), **done})
        shutil.rmtree(own, ignore_errors=True)
    return rows


def taken(path: Path, store: Path, query: Query) -> str:
    """Return the way that auto goes for most tiles."""
    with sieva.open(path, store=store) as source:
        asked = source.query(query.text)
        for name in query.fetch:
            asked.read(name)
        stats = asked.stats()
    ways = {name: stats[f"by_{name}"] for name in ("replica", "bitmap", "scan")}
    return max(ways, key=lambda way: ways[way]) if any(ways.values()) else "zone maps"


def little(ask: Ask, path: Path, store: Path) -> list[Result]:
    """Ask on one rank that may hold 64 MiB, beside the memory of conventional reading."""
    rows = []
    for query in sds():
        want = digest(path, query)
        for way, access, memory in (("h5py", "", None), ("sieva", "auto", LITTLE), ("sieva", "scan", LITTLE)):
            done = checked(ask, (1, query, store), {"way": way, "access": access, "memory": memory}, want)
            rows.append({"query": query.name, "way": f"{way}, {access}" if access else way, **done})
    return rows


def tables(found: Result) -> list[str]:
    """Return the tables of the three cases."""
    lines = [
        "| query | ranks | ms, shared out | ms, as found | gain | most hits of a rank / mean, as found |"
    ]
    lines.append("|---|---|---|---|---|---|")
    rows = found["balance"]
    for even, uneven in zip(rows[::2], rows[1::2], strict=True):
        gain = statistics.median(uneven["seconds"]) / statistics.median(even["seconds"])
        most = max(uneven["hits"]) / float(np.mean(uneven["hits"]))
        cells = (
            f"`{even['query']}`",
            even["ranks"],
            shown(even["seconds"]),
            shown(uneven["seconds"]),
            f"{gain:.2f}x",
            f"{most:.2f}",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    first = "\n".join(lines)
    lines = ["| there is | query | auto takes | ms on 2 ranks |", "|---|---|---|---|"]
    lines += [
        f"| {r['left']} | {r['query']} | {r['taken']} | {shown(r['seconds'])} |" for r in found["choice"]
    ]
    second = "\n".join(lines)
    lines = ["| query | way | ms | most memory of the process |", "|---|---|---|---|"]
    for r in found["little"]:
        lines.append(f"| {r['query']} | {r['way']} | {shown(r['seconds'])} | {r['peak'] / 2**20:.0f} MiB |")
    return [first, second, "\n".join(lines)]


def measure(ask: Ask, path: Path, store: Path) -> Result:
    """Return what all three cases measured."""
    return {
        "balance": balance(ask, path, store),
        "choice": choice(ask, path, store),
        "little": little(ask, path, store),
    }
