"""This module models `torch._scaled_mm` on FP8 operands with one scale per matrix (torch 2.7.1, cuBLASLt 12.8.3.14).

The authors of mmaemu 0.1.0 (PyPI, Apache-2.0, Xun Ding and contributors) measured the orders and the epilogue on an RTX 4060
and an H100 PCIe; this implementation is independent of theirs. The library chooses the number of parts of K and how they are
joined: record the choice (:mod:`tensorcore_models.libraries.recorded`) or give it.
"""

from dataclasses import dataclass

import numpy as np

from ..catalogue import get_instruction
from ..catalogue.nvidia import ptx_name
from ..formats import get_format, operand_format
from ..integers import integer_arguments
from ..machine.fp_state import default_fp_state
from ..orders.order import Chain, Order, Sum, merged
from .recipe import Epilogue, Recipe, Unknown, contiguous, folded_scale, joined

SOURCE = "order measured by the authors of mmaemu 0.1.0 (torch 2.7.1, cuBLASLt 12.8.3.14)"
EPILOGUE = Epilogue(adds_zero=True, saturates=True, formats=("fp32", "bf16", "fp16", "e4m3fn", "e5m2"))
FP8 = ("e4m3fn", "e5m2")


@dataclass(frozen=True)
class ScaledMatmul:
    """`ScaledMatmul` says in which order one GPU's FP8 kernels sum, in tiles of `tile` values of k.

    `instruction` has placeholders for the operand formats. Slow accumulation restarts from `slow_start` after `slow_tiles`
    tiles of a part. If `interleaved`, tile t belongs to part t mod S for S parts; else parts are contiguous ranges of tiles.
    `schemes` are the ways to join parts.
    """

    instruction: str
    tile: int
    slow_tiles: int
    interleaved: bool
    schemes: tuple[str, ...]
    slow_start: str = "zero"


#: Rows by device.
DEVICES = {
    "rtx4060": ScaledMatmul("mma.m16n8k32.f32.{a}.{b}.f32", 64, 2, True, ("serial", "pairwise")),
    "h100": ScaledMatmul("wgmma.m64n8k32.f32.{a}.{b}", 128, 1, False, ("serial",)),
}


def _fp8(name: str, argument: str) -> str:
    fmt = operand_format(name).name
    if fmt not in FP8:
        raise Unknown(
            f"{argument} {name!r} is not known", field=argument, known=FP8, advice="scaled_mm takes FP8 operands"
        )
    return fmt


