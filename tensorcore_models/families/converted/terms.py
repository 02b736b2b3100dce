"""Operands converted as terms over bit-vectors, the twin of `integers`."""

import dataclasses
from typing import Any

from ...bitvectors import terms as t
from ...bitvectors.terms import Term
from ...formats import Format, get_float_format
from ..interleaved import converted_code
from .integers import full_width


def converted_term_pass(spec: Any, p: Any) -> Any:
    """The pass of the inner accumulator, on converted operands."""
    via, formats = get_float_format(spec.via_format), p.formats
    a = tuple(_code(spec, spec.operand_format(formats.a, 0), code, via) for code in p.a)
    b = tuple(_code(spec, spec.operand_format(formats.b, 1), code, via) for code in p.b)
    inner = dataclasses.replace(formats, a=via, b=via)
    return dataclasses.replace(p, spec=spec.dot, a=a, b=b, formats=inner)


def _code(spec: Any, fmt: Format, code: Term, via: Format) -> Term:
    """One encoding of `fmt` in `via`."""
    found = code if fmt == via and not fmt.padding_bits else converted_code(full_width(fmt), code, via, spec)
    if not spec.flush:
        return found
    high, low = via.exponent_bits + via.fraction_bits + via.padding_bits - 1, via.fraction_bits + via.padding_bits
    sign = t.joined(t.extract(found, via.bits - 1, via.bits - 1), t.constant(0, via.bits - 1))
    return t.choose(t.any_bit(t.extract(found, high, low)), found, sign)
