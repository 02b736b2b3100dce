"""Computes products of torch tensors: on a device with kernels, on the CPU with the simulation."""

import warnings
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import to_array
from mpgemm.kernels import devices
from mpgemm.kernels.configurations import TUNED, Configuration
from mpgemm.kernels.epilogues import PLAIN, FusedEpilogue
from mpgemm.kernels.forms import kernel_form
from mpgemm.kernels.gate import simulated
from mpgemm.kernels.launches import check_depth
from mpgemm.kernels.plans import WORD_TYPES, PlannedProduct, ProductPlan, TensorPlan, words_needed
from mpgemm.kernels.targets import check_words
from mpgemm.kernels.tuning import fastest
from mpgemm.kernels.word_launches import WordPlanes, padded_depth, split_operands_launch
from mpgemm.recovery.method import RecoveryMethod
from tensorcore_models.gpu.launches import View
from tensorcore_models.gpu.targets import KernelTarget

TYPES = {
    torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int32: "s32", torch.float64: "fp64",
}  # fmt: skip
#: Types of operands of methods that multiply words.
OPERANDS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True, eq=False)
class SplitTensor:
    """`SplitTensor` is an operand that was split into words once; :func:`mpgemm.kernels.split` makes it.

    Attributes
    ----------
    source : Tensor, shape (batch, rows, columns)
        Operand that was split. It must not change, because gradients, the simulation on the CPU and the repair of results that
        are not finite read it.
    words : Tensor, or None on the CPU
        Words of the operand, one plane for each word (:class:`mpgemm.kernels.word_launches.WordPlanes`).
    exponents : Tensor of int32, shape (batch, rows or columns), or None
        Exponents of the powers of two by which rows of A or columns of B were multiplied.
    row : RecoveryMethod
        Method that splits the operands.
    method, scale, repair
        Arguments of :func:`mpgemm.kernels.split`.
    side : int
        Side of the product: 0 for A, 1 for B.
    shape : tuple of int
        Shape of the operand that was given.
    """

    source: torch.Tensor
    words: torch.Tensor | None
    exponents: torch.Tensor | None
    row: RecoveryMethod
    method: str
    scale: str
    repair: bool
    side: int
    shape: tuple[int, ...]


def view(x: torch.Tensor) -> View:
    """Return a batch of matrices as the view that kernels take."""
    return View(x, TYPES[x.dtype], (x.stride(0), x.stride(1), x.stride(2)))


