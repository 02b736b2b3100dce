"""Public names that are imported when they are first asked for (PEP 562): `import mpgemm` reads a table, not the package.

The table is the stub beside the package's `__init__.py`, which type checkers read as well: its `from x import a as a, b as b`,
which is how a stub says that a name is public.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def public_names(stub: Path) -> dict[str, str]:
    """Return the module of each name that a package's stub imports; of a submodule (`from . import x`): the package itself,
    "."."""
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: "." * node.level + (node.module or "") for node in imports for alias in node.names}


class Package(ModuleType):
    """A package of which a public name is that name even where a module of the package has the same one (`ascend.roofline`)."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in self.__dict__["__all__"] and name not in self.__submodules__):
            super().__setattr__(name, value)


def attach(
    package: str, file: str, submodules: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, by its `__name__` and `__file__`: the stub (.pyi) beside
    that.

    `submodules` are attributes of the package without being in `__all__`.
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
