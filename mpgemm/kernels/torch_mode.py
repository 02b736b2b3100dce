"""A model's FP32 products by recovery kernels: a dispatch mode that replaces mm, addmm, bmm, baddbmm and what vectors have."""

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
    """FP32 products by a method; made by :func:`recovered`.

    Attributes
    ----------
    calls : collections.Counter
        Products by operation: those that the method ran, and, behind "native ", those that it did not: convolutions and fused
        attention, products of other types with the type ("native bfloat16 mm"), of sparse tensors; and operations whose code
        cannot be seen, so that nobody knows whether they multiply ("native unseen namespace::name").
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
        torch.backends.mha.set_fastpath_enabled(False)  # one operation, projections and all
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
        """Whether products that run now are the model's: in its forward pass, or in a backward pass."""
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
        """Return one product by the method."""
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
    """The batch is a part of k."""
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
        Whose forward pass is meant; products of other models' forward passes stay native. By default everything in the
        context. Backward passes in the context are always meant.
    method : str
        As for :func:`mpgemm.kernels.matmul`; both operands are FP32, so the methods bf16xfp32 are refused.
    **options
        scale, repair, unit, deterministic and the method's own, as for :func:`mpgemm.kernels.matmul`.

    Returns
    -------
    RecoveredProducts
        A context manager; `calls` counts what ran.

    Raises
    ------
    ValueError
        If the method has no kernel, or needs a BF16 operand; if no unit has that name, or it does not multiply the words.
    TypeError
        If the model is no module, or `config` no configuration.

    Notes
    -----
    `linear`, `matmul`, `einsum`, the math path of attention and operations of `torch.library.custom_op` that have one function
    for every device are made of what is replaced, also in place and with `out`; convolutions, fused attention, products of
    other types and operations whose code cannot be seen run as they are and are counted. Of this mode and
    :func:`mpgemm.torch.emulate` the one that was entered last has a product. Code that `torch.compile` compiled inside of the
    context keeps its own products: call :func:`mpgemm.kernels.matmul` in a program that is compiled.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, expected a torch.nn.Module or None")
    own = {name: value for name, value in options.items() if name not in _CALL_OPTIONS}
    row = recipe(spelled(method, own), options.get("scale") or "auto", options.get("repair") is not False)
    if row.name.startswith("bf16xfp32"):
        raise ValueError(f"{row.name} multiplies a BF16 operand; a model's FP32 products take bf16x3, bf16x6 or bf16x9")
    if "unit" in options:
        resolve_engine(options["unit"], row)
    checked_configuration(options.get("config"))
    return RecoveredProducts(model, method, options)


_CALL_OPTIONS = ("scale", "repair", "unit", "deterministic", "verify", "config")
