"""Makes calls cheap for the host: plans that users keep, and plans that matmul keeps for repeated calls."""

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

#: Layouts of A and B: "n" is stored by rows, "t" by columns.
LAYOUTS = ("nn", "nt", "tn", "tt")
#: Types that a result may have.
RESULT_TYPES = OPERANDS


# -- calls that matmul has seen ----------------------------------------------------------------------------------------------
def call_key(a, b, out, c, bias, asked: tuple, options: dict) -> tuple | None:
    """Return the key under which matmul keeps a call's checks and plan, or None for a call that is not kept.

    Not kept are calls on CPUs, with gradients, in a trace, with operands that were split, with tiles that are timed, and
    with a result that shares memory with another tensor.
    """
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


#: Types of arguments besides tensors that a key may hold; calls with other types are checked anew.
_KEYS = (type(None), str, float, int, bool, Configuration, RecoveryMethod, torch.dtype)


class KnownCall:
    """`KnownCall` is a call of matmul whose operands passed the checks, ready to be repeated.

    Parameters
    ----------
    product : TensorProduct
        Product without gradients, on a device.
    shape : tuple of int
        Shape of the result.
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
        """Return the product of tensors that have the call's shapes, strides and types."""
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
    """`MatmulPlan` is a product prepared once for many calls; :func:`mpgemm.kernels.plan` makes it.

    ``plan(a, b, out=None, c=None, bias=None)`` computes A B + C and the epilogue on the device's current stream, with the bits
    of :func:`mpgemm.kernels.matmul`. It launches up to four kernels: one writes the words of both operands, one multiplies,
    one adds the sums of the parts of k if k is split, and one computes the tiles with infinities or NaNs again. The host reads
    nothing back, so a CUDA graph can capture a call. The plan keeps a workspace for each stream, so two graphs that were
    captured on one stream must not be replayed at the same time.

    Attributes
    ----------
    target : KernelTarget
        Target for which the kernels are compiled.
    tile : Configuration
        Tile, warps and stages of the product.
    launches : tuple of TritonLaunch
        Launches of a product without C.
    workspace_bytes : int
        Size of the memory through which the launches pass words, sums and marks of tiles with infinities or NaNs.
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
        """Kernels of the launches, compiled for the target, as texts."""
        return tuple(compile_launch(launch, self.target, aligned=True) for launch in self.launches)

    def __repr__(self) -> str:
        p, (batch, m, n, k) = self._product, self._product.sizes
        names = ", ".join(launch.function for launch in self.launches)
        return f"MatmulPlan({p.row.name}, {batch} x {m} x {n} x {k}, {self.target.name}, {self.tile}: {names})"

    def __call__(
        self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None, c: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return A B + C with the epilogue.

        Parameters
        ----------
        a, b : Tensor
            Operands with the plan's shapes, types, strides and device.
        out : Tensor of the plan's `out_dtype`, optional
            Tensor for the result; it may be c, and must not share memory with a and b.
        c : Tensor of float32, optional
            Addend, broadcast to the result. The first call with C compiles its kernels.
        bias : Tensor of float32, shape (n,) or (m,), optional
            Bias, which must be given if and only if the plan has one.

        Raises
        ------
        ValueError, TypeError
            If the plan has no device, or a tensor differs from the plan; the message says what to call.
        """
        if isinstance(self._device, KernelTarget):
            raise ValueError(
                f"this plan was compiled for {self.target.name} without a device, so it cannot run: make the plan with "
                "kernels.plan(..., device=a.device)"
            )
        batch, m, n, k = self._product.sizes
        shape = (m, n) if a.dim() == 2 and batch == 1 else (batch, m, n)
        for side, (x, lines, columns) in enumerate(((a, m, k), (b, k, n))):
            self._check_operand(x, side, (*shape[:-2], lines, columns))
        added = None if c is None or self._product.beta == 0 else _checked_end(c, "c", a).expand(shape)
        kind = TENSOR_TYPES[self._product.epilogue.result]
        result = torch.empty(shape, dtype=kind, device=a.device) if out is None else _checked_end(out, "out", a, kind)
        if result.shape != shape:
            raise ValueError(
                f"out has shape {tuple(result.shape)}, expected {tuple(shape)}: give a tensor of this shape, or call without "
                "out="
            )
        if out is not None:
            place = out.untyped_storage().data_ptr()
            if any(x is not None and x is not out and x.untyped_storage().data_ptr() == place for x in (a, b, c, bias)):
                raise ValueError(
                    "out shares memory with an operand: call without out=, or call kernels.matmul, which copies"
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
                f"{name} is a {type(x).__name__}, expected a tensor: give one, or call kernels.matmul for split operands"
            )
        strides = p.strides[side][-x.dim() :] if x.dim() == 2 or p.sizes[0] > 1 else (x.stride(0), *p.strides[side][1:])
        found = (x.shape, TYPES.get(x.dtype), x.stride(), x.device)
        if found != (shape, p.types[side], strides, self._device):
            raise ValueError(
                f"{name} is {tuple(x.shape)} of {x.dtype} with strides {found[2]} on {x.device}, the plan expects {shape} of "
                f"{p.types[side]} with strides {tuple(strides)} on {self._device}: make another plan, or call kernels.matmul, "
                "which takes any strides"
            )
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(
                f"{name} requires a gradient, which a plan does not compute: call kernels.matmul, or use torch.no_grad()"
            )

    def _checked_bias(self, bias: torch.Tensor | None, a: torch.Tensor) -> torch.Tensor:
        side = self._product.epilogue.bias
        if side is None:
            raise ValueError(
                "got a bias, but this plan has no bias: make a plan with kernels.plan(..., bias='column') or 'row'"
            )
        if bias is None:
            raise ValueError(f"got no bias, but this plan adds one number for each {side}: call plan(a, b, bias=...)")
        size = self._product.sizes[1 if side == "row" else 2]
        if _checked_end(bias, "bias", a).shape != (size,) or not bias.is_contiguous():
            raise ValueError(
                f"bias has shape {tuple(bias.shape)} and strides {bias.stride()}, expected ({size},), contiguous, one number "
                f"for each {side}: give bias.reshape({size}).contiguous()"
            )
        return bias

    def _for(self, out: torch.Tensor, c: torch.Tensor | None) -> TensorPlan:
        """Return the plan for the strides of this result and C."""
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
        raise TypeError(f"{name} is {what}, expected a dense tensor of {kind} on {a.device}: convert {name} with .to()")
    return x


