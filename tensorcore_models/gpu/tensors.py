"""Runs `gemm`, `gemm_bits`, `mma` and `mma_bits` of engines on torch tensors of a GPU.

Chains of plain operands stay on the device. For steps that the host decides (other orders of k, scales outside of the unit,
roundings of operands, alpha and beta), the engine works on the host and runs each of its chains on the device; the bits are the
same. torch is not imported before a tensor comes.
"""

import copy
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..formats.interop import as_array
from ..kernels import batch_bits, lowered
from .launches import TritonLaunch
from .modes import plan_of
from .products import UnitRun, unit_on
from .targets import TARGETS, KernelTarget
from .tiles import FASTEST, UnitTile

#: Number of multiply-adds below which a chain that the host asks for runs on the host.
WORTH_DEVICE = 1 << 20
#: Units for which the warning was given that the CPU computes some of their tiles.
_SAID: set[str] = set()
_DTYPES = {
    "fp64": "float64", "fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz", "s8": "int8", "u8": "uint8",
    "s32": "int32",
}  # fmt: skip


class ComputedOnCPU(RuntimeWarning):
    """`ComputedOnCPU` warns that tiles of a product left the domain of its mode, so that the CPU computed them."""


@dataclass(frozen=True)
class GPU:
    """`GPU` is a device on which tensors are multiplied.

    Attributes
    ----------
    target : KernelTarget
    launch : callable
        Function that runs a TritonLaunch.
    warps, each : (int, int) or None
        Warps of a block and outputs of a thread, down and across; None: the fastest ones timed
        (:data:`tensorcore_models.gpu.tiles.FASTEST`), or else the mode's.
    """

    target: KernelTarget
    launch: Callable[[TritonLaunch], None]
    warps: tuple[int, int] | None = None
    each: tuple[int, int] | None = None

    def tile(self, unit: str) -> dict[str, tuple[int, int]]:
        """Return the warps and outputs of a thread for a unit, if they are not the mode's."""
        known = FASTEST.get((unit, self.target.name))
        chosen = {
            "warps": self.warps or (known and known.warps), "each": self.each or (known and known.each),
        }  # fmt: skip
        return {name: value for name, value in chosen.items() if value}


