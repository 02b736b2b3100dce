"""This module checks whether a kernel's result has exactly a recipe's bits, and otherwise names an order of k with its bits."""

import numpy as np

import tensorcore_models as tcm
from mpgemm.frameworks.multiplier import recipe_values
from mpgemm.testing.call import format_of_result
from mpgemm.testing.case import KernelCase, kernel_case
from tensorcore_models import libraries
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.formats import Format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.libraries.compare import candidates
from tensorcore_models.orders.order import Chain

#: Numbers of rows and columns on which other orders are tried.
TRIED = 8


def assert_bits(
    out,
    a,
    b,
    *,
    recipe: libraries.Recipe | Engine | str,
    scale: float = 1.0,
    input_rounding: str | None = None,
    scale_a=None,
    scale_b=None,
    epilogue: str | None = None,
) -> None:
    """Fail unless a kernel's result has exactly the bits of a recipe.

    Parameters
    ----------
    out : array_like, shape (m, n)
        The kernel's result; its type is the output format.
    a, b : array_like, shapes (m, k) and (k, n)
        Operands of the kernel.
    recipe : Recipe, Engine or str
        Recipe of a library; or an engine, "arch:name" or a device, which stands for one chain over k and one rounding.
    scale : float
        One FP32 factor, as for :meth:`tensorcore_models.libraries.Recipe.gemm_bits`.
    input_rounding : str, optional
        See :meth:`tensorcore_models.Instruction.gemm`.
    scale_a, scale_b : array_like, optional
        Scales of the operands, recognised by shape and type (:func:`tensorcore_models.read_scales`); only if `recipe` is an
        engine.
    epilogue : str, optional
        Function that is applied to the sums; it must be exact in FP32 ("relu").

    Raises
    ------
    AssertionError
        If bits differ; the message states how many elements differ, the first of them, and other orders of k that give the
        kernel's bits.
    ValueError, TypeError
        If shapes or types do not fit.
    """
    __tracebackhide__ = True
    computed, left, right = (tcm.as_array(x, name) for x, name in ((out, "out"), (a, "a"), (b, "b")))
    fmt = format_of_result(computed)
    plain, case = scale_a is None and scale_b is None and epilogue is None, None
    if not isinstance(recipe, libraries.Recipe):
        case = kernel_case(
            recipe, left, right, out_format=fmt.name, scale_a=scale_a, scale_b=scale_b, input_rounding=input_rounding,
            epilogue=epilogue,
        )  # fmt: skip
        recipe = _as_recipe(case)
    if plain:
        expected = recipe_values(recipe, left, right, fmt.name, input_rounding, scale=scale)
    elif case is None:
        raise ValueError("scale_a, scale_b and epilogue need an engine, got a recipe: give an engine as the recipe")
    elif scale != 1:
        raise ValueError(
            f"got scale = {scale} together with scale_a, scale_b or epilogue, expected scale = 1: leave the argument scale out"
        )
    else:
        expected = _chain_of(case)
    wrong, text = _different(computed, expected, fmt, recipe.name)
    if not wrong.any():
        return
    if isinstance(recipe.engine, Instruction) and plain and scale == 1:
        text += f"\n  {_other_orders(recipe, computed, left, right, wrong, fmt.name, input_rounding)}"
    raise AssertionError(text)


def _chain_of(case: KernelCase) -> np.ndarray:
    """Return the values of one chain of the case's engine, with its scales and an exact epilogue."""
    done = case.epilogue
    if done is not None and not done.exact:
        raise ValueError(
            f"epilogue is {done.name!r}, expected relu, because kernels round other functions differently; use "
            "assert_gemm_close"
        )
    m, n = case.a.shape[0], case.b.shape[1]
    rows, columns = np.arange(m), np.arange(n)
    return case.rounded(case.finished(case.model(rows, columns)[0], rows, columns))


def _as_recipe(case: KernelCase) -> libraries.Recipe:
    """Return the chain as a recipe, for its name and for other orders."""
    k = case.a.shape[1]
    parts = [f"one chain on {case.engine.label}", *([case.scaling.in_words()] if case.scaling else [])]
    parts += [case.epilogue.name] if case.epilogue else []
    return libraries.Recipe(case.engine, k, Chain((range(k),)), name=", ".join(parts))


def _different(computed: np.ndarray, expected: np.ndarray, fmt: Format, name: str) -> tuple[np.ndarray, str]:
    """Return the elements with other bits, their number in words, and the first of them."""
    if computed.shape != expected.shape:
        raise ValueError(f"out must have the shape {expected.shape} of the product of a and b, got {computed.shape}")
    got, wanted = operand_bits(computed, fmt, None, "out"), operand_bits(expected, fmt, None, "expected")
    wrong = got != wanted
    if not wrong.any():
        return wrong, ""
    i, j = (int(x) for x in np.argwhere(wrong)[0])
    digits = -(-fmt.bits // 4)
    value = tcm.decode(wanted[i : i + 1, j], fmt)[0]
    return wrong, (
        f"{np.count_nonzero(wrong)} of {wrong.size} elements have other bits than {name}\n  first: out[{i}, {j}] = "
        f"{float(computed[i, j])!r} (0x{int(got[i, j]):0{digits}x}), expected {float(value)!r} "
        f"(0x{int(wanted[i, j]):0{digits}x})"
    )


def _other_orders(recipe, out, a, b, wrong, out_format: str, rounding: str | None) -> str:
    """Return a sentence on orders of k on the same architecture that give the part of the result with most wrong elements."""
    rows = np.argsort(-wrong.sum(1), kind="stable")[:TRIED]
    columns = np.argsort(-wrong[rows].sum(0), kind="stable")[:TRIED]
    part = np.ascontiguousarray(out[np.ix_(rows, columns)])
    same = []
    for other in candidates(recipe.engine.arch, recipe.k, recipe.engine.a_format):
        values = recipe_values(other, a[rows], b[:, columns], out_format, rounding)
        if values.tobytes() == part.tobytes():
            same.append(f"{other.name} on {other.engine.label}")
    if not same:
        return f"none of the other orders tried on {recipe.engine.arch} (one chain, split-k) gives these bits either"
    more = f" and {len(same) - 3} more" if len(same) > 3 else ""
    return f"these bits are those of {', or of '.join(same[:3])}{more} ({len(rows)} x {len(columns)} elements compared)"
