"""Draws a tree of boxes, as SVG in the colour of the surrounding text and as a matplotlib figure."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

LEVEL = 46
GAP = 4
HEIGHT = 20
CHARACTER = 7.2
#: Pixels of the drawing for each inch of a matplotlib figure.
PIXELS_PER_INCH = 96


class DrawnBox(NamedTuple):
    """`DrawnBox` is a box with its text, a note that is shown when the pointer is on it, and the indices of the boxes below."""

    label: str
    note: str = ""
    below: tuple[int, ...] = ()

    @property
    def width(self) -> float:
        """Return the width in pixels."""
        return max(HEIGHT, CHARACTER * len(self.label) + 8)


def _places(boxes: Sequence[DrawnBox]) -> tuple[dict[int, tuple[float, float]], float]:
    """Return the centre of each box below the last box, and the width of the drawing.

    A stack replaces recursion, because chains are thousands of boxes deep.
    """
    found: dict[int, tuple[float, float]] = {}
    edge, stack = 2.0, [(len(boxes) - 1, HEIGHT + 16.0, -1.0)]
    while stack:
        number, y, left = stack.pop()
        box = boxes[number]
        if box.below and left < 0:
            stack.append((number, y, edge))
            stack += [(child, y + LEVEL, -1.0) for child in reversed(box.below)]
            continue
        x = edge
        if box.below:
            x = max((found[box.below[0]][0] + found[box.below[-1]][0] - box.width) / 2, left)
        found[number] = x + box.width / 2, y
        edge = max(edge, x + box.width + GAP)
    return found, edge - GAP + 2


def _drawn(box: DrawnBox, x: float, y: float) -> str:
    radius, fill = (3, "currentColor") if box.below else (HEIGHT / 2, "none")
    title = f"<title>{escape(box.note)}</title>" if box.note else ""
    return (
        f'<g>{title}<rect x="{x - box.width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{box.width:.1f}" height="{HEIGHT}" '
        f'rx="{radius:g}" fill="{fill}" fill-opacity="0.12" stroke="currentColor" stroke-opacity="0.6"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="currentColor">{escape(box.label)}</text></g>'
    )


def svg(boxes: Sequence[DrawnBox], title: str) -> str:
    """Return boxes as an SVG element with the last box on top; each box comes after the boxes below it.

    `title` is the text for readers who cannot see the picture.
    """
    places, width = _places(boxes)
    height = max(y for _, y in places.values()) + HEIGHT / 2 + 2
    lines = "".join(
        f'<line x1="{x:.1f}" y1="{y + HEIGHT / 2:.1f}" x2="{places[child][0]:.1f}" y2="{places[child][1] - HEIGHT / 2:.1f}"/>'
        for number, (x, y) in places.items()
        for child in boxes[number].below
    )
    x, y = places[len(boxes) - 1]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="11">'
        f'<g stroke="currentColor" stroke-opacity="0.35">{lines}'
        f'<line x1="{x:.1f}" y1="18" x2="{x:.1f}" y2="{y - HEIGHT / 2:.1f}"/></g>'
        f'<text x="{x:.1f}" y="14" text-anchor="middle" fill="currentColor" font-style="italic">d</text>'
        f"{''.join(_drawn(boxes[number], *place) for number, place in places.items())}</svg>"
    )


def figure_of(boxes: Sequence[DrawnBox], title: str):
    """Return a matplotlib figure of boxes, placed as by :func:`svg`, in the current style.

    Raises ValueError if matplotlib is not installed.
    """
    from ..figures import new_figure

    places, width = _places(boxes)
    height = max(y for _, y in places.values()) + HEIGHT / 2 + 2
    figure = new_figure(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH + 0.4)
    # Texts shrink with the drawing if the style's figure is narrower than the drawing.
    points = 7.2 * figure.get_figwidth() / (width / PIXELS_PER_INCH)
    axes = figure.subplots()
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    axes.axis("off")
    for number, (x, y) in places.items():
        for child in boxes[number].below:
            below, depth = places[child]
            axes.plot([x, below], [y + HEIGHT / 2, depth - HEIGHT / 2], color="0.65", linewidth=0.7, zorder=1)
        box = {
            "boxstyle": "round,pad=0.25",
            "facecolor": "0.92" if boxes[number].below else "white",
            "edgecolor": "0.4",
        }
        axes.text(x, y, boxes[number].label, ha="center", va="center", fontsize=points, bbox={**box, "linewidth": 0.7})
    figure.suptitle(title, fontsize=8)
    return figure
