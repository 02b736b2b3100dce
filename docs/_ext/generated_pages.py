"""Generates pages and pictures before the build: the atlas, the lists of public names, and the gallery."""

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

#: Public modules with the sentence that describes each.
PUBLIC = {
    "tensorcore_models": "It has number formats, rounding, accumulators, engines and the catalogue of instructions.",
    "tensorcore_models.accumulators": "It has the specifications of how matrix units add the products of a result.",
    "tensorcore_models.catalogue": "It looks up instructions, which are rows of data.",
    "tensorcore_models.reference": "It runs the algorithms in exact integers, slowly; all other code is tested against it.",
    "tensorcore_models.libraries": "It computes the results of cuBLASLt, CUTLASS and `torch._scaled_mm` by recipes.",
    "tensorcore_models.compiled": "It runs compiled kernels (PTX and AMDGCN) bit for bit.",
    "tensorcore_models.probing": "It identifies the arithmetic of a black box that multiplies matrices.",
    "tensorcore_models.hardware": "It makes engines of the GPUs and CPUs of this machine.",
    "tensorcore_models.atlas": "It finds inputs that tell instructions apart, and the addresses of their pages.",
    "ascend": "It plans and simulates products on Ascend chips and computes their results, also by SGEMM-cube.",
    "mpgemm": "It has recovery methods, exact references, errors and bounds.",
    "mpgemm.inputs": "It generates matrices, and reads shipped ones and files.",
}


def public_names(module_name: str) -> list[str]:
    """Return the public names of a module: its `__all__`, or the classes and functions that its package defines."""
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
        "These modules are public. Names in other modules may move.",
        "",
        "| module | purpose |",
        "|---|---|",
    ]
    lines += [f"| [{module}]({module}.md) | {purpose} |" for module, purpose in PUBLIC.items()]
    lines += ["", "```{toctree}", ":hidden:", "", *PUBLIC, "```", ""]
    yield "index.md", "\n".join(lines)


def _write(path: Path, text: str) -> None:
    """Write a page unless its file has this text, so that an unchanged page is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(app: Sphinx) -> None:
    """Write all generated pages and pictures below the folder of the sources, where git ignores them."""
    source = Path(app.srcdir)
    LOGGER.info("atlas: %d pages", write_atlas(source / "atlas"))
    for name, text in _api_pages():
        _write(source / "api" / name, text)
    public = {f"{module}.{name}" for module in PUBLIC for name in public_names(module)}
    for path in (source / "api" / "generated").glob("*.md"):
        if path.stem not in public:  # the page of a name that no list has any more
            path.unlink()
    for name, text in write_gallery(source / "gallery", fresh="MPGEMM_FRESH_GALLERY" in os.environ):
        _write(source / "gallery" / name, text)


def remove(source: Path) -> None:
    """Remove the folders that :func:`generate` writes."""
    for name in ("atlas", "api", "gallery"):
        shutil.rmtree(source / name, ignore_errors=True)


def setup(app: Sphinx) -> dict:
    """Register the generation, which runs before autosummary looks for pages."""
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
