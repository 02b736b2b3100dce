"""Writes a plan for Ascend as one Triton file: kernels (:mod:`mpgemm.kernels.planned_source`), constants, and a host function.

A program computes one tile of C with all terms in one pass over k; A and B are split into planes of words before. So the plan
has the mode "fused", whole tiles that go to cores one by one in bands of rows, one slice and one group of k, and blocks of
powers of two, which tl.arange requires. Tests compile the kernels with triton-ascend, and run them compiled for another target.
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

#: Number of elements of a row that a program splits.
SPLIT_BLOCK = 256
_HOST = '''

# -- the plan and its host ----------------------------------------------------------------------------------------------------
import torch

#: {sentence}
M, N, K = {m}, {n}, {k}
PROGRAMS = {programs}
GEMM = {gemm}
#: Number of elements of a row that a program splits.
SPLIT_BLOCK = {split_block}
#: Operands that the caller gives as planes of words.
PRESPLIT = {presplit!r}
#: The compiler must not contract products and additions.
OPTIONS = {{"enable_fp_fusion": False}}


def split(x):
    """Return the words of an FP32 matrix as FP16, shape ({words}, rows, columns)."""
    rows, columns = x.shape
    out = torch.empty(({words}, rows, columns), dtype=torch.float16, device=x.device)
    programs = rows * triton.cdiv(columns, SPLIT_BLOCK)
    split_words[(programs,)](
        x, out, rows, columns, x.stride(0), x.stride(1), rows * columns, BLOCK=SPLIT_BLOCK, **OPTIONS
    )
    return out


def multiply(a, b):
    """Return C = A B in FP32; a (M x K) and b (K x N) are FP32 of any strides, or planes of words if PRESPLIT names them."""
    operands = []
    for side, (x, shape) in enumerate(((a, (M, K)), (b, (K, N)))):
        ready = "ab"[side] in PRESPLIT
        expected = ({words}, *shape) if ready else shape
        type = torch.float16 if ready else torch.float32
        if tuple(x.shape) != expected or x.dtype != type:
            raise ValueError(f"{{'ab'[side]}} is {{tuple(x.shape)}} of {{x.dtype}}, expected {{expected}} of {{type}}")
        operands.append(x if ready else split(x))
    x, y = operands
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    gemm[(PROGRAMS,)](
        x, y, c, x.stride(1), x.stride(2), x.stride(0), y.stride(1), y.stride(2), y.stride(0), **GEMM, **OPTIONS
    )
    return c
'''


def check_triton(s: Kernel) -> None:
    """Refuse a schedule that the Triton kernel cannot express; the ValueError says which part, and what to take instead."""
    check_dialect("triton", s.placed_on)
    if not s.on_cube or s.terms == 1 or s.operand != "fp16":
        raise ValueError(
            f"this plan has {s.terms} product(s) of {s.operand} words on the {'cube' if s.on_cube else 'vector units'}, "
            "expected two or more products of fp16 words on the cube for the Triton kernel: give --terms 3, or --emit pto"
        )
    if s.mode not in DIALECTS["triton"].modes:
        raise ValueError(
            f"this plan has mode {s.mode}, expected {' or '.join(DIALECTS['triton'].modes)}, because the Triton kernel adds "
            "all products of words in one pass over k: give --mode fused"
        )
    b = s.blocking
    if wrong := [size for size in (b.bm, b.bk, b.bn) if size & (size - 1)]:
        near = ", ".join(
            f"{below} or {2 * below} for {size}" for size in wrong for below in [1 << size.bit_length() - 1]
        )
        raise ValueError(
            f"this plan has the block {b}, expected sizes that are powers of two, as Triton needs: give --block with {near}, "
            "or leave --block out"
        )
    if not is_said_by(s, "triton"):
        raise ValueError(
            f"the plan's placement is {s.placement()}, with {len(s.k_slices)} slice(s) of k and {s.groups} group(s) each, "
            "expected whole "
            "tiles over all of k in bands of rows, one tile in each program of the Triton kernel: plan with --for triton "
            "--split 1"
        )


def planned_method(s: Kernel) -> RecoveryMethod:
    """Return the row of :func:`mpgemm.recovered_gemm` that the kernel of a plan computes."""
    return kernel_method("sgemm_cube", terms=s.terms)


def _constants(s: Kernel) -> dict[str, int]:
    """Return the constants with which `gemm` is compiled."""
    b = s.blocking
    return {"M": s.m, "N": s.n, "K": s.k, "BM": b.bm, "BN": b.bn, "BK": b.bk, "BAND": s.swizzle.offset}


def triton_files(s: Kernel) -> dict[str, str | dict]:
    """Return the files of a plan's Triton kernel: a dict from name to text, or to data for JSON.

    Parameters
    ----------
    s : Kernel
        Plan of three or four terms of fp16 in one pass over k.

    Raises
    ------
    ValueError
        If the kernel cannot express the schedule.
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
