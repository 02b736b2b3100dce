"""Records the products of a running torch model, for `mpgemm trace compare`.

For layers of a known class, inputs, weights, biases and outputs are recorded. In all other modules single products are recorded
as torch dispatches them, before an activation or a separate addition of a bias, also inside of a `torch.library.custom_op` in
Python. Batches of products, convolutions and operations whose code cannot be seen are not recorded;
:attr:`mpgemm.traces.recording.TraceRecorder.left_out` names them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mpgemm.frameworks.torch_dispatch import forms_a_product, parts_of, unseen
from mpgemm.frameworks.torch_mode import WATCHERS
from mpgemm.frameworks.torch_tensors import FORMATS, to_array
from mpgemm.traces.recording import TraceRecorder

aten = torch.ops.aten
#: Types of recorded tensors, including factors of scaled products.
_TYPES = (*FORMATS, *(getattr(torch, name) for name in ("float8_e8m0fnu",) if hasattr(torch, name)))


@contextmanager
def record(model: torch.nn.Module, folder: str | Path, *, modules=(torch.nn.Linear,)) -> Iterator[TraceRecorder]:
    """Record the operands and results of a model's products while it runs, on any device.

    Parameters
    ----------
    model : torch.nn.Module
        Model, of which each call is a step.
    folder : path
        Folder for the trace.
    modules : tuple of types
        Classes of modules that are recorded as a whole: input, weight (if it is a matrix), bias, output. Subclasses with a
        `forward` of their own are excluded. In all other modules `mm`, `addmm`, `_scaled_mm` and `bmm` of one matrix are
        recorded.

    Yields
    ------
    TraceRecorder
        Recorder, whose `record` takes more tensors, such as logits, and whose `left_out` names products that were not recorded.

    Examples
    --------
    >>> import tempfile, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with tempfile.TemporaryDirectory() as folder, record(model, folder + "/run") as trace:
    ...     _ = model(torch.ones(3, 4))
    >>> trace.step
    1
    """
    recorder = TraceRecorder(folder)
    running: list[str] = []
    with ExitStack() as stack:

        def hook(register, function, **options) -> None:
            stack.callback(register(function, **options).remove)

        for name, module in model.named_modules():
            whole = any(type(module).forward is each.forward for each in modules if isinstance(module, each))
            # products inside of a module that is recorded as a whole are not recorded by themselves
            hook(module.register_forward_pre_hook, lambda *_, n=None if whole else name or "model": running.append(n))
            if whole:
                hook(module.register_forward_hook, _kept(recorder, name or "model"))
            hook(module.register_forward_hook, lambda *_: running.pop() and None, always_call=True)
        hook(model.register_forward_hook, lambda *_: recorder.next_step())
        stack.enter_context(recorder)
        stack.enter_context(_Products(recorder, running))
        yield recorder


def _kept(recorder: TraceRecorder, name: str) -> Callable:
    """Return a hook that records a module as a whole."""

    def hook(module, inputs, output):
        weight, bias = (getattr(module, each, None) for each in ("weight", "bias"))
        _record(recorder, name, input=inputs[0] if inputs else None, weight=weight, bias=bias, output=output)

    return hook


def _record(recorder: TraceRecorder, name: str, **tensors) -> None:
    known = {kind: x for kind, x in tensors.items() if isinstance(x, torch.Tensor) and x.dtype in _TYPES}
    recorder.record(name, **{kind: _array(x) for kind, x in known.items()})


class _Products(TorchDispatchMode):
    """`_Products` records products of modules that are not recorded as a whole, both native and emulated ones."""

    def __init__(self, recorder: TraceRecorder, running: list[str]):
        super().__init__()
        self.recorder, self.running, self.busy = recorder, running, False

    def __enter__(self):
        WATCHERS.append(self.saw)
        return super().__enter__()

    def __exit__(self, *error):
        WATCHERS.remove(self.saw)
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # an operation with a function of its own for a device keeps running that function
        if (parts := parts_of(func, of_every_device=True)) is not None:
            with self:
                return parts(*args, **kwargs)
        outer, self.busy = self.busy, True  # because an emulation below this mode reports the same product
        try:
            out = func(*args, **kwargs)
        finally:
            self.busy = outer
        if forms_a_product(func.overloadpacket) or unseen(func):
            self.saw(func, args, kwargs, out)
        return out

    def saw(self, func, args, kwargs, out) -> None:
        """Record a product that has run."""
        if self.busy or not self.running or self.running[-1] is None or torch._C._current_autograd_node() is not None:
            return
        name = self.running[-1]
        op = f"{func.name()}, whose code cannot be seen" if unseen(func) else func.overloadpacket.__name__
        taken = _OPERANDS.get(func.overloadpacket)
        tensors = None if taken is None else taken(*args, **{k: v for k, v in kwargs.items() if k != "out"})
        if tensors is None:
            self.recorder.leave_out(f"{name}: {op}")
            return
        self.busy = True  # because copies of the tensors are no products of the model
        try:
            _record(self.recorder, name, **tensors, output=out[0] if out.dim() == 3 else out)
        finally:
            self.busy = False


def _addmm(c, a, b, out_dtype=None, *, beta=1, alpha=1):
    """Return the operands with a bias, or None if c is a matrix or alpha or beta is not 1."""
    plain = c.dim() == 1 and beta == alpha == 1
    return {"input": a, "weight": b.t(), "bias": c} if plain else None


def _bmm(a, b, out_dtype=None):
    """Return the operands of a batch of one product, which einsum makes for a product of matrices, else None."""
    return {"input": a[0], "weight": b[0].t()} if a.shape[0] == 1 else None


def _scaled_mm(a, b, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """Return the operands with their scales, or None for scales in tiles and for packed FP4."""
    if a.dtype not in FORMATS or any(scale.dim() == 1 and scale.numel() > 1 for scale in (scale_a, scale_b)):
        return None
    scale_b = scale_b.t() if scale_b.dim() == 2 else scale_b
    return {"input": a, "weight": b.t(), "input_scale": scale_a, "weight_scale": scale_b, "bias": bias}


#: Functions from the arguments of an operation to its operands by the names of the record.
_OPERANDS: dict = {
    aten.mm: lambda a, b, out_dtype=None: {"input": a, "weight": b.t()},
    aten.addmm: _addmm,
    aten.bmm: _bmm,
    aten._scaled_mm: _scaled_mm,
}


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    if tensor.dtype not in FORMATS:
        return tensor.view(torch.uint8).numpy().view(ml_dtypes.float8_e8m0fnu)
    return np.array(to_array(tensor, "tensor"))
