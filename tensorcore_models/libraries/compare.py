"""This module compares two recipes: their differences, the k from which results differ, and recipes that explain a result."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..catalogue import list_instructions
from ..formats import get_format, operand_format
from ..formats.operands import values_of_bits
from ..orders.order import Chain, Order, Sum
from .cutlass import cutlass
from .recipe import Recipe

#: Numbers of split-k slices that are tried if the kernel is not known.
TRIED_SPLITS = (2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 20, 24, 32)


def summary(order: Order, result: str = "fp32") -> str:
    """Return an order in one line, without its numbers of k."""
    if isinstance(order, Chain):
        return "one chain" if len(order.pieces) < 2 else f"one chain of {len(order.pieces)} pieces"
    kinds = list(dict.fromkeys(summary(part, result) for part in order.parts))
    inner = kinds[0] if len(kinds) == 1 else f"{kinds[0]} (others differ)"
    extras = [f"partials in {order.partials}"] if order.partials else []
    extras += [f"running sum in {order.carry}"] if order.carry else []
    sizes = [sum(map(len, part.pieces)) for part in order.parts if isinstance(part, Chain)]
    length = f" of {sizes[0]} k" if sizes else ""
    return (
        f"{len(order.parts)} parts{length} added in {result}{', ' + ', '.join(extras) if extras else ''}, each {inner}"
    )


def differences(first: Recipe, second: Recipe) -> list[str]:
    """Return the differences of two recipes in words; empty if they compute the same (also with other instructions)."""
    found = []
    if _arithmetic(first) != _arithmetic(second):
        found.append(f"engine: {_engine(first)} against {_engine(second)}")
    if first.order != second.order:
        both = (first, second)
        texts = [summary(r.order, str(r.engine.d_format)) for r in both]
        if texts[0] == texts[1]:
            texts = [f"{texts[0]} ({len(r.chains)} chains, the first over {_first(r)})" for r in both]
        found.append(f"order: {texts[0]}, against {texts[1]}")
    if first.epilogue != second.epilogue:
        found.append(f"output: {first.epilogue}, against {second.epilogue}")
    return found


def _first(recipe: Recipe) -> str:
    pieces = recipe.chains[0].pieces
    return ", ".join(f"{p.start}:{p.stop}" + (f":{p.step}" if p.step > 1 else "") for p in pieces[:3]) or "nothing"


def _arithmetic(recipe: Recipe) -> tuple:
    engine = recipe.engine
    return getattr(engine, "accumulator", engine), engine.formats, engine.k


def _engine(recipe: Recipe) -> str:
    spec = getattr(recipe.engine, "accumulator", None)
    names = (("terms", "products at once"), ("fraction_bits", "fraction bits"))
    facts = [f"{getattr(spec, name)} {text}" for name, text in names if getattr(spec, name, None) is not None]
    return recipe.engine.label + (f" ({', '.join(facts)})" if facts else "")


def up_to(order: Order, stop: int) -> Order:
    """Return the order with only the products of k below `stop`; chains without any are left out."""
    if isinstance(order, Chain):
        if order.joined:
            raise ValueError(
                "the order adds several ranges of k in one step, so it cannot be divided at a value of k: compare only whole "
                "sums"
            )
        return Chain(tuple(p for p in (range(p.start, min(p.stop, stop), p.step) for p in order.pieces) if len(p)))
    parts = [up_to(part, stop) for part in order.parts]
    kept = tuple(part for part in parts if part != Chain(()))
    return Sum(kept, order.start, order.partials, order.carry) if kept else Chain(())


@dataclass(frozen=True)
class Divergence:
    """`Divergence` holds the sums of two recipes over the products below k, before the epilogue, on one output element.

    k is the first k of the scan for which the sums differ.
    """

    k: int
    first: float
    second: float


def divergence(first: Recipe, second: Recipe, row, column, out_format: str) -> Divergence | None:
    """Return where two recipes diverge on a row of A (1, k) and a column of B (k, 1), None if they agree.

    The scan goes in steps of the smaller k step of the two engines. Raises ValueError for orders that cannot be cut.
    """
    step = min(first.engine.k, second.engine.k)
    for stop in [*range(step, first.k, step), first.k]:
        sums = []
        for recipe in (first, second):
            partial = replace(recipe, order=up_to(recipe.order, stop))
            bits = partial.sum_bits(row, column, out_format=out_format)
            sums.append(float(values_of_bits(bits, get_format(recipe.engine.d_format))[0, 0]))
        if sums[0] != sums[1] and not (np.isnan(sums[0]) and np.isnan(sums[1])):
            return Divergence(stop, sums[0], sums[1])
    return None


def candidates(device: str, k: int, format: str) -> Iterator[Recipe]:
    """Yield recipes to try for an unknown kernel of a device: one chain, then split-k, on each of its arithmetics."""
    operands, units = operand_format(format).name, {}  # type: str, dict
    for row in list_instructions(device):
        same = (
            row.a_format == row.b_format == operands
            and row.c_format == row.d_format == "fp32"
            and row.scale_format is None
        )
        larger = row.accumulator not in units or row.k > units[row.accumulator].k
        if same and row.path != "wmma" and row.accumulator is not None and larger:
            units[row.accumulator] = row
    for split in (1, *TRIED_SPLITS):
        for unit in units.values():
            for mode in ("parallel", "serial") if split > 1 else ("parallel",):
                recipe = cutlass(unit, k=k, tile_k=unit.k, split_k=split, split_mode=mode, residue="last")
                if len(recipe.chains) == split:
                    yield recipe
