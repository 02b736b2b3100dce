"""This module computes torch's attention on an H100 bit for bit: cuDNN, FlashAttention 2, CUTLASS and the math path."""

import math
from dataclasses import dataclass

import numpy as np

from ..accumulators import SequentialFMA
from ..catalogue import canonical_device, get_instruction
from ..engines.engine import Engine
from ..engines.matrix_engine import MatrixEngine
from ..engines.scaled import fused_multiply_add
from ..formats import get_float_format
from ..formats.operands import check_bits
from ..formats.rounding import decode, encode
from ..machine.fp_state import default_fp_state
from .attention_rules import MULTIPROCESSORS, AttentionPlan, plan
from .fp32_lanes import apply, butterfly, chain, halves
from .recipe import Unknown
from .row_operations import softmax

#: Names of the kernels: those of torch's SDPBackend in lower case.
KERNELS = ("cudnn", "flash", "efficient", "math")
_LOG2E, _LN2 = 1.4426950408889634, np.float32(0.6931471805599453)
_LOG2E_32 = np.float32(_LOG2E)
_INSIDE = {"fp16": "f16", "bf16": "bf16"}
EX2 = "ex2.approx.ftz.f32"


def attention(kernel: str, fmt: str, gpu: str = "h100") -> "AttentionRecipe":
    """Return the recipe of torch's `scaled_dot_product_attention` on a GPU.

    Parameters
    ----------
    kernel : {"cudnn", "flash", "efficient", "math"}
        Backend of torch.
    fmt : {"fp16", "bf16"}
        Format of Q, K, V and the output.
    gpu : str
        GPU, only "h100".

    Returns
    -------
    AttentionRecipe
        Recipe whose method `product` computes the output.

    Raises
    ------
    Unknown
        If the kernel, the format or the GPU was not measured.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorcore_models import libraries
    >>> one = np.full((1, 128, 64), 0x3F80, np.uint16)
    >>> recipe = libraries.attention("cudnn", "bf16")
    >>> hex(recipe.product(one, one, one)[0, 0, 0])
    '0x3f80'
    """
    for value, known, field in ((kernel, KERNELS, "kernel"), (fmt, tuple(_INSIDE), "fmt")):
        if value not in known:
            raise Unknown(f"attention with {field} {value!r} is not known", field=field, known=known)
    device = canonical_device(gpu)
    if device not in MULTIPROCESSORS:
        raise Unknown(f"attention on {gpu} is not known", field="gpu", known=MULTIPROCESSORS)
    return AttentionRecipe(kernel, fmt, device)


@dataclass(frozen=True)
class AttentionRecipe:
    """`AttentionRecipe` describes an attention kernel on a GPU; :func:`attention` returns it."""

    kernel: str
    fmt: str
    gpu: str

    def __str__(self) -> str:
        return f"{self.kernel} attention of {self.fmt} on {self.gpu} (recorded with torch 2.11, cuDNN 9.19)"

    def plan(self, heads: int, queries: int, keys: int, d: int) -> AttentionPlan | None:
        """Return the tiles and the order of sums with which the kernel computes a problem; None for the kernel "math".

        Raises Unknown for sizes that were not measured.
        """
        return None if self.kernel == "math" else plan(self.kernel, self.gpu, heads, queries, keys, d)

    def inferred(self, heads: int, queries: int, keys: int, d: int) -> str:
        """Return the reason why a problem's order of sums is inferred from problems of other sizes.

        The string is empty if the order was recorded for this problem.
        """
        if self.kernel == "math":
            return "products of sizes that were not recorded may be split along k" * (queries * keys * d > 1 << 27)
        return plan(self.kernel, self.gpu, heads, queries, keys, d).inferred

    @default_fp_state
    def product(self, q, k, v, *, causal: bool = False, scale: float | None = None) -> np.ndarray:
        """Return the output of all heads.

        Parameters
        ----------
        q, k, v : ndarray of unsigned integers, shapes (..., queries, d), (..., keys, d), (..., keys, d)
            Encodings of Q, K and V. The leading dimensions are batch and heads.
        causal : bool
            Whether query i attends only to keys up to i.
        scale : float, optional
            Factor of the scores, by default 1 / sqrt(d).

        Returns
        -------
        ndarray of unsigned integers, shape (..., queries, d)
            Encodings of the output.

        Raises
        ------
        Unknown
            If the sizes were not measured.
        TypeError, ValueError
            If operands are not encodings, or their shapes do not fit.
        """
        heads = [np.asarray(x) for x in (q, k, v)]
        _check(heads, self.fmt, causal)
        lead, (queries, d) = heads[0].shape[:-2], heads[0].shape[-2:]
        flat = [np.ascontiguousarray(x.reshape(-1, *x.shape[-2:])) for x in heads]
        scale = float(d) ** -0.5 if scale is None else float(scale)
        mask = np.tril(np.ones((queries, flat[1].shape[1]), bool)) if causal else None
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if self.kernel == "math":
                found = [_math(x, y, z, self.fmt, scale, mask) for x, y, z in zip(*flat, strict=True)]
            else:
                chosen = self.plan(flat[0].shape[0], queries, flat[1].shape[1], d)
                assert chosen is not None
                head = _Head(chosen, self.fmt, np.float32(scale), mask)
                found = [head.output(x, y, z) for x, y, z in zip(*flat, strict=True)]
        return np.stack(found).reshape(*lead, queries, d)


