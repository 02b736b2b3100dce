"""Records the linear layers of a torch model as it runs, for `mpgemm trace compare`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ml_dtypes
import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import FORMATS, to_array
from mpgemm.traces.recording import TraceRecorder


@contextmanager
def record(model: torch.nn.Module, folder: str | Path, *, modules=(torch.nn.Linear,)) -> Iterator[TraceRecorder]:
    """Record inputs, weights, biases and outputs of a model's modules while it runs, on any device.

    Parameters
    ----------
    model : torch.nn.Module
        Each call of it is a step.
    folder : path
        Where the trace is written.
    modules : tuple of types
        Which modules; those without a matrix as weight are recorded without it.

    Yields
    ------
    TraceRecorder
        Its `record` takes more tensors, such as logits.

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

    def keep(name):
        def hook(module, inputs, output):
            weight, bias = (getattr(module, each, None) for each in ("weight", "bias"))
            tensors = {"input": inputs[0] if inputs else None, "weight": weight, "bias": bias, "output": output}
            kept = {
                kind: _array(x) for kind, x in tensors.items() if isinstance(x, torch.Tensor) and x.dtype in FORMATS
            }
            recorder.record(name, **kept)

        return hook

    handles = [
        module.register_forward_hook(keep(name or "model"))
        for name, module in model.named_modules()
        if isinstance(module, modules)
    ]
    handles.append(model.register_forward_hook(lambda *_: recorder.next_step()))
    try:
        with recorder:
            yield recorder
    finally:
        for handle in handles:
            handle.remove()


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return np.array(to_array(tensor, "tensor"))
