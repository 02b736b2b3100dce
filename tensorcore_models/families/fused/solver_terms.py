"""Makes the term of a fused sum with an exact c, which is shorter for solvers than the exact sum of plain integers."""

from collections.abc import Sequence
from typing import Any

from ...arithmetic import numbers as n
from ...arithmetic.numbers import Number
from ...arithmetic.sums import ieee_sum
from ...bitvectors import integers as z
from ...bitvectors import terms as t
from ...bitvectors.passes import Unencodable
from ...bitvectors.terms import Term
from ...formats import Format
from ...formats.exact_rounding import NEAREST


def with_exact_c(spec: Any, fmt: Format, total: Number | None, products: Sequence[Number], c: Number) -> Term:
    """Return the sum of the aligned products (None: none takes part) and c, rounded once as an IEEE addition."""
    if spec.output_rounding not in (*NEAREST, "ro") or spec.output_fraction_bits is not None:
        raise Unencodable("an exact c with a directed rounding or fewer fraction bits has no encoding as terms")
    if spec.flush_outputs and spec.negative_underflow == "positive":
        raise Unencodable("an exact c whose negative sums are flushed to +0 has no encoding as terms")
    negative = [product.negative for product in products]
    if spec.zero_sign == "majority":
        count = z.number(0)
        for sign in negative:
            count = z.plus(count, z.select(sign, z.number(1), z.number(0)))
        minus = z.less(z.number(spec.terms + spec.padding), z.scaled(count, 1))
        c = c._replace(negative=t.choose(t.both(c.is_zero, *(x.is_zero for x in products)), minus, c.negative))
    else:
        minus = t.FALSE if spec.padding or spec.zero_sign == "positive" else t.both(*negative)
    zeros = t.both(*(x.is_zero for x in products))
    if total is None:
        total = n.plain(minus, z.number(0), z.number(0), 0)
    total = total._replace(negative=t.choose(zeros, minus, total.negative))
    return ieee_sum([total, c], fmt, spec, spec.output_rounding, spec.flush_outputs, True)
