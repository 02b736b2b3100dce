"""This module holds PTX's special functions and conversions as rows of data.

The instructions were derived from recordings of an H100 (:mod:`tensorcore_models.functions.datapath`). The PTX ISA gives the
first compute capability of each instruction. Errors are measured here over all operands
(``tools/check_functions.py --errors``); an ulp is the unit in the last place of the exact result.
"""

from dataclasses import dataclass

INSTRUCTION, LIBRARY = "PTX", "CUDA"


@dataclass(frozen=True, kw_only=True)
class Row:
    """`Row` describes one function for all architectures that have it.

    Parameters
    ----------
    program : str
        Program on FP32 words, as text (:mod:`tensorcore_models.functions.sequences`).
    operands : tuple of str
        Names of the operands in `program`.
    operand, result : str
        Formats of the operands and the result: a format name, "word", or "fp64 high" for the upper word of an FP64 number. An
        operand narrower than FP32 is widened first, a narrower result is rounded last.
    rounding : str
        Rounding of a narrower result.
    packed : bool
        Whether a word holds two operands or two results.
    capability : tuple of int
        First compute capability that has the function (PTX ISA).
    recorded : str
        Operands whose results were recorded on an H100; empty if the function is inferred from recorded functions.
    error : str
        Greatest error in words; empty if the result is the exact value rounded once.
    kind : str
        "PTX" for an instruction, "CUDA" for a library function.
    """

    program: str
    operands: tuple[str, ...] = ("x",)
    operand: str = "fp32"
    result: str = "fp32"
    rounding: str = "rne"
    packed: bool = False
    capability: tuple[int, int] = (2, 0)
    recorded: str = "all 2^32 operands"
    error: str = ""
    kind: str = INSTRUCTION


_TINY = "abs(x) < 2.0 ** -126"
_SCALES = f"s = 2.0 ** 24 if {_TINY} else 0.25 if abs(x) > 2.0 ** 126 else 1.0"
EX2 = "low = x < -126.0\ny = ex2(x * 0.5 if low else x)\ny * y if low else y"
LG2 = f"tiny = {_TINY}\ny = lg2(x * 2.0 ** 24 if tiny else x)\ny - 24.0 if tiny else y"
RSQRT = f"tiny = {_TINY}\ny = rsqrt(x * 2.0 ** 24 if tiny else x)\ny * 2.0 ** 12 if tiny else y"
_OVERFLOW = "y = ex2(x)\n0x7F800000 if y > 65535.0 else y"
_PAIRS = "131,072 pairs of operands"