def is_tensor(x: Any) -> bool:
    """Return whether an object is a torch tensor; false before torch has been imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def on_gpu(*operands: Any) -> bool:
    """Return whether the first operand is a torch tensor that is not on the CPU."""
    return is_tensor(operands[0]) and operands[0].device.type != "cpu"


def gpu_of(tensor: Any) -> GPU:
    """Return the GPU of a tensor.

    Raises
    ------
    ValueError
        If no target describes it; the message lists the known targets.
    ImportError
        If Triton is not installed.
    """
    import torch

    from .compiling import triton_module

    device = tensor.device
    if device.type != "cuda":
        raise ValueError(
            f"units run on cuda (or HIP) devices and on the CPU, but the tensor is on {device}: move the tensor by .cpu()"
        )
    if torch.version.hip:
        name = torch.cuda.get_device_properties(device).gcnArchName.partition(":")[0]
    else:
        name = "sm_{}{}".format(*torch.cuda.get_device_capability(device))
    if name not in TARGETS:
        raise ValueError(
            f"{device} is {name}, for which no kernel has been checked: use one of {', '.join(TARGETS)}, or "
            "move tensors by .cpu()"
        )
    triton_module()
    return GPU(TARGETS[name], partial(launch_on, device))


def launch_on(device: Any, what: TritonLaunch) -> None:
    """Run a launch on a torch device; Triton compiles it at the first launch of its kind."""
    import torch

    from .compiling import unit_kernel
    from .launches import View

    arguments = {key: x.data if isinstance(x, View) else x for key, x in what.arguments.items()}
    with torch.cuda.device(device):
        unit_kernel(what.function)[(what.grid,)](
            **arguments, **what.constants, **what.options, num_warps=what.warps, num_stages=what.stages
        )


# -- products ------------------------------------------------------------------------------------------------------------------
def run_bits(
    engine: Any,
    a: Any,
    b: Any,
    c: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    *,
    promote_every: int | None = None,
    tile: UnitTile | None = None,
) -> UnitRun:
    """Return D = A B + C for encodings on a GPU, with the tiles that were computed again.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
    a, b, c : Tensor
        Encodings as integers, shapes (batch, m, k), (batch, k, n), (batch, m, n); k is padded with zeros to whole k steps.
    scale_a, scale_b : Tensor, optional
        Encodings of block scales, shapes (batch, m, blocks), (batch, blocks, n).
    promote_every : int, optional
        See :meth:`tensorcore_models.Instruction.gemm_bits`.
    tile : UnitTile, optional
        Tile instead of the GPU's tile for the unit; it changes no bit.

    Returns
    -------
    tensorcore_models.gpu.products.UnitRun
        `bits`, the tiles that left the mode's domain, the units that computed them again, and those that the CPU computed
        (`on_cpu`).

    Raises
    ------
    ValueError
        If no mode holds the unit on this device; the message names the CPU kernel that runs it.
    """
    gpu, low = gpu_of(a), lowered(engine)
    how = gpu.tile(engine.label) if tile is None else tile._asdict()
    unit = unit_on(low, gpu.target, gpu.launch, engine.label, **how)
    done = unit.run(a, b, c, promote_every, (scale_a, scale_b))
    if done.on_cpu and engine.label not in _SAID:
        _SAID.add(engine.label)
        warnings.warn(
            f"{engine.label}: {len(done.on_cpu)} of {done.tiles} tiles left the domain of {done.mode!r} and were computed on "
            "the CPU, which is slow if there are many; tensorcore_models.gpu.tensors.run_bits names them (`on_cpu`). "
            "This warning comes once for a unit",
            ComputedOnCPU,
            stacklevel=2,
        )
    return done


def gemm_bits(engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, options: dict[str, Any]) -> Any:
    """Compute :meth:`Engine.gemm_bits` for tensors on a GPU, on that GPU."""
    low = lowered(engine)
    a, b = _codes(a, low.a_format, "a"), _codes(b, low.b_format, "b")
    c = None if c is None else _codes(c, low.c_format, "c")
    if scale_a is None and scale_b is None and _plain(engine, a, options):
        d = _shaped(engine, a, b, c, options["promote_every"])
    else:
        d = _tensor(
            chained_there(engine, a).gemm_bits(*map(_host_bits, (a, b, c, scale_a, scale_b)), **options), a.device
        )
    return d.view(getattr(sys.modules["torch"], f"uint{8 * d.element_size()}"))


def gemm(engine: Any, a: Any, b: Any, c: Any, ends: dict[str, Any], options: dict[str, Any]) -> Any:
    """Compute :meth:`Engine.gemm` for tensors on a GPU, on that GPU.

    `ends` has alpha, beta, scales and roundings of operands.
    """
    import torch

    low = lowered(engine)
    ends_are_plain = (
        ends["alpha"] == ends["beta"] == 1 and ends["scale_a"] is ends["scale_b"] is None and not ends["input_saturate"]
    )
    x, y, z = _held(engine, a, b, c)
    held = all(x is not None or given is None for x, given in zip((x, y, z), (a, b, c), strict=True))
    if ends_are_plain and held and _plain(engine, a, options):
        d = _shaped(engine, x, y, z, options["promote_every"])
        return d.view(getattr(torch, _DTYPES[low.d_format.name]))
    if a.dim() > 2:
        left, right = (x.expand(*a.shape[:-2], *x.shape[-2:]) for x in (a, b))
        added = None if c is None else c.expand(*a.shape[:-2], *c.shape[-2:])
        parts = [(left[i], right[i], None if added is None else added[i]) for i in range(len(a))]
        return torch.stack([gemm(engine, x, y, z, ends, options) for x, y, z in parts])
    host = [None if x is None else as_array(x.detach().cpu() if is_tensor(x) else x) for x in (a, b, c)]
    scales = {key: x.cpu() if is_tensor(x) else x for key, x in ends.items()}
    return _tensor(chained_there(engine, a).gemm(*host, **scales, **options), a.device)


def mma_bits(engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any, input_scale: int) -> Any:
    """Compute :meth:`Instruction.mma_bits` for tensors on a GPU, on that GPU."""
    low = lowered(engine)
    a, b, c = (_codes(x, fmt, name) for x, fmt, name in zip((a, b, c), engine.formats, "abc", strict=False))
    _check_tile(engine, a, b, c)
    if scale_a is not None or scale_b is not None or input_scale != 0:
        host = map(_host_bits, (a, b, c, scale_a, scale_b))
        d = _tensor(engine.mma_bits(*host, input_scale=input_scale), a.device)
    else:
        d = _shaped(engine, a, b, c, None)
    return d.view(getattr(sys.modules["torch"], f"uint{low.d_format.container.itemsize * 8}"))


def mma(engine: Any, a: Any, b: Any, c: Any, scale_a: Any, scale_b: Any) -> Any:
    """Compute :meth:`Instruction.mma` for tensors on a GPU, on that GPU."""
    _check_tile(engine, a, b, c)
    options = {"k_order": "sequential", "promote_every": None, "promote_rounding": "rne"}
    ends = dict.fromkeys(("scale_a", "scale_b", "input_rounding")) | {
        "alpha": 1.0,
        "beta": 1.0,
        "input_saturate": False,
    }
    if scale_a is None and scale_b is None and all(x is not None for x in _held(engine, a, b, c)):
        return gemm(engine, a, b, c, ends, options)
    host = [
        None if x is None else as_array(x.detach().cpu() if is_tensor(x) else x) for x in (a, b, c, scale_a, scale_b)
    ]
    return _tensor(engine.mma(*host), a.device)


def _check_tile(engine: Any, a: Any, b: Any, c: Any) -> None:
    """Raise ValueError unless the operands have the shapes of the instruction."""
    m, n, k = engine.m, engine.n, engine.k
    shapes = [tuple(x.shape) for x in (a, b, c)]
    lead = shapes[2][:-2]
    if shapes != [(*lead, m, k), (*lead, k, n), (*lead, m, n)]:
        raise ValueError(
            f"{engine}: a, b and c have shapes {', '.join(map(str, shapes))}, expected (..., {m}, {k}), (..., {k}, {n}) and "
            f"(..., {m}, {n}) with the leading dimensions {lead} of c"
        )


def _held(engine: Any, *operands: Any) -> list:
    """Return encodings of operands if their types hold the engine's formats; None for other types."""
    return [None if x is None else _own_codes(x, fmt) for x, fmt in zip(operands, engine.formats, strict=False)]


