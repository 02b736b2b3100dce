"""How figures are sized, coloured and written: for a screen, or for a page. Matplotlib is imported where one is made."""

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

#: File formats, by the endings of their names.
FORMATS = ("png", "pdf", "svg")
#: Size of the smallest texts of a figure's labels as they are drawn, in points.
_POINTS = 8.0

#: Inches of the narrowest panel.
_LEAST_PANEL = 2.2

#: Colours that colour-blind readers tell apart (Okabe and Ito 2008), then four more.
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#8B0000", "#556B2F",
)  # fmt: skip
#: Greys far enough apart to be told on paper; markers and line styles tell the rest.
_GREYS = ("0.0", "0.45", "0.7", "0.25", "0.6", "0.82", "0.35", "0.52", "0.15", "0.76")


@dataclass(frozen=True)
class PageStyle:
    """How figures look. Raises ValueError on a value that no figure can have."""

    formats: tuple[str, ...] = ("png",)  #: What :func:`save` writes, of :data:`FORMATS`.
    width: float | None = None  #: Of a figure, in inches; None: as it is drawn for a screen.
    points: float = _POINTS  #: Size of ordinary text.
    font: str = ""  #: A font family that matplotlib finds; "": its own.
    grey: bool = False  #: Lines and bars in greys.
    dpi: int = 130  #: Points an inch of PNG.

    def __post_init__(self):
        unknown = sorted(set(self.formats) - set(FORMATS))
        if unknown or not self.formats:
            raise ValueError(f"figures can be written as {', '.join(FORMATS)}, got {', '.join(unknown) or 'no format'}")
        for name, low, high in (("width", 1, 40), ("points", 3, 40), ("dpi", 30, 2400)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} of a figure's style is {value}, expected {low} to {high}")

    @property
    def scale(self) -> float:
        """Sizes of texts beside those that figures are drawn with."""
        return self.points / _POINTS


#: Styles by name: the widths of one and two columns that most journals of two columns share.
STYLES: Mapping[str, PageStyle] = {
    "screen": PageStyle(),
    "one-column": PageStyle(("pdf",), 3.5, 7.0),
    "two-column": PageStyle(("pdf",), 7.2, 7.5),
}

_STYLE: ContextVar[PageStyle] = ContextVar("style", default=STYLES["screen"])


def read_style(name: str) -> PageStyle:
    """Return a style of :data:`STYLES`, or of a TOML file with the fields of :class:`PageStyle`, and `base`: the style that
    they change.

    Raises ValueError for a name that is neither, and for fields that are none; OSError if the file cannot be read.
    """
    if name in STYLES:
        return STYLES[name]
    if not name.endswith(".toml"):
        raise ValueError(f"unknown style {name!r}: expected {', '.join(STYLES)}, or a file FILE.toml")
    try:
        given: dict[str, Any] = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} is not a TOML file: {error}") from None
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
            raise ValueError(f"{name}: {field} = {value!r} is not a field of a style ({known})")
    if "formats" in given:
        given["formats"] = tuple(map(str, given["formats"]))
    return replace(STYLES[base], **given)


@contextlib.contextmanager
def drawn_as(style: PageStyle) -> Iterator[None]:
    """Figures made and written inside have a style."""
    token = _STYLE.set(style)
    try:
        yield
    finally:
        _STYLE.reset(token)


def style() -> PageStyle:
    """Return the style that figures have now."""
    return _STYLE.get()


def colour_of(number: int) -> str:
    """Return the colour of a line or bar by its number."""
    colours = _GREYS if style().grey else _COLOURS
    return colours[number % len(colours)]


def require_matplotlib() -> None:
    """Check that pictures can be made: before long work, not after it. Raises ValueError."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ValueError("figures need matplotlib: pip install 'mpgemm[plot]', or pass --no-figures") from None


def new_figure(width: float, height: float, lines: bool = False):
    """Return a matplotlib figure without a display or global state: `width` x `height` inches, or as wide as the style asks.

    Its height follows the width, or the size of its text where it is made of `lines` of text.
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
    """Return panels that a style's width has room for beside each other."""
    asked = style().width
    return 100 if asked is None else max(int(asked / _LEAST_PANEL), 1)


def side_by_side(count: int, width: float, height: float, **shared):
    """Return (figure, axes) with panels beside each other, as many in a row as a style's width leaves room for.

    `shared` is what matplotlib's `subplots` takes.
    """
    columns = min(count, columns_that_fit())
    rows = -(-count // columns)
    figure = new_figure(width * columns / count if rows > 1 else width, height * rows)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared).ravel()[:count]


def letters(inches: float, points: float) -> int:
    """Return letters of a text of that size, as figures are drawn, that fit in a width."""
    return max(int(inches * 72 / (0.65 * points * style().scale)), 8)


def save(figure, path: str | os.PathLike) -> list[str]:
    """Write a figure in the style's formats, or in the one that its name ends with if that is another; whole files or nothing.

    Returns
    -------
    list of str
        The names of the files.
    """
    path, asked = Path(path), style()
    own = path.suffix.lstrip(".")
    if own not in FORMATS:
        raise ValueError(f"{path}: a figure's name ends in .{', .'.join(FORMATS)}")
    _apply(figure, asked)
    formats = asked.formats if own == "png" else (own,)
    return [_write(figure, path.with_suffix(f".{name}"), name, asked) for name in formats]


def _apply(figure, asked: PageStyle) -> None:
    """Texts in the size and font of a style, once; titles and ticks that fit the width it asks for."""
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
    """Break titles that are longer than their axes' share of the width; of narrow logarithmic axes label powers only."""
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
    """Return one file: fonts are part of it, and nothing in it depends on the time or on chance."""
    import matplotlib

    undated: dict[str, dict] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "mpgemm"}):
        figure.savefig(buffer, format=name, dpi=asked.dpi, metadata=undated[name])
    with atomic_writer(path) as stream:
        stream.write(buffer.getvalue())
    return path.name
