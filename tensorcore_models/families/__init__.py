"""Families of accumulator algorithms, each a folder or a file of its own: a class with every aspect of its arithmetic.

`base` has the class that all are derived from, and its fallbacks; `aligned` and `ieee` have what several families share,
`checks` checks of fields. A file or folder put here is a family of the package: its public classes are found, and nothing lists
them. docs/families.md shows which family has which aspect.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Accumulator

    #: Every family of the package, by the names of their files; all files are imported when it is asked for.
    FAMILIES: tuple[type[Accumulator], ...]


def _found() -> "tuple[type[Accumulator], ...]":
    """Return the classes in the modules and folders beside this file that compute something."""
    from .base import Accumulator

    found = []
    for module in sorted(entry.name for entry in iter_modules(__path__)):
        place = import_module(f"{__name__}.{module}")
        for cls in vars(place).values():
            here = isinstance(cls, type) and issubclass(cls, Accumulator) and cls.__module__.startswith(place.__name__)
            if here and cls.pass_bits is not Accumulator.pass_bits:
                found.append(cls)
    return tuple(found)


def __getattr__(name: str) -> Any:
    if name != "FAMILIES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = _found()
    return found
