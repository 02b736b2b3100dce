"""The gate compares a kernel's compiled text, run without a device, with the bits of its method's simulation.

:mod:`mpgemm.kernels.whole_gate` runs every method in every configuration, for every target whose text can run here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import mpgemm
import tensorcore_models as tcm
from mpgemm.kernels.compiling import kernel_function
from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.forms import KernelForm, kernel_form
from mpgemm.kernels.launches import ProductEnd, gemm_launch, repair_launch
from mpgemm.kernels.residues import TILE, ResiduePlanes, residue_launches
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.word_run import equilibrating_exponents, scaling_target
from tensorcore_models.formats import get_float_format
from tensorcore_models.gpu.launchers import CompiledText, TextMachine
from tensorcore_models.gpu.launches import TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget

#: Exponents of wide data for words of each format, chosen so that few results overflow.
_RANGES = {"fp16": (-27, 6), "bf16": (-90, 55), "tf32": (-90, 55)}
_SPECIAL = np.array(
    [np.inf, -np.inf, np.nan, 0.0, -0.0, 65520.0, -65504.0, 1e-45, 3.4e38, -1e-30, 2.0**-126, 6e-8], np.float32
)
#: Exponents of wide data for words of s8, which are words of FP64 numbers; results reach FP64's subnormal range and below.
_DOUBLE_RANGE = (-560, 1)
_SPECIAL_DOUBLES = np.array(
    [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.7e308, -1e300, 5e-324, 2.0**-1022, 2.0**53 + 2, 1e-300, -1.0]
)


def _normal(rng, shape, fmt):
    return rng.standard_normal(shape)


def _positive(rng, shape, fmt):
    return rng.uniform(1, 2, shape)


def _wide(rng, shape, fmt):
    values = rng.uniform(-2, 2, shape)
    if fmt == "s8":  # rows of A and columns of B share an exponent, so whole rows and columns are small
        return np.ldexp(values, sum(rng.integers(*_DOUBLE_RANGE, lines) for lines in ((shape[0], 1), (1, shape[1]))))
    return np.ldexp(values, rng.integers(*_RANGES[fmt], shape))


def _special(rng, shape, fmt):
    x, special = _normal(rng, shape, fmt), _SPECIAL_DOUBLES if fmt == "s8" else _SPECIAL
    x.ravel()[rng.choice(x.size, len(special), replace=False)] = rng.permutation(special)
    return x


#: Kinds of data of the gate: functions that draw an operand of a shape for the format of the words.
DATA: dict[str, Callable] = {"normal": _normal, "positive": _positive, "wide": _wide, "special": _special}


def operands(kind: str, m: int, n: int, k: int, fmt: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (A, B, C) of a kind of data for words of a format, in FP64 for s8, else in FP32; C is normal."""
    rng, dtype = np.random.default_rng([seed, list(DATA).index(kind)]), np.float64 if fmt == "s8" else np.float32
    drawn = DATA[kind](rng, (m, k), fmt), DATA[kind](rng, (k, n), fmt), _normal(rng, (m, n), fmt)
    a, b, c = (x.astype(dtype) for x in drawn)
    return a, b, c


@dataclass(frozen=True)
class GateResult:
    """`GateResult` counts the elements of a kernel's output that differ from the simulation's."""

    method: str
    target: str
    configuration: Configuration
    shape: tuple[int, int, int]
    data: str
    elements: int
    finite: int
    differ: int

    def __str__(self) -> str:
        tile, (m, n, k) = self.configuration, self.shape
        return (
            f"{self.method} on {self.target}, tile {tile.rows} x {tile.columns} x {tile.depth}, {tile.warps} warps, "
            f"{tile.stages} stages, {m} x {n} x {k}, {self.data}: {self.differ} of {self.elements} differ "
            f"({self.finite} finite)"
        )


