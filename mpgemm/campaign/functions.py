"""This module records special functions and conversions of a GPU, and compares them with the models.

For each of :data:`FUNCTIONS` the recording has ``hash/NAME``, 65,536 hashes, one for each block of 2^16 inputs with
equal high halves (:mod:`tensorcore_models.functions.hashes`), so that a model is compared over 2^32 inputs without
their results. ``small/NAME`` holds all results of functions of 16 bits, ``small/two.a`` and ``small/two.b`` pairs of
operands, and ``small/div...`` their quotients.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

import tensorcore_models as tcm
from mpgemm.campaign import function_kernels
from mpgemm.campaign.folder import keep_arrays, kept_arrays
from mpgemm.campaign.tasks import Task
from mpgemm.campaign.work import Work
from tensorcore_models.functions.hashes import BLOCKS, block_hash, block_operands

#: Number of inputs in a block.
BLOCK = 1 << 16
#: Inputs of one program of a launch at a time, and blocks of a launch.
LANES, BLOCKS_AT_ONCE = 1024, 1 << 13
#: Number of pairs of operands for divisions.
PAIRS = 1 << 17


class FunctionModel(Protocol):
    """`FunctionModel` is a model of a function, which returns the results of encodings."""

    def bits(self, *operands: Any) -> np.ndarray:
        """Return the encodings of the results."""
        ...


#: Suffix of the names of functions of the high word of an FP64 number.
_HIGH = ".hi"


@dataclass(frozen=True)
class PTXFunction:
    """`PTXFunction` is an instruction of PTX that is recorded.

    Attributes
    ----------
    name : str
    asm : str
        Text of the instruction; $0 stands for 32 bits of the result, $1 and $2 for those of operands.
    operands : int
    narrow : bool
        Whether the instruction computes two numbers of 16 bits.
    before : tuple of int
        Operands that precede those of the text.
    """

    name: str
    asm: str
    operands: int = 1
    narrow: bool = False
    before: tuple[int, ...] = ()

    @property
    def instruction(self) -> str:
        """Return PTX's name of the instruction, as the models have it."""
        return self.name.removesuffix(_HIGH)


def _plain(name: str, **more) -> PTXFunction:
    places = ", ".join(f"${place}" for place in range(1 + more.get("operands", 1)))
    return PTXFunction(name, f"{name} {places};", **more)


def _to_half(name: str) -> PTXFunction:
    return PTXFunction(name, f"{{ .reg .b16 half; {name} half, $1; cvt.u32.u16 $0, half; }}")


def _to_bytes(name: str) -> PTXFunction:
    text = (
        f"{{ .reg .b16 both; .reg .f32 zero; mov.f32 zero, 0f00000000; {name} both, zero, $1; cvt.u32.u16 $0, both; }}"
    )
    return PTXFunction(name, text, before=(0,))


def _of_high_word(name: str) -> PTXFunction:
    text = (
        f"{{ .reg .f64 x, y; .reg .b32 low, none; mov.b32 none, 0; mov.b64 x, {{none, $1}}; {name} y, x; "
        "mov.b64 {low, $0}, y; }"
    )
    return PTXFunction(name + _HIGH, text)


