"""The specifications that an identification can find: every family that says how to look for it."""

from collections.abc import Sequence

from ...families import FAMILIES
from ...families.base import Accumulator
from ..interface import Interface
from .fields import Family


def families_for(interface: Interface, own: Sequence[type[Accumulator]] = ()) -> tuple[Family, ...]:
    """The searches of the families whose specifications take the interface's formats, in the order of their ranks.

    Parameters
    ----------
    interface : Interface
    own : sequence of type
        Classes to look for beside the package's.
    """
    classes = [cls for cls in (*FAMILIES, *own) if cls.takes_integers == interface.integer]
    found = [Family(**vars(search)) for cls in dict.fromkeys(classes) for search in cls.searches()]
    return tuple(sorted(found, key=lambda family: family.rank))


def name_of(family: Family, spec: Accumulator) -> str:
    """The name of the search that a specification is told by: a search may leave what it started in."""
    return next((search.name for search in spec.searches() if search.holds(spec)), family.name)
