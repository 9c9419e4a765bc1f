"""Bar charts as SVG, drawn by hand: small files that show what the tables say, without another dependency."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
GREY = "#555555"
WIDTH, HEIGHT = 300, 190
LEFT, RIGHT, TOP, BOTTOM = 48, 10, 26, 44


@dataclass(frozen=True)
class Bar:
    """A bar of parts that are stacked, with the range of what was measured.

    Attributes
    ----------
    parts
        Heights from below, one for each name of the legend that is stacked.
    ends
        The least and the most of the whole bar.
    """

    parts: tuple[float, ...]
    ends: tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """One chart: groups of bars; a group has a bar for each series, or one stacked bar."""

    title: str
    groups: Sequence[tuple[str, Sequence[Bar]]]


def figure(panels: Sequence[Panel], legend: Sequence[str], unit: str, *, is_log: bool = False) -> str:
    """Return panels side by side, three in a row.

    Parameters
    ----------
    panels
        The charts.
    legend
        Names of the series, or of the parts of stacked bars.
    unit
        Of the heights, for the axis.
    is_log
        Whether heights are drawn as logarithms; bars are not stacked then.

    Returns
    -------
    str
        An SVG document.
    """
    across = min(3, len(panels))
    down = -(-len(panels) // 3)
    legend_width = LEFT + sum(24 + 5 * len(name) for name in legend)
    width, height = max(across * WIDTH, legend_width), down * HEIGHT + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        x, y = number % 3 * WIDTH, number // 3 * HEIGHT
        parts.append(f'<g transform="translate({x} {y})">{_panel(panel, unit, is_log=is_log)}</g>')
    at = LEFT
    for name, colour in zip(legend, COLOURS, strict=False):
        parts.append(f'<rect x="{at}" y="{height - 14}" width="9" height="9" fill="{colour}"/>')
        parts.append(_text(at + 12, height - 6, name, "start"))
        at += 24 + 5 * len(name)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, unit: str, *, is_log: bool) -> str:
    bars = [bar for _, group in panel.groups for bar in group]
    scale = _Scale.of(bars, is_log=is_log)
    plot = WIDTH - LEFT - RIGHT
    parts = [_text(LEFT + plot / 2, 14, panel.title, "middle", size=11)]
    for tick in scale.ticks:
        y = scale.y(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 4, y + 3, f"{tick:g}", "end"))
    middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
    parts.append(_text(11, middle, unit, "middle", turn=f"rotate(-90 11 {middle})"))
    slot = plot / len(panel.groups)
    for number, (name, group) in enumerate(panel.groups):
        begin = LEFT + number * slot
        wide = 0.8 * slot / len(group)
        for at, bar in enumerate(group):
            x = begin + 0.1 * slot + at * wide
            # A bar alone shows its parts by colour, bars of a group their series.
            colours = COLOURS if len(group) == 1 else COLOURS[at:]
            parts.append(_bar(bar, x, wide, scale, colours))
        parts.append(_text(begin + slot / 2, HEIGHT - BOTTOM + 12, name, "middle", size=8))
    parts.append(f'<path d="M{LEFT} {scale.y(scale.least):.1f}H{WIDTH - RIGHT}" stroke="{GREY}"/>')
    return "".join(parts)


def _bar(bar: Bar, x: float, wide: float, scale: "_Scale", colours: Sequence[str]) -> str:
    parts, height = [], 0.0
    for part, colour in zip(bar.parts, colours, strict=False):
        bottom, top = scale.y(max(height, scale.least)), scale.y(max(height + part, scale.least))
        size = f'width="{wide:.1f}" height="{bottom - top:.1f}"'
        parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" {size} fill="{colour}"/>')
        height += part
    low, high = (scale.y(max(end, scale.least)) for end in bar.ends)
    parts.append(f'<path d="M{x + wide / 2:.1f} {low:.1f}V{high:.1f}" stroke="black"/>')
    return "".join(parts)


@dataclass(frozen=True)
class _Scale:
    """From values to heights on the page."""

    least: float
    most: float
    ticks: tuple[float, ...]
    is_log: bool

    @classmethod
    def of(cls, bars: Sequence[Bar], *, is_log: bool) -> "_Scale":
        most = max(max(sum(bar.parts), bar.ends[1]) for bar in bars)
        if is_log:
            # The least bar has a height, too.
            low = floor(log10(min(min(sum(bar.parts), bar.ends[0]) for bar in bars)) - 0.1)
            high = floor(log10(most)) + 1
            return cls(10.0**low, 10.0**high, tuple(10.0**e for e in range(low, high + 1)), is_log=True)
        step = 10.0 ** floor(log10(most / 2))
        step *= next(factor for factor in (1, 2, 5, 10) if most / (factor * step) <= 5)
        count = int(most / step) + 1
        return cls(0.0, count * step, tuple(step * tick for tick in range(count + 1)), is_log=False)

    def y(self, value: float) -> float:
        if self.is_log:
            share = (log10(value) - log10(self.least)) / (log10(self.most) - log10(self.least))
        else:
            share = value / self.most
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 9, turn: str = "") -> str:
    turned = f' transform="{turn}"' if turn else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{GREY}"'
    return f"<text {place}{turned}>{escape(text)}</text>"
