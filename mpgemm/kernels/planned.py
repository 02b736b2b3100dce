"""A plan for Ascend as one file in Triton: kernels (:mod:`mpgemm.kernels.planned_source`), the plan's constants, and a host.

A program computes one tile of C with all terms in one walk over k; A and B are split into planes of words before. So the plan
has the mode "fused", whole tiles dealt one by one in bands of rows, one slice and one group of k, and blocks of powers of two,
which tl.arange asks for. Tests compile the kernels with triton-ascend, and run them compiled for another target.
"""

import hashlib
from typing import Any

from ascend.dialects import DIALECTS, check_dialect
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.tiling.fields import is_said_by
from mpgemm.kernels.forms import kernel_form, kernel_method
from mpgemm.kernels.planned_source import TRITON_ASCEND, kernel_text
from mpgemm.recovery.method import RecoveryMethod

#: Elements of a row that a program splits.
SPLIT_BLOCK = 256
_HOST = '''

# -- the plan and its host ----------------------------------------------------------------------------------------------------
import torch

#: {sentence}
M, N, K = {m}, {n}, {k}
PROGRAMS = {programs}
GEMM = {gemm}
#: Elements of a row that a program splits.
SPLIT_BLOCK = {split_block}
#: Operands that are given as planes of words.
PRESPLIT = {presplit!r}
#: Nothing may be contracted.
OPTIONS = {{"enable_fp_fusion": False}}


def split(x):
    """The words of an FP32 matrix, FP16, shape ({words}, rows, columns)."""
    rows, columns = x.shape
    out = torch.empty(({words}, rows, columns), dtype=torch.float16, device=x.device)
    programs = rows * triton.cdiv(columns, SPLIT_BLOCK)
    split_words[(programs,)](
        x, out, rows, columns, x.stride(0), x.stride(1), rows * columns, BLOCK=SPLIT_BLOCK, **OPTIONS
    )
    return out


def multiply(a, b):
    """C = A B in FP32; a is M x K and b K x N in FP32, of any strides, or planes of words where PRESPLIT names them."""
    operands = []
    for side, (x, shape) in enumerate(((a, (M, K)), (b, (K, N)))):
        ready = "ab"[side] in PRESPLIT
        expected = ({words}, *shape) if ready else shape
        type = torch.float16 if ready else torch.float32
        if tuple(x.shape) != expected or x.dtype != type:
            raise ValueError(f"{{'ab'[side]}} is {{tuple(x.shape)}} of {{x.dtype}}, the plan's is {{expected}} of {{type}}")
        operands.append(x if ready else split(x))
    x, y = operands
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    gemm[(PROGRAMS,)](
        x, y, c, x.stride(1), x.stride(2), x.stride(0), y.stride(1), y.stride(2), y.stride(0), **GEMM, **OPTIONS
    )
    return c
'''


def check_triton(s: Kernel) -> None:
    """Refuse what the Triton kernel cannot say: which part of a schedule, and what to take instead (ValueError)."""
    check_dialect("triton", s.placed_on)
    if not s.on_cube or s.terms == 1 or s.operand != "fp16":
        raise ValueError(
            f"the Triton kernel recovers FP32 from words of fp16, this plan has {s.terms} term(s) of {s.operand}"
            f"{'' if s.on_cube else ' on the vector units'}: --terms 3, or --emit pto"
        )
    if s.mode not in DIALECTS["triton"].modes:
        raise ValueError(
            f"mode {s.mode}: a program of the Triton kernel keeps a sum for each term in one walk over k: --mode fused"
        )
    b = s.blocking
    if wrong := [size for size in (b.bm, b.bk, b.bn) if size & (size - 1)]:
        near = " and ".join(
            f"{size}: {below} or {2 * below}" for size in wrong for below in [1 << size.bit_length() - 1]
        )
        raise ValueError(
            f"Triton's blocks are powers of two, the plan's is {b}; next to {near}: name such a --block, or leave it out"
        )
    if not is_said_by(s, "triton"):
        raise ValueError(
            "the Triton kernel computes whole tiles one by one in bands of rows, all of k in a program: plan with --for triton "
            f"--split 1, this plan is {s.placement()} in {len(s.k_slices)} slice(s) of k with {s.groups} group(s) each"
        )


def planned_method(s: Kernel) -> RecoveryMethod:
    """Return the row of :func:`mpgemm.recovered_gemm` that the kernel of a plan computes."""
    return kernel_method("sgemm_cube", terms=s.terms)


def _constants(s: Kernel) -> dict[str, int]:
    """Return the constants that `gemm` is compiled for."""
    b = s.blocking
    return {"M": s.m, "N": s.n, "K": s.k, "BM": b.bm, "BN": b.bn, "BK": b.bk, "BAND": s.swizzle.offset}


def triton_files(s: Kernel) -> dict[str, str | dict]:
    """Return the files of a plan's kernel in Triton, name to text, or to data for JSON.

    Parameters
    ----------
    s : Kernel
        A plan of three or four terms of fp16 in one walk over k.

    Raises
    ------
    ValueError
        For a schedule that the kernel cannot say.
    """
    check_triton(s)
    form = kernel_form(planned_method(s))
    programs = len(s.row_blocks) * len(s.column_blocks)
    host = _HOST.format(
        m=s.m, n=s.n, k=s.k, programs=programs, gemm=_constants(s), split_block=SPLIT_BLOCK, presplit=s.presplit,
        words=form.words[0],
        sentence=f"{s.placed_on.name}: block {s.blocking}, bands of {s.swizzle.offset} rows of tiles, {s.used_cores} cores",
    )  # fmt: skip
    text = kernel_text(form) + host
    return {"gemm.py": text, "record.json": _record(s, programs, text)}


def _record(s: Kernel, programs: int, text: str) -> dict[str, Any]:
    row, form, b = planned_method(s), kernel_form(planned_method(s)), s.blocking
    sizes = {"a": s.m * s.k, "b": s.k * s.n}
    return {
        "dialect": "triton", "chip": s.placed_on.name, "m": s.m, "k": s.k, "n": s.n, "operand": s.operand, "terms": s.terms,
        "mode": s.mode, "method": row.name, "scale_exponent": form.scale, "block": [b.bm, b.bk, b.bn],
        "layout_a": "ND, M x K", "layout_b": "ND, K x N", "presplit": s.presplit, "programs": programs,
        "band": s.swizzle.offset, "cores": s.used_cores, "placement": s.placement(),
        "workspace_bytes": {x: 2 * form.words[0] * size for x, size in sizes.items() if x not in s.presplit},
        "launches": 3 - len(s.presplit), "written_for": f"triton-ascend {TRITON_ASCEND}",
        "source_sha256": hashlib.sha256(text.encode()).hexdigest(), "predicted_us": 1e6 * simulate(s).seconds,
        "predicted_for": "words in NZ, one launch",
    }  # fmt: skip
