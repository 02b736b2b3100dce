"""This module prepares an accumulator with its formats for the kernels: it compiles and keeps the accumulator's plan."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._kernels.generic import generic
from ..aspects.plans import KERNEL_NAMES, BeyondKernels
from ..families.base import OPERAND_NAN, Accumulator, Form, SumAlgorithm
from ..formats import Format, IntegerFormat, get_float_format, get_format


class AsRead(NamedTuple):
    """`AsRead` holds the arithmetic of :attr:`Lowered.as_read`."""

    form: Form
    formats: tuple[Format, Format, Format, Format]
    via: Format | None  # format whose exponents subnormal operands have


@dataclass(frozen=True, eq=False)
class Lowered:
    """`Lowered` is an accumulator with its formats, prepared for the kernels.

    Parameters
    ----------
    accumulator : Accumulator
        Accumulator algorithm.
    a_format, b_format, c_format, d_format : Format or IntegerFormat
        Formats of the operands, the addend and the result.
    scale_format : Format or None
        Format of the block scales, None if there are none.
    block_size : int or None
        Number of products that share a block scale.
    plan : generic.Plan or None
        Plan that the generic kernel runs; None if it cannot run the accumulator.
    reason : str
        Reason why there is no plan; empty if there is one.
    kernel : str
        Name of the generic kernel's family and integer width.
    step : int
        Number of products of one pass of the plan.
    a_table, b_table : ndarray or None
        Encoding in the format in which the unit multiplies, for every encoding of the operand's format (InterleavedDotAdd).
    operands_alike : bool
        Whether A and B may be exchanged, because they are decoded by the same rules and results do not depend on the side.
        Under the rules nan "x86" and "dmma" they may not, because the NaN of one side comes first.
    converted : Lowered or None
        Accumulator that runs on operands converted by `convert`; None if operands are not converted.
    convert : callable or None
        Function from (encodings, 0 for a, 1 for b, 2 for c) to encodings in the formats of `converted`; c is converted only
        with `finish`.
    finish : callable or None
        Function from encodings of results of `converted` to encodings of d; None if they are the same.
    every : int or None
        Number of products after which results are finished; None if they are finished after the whole chain.
    arithmetic : tuple or None
        All parameters of the generic kernel for the algorithm; equal parameters give equal results.
    layouts, fast_kernels, small : dict
        Caches: arrangements of passes by length, kernels of the fast paths by name, small products by operand shapes.
    """

    accumulator: Accumulator
    a_format: Format | IntegerFormat
    b_format: Format | IntegerFormat
    c_format: Format | IntegerFormat
    d_format: Format | IntegerFormat
    scale_format: Format | None = None
    block_size: int | None = None
    plan: generic.Plan | None = None
    reason: str = ""
    kernel: str = "reference"
    step: int = 1
    a_table: np.ndarray | None = None
    b_table: np.ndarray | None = None
    operands_alike: bool = False
    converted: "Lowered | None" = field(default=None, repr=False)
    convert: Callable[[np.ndarray, int], np.ndarray] | None = field(default=None, repr=False)
    finish: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    every: int | None = None
    arithmetic: tuple | None = field(default=None, repr=False)
    layouts: dict[int, generic.Layout] = field(default_factory=dict, repr=False)
    fast_kernels: dict[str, Any] = field(default_factory=dict, repr=False)
    small: dict[tuple, Any] = field(default_factory=dict, repr=False)

    @property
    def floating(self) -> tuple[Format, Format, Format, Format] | None:
        """Return the formats of a, b, c and d, None if one of them is an integer format."""
        a, b, c, d = self.a_format, self.b_format, self.c_format, self.d_format
        if isinstance(a, Format) and isinstance(b, Format) and isinstance(c, Format) and isinstance(d, Format):
            return a, b, c, d
        return None

    @cached_property
    def form(self) -> Form:
        """Return the arithmetic in the form that fast kernels know."""
        return self.accumulator.form()

    @property
    def as_read(self) -> "AsRead | None":
        """Return the arithmetic if lanes can read unconverted operands: exact values with other alignment exponents.

        The result is None if a conversion rounds or flushes operands, or if formats are integers.
        """
        if self.floating is None:
            return None
        a, b, c, d = self.floating
        algorithm, spec = self.form
        if algorithm is not SumAlgorithm.CONVERTED:
            return AsRead(self.form, (a, b, c, d), None)
        via = get_float_format(spec.via_format)
        a, b = (spec.operand_format(fmt, side) for side, fmt in enumerate((a, b)))
        exact = all(
            f.has_fields and f.padding_bits == 0 and f.fraction_bits <= via.fraction_bits and f.emax <= via.emax
            for f in (a, b)
        )
        if spec.flush or not exact or any(f.quantum_exponent < via.quantum_exponent for f in (a, b)):
            return None
        return AsRead(spec.dot.form(), (a, b, c, d), via)

    @property
    def cycle(self) -> int:
        """Return the number of products of one period of the chain."""
        return self.accumulator.terms_per_step * self.accumulator.groups_per_instruction

    @cached_property
    def continued(self) -> "Lowered":
        """Return the lowered accumulator for the rest of a chain, whose addend is a result."""
        return self if self.c_format == self.d_format else lower(replace(self, c_format=self.d_format))

    def layout(self, k: int) -> generic.Layout:
        """Return the arrangement of the last pass of a chain of `k` products."""
        length = k % self.step or self.step
        found = self.layouts.get(length)
        if found is None:
            found = self.layouts[length] = generic.Layout(*laid_out(self.accumulator, length))
        return found


def _alike(spec: Accumulator, formats, fields) -> bool:
    """Return whether A and B may be exchanged."""
    same = formats[0] == formats[1] and fields.get("a") == fields.get("b")
    return same and spec.operands_alike and spec.nan not in OPERAND_NAN and spec.key is None


def laid_out(spec: Accumulator, length: int) -> tuple[list[int], list[int], list[int]]:
    """Return the order of `length` products of one pass, the bounds of their groups, and the tree of additions."""
    groups, tree = spec.arrangement(length)
    bounds = [0]
    for group in groups:
        bounds.append(bounds[-1] + len(group))
    return [k for group in groups for k in group], bounds, tree


def lower(engine) -> Lowered:
    """Return an engine's accumulator and formats, prepared for the kernels.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Object with `accumulator`, `a_format`, `b_format`, `c_format`, `d_format`, `scale_format` and `block_size`.
    """
    spec = engine.accumulator
    formats = tuple(get_format(f) for f in (engine.a_format, engine.b_format, engine.c_format, engine.d_format))
    scale = get_format(engine.scale_format) if engine.scale_format else None
    identity: dict[str, Any] = dict(zip(("a_format", "b_format", "c_format", "d_format"), formats, strict=True))
    identity.update(accumulator=spec, scale_format=scale, block_size=engine.block_size if scale else None)
    conversion = spec.conversion(formats)
    if conversion is not None:
        names = ("a_format", "b_format", "c_format", "d_format")
        given = dict(zip(names, conversion.formats, strict=True), accumulator=conversion.spec)
        inner = lower(Lowered(**identity | given))
        same = {name: getattr(inner, name) for name in ("plan", "reason", "kernel", "step")}
        arithmetic = None if inner.arithmetic is None else (inner.arithmetic, spec)
        ends = {name: getattr(conversion, name) for name in ("convert", "finish", "every")}
        return Lowered(**identity, **same, converted=inner, **ends, arithmetic=arithmetic)
    try:
        a_table, b_table = spec.operand_tables(formats)
        fields = spec.plan_fields(formats, scale, engine.block_size)
    except BeyondKernels as error:
        return Lowered(**identity, reason=str(error))
    step = fields["step"] // len(fields.get("part_masks", (0,)))
    arrangement = laid_out(spec, step)
    whole = generic.Layout(*arrangement)
    return Lowered(
        **identity,
        a_table=a_table,
        b_table=b_table,
        plan=generic.Plan(fields, whole),
        kernel=f"{KERNEL_NAMES[fields['family']]}-{128 if fields['wide'] else 64}",
        step=step,
        operands_alike=_alike(spec, formats, fields),
        arithmetic=(fields, arrangement, getattr(spec, "via_format", None)),
        layouts={step: whole},
    )
