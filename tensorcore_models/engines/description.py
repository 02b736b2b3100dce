"""Describes an engine's computation: its accumulator's, with block scales, chain over k, the bits that addends keep."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..explanations.descriptions import Words
from .matrix_engine import MatrixEngine


def words_of_engine(engine: MatrixEngine) -> Words:
    """Return the words of an engine's accumulator, with its block scales, its chain over k and the bits that addends keep."""
    spec = engine.accumulator
    words, length = spec.words(engine.formats[3].name), spec.terms_per_step
    steps = list(words.steps)
    if engine.scale_format is not None and spec.scales_products:
        steps.append(
            f"Before the alignment each product is multiplied exactly by its two block scales ({engine.scale_format}, one for "
            f"{engine.block_size} products)."
        )
    if words.formula and engine.k > length > 1:
        steps.append(
            f"The {engine.k} products of one instruction are a chain of {-(-engine.k // length)} such steps. The result of a "
            "step is the c of the next step, and the result of an instruction is the c of the next instruction."
        )
    elif words.formula:
        steps.append("In a longer sum the result of an instruction is the c of the next instruction.")
    if engine.largest_input_scale:
        steps.append(
            f"An instruction can multiply c by 2^-s first, for s up to {engine.largest_input_scale}; this lowers its exponent "
            "by s."
        )
    return replace(words, steps=tuple(steps), window=tuple(_window(spec.inner)))


def _window(spec: Any) -> Iterator[str]:
    kept = getattr(spec, "fraction_bits", None)
    if kept is None:
        return
    lower = 5
    yield f"bits kept of each addend (F = {kept}; what is right of | is lost):"
    yield f"  exponent e    1.{'x' * kept}|"
    if kept > lower:
        yield f"  exponent e-{lower}  0.{'0' * (lower - 1)}1{'x' * (kept - lower)}|{'x' * lower}"
