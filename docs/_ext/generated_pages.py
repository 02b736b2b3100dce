"""Pages and pictures that the build makes: the atlas, the lists of public names, and the gallery."""

import inspect
import os
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from atlas_pages import write_atlas
from gallery import write_gallery
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

#: Public modules, and what they are for.
PUBLIC = {
    "tensorcore_models": "Formats, rounding, accumulators, engines and the catalogue of instructions.",
    "tensorcore_models.accumulators": "Specifications of what a matrix unit does with the products of one result.",
    "tensorcore_models.catalogue": "Rows of instructions, and looking them up.",
    "tensorcore_models.reference": "The algorithms in exact integers: slow, and the truth of every test.",
    "tensorcore_models.libraries": "What GPU libraries return: recipes of cuBLASLt, CUTLASS and `torch._scaled_mm`.",
    "tensorcore_models.compiled": "Compiled kernels (PTX), run bit for bit.",
    "tensorcore_models.probing": "What does a black box compute?",
    "tensorcore_models.hardware": "Real GPUs and CPUs as engines.",
    "tensorcore_models.atlas": "Distinguishing inputs of instructions, and where their pages are.",
    "ascend": "Chips, block planning, the tile schedule with its two interpreters, SGEMM-cube.",
    "mpgemm": "Recovery methods, exact references, errors and bounds.",
    "mpgemm.inputs": "Matrices that are generated, shipped, or read from files.",
}


def public_names(module_name: str) -> list[str]:
    """List a module's public names: its `__all__`, or the classes and functions of its own package."""
    module = import_module(module_name)
    listed = getattr(module, "__all__", None)
    names = listed or [
        name for name in vars(module) if not name.startswith("_") and _is_own(module_name, vars(module)[name])
    ]
    return sorted(name for name in names if inspect.isclass(getattr(module, name)) or callable(getattr(module, name)))


def _is_own(module_name: str, thing: object) -> bool:
    return not inspect.ismodule(thing) and (getattr(thing, "__module__", "") or "").startswith(module_name)


def _api_pages() -> Iterator[tuple[str, str]]:
    for module, purpose in PUBLIC.items():
        lines = [
            f"# {module}",
            "",
            purpose,
            "",
            "```{eval-rst}",
            f".. currentmodule:: {module}",
            "",
            ".. autosummary::",
        ]
        lines += [
            "   :toctree: generated",
            "   :nosignatures:",
            "",
            *(f"   {name}" for name in public_names(module)),
            "```",
            "",
        ]
        yield f"{module}.md", "\n".join(lines)
    lines = [
        "# API reference",
        "",
        "Public modules; what is in other modules may move.",
        "",
        "| module | what it has |",
        "|---|---|",
    ]
    lines += [f"| [{module}]({module}.md) | {purpose} |" for module, purpose in PUBLIC.items()]
    lines += ["", "```{toctree}", ":hidden:", "", *PUBLIC, "```", ""]
    yield "index.md", "\n".join(lines)


def _write(path: Path, text: str) -> None:
    """Write a page, unless it is there with that text: an old page need not be built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(app: Sphinx) -> None:
    """Write everything that is generated below the folder of the sources; git ignores it."""
    source = Path(app.srcdir)
    LOGGER.info("atlas: %d pages", write_atlas(source / "atlas"))
    for name, text in _api_pages():
        _write(source / "api" / name, text)
    public = {f"{module}.{name}" for module in PUBLIC for name in public_names(module)}
    for path in (source / "api" / "generated").glob("*.md"):
        if path.stem not in public:  # a name of an older version: no list has it any more
            path.unlink()
    for name, text in write_gallery(source / "gallery", fresh="MPGEMM_FRESH_GALLERY" in os.environ):
        _write(source / "gallery" / name, text)


def remove(source: Path) -> None:
    """Remove what :func:`generate` writes."""
    for name in ("atlas", "api", "gallery"):
        shutil.rmtree(source / name, ignore_errors=True)


def setup(app: Sphinx) -> dict:
    """Generate before autosummary looks for pages."""
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
