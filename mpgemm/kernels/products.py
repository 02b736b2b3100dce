"""Products of torch tensors: a batch of matrices on a device by launches, on the CPU by the simulation."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import to_array
from mpgemm.kernels import devices
from mpgemm.kernels.configurations import TUNED, Configuration, check_stages, choose, configurations
from mpgemm.kernels.forms import KernelForm, kernel_form
from mpgemm.kernels.gate import simulated
from mpgemm.kernels.launches import check_depth, gemm_launch, repair_launch, split_launch
from mpgemm.kernels.targets import check_words
from mpgemm.kernels.tuning import fastest
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.word_run import scaling_target
from tensorcore_models.formats import get_float_format
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget

TYPES = {
    torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int32: "s32", torch.float64: "fp64",
}  # fmt: skip
#: What operands of methods on words are.
OPERANDS = (torch.float32, torch.bfloat16, torch.float16)
_WORDS = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}


@dataclass(frozen=True, eq=False)
class SplitTensor:
    """An operand that was split into words once; :func:`mpgemm.kernels.split` makes it.

    Attributes
    ----------
    source : Tensor, shape (batch, rows, columns)
        What was split: the repair, gradients and the simulation read it. It must not change.
    words : Tensor, shape (words, batch, rows, columns), or None on the CPU
    exponents : Tensor of int32, shape (batch, rows or columns), or None
        Powers of two by which rows of A or columns of B were multiplied.
    row : RecoveryMethod
    method, scale, repair
        As they were given.
    side : int
        0: A; 1: B.
    shape : tuple of int
        Of the operand that was given.
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
    """A batch of matrices as a kernel takes it."""
    return View(x, TYPES[x.dtype], (x.stride(0), x.stride(1), x.stride(2)))


def exponents_of(x: torch.Tensor, dim: int, form: KernelForm, k: int) -> torch.Tensor:
    """Powers of two that bring the largest finite element of each row (dim 2) or column (dim 1) just below the words' target;
    int32, as :func:`mpgemm.recovery.word_run.equilibrating_exponents` has them."""
    theta = scaling_target(get_float_format(form.format), get_float_format("fp32"), k)
    significand, exponent = np.frexp(theta)
    magnitudes = torch.where(torch.isfinite(x), x.abs(), torch.zeros((), dtype=x.dtype, device=x.device))
    largest = magnitudes.amax(dim).double()
    own_significand, own_exponent = torch.frexp(largest)
    e = int(exponent) - own_exponent - (own_significand > float(significand)).int()
    return torch.where(largest > 0, e, 0).to(torch.int32).contiguous()


