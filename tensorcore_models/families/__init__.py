"""Holds the families of accumulator algorithms: each is a class with all aspects of its arithmetic, in a folder or file here.

`base` has the base class of all families, with the fallback of each aspect. `aligned` and `ieee` have code that several
families share, and `checks` checks fields. The package finds the public classes of every file and folder here, so that no list
of families has to be kept. docs/families.md shows which family has which aspect.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Accumulator

    #: All families of the package, in the order of their files, which are imported at the first use.
    FAMILIES: tuple[type[Accumulator], ...]


def _found() -> "tuple[type[Accumulator], ...]":
    """Return the classes with a `pass_bits` of their own in the modules and folders beside this file."""
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
