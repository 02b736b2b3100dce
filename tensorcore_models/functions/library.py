"""This module holds FP32 library functions of CUDA and torch as sequences of instructions.

Constants and the order of operations are those of CUDA 13.0's functions without ``-ftz`` and ``-use_fast_math``, which torch
calls. torch 2.11's results on an H100, recorded for all bf16 and for 65,536 FP32 numbers, confirm them: 0 differ.
"""

from .rows import EX2, LG2, LIBRARY, RSQRT, Row

_EXP = """
t = sat(fma({x}, 0x3BBB989D, 0.5))
z = fma_rd(t, 252.0, 12582913.0)
s = z - 12583039.0
r = fma({x}, 0x3FB8AA3B, -s)
r = fma({x}, 0x32A57060, r)
e = ex2(r) * (z << 23)
"""
_LOG = """
tiny = x < 2.0 ** -126
a = x * 8388608.0 if tiny else x
e = word_sub(a, 0x3F2AAAAB) & 0xFF800000
i = fma(float_of(e), 2.0 ** -23, -23.0 if tiny else 0.0)
t = word_sub(a, e) - 1.0
r = fma(t, 0xBE055027, 0x3E1039F6)
r = fma(r, t, 0xBDF8CDCC)
r = fma(r, t, 0x3E0F2955)
r = fma(r, t, 0xBE2AD8B9)
r = fma(r, t, 0x3E4CED0B)
r = fma(r, t, 0xBE7FFF22)
r = fma(r, t, 0x3EAAAA78)
r = fma(r, t, 0xBF000000)
r = fma(t * r, t, t)
r = fma(i, 0x3F317218, r)
beyond = fma(x, 0x7F800000, 0x7F800000)
r = r if abs(x) < 0x7F800000 else beyond
r = beyond if x < 0.0 else r
0xFF800000 if abs(x) == 0 else r
"""
_ERF = """
far = abs({x}) > 0x3F8060FD
t = abs({x}) if far else {x} * {x}
r = 0x38EB4C3A if far else 0x38B1E96A
r = fma(r, t, 0xBAAE005B if far else 0xBA574D20)
r = fma(r, t, 0x3C09919F if far else 0x3BAAD5EA)
r = fma(r, t, 0xBD24D99A if far else 0xBCDC1BE7)
r = fma(r, t, 0x3E235519 if far else 0x3DE718AF)
r = fma(r, t, 0x3F69B4F9 if far else 0xBEC093AC)
r = fma(r, t, 0x3F210A14 if far else 0x3E0375D3)
f = -t if far else {x}
r = fma(r, f, f)
erf = (1.0 - ex2(r)) | ({x} & 0x80000000) if far else r
"""
_TANH = """
size = abs({x})
e = ex2(size * 0x4038AA3B)
large = fma(rcp(e + 1.0), -2.0, 1.0)
large = 1.0 if size > 0x41102CB3 else large
q = {x} * {x}
r = fma(q, 0x3C80F082, 0xBD563CAE)
r = fma(r, q, 0x3E085941)
r = fma(r, q, 0xBEAAA9ED)
r = fma(r, q, 0.0)
r = fma(r, {x}, {x})
tanh_x = large | ({x} & 0x80000000) if size > 0x3F199999 else r
"""
_ANGLE = """
large = abs(x) > 105614.9921875
p = x * 0x3F22F983
q = p + 12582912.0
turns = large_turns(x) if large else word_sub(q, 0x4B400000)
q = q - 12582912.0
t = fma(q, 0xBFC90FDA, x)
t = fma(q, 0xB3A22168, t)
t = fma(q, 0xA7C234C5, t)
t = large_rest(x) if large else t
t = x * 0.0 if abs(x) == 0x7F800000 else t
"""
_SINE = """
i = word_add(turns, {quadrants})
u = t * t
c = 1.0 if (i & 1) == 1 else t
z = fma(0x37CBAC00, u, 0xBAB607ED) if (i & 1) == 1 else 0xB94D4153
z = fma(z, u, 0x3D2AAABB if (i & 1) == 1 else 0x3C0885E4)
z = fma(z, u, 0xBEFFFFFF if (i & 1) == 1 else 0xBE2AAAA8)
r = fma(z, fma(u, c, 0.0), c)
fma(r, -1.0, 0.0) if (i & 2) == 2 else r
"""
_TANGENT = """
u = t * t
z = fma(0x3C190000, u, 0x3B560000)
z = fma(z, u, 0x3CC70000)
z = fma(z, u, 0x3D5B0000)
z = fma(z, u, 0x3E089438)
z = fma(z, u, 0x3EAAAA88)
r = fma(z, u * t, t)
r = t if abs(t) == 0x3A00B43C else r
rcp(-r) if (turns & 1) == 1 else r
"""

