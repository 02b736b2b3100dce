"""Recipes of libraries slowly: plain loops over one step of the engine at a time, and exact sums of single results."""

from fractions import Fraction

import numpy as np

from tensorcore_models import reference
from tensorcore_models.formats import get_format
from tensorcore_models.formats.exact_rounding import encode_exact
from tensorcore_models.formats.rounding import decode
from tensorcore_models.orders.order import Chain


def add(x: int, y: int, fmt) -> int:
    """The sum of two finite encodings of `fmt`, rounded to nearest; zeros by IEEE's rules."""
    u, v = (float(decode(np.array([z], fmt.container), fmt)[0]) for z in (x, y))
    total = Fraction(u) + Fraction(v)
    if total == 0:
        return x if x == y and u == 0 else 0
    return int(encode_exact(total, fmt))


def through(x: int, fmt, name: str) -> int:
    """An encoding rounded to the format `name` and back."""
    narrow = get_format(name)
    value = float(decode(np.array([x], fmt.container), fmt)[0])
    if value == 0:
        return x
    small = int(encode_exact(Fraction(value), narrow))
    back = float(decode(np.array([small], narrow.container), narrow)[0])
    if back == 0:
        return x & (1 << (fmt.bits - 1))
    return int(encode_exact(Fraction(back), fmt))


def slow_sum(engine, order, a, b, out_format: str) -> int:
    """One output element: a row of A and a column of B as lists of encodings."""
    fmt = get_format(engine.d_format)
    if isinstance(order, Chain):
        c = 0
        for piece in order.pieces:
            taken = list(piece)
            for start in range(0, len(taken), engine.k):
                step = taken[start : start + engine.k]
                x = np.zeros((1, engine.k), get_format(engine.a_format).container)
                y = np.zeros((engine.k, 1), get_format(engine.b_format).container)
                for place, index in enumerate(step):
                    x[0, place], y[place, 0] = a[index], b[index]
                c = int(step_bits(engine, x, y, c, fmt))
        return c
    names = {f: out_format if getattr(order, f) == "output" else getattr(order, f) for f in ("partials", "carry")}
    total = 0 if order.start == "zero" else None
    for part in order.parts:
        value = slow_sum(engine, part, a, b, out_format)
        if names["partials"]:
            value = through(value, fmt, names["partials"])
        total = value if total is None else add(total, value, fmt)
        if names["carry"]:
            total = through(total, fmt, names["carry"])
    return total


def step_bits(engine, x, y, c: int, fmt) -> int:
    """One step of the engine in plain integers."""
    start = np.array([[c]], fmt.container)
    return reference.mma_bits(engine, x, y, start)[0, 0]
