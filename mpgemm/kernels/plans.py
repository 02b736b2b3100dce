"""Products of tensors planned once: form, words, tiles, kernels and workspace, so that a call only passes addresses."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from mpgemm.kernels import devices
from mpgemm.kernels.configurations import (
    DESCRIBED, Configuration, check_stages, choose, split_before, word_configuration,
)  # fmt: skip
from mpgemm.kernels.devices import PlannedLaunch
from mpgemm.kernels.forms import KernelForm, kernel_form, narrowed
from mpgemm.kernels.launches import check_depth, gemm_launch, repair_launch, tiles_of
from mpgemm.kernels.targets import check_words
from mpgemm.kernels.word_launches import (
    WordPlanes, padded_depth, planes_of, split_operands_launch, word_product_launch,
)  # fmt: skip
from mpgemm.recovery.method import RecoveryMethod
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget

WORD_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}
_NO_STRIDES = (0, 0, 0)


@dataclass(frozen=True)
class PlannedProduct:
    """What a product's plan depends on: alpha A B + beta C for a batch of matrices.

    Attributes
    ----------
    row : RecoveryMethod
    sizes : (int, int, int, int)
        batch, m, n, k.
    types : (str, str)
        Of the elements of A and B.
    strides : ((int, int, int), (int, int, int))
        Of batch, row and column of A and B.
    out : (int, int, int)
        Strides of the result.
    c : (int, int, int) or None
        Strides of C, where it is added.
    alpha, beta : float
    tile : Configuration or None
        None: the counted model chooses.
    ready : (int or None, int or None)
        Batches of the words of A and of B where they were split before; such words lie along k.
    """

    row: RecoveryMethod
    sizes: tuple[int, int, int, int]
    types: tuple[str, str]
    strides: tuple[tuple[int, int, int], tuple[int, int, int]]
    out: tuple[int, int, int]
    c: tuple[int, int, int] | None = None
    alpha: float = 1.0
    beta: float = 1.0
    tile: Configuration | None = None
    ready: tuple[int | None, int | None] = (None, None)


def words_needed(form: KernelForm, row: RecoveryMethod, side: int, kind: str) -> int:
    """Words of an operand that may differ from zero: one where its elements are words, neither scaled nor left unrepaired.

    Without the repair an infinity would show the words that are left out: its second word is NaN.
    """
    whole = kind == form.format or (form.format == "tf32" and kind in ("fp16", "bf16"))
    one = whole and row.equilibrate != "rows" and row.repair == "fp32"
    return 1 if one else form.words[side]


class ProductPlan:
    """A product's launches for a target, compiled: one for the words of both operands, one for the product, one that repairs.

    Attributes
    ----------
    product : PlannedProduct
    target : KernelTarget
    form : KernelForm
    tile : Configuration
    launches : tuple of TritonLaunch
        Their tensors by name: "a", "b", "c", "out", and those of `workspace`.
    workspace : dict of str to (shape, torch.dtype)
        What the launches write for one another.
    """

    def __init__(self, product: PlannedProduct, target: KernelTarget):
        row = product.row
        self.product, self.target = product, target
        self.workspace: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
        whole = kernel_form(row)
        check_words(target, whole.format, row.name)
        if product.tile is not None:
            check_depth(whole, product.tile)
        self._counts = [words_needed(whole, row, side, kind) for side, kind in enumerate(product.types)]
        self.form = form = narrowed(whole, (self._counts[0], self._counts[1]))
        scaled = row.equilibrate == "rows"
        batch, m, n, k = product.sizes
        first = scaled or split_before(form, target, m, n, k, batch)
        self._split = tuple(first or count is not None for count in product.ready)
        self.described = target.unit in DESCRIBED and all(self._split)
        chosen = word_configuration if self.described else choose
        self.tile = tile = product.tile or chosen(form, target, m, n, k, batch)
        self._planes = tuple(self._layout(whole, side) if split else None for side, split in enumerate(self._split))
        if self.described and any(p is not None and p.k % tile.depth for p in self._planes):
            self.described = False
        check_stages(form, tile, target)
        self.launches = tuple(self._launches(scaled))

    # -- what is launched --------------------------------------------------------------------------------------------------
    def _layout(self, whole: KernelForm, side: int) -> WordPlanes:
        batch, *extents, k = self.product.sizes
        ready, depth = self.product.ready[side], padded_depth(whole)
        if ready is not None:
            return WordPlanes(whole.format, self._counts[side], ready, extents[side], -(-k // depth) * depth, "k")
        strides = self.product.strides[side]
        batches = 1 if self.described and strides[0] == 0 else batch
        x = View(None, self.product.types[side], strides)
        made = planes_of(whole, side, x, batches, extents[side], k, max(depth, self.tile.depth))
        return WordPlanes(made.format, self._counts[side], made.batches, made.lines, made.k, made.inner)

    def _launches(self, scaled: bool):
        asked, form, tile = self.product, self.form, self.tile
        batch, m, n, k = sizes = asked.sizes
        operands = tuple(View("ab"[s], asked.types[s], asked.strides[s]) for s in (0, 1))
        out = View("out", "fp32", asked.out)
        c = None if asked.c is None else View("c", "fp32", asked.c)
        names = []
        for side, planes in enumerate(self._planes):
            words, exponents = ("ab"[side] + "_words", "ab"[side] + "_exponents")
            names.append((words, exponents if scaled else None))
            if planes is not None and asked.ready[side] is None:
                self.workspace[words] = planes.shape, WORD_TYPES[form.format]
                if scaled:
                    self.workspace[exponents] = (planes.batches * planes.lines,), torch.int32
        split_here = [p is not None and asked.ready[s] is None for s, p in enumerate(self._planes)]
        if any(split_here):
            pick = [(operands[s], self._planes[s], *names[s]) if split_here[s] else (None,) * 4 for s in (0, 1)]
            views, planes, words, exponents = zip(*pick, strict=True)
            yield split_operands_launch(kernel_form(asked.row), (m, n, k), views, planes, words, exponents, self._counts)
        flags = None
        if asked.row.repair == "fp32":
            self.workspace["flags"] = (tiles_of(batch, m, n, tile),), torch.int32
            flags = View("flags", "s32", _NO_STRIDES)
        ends = {"alpha": asked.alpha, "beta": asked.beta, "flags": flags}
        exponents = (names[0][1], names[1][1]) if scaled else None
        if self.described:
            words = names[0][0], names[1][0]
            yield word_product_launch(form, tile, sizes, self._planes, words, out, c, exponents, **ends)
        else:
            yield self._gemm(operands, names, out, c, scaled, ends)
        if flags is not None:
            yield repair_launch(sizes, *operands, out, c, tile=tile, **ends)

    def _gemm(self, operands, names, out: View, c: View | None, scaled: bool, ends: dict) -> TritonLaunch:
        """The product by loads of elements, or of words without descriptors."""
        batch, m, n, k = self.product.sizes
        views = [
            x if planes is None else planes.view(words, side)
            for side, (x, planes, (words, _)) in enumerate(zip(operands, self._planes, names, strict=True))
        ]
        padded = [p.k for p in self._planes if p is not None]
        k = padded[0] if len(padded) == 2 and padded[0] == padded[1] else k
        exponents = tuple(View(e, "s32", _NO_STRIDES) for _, e in names) if scaled else None
        return gemm_launch(self.form, self.tile, (batch, m, n, k), *views, out, c, exponents, **ends)

    # -- on a device -------------------------------------------------------------------------------------------------------
    def prepared(self) -> list[PlannedLaunch]:
        """The launches compiled for the current device."""
        return [PlannedLaunch(launch) for launch in self.launches]

    def rooms(self, device: torch.device) -> dict[str, torch.Tensor]:
        """New memory for the workspace."""
        return {name: torch.empty(shape, dtype=kind, device=device) for name, (shape, kind) in self.workspace.items()}

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the workspace."""
        return sum(math.prod(shape) * kind.itemsize for shape, kind in self.workspace.values())


