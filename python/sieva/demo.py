"""The demo: two files, four queries, each beside a plain scan of the same question by h5py and numpy."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from sieva import _open
from sieva._extras import required
from sieva._memory import size_text
from sieva.generate import FILL, write_ocean, write_particles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from sieva._query import Query

_WIDTH = 80
_REPEATS = 3


@dataclass
class Question:
    """A query, and the scan that answers the same."""

    title: str
    sql: str
    """With {file} where the path goes, one clause to a line."""
    file: str
    scan: Callable[[Path], Any]
    answer: Callable[[Query], Any]
    show: Callable[[Any], str]


def run(directory: Path) -> None:
    """Make the files if they are not there, and answer the four queries.

    Raises
    ------
    RuntimeError
        An answer differs from that of the scan.
    """
    required("h5py", "the demo", extra="hdf5")
    directory.mkdir(parents=True, exist_ok=True)
    made: dict[str, Callable[[Path], None]] = {"ocean.nc": write_ocean, "particles.h5": write_particles}
    for name, write in made.items():
        path = directory / name
        if not path.exists():
            click.echo(f"making {path} ...", err=True)
            write(path)
        click.echo(f"{path}  {size_text(path.stat().st_size)}")
    ratios = []
    for number, question in enumerate(questions(), 1):
        ratios.append(_ask(number, question, directory / question.file))
    _next_steps(directory, ratios)


def _ask(number: int, question: Question, path: Path) -> float:
    """Ask it, and print question, answer and times; returns how many times faster it was."""
    sql = question.sql.format(file=path)
    click.echo()
    click.echo(click.style(f"{number}. {question.title}", bold=True))
    click.echo("\n".join(f"   {line}" for line in sql.splitlines()))
    ours, seconds = _best(lambda: question.answer(_open.sql(sql)))
    expected, scan_seconds = _best(lambda: question.scan(path))
    if not _equal(ours, expected):
        raise RuntimeError(f"the answers differ: {ours!r}, but {expected!r} by the scan; please report this")
    click.echo("\n".join(f"   {line}" for line in f"-> {question.show(ours)}".splitlines()))
    ratio = scan_seconds / seconds
    times = f"sieva {_time(seconds)}   h5py + numpy {_time(scan_seconds)}"
    faster = click.style(f"{ratio:.1f}x faster", bold=True) if ratio >= 1 else f"{1 / ratio:.1f}x slower"
    click.echo(f"   {times}   {faster}, same answer")
    return ratio


def _best(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer and the least time of a few: the page cache is warm for both sides."""
    seconds = []
    answer = None
    for _ in range(_REPEATS):
        started = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - started)
    return answer, min(seconds)


def _equal(a: Any, b: Any) -> bool:  # noqa: ANN401 - what questions return
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) and a.dtype == np.float64:
        # Sums in another order differ in the last digits.
        return bool(np.allclose(a, b, rtol=1e-9, atol=0))
    return bool(np.array_equal(a, b))


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def _next_steps(directory: Path, ratios: list[float]) -> None:
    ocean = directory / "ocean.nc"
    click.echo()
    click.echo("-" * min(_WIDTH, shutil.get_terminal_size().columns))
    click.echo("All answers are those of the scan, value for value. Next:")
    click.echo(f"  sieva schema {ocean}")
    click.echo(f"  sieva query \"SELECT TEMP FROM '{ocean}' WHERE TEMP > 29\" -o warm.csv")
    click.echo(f"  sieva explain --analyze \"SELECT TEMP FROM '{ocean}' WHERE z_t < 5000\"")
    click.echo(f"  python -c \"import sieva; print(sieva.open('{ocean}').schema())\"")
    slower = sum(ratio < 1 for ratio in ratios)
    if slower:
        click.echo(f"({slower} of {len(ratios)} were slower than the scan on this machine)")