def split_matrices(x: torch.Tensor, side: int, row: RecoveryMethod) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(planes of words, exponents) of a batch of matrices on a device."""
    form = kernel_form(row)
    batch, rows, columns = x.shape
    exponents, e_view = None, None
    if row.equilibrate == "rows":
        exponents = exponents_of(x, 2 - side, form, (columns, rows)[side])
        strides = (exponents.stride(0), 0, 1) if side else (exponents.stride(0), 1, 0)
        e_view = View(exponents, "s32", strides)
    words = torch.empty((form.words[side], batch, rows, columns), dtype=_WORDS[form.format], device=x.device)
    out = View(words, TYPES[words.dtype], (rows * columns, columns, 1), batch * rows * columns)
    if words.numel():
        devices.execute(split_launch(form, side, (batch, rows, columns), view(x), out, e_view), x.device)
    return words, exponents


@dataclass(frozen=True, eq=False)
class TensorProduct:
    """alpha A B + beta C for a batch of matrices.

    Attributes
    ----------
    row : RecoveryMethod
    a, b : Tensor, shapes (batch, m, k) and (batch, k, n), of any strides
    c : Tensor, shape (batch, m, n), or None
    alpha, beta : float
    unit : str
        Whose sums the simulation has, where no device runs the product.
    configuration : Configuration or None
        None: the counted model chooses; TUNED: time does.
    ready : tuple of (Tensor or None)
        Words and exponents of A, then of B, as :class:`SplitTensor` has them, where they were split before.
    """

    row: RecoveryMethod
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor | None = None
    alpha: float = 1.0
    beta: float = 1.0
    unit: str = "h100"
    configuration: Configuration | None = None
    ready: tuple[torch.Tensor | None, ...] = ()

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """batch, m, n, k."""
        batch, m, k = self.a.shape
        return batch, m, self.b.shape[2], k

    def into(self, out: torch.Tensor) -> None:
        """Compute into `out`, shape (batch, m, n), which shares no memory with the operands but may be C."""
        form = kernel_form(self.row)
        if self.configuration not in (None, TUNED):
            check_depth(form, self.configuration)
        target = devices.device_target(self.a.device)
        if target is not None:
            check_words(target, form.format, self.row.name)
        if out.numel() == 0:
            return
        if self.a.shape[2] == 0:
            out.copy_(self._nothing())
        elif target is None:
            self._simulate(out)
        else:
            self._launch(out, form, target)

    def _nothing(self) -> torch.Tensor:
        """What no products give."""
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
            out[index] = torch.from_numpy(np.ascontiguousarray(found, np.float32))

    def _launch(self, out: torch.Tensor, form: KernelForm, target: KernelTarget) -> None:
        for launch in self.launches(out, form, target):
            devices.execute(launch, self.a.device)

    def launches(self, out: torch.Tensor, form: KernelForm, target: KernelTarget) -> Iterator[TritonLaunch]:
        """The product, and the repair of results that are not finite."""
        batch, m, n, k = self.sizes
        c = None if self.c is None or self.beta == 0 else view(self.c)
        repaired = self.row.repair == "fp32"
        if repaired and self.c is out:  # the repair reads C after the product has been written
            c = view(self.c.clone())
        exponents = self._exponents(form) if self.row.equilibrate == "rows" else None
        left, right = (
            view(x) if words is None else _planes(words, x.shape)
            for x, words in zip((self.a, self.b), self.ready[::2] or (None, None), strict=True)
        )
        ends = (float(self.alpha), float(self.beta))

        def product(tile: Configuration, into: torch.Tensor) -> TritonLaunch:
            return gemm_launch(form, tile, self.sizes, left, right, view(into), c, exponents, *ends)

        tile = self.configuration or choose(form, target, m, n, k, batch)
        if tile == TUNED:
            spare = torch.empty_like(out)  # c may be the result
            tried = {tile: product(tile, spare) for tile in configurations(form, target)}
            tile = fastest(tried, target.name, lambda launch: devices.execute(launch, self.a.device))
        check_stages(form, tile, target)
        yield product(tile, out)
        if repaired:
            yield repair_launch(self.sizes, view(self.a), view(self.b), view(out), c, *ends)

    def _exponents(self, form: KernelForm) -> tuple[View, View]:
        k = self.a.shape[2]
        found = []
        for side, (x, ready) in enumerate(zip((self.a, self.b), self.ready[1::2] or (None, None), strict=True)):
            e = exponents_of(x, 2 - side, form, k) if ready is None else ready
            shape = x.shape[0], x.shape[1 + side]
            e = (e if e.numel() == math.prod(shape) else e.repeat(shape[0] // e.shape[0], 1)).reshape(shape)
            found.append(View(e, "s32", (e.shape[1], 1, 1)))
        return found[0], found[1]


def _planes(words: torch.Tensor, shape: tuple[int, ...]) -> View:
    """Words of an operand (batch, rows, columns): as they were split, their batches as one tall matrix, or repeated."""
    batch, rows, columns = shape
    if words.shape[1] not in (1, batch) and words[0].numel() != math.prod(shape):
        words = words.repeat(1, batch // words.shape[1], 1, 1)
    own = 0 if words.shape[1] == 1 else rows * columns
    return View(words, TYPES[words.dtype], (own, words.stride(2), words.stride(3)), words.stride(0))


@cache
def say_simulated(unit: str) -> None:
    """Warn, once for each unit, that a product is simulated."""
    warnings.warn(
        f"tensors on the CPU: products are simulated bit for bit as {unit} computes them, not run by a kernel",
        stacklevel=6,
    )
