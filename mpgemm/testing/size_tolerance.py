"""This module derives tolerances by size, relative (|A||B| + |C|) + absolute, from the specification of a kernel."""

import numpy as np

from mpgemm.bounds import bounds
from mpgemm.bounds.bounded_product import Bounded, BoundedProduct, Data, EngineProduct
from mpgemm.bounds.kernel_bound import used_operands
from mpgemm.bounds.kernel_order import ANY, kernel_order
from mpgemm.bounds.published_bounds import block_fma_bounds
from mpgemm.testing.sampled import largest_ratio
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat


def a_priori(product: EngineProduct, k: int, facts, scaling=None) -> tuple[float, float, list[str], dict[str, float]]:
    """Return (relative, absolute, derivation, published bounds) of an engine for exact operands."""
    engine = product.engine
    step = bounds.step_error(engine, facts)
    order = kernel_order(engine, k, product.splits, product.k_order, product.promote_every, scaling)
    chains = order.additions + 1
    whole = order.promote_every is None and order.block is None  # steps of all chains together
    ragged = order.additions if whole and order.k_order != ANY else 0
    steps = bounds.steps_of(engine, order.longest, step.terms) + ragged * bounds.steps_of(engine, engine.k, step.terms)
    relative, absolute = bounds.chain_error(step, steps)
    compounded = relative == bounds.grown(step, steps)
    relative, absolute = relative * bounds.MARGIN**2, absolute * bounds.MARGIN
    many = "" if whole else f"{chains} chains of "
    lines = [f"{engine.label}: {many}{steps} steps of {step.terms} products"]
    lines += [f"each step: {text}" for text in step.derivation]
    lines.append(
        f"alpha = {step.relative:.4g}, beta = {step.absolute:.4g}; {_in_all(step, steps, relative, compounded)}"
    )
    if order.additions and isinstance(engine.formats[3], Format):
        outside = bounds.growth(
            2.0**-24 if not whole else engine.formats[3].unit_roundoff, chains if not whole else order.additions
        )
        relative = (relative + (1 + relative) * outside) * bounds.MARGIN
        absolute = (absolute * (1 + outside) + 2.0**-149) * (1 if whole else chains) * bounds.MARGIN
        lines.append(f"the chains are added{'' if whole else ' in FP32'} outside: {outside:.4g} of the sum in addition")
    if scaling is not None and scaling.roundings:
        both = bounds.growth(2.0**-24, scaling.roundings + isinstance(engine.formats[3], IntegerFormat))
        largest = float(np.max(np.abs(scaling.a), initial=0.0) * np.max(np.abs(scaling.b), initial=0.0))
        largest *= abs(scaling.whole_a * scaling.whole_b) if scaling.applied == "product" else 1.0
        relative = (relative + (1 + relative) * both) * bounds.MARGIN
        scaled = 1.0 if scaling.applied == "product" else largest
        absolute = absolute * scaled * (1 + both) * bounds.MARGIN + (2 + largest) * chains * 2.0**-148
        lines.append(f"scales: {scaling.in_words()}; their roundings: {both:.4g} of the sum in addition")
    published = {}
    if isinstance(engine.formats[0], Format):
        found = block_fma_bounds(max(k, 1), step.terms, 0.0, engine.formats[3].unit_roundoff)
        published = {f"block FMA, {name}": value for name, value in found.items()}
    return relative, absolute, lines, published


def _in_all(step, steps: int, relative: float, compounded: bool) -> str:
    """Return, in words, how the errors of the steps add up to that of the product."""
    if compounded:
        products = f" (1 + {step.products:.4g} of the products)" if step.products else ""
        return f"(1 + alpha)^{steps}{products} - 1 = {relative:.6g}"
    products, sums = steps * step.alignment.products, steps * (step.alignment.sums + step.alignment.rounding)
    return (
        f"every step truncates toward zero, so that errors do not compound: p = {products:.4g} of products, q = {sums:.4g} "
        "of sums, "
        f"(p + q) / (1 + p) = {relative:.6g}"
    )


def rounded_output(relative: float, absolute: float, fmt: Format | None, lines: list[str]) -> tuple[float, float]:
    if fmt is None:
        return relative, absolute
    u = fmt.unit_roundoff
    lines.append(f"the result is rounded to {fmt.name}: {u:.4g} of it in addition")
    return (relative + u + relative * u) * bounds.MARGIN, (absolute * (1 + u) + fmt.min_subnormal) * bounds.MARGIN


def _rounding_of_operands(engine: Engine, a, b, used_a, used_b, relative: float, absolute: float, lines: list[str]):
    """Return (relative, absolute) with the rounding of the operands, if they are rounded."""
    if np.array_equal(a, used_a) and np.array_equal(b, used_b):
        return relative, absolute
    u, tiny, largest = [], [], []
    for fmt, x in zip(engine.formats[:2], (a, b), strict=True):
        u.append(fmt.unit_roundoff)
        tiny.append(fmt.min_subnormal)
        largest.append(float(np.max(np.abs(x), initial=0.0)))
    both = u[0] + u[1] + u[0] * u[1]
    lines.append(
        f"operands are rounded to {engine.formats[0].name}: (1 + u)^2 - 1 = {both:.4g} of |A||B| in addition, and the part "
        "below the format's range"
    )
    k = a.shape[1]
    absolute += k * (1 + relative) * (tiny[0] * largest[1] + tiny[1] * largest[0] + tiny[0] * tiny[1])
    return (relative + both + relative * both) * bounds.MARGIN, absolute * bounds.MARGIN


def size_form(product: BoundedProduct, data: Data, found: Bounded):
    """Return (relative, absolute, derivation, published, the first two before an output's rounding)."""
    if not isinstance(product, EngineProduct):
        relative = largest_ratio(found.bound, found.sizes)
        lines = [f"{product.label}: largest bound over |A||B| + |C| on the data"]
        return relative, 0.0, lines, {}, (relative, 0.0)
    engine, k = product.engine, data.a.shape[1]
    used = product.rounded(data)
    facts = used_operands(engine, *used, data.scaling).facts
    relative, absolute, lines, published = a_priori(product, k, facts, data.scaling)
    if product.reference == "given" and data.scaling is None:
        given = (data.a.astype(np.float64), data.b.astype(np.float64))
        relative, absolute = _rounding_of_operands(engine, *given, *used, relative, absolute, lines)
    inner = relative, absolute
    return *rounded_output(relative, absolute, product.out_format, lines), lines, published, inner
