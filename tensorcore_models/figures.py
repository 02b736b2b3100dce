"""This module sizes, colours and writes figures for a screen or a page; it imports matplotlib only when a figure is made."""

import contextlib
import io
import os
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from .files import atomic_writer

#: File formats that figures can be written in, named by their file endings.
FORMATS = ("png", "pdf", "svg")
#: Size in points of the smallest labels in a figure that is drawn for the screen.
_POINTS = 8.0

#: Width of the narrowest panel in inches.
_LEAST_PANEL = 2.2

#: Colours that colour-blind readers tell apart (Okabe and Ito 2008), then four more.
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#8B0000", "#556B2F",
)  # fmt: skip
#: Greys that can be told apart on paper; where they are too close, markers and line styles differ.
_GREYS = ("0.0", "0.45", "0.7", "0.25", "0.6", "0.82", "0.35", "0.52", "0.15", "0.76")


@dataclass(frozen=True)
class PageStyle:
    """`PageStyle` says how figures look. Raises ValueError on a value that no figure can have."""

    formats: tuple[str, ...] = ("png",)  #: Formats of :data:`FORMATS` that :func:`save` writes.
    width: float | None = None  #: Width of a figure in inches; None: the width that it is drawn with for a screen.
    points: float = _POINTS  #: Size of ordinary text in points.
    font: str = ""  #: A font family that matplotlib finds; "": matplotlib's default.
    grey: bool = False  #: Draw lines and bars in greys.
    dpi: int = 130  #: Pixels per inch of a PNG file.

    def __post_init__(self):
        unknown = sorted(set(self.formats) - set(FORMATS))
        if unknown or not self.formats:
            raise ValueError(
                f"got {', '.join(unknown) or 'no format'} as format of figures, expected one or more of {', '.join(FORMATS)}"
            )
        for name, low, high in (("width", 1, 40), ("points", 3, 40), ("dpi", 30, 2400)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} of a figure's style is {value}, expected {low} to {high}")

    @property
    def scale(self) -> float:
        """Return the ratio of this style's text size to the text size that figures are drawn with."""
        return self.points / _POINTS


#: Styles by name; the widths are those of one and of both columns in most two-column journals.
STYLES: Mapping[str, PageStyle] = {
    "screen": PageStyle(),
    "one-column": PageStyle(("pdf",), 3.5, 7.0),
    "two-column": PageStyle(("pdf",), 7.2, 7.5),
}

_STYLE: ContextVar[PageStyle] = ContextVar("style", default=STYLES["screen"])


def read_style(name: str) -> PageStyle:
    """Return a style of :data:`STYLES`, or one that a TOML file describes.

    The file sets fields of :class:`PageStyle`, and may name the style that they change as `base`. Raises ValueError for a name
    that is neither a style nor a TOML file, and for unknown fields; OSError if the file cannot be read.
    """
    if name in STYLES:
        return STYLES[name]
    if not name.endswith(".toml"):
        raise ValueError(f"unknown style {name!r}: expected {', '.join(STYLES)}, or a file FILE.toml")
    try:
        given: dict[str, Any] = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} is not a TOML file: {error}; correct the file") from None
    base = given.pop("base", "screen")
    if base not in STYLES:
        raise ValueError(f"{name}: base is {base!r}, expected {', '.join(STYLES)}")
    kinds = {
        "formats": (list,),
        "width": (int, float),
        "points": (int, float),
        "font": (str,),
        "grey": (bool,),
        "dpi": (int,),
    }
    for field, value in given.items():
        if field not in kinds or type(value) not in kinds[field]:
            known = ", ".join(field.name for field in fields(PageStyle))
            raise ValueError(
                f"{name}: {field} = {value!r} is not a field of a style with a value of its type; the fields are {known}"
            )
    if "formats" in given:
        given["formats"] = tuple(map(str, given["formats"]))
    return replace(STYLES[base], **given)


@contextlib.contextmanager
def drawn_as(style: PageStyle) -> Iterator[None]:
    """Give a style to all figures that are made and written inside the `with` block."""
    token = _STYLE.set(style)
    try:
        yield
    finally:
        _STYLE.reset(token)


