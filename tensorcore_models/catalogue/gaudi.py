"""Lists the products of the matrix engines (MME) of Gaudi, Gaudi 2 and Gaudi 3.

The arithmetic is that of the vendor's functional model, HabanaAI/Intel_Gaudi3_Software, commit e6cef1c (MIT), mme/mme_reference
and coral-sim. No device was measured. The model has a fast path, which it runs by default, and a path that it shares with the
simulator of the circuit (`no_opt`). The rows model the fast path; `with_rules(normalised_products=False, zero_sign="ieee")`
gives the other.
"""

import dataclasses

from ..accumulators import Accumulator, ConvertedDotAdd, FusedDotAdd, ParametricDotAdd, SequentialFMA
from ..engines.instruction import Instruction
from ..engines.rollup import Rollup

SOURCE = "HabanaAI/Intel_Gaudi3_Software e6cef1c (MIT), mme/mme_reference"
UNCERTAIN = "no device was measured; how a device splits a long k is not published, and the model has one chain"
FAST_PATH = (
    "the row is the fast path of the vendor's model; the call with_rules(normalised_products=False, zero_sign='ieee') gives "
    "the path of the circuit (no_opt)"
)

#: Exponent biases that a Gaudi 3 operand may have (lowest, highest, step), and meanings of its all-ones exponent.
ANY_BIAS, FP8_CODES, FP16_CODES = (0, 62, 1), ("ieee", "finite", "fn"), ("ieee", "finite")

#: Gaudi's multiply-add, which flushes operands, c and results.
MULTIPLY_ADD = SequentialFMA(flush_inputs=True, flush_outputs=True, nan="all_ones")
#: Gaudi 3's step, which flushes nothing and aligns c with the products.
GAUDI3 = FusedDotAdd(8, 24, exponent_floor=-132)
GAUDI3_PARTS = ParametricDotAdd(2, 24, significand_parts=(3, 8), exponent_floor=-132)


def _gaudi2(terms: int, fraction_bits: int, **others) -> ParametricDotAdd:
    """Return Gaudi 2's step, which adds c exactly to the sum of the products, rounds once, and flushes c and results."""
    return ParametricDotAdd(
        terms, fraction_bits, c_position="exact", output_rounding="rne", flush_c=True, flush_outputs=True,
        negative_underflow="negative", **{"zero_sign": "ieee", **others},
    )  # fmt: skip


def _fast(terms: int, **others) -> ParametricDotAdd:
    """Return the fast path of the model for bf16, fp16 and tf32 on Gaudi 2."""
    return _gaudi2(terms, 46, normalised_products=True, zero_sign="majority", **others)


def _row(arch: str, spec: Accumulator, a: str, b: str | None = None, note: str = "", **others) -> Instruction:
    """Return the row of a pair of operand formats; its name spells fp16 and fp32 as other vendors' instructions do."""
    b, k = b or a, spec.terms_per_step
    notes = "; ".join(filter(None, (note, UNCERTAIN)))
    return Instruction(
        spec, arch=arch, name=f"mme.k{k}.f32.{_spelled(a)}.{_spelled(b)}.f32", m=1, n=1, k=k, a_format=a, b_format=b,
        path="mme", source=SOURCE, evidence="published model", note=notes, **others,
    )  # fmt: skip


def _spelled(fmt: str) -> str:
    return {"fp16": "f16", "fp32": "f32"}.get(fmt, fmt)


def _gaudi() -> list[Instruction]:
    rollup = Rollup(4)
    order = (
        "a GEMM adds products to four accumulators in turn over k and joins these in pairs; the call "
        "with_rules(flush_adds=True) flushes the joined sums"
    )
    return [
        _row("gaudi", MULTIPLY_ADD, "bf16", note=order, rollup=rollup),
        _row("gaudi", ConvertedDotAdd(MULTIPLY_ADD, "fp32"), "fp16", note=order, rollup=rollup),
        _row("gaudi", MULTIPLY_ADD, "fp32", note=order, rollup=rollup),
    ]


def _gaudi2_rows() -> list[Instruction]:
    once, split = Rollup(), _gaudi2(2, 46, significand_parts=(12, 12))
    ieee = "this is the mode GAUDI2_FORCE_MME_FP32_IEEE, which is off by default"
    return [
        _row("gaudi2", ConvertedDotAdd(_fast(8), "bf16", flush=True), "bf16", note=FAST_PATH, rollup=once),
        _row("gaudi2", ConvertedDotAdd(_fast(8), "fp32"), "fp16", note=FAST_PATH, rollup=once),
        _row("gaudi2", ConvertedDotAdd(_fast(4, padding=4), "tf32", flush=True), "tf32", note=FAST_PATH, rollup=once),
        _row("gaudi2", ConvertedDotAdd(split, "fp32", flush=True), "fp32", rollup=once),
        _row("gaudi2", MULTIPLY_ADD, "fp32", note=ieee, rollup=once),
        _row("gaudi2", ConvertedDotAdd(_gaudi2(16, 24), "fp16", bias_range=(3, 15, 4)), "e4m3", rollup=once),
        _row("gaudi2", ConvertedDotAdd(_gaudi2(16, 24), "fp16", bias_range=(15, 15, 1)), "e5m2", rollup=once),
    ]


def _gaudi3() -> list[Instruction]:
    fp8 = ConvertedDotAdd(GAUDI3, "bf16", bias_range=ANY_BIAS, codes=FP8_CODES)
    fp16 = ConvertedDotAdd(GAUDI3_PARTS, "tf32", bias_range=ANY_BIAS, codes=FP16_CODES)
    tf32 = dataclasses.replace(fp16, bias_range=(), codes=())
    note = (
        "the call with_rules(bias_a=..., bias_b=...) sets biases from 0 to 62; the call with_rules(specials_a=..., "
        "specials_b=...) sets the meaning of the largest exponent"
    )
    return [
        _row("gaudi3", GAUDI3, "bf16"),
        *(_row("gaudi3", fp8, a, b, note) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
        *(_row("gaudi3", fp16, a, b, note) for a in ("fp16", "ufp16") for b in ("fp16", "ufp16")),
        _row("gaudi3", tf32, "tf32"),
        _row("gaudi3", dataclasses.replace(GAUDI3_PARTS, terms=1, significand_parts=(8, 8, 8)), "fp32"),
    ]


def rows() -> list[Instruction]:
    """Return all rows."""
    return [*_gaudi(), *_gaudi2_rows(), *_gaudi3()]
