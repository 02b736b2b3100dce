"""Which families an identification looks for: those that say how (`searches`)."""

from collections.abc import Sequence

from ...families import FAMILIES
from ...families.base import Accumulator
from ..interface import Interface
from .fields import Family


def families_for(interface: Interface, own: Sequence[type[Accumulator]] = ()) -> tuple[Family, ...]:
    """The searches of all families, and of one's `own`, that take the interface's formats, sorted by rank."""
    classes = [cls for cls in (*FAMILIES, *own) if cls.takes_integers == interface.integer]
    found = [Family(**vars(search)) for cls in dict.fromkeys(classes) for search in cls.searches()]
    return tuple(sorted(found, key=lambda family: family.rank))


def name_of(family: Family, spec: Accumulator) -> str:
    """The name that a specification is reported by: changes of fields can leave the search that they started in."""
    return next((search.name for search in spec.searches() if search.holds(spec)), family.name)
