"""This module caches a function's result for each object by the object's identity, not by its value."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Made = TypeVar("Made")

#: Largest number of objects that a function remembers.
MOST = 4096


def kept_for_object(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Decorate `make` so that it is called once for each object, which must not change; `cache_clear` empties the cache.

    `functools.cache` is not used, because hashing a specification costs more than a small product.
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
        found[id(thing)] = thing, made  # the object is kept, so that no other object can get its id
        return made

    remembered.cache_clear = found.clear  # type: ignore[attr-defined]
    return remembered