#: Sections of the PTX ISA: "Floating Point Instructions", "Half Precision Floating Point Instructions", "cvt".
FUNCTIONS = (
    *map(_plain, (
        "ex2.approx.ftz.f32", "ex2.approx.f32", "lg2.approx.ftz.f32", "lg2.approx.f32", "rcp.approx.ftz.f32", "rcp.approx.f32",
        "rsqrt.approx.ftz.f32", "rsqrt.approx.f32", "sqrt.approx.ftz.f32", "sqrt.approx.f32", "sin.approx.ftz.f32",
        "cos.approx.ftz.f32", "tanh.approx.f32", "cvt.rna.tf32.f32",
    )),
    *map(_to_half, ("cvt.rn.f16.f32", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32", "cvt.rz.f16.f32")),
    *map(_to_bytes, ("cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e5m2x2.f32")),
    *(_plain(name, narrow=True) for name in (
        "ex2.approx.f16x2", "ex2.approx.ftz.bf16x2", "tanh.approx.f16x2", "tanh.approx.bf16x2",
    )),
    *map(_of_high_word, ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64")),
    *(_plain(name, operands=2) for name in ("div.full.f32", "div.approx.ftz.f32", "div.approx.f32")),
)  # fmt: skip


# -- on the device -----------------------------------------------------------------------------------------------------------
def hashed(device: torch.device, function: PTXFunction) -> np.ndarray:
    """Return the hashes of all blocks, computed on the device."""
    out = torch.empty(BLOCKS, dtype=torch.int64, device=device)
    for first in range(0, BLOCKS, BLOCKS_AT_ONCE):
        count = min(BLOCKS_AT_ONCE, BLOCKS - first)
        part = out[first : first + count]
        function_kernels.hash_blocks[(count,)](part, first, function.asm, LANES, BLOCK // LANES, enable_fp_fusion=False)
    return out.cpu().numpy().view(np.uint64)


def results(device: torch.device, function: PTXFunction, *operands: np.ndarray) -> np.ndarray:
    """Return the results of 32-bit encodings, whose number is a multiple of the lanes of a program."""
    x, y = (torch.from_numpy(o.view(np.int32)).to(device) for o in (operands[0], operands[-1]))
    out = torch.empty_like(x)
    kernel = function_kernels.results_of_two if function.operands == 2 else function_kernels.results_of
    kernel[(x.numel() // LANES,)](x, y, out, function.asm, LANES, enable_fp_fusion=False)
    return out.cpu().numpy().view(np.uint32)


def operand_pairs() -> tuple[np.ndarray, np.ndarray]:
    """Return operands of divisions: one half with exponents around 1, the other half any encodings."""
    rng, half = np.random.default_rng(7), PAIRS // 2
    pairs = []
    for _ in range(2):
        bits = rng.integers(0, 1 << 32, PAIRS, dtype=np.uint64).astype(np.uint32)
        near = rng.integers(100, 150, half, dtype=np.uint64).astype(np.uint32) << np.uint32(23)
        bits[:half] = (bits[:half] & np.uint32(0x807FFFFF)) | near
        pairs.append(bits)
    return pairs[0], pairs[1]


# -- tasks -------------------------------------------------------------------------------------------------------------------
def recorded(device: torch.device, folder: Path, part: str, function: PTXFunction) -> dict[str, int]:
    """Record a function."""
    name = function.name
    if function.operands == 2:
        a, b = operand_pairs()
        arrays = {"small/two.a": a, "small/two.b": b, f"small/{name}": results(device, function, a, b)}
    else:
        arrays = {f"hash/{name}": hashed(device, function)}
        if function.narrow:
            found = results(device, function, np.arange(1 << 16, dtype=np.uint32))
            arrays[f"small/{name}"] = found.astype(np.uint16)
    keep_arrays(folder, part, name, arrays)
    return {"inputs": PAIRS if function.operands == 2 else BLOCKS * BLOCK}


def model_of(arch: str, function: PTXFunction) -> FunctionModel | None:
    """Return the model of a function, or None if the architecture has none."""
    known = {row.name: row for row in tcm.list_functions(arch)}
    return known.get(function.instruction)


def is_on(arch: str, function: PTXFunction) -> bool:
    """Return whether an architecture has a function according to the models; functions without a model are tried everywhere."""
    having = {row.arch for row in tcm.list_functions() if row.name == function.instruction}
    return not having or arch in having


def compared(
    folder: Path, part: str, function: PTXFunction, model: FunctionModel, seconds: float, clock=time.monotonic
) -> dict[str, Any]:
    """Return the part of the recording that a model misses.

    It compares pairs of operands, or blocks in an order that samples the domain, until the time is over.
    """
    arrays = kept_arrays(folder, part, function.name)
    if not arrays:
        raise ValueError(f"{folder} holds no recording of {function.name}: record the function before you compare it")
    if function.operands == 2:
        found = np.asarray(model.bits(arrays["small/two.a"], arrays["small/two.b"]))
        return {"inputs": found.size, "differ": int(np.count_nonzero(found != arrays[f"small/{function.name}"]))}
    hashes = arrays[f"hash/{function.name}"]
    end, done, wrong = clock() + seconds, 0, []
    for block in np.random.default_rng(3).permutation(len(hashes)).tolist():
        if done and clock() >= end:
            break
        done += 1
        if block_hash(model.bits(*function.before, block_operands(block))) != int(hashes[block]):
            wrong.append(block)
    row: dict[str, Any] = {"blocks": done, "inputs": done * BLOCK, "differ": len(wrong)}
    return row | ({"first": f"inputs {wrong[0]:#06x}0000 to {wrong[0]:#06x}ffff"} if wrong else {})


def tasks(
    device: torch.device, folder: Path, part: str, arch: str, seconds: float,
    models: Callable[[str, PTXFunction], FunctionModel | None] = model_of,
) -> Iterator[Task]:  # fmt: skip
    """Yield each function's recording, then the comparison of each model."""
    there = [function for function in FUNCTIONS if is_on(arch, function)]
    for function in there:
        yield {"function": function.name, "what": "recorded"}, partial(recorded, device, folder, part, function)
    having = [(function, model) for function in there if (model := models(arch, function)) is not None]
    for function, model in having:
        each = partial(compared, folder, part, function, model, seconds / len(having))
        yield {"function": function.name, "what": "beside its model"}, each


def run(work: Work) -> None:
    """Run the part; half of the time is for models."""
    device = work.device
    work.carry_out(tasks(device.tensors, work.folder, work.part, device.arch, work.seconds / 2))
