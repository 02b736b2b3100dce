"""Trees as SVG, drawn with the colour of the text around them."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from .trees import Node

LEVEL = 46
GAP = 4
HEIGHT = 20
CHARACTER = 7.2


@dataclass(frozen=True)
class _Placed:
    """A node with the centre of its box and the boxes below it."""

    node: Node
    x: float
    y: float
    width: float
    below: tuple["_Placed", ...]


def _width(label: str) -> float:
    return max(HEIGHT, CHARACTER * len(label) + 8)


def _leaves(placed: _Placed) -> float:
    """The right end of what lies at and below a node."""
    return max([placed.x + placed.width / 2, *map(_leaves, placed.below)])


def _place(node: Node, left: float, y: float) -> _Placed:
    """The node's tree with nothing left of `left`; operations are centred above what they take."""
    width = _width(node.label)
    if not node.children:
        return _Placed(node, left + width / 2, y, width, ())
    below: list[_Placed] = []
    edge = left
    for child in node.children:
        below.append(_place(child, edge, y + LEVEL))
        edge = _leaves(below[-1]) + GAP
    centre = max((below[0].x + below[-1].x) / 2, left + width / 2)
    return _Placed(node, centre, y, width, tuple(below))


def _all(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for child in placed.below:
        yield from _all(child)


def _box(placed: _Placed) -> str:
    radius = HEIGHT / 2 if not placed.node.children else 3
    fill = "currentColor" if placed.node.children else "none"
    left, top = placed.x - placed.width / 2, placed.y - HEIGHT / 2
    title = f"<title>{escape(placed.node.note)}</title>" if placed.node.note else ""
    return (
        f'<g>{title}<rect x="{left:.1f}" y="{top:.1f}" width="{placed.width:.1f}" height="{HEIGHT}" rx="{radius:g}" '
        f'fill="{fill}" fill-opacity="0.12" stroke="currentColor" stroke-opacity="0.6"/>'
        f'<text x="{placed.x:.1f}" y="{placed.y + 4:.1f}" text-anchor="middle" fill="currentColor">'
        f"{escape(placed.node.label)}</text></g>"
    )


def svg(tree: Node, title: str) -> str:
    """The tree as an SVG element.

    Parameters
    ----------
    tree : Node
        The result is on top, what is added first lies lowest.
    title : str
        For readers who do not see the picture.
    """
    root = _place(tree, 2, HEIGHT + 16)
    boxes = list(_all(root))
    width, height = _leaves(root) + 2, max(box.y for box in boxes) + HEIGHT / 2 + 2
    lines = [
        f'<line x1="{box.x:.1f}" y1="{box.y + HEIGHT / 2:.1f}" x2="{child.x:.1f}" y2="{child.y - HEIGHT / 2:.1f}"/>'
        for box in boxes
        for child in box.below
    ]
    result = f'<text x="{root.x:.1f}" y="14" text-anchor="middle" fill="currentColor" font-style="italic">d</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="11">'
        f'<g stroke="currentColor" stroke-opacity="0.35">{"".join(lines)}'
        f'<line x1="{root.x:.1f}" y1="18" x2="{root.x:.1f}" y2="{root.y - HEIGHT / 2:.1f}"/></g>'
        f"{result}{''.join(map(_box, boxes))}</svg>"
    )