def _plain(engine: Any, a: Any, options: dict[str, Any]) -> bool:
    """Return whether the sum is one chain, or chains that the kernels add outside."""
    every = options["promote_every"]
    one = (
        type(options["k_order"]) is str and options["k_order"] == "sequential" and options["promote_rounding"] == "rne"
    )
    if not one or getattr(engine, "rollup", None) is not None or a.shape[-1] == 0 or a.dim() < 2:
        return False
    low = lowered(engine)
    if every is None:
        return True
    whole = isinstance(every, int) and not isinstance(every, bool) and every >= 1 and every % engine.k == 0
    plan = plan_of(low, gpu_of(a).target.name, engine.label)
    return whole and plan.groups is None and plan.types == ("fp32", "fp32") and every % plan.terms == 0


def _shaped(engine: Any, a: Any, b: Any, c: Any, every: int | None) -> Any:
    """Return encodings of D, as signed integers, for operands with any leading dimensions, which are broadcast."""
    import torch

    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}, expected as many columns of a as rows of b"
        )
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-1])
    if c is not None and tuple(c.shape) != shape:
        raise ValueError(
            f"c has shape {tuple(c.shape)}, expected {shape} for a of shape {tuple(a.shape)} and b of shape {tuple(b.shape)}"
        )
    if 0 in shape:
        return torch.empty(shape, dtype=_signed(lowered(engine).d_format.container.itemsize), device=a.device)
    size = math.prod(lead)
    a, b = (x.expand(*lead, *x.shape[-2:]).reshape(size, *x.shape[-2:]) for x in (a, b))
    c = None if c is None else c.reshape(size, *c.shape[-2:])
    pad = -a.shape[-1] % engine.k
    if pad and not engine.accumulator.idle(engine.formats):
        a, b = torch.nn.functional.pad(a, (0, pad)), torch.nn.functional.pad(b, (0, 0, 0, pad))
    return run_bits(engine, a, b, c, promote_every=every).bits.reshape(shape)