#: PTX instructions by name.
INSTRUCTIONS = {
    "ex2.approx.ftz.f32": Row(error="at most 1.40 ulp for positive operands, 2.06 for negative ones", program="ex2(x)"),
    "ex2.approx.f32": Row(
        error="at most 1.40 ulp for positive operands, 2.06 for negative ones, where the result is normal", program=EX2
    ),
    "lg2.approx.ftz.f32": Row(
        error="at most 2^-22.14 from 0.5 to 2, 2^-22.05 of the result elsewhere", program="lg2(x)"
    ),
    "lg2.approx.f32": Row(error="at most 2^-22.14 from 0.5 to 2, 2^-22.05 of the result elsewhere", program=LG2),
    "rcp.approx.ftz.f32": Row(error="at most 0.975 ulp", program="rcp(x)"),
    "rcp.approx.f32": Row(error="at most 0.975 ulp where the result is normal", program=f"{_SCALES}\nrcp(x * s) * s"),
    "rsqrt.approx.ftz.f32": Row(error="at most 1.515 ulp", program="rsqrt(x)"),
    "rsqrt.approx.f32": Row(error="at most 1.515 ulp", program=RSQRT),
    "sqrt.approx.ftz.f32": Row(error="at most 0.944 ulp", program="sqrt(x)"),
    "sqrt.approx.f32": Row(
        error="at most 0.944 ulp",
        program=f"tiny = {_TINY}\ny = sqrt(x * 2.0 ** 24 if tiny else x)\ny * 2.0 ** -12 if tiny else y",
    ),
    "sin.approx.ftz.f32": Row(error="at most 2^-20.55 up to 2 pi", program="sin(x)"),
    "cos.approx.ftz.f32": Row(error="at most 2^-20.42 up to 2 pi", program="cos(x)"),
    "tanh.approx.f32": Row(error="at most 2^-16.45 of the result, 134 ulp", program="tanh(x)", capability=(7, 5)),
    "ex2.approx.f16x2": Row(
        error="below 1 ulp: results are cut off, half an ulp too low in the mean",
        program=_OVERFLOW,
        operand="fp16",
        result="fp16",
        rounding="rz",
        packed=True,
        capability=(7, 5),
    ),
    "ex2.approx.ftz.bf16x2": Row(
        error="below 1 ulp: results are cut off",
        program="ex2(x)",
        operand="bf16",
        result="bf16",
        rounding="rz",
        packed=True,
        capability=(9, 0),
    ),
    "tanh.approx.f16x2": Row(
        error="at most 1.009 ulp: results are cut off",
        program="tanh(x)",
        operand="fp16",
        result="fp16",
        rounding="rz",
        packed=True,
        capability=(7, 5),
    ),
    "tanh.approx.bf16x2": Row(
        error="at most 1.0001 ulp: results are cut off",
        program="tanh(x)",
        operand="bf16",
        result="bf16",
        rounding="rz",
        packed=True,
        capability=(9, 0),
    ),
    "ex2.approx.f16": Row(
        error="below 1 ulp: results are cut off, half an ulp too low in the mean",
        program=_OVERFLOW,
        operand="fp16",
        result="fp16",
        rounding="rz",
        capability=(7, 5),
        recorded="",
    ),
    "ex2.approx.ftz.bf16": Row(
        error="below 1 ulp: results are cut off",
        program="ex2(x)",
        operand="bf16",
        result="bf16",
        rounding="rz",
        capability=(9, 0),
        recorded="",
    ),
    "tanh.approx.f16": Row(
        error="at most 1.009 ulp: results are cut off",
        program="tanh(x)",
        operand="fp16",
        result="fp16",
        rounding="rz",
        capability=(7, 5),
        recorded="",
    ),
    "tanh.approx.bf16": Row(
        error="at most 1.0001 ulp: results are cut off",
        program="tanh(x)",
        operand="bf16",
        result="bf16",
        rounding="rz",
        capability=(9, 0),
        recorded="",
    ),
    "rcp.approx.ftz.f64": Row(
        error="at most 2^-20.04 of the result",
        program="rcp_high(x)",
        operand="fp64 high",
        result="fp64 high",
        recorded="all 2^32 upper words (lower words 0)",
    ),
    "rsqrt.approx.ftz.f64": Row(
        error="at most 2^-20.03 of the result",
        program="rsqrt_high(x)",
        operand="fp64 high",
        result="fp64 high",
        recorded="all 2^32 upper words (lower words 0)",
    ),
    "div.approx.ftz.f32": Row(
        error="that of the reciprocal, 0.975 ulp, and one or two roundings",
        program="flush(flush(x) * rcp(y))",
        operands=("x", "y"),
        recorded=_PAIRS,
    ),
    "div.approx.f32": Row(
        error="that of the reciprocal, 0.975 ulp, and one or two roundings",
        program="s = 2.0 ** 24 if abs(y) < 2.0 ** -126 else 1.0\n(x * s) * rcp(y * s)",
        operands=("x", "y"),
        recorded=_PAIRS,
    ),
    "div.full.f32": Row(
        error="that of the reciprocal, 0.975 ulp, and one or two roundings",
        program=f"{_SCALES.replace('x', 'y')}\n(x * s) * rcp(y * s)",
        operands=("x", "y"),
        recorded=_PAIRS,
    ),
    "cvt.rna.tf32.f32": Row(
        error="half a unit of TF32: to nearest, ties away from zero",
        program="(x if (x & 0x7F800000) == 0x7F800000 else word_add(x, 0x1000)) & 0xFFFFE000",
        result="word",
        capability=(8, 0),
    ),
    "cvt.rn.f16.f32": Row(program="x", result="fp16"),
    "cvt.rz.f16.f32": Row(program="x", result="fp16", rounding="rz"),
    "cvt.rn.bf16.f32": Row(program="x", result="bf16", capability=(8, 0)),
    "cvt.rz.bf16.f32": Row(program="x", result="bf16", rounding="rz", capability=(8, 0)),
    "cvt.rn.satfinite.e4m3x2.f32": Row(
        program="x ^ (abs(x) ^ 448.0) if abs(x) > 448.0 else x",
        operands=("x", "y"),
        result="e4m3fn",
        packed=True,
        capability=(8, 9),
        recorded="all 2^32 operands of the lower half",
    ),
    "cvt.rn.satfinite.e5m2x2.f32": Row(
        program="x ^ (abs(x) ^ 57344.0) if abs(x) > 57344.0 else x",
        operands=("x", "y"),
        result="e5m2",
        packed=True,
        capability=(8, 9),
        recorded="all 2^32 operands of the lower half",
    ),
}
