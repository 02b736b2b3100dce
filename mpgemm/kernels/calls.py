"""Calls that cost the host little: plans that users keep, and those that matmul keeps for calls it has seen."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from mpgemm.kernels import devices
from mpgemm.kernels.compiling import compile_launch
from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.devices import TENSOR_TYPES
from mpgemm.kernels.epilogues import FusedEpilogue
from mpgemm.kernels.plans import PlannedProduct, ProductPlan, TensorPlan
from mpgemm.kernels.products import OPERANDS, TYPES, TensorProduct, plan_of, strides_of
from mpgemm.kernels.recipes import DEFAULT, recipe_for, spelled
from mpgemm.kernels.residues import RESIDUES
from mpgemm.recovery.method import RecoveryMethod
from tensorcore_models.gpu.compiling import TargetKernel
from tensorcore_models.gpu.targets import KernelTarget, get_target

#: How A and B are stored: "n" in rows, "t" in columns.
LAYOUTS = ("nn", "nt", "tn", "tt")
#: What a result may be.
RESULT_TYPES = OPERANDS


# -- calls that matmul has seen ----------------------------------------------------------------------------------------------
def call_key(a, b, out, c, bias, asked: tuple, options: dict) -> tuple | None:
    """Return the key of a call's checks and plan; None for calls that are not kept: on CPUs, with gradients, in a trace,
    of operands that were split, of tiles that are timed, and where the result shares memory with what is read."""
    if type(a) is not torch.Tensor or type(b) is not torch.Tensor or any(type(x) not in _KEYS for x in asked):
        return None
    if "tune" in asked:
        return None
    device = a.device
    if device.type == "cpu" and devices.device_target(device) is None:
        return None
    if (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack()
    ):
        return None
    tensors = [x for x in (a, b, c, out, bias) if x is not None]
    if any(type(x) is not torch.Tensor or x.layout != torch.strided or x.device != device for x in tensors):
        return None
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return None
    if out is not None:
        place = out.untyped_storage().data_ptr()
        if any(x is not out and x.untyped_storage().data_ptr() == place for x in tensors):
            return None
    described = [(x.shape, x.stride(), x.dtype) for x in tensors]
    return (device, out is None, c is None, c is out, bias is None, *described, *asked, *sorted(options.items()))


#: Types of what a call asks for, beside tensors; calls with others are checked anew.
_KEYS = (type(None), str, float, int, bool, Configuration, RecoveryMethod, torch.dtype)


class KnownCall:
    """A call of matmul whose operands passed the checks, ready to be repeated.

    Parameters
    ----------
    product : TensorProduct
        Without gradients, on a device; `out` is written there.
    shape : tuple of int
        Of the result.
    """

    def __init__(self, product: TensorProduct, shape: tuple[int, ...]):
        self._shape = shape
        self._dtype = TENSOR_TYPES[product.epilogue.result]
        out = product.a.new_empty((product.sizes[0], product.sizes[1], product.sizes[2]), dtype=self._dtype)
        self._plan = plan_of(product.planned(out, product.configuration), product.a.device)
        self._repaired, self._added = product.row.repair == "fp32", product.c is not None and product.beta != 0

    def __call__(
        self, a: Any, b: Any, out: torch.Tensor | None, c: torch.Tensor | None, bias: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the product of tensors of the call's shapes, strides and types."""
        result = torch.empty(self._shape, dtype=self._dtype, device=a.device) if out is None else out
        tensors = {"a": a, "b": b, "out": result}
        if bias is not None:
            tensors["bias"] = bias
        if self._added:
            assert c is not None
            # the repair reads C after the product has been written
            tensors["c"] = torch.clone(c) if c is out and self._repaired else c
        self._plan(tensors)
        return result


