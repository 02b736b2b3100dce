"""Computes `scaled_dot_product_attention` under emulation, by torch's math path or by FlashAttention's algorithm on the unit.

The forward pass of FlashAttention 2 is :func:`mpgemm.experiments.attention.attend`: it goes over tiles of keys, rounds P to the
operands' type, and sums in FP32. The backward pass follows the publication (Dao 2023, arXiv:2307.08691, algorithm 2): it
computes S and P again from the logarithm of the row sums, then dP = dO V^T and dS = P (dP - D), where D holds the row sums of
the elementwise product of dO and O in FP32. P and dS are rounded to the operands' type for dV, dK and dQ. Their sums run over
all of k in one chain, which is a prediction, because kernels add the tiles of dQ in any order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from mpgemm.experiments.attention import AttentionProgram, attend, visible
from mpgemm.frameworks.multiplier import Multiplier
from mpgemm.frameworks.torch_process import SDPA
from mpgemm.frameworks.torch_tensors import format_of, to_array
from tensorcore_models import libraries
from tensorcore_models.formats import get_float_format
from tensorcore_models.formats.rounding import encode
from tensorcore_models.gpu.tensors import on_gpu
from tensorcore_models.libraries.attention import KERNELS
from tensorcore_models.libraries.attention_rules import MULTIPROCESSORS

#: Default number of keys in a tile; FlashAttention's kernels have 64 to 176, by head size and device.
TILE = 128
#: Functions of torch that run as one kernel on a GPU, and as several operations on a CPU.
_NORMS = (torch.rms_norm, torch.nn.functional.rms_norm)
#: Types and largest head size of torch's FlashAttention.
FLASH_TYPES, LARGEST_HEAD = (torch.float16, torch.bfloat16), 256


@dataclass(frozen=True)
class SdpaChoice:
    """`SdpaChoice` says how attention is computed: torch's math path, a recorded kernel, or FlashAttention's algorithm.

    `tile` is the number of keys in a tile. "auto" is the math path, or torch's own choice if its version is named.
    """

    kernel: str = "auto"
    tile: int | None = None

    @classmethod
    def of(cls, text: str) -> "SdpaChoice":
        """Parse "auto", "math", "flash", "flash:KEYS", "cudnn" or "efficient". Raises ValueError for another text."""
        name, _, number = text.partition(":") if isinstance(text, str) else ("", "", "")
        if name in ("auto", *KERNELS) and not number:
            return cls(name)
        if name == "flash" and number.isdecimal() and int(number) > 0:
            return cls(name, int(number))
        raise ValueError(
            f"sdpa is {text!r}, expected 'auto', 'math', 'flash', 'flash:KEYS' with the number of keys in a tile, 'cudnn' or "
            f"'efficient'"
        )


class SdpaMode(TorchFunctionMode):
    """`SdpaMode` intercepts calls of `scaled_dot_product_attention` and `rms_norm` before torch decomposes them.

    `run` is the :class:`mpgemm.frameworks.torch_mode.Emulation`.
    """

    def __init__(self, run: Any, choice: SdpaChoice):
        super().__init__()
        self.run, self.choice = run, choice

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _NORMS and self.run.libraries is not None:
            return self.run.fused_norm(*args, **kwargs)
        return (self.call if func is SDPA else func)(*args, **kwargs)

    def call(self, *args, **kwargs) -> torch.Tensor:
        """Compute `scaled_dot_product_attention` as this block says; torch's own layers call this without function modes."""
        kernel = self._kernel(*args, **kwargs)
        if kernel == "math":
            self._say_math(*args, **kwargs)
            return SDPA(*args, **kwargs)
        return self._fused(kernel, *args, **kwargs)

    def _kernel(self, query, *args, **kwargs) -> str:
        """Return the kernel that computes a call. Raises Unknown if torch would choose it and the choice is not known."""
        if self.choice.kernel != "auto":
            return self.choice.kernel
        if self.run.libraries is None:
            return "math"
        if query.dtype not in FLASH_TYPES:
            raise libraries.Unknown(
                f"scaled_dot_product_attention of {query.dtype}", field="dtype", known=FLASH_TYPES,
                advice="Pass sdpa='math', or set the model's attention to eager",
            )  # fmt: skip
        return "cudnn"

    def _say_math(self, query, *args, **kwargs) -> None:
        if query.dtype not in FLASH_TYPES:
            return
        name = str(query.dtype).removeprefix("torch.")
        half = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
        did = f"products in {name}, with scores and weights rounded to {name}" if half else "all operations in FP32"
        self.run.note(
            f"scaled_dot_product_attention of {name} took torch's math path: {did}. FlashAttention multiplies {name} on the "
            f"unit and rounds its weights to {name}, which sdpa='flash' computes"
        )

    def _fused(
        self, kernel, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        _check(kernel, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        if kernel != "flash" and torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)):
            raise libraries.Unknown(
                f"gradients of {kernel} attention",
                field="sdpa",
                known=("flash", "math"),
                advice="Run it under torch.no_grad()",
            )
        if enable_gqa:
            key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
        scale = float(query.shape[-1] ** -0.5 if scale is None else scale)
        return _Flash.apply(query, key, value, self, kernel, is_causal, scale)

    def forward(
        self, kernel: str, arrays: list[np.ndarray], query: torch.Tensor, causal: bool, scale: float
    ) -> torch.Tensor:
        """Compute the output of all heads, arrays (heads, queries or keys, d), on every engine, and return the first engine's.

        The output has the type and the device of `query`, whose GPU runs long products.
        """
        fmt = format_of(query.dtype, "query")
        mask = visible(arrays[0].shape[1], arrays[1].shape[1], causal)
        tile = self.choice.tile or TILE
        orders = [self._order(kernel, each, arrays, tile) for each in self.run.multipliers]

        def outputs(each: Multiplier) -> torch.Tensor:
            if self._recorded(kernel, each):
                bits = [encode(x, fmt) for x in arrays]
                found = libraries.attention(kernel, fmt, each.device).product(*bits, causal=causal, scale=scale)
                return torch.from_numpy(found.view(np.int16)).view(query.dtype).to(query.device)
            unit = (each.beside(query) if on_gpu(query) else each).engine_for(fmt, fmt)
            program = AttentionProgram(unit, min(tile, arrays[1].shape[1]), scale, get_float_format(fmt))
            heads = [attend(head, program, _ALL_STAGES, mask) for head in zip(*arrays, strict=True)]
            return torch.from_numpy(np.stack(heads)).to(query.device, query.dtype)

        return self.run.attention(outputs, arrays, fmt, orders)

    def _recorded(self, kernel: str, each: Multiplier) -> bool:
        """Return whether a kernel's recorded order is computed, in place of FlashAttention's algorithm with a named tile."""
        return kernel != "flash" or (self.choice.tile is None and each.device in MULTIPROCESSORS)

    def _order(self, kernel: str, each: Multiplier, arrays: list[np.ndarray], tile: int) -> str:
        """Return the name of the kernel that is computed, with the basis of its order."""
        if not self._recorded(kernel, each):
            return f"FlashAttention 2, tiles of {tile} keys (predicted)"
        recipe = libraries.attention(kernel, "fp16", each.device)
        heads, queries, d = arrays[0].shape
        why = recipe.inferred(heads, queries, arrays[1].shape[1], d)
        return f"{kernel} (inferred: {why})" if why else f"{kernel} (recorded)"


