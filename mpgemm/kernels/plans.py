"""Plans products of tensors once (form, words, tiles, kernels, workspace), so that a call only passes addresses."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from mpgemm.kernels import devices
from mpgemm.kernels.configurations import (
    DESCRIBED,
    Configuration,
    check_stages,
    choose,
    configurations,
    split_before,
    word_configuration,
    word_configurations,
)  # fmt: skip
from mpgemm.kernels.devices import PlannedLaunch
from mpgemm.kernels.epilogues import PLAIN, FusedEpilogue
from mpgemm.kernels.forms import KernelForm, kernel_form, narrowed
from mpgemm.kernels.launches import (
    NO_END,
    ProductEnd,
    add_parts_launch,
    check_depth,
    gemm_launch,
    repair_launch,
    tiles_of,
)  # fmt: skip
from mpgemm.kernels.targets import check_words
from mpgemm.kernels.word_launches import (
    WordPlanes,
    padded_depth,
    planes_of,
    split_operands_launch,
    word_product_launch,
)  # fmt: skip
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.parts import part_length, parts_of
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget

WORD_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}
_NO_STRIDES = (0, 0, 0)
#: Names of the arrays through which launches pass words and exponents, for A and for B.
_WORDS, _EXPONENTS = ("a_words", "b_words"), ("a_exponents", "b_exponents")


@dataclass(frozen=True)
class PlannedProduct:
    """`PlannedProduct` holds the facts on which the plan of a product alpha A B + beta C with its epilogue depends.

    Attributes
    ----------
    row : RecoveryMethod
        Method.
    sizes : (int, int, int, int)
        Sizes batch, m, n, k.
    types : (str, str)
        Types of the elements of A and B.
    strides : ((int, int, int), (int, int, int))
        Strides of A and B between batches, rows and columns.
    out : (int, int, int)
        Strides of the result.
    c : (int, int, int) or None
        Strides of C, or None if C is not added.
    alpha, beta : float
        Factors.
    tile : Configuration or None
        Tile, warps and stages; None if the counted model chooses.
    ready : (int or None, int or None)
        Number of batches of the words of A and of B that were split before, else None; such words lie along k.
    epilogue : FusedEpilogue
        Epilogue.
    bias : str
        Type of the bias's elements, if the epilogue has a bias; the bias is contiguous.
    first : bool or None
        Whether words are written to memory before the product; None if the counted model decides. Scaled words always are.
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
    epilogue: FusedEpilogue = PLAIN
    bias: str = "fp32"
    first: bool | None = None

    @property
    def part(self) -> int | None:
        """Length of a part of k, or None if k is not split."""
        n, k = self.sizes[2:]
        length = part_length(parts_of(n, k, self.row) if self.row.parts == "auto" else int(self.row.parts), k)
        return length if length < k else None


def words_needed(form: KernelForm, row: RecoveryMethod, side: int, kind: str) -> int:
    """Return the number of words of an operand that may differ from zero.

    It is 1 if the elements are words themselves, the rows are not scaled, and results that are not finite are repaired. Without
    the repair the other words would count, because the second word of an infinity is NaN.
    """
    whole = kind == form.format or (form.format == "tf32" and kind in ("fp16", "bf16"))
    one = whole and row.equilibrate != "rows" and row.repair == "fp32"
    return 1 if one else form.words[side]


