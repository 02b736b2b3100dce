"""Varies the fields of specifications, and makes models that compute their results in a box's formats."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...aspects.search import Field, Search
from ...engines.matrix_engine import MatrixEngine
from ...families import FAMILIES
from ...families.base import Accumulator
from ..interface import DotBatch, Interface
from .box import model_answer

#: Length above which a list of values is sampled when a search asks for few.
LONG = 24
#: Step of that sample: every eighth value is tried, and all values less than eight places from the present one.
STRIDE = 8
#: Steps by which two numbers are changed together.
SLIDE = (-3, -2, -1, 1, 2, 3)


def with_values(spec: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy with other values of some fields ("inner.field" is a field of an inner accumulator), all set at once.

    Raise ValueError or TypeError if the values contradict each other.
    """
    inner: dict[str, dict[str, Any]] = {}
    outer = {}
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        if rest:
            inner.setdefault(name, {})[rest] = value
        else:
            outer[name] = value
    outer.update({name: with_values(getattr(spec, name), values) for name, values in inner.items()})
    return dataclasses.replace(spec, **outer)


def engine_of(spec: Accumulator, interface: Interface) -> MatrixEngine:
    """Return an engine that computes a specification in the interface's formats; raise ValueError if it does not take them."""
    a, b, c, d = interface.formats
    return MatrixEngine(
        spec, a_format=a, b_format=b, c_format=c, d_format=d, k=interface.k,
        scale_format=interface.scale_format, block_size=interface.block_size,
    )  # fmt: skip


def changed(interface: Interface, spec: Accumulator, changes: Mapping[str, Any]) -> Accumulator | None:
    """Return a specification with other values of some fields; None if the result is no valid specification."""
    return _changed(interface, spec, tuple(changes.items()))


@lru_cache(32_768)
def _changed(interface: Interface, spec: Accumulator, changes: tuple[tuple[str, Any], ...]) -> Accumulator | None:
    try:
        other = with_values(spec, dict(changes))
        model_of(other, interface)
    except (ValueError, TypeError):
        return None
    return other


@lru_cache(8192)
def model_of(spec: Accumulator, interface: Interface) -> Callable[[DotBatch], np.ndarray]:
    """Return a function that computes a specification's results for a batch of dot products; raise as :func:`engine_of`."""
    return model_answer(engine_of(spec, interface))


def field_variants(
    field: Field, interface: Interface, spec: Accumulator, *, sparse: bool = False
) -> Iterator[tuple[tuple, Accumulator]]:
    """Yield (values, specification) for each other value of a field that makes a valid specification.

    With `sparse`, a long list gives only the values near the present one and a sample of the others (:data:`LONG`,
    :data:`STRIDE`).
    """
    present = field.get(spec)
    listed = [given if len(field.paths) > 1 else (given,) for given in field.values(interface, spec)]
    if sparse and len(listed) > LONG:
        here = listed.index(present) if present in listed else 0
        listed = [v for i, v in enumerate(listed) if i < 2 or i % STRIDE == 0 or abs(i - here) < STRIDE]
    for values in listed:
        if values == present:
            continue
        other = changed(interface, spec, dict(zip(field.paths, values, strict=True)))
        if other is not None:
            yield values, other


class Family(Search):
    """`Family` describes the search in one family: its fields and starting points, and the neighbours of a specification."""

    def first(self, interface: Interface) -> list[Accumulator]:
        """Return the starting points that take the interface's formats."""
        found = []
        for spec in self.starts(interface):
            try:
                engine_of(spec, interface)
            except ValueError:
                continue
            found.append(spec)
        return found

    def slides(self, interface: Interface, spec: Accumulator) -> Iterator[tuple[Field, Field, Accumulator]]:
        """Yield specifications with two numbers changed by small steps together, because a width and a floor can compensate
        each other.
        """
        fields = [f for f in self.fields if len(f.paths) == 1 and type(f.get(spec)[0]) is int]
        for one, other in itertools.combinations([f for f in fields if f.matters(interface, spec)], 2):
            for steps in itertools.product(SLIDE, SLIDE):
                values = (f.get(spec)[0] + step for f, step in zip((one, other), steps, strict=True))
                found = changed(interface, spec, dict(zip((one.name, other.name), values, strict=True)))
                if found is not None:
                    yield one, other, found

    def variants(
        self, interface: Interface, spec: Accumulator, *, sparse: bool = False
    ) -> Iterator[tuple[Field, tuple, Accumulator]]:
        """Yield (field, values, specification) for each other value of each field that has an effect."""
        for field in self.fields:
            if field.matters(interface, spec):
                for values, other in field_variants(field, interface, spec, sparse=sparse):
                    yield field, values, other


def families_for(interface: Interface, own: Sequence[type[Accumulator]] = ()) -> tuple[Family, ...]:
    """Return the searches of all families, and of the caller's `own`, that take the interface's formats, sorted by rank."""
    classes = [cls for cls in (*FAMILIES, *own) if cls.takes_integers == interface.integer]
    found = [Family(**vars(search)) for cls in dict.fromkeys(classes) for search in cls.searches()]
    return tuple(sorted(found, key=lambda family: family.rank))


def name_of(family: Family, spec: Accumulator) -> str:
    """Return the reported name of a specification; changes of fields can lead out of the family where the search started."""
    return next((search.name for search in spec.searches() if search.holds(spec)), family.name)


def spec_text(spec: Accumulator) -> str:
    """Return a specification as Python code, without fields that have their default."""
    default = type(spec)()
    changed = []
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if value != getattr(default, field.name):
            changed.append(f"{field.name}={spec_text(value) if isinstance(value, Accumulator) else repr(value)}")
    return f"{type(spec).__name__}({', '.join(changed)})"