# -- encodings -----------------------------------------------------------------------------------------------------------------
def _signed(size: int) -> Any:
    return getattr(sys.modules["torch"], f"int{8 * size}")


def _codes(x: Any, fmt: Any, name: str) -> Any:
    """Return encodings as signed integers of the format's size."""
    size = fmt.container.itemsize
    if not is_tensor(x) or x.dtype.is_floating_point or x.element_size() != size:
        kind = x.dtype if is_tensor(x) else type(x).__name__
        raise TypeError(
            f"{name}: encodings of {fmt.name} must be a tensor of uint{8 * size} or int{8 * size}, got {kind}"
        )
    x = x.view(_signed(size))
    if fmt.bits < 8 * size and bool((x & ~((1 << fmt.bits) - 1)).any()):
        raise ValueError(
            f"{name}: got elements with nonzero high bits, expected {fmt.bits}-bit encodings of {fmt.name} with high bits 0"
        )
    return x


def _own_codes(x: Any, fmt: Any) -> Any:
    """Return encodings of a tensor whose type already holds the format, as signed integers; None for other types."""
    if not is_tensor(x) or fmt is None or str(x.dtype) != f"torch.{_DTYPES.get(fmt.name)}":
        return None
    codes = x.detach().view(_signed(fmt.container.itemsize))
    if fmt.padding_bits and bool((codes & ((1 << fmt.padding_bits) - 1)).any()):
        return None
    return codes


def _host_bits(x: Any) -> Any:
    if x is None:
        return None
    array = x.cpu().numpy() if is_tensor(x) else np.asarray(x)
    return array if array.dtype.kind == "u" else array.view(array.dtype.str.replace("i", "u"))


def _tensor(array: np.ndarray, device: Any) -> Any:
    """Return a result on the device; types of ml_dtypes become torch types."""
    import torch

    fmt = array.dtype.name
    carried = array if array.dtype.kind in "iuf" else array.view(f"i{array.dtype.itemsize}")
    found = torch.from_numpy(np.ascontiguousarray(carried)).to(device)
    return found if array.dtype.kind in "iuf" else found.view(getattr(torch, fmt))


def chained_there(engine: Any, tensor: Any) -> Any:
    """Return an engine for arrays whose long chains run on a GPU.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
    tensor : Tensor
        Tensor on that GPU.

    Raises
    ------
    ValueError
        If no mode holds the unit there; the message names the CPU kernel that runs it.
    """
    low, like = lowered(engine), copy.copy(engine)
    plan_of(low, gpu_of(tensor).target.name, engine.label)

    def chain(a, b, c, scale_a, scale_b):
        given = (a, b, c, scale_a, scale_b)
        if a.size * b.shape[1] < WORTH_DEVICE:
            return batch_bits(low, *(None if x is None else x[None] for x in given))[0]
        codes = [
            None if x is None else _tensor(np.array(x).view(f"i{x.dtype.itemsize}"), tensor.device)[None] for x in given
        ]
        return _host_bits(run_bits(engine, *codes).bits[0]).view(low.d_format.container)

    def none(*arguments):
        return None

    for name, method in (("_chain_bits", chain), ("_small_product", none), ("_promoted_bits", none)):
        object.__setattr__(like, name, method)
    return like
