"""The gate: a kernel's compiled text, run without a device, against the bits that its method's simulation gives.

``python -m mpgemm.kernels.gate [TARGET ...]`` compiles every method for every target that has a machine here, in every
configuration, and compares; it exits 1 where a bit differs.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import mpgemm
import tensorcore_models as tcm
from mpgemm.kernels.compiling import compile_launch, specialised
from mpgemm.kernels.configurations import Configuration, configurations
from mpgemm.kernels.forms import KERNELS, KernelForm, kernel_form, kernel_method
from mpgemm.kernels.launches import TritonLaunch, View, gemm_launch, repair_launch
from mpgemm.kernels.targets import MISSING, RACES, TARGETS, KernelTarget, get_target
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.word_run import equilibrating_exponents, scaling_target
from tensorcore_models import compiled
from tensorcore_models.formats import get_float_format

#: Exponents of wide data, so that few results overflow: words of fp16, and of formats with FP32's range.
_RANGES = {"fp16": (-27, 6), "bf16": (-90, 55), "tf32": (-90, 55)}
_SPECIAL = np.array(
    [np.inf, -np.inf, np.nan, 0.0, -0.0, 65520.0, -65504.0, 1e-45, 3.4e38, -1e-30, 2.0**-126, 6e-8], np.float32
)


def _normal(rng, shape, fmt):
    return rng.standard_normal(shape).astype(np.float32)


def _positive(rng, shape, fmt):
    return rng.uniform(1, 2, shape).astype(np.float32)


def _wide(rng, shape, fmt):
    return np.ldexp(rng.uniform(-2, 2, shape), rng.integers(*_RANGES[fmt], shape)).astype(np.float32)


def _special(rng, shape, fmt):
    x = _normal(rng, shape, fmt)
    x.ravel()[rng.choice(x.size, len(_SPECIAL), replace=False)] = rng.permutation(_SPECIAL)
    return x


#: Kinds of data of the gate: what draws an operand of a shape, given the format of the words.
DATA: dict[str, Callable] = {"normal": _normal, "positive": _positive, "wide": _wide, "special": _special}


def operands(kind: str, m: int, n: int, k: int, fmt: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(A, B, C) of a kind of data for words of a format; C is normal."""
    rng = np.random.default_rng([seed, list(DATA).index(kind)])
    return DATA[kind](rng, (m, k), fmt), DATA[kind](rng, (k, n), fmt), _normal(rng, (m, n), fmt)


@dataclass(frozen=True)
class GateResult:
    """How many elements of a kernel's output differ from the simulation's."""

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
    """Where two results agree: in every bit, NaN with any NaN."""
    whole = found.dtype.str.replace("f", "u")
    return (found.view(whole) == expected.view(whole)) | (np.isnan(found) & np.isnan(expected))


def simulated(row: RecoveryMethod, unit: str | None, a, b, c=None, alpha: float = 1.0, beta: float = 1.0) -> np.ndarray:
    """What a kernel of a row gives on a unit: with alpha = beta = 1 the method's A B + C, else RN(RN(alpha A B) + RN(beta C)).

    Parameters
    ----------
    row : RecoveryMethod
    unit : str
        An engine of the catalogue; the sums of the words are its.
    a, b, c : array_like
        Matrices; without c nothing is added.
    alpha, beta : float
    """
    if (alpha, beta) == (1.0, 1.0):
        return mpgemm.recovered_gemm(a, b, c, method=row, engine=unit)
    d = mpgemm.recovered_gemm(a, b, method=row, engine=unit)
    with np.errstate(all="ignore"):
        d = d * d.dtype.type(alpha)
        return d if c is None or beta == 0 else d + d.dtype.type(beta) * np.asarray(c, d.dtype)


class TextMachine:
    """Launches run on the machine of a target's text: what a device does, for arrays.

    Parameters
    ----------
    target : KernelTarget
        What a launch is compiled for, specialised as Triton's own launches are, once for each kind.
    texts : mapping, optional
        Function: (assembly, names of its parameters in order), compiled before; they run in the place of every launch.
    """

    def __init__(self, target: KernelTarget, texts: Mapping[str, tuple[str, Sequence[str]]] | None = None):
        self.target = target
        self._compiled: dict[tuple, tuple] = {}
        self._programs = {name: (compiled.read(text), tuple(names)) for name, (text, names) in (texts or {}).items()}

    def __call__(self, launch: TritonLaunch) -> None:
        """Run a launch; arrays of its views are written in place."""
        program, names = self._programs.get(launch.function) or self._program(launch)
        values = [launch.arguments[name] for name in names]
        arrays = [x.data if isinstance(x, View) else x for x in values]
        # AMD publishes no payloads of NaN; here every NaN is one.
        program.run(arrays, grid=(launch.grid,), unpublished="refuse" if self.target.backend == "cuda" else "nearest")

    def _program(self, launch: TritonLaunch):
        kinds = specialised(launch, sorted((*launch.arguments, *launch.constants)), True)
        key = launch.function, str(kinds), launch.warps, launch.stages
        if key not in self._compiled:
            kernel = compile_launch(launch, self.target, aligned=True)
            self._compiled[key] = compiled.read(kernel.assembly), kernel.parameters
        return self._compiled[key]


