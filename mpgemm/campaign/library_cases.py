"""This module lists the products and functions of torch that a campaign records, as rows: operands and calls.

:mod:`tensorcore_models.libraries.recorded_products` draws the operands of products; other operands are NumPy's standard
normal numbers with seeds [seed, 0], [seed, 1], ..., so that any machine can draw them again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from mpgemm.traces.record_products import FP8_PAIRS, product_call

_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
SHAPES = (
    (64, 64, 64), (128, 128, 128), (16, 16, 256), (1, 4096, 4096), (17, 512, 1000), (128, 256, 512), (256, 256, 4096),
    (512, 512, 2048), (64, 64, 16384), (1024, 1024, 1024), (2048, 2048, 2048), (100, 300, 700), (4096, 4096, 4096),
)  # fmt: skip
#: Sides of torch's FP8 products: multiples of 16.
NARROW_SHAPES = (
    (64, 64, 64), (128, 128, 128), (16, 256, 512), (128, 256, 512), (256, 256, 4096), (512, 512, 2048), (64, 64, 16384),
    (1024, 1024, 1024), (2048, 2048, 2048),
)  # fmt: skip
#: Multiply-adds from which on a product is recorded in one layout only.
_LARGE = 1 << 31


@dataclass(frozen=True)
class LibraryCase:
    """`LibraryCase` is a call that is recorded.

    Attributes
    ----------
    name : str
        Name with slashes between operation, types, shape and layout.
    facts : dict
        Operation, seed, sizes, layout, and the other arguments of the call.
    make : callable
        Function of the device that returns the call.
    rows : int
        Number of rows of the result whose bits are kept.
    """

    name: str
    facts: dict[str, Any]
    make: Callable[[torch.device], Callable[[], torch.Tensor]] = field(repr=False)
    rows: int = 2


def drawn(shape: tuple[int, ...], seed: list[int]) -> np.ndarray:
    """Return standard normal numbers in FP32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _there(x: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(x).to(device)


def _sizes(m: int, n: int, k: int) -> dict[str, Any]:
    return {"seed": [m * 7 + n * 11 + k], "m": m, "n": n, "k": k}


def cases() -> Iterator[LibraryCase]:
    """Yield all cases, small products of every kind first."""
    families = [
        list(family())
        for family in (_plain, _wide_results, _scaled, _scaled_by_parts, _integers, _attention, _pointwise)
    ]
    for turn in range(max(map(len, families))):
        yield from (family[turn] for family in families if turn < len(family))


# -- products of a type ------------------------------------------------------------------------------------------------------
def _plain() -> Iterator[LibraryCase]:
    for m, n, k in SHAPES:
        for operands in ("fp16", "bf16", "tf32", "fp32", "fp64"):
            for reduced in (True, False) if operands in ("fp16", "bf16") else (None,):
                for layout in ("nn", "nt", "tn") if m * n * k < _LARGE else ("nt",):
                    how = {None: "", True: "reduced", False: "full"}[reduced]
                    name = "/".join(filter(None, ("mm", operands, how, f"{m}x{n}x{k}", layout)))
                    facts = {"op": "mm", **_sizes(m, n, k), "layout": layout, "operands": operands, "reduced": reduced}
                    yield LibraryCase(name, facts, partial(product_call, facts))


def _wide_results() -> Iterator[LibraryCase]:
    for m, n, k in SHAPES:
        for operands in ("fp16", "bf16"):
            facts = {"op": "mm out fp32", **_sizes(m, n, k), "operands": operands}
            yield LibraryCase(f"mm32/{operands}/{m}x{n}x{k}", facts, partial(product_call, facts))


# -- products with scales ----------------------------------------------------------------------------------------------------
def _scaled() -> Iterator[LibraryCase]:
    for m, n, k in NARROW_SHAPES:
        for kinds in FP8_PAIRS:
            for fast in (False, True):
                for out in ("bfloat16", "float32", "float16"):
                    name = f"scaled/{kinds}/{_speed(fast)}/{out}/{m}x{n}x{k}"
                    facts = {
                        "op": "scaled_mm", **_sizes(m, n, k), "operands": kinds, "fast": fast, "out": f"torch.{out}"
                    }  # fmt: skip
                    yield LibraryCase(name, facts, partial(product_call, facts))


def _speed(fast: bool) -> str:
    return "fast" if fast else "slow"


def _scaled_by_parts() -> Iterator[LibraryCase]:
    for m, n, k in NARROW_SHAPES:
        for fast in (False, True):
            facts = {"op": "rowwise", **_sizes(m, n, k), "operands": "e4e4", "fast": fast}
            yield LibraryCase(f"rowwise/{_speed(fast)}/{m}x{n}x{k}", facts, partial(product_call, facts))
        if k % 128 == n % 128 == 0:
            facts = {"op": "block 1x128 128x128", **_sizes(m, n, k), "operands": "e4e4"}
            yield LibraryCase(f"block128/{m}x{n}x{k}", facts, partial(product_call, facts))


# -- other calls ---------------------------------------------------------------------------------------------------------------
def _integers() -> Iterator[LibraryCase]:
    for m, n, k in NARROW_SHAPES:
        facts = {"op": "int_mm", **_sizes(m, n, k), "operands": "s8"}
        yield LibraryCase(f"int8/{m}x{n}x{k}", facts, partial(product_call, facts))


def _attention() -> Iterator[LibraryCase]:
    for kind in ("fp16", "bf16"):
        for batch, heads, length, size, causal in (
            (1, 2, 128, 64, False),
            (1, 2, 256, 128, True),
            (1, 2, 300, 64, True),
        ):
            for backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"):
                shape = (batch, heads, length, size)
                facts = {
                    "op": "sdpa",
                    "seed": [length, size],
                    "operands": kind,
                    "shape_qkv": list(shape),
                    "causal": causal,
                }
                name = f"sdpa/{kind}/{backend}/{'x'.join(map(str, shape))}/{causal}"
                yield LibraryCase(name, {**facts, "backend": backend}, partial(_sdpa, shape, kind, causal, backend), 16)


def _sdpa(shape, kind: str, causal: bool, backend: str, device: torch.device) -> Callable[[], torch.Tensor]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (_there(drawn(shape, [shape[2], shape[3], i]), device).to(_TYPES[kind]) for i in range(3))

    def call() -> torch.Tensor:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return call


#: Functions along rows of 512, and of single numbers.
POINTWISE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": partial(torch.softmax, dim=-1), "layernorm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "rmsnorm": lambda x: functional.rms_norm(x, x.shape[-1:]), "silu": functional.silu, "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"), "exp": torch.exp, "exp2": torch.exp2, "log": torch.log,
    "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "sqrt": lambda x: torch.sqrt(x.abs()),
    "rsqrt": lambda x: torch.rsqrt(x.abs()), "reciprocal": torch.reciprocal, "sum": partial(torch.sum, dim=-1, keepdim=True),
}  # fmt: skip


def _pointwise() -> Iterator[LibraryCase]:
    for name in POINTWISE:
        for kind in ("fp32", "bf16"):
            facts = {"op": name, "seed": [512, 9], "operands": kind}
            yield LibraryCase(f"pointwise/{name}/{kind}", facts, partial(_of_rows, name, kind), 16)


def _of_rows(name: str, kind: str, device: torch.device) -> Callable[[], torch.Tensor]:
    x = _there(drawn((16, 512), [512, 9]), device).to(_TYPES[kind])
    return partial(POINTWISE[name], x)
