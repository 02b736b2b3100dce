"""This module runs a user's own PTO kernel of C = A B on the shim."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ascend.chips.chip import Chip
from ascend.cube import cube_hgemm
from ascend.dialects import check_dialect
from ascend.emit.check import Matrix, PtoCheck, compared, elements_of, run_kernels
from ascend.emit.pto import SUMS, WORDS
from ascend.operands import operand_slices
from ascend.slices import Sums
from tensorcore_models.integers import integer_fields

#: Limit on m * n * k: a core runs some ten million products a second.
MOST_PRODUCTS = 2_000_000_000


@dataclass(frozen=True)
class OwnKernel:
    """`OwnKernel` is a kernel of C = A B: its file, the function to call on each of `cores` blocks, and the arguments.

    Parameters
    ----------
    file : Path
        C++ file that includes <pto/pto-inst.hpp>.
    entry : str
        Name of the kernel, or of a function that launches it (`<<<...>>>` is read as a plain call).
    cores : int
        Number of blocks that are launched.
    m, k, n : int
        A is m x k, B is k x n.
    operand : {"fp16", "bf16", "fp32", "int8"}
        Format of the elements of A and B.
    layout : {"nd", "nt"}
        Layout of B: K x N rows, or N x K rows.
    arguments : tuple of str
        Arguments of the function: "a", "b" and "c" are the matrices, other words are passed as they are.
    chip : Chip
        Chip whose buffers the kernel uses.

    Raises
    ------
    ValueError
        If the file does not exist, the chip has no PTO, a size is below 1, or a name is no C++ name.
    """

    file: Path
    entry: str
    cores: int
    m: int
    k: int
    n: int
    operand: str
    layout: str
    arguments: tuple[str, ...]
    chip: Chip

    def __post_init__(self):
        integer_fields(self, "cores", "m", "k", "n")
        check_dialect("pto", self.chip)
        if not self.file.is_file():
            raise ValueError(
                f"{self.file} is not a file: expected the C++ file of a kernel, or a folder of plan --emit pto"
            )
        if min(self.cores, self.m, self.k, self.n) < 1:
            raise ValueError(f"cores, M, K and N must be at least 1, got {self.cores}, {self.m}, {self.k}, {self.n}")
        if self.m * self.k * self.n > MOST_PRODUCTS:
            raise ValueError(
                f"{self.m} x {self.k} x {self.n} is too large to run here (at most {MOST_PRODUCTS:.0e} products): take "
                "smaller sizes"
            )
        if not re.fullmatch(r"[A-Za-z_][\w:<>, ]*", self.entry):
            raise ValueError(f"--entry must be the name of a function, got {self.entry!r}")
        if "c" not in self.arguments or not all(re.fullmatch(r"[\w.]+", word) for word in self.arguments):
            raise ValueError(
                f"--arguments must be names separated by commas, among them c, got {','.join(self.arguments)!r}"
            )


def check_own(kernel: OwnKernel, seed: int = 0, optimization: str = "-O1") -> PtoCheck:
    """Run a kernel on normal elements and compare each element of C with one chain over k in order.

    A kernel that adds slices or groups of k apart gives other bits; only a result that no order of FP32 sums can give
    is a fault. Raises ValueError if the file does not compile or has no such function.
    """
    rng = np.random.default_rng(seed)
    shapes = (kernel.m, kernel.k), (kernel.k, kernel.n)
    if kernel.operand == "int8":
        a, b = (rng.integers(-128, 128, shape, np.int8) for shape in shapes)
    else:
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    word, total = WORDS[kernel.operand], SUMS.get(kernel.operand, "float")
    sizes = {"a": a.size, "b": b.size, "c": kernel.m * kernel.n}
    values = {"a": a, "b": b.T if kernel.layout == "nt" else b}
    matrices = [Matrix(name, word, sizes[name], elements_of(values[name], kernel.operand)) for name in "ab"]
    matrices.append(Matrix("c", total, sizes["c"], None, True))
    own = {name: f"mpgemm::AnyPointer{{{name}}}" for name in sizes}
    arguments = ", ".join(own.get(word, word) for word in kernel.arguments)
    main = f'#include "{kernel.file.name}"\n//@main\n    harness.run({kernel.cores}, [&] {{ {kernel.entry}({arguments}); }});'
    run = run_kernels(
        [kernel.file], main, matrices, kernel.chip, "c", text_of=_without_launch, optimization=optimization, included=True
    )  # fmt: skip
    # Two orders of n FP32 sums differ by at most 2 n u / (1 - n u) of the sum of magnitudes (Higham, section 4.2).
    growth = (kernel.k + 1) * 2.0**-24
    allowed = (
        np.abs(a.astype(float)) @ np.abs(b.astype(float)) * (2 * growth / (1 - growth) * (kernel.operand != "int8"))
    )
    expected = _chains(a, b, kernel)
    return compared(str(kernel.file), list(run.faults), run.result, expected, "one chain over k in order", allowed)


def _without_launch(text: str) -> str:
    """Return a launch as a plain call, because the harness calls the function for each block."""
    return re.sub(r"<<<[^;]*?>>>", "", text)


def _chains(a: np.ndarray, b: np.ndarray, kernel: OwnKernel) -> np.ndarray:
    if kernel.operand == "fp16":
        return cube_hgemm(a, b, overflow="inf")
    step = kernel.chip.cube_step_k(kernel.operand)
    return operand_slices(Sums((((0, kernel.k),),), operand=kernel.operand, step=step), a, b)[0]