def matrix_view(x: np.ndarray, fmt: str = "fp32", flipped: bool = False) -> View:
    """A matrix as a kernel takes it; flipped: stored by columns."""
    rows, columns = x.shape
    data = x if fmt == "fp32" else tcm.encode(x, fmt)
    data = np.ascontiguousarray(data.T if flipped else data)
    return View(data, fmt, (rows * columns, 1, rows) if flipped else (rows * columns, columns, 1))


@dataclass(frozen=True)
class GateCase:
    """One kernel for the gate.

    Attributes
    ----------
    row : RecoveryMethod
        As :func:`mpgemm.kernels.forms.kernel_method` gives it.
    target : KernelTarget
    configuration : Configuration
    flipped : (bool, bool)
        Whether A and B are stored by columns.
    types : (str, str)
        Of the elements of A and B.
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
        """The kernel's constants."""
        return kernel_form(self.row)

    def views(self, a, b, c) -> tuple[tuple[int, int, int, int], View, View, View, View | None]:
        """(sizes, A, B, result, C) in memory."""
        (m, k), n = a.shape, b.shape[1]
        out = matrix_view(np.full((m, n), np.nan, np.float32))
        left, right = (matrix_view(x, t, f) for x, t, f in zip((a, b), self.types, self.flipped, strict=True))
        return (1, m, n, k), left, right, out, matrix_view(c) if self.add else None

    def launches(self, a, b, c) -> tuple[list[TritonLaunch], np.ndarray]:
        """(launches of a product, the array that they write)."""
        sizes, left, right, out, added = self.views(a, b, c)
        exponents = None
        if self.row.equilibrate == "rows":
            theta = scaling_target(get_float_format(self.form.format), get_float_format("fp32"), a.shape[1])
            rows, columns = equilibrating_exponents(a, 1, theta), equilibrating_exponents(b, 0, theta)
            exponents = View(rows, "s32", (0, 1, 0)), View(columns, "s32", (0, 0, 1))
        ends = {"alpha": self.alpha, "beta": self.beta}
        found = [gemm_launch(self.form, self.configuration, sizes, left, right, out, added, exponents, **ends)]
        if self.row.repair == "fp32":
            found.append(repair_launch(sizes, left, right, out, added, **ends))
        return found, out.data

    def check(
        self, kinds: Sequence[str] = tuple(DATA), shapes: Sequence[tuple[int, int, int]] | None = None,
        machine: TextMachine | None = None,
    ) -> Iterator[GateResult]:  # fmt: skip
        """Compare on each kind of data, at a ragged shape and at one of multiples of 16 unless each (m, n, k) is given.

        Triton compiles the two to different texts: of multiples of 16 loads are wide and run ahead.
        """
        machine = machine or TextMachine(self.target)
        for m, n, k in shapes or [near_tile(self.configuration, sizes) for sizes in ((1021, 1021, 1021), (1024,) * 3)]:
            for kind in kinds:
                a, b, c = operands(kind, m, n, k, self.form.format)
                a, b = (tcm.round_to(x, fmt) if fmt != "fp32" else x for x, fmt in zip((a, b), self.types, strict=True))
                launches, found = self.launches(a, b, c)
                for launch in launches:
                    machine(launch)
                expected = simulated(self.row, self.target.unit, a, b, c if self.add else None, self.alpha, self.beta)
                differ, finite = np.count_nonzero(~same_bits(found, expected)), np.count_nonzero(np.isfinite(found))
                yield GateResult(
                    self.row.name, self.target.name, self.configuration, (m, n, k), kind, found.size, int(finite), int(differ)
                )  # fmt: skip


def near_tile(tile: Configuration, sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    """m, n, k of some tiles that Triton compiles as it does `sizes`: 1, multiples of 16 and whole tiles of k stay so."""

    def near(size: int, even: int, ragged: int) -> int:
        return 1 if size == 1 else even if size % 16 == 0 else ragged

    m, n, k = sizes
    depth = 3 * tile.depth if k % tile.depth == 0 else near(k, 2 * tile.depth + 16, 2 * tile.depth + 9)
    return near(m, tile.rows + 16, tile.rows + 5), near(n, tile.columns, tile.columns - 3), depth


def cases(targets: Sequence[str] = (), methods: Sequence[str] = ()) -> Iterator[GateCase]:
    """Every method, target and configuration that there is, or those named."""
    for name in targets or [t.name for t in TARGETS.values() if t.gated]:
        target = get_target(name)
        for method in methods or KERNELS:
            row = kernel_method(method)
            if (target.name, row.formats[0]) not in MISSING and method not in RACES.get(name, ()):
                yield from (GateCase(row, target, tile) for tile in configurations(kernel_form(row), target))


def main(targets: Sequence[str]) -> int:
    """Run the gate; 1 where a bit differs."""
    wrong = 0
    for case in cases(targets):
        for result in case.check():
            wrong += result.differ > 0
            sys.stdout.write(f"{result}\n")
            sys.stdout.flush()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
