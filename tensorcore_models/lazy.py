"""This module imports public names when they are first used (PEP 562), so that `import mpgemm` reads a table, not the package.

The table is the stub beside the package's `__init__.py`, which type checkers read as well. Its lines
`from x import a as a, b as b` declare public names.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def public_names(stub: Path) -> dict[str, str]:
    """Return the module of each name that a package's stub imports; the module of a submodule (`from . import x`) is "."."""
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: "." * node.level + (node.module or "") for node in imports for alias in node.names}


class Package(ModuleType):
    """`Package` is a package whose public names win over its modules of the same name (`ascend.roofline` is the function)."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in self.__dict__["__all__"] and name not in self.__submodules__):
            super().__setattr__(name, value)


def attach(
    package: str, file: str, submodules: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for the package with that `__name__` and `__file__`, read from its stub.

    The stub is the .pyi file beside `file`. `submodules` are attributes of the package that are not in `__all__`.
    """
    modules = public_names(Path(file).with_suffix(".pyi"))
    here = sys.modules[package]
    here.__dict__["__submodules__"] = {*submodules, *(name for name, where in modules.items() if where == ".")}
    here.__class__ = Package

    def __getattr__(name: str) -> Any:
        if name in here.__submodules__:
            return importlib.import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name], package), name)
        here.__dict__[name] = value
        return value

    return __getattr__, lambda: sorted({*modules, *submodules, *vars(here)}), sorted(modules)
