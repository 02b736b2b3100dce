"""Runs a model's FP32 products by recovery kernels: a dispatch mode replaces mm, addmm, bmm, baddbmm and vector products."""

import threading
from collections import Counter
from contextlib import ExitStack

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from mpgemm.frameworks.torch_dispatch import deliver, forms_a_product, parts_of, unseen
from mpgemm.kernels.multiply import checked_configuration, matmul
from mpgemm.kernels.recipes import recipe, spelled
from mpgemm.recovery.engines import resolve_engine

aten = torch.ops.aten


class RecoveredProducts(TorchDispatchMode):
    """`RecoveredProducts` runs FP32 products by a method; :func:`recovered` makes it.

    Attributes
    ----------
    calls : collections.Counter
        Number of calls by operation. Operations that the method did not run have the prefix "native": convolutions, fused
        attention, products of other types ("native bfloat16 mm") and of sparse tensors, and operations whose code cannot be
        seen, so that it is not known whether they multiply ("native unseen namespace::name").
    """

    def __init__(self, model: torch.nn.Module | None, method: str, options: dict):
        super().__init__()
        self.method, self.options, self.model = method, options, model
        self.calls: Counter[str] = Counter()
        self._inside = threading.local()
        self._hooks = ExitStack()

    def __enter__(self):
        super().__enter__()
        self._hooks.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)  # it would run projections and attention as one operation
        if self.model is not None:
            self._hooks.enter_context(_removed(self.model.register_forward_pre_hook(self._entered)))
            self._hooks.enter_context(_removed(self.model.register_forward_hook(self._left, always_call=True)))
        return self

    def __exit__(self, *error):
        self._hooks.close()
        return super().__exit__(*error)

    def _entered(self, module, inputs):
        self._inside.depth = self._depth + 1

    def _left(self, module, inputs, output):
        self._inside.depth = self._depth - 1

    @property
    def _depth(self) -> int:
        return getattr(self._inside, "depth", 0)

    @property
    def _meant(self) -> bool:
        """Return whether the product that runs now belongs to the model's forward pass or to a backward pass."""
        return self.model is None or self._depth > 0 or torch._C._current_autograd_node() is not None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(t, FakeTensor) for t in types) or not self._meant:
            return func(*args, **kwargs)
        run = _PRODUCTS.get(func.overloadpacket)
        if run is None and (parts := parts_of(func, of_every_device=True)) is not None:
            with self:
                return parts(*args, **kwargs)
        tensors = [x for x in args if isinstance(x, torch.Tensor)]
        multiplies = run is not None or forms_a_product(func.overloadpacket)
        if not (multiplies or unseen(func)) or any(x.is_meta for x in tensors):
            return func(*args, **kwargs)
        if unseen(func):
            self.calls[f"native unseen {func.overloadpacket._qualified_op_name}"] += 1
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        kinds = {x.dtype for x in tensors}
        if run is None or kinds != {torch.float32} or any(x.layout != torch.strided for x in tensors):
            other = sorted(str(kind).removeprefix("torch.") for kind in kinds - {torch.float32})
            self.calls[" ".join(("native", *other, name))] += 1
            return func(*args, **kwargs)
        self.calls[name] += 1
        found = run(self, *args, **{key: x for key, x in kwargs.items() if key != "out"})
        return deliver(func, found, args, kwargs)

    def product(self, a, b, **ends):
        """Compute one product by the method."""
        return matmul(a, b, self.method, **ends, **self.options)


def _removed(handle) -> ExitStack:
    stack = ExitStack()
    stack.callback(handle.remove)
    return stack


def _mm(run: RecoveredProducts, a, b):
    return run.product(a, b)


def _addmm(run: RecoveredProducts, c, a, b, *, beta=1, alpha=1):
    return run.product(a, b, c=c, alpha=alpha, beta=beta)


def _addbmm(run: RecoveredProducts, c, a, b, *, beta=1, alpha=1):
    """Compute addbmm as one product, in which the batch is a part of k."""
    return _addmm(run, c, a.transpose(0, 1).flatten(1), b.flatten(0, 1), beta=beta, alpha=alpha)


_PRODUCTS = {
    **dict.fromkeys((aten.mm, aten.bmm, aten.mv, aten.dot, aten.vdot), _mm),
    **dict.fromkeys((aten.addmm, aten.addmm_, aten.baddbmm, aten.baddbmm_, aten.addmv, aten.addmv_), _addmm),
    **dict.fromkeys((aten.addbmm, aten.addbmm_), _addbmm),
}


def recovered(model: torch.nn.Module | None = None, method: str = "bf16x9", **options) -> RecoveredProducts:
    """Return a context in which FP32 products of matrices run by a recovery method, forward and backward.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Model whose forward pass is affected; products of other models' forward passes stay native. By default all products in
        the context are affected. Backward passes in the context always are.
    method : str
        Method of :func:`mpgemm.kernels.matmul`; bf16xfp32 is refused, because both operands are FP32.
    **options
        Options scale, repair, unit, deterministic of :func:`mpgemm.kernels.matmul`, and options of the method.

    Returns
    -------
    RecoveredProducts
        Context manager, whose `calls` counts the operations.

    Raises
    ------
    ValueError
        If the method has no kernel or needs a BF16 operand, or the unit does not exist or cannot multiply the words.
    TypeError
        If the model is no module, or `config` is no configuration.

    Notes
    -----
    `linear`, `matmul`, `einsum`, the math path of attention, and operations of `torch.library.custom_op` with one function for
    every device consist of operations that are replaced, also in place and with `out`. Convolutions, fused attention, products
    of other types and operations whose code cannot be seen run natively and are counted. If :func:`mpgemm.torch.emulate` is
    active too, the mode that was entered last takes a product. Code that `torch.compile` compiled inside of the context keeps
    its own products; call :func:`mpgemm.kernels.matmul` in such a program.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, expected a torch.nn.Module or None")
    own = {name: value for name, value in options.items() if name not in _CALL_OPTIONS}
    row = recipe(spelled(method, own), options.get("scale") or "auto", options.get("repair") is not False)
    if row.name.startswith("bf16xfp32"):
        raise ValueError(
            f"method is {row.name}, which needs a BF16 operand: take bf16x3, bf16x6 or bf16x9 for FP32 products"
        )
    if "unit" in options:
        resolve_engine(options["unit"], row)
    checked_configuration(options.get("config"))
    return RecoveredProducts(model, method, options)


_CALL_OPTIONS = ("scale", "repair", "unit", "deterministic", "verify", "config")
