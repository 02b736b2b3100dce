"""Random accumulators with random edge rules, floors and formats: every kernel and instruction set against the reference."""

import dataclasses
from collections import Counter

import numpy as np
from random_encodings import STYLES
from twins import Unit, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
)

#: Fields that are drawn beside a class's edge rules.
FIELDS = {
    FusedDotAdd: {
        "terms": (4, 8, 16),
        "fraction_bits": (2, 10, 13, 23, 24, 25, 30),
        "output_rounding": ("rz", "rne", "ru", "rd", "ro", "rna", "ra", "rnu", "rnd", "rnz", "rno"),
        "output_fraction_bits": (None, None, 0, 13),
        "normalised_products": (False, False, True),
        "alignment_rounding": ("rz", "rd"),
    },
    ParametricDotAdd: {
        "terms": (4, 8),
        "fraction_bits": (None, 10, 24),
        "c_position": ("early", "late"),
        "alignment": ("global", "pairwise", "odd_even"),
        "flush_inputs": (False, True),
        "flush_outputs": (False, True),
        "flushed": ("aligned", "as_zero"),
        "output_rounding": ("rz", "rne"),
    },
    GroupDotFusedSum: {"terms": (16, 32, 64), "fraction_bits": (20, 35)},
    FusedDotRoundDownAdd: {
        "terms": (4, 8),
        "sum_fraction_bits": (None, 24, 31),
        "product_overflow_exponent": (None, 128),
    },
    GroupFusedDotRoundDownAdd: {"terms": (8, 16), "c_zero_below": (20, 25, 40)},
    SequentialFMA: {
        "rounding": ("rne", "rz", "rd", "ru", "ro", "rna", "ra", "rnu", "rnd", "rnz", "rno"),
        "flush_inputs": (False, True),
        "flush_outputs": (False, True),
        "pair_order": ("ascending", "odd_first"),
        "saturate": (False, False, True),
    },
    LanedFMA: {"lanes": (2, 4), "terms": (8, 32), "flush_inputs": (False, True)},
    GroupPairwiseSum: {"group": (2, 4, 8), "flush_results": (False, True), "terms": (None, None, 8, 16)},
    PairRoundOddSum: {},
}
OPERANDS = {
    GroupDotFusedSum: ("e2m1",),
    FusedDotRoundDownAdd: ("fp16", "bf16", "tf32"),
    GroupFusedDotRoundDownAdd: ("e4m3fnuz", "e5m2fnuz"),
    SequentialFMA: ("fp16", "bf16", "fp32"),
    LanedFMA: ("bf16", "fp16"),
    GroupPairwiseSum: ("fp16", "bf16"),
    PairRoundOddSum: ("bf16",),
}
FLOORS = (None, None, -200, -133, -126, -30, -6, 3)


def random_unit(rng: np.random.Generator, cls) -> Unit | None:
    """A unit of that class, None where the drawn values contradict each other."""

    def pick(values):
        return values[int(rng.integers(len(values)))]

    chosen = {name: pick(values) for name, values in FIELDS[cls].items()}
    for name, allowed in cls.edge_rules.items():
        if allowed is not None:
            chosen[name] = pick(allowed)
    if "exponent_floor" in cls.edge_rules:
        chosen["exponent_floor"] = pick(FLOORS)
    operand = pick(OPERANDS.get(cls, ("fp16", "bf16", "e4m3fn", "e5m2")))
    scaled = cls is GroupDotFusedSum
    try:
        spec = cls(**chosen)
    except ValueError:
        return None
    narrow = cls is FusedDotAdd and operand != "bf16" and rng.random() < 0.25
    result = "fp16" if narrow else "fp32"
    scale = pick(("ue4m3", "ue8m0")) if scaled else None
    return Unit(spec, operand, operand, result, result, scale, pick((16, 32)) if scaled else None)


def check(rng: np.random.Generator, cls, rounds: int, counts: Counter) -> list[str]:
    """Differences between kernels and reference in `rounds` products of random units; `counts` how many results."""
    wrong = []
    for _ in range(rounds):
        unit = random_unit(rng, cls)
        if unit is None:
            continue
        style = STYLES[int(rng.integers(len(STYLES)))]
        k = unit.accumulator.terms_per_step * int(rng.integers(1, 4))
        a, b, c, sa, sb = operands(rng, unit, 8, k, 12, style)
        # the fast kernels take larger products: the same one side by side, rows of A again and again
        big = -(-(1 << 14) // (12 * k))
        rows = np.arange(big) % 8
        wanted = reference.mma_bits(unit, a, b, c, sa, sb)
        for isa in tcm.available_isas():
            tcm.set_isa(isa)
            for layer in ("auto", "generic"):
                kernels.set_kernel(layer)
                tall = (a[rows], b, c[rows], None if sa is None else sa[rows], sb)
                found = kernels.matrix_bits(unit, *tall)
                counts[cls.__name__] += found.size
                if not np.array_equal(found, wanted[rows]):
                    i, j = np.argwhere(found != wanted[rows])[0]
                    name = kernels.kernel_name(unit, big, 12, k) if layer == "auto" else layer
                    wrong.append(
                        f"{isa} {name} {style} k={k}: {np.count_nonzero(found != wanted[rows])} of {found.size}, first "
                        f"{found[i, j]:#x} for {wanted[i % 8, j]:#x}: {changed(unit)}"
                    )
    tcm.set_isa(None)
    kernels.set_kernel(None)
    return wrong


def changed(unit: Unit) -> str:
    """The unit's fields that are not their class's defaults."""
    spec = unit.accumulator
    fields = {
        f.name: getattr(spec, f.name)
        for f in dataclasses.fields(spec)
        if getattr(spec, f.name) != getattr(type(spec)(), f.name)
    }
    return f"{type(spec).__name__}({fields}) {unit.a_format} {unit.d_format} {unit.scale_format} {unit.block_size}"