def split_matrices(x: torch.Tensor, side: int, row: RecoveryMethod) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Split a batch of matrices on a device; return planes of words along k, and exponents or None."""
    form = kernel_form(row)
    k, lines = x.shape[2 - side], x.shape[1 + side]
    count = words_needed(form, row, side, TYPES[x.dtype])
    depth = padded_depth(form)
    planes = WordPlanes(form.format, count, x.shape[0], lines, -(-k // depth) * depth, "k")
    words = torch.empty(planes.shape, dtype=WORD_TYPES[form.format], device=x.device)
    exponents = None
    if row.equilibrate == "rows":
        exponents = torch.empty((x.shape[0], lines), dtype=torch.int32, device=x.device)
    if words.numel():
        pairs = [(view(x), planes, words, exponents) if side == s else (None,) * 4 for s in (0, 1)]
        views, places, rooms, ends = zip(*pairs, strict=True)
        sizes = (1, lines, k) if side else (lines, 1, k)
        counts = (form.words[0], count) if side else (count, form.words[1])
        devices.execute(split_operands_launch(form, sizes, views, places, rooms, ends, counts), x.device)
    return words, exponents


@dataclass(frozen=True, eq=False)
class TensorProduct:
    """`TensorProduct` computes alpha A B + beta C with its epilogue for a batch of matrices.

    Attributes
    ----------
    row : RecoveryMethod
        Method that splits the operands.
    a, b : Tensor, shapes (batch, m, k) and (batch, k, n)
        Operands of any strides.
    c : Tensor, shape (batch, m, n), or None
        Addend.
    alpha, beta : float
        Factors.
    unit : str
        Unit that is simulated if no device runs the product.
    configuration : Configuration or None
        Tile, warps and stages; None if the counted model chooses, TUNED if measured time chooses.
    ready : tuple of (Tensor or None)
        Words and exponents of A, then of B, of operands that were split before (:class:`SplitTensor`).
    epilogue : FusedEpilogue
        Epilogue.
    bias : Tensor, or None
        Contiguous numbers for the rows or the columns, as the epilogue says.
    """

    row: RecoveryMethod
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor | None = None
    alpha: float = 1.0
    beta: float = 1.0
    unit: str = "h100"
    configuration: Configuration | None = None
    ready: tuple[torch.Tensor | None, ...] = (None,) * 4
    epilogue: FusedEpilogue = PLAIN
    bias: torch.Tensor | None = None

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Sizes batch, m, n, k."""
        batch, m, k = self.a.shape
        return batch, m, self.b.shape[2], k

    def into(self, out: torch.Tensor) -> None:
        """Compute into `out`, shape (batch, m, n), which may be C but must not share memory with the operands."""
        form = kernel_form(self.row)
        if self.configuration not in (None, TUNED):
            check_depth(form, self.configuration)
        target = devices.device_target(self.a.device)
        if target is not None:
            check_words(target, form.format, self.row.name)
        if out.numel() == 0:
            return
        if self.a.shape[2] == 0:
            self._store(out, self._nothing().expand(out.shape))
        elif target is None:
            self._simulate(out)
        else:
            self._launch(out, target)

    def _nothing(self) -> torch.Tensor:
        """Return the result if k is 0: beta C, or zero."""
        zero = torch.zeros((), dtype=torch.float32, device=self.a.device)
        if (self.alpha, self.beta) == (1.0, 1.0):
            return zero if self.c is None else self.c
        return zero * self.alpha if self.c is None else zero * self.alpha + self.beta * self.c

    def _simulate(self, out: torch.Tensor) -> None:
        say_simulated(self.unit)
        for index, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            c = None if self.c is None else to_array(self.c[index], "c")
            found = simulated(
                self.row, self.unit, to_array(a, "a"), to_array(b, "b"), c, float(self.alpha), float(self.beta)
            )
            self._store(out[index], torch.from_numpy(np.ascontiguousarray(found, np.float32)))

    def _store(self, out: torch.Tensor, value: torch.Tensor) -> None:
        """Store values of alpha A B + beta C with the epilogue, which NumPy computes."""
        if self.epilogue:
            bias = None if self.bias is None else to_array(self.bias.float(), "bias")
            found = [
                self.epilogue.of(x, bias, self.unit)
                for x in to_array(value, "the product").reshape(-1, *out.shape[-2:])
            ]
            value = torch.from_numpy(np.stack(found).reshape(out.shape))
        out.copy_(value)

    def planned(self, out: torch.Tensor, tile: Configuration | None = None) -> PlannedProduct:
        """Return the facts on which this product's plan depends."""
        c = None if self.c is None or self.beta == 0 else strides_of(self.c)
        return PlannedProduct(
            self.row, self.sizes, (TYPES[self.a.dtype], TYPES[self.b.dtype]), (strides_of(self.a), strides_of(self.b)),
            strides_of(out), c, float(self.alpha), float(self.beta), tile, (self._batches(0), self._batches(1)), self.epilogue,
            "fp32" if self.bias is None else TYPES[self.bias.dtype],
        )  # fmt: skip

    def tensors(self, out: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the tensors of the plan by their names."""
        found = {"a": self.a, "b": self.b, "out": out}
        if self.bias is not None:
            found["bias"] = self.bias
        if self.c is not None and self.beta != 0:
            # the repair reads C after the product has been written
            found["c"] = self.c.clone() if self.row.repair == "fp32" and self.c is out else self.c
        batch = self.a.shape[0]
        for side, (words, exponents) in enumerate(zip(self.ready[::2], self.ready[1::2], strict=True)):
            if words is None:
                continue
            lines = (self.a, self.b)[side].shape[1 + side]
            held = self._held(side)
            batches = 1 if held == 1 else batch
            if batches != held:
                words = words.unflatten(0, (-1, held * lines)).repeat(1, batches // held, 1).flatten(0, 1)
            found["ab"[side] + "_words"] = words
            if exponents is not None:
                count = exponents.numel() // lines
                exponents = exponents.reshape(count, lines)
                found["ab"[side] + "_exponents"] = exponents.repeat(batch // count, 1)
        return found

    def _held(self, side: int) -> int:
        """Return the number of batches of words that were split before; a batch of A may be one tall matrix here."""
        x, words = (self.a, self.b)[side], self.ready[2 * side]
        assert words is not None
        form = kernel_form(self.row)
        count = words_needed(form, self.row, side, TYPES[x.dtype])
        return words.shape[0] // (count * x.shape[1 + side])

    def _batches(self, side: int) -> int | None:
        """Return the number of batches of words that the plan gets, 1 or the product's; None for an operand without words."""
        if self.ready[2 * side] is None:
            return None
        return 1 if self._held(side) == 1 else self.a.shape[0]

    def _launch(self, out: torch.Tensor, target: KernelTarget) -> None:
        tile = self._tuned(out, target) if self.configuration == TUNED else self.configuration
        plan_of(self.planned(out, tile), self.a.device)(self.tensors(out))

    def _tuned(self, out: torch.Tensor, target: KernelTarget) -> Configuration:
        """Return the tile whose product takes the least time; timed products write to spare memory, because out may be C."""
        spare = torch.empty_like(out)
        whole = ProductPlan(self.planned(spare), target)
        launches = {tile: ProductPlan(self.planned(spare, tile), target).multiplies for tile in whole.tiles}
        tensors, device = self.tensors(spare), self.a.device
        return fastest(launches, target.name, lambda tile: plan_of(self.planned(spare, tile), device)(tensors))


def strides_of(x: torch.Tensor) -> tuple[int, int, int]:
    """Return the strides of a batch of matrices; the batch's own stride is 0 for one matrix."""
    batch, row, column = x.stride()
    return (0 if x.shape[0] == 1 else batch), row, column


@lru_cache(maxsize=512)
def _plan_of(product: PlannedProduct, device: torch.device, target: str) -> TensorPlan:
    return TensorPlan(product, device)


def plan_of(product: PlannedProduct, device: torch.device) -> TensorPlan:
    """Return the plan of a product on a device, which is made once."""
    target = devices.device_target(device)
    assert target is not None
    return _plan_of(product, device, target.name)


@cache
def say_simulated(unit: str) -> None:
    """Warn once for each unit that a product is simulated."""
    warnings.warn(
        f"tensors on the CPU: products are simulated with the bits of {unit}, not run by a kernel; move them to a GPU for that",
        stacklevel=6,
    )