def _split(tiles: tuple[range, ...], parts: int, row: ScaledMatmul) -> list[tuple[range, ...]]:
    """Return the tiles of each part; parts are left out if they have no tile and their +0 changes nothing."""
    held = min(parts, 2 * len(tiles) + 2)
    if row.interleaved:
        return [tiles[part::parts] for part in range(held)]
    own = -(-len(tiles) // parts)
    return [tiles[part * own : (part + 1) * own] for part in range(held)]


def pairwise(parts: list[Order]) -> Order:
    """Return the order of cuBLASLt's customOption 1 for S parts.

    Slot i adds parts i and i + h, h = ceil(S/2), without the last part. The sum starts with the last part and adds the slots.
    """
    last, half = len(parts) - 1, -(-len(parts) // 2)
    slots = [Sum((parts[i], parts[i + half])) if i + half < last else parts[i] for i in range(half)]
    return Sum((parts[last], *slots))


@integer_arguments("k", "split_k")
def scaled_mm_recipe(
    k: int,
    *,
    device: str = "rtx4060",
    a_format: str = "e4m3fn",
    b_format: str = "e4m3fn",
    fast_accumulation: bool = False,
    split_k: int = 1,
    scheme: str | None = None,
) -> Recipe:
    """Return the recipe of one `torch._scaled_mm` call.

    Parameters
    ----------
    k : int
        Length of the sum; torch takes multiples of 16.
    device : str
        GPU, a name of :data:`DEVICES`.
    a_format, b_format : str
        Operand formats, "e4m3fn" or "e5m2", but not both "e5m2".
    fast_accumulation : bool
        Value of torch's `use_fast_accum`.
    split_k : int
        Number of parts of K.
    scheme : str, optional
        Scheme by which parts are joined; needed if the device has several and split_k is above 1.

    Raises
    ------
    Unknown
        If the device, the formats or the scheme was not measured.
    ValueError
        If k is not a positive multiple of 16 or split_k is below 1.
    """
    row = DEVICES.get(device)
    if row is None:
        raise Unknown(
            f"scaled_mm on device {device!r} is not known", field="device", known=DEVICES,
            advice="Other GPUs may sum in another order: compare a recorded result with `mpgemm diff`",
        )  # fmt: skip
    a_format, b_format = _fp8(a_format, "a_format"), _fp8(b_format, "b_format")
    if a_format == b_format == "e5m2":
        raise Unknown(
            "b_format 'e5m2' with a_format 'e5m2' is not known: cuBLASLt has no such kernel",
            field="b_format",
            known=("e4m3fn",),
        )
    if k < 16 or k % 16:
        raise ValueError(f"k is {k!r}, expected a positive multiple of 16 for torch._scaled_mm: pad A and B with zeros")
    if split_k < 1:
        raise ValueError(f"split_k is {split_k!r}, expected a positive integer (the library's SPLITK_NUM)")
    scheme = None if scheme == "none" or split_k == 1 else scheme
    if split_k > 1:
        if scheme is None and len(row.schemes) == 1:
            scheme = row.schemes[0]
        if scheme not in row.schemes:
            raise Unknown(
                f"scheme {scheme!r} with split_k {split_k} on {device} is not known", field="scheme", known=row.schemes,
                advice="CUSTOM_OPTION 1 is pairwise, 0 and 2 are serial",
            )  # fmt: skip
    tiles = contiguous(0, int(k), row.tile)
    parts: list[Order] = []
    for own in _split(tiles, split_k, row):
        if fast_accumulation or not own:
            parts.append(Chain(tuple(merged(own))))
        else:
            blocks = [Chain(tuple(merged(own[i : i + row.slow_tiles]))) for i in range(0, len(own), row.slow_tiles)]
            parts.append(Sum(tuple(blocks), start=row.slow_start))
    order = pairwise(parts) if scheme == "pairwise" else joined(parts)
    engine = get_instruction(device, row.instruction.format(a=ptx_name(a_format), b=ptx_name(b_format)))
    speed = "fast" if fast_accumulation else "slow"
    name = f"torch._scaled_mm on {device}, {speed} accumulation, split_k {split_k}{f' {scheme}' if scheme else ''}"
    return Recipe(engine, int(k), order, EPILOGUE, name, SOURCE)


def _scalar(value, name: str) -> float:
    array = np.asarray(value)
    if array.size != 1:
        raise Unknown(
            f"{name} has {array.size} elements: scales for rows or blocks are not known", field=name,
            known=("one FP32 number",), advice="Multiply the result by them, or use one scale for each matrix",
        )  # fmt: skip
    return float(np.float32(array.reshape(())[()]))


@default_fp_state
def scaled_mm(
    a,
    b,
    scale_a=1.0,
    scale_b=1.0,
    *,
    device: str = "rtx4060",
    a_format: str = "e4m3fn",
    b_format: str = "e4m3fn",
    out_format: str = "bf16",
    fast_accumulation: bool = False,
    split_k: int = 1,
    scheme: str | None = None,
    scale_result=None,
) -> np.ndarray:
    """Return the result of `torch._scaled_mm(a, b, scale_a, scale_b)` as encodings, shape (m, n).

    Parameters
    ----------
    a, b : array of uint8
        Encodings of shapes (m, k) and (k, n).
    scale_a, scale_b : float
        FP32 factor of each matrix.
    out_format : str
        Output format: "fp32", "bf16", "fp16", "e4m3fn" or "e5m2".
    scale_result : float, optional
        Factor of the output, which is used for 8-bit outputs only.
    device, a_format, b_format, fast_accumulation, split_k, scheme
        See :func:`scaled_mm_recipe`.

    Raises
    ------
    Unknown
        If the case was not measured; the message names the field, its known values, and what to do.
    TypeError, ValueError
        If types or shapes are wrong.
    """
    a = np.asarray(a)
    if a.ndim != 2:
        raise ValueError(f"a has shape {a.shape}, expected (m, k)")
    recipe = scaled_mm_recipe(
        a.shape[1], device=device, a_format=a_format, b_format=b_format, fast_accumulation=fast_accumulation,
        split_k=split_k, scheme=scheme,
    )  # fmt: skip
    scale = folded_scale(_scalar(scale_a, "scale_a"), _scalar(scale_b, "scale_b"))
    used = None if scale_result is None or get_format(out_format).bits != 8 else _scalar(scale_result, "scale_result")
    return recipe.gemm_bits(a, b, out_format=out_format, scale=scale, scale_result=used)