# -- plans that users keep ---------------------------------------------------------------------------------------------------
class MatmulPlan:
    """A product decided once; :func:`mpgemm.kernels.plan` makes it.

    ``plan(a, b, out=None, c=None, bias=None)`` gives the end of A B + C with the bits of :func:`mpgemm.kernels.matmul`, on the
    current stream of the device: one launch for the words of both operands, one for the product, one that adds parts of k
    where n and k ask for them, one that reads flags of tiles and repairs. Nothing is read back, so a CUDA graph can capture a
    call. Each stream has a workspace of its own, which the plan keeps: two graphs that were captured on one stream are not to
    be replayed at the same time.

    Attributes
    ----------
    target : KernelTarget
    tile : Configuration
    launches : tuple of TritonLaunch
        Of a product without C.
    workspace_bytes : int
        Bytes that the launches write for one another.
    """

    def __init__(self, product: PlannedProduct, device: torch.device | KernelTarget):
        self._product, self._device = product, device
        if isinstance(device, KernelTarget):
            self._plan = ProductPlan(product, device)
        else:
            self._plans = {(product.out, product.c): TensorPlan(product, device)}
            self._plan = self._plans[product.out, product.c].plan
        self.target, self.tile, self.launches = self._plan.target, self._plan.tile, self._plan.launches
        self.workspace_bytes = self._plan.workspace_bytes

    @cached_property
    def kernels(self) -> tuple[TargetKernel, ...]:
        """The launches compiled for the target, as texts."""
        return tuple(compile_launch(launch, self.target, aligned=True) for launch in self.launches)

    def __repr__(self) -> str:
        p, (batch, m, n, k) = self._product, self._product.sizes
        names = ", ".join(launch.function for launch in self.launches)
        return f"MatmulPlan({p.row.name}, {batch} x {m} x {n} x {k}, {self.target.name}, {self.tile}: {names})"

    def __call__(
        self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None, c: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return the end of A B + C.

        Parameters
        ----------
        a, b : Tensor
            Of the plan's shapes, types, strides and device.
        out : Tensor of the plan's `out_dtype`, optional
            Where the result goes; it may be c, and shares no memory with a and b.
        c : Tensor of float32, optional
            What is added, broadcast to the result. The first call with C compiles its kernels.
        bias : Tensor of float32, shape (n,) or (m,), optional
            Given if, and only if, the plan has one.

        Raises
        ------
        ValueError, TypeError
            If the plan has no device, or a tensor is not what was planned; the message says what to call.
        """
        if isinstance(self._device, KernelTarget):
            raise ValueError(
                f"this plan was compiled for {self.target.name} without a device: kernels.plan(..., device=a.device) runs"
            )
        batch, m, n, k = self._product.sizes
        shape = (m, n) if a.dim() == 2 and batch == 1 else (batch, m, n)
        for side, (x, lines, columns) in enumerate(((a, m, k), (b, k, n))):
            self._check_operand(x, side, (*shape[:-2], lines, columns))
        added = None if c is None or self._product.beta == 0 else _checked_end(c, "c", a).expand(shape)
        kind = TENSOR_TYPES[self._product.epilogue.result]
        result = torch.empty(shape, dtype=kind, device=a.device) if out is None else _checked_end(out, "out", a, kind)
        if result.shape != shape:
            raise ValueError(f"out is {tuple(result.shape)}, the result {tuple(shape)}")
        if out is not None:
            place = out.untyped_storage().data_ptr()
            if any(x is not None and x is not out and x.untyped_storage().data_ptr() == place for x in (a, b, c, bias)):
                raise ValueError(
                    "out shares memory with an operand: leave it out, or call kernels.matmul, which copies"
                )
        tensors = {"a": a, "b": b, "out": result}
        if bias is not None or self._product.epilogue.bias is not None:
            tensors["bias"] = self._checked_bias(bias, a)
        if added is not None:
            same = c is out and self._product.row.repair == "fp32"
            tensors["c"] = added.clone() if same else added
        self._for(result, tensors.get("c"))(tensors, keep=True)
        return result

    def _check_operand(self, x: torch.Tensor, side: int, shape: tuple[int, ...]) -> None:
        p, name = self._product, "ab"[side]
        if not isinstance(x, torch.Tensor):
            raise TypeError(
                f"{name} is a {type(x).__name__}, a plan takes tensors: kernels.matmul takes operands that were split"
            )
        strides = p.strides[side][-x.dim() :] if x.dim() == 2 or p.sizes[0] > 1 else (x.stride(0), *p.strides[side][1:])
        found = (x.shape, TYPES.get(x.dtype), x.stride(), x.device)
        if found != (shape, p.types[side], strides, self._device):
            raise ValueError(
                f"{name} is {tuple(x.shape)} of {x.dtype} with strides {found[2]} on {x.device}; the plan is for {shape} of "
                f"{p.types[side]} with strides {tuple(strides)} on {self._device}: make a plan for it, or call "
                "kernels.matmul, which takes any"
            )
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(
                f"{name} asks for a gradient, which a plan does not give: call kernels.matmul, or use torch.no_grad()"
            )

    def _checked_bias(self, bias: torch.Tensor | None, a: torch.Tensor) -> torch.Tensor:
        side = self._product.epilogue.bias
        if side is None:
            raise ValueError("this plan has no bias: kernels.plan(..., bias='column') or 'row' makes one that has")
        if bias is None:
            raise ValueError(f"this plan adds a bias for each {side}: plan(a, b, bias=...)")
        size = self._product.sizes[1 if side == "row" else 2]
        if _checked_end(bias, "bias", a).shape != (size,) or not bias.is_contiguous():
            raise ValueError(
                f"bias is {tuple(bias.shape)}, the plan's has {size} elements, one for each {side}, no gaps"
            )
        return bias

    def _for(self, out: torch.Tensor, c: torch.Tensor | None) -> TensorPlan:
        """Return the plan for the strides of a result and of C."""
        if c is None and out.is_contiguous():
            return self._plans[self._product.out, None]
        key = _matrix_strides(out), None if c is None else _matrix_strides(c)
        if key not in self._plans:
            p = self._product
            changed = replace(p, out=key[0], c=key[1])
            assert isinstance(self._device, torch.device)
            self._plans[key] = TensorPlan(changed, self._device)
        return self._plans[key]


def _matrix_strides(x: torch.Tensor) -> tuple[int, int, int]:
    return strides_of(x if x.dim() == 3 else x[None])


def _checked_end(x: torch.Tensor, name: str, a: torch.Tensor, kind: torch.dtype = torch.float32) -> torch.Tensor:
    if not isinstance(x, torch.Tensor) or x.dtype != kind or x.layout != torch.strided or x.device != a.device:
        what = f"{x.dtype} on {x.device}" if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name} is {what}, expected a dense tensor of {kind} on {a.device}")
    return x


def plan(
    m: int,
    n: int,
    k: int,
    method: str | RecoveryMethod = DEFAULT,
    a_dtype: torch.dtype = torch.float32,
    b_dtype: torch.dtype = torch.float32,
    layout: str = "nn",
    device: torch.device | str = "cuda",
    *,
    batch: int = 1,
    alpha: float = 1.0,
    beta: float = 1.0,
    scale: str = "auto",
    repair: bool = True,
    config: Configuration | None = None,
    bias: str | None = None,
    activation: str | None = None,
    out_dtype: torch.dtype = torch.float32,
) -> MatmulPlan:
    """Decide a product once: form, words, tiles, compiled kernels, grid, descriptors, workspace.

    Parameters
    ----------
    m, n, k : int
        At least 1.
    method, alpha, beta, scale, repair, config
        As for :func:`mpgemm.kernels.matmul`.
    a_dtype, b_dtype : torch.dtype
        float32, bfloat16 or float16.
    layout : {"nn", "nt", "tn", "tt"}
        How A and B are stored, "n" in rows, "t" in columns, both without gaps: the plan takes a of shape (m, k) and b of shape
        (k, n), with "t" as transposed views.
    device : torch.device, or str
        A device of torch; or the name of a target, as "sm_90", for which the plan is compiled to be looked at.
    batch : int
        With more than one the plan takes (batch, m, k) and (batch, k, n).
    bias : {None, "column", "row"}
        Whether calls give a bias, a number of float32 for each column or each row, which all matrices of a batch share.
    activation, out_dtype
        As for :func:`mpgemm.kernels.matmul`.

    Returns
    -------
    MatmulPlan

    Raises
    ------
    ValueError
        If a size, the layout or the method does not fit, or the device is a CPU, where matmul simulates.

    Examples
    --------
    >>> from mpgemm import kernels
    >>> plan = kernels.plan(4096, 4096, 4096, "ootomo", device="sm_90")  # doctest: +SKIP
    >>> [launch.function for launch in plan.launches]  # doctest: +SKIP
    ['split_operands', 'word_product', 'repair']
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, expected one of {', '.join(LAYOUTS)}")
    for name, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} is {size!r}, expected an integer of at least 1")
    method = spelled(method, {})
    if method.partition(":")[0] == RESIDUES:
        raise ValueError(f"{method} has no plans: call kernels.matmul")
    for name, kind in (("a_dtype", a_dtype), ("b_dtype", b_dtype)):
        if kind not in OPERANDS:
            raise ValueError(f"{name} is {kind}, expected float32, bfloat16 or float16")
    row = recipe_for(n, k, method, scale, repair)
    if out_dtype not in RESULT_TYPES:
        raise ValueError(f"out_dtype is {out_dtype}, expected float32, bfloat16 or float16")
    epilogue = FusedEpilogue(bias, activation, TYPES[out_dtype])
    if row.name.startswith("bf16xfp32") and a_dtype != torch.bfloat16:
        raise ValueError(f"method {method} multiplies a BF16 a, a_dtype is {a_dtype}")
    target = _planned_for(device)

    def strides(stored: str, lines: int, columns: int) -> tuple[int, int, int]:
        return (0 if batch == 1 else lines * columns, *((columns, 1) if stored == "n" else (1, lines)))

    of_operands = strides(layout[0], m, k), strides(layout[1], k, n)
    asked: Any = {"alpha": float(alpha), "beta": float(beta), "tile": config, "epilogue": epilogue}
    product = PlannedProduct(
        row,
        (batch, m, n, k),
        (TYPES[a_dtype], TYPES[b_dtype]),
        of_operands,
        (0 if batch == 1 else m * n, n, 1),
        **asked,
    )
    return MatmulPlan(product, target)


def _planned_for(device) -> torch.device | KernelTarget:
    if isinstance(device, str) and device.startswith(("sm_", "gfx")):
        return get_target(device)
    found = torch.device(device)
    if devices.device_target(found) is None:
        raise ValueError(
            f"a plan runs on a GPU, the device is {found}: call kernels.matmul, which simulates on the CPU, or name a "
            "target, as device='sm_90'"
        )
    return torch.device("cuda", torch.cuda.current_device()) if found.type == "cuda" and found.index is None else found