def style() -> PageStyle:
    """Return the style that figures are made with now."""
    return _STYLE.get()


def colour_of(number: int) -> str:
    """Return the colour of a line or bar by its number."""
    colours = _GREYS if style().grey else _COLOURS
    return colours[number % len(colours)]


def require_matplotlib() -> None:
    """Check that matplotlib is installed, before long work rather than after it. Raises ValueError."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ValueError("figures need matplotlib: pip install 'mpgemm[plot]', or pass --no-figures") from None


def new_figure(width: float, height: float, lines: bool = False):
    """Return a matplotlib figure of `width` x `height` inches that needs no display and no global state.

    If the style sets a width, the figure has that width, and its height follows the width, or the size of the text if the
    figure is made of `lines` of text.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    asked = style().width
    if asked is not None:
        width, height = asked, height * (style().scale if lines else max(asked / width, 0.55))
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def columns_that_fit() -> int:
    """Return how many panels fit beside each other in the style's width."""
    asked = style().width
    return 100 if asked is None else max(int(asked / _LEAST_PANEL), 1)


def side_by_side(count: int, width: float, height: float, **shared):
    """Return (figure, axes) with panels beside each other, as many in a row as fit in the style's width.

    `shared` are further arguments of matplotlib's `subplots`.
    """
    columns = min(count, columns_that_fit())
    rows = -(-count // columns)
    figure = new_figure(width * columns / count if rows > 1 else width, height * rows)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared).ravel()[:count]


def letters(inches: float, points: float) -> int:
    """Return how many letters of a text of `points` points fit in a width of `inches`."""
    return max(int(inches * 72 / (0.65 * points * style().scale)), 8)


def save(figure, path: str | os.PathLike) -> list[str]:
    """Write a figure in the style's formats, or as PDF or SVG if `path` ends so; a file is written whole or not at all.

    Returns
    -------
    list of str
        The names of the files.
    """
    path, asked = Path(path), style()
    own = path.suffix.lstrip(".")
    if own not in FORMATS:
        raise ValueError(f"{path}: expected a figure's name that ends in .{', .'.join(FORMATS)}, got .{own}")
    _apply(figure, asked)
    formats = asked.formats if own == "png" else (own,)
    return [_write(figure, path.with_suffix(f".{name}"), name, asked) for name in formats]


def _apply(figure, asked: PageStyle) -> None:
    """Set a figure's texts in the size and font of a style, once, and make titles and ticks fit the style's width."""
    from matplotlib.text import Text

    if getattr(figure, "_mpgemm_styled", False):
        return
    figure._mpgemm_styled = True
    if asked.width is not None:
        _fit(figure)
    for text in figure.findobj(Text):
        text.set_fontsize(text.get_fontsize() * asked.scale)
        if asked.font:
            text.set_fontfamily(asked.font)


def _fit(figure) -> None:
    """Break titles that are wider than their axes' share of the width; label only powers on narrow logarithmic axes."""
    from matplotlib.ticker import NullFormatter

    titles = [(figure._suptitle, 1)] if figure._suptitle is not None else []
    for axes in figure.axes:
        place = axes.get_subplotspec()
        columns = 1 if place is None else place.get_gridspec().ncols
        titles += [(axes.title, columns), (axes._left_title, columns)]
        if axes.get_xscale() == "log" and figure.get_figwidth() / columns < 2 * _LEAST_PANEL:
            axes.xaxis.set_minor_formatter(NullFormatter())
    for title, columns in titles:
        room = letters(0.9 * figure.get_figwidth() / columns, title.get_fontsize())
        title.set_text("\n".join(line for part in title.get_text().split("\n") for line in textwrap.wrap(part, room)))


def _write(figure, path: Path, name: str, asked: PageStyle) -> str:
    """Write one file with its fonts, the same bytes every time, and return its name."""
    import matplotlib

    undated: dict[str, dict] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "mpgemm"}):
        figure.savefig(buffer, format=name, dpi=asked.dpi, metadata=undated[name])
    with atomic_writer(path) as stream:
        stream.write(buffer.getvalue())
    return path.name