#: Arguments with which :func:`mpgemm.experiments.attention.attend` computes all stages as the unit does.
_ALL_STAGES = 7


def _check(kernel, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa) -> None:
    """Refuse arguments that FlashAttention does not take, with a ValueError, because torch would take another path."""
    asks = [
        (any(x.dim() != 4 for x in (query, key, value)), "tensors that are not (batch, heads, rows, d)"),
        (query.dtype not in FLASH_TYPES or not query.dtype == key.dtype == value.dtype,
         f"types {query.dtype}, {key.dtype}, {value.dtype}"),
        (attn_mask is not None, "a mask"), (dropout_p > 0, "dropout"),
        (not query.shape[-1] == key.shape[-1] == value.shape[-1] <= LARGEST_HEAD, "heads of other or larger sizes"),
        (key.shape[-2] == 0 or query.numel() == 0, "no queries or keys"),
        (is_causal and query.shape[-2] != key.shape[-2], "is_causal with other numbers of queries than of keys"),
        (query.dim() == key.dim() == 4 and (query.shape[1] % max(key.shape[1], 1) if enable_gqa else
         query.shape[1] != key.shape[1]), "other numbers of heads"),
    ]  # fmt: skip
    for wrong, what in asks:
        if wrong:
            raise ValueError(
                f"sdpa={kernel!r} got {what}, expected non-empty tensors of float16 or bfloat16 with shape (batch, heads, "
                f"rows, d), equal d up to {LARGEST_HEAD}, no mask and no dropout: pass sdpa='math' for other calls"
            )


class _Flash(torch.autograd.Function):
    """`_Flash` computes FlashAttention's algorithm and its gradients."""

    @staticmethod
    def forward(ctx, query, key, value, mode: SdpaMode, kernel: str, causal: bool, scale: float):
        flat = [x.detach().reshape(-1, *x.shape[-2:]) for x in (query, key, value)]
        arrays = [to_array(x.contiguous().cpu(), name).astype(np.float64) for x, name in zip(flat, "qkv", strict=True)]
        out = mode.forward(kernel, arrays, query.detach(), causal, scale)
        ctx.save_for_backward(*flat, out)
        ctx.options = mode, causal, scale, [x.shape for x in (query, key, value)]
        return out.reshape(*query.shape[:-1], value.shape[-1])

    @staticmethod
    def backward(ctx, *grads):
        mode, causal, scale, shapes = ctx.options
        found = _gradients(mode.run.products, ctx.saved_tensors, grads[0], causal, scale)
        return *(x.reshape(shape) for x, shape in zip(found, shapes, strict=True)), None, None, None, None


def _gradients(products: Callable[..., torch.Tensor], saved, grad: torch.Tensor, causal: bool, scale: float):
    """Return gradients of Q, K and V, shapes (heads, rows, d)."""
    q, k, v, out = saved
    grad = grad.reshape(out.shape).contiguous()
    narrow, wide = q.dtype, torch.float32
    scores = products("attention backward, S", q, k.transpose(1, 2), wide) * scale
    if causal:
        scores = scores.masked_fill(
            ~torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).tril(), -torch.inf
        )
    p = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    by_value = products("attention backward, dV", p.to(narrow).transpose(1, 2), grad, narrow)
    of_p = products("attention backward, dP", grad, v.transpose(1, 2), wide)
    of_scores = (p * (of_p - (grad.to(wide) * out.to(wide)).sum(-1, keepdim=True))).to(narrow)
    by_query = products("attention backward, dQ", of_scores, k, wide) * scale
    by_key = products("attention backward, dK", of_scores.transpose(1, 2), q, wide) * scale
    return by_query.to(narrow), by_key.to(narrow), by_value
