"""A cache by identity: a function's result for an object is made once and found again by the object, not by its value."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Made = TypeVar("Made")

#: Objects that a function remembers at most.
MOST = 4096


def kept_for_object(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Return `make`, called once for each object, which must not change; `cache_clear` forgets them all.

    Hashing a specification costs more than a small product: so it is not `functools.cache`.
    """
    found: dict[int, tuple[Any, Made]] = {}

    @wraps(make)
    def remembered(thing: Any) -> Made:
        entry = found.get(id(thing))
        if entry is not None and entry[0] is thing:
            return entry[1]
        if len(found) > MOST:
            found.clear()
        made = make(thing)
        found[id(thing)] = thing, made  # the object is kept with it, so that no other one can come to have its id
        return made

    remembered.cache_clear = found.clear  # type: ignore[attr-defined]
    return remembered
