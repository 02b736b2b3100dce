"""Specifications with other values of their fields, as engines of a box's formats."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...aspects.search import Field, Search, value_of
from ...engines.matrix_engine import MatrixEngine
from ...families.base import Accumulator
from ..interface import DotBatch, Interface
from .box import model_answer

#: Lists of values that are longer are searched with strides first.
LONG, STRIDE = 24, 8
#: By how much two numbers change at once.
SLIDE = (-3, -2, -1, 1, 2, 3)


def with_values(spec: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with other values of fields, all changed at once.

    Raises
    ------
    ValueError, TypeError
        If the accumulator does not take them.
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
    """The specification as an engine with the interface's formats.

    Raises
    ------
    ValueError
        If the specification does not take them.
    """
    a, b, c, d = interface.formats
    return MatrixEngine(
        spec, a_format=a, b_format=b, c_format=c, d_format=d, k=interface.k,
        scale_format=interface.scale_format, block_size=interface.block_size,
    )  # fmt: skip


def changed(interface: Interface, spec: Accumulator, changes: Mapping[str, Any]) -> Accumulator | None:
    """A specification with other values of fields; None if they contradict the rest, or the class has no such value."""
    try:
        other = with_values(spec, changes)
        model_of(other, interface)
    except (ValueError, TypeError):
        return None
    return other


@lru_cache(8192)
def model_of(spec: Accumulator, interface: Interface) -> Callable[[DotBatch], np.ndarray]:
    """What computes a specification's results for dot products.

    Raises
    ------
    ValueError
        If the specification does not take the formats.
    """
    return model_answer(engine_of(spec, interface))


def field_variants(
    field: Field, interface: Interface, spec: Accumulator, *, sparse: bool = False
) -> Iterator[tuple[tuple, Accumulator]]:
    """(values, specification) for all other values that do not contradict the rest; `sparse`: of a long list of values
    those near the present one and few of the others."""
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
    """A search of a family of accumulators, with the specifications that it comes upon."""

    def shape_of(self, spec: Accumulator) -> tuple:
        """The values of the fields that say what meets what."""
        return tuple(value_of(spec, path) for path in self.shape)

    def first(self, interface: Interface) -> list[Accumulator]:
        """The starting points that the interface's formats allow."""
        found = []
        for spec in self.starts(interface):
            try:
                engine_of(spec, interface)
            except ValueError:
                continue
            found.append(spec)
        return found

    def slides(self, interface: Interface, spec: Accumulator) -> Iterator[tuple[Field, Field, Accumulator]]:
        """Specifications with two numbers changed by a little, which may make up for each other: a width and a floor."""
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
        """Specifications with one field changed that can matter."""
        for field in self.fields:
            if field.matters(interface, spec):
                for values, other in field_variants(field, interface, spec, sparse=sparse):
                    yield field, values, other


def spec_text(spec: Accumulator) -> str:
    """A specification as Python, without the fields that have their class's defaults."""
    default = type(spec)()
    changed = []
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if value != getattr(default, field.name):
            changed.append(f"{field.name}={spec_text(value) if isinstance(value, Accumulator) else repr(value)}")
    return f"{type(spec).__name__}({', '.join(changed)})"