def _check_sizes_and_layout(sizes: dict[str, int], layout: str) -> None:
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}, expected one of {', '.join(LAYOUTS)}")
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} is {size!r}, expected an integer of at least 1")


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
    """Prepare a product once for many calls: choose words and tiles, compile kernels, make grids, descriptors and workspace.

    Parameters
    ----------
    m, n, k : int
        Sizes of the product, at least 1.
    method, alpha, beta, scale, repair, config
        Arguments of :func:`mpgemm.kernels.matmul`.
    a_dtype, b_dtype : torch.dtype
        Types of A and B: float32, bfloat16 or float16.
    layout : {"nn", "nt", "tn", "tt"}
        Storage of A and B: "n" by rows, "t" by columns, both contiguous. The plan takes shapes (m, k) and (k, n); an operand
        with "t" is a transposed view.
    device : torch.device, or str
        Device of torch; or name of a target such as "sm_90", for which the plan is compiled without a device and cannot run.
    batch : int
        Number of products of a call; above 1 the plan takes shapes (batch, m, k) and (batch, k, n).
    bias : {None, "column", "row"}
        Whether calls give a bias of float32 with one number for each column or row, which all matrices of a batch share.
    activation, out_dtype
        Arguments of :func:`mpgemm.kernels.matmul`.

    Returns
    -------
    MatmulPlan

    Raises
    ------
    ValueError
        If a size, the layout or the method is not allowed, or the device is a CPU, on which :func:`matmul` only simulates a
        unit.

    Examples
    --------
    >>> from mpgemm import kernels
    >>> plan = kernels.plan(4096, 4096, 4096, "ootomo", device="sm_90")  # doctest: +SKIP
    >>> [launch.function for launch in plan.launches]  # doctest: +SKIP
    ['split_operands', 'word_product', 'repair']
    """
    _check_sizes_and_layout({"m": m, "n": n, "k": k, "batch": batch}, layout)
    method = spelled(method, {})
    if method.partition(":")[0] == RESIDUES:
        raise ValueError(
            f"method is {method}, expected a method with FP32 results, because plans support no other: call kernels.matmul"
        )
    for name, kind in (("a_dtype", a_dtype), ("b_dtype", b_dtype)):
        if kind not in OPERANDS:
            raise ValueError(f"{name} is {kind}, expected float32, bfloat16 or float16")
    row = recipe_for(n, k, method, scale, repair)
    if out_dtype not in RESULT_TYPES:
        raise ValueError(f"out_dtype is {out_dtype}, expected float32, bfloat16 or float16")
    epilogue = FusedEpilogue(bias, activation, TYPES[out_dtype])
    if row.name.startswith("bf16xfp32") and a_dtype != torch.bfloat16:
        raise ValueError(
            f"a_dtype is {a_dtype}, but method {method} expects torch.bfloat16: give this type, or another method"
        )
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
            f"device is {found}, expected a GPU: call kernels.matmul, which simulates on the CPU, or name a target, as in "
            "device='sm_90', to compile alone"
        )
    return torch.device("cuda", torch.cuda.current_device()) if found.type == "cuda" and found.index is None else found