def _check(heads: list[np.ndarray], fmt: str, causal: bool) -> None:
    q, k, v = heads
    if (
        q.ndim < 3
        or k.shape != v.shape
        or q.shape[:-2] != k.shape[:-2]
        or q.shape[-1] != k.shape[-1]
        or not q.size * k.size
    ):
        raise ValueError(
            f"Q, K and V are {q.shape}, {k.shape} and {v.shape}, expected (..., queries, d), (..., keys, d) and (..., keys, d) "
            "with equal leading dimensions and no empty array: for grouped queries repeat the keys and values"
        )
    if causal and q.shape[-2] != k.shape[-2]:
        raise Unknown(
            f"causal attention of {q.shape[-2]} queries and {k.shape[-2]} keys is not known",
            field="causal",
            known=("as many queries",),
        )
    for x, name in zip(heads, "qkv", strict=True):
        check_bits(x.reshape(-1, x.shape[-1]), get_float_format(fmt), name, 2)


@dataclass
class _Head:
    """`_Head` runs a tiled kernel on one head."""

    plan: AttentionPlan
    fmt: str
    scale: np.float32
    mask: np.ndarray | None

    def __post_init__(self):
        self.rule = self.plan.rule
        self.engine: Engine = get_instruction("hopper", self.rule.unit.format(_INSIDE[self.fmt]))
        self.c = np.float32(np.float64(self.scale) * _LOG2E)

    def output(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        tile = self.plan.tile
        count = -(-k.shape[0] // tile)
        keys, rest = k.shape[0], ((0, count * tile - k.shape[0]), (0, 0))
        k, v = np.pad(k, rest), np.pad(v, rest)
        of_part = -(-count // self.plan.parts)
        tiles = [range(start, min(start + of_part, count)) for start in range(0, count, of_part)]
        parts = [self._part(q, k, v, keys, part) for part in tiles]
        out = parts[0][0] if len(parts) == 1 else _combined(parts, q.shape[1])
        return encode(out, self.fmt, "rne")

    def _scores(self, q, k, keys: int, columns: slice) -> np.ndarray:
        """Return the scores of a tile; masked scores are -infinity, and scores are scaled if the kernel scales first."""
        s = self.engine.gemm_bits(q, np.ascontiguousarray(k[columns].T)).view(np.float32).copy()
        s[:, max(keys - columns.start, 0) :] = -np.inf
        if self.mask is not None:
            inside = min(columns.stop, keys) - columns.start
            s[:, :inside][~self.mask[:, columns.start : columns.start + inside]] = -np.inf
        return (s * self.scale) * _LOG2E_32 if self.rule.exponent == "scaled" else s

    def _weights(self, s: np.ndarray, top: np.ndarray) -> np.ndarray:
        """Return the weights before the rows are normalised."""
        if self.rule.exponent == "fused":
            return apply(EX2, fused_multiply_add(s, np.broadcast_to(self.c, s.shape), -(top * self.c)[:, None]))
        if self.rule.exponent == "products":
            return apply(EX2, s * self.c - (top * self.c)[:, None])
        return apply(EX2, s - top[:, None])

    def _shrinking(self, before: np.ndarray, top: np.ndarray) -> np.ndarray:
        """Return the factor that rescales the sums of earlier tiles; 0 for rows that saw no key."""
        seen = before > -np.inf
        before = np.where(seen, before, np.float32(0))
        if self.rule.exponent == "scaled":
            power = before - top
        else:
            power = before * self.c - top * self.c if self.rule.rescale == "products" else (before - top) * self.c
        return np.where(seen, apply(EX2, power), np.float32(0))

    def _part(self, q, k, v, keys: int, tiles: range) -> tuple[np.ndarray, np.ndarray]:
        """Return the normalised outputs over some tiles, and the logarithms of the row sums."""
        n, tile = q.shape[0], self.plan.tile
        top = np.full(n, -np.inf, np.float32)
        out = np.zeros((n, v.shape[1]), np.float32)
        rows = np.zeros(n if self.rule.row_sums == "warps" else (n, 4), np.float32)
        for index in reversed(tiles) if self.rule.last_first else tiles:
            columns = slice(index * tile, (index + 1) * tile)
            s = self._scores(q, k, keys, columns)
            before, top = top, np.maximum(top, s.max(1))
            finite = np.where(top > -np.inf, top, np.float32(0))
            p, shrink = self._weights(s, finite), self._shrinking(before, finite)
            rows = self._row_sums(rows, shrink, p)
            seed = (out * shrink[:, None]).view(np.uint32)
            out = self.engine.gemm_bits(encode(p, self.fmt, "rne"), v[columns], seed).view(np.float32)
        total = rows if rows.ndim == 1 else butterfly(rows, self.rule.quad)
        dead = total == 0
        inverse = apply(self.rule.inverse, np.where(dead, np.float32(1), total))
        log = apply("lg2.approx.ftz.f32", np.where(dead, np.float32(1), total)) * _LN2
        finite = np.where(dead, np.float32(0), top)
        lse = np.where(dead, np.float32(-np.inf), fused_multiply_add(finite, np.broadcast_to(self.scale, n), log))
        return out * inverse[:, None], lse

    def _row_sums(self, rows: np.ndarray, shrink: np.ndarray, p: np.ndarray) -> np.ndarray:
        if self.rule.row_sums == "tiles":
            return fused_multiply_add(rows, np.broadcast_to(shrink[:, None], rows.shape), chain(_of_threads(p)))
        if self.rule.row_sums == "running":
            p = _of_threads(p)
            return chain(p[..., 1:], fused_multiply_add(rows, np.broadcast_to(shrink[:, None], rows.shape), p[..., 0]))
        rows = rows * shrink
        for start in range(0, p.shape[1], 32):
            rows = rows + butterfly(chain(_of_threads(p[:, start : start + 32])), self.rule.quad)
        return rows


def _of_threads(p: np.ndarray) -> np.ndarray:
    """Return the columns of a tile that each of the four threads of a row holds, in their order: (rows, 4, columns / 4)."""
    return p.reshape(p.shape[0], -1, 4, 2).transpose(0, 2, 1, 3).reshape(p.shape[0], 4, -1)


def _combined(parts: list[tuple[np.ndarray, np.ndarray]], d: int) -> np.ndarray:
    """Return the outputs of FlashAttention's parts, joined by the logarithms of their row sums."""
    lse = np.stack([each for _, each in parts], axis=1)
    top = lse.max(1)
    width = 1 << (len(parts) - 1).bit_length()
    lanes = min(width, 128 // (4 if d % 128 == 0 else 8 if d % 64 == 0 else 16))
    powers = np.zeros((lse.shape[0], width), np.float32)
    powers[:, : len(parts)] = _power(lse - top[:, None])
    total = butterfly(chain(powers.reshape(len(powers), -1, lanes).swapaxes(1, 2)), halves(lanes))
    whole = apply("logf", total) + top
    out = np.zeros_like(parts[0][0])
    for (each, _), log in zip(parts, lse.T, strict=True):
        weight = np.broadcast_to(_power(log - whole)[:, None], each.shape)
        out = fused_multiply_add(each, weight, out)
    return out


def _power(x: np.ndarray) -> np.ndarray:
    """Return expf(x), which is 0 for -infinity."""
    seen = x > -np.inf
    return np.where(seen, apply("expf", np.where(seen, x, np.float32(0))), np.float32(0))


def _math(q, k, v, fmt: str, scale: float, mask: np.ndarray | None) -> np.ndarray:
    """Return the output of torch's math path: FP32, Q and K times the square root of the scale, chains of multiply-adds."""
    q, k, v = (decode(x, fmt, np.float32) for x in (q, k, v))
    root, engine = np.float32(math.sqrt(scale)), _fp32_engine()
    s = engine.gemm_bits((q * root).view(np.uint32), _words((k * root).T)).view(np.float32)
    p = softmax(s if mask is None else np.where(mask, s, np.float32(-np.inf)))
    return encode(engine.gemm_bits(p.view(np.uint32), _words(v)).view(np.float32), fmt, "rne")


def _words(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint32)


def _fp32_engine() -> MatrixEngine:
    return MatrixEngine(SequentialFMA(), a_format="fp32")