_RECORDED = "torch 2.11's results of all bf16 and 65,536 FP32 numbers"
_RECORDED_ANGLES = f"{_RECORDED} (angles from 105615 on in bf16 alone)"


def _library(program: str, **fields) -> Row:
    return Row(program=program, kind=LIBRARY, **{"recorded": _RECORDED, **fields})


#: Library functions by name; torch's functions have "torch." before their names.
LIBRARY_FUNCTIONS = {
    "expf": _library(_EXP.format(x="x") + "e", error="at most 1.932 ulp"),
    "exp2f": _library(
        EX2, error="at most 1.40 ulp for positive operands, 2.06 for negative ones, where the result is normal"
    ),
    "__expf": _library(f"x = x * 0x3FB8AA3B\n{EX2}", recorded="", error="at most 64 ulp, growing with the operand"),
    "logf": _library(_LOG, error="at most 0.865 ulp from 2^-8 to 2^8"),
    "__logf": _library(
        f"{LG2.replace('y - 24.0', 'y = y - 24.0')}\ny * 0x3F317218",
        recorded="",
        error="at most 2^-22.45 from 0.5 to 2, 2^-21.87 of the result elsewhere",
    ),
    "erff": _library(_ERF.format(x="x") + "erf", recorded="torch 2.11's GELU", error="at most 1.038 ulp"),
    "tanhf": _library(_TANH.format(x="x") + "tanh_x", error="at most 1.815 ulp"),
    "sinf": _library(_ANGLE + _SINE.format(quadrants=0), recorded=_RECORDED_ANGLES, error="at most 1.500 ulp"),
    "cosf": _library(_ANGLE + _SINE.format(quadrants=1), recorded=_RECORDED_ANGLES, error="at most 1.511 ulp"),
    "tanf": _library(_ANGLE + _TANGENT, recorded="", error="at most 2.94 ulp on a sample of 2^24 operands"),
    "rsqrtf": _library(RSQRT, error="at most 1.515 ulp"),
    "div.rn.f32": Row(program="x / y", operands=("x", "y"), kind=LIBRARY, recorded="IEEE 754"),
    "sqrt.rn.f32": _library("square_root(x)"),
    "rcp.rn.f32": _library("1.0 / x"),
    "torch.sigmoid": _library("m = -x\n" + _EXP.format(x="m") + "1.0 / (1.0 + e)", error="at most 3.433 ulp"),
    "torch.silu": _library(
        "m = -x\n" + _EXP.format(x="m") + "x / (1.0 + e)",
        error="at most 1.830 ulp for positive operands; below -88.7 the result is -0",
    ),
    "torch.gelu": _library(
        "v = x * 0x3F3504F3\n" + _ERF.format(x="v") + "(x * 0.5) * (1.0 + erf)",
        error="at most 1.813 ulp for positive operands; the sum 1 + erf cancels for negative ones",
    ),
    "torch.gelu_tanh": _library(
        "c = (x * x) * x\nv = 0x3F4C422A * fma(0x3D372713, c, x)\n"
        + _TANH.format(x="v")
        + "(0.5 * x) * (1.0 + tanh_x)",
        error="at most 1.96 ulp for positive operands, on a sample; the sum 1 + tanh cancels for negative ones",
    ),
}