class ProductPlan:
    """`ProductPlan` holds the launches of a product for a target: they split both operands, multiply, and repair.

    Attributes
    ----------
    product : PlannedProduct
        Planned product.
    target : KernelTarget
        Target of the kernels.
    form : KernelForm
        Constants of the method.
    tile : Configuration
        Tile, warps and stages.
    launches : tuple of TritonLaunch
        Launches in order; in place of tensors they hold the names "a", "b", "c", "out", and those of `workspace`.
    workspace : dict of str to (shape, torch.dtype)
        Shapes and types of the tensors through which the launches pass words, sums and flags.
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
        product.epilogue.check_target(target)
        batch, m, n, k = product.sizes
        part = product.part or k
        counted = m, n, part, batch * -(-k // part)
        first = scaled or (split_before(form, target, *counted) if product.first is None else product.first)
        self._split = first or product.ready[0] is not None, first or product.ready[1] is not None
        self.described = target.unit in DESCRIBED and all(self._split)
        self.tile = tile = product.tile or self._chosen(*counted)
        self._planes = self._layout(whole, 0), self._layout(whole, 1)
        if self.described and any(p is not None and p.k % tile.depth for p in self._planes):
            self.described = False
        check_stages(form, tile, target)
        self.launches = tuple(self._launches(scaled))

    @property
    def tiles(self) -> list[Configuration]:
        """Entries of the table of configurations for these operands; the choice changes no bit."""
        if self.described:
            return word_configurations(self.form, self.target)
        return configurations(self.form, self.target, self._split)

    def _chosen(self, m: int, n: int, k: int, batch: int) -> Configuration:
        if self.described:
            return word_configuration(self.form, self.target, m, n, k, batch)
        return choose(self.form, self.target, m, n, k, batch, self._split)

    # -- launches ----------------------------------------------------------------------------------------------------------
    def _layout(self, whole: KernelForm, side: int) -> WordPlanes | None:
        """Return the layout of an operand's words in memory, or None if the product splits the operand."""
        if not self._split[side]:
            return None
        batch, *extents, k = self.product.sizes
        ready, depth = self.product.ready[side], padded_depth(whole)
        if ready is not None:
            return WordPlanes(whole.format, self._counts[side], ready, extents[side], -(-k // depth) * depth, "k")
        strides = self.product.strides[side]
        batches = 1 if self.described and strides[0] == 0 else batch
        x = View(None, self.product.types[side], strides)
        made = planes_of(whole, side, x, batches, extents[side], k, max(depth, self.tile.depth))
        return WordPlanes(made.format, self._counts[side], made.batches, made.lines, made.k, made.inner)

    def _launches(self, scaled: bool) -> Iterator[TritonLaunch]:
        asked = self.product
        batch, m, n, _ = sizes = asked.sizes
        a, b = (View("ab"[side], asked.types[side], asked.strides[side]) for side in (0, 1))
        out = View("out", asked.epilogue.result, asked.out)
        c = None if asked.c is None else View("c", "fp32", asked.c)
        bias = None if asked.epilogue.bias is None else View("bias", asked.bias, _NO_STRIDES)
        yield from self._splitting((a, b), scaled)
        flags = None
        if asked.row.repair == "fp32":
            self.workspace["flags"] = (tiles_of(batch, m, n, self.tile),), torch.int32
            flags = View("flags", "s32", _NO_STRIDES)
        end = ProductEnd(c, asked.alpha, asked.beta, asked.epilogue, bias, flags)
        if asked.part is None:
            yield self._multiplying((a, b), out, end, scaled)
        else:
            parts = -(-asked.sizes[3] // asked.part)
            self.workspace["sums"] = (batch * parts, m, n), torch.float32
            sums = View("sums", "fp32", (m * n, n, 1))
            yield self._multiplying((a, b), sums, NO_END, scaled)
            yield add_parts_launch(self.tile, sizes[:3], parts, sums, out, end, self._shifts(scaled))
        if flags is not None:
            yield repair_launch(sizes, a, b, out, end, self.tile)

    def _splitting(self, operands: tuple[View, View], scaled: bool) -> Iterator[TritonLaunch]:
        """Yield the launch that writes the words of the operands that are not ready."""
        asked, split = (
            self.product,
            [x is not None and y is None for x, y in zip(self._planes, self.product.ready, strict=True)],
        )
        if not any(split):
            return
        for planes, words, exponents, here in zip(self._planes, _WORDS, _EXPONENTS, split, strict=True):
            if planes is not None and here:
                self.workspace[words] = planes.shape, WORD_TYPES[self.form.format]
                if scaled:
                    self.workspace[exponents] = (planes.batches * planes.lines,), torch.int32

        def those(values) -> tuple[Any, Any]:
            return values[0] if split[0] else None, values[1] if split[1] else None

        _, m, n, k = asked.sizes
        ends = those(_EXPONENTS) if scaled else (None, None)
        yield split_operands_launch(
            kernel_form(asked.row), (m, n, k), those(operands), those(self._planes), those(_WORDS), ends, self._counts
        )

    def _shifts(self, scaled: bool) -> tuple[View, View] | None:
        """Return views of the exponents of rows and columns, with their strides between matrices of the batch."""
        if not scaled:
            return None
        x, y = self._planes
        assert x is not None and y is not None
        rows, columns = ((p.lines if p.batches > 1 or not self.described else 0, 1, 1) for p in (x, y))
        return View(_EXPONENTS[0], "s32", rows), View(_EXPONENTS[1], "s32", columns)

    def _multiplying(self, operands: tuple[View, View], out: View, end: ProductEnd, scaled: bool) -> TritonLaunch:
        """Return the launch of the product, which reads words by TMA, or loads elements or words."""
        asked, (x, y) = self.product, self._planes
        if self.described and x is not None and y is not None:
            exponents = _EXPONENTS if scaled else None
            return word_product_launch(
                self.form, self.tile, asked.sizes, (x, y), _WORDS, out, end, exponents, asked.part
            )
        batch, m, n, k = asked.sizes
        if x is not None and y is not None and x.k == y.k:
            k = x.k  # padded to whole tiles
        left = operands[0] if x is None else x.view(_WORDS[0], 0)
        right = operands[1] if y is None else y.view(_WORDS[1], 1)
        return gemm_launch(
            self.form, self.tile, (batch, m, n, k), left, right, out, end, self._shifts(scaled), asked.part
        )

    # -- on a device -------------------------------------------------------------------------------------------------------
    def prepared(self) -> list[PlannedLaunch]:
        """Return the launches compiled for the current device."""
        return [PlannedLaunch(launch, self.workspace) for launch in self.launches]

    def rooms(self, device: torch.device) -> dict[str, torch.Tensor]:
        """Return new tensors for the workspace."""
        return {name: torch.empty(shape, dtype=kind, device=device) for name, (shape, kind) in self.workspace.items()}

    @property
    def multiplies(self) -> TritonLaunch:
        """Launch that multiplies."""
        return next(x for x in self.launches if x.function in ("gemm", "word_product"))

    @property
    def workspace_bytes(self) -> int:
        """Size of the workspace in bytes."""
        return sum(math.prod(shape) * kind.itemsize for shape, kind in self.workspace.values())


class TensorPlan:
    """`TensorPlan` is a :class:`ProductPlan` on a device; its caller checks the tensors' shapes, strides and types."""

    def __init__(self, product: PlannedProduct, device: torch.device):
        target = devices.device_target(device)
        assert target is not None
        self.plan, self.device = ProductPlan(product, target), device
        with devices.current(device):
            self.launches = self.plan.prepared()
        self._kept: dict[int, list[list[Any]]] = {}

    def __call__(self, tensors: dict[str, torch.Tensor], keep: bool = False) -> None:
        """Launch on the current stream of the device.

        Parameters
        ----------
        tensors : dict
            Tensors "a", "b", "out"; if present, "c", "bias", and words and exponents of operands that were split before.
        keep : bool
            Whether the workspace is kept for the next call on this stream, in place of a new allocation for each call.
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
