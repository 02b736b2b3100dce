"""Error of one step on converted operands."""

import dataclasses
from types import SimpleNamespace
from typing import Any

from ...aspects.errors import OperandFacts, StepError
from ...formats import get_float_format
from ..ieee import operand_flush


def step_error(spec: Any, unit: Any, facts: OperandFacts) -> StepError:
    """The inner step's, whose operands are exact: an operand format has no number that `via_format` lacks.

    Subnormal operands lift an alignment less than `facts` say, because they are normalised. What is flushed is an error.
    """
    via = get_float_format(spec.via_format)
    inner = SimpleNamespace(formats=(via, via, *unit.formats[2:]), scale_format=None, block_size=None, label=unit.label)
    found = spec.dot.step_error(inner, facts)
    if not spec.flush:
        return found
    flushed = spec.terms_per_step * operand_flush(inner.formats, facts.largest)
    texts = (*found.derivation, f"subnormal {via.name} operands flushed")
    return dataclasses.replace(found, absolute=found.absolute + flushed, derivation=texts)
