"""Compares the figures of a run with those that are kept, and names what got slower.

Usage: check.py RUN.json [--kept DIRECTORY] [--by SHARE]

Of each figure the last kept one of its name counts. A ratio is slower where it is smaller by more than
``--by`` (0.2) both by the medians and by the fastest runs of either side: one alone moves with what
else the machine does. Other figures are compared where their target says which way is better. Ends with 1 if
something got slower.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parent / "results"
Record = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A figure beside the kept one of its name; shares above 1 are better than before."""

    name: str
    unit: str
    was: float
    now: float
    shares: tuple[float, ...]

    def is_slower(self, by: float) -> bool:
        """Whether all shares are worse by more than ``by``."""
        return all(share < 1 - by for share in self.shares)

    def __str__(self) -> str:
        """Return the name and both figures."""
        return f"{self.name}: {self.now:.3g} {self.unit}, was {self.was:.3g}"


def kept(directory: Path) -> dict[str, Record]:
    """Return the figures of all kept runs by name, of several the last measured."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("*.json")]
    # Some results, as those of SDQuery, are curves.
    runs = [run for run in runs if isinstance(run.get("figures"), list)]
    figures: dict[str, Record] = {}
    for run in sorted(runs, key=lambda run: str(run["at"])):
        figures.update({figure["name"]: figure for figure in run["figures"]})
    return figures


def changes(run: Record, before: dict[str, Record]) -> Iterator[Change]:
    """Yield the figures of a run that can be compared with kept ones."""
    for figure in run["figures"]:
        old = before.get(figure["name"])
        if old is None or old["unit"] != figure["unit"]:
            continue
        shares = _shares(old, figure)
        if shares:
            yield Change(figure["name"], figure["unit"], old["measured"], figure["measured"], shares)


def _shares(old: Record, new: Record) -> tuple[float, ...]:
    was, now = old["measured"], new["measured"]
    if was <= 0 or now <= 0:
        return ()
    if new["unit"] == "x":
        best = _fastest(old), _fastest(new)
        shares = [now / was]
        if best[0] and best[1]:
            shares.append(best[1] / best[0])
        return tuple(shares)
    if new["target"].startswith("<"):
        return (was / now,)
    if new["target"].startswith(">"):
        return (now / was,)
    return ()


def _fastest(figure: Record) -> float | None:
    """Return the ratio of the fastest runs of two sides, the rival's by ours."""
    ours = [t["seconds"] for name, t in figure["times"].items() if name.startswith("sieva")]
    rivals = [t["seconds"] for name, t in figure["times"].items() if not name.startswith("sieva")]
    if len(ours) != 1 or len(rivals) != 1:
        return None
    return min(rivals[0]) / min(ours[0])


def main(arguments: list[str] | None = None) -> int:
    """Compare, print and tell by the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the JSON file of a run")
    parser.add_argument("--kept", type=Path, default=KEPT, help="directory of the JSON files that are kept")
    parser.add_argument("--by", type=float, default=0.2, help="a share that is noise (default 0.2)")
    given = parser.parse_args(arguments)
    run = json.loads(given.run.read_text(encoding="utf-8"))
    compared = list(changes(run, kept(given.kept)))
    slower = [change for change in compared if change.is_slower(given.by)]
    for change in slower:
        print(f"slower: {change}")
    left = len(run["figures"]) - len(compared)
    print(f"{len(compared)} figures compared, {len(slower)} slower; {left} have none to be compared with")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