def same_bits(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where two results agree in every bit; a NaN agrees with any NaN."""
    whole = found.dtype.str.replace("f", "u")
    return (found.view(whole) == expected.view(whole)) | (np.isnan(found) & np.isnan(expected))


def simulated(row: RecoveryMethod, unit: str | None, a, b, c=None, alpha: float = 1.0, beta: float = 1.0) -> np.ndarray:
    """Simulate a row's kernel on a unit: the method's A B + C if alpha = beta = 1, else RN(RN(alpha A B) + RN(beta C)).

    Parameters
    ----------
    row : RecoveryMethod
        Method.
    unit : str
        Engine of the catalogue that multiplies the words.
    a, b, c : array_like
        Matrices; without c nothing is added.
    alpha, beta : float
        Factors.
    """
    if (alpha, beta) == (1.0, 1.0):
        return mpgemm.recovered_gemm(a, b, c, method=row, engine=unit)
    d = mpgemm.recovered_gemm(a, b, method=row, engine=unit)
    with np.errstate(all="ignore"):
        d = d * d.dtype.type(alpha)
        return d if c is None or beta == 0 else d + d.dtype.type(beta) * np.asarray(c, d.dtype)


def text_machine(target: KernelTarget, texts: Sequence[CompiledText] = ()) -> TextMachine:
    """Return the machine that runs these kernels as a target's text; `texts` is an argument of :class:`TextMachine`."""
    return TextMachine(target, kernel_function, texts)


def matrix_view(x: np.ndarray, fmt: str = "fp32", flipped: bool = False) -> View:
    """Return a matrix as a kernel takes it; with `flipped` it is stored by columns."""
    rows, columns = x.shape
    data = x if fmt in ("fp32", "fp64") else tcm.encode(x, fmt)
    data = np.ascontiguousarray(data.T if flipped else data)
    return View(data, fmt, (rows * columns, 1, rows) if flipped else (rows * columns, columns, 1))


class GateRun:
    """`GateRun` draws operands, runs a kernel and compares; a case states its row and target."""

    row: RecoveryMethod
    target: KernelTarget
    configuration: Configuration
    #: Types of the elements of A and B, if narrower than the drawn operands.
    types: tuple[str, str] = ("fp32", "fp32")

    @property
    def name(self) -> str:
        """Name of the method in a result."""
        return self.row.name

    def draw(self, kind: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (A, B, C) of a kind of data, in the case's types."""
        a, b, c = operands(kind, m, n, k, self.row.formats[0])
        a, b = (tcm.round_to(x, fmt) if fmt != "fp32" else x for x, fmt in zip((a, b), self.types, strict=True))
        return a, b, c

    def run(self, machine: TextMachine, a, b, c) -> np.ndarray:
        """Run the kernel and return its result."""
        raise NotImplementedError

    def expected(self, a, b, c) -> np.ndarray:
        """Simulate the kernel and return the result that it must give."""
        return simulated(self.row, self.target.unit, a, b)

    def shapes(self) -> list[tuple[int, int, int]]:
        """Return two shapes, one ragged and one of multiples of 16.

        Triton compiles them to different texts: for multiples of 16 its loads are wide and pipelined.
        """
        return [near_tile(self.configuration, sizes) for sizes in ((1021, 1021, 1021), (1024,) * 3)]

    def check(
        self, kinds: Sequence[str] = tuple(DATA), shapes: Sequence[tuple[int, int, int]] | None = None,
        machine: TextMachine | None = None,
    ) -> Iterator[GateResult]:  # fmt: skip
        """Compare on each kind of data at each (m, n, k), by default at :meth:`shapes`."""
        machine = machine or text_machine(self.target)
        for m, n, k in shapes or self.shapes():
            for kind in kinds:
                a, b, c = self.draw(kind, m, n, k)
                found = self.run(machine, a, b, c)
                differ = np.count_nonzero(~same_bits(found, self.expected(a, b, c)))
                finite = np.count_nonzero(np.isfinite(found))
                yield GateResult(
                    self.name, self.target.name, self.configuration, (m, n, k), kind, found.size, int(finite), int(differ)
                )  # fmt: skip


@dataclass(frozen=True)
class GateCase(GateRun):
    """`GateCase` is a product of words for the gate.

    Attributes
    ----------
    row : RecoveryMethod
        Row that :func:`mpgemm.kernels.forms.kernel_method` returns.
    target : KernelTarget
        Target of the kernel's text.
    configuration : Configuration
        Tile, warps and stages.
    flipped : (bool, bool)
        Whether A and B are stored by columns.
    types : (str, str)
        Types of the elements of A and B.
    add : bool
        Whether C is added.
    alpha, beta : float
    """

    row: RecoveryMethod
    target: KernelTarget
    configuration: Configuration
    flipped: tuple[bool, bool] = (False, False)
    types: tuple[str, str] = ("fp32", "fp32")
    add: bool = False
    alpha: float = 1.0
    beta: float = 1.0

    @property
    def form(self) -> KernelForm:
        """Constants of the kernel."""
        return kernel_form(self.row)

    def views(self, a, b, c) -> tuple[tuple[int, int, int, int], View, View, View, View | None]:
        """Return (sizes, A, B, result, C) as views of memory."""
        (m, k), n = a.shape, b.shape[1]
        out = matrix_view(np.full((m, n), np.nan, np.float32))
        left, right = (matrix_view(x, t, f) for x, t, f in zip((a, b), self.types, self.flipped, strict=True))
        return (1, m, n, k), left, right, out, matrix_view(c) if self.add else None

    def launches(self, a, b, c) -> tuple[list[TritonLaunch], np.ndarray]:
        """Return the launches of a product, and the array that they write."""
        sizes, left, right, out, added = self.views(a, b, c)
        exponents = None
        if self.row.equilibrate == "rows":
            theta = scaling_target(get_float_format(self.form.format), get_float_format("fp32"), a.shape[1])
            rows, columns = equilibrating_exponents(a, 1, theta), equilibrating_exponents(b, 0, theta)
            exponents = View(rows, "s32", (0, 1, 0)), View(columns, "s32", (0, 0, 1))
        end = ProductEnd(added, self.alpha, self.beta)
        found = [gemm_launch(self.form, self.configuration, sizes, left, right, out, end, exponents)]
        if self.row.repair == "fp32":
            found.append(repair_launch(sizes, left, right, out, end))
        return found, out.data

    def run(self, machine: TextMachine, a, b, c) -> np.ndarray:
        """Run the kernel and return its result."""
        launches, found = self.launches(a, b, c)
        for launch in launches:
            machine(launch)
        return found

    def expected(self, a, b, c) -> np.ndarray:
        """Simulate the kernel and return the result that it must give."""
        return simulated(self.row, self.target.unit, a, b, c if self.add else None, self.alpha, self.beta)


_INTEGERS = {"s8": np.int8, "s32": np.int32}


@dataclass(frozen=True)
class ResidueCase(GateRun):
    """`ResidueCase` is a product by Ozaki's scheme II on int8 for the gate.

    Attributes
    ----------
    row : RecoveryMethod
        Row of the kind "residues".
    target : KernelTarget
        Target of the kernels' text.
    configuration : Configuration
        Tile, warps and stages.
    described : bool
        Whether residues are fetched by TMA.
    """

    row: RecoveryMethod
    target: KernelTarget
    configuration: Configuration = TILE
    described: bool = False

    @property
    def name(self) -> str:
        """Name of the method with its number of moduli."""
        return f"{self.row.name}:moduli={len(self.row.moduli)}"

    def run(self, machine: TextMachine, a, b, c) -> np.ndarray:
        """Run the kernels and return their result."""
        (m, k), n = a.shape, b.shape[1]
        planes, out = ResiduePlanes(self.row.moduli, (1, m, n, k)), matrix_view(np.zeros((m, n)), "fp64")
        room = {name: np.zeros(shape, _INTEGERS[kind]) for name, (shape, kind) in planes.workspace().items()}
        left, right = matrix_view(a, "fp64"), matrix_view(b, "fp64")
        for launch in residue_launches(planes, left, right, out, room, self.configuration, self.described):
            machine(launch)
        return out.data


def near_tile(tile: Configuration, sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return m, n, k of a few tiles that Triton compiles as it compiles `sizes`.

    Sizes of 1, multiples of 16 and multiples of the tile's depth stay so.
    """

    def near(size: int, even: int, ragged: int) -> int:
        return 1 if size == 1 else even if size % 16 == 0 else ragged

    m, n, k = sizes
    depth = 3 * tile.depth if k % tile.depth == 0 else near(k, 2 * tile.depth + 16, 2 * tile.depth + 9)
    return near(m, tile.rows + 16, tile.rows + 5), near(n, tile.columns, tile.columns - 3), depth