class TensorPlan:
    """A :class:`ProductPlan` on a device, called with tensors of its shapes, strides and types; the caller checks these."""

    def __init__(self, product: PlannedProduct, device: torch.device):
        target = devices.device_target(device)
        assert target is not None
        self.plan, self.device = ProductPlan(product, target), device
        with devices.current(device):
            self.launches = self.plan.prepared()
        self._kept: dict[int, list[list[Any]]] = {}

    @property
    def product(self) -> TritonLaunch:
        """The launch of the product itself."""
        return next(x for x in self.plan.launches if x.function in ("gemm", "word_product"))

    def __call__(self, tensors: dict[str, torch.Tensor], keep: bool = False) -> None:
        """Launch on the current stream of the device.

        Parameters
        ----------
        tensors : dict
            a, b, out, and where there are any c and words and exponents of operands that were split before.
        keep : bool
            Whether the workspace is kept for the next call on this stream, or comes from torch's allocator at each call.
        """
        addresses = 0
        for x in tensors.values():
            addresses |= x.data_ptr()
        aligned = not addresses % 16
        with devices.current(self.device):
            stream = devices.current_stream()
            bound = self._kept.get(stream) if keep else None
            if bound is None:
                rooms = self.plan.rooms(self.device)
                bound = [launch.bound(rooms) for launch in self.launches]
                if keep:
                    self._kept[stream] = bound
            for launch, arguments in zip(self.launches, bound, strict=True):
                launch(launch.filled(arguments, tensors), stream, aligned)
