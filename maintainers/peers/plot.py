"""Draw the plot of the page as SVG: two logarithmic axes, and a line for each peer with its name at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TypeAlias

Series: TypeAlias = Mapping[str, Sequence[tuple[float, float]]]
"""Points of each line, by its name."""

# Colours of Okabe and Ito, which colour-blind readers can tell apart, and greys.
_COLOURS = (
    '#000000',
    '#0072b2',
    '#56b4e9',
    '#009e73',
    '#e69f00',
    '#d55e00',
    '#cc79a7',
    '#7f7f7f',
    '#8c564b',
    '#999933',
)
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 900, 420, 70, 40, 260, 50
_LINE_HEIGHT = 14


def plot(title: str, across: str, up: str, series: Series) -> str:
    """Draw lines over a logarithmic grid.

    Args:
        title: The text above the plot.
        across: The label of the horizontal axis.
        up: The label of the vertical axis, with its unit.
        series: The lines. Points that are not positive are left out, because a logarithmic axis cannot show them.

    Raises:
        ValueError: No point is positive.
    """
    lines = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in series.items()}
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError('There is nothing to draw: no point is positive.')
    columns = _decades([x for x, _ in points])
    rows = _decades([y for _, y in points])
    return '\n'.join(_draw(title, across, up, lines, columns, rows)) + '\n'


def _decades(values: Sequence[float]) -> list[int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return list(range(low, max(high, low + 1) + 1))


def _draw(
    title: str, across: str, up: str, lines: Series, columns: Sequence[int], rows: Sequence[int]
) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def x_of(value: float) -> float:
        return _LEFT + (math.log10(value) - columns[0]) / (columns[-1] - columns[0]) * (right - _LEFT)

    def y_of(value: float) -> float:
        return bottom - (math.log10(value) - rows[0]) / (rows[-1] - rows[0]) * (bottom - _TOP)

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
    )
    # A page may be dark, and the colours of the lines need a white background.
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    yield f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>'
    for exponent in columns:
        x = x_of(10.0**exponent)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#dddddd"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10.0**exponent:g}</text>'
    for exponent in rows:
        y = y_of(10.0**exponent)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**exponent:g}</text>'
    yield f'<text x="{(_LEFT + right) / 2:.1f}" y="{bottom + 38}" text-anchor="middle">{escape(across)}</text>'
    middle = (_TOP + bottom) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 16 {middle:.1f})"'
    yield f'<text x="16" y="{middle:.1f}" {turned}>{escape(up)}</text>'
    drawn = {name: line for name, line in lines.items() if line}
    labels = _apart({name: y_of(line[-1][1]) for name, line in drawn.items()})
    for number, (name, line) in enumerate(drawn.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = ' '.join(f'{x_of(x):.1f},{y_of(y):.1f}' for x, y in line)
        yield f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" fill="{colour}"/>' for x, y in line)
        x, y = x_of(line[-1][0]), y_of(line[-1][1])
        ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{right + 8}" y2="{labels[name]:.1f}"'
        yield f'<line {ends} stroke="{colour}" opacity="0.4"/>'
        yield f'<text x="{right + 12}" y="{labels[name] + 4:.1f}" fill="{colour}">{escape(name)}</text>'
    yield '</svg>'


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    # From the top down, place each label at the end of its line or below the label above. Then move all of them up if
    # they leave the plot.
    placed: dict[str, float] = {}
    free = float(_TOP)
    for name, y in sorted(wanted.items(), key=lambda each: each[1]):
        placed[name] = max(y, free)
        free = placed[name] + _LINE_HEIGHT
    limit = float(_HEIGHT - _BOTTOM)
    for name in reversed(list(placed)):
        placed[name] = min(placed[name], limit)
        limit = placed[name] - _LINE_HEIGHT
    return placed