def questions() -> list[Question]:
    """Return the four questions."""
    return [
        Question(
            "How many particles are energetic?",
            "SELECT count(*)\nFROM '{file}'\nWHERE Energy > 1.7",
            "particles.h5",
            lambda path: int((_read(path, "Energy").astype("f8") > 1.7).sum()),
            lambda query: query.to_arrow().column(0)[0].as_py(),
            lambda n: f"{n:,} particles",
        ),
        Question(
            "Where are the most energetic ones?",
            "SELECT x, y, z\nFROM '{file}'\nWHERE Energy > 2.4",
            "particles.h5",
            _scan_places,
            lambda query: {name: query.read(name) for name in "xyz"},
            _show_places,
        ),
        Question(
            "How warm is the upper Gulf of Mexico?",
            "SELECT count(TEMP), avg(TEMP)\nFROM '{file}'\n"
            "WHERE TLAT BETWEEN 18 AND 31 AND TLONG BETWEEN 262 AND 280 AND z_t < 5000",
            "ocean.nc",
            _scan_gulf,
            lambda query: np.array([float(c[0].as_py()) for c in query.to_arrow().columns]),
            lambda v: f"{v[1]:.2f} degC, the mean of {v[0]:,.0f} values",
        ),
        Question(
            "How deep does warm water reach?",
            "SELECT z_t, count(*) AS points\nFROM '{file}'\nWHERE TEMP > 20 GROUP BY z_t ORDER BY z_t",
            "ocean.nc",
            _scan_depths,
            _grouped_depths,
            _show_depths,
        ),
    ]


def _read(path: Path, *names: str) -> Any:  # noqa: ANN401 - one array or a list of them
    """Return whole arrays by h5py, those of the ocean with NaN for missing values."""
    import h5py

    with h5py.File(path) as file:
        group = file.get("Step#0", file)
        arrays = [group[name][()] for name in names]
    return arrays[0] if len(arrays) == 1 else arrays


def _scan_places(path: Path) -> dict[str, NDArray[Any]]:
    energy, x, y, z = _read(path, "Energy", "x", "y", "z")
    hit = energy.astype("f8") > 2.4
    return {"x": x[hit], "y": y[hit], "z": z[hit]}


def _show_places(places: dict[str, NDArray[Any]]) -> str:
    rows = list(zip(*(places[name] for name in "xyz"), strict=True))
    first = "\n".join("     " + "  ".join(f"{v:9.3f}" for v in row) for row in rows[:3])
    return f"{len(rows):,} rows of x, y, z; the first:\n{first}"


def _scan_gulf(path: Path) -> NDArray[np.float64]:
    temp, lat, lon, depth = _read(path, "TEMP", "TLAT", "TLONG", "z_t")
    there = (lat >= 18) & (lat <= 31) & (lon >= 262) & (lon <= 280)
    hit = there & (depth < 5000)[:, None, None] & (temp != FILL)
    values = temp[hit].astype("f8")
    return np.array([len(values), values.mean()])


def _scan_depths(path: Path) -> dict[str, NDArray[Any]]:
    temp, depth = _read(path, "TEMP", "z_t")
    counts = ((temp.astype("f8") > 20) & (temp != FILL)).sum(axis=(0, 2, 3))
    return {"z_t": depth[counts > 0], "points": counts[counts > 0]}


def _grouped_depths(query: Query) -> dict[str, NDArray[Any]]:
    table = query.to_arrow()
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _show_depths(table: dict[str, NDArray[Any]]) -> str:
    depths, counts = table["z_t"], table["points"]
    shown = list(zip(depths, counts, strict=True))
    lines = [
        f"     {depth / 100:7.0f} m {count:9,d}  {'#' * int(40 * count / counts.max())}"
        for depth, count in shown[:6]
    ]
    more = [f"     ... {len(shown) - 6} more layers"] if len(shown) > 6 else []
    return "\n".join([f"{len(shown)} layers:", *lines, *more])
