"""Makes the launches of kernels (arguments by name, constants, grid) that devices, the gate and `mpgemm kernel` share."""

from dataclasses import dataclass
from typing import Any

from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.epilogues import PLAIN, FusedEpilogue
from mpgemm.kernels.forms import KernelForm
from tensorcore_models.gpu.launches import TritonLaunch, View


def places_of(name: str, view: View | None, dimensions: tuple[str, str]) -> dict[str, Any]:
    strides = (0, 0, 0) if view is None else view.strides
    names = ("batch", *dimensions)
    return {name: view, **{f"{name}_{d}": s for d, s in zip(names, strides, strict=True)}}


def tiles_of(batch: int, m: int, n: int, configuration: Configuration) -> int:
    """Return the number of tiles of a result."""
    return batch * -(-m // configuration.rows) * -(-n // configuration.columns)


@dataclass(frozen=True)
class ProductEnd:
    """`ProductEnd` holds the steps after the words' products: alpha and beta, C, the epilogue.

    Attributes
    ----------
    c : View, optional
        Matrix that is added, or from which sums start if the form says so and alpha = beta = 1.
    alpha, beta : float
        Factors of the product and of C.
    epilogue : FusedEpilogue
        Bias, activation and rounding after the sum.
    bias : View, optional
        Numbers for the rows or the columns, as the epilogue says.
    flags : View of s32, optional
        Array in which the kernel marks tiles with elements that are not finite, for the repair.
    """

    c: View | None = None
    alpha: float = 1.0
    beta: float = 1.0
    epilogue: FusedEpilogue = PLAIN
    bias: View | None = None
    flags: View | None = None

    @property
    def factors(self) -> bool:
        """Whether alpha or beta differs from 1."""
        return (self.alpha, self.beta) != (1.0, 1.0)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments by the names that the kernels use."""
        return {
            **places_of("c", self.c, ("row", "column")), "alpha": float(self.alpha), "beta": float(self.beta),
            "bias": self.bias, "flags": self.flags,
        }  # fmt: skip

    def constants(self, seed: bool = False) -> dict[str, Any]:
        """Return the constants by the names that the kernels use; with `seed` the sums start from C."""
        return {
            "ADD": self.c is not None and not seed, "FACTORS": self.factors, **self.epilogue.constants(),
            "MARK": self.flags is not None and bool(self.epilogue),
        }  # fmt: skip


#: End that changes nothing.
NO_END = ProductEnd()


def seeds_sums(form: KernelForm, end: ProductEnd, exponents) -> bool:
    """Return whether a form's sums start from C."""
    return end.c is not None and form.seeds and not end.factors and exponents is None


def gemm_launch(
    form: KernelForm,
    configuration: Configuration,
    sizes: tuple[int, int, int, int],
    a: View,
    b: View,
    out: View,
    end: ProductEnd = NO_END,
    exponents: tuple[View, View] | None = None,
    part: int | None = None,
) -> TritonLaunch:
    """Return the launch of a method's product.

    Parameters
    ----------
    form : KernelForm
        Constants of the method.
    configuration : Configuration
        Tile, warps and stages.
    sizes : (int, int, int, int)
        Sizes batch, m, n, k.
    a, b, out : View
        Operands and result.
    end : ProductEnd
        Steps after the product.
    exponents : (View, View), optional
        Exponents of the powers of two that scale rows of A and columns of B, shapes (batch, m) and (batch, n), contiguous.
    part : int, optional
        Length of a part of k. `out` then holds one matrix for each part of k and matrix of the batch, scaled as the words are.

    Raises
    ------
    ValueError
        If the method's bits need a tile of another depth than the configuration's.
    """
    check_depth(form, configuration)
    batch, m, n, k = sizes
    seed, parts = seeds_sums(form, end, exponents), 1 if part is None else -(-k // part)
    rows, columns = exponents or (None, None)
    arguments = {
        **places_of("a", a, ("row", "k")), **places_of("b", b, ("k", "column")), **end.arguments(),
        **places_of("out", out, ("row", "column")), "row_exponents": rows, "column_exponents": columns, "m": m, "n": n, "k": k,
        "part_k": part, "a_plane": a.plane or 0, "b_plane": b.plane or 0,
    }  # fmt: skip
    constants = {
        **form.constants(), **configuration.constants(), "SPLIT": (a.plane is not None, b.plane is not None),
        "SCALED": exponents is not None, "SEED": seed, **end.constants(seed), "PARTS": parts,
        "EVEN_K": k % configuration.depth == 0,
    }  # fmt: skip
    grid = tiles_of(batch * parts, m, n, configuration)
    return TritonLaunch("gemm", arguments, constants, grid, configuration.warps, configuration.stages)


def add_parts_launch(
    configuration: Configuration, sizes: tuple[int, int, int], parts: int, sums: View, out: View, end: ProductEnd,
    exponents: tuple[View, View] | None = None,
) -> TritonLaunch:  # fmt: skip
    """Return the launch that adds the sums of the parts of k in order and applies the end of the product.

    sizes: Sizes batch, m, n.
    sums: Contiguous array with the parts of a matrix one after the other.
    exponents: Exponents of the product; the batch stride is 0 if all matrices share them.
    """
    batch, m, n = sizes
    rows, columns = exponents or (None, None)
    arguments = {
        "sums": sums, **end.arguments(), **places_of("out", out, ("row", "column")), "row_exponents": rows,
        "column_exponents": columns, "row_batch": 0 if rows is None else rows.strides[0],
        "column_batch": 0 if columns is None else columns.strides[0], "m": m, "n": n,
    }  # fmt: skip
    tile = configuration.constants()
    constants = {
        **end.constants(), "SCALED": exponents is not None, "PARTS": parts, **{x: tile[x] for x in ("BM", "BN", "GROUP")},
    }  # fmt: skip
    return TritonLaunch("add_parts", arguments, constants, tiles_of(batch, m, n, configuration), configuration.warps)


def check_depth(form: KernelForm, configuration: Configuration) -> None:
    """Refuse a tile whose depth along k would change the bits of a method, with a ValueError."""
    if form.tile is not None and configuration.depth != form.tile:
        raise ValueError(
            f"the configuration has depth {configuration.depth}, expected {form.tile}, on which the method's bits depend: give "
            f"depth={form.tile}, or change the method's restart_every or order, which changes the bits"
        )


#: Rows and columns of the repair's tiles.
REPAIR = Configuration(32, 32, 16, 4, 1)


def repair_launch(
    sizes: tuple[int, int, int, int],
    a: View,
    b: View,
    out: View,
    end: ProductEnd = NO_END,
    tile: Configuration = REPAIR,
) -> TritonLaunch:
    """Return the launch that computes results that are not finite again in FP32.

    The parameters are those of :func:`gemm_launch`, with A and B before splitting.

    tile: Configuration of the product, if its end has flags; without flags the whole result is read.
    """
    batch, m, n, k = sizes
    arguments = {
        **places_of("a", a, ("row", "k")), **places_of("b", b, ("k", "column")), **end.arguments(),
        **places_of("out", out, ("row", "column")), "m": m, "n": n, "k": k,
    }  # fmt: skip
    tile = REPAIR if end.flags is None else tile
    own = {**REPAIR.constants(), "BM": min(REPAIR.rows, tile.rows), "BN": min(REPAIR.columns, tile.columns)}
    constants = {
        **own, **end.constants(), "FLAGGED": None if end.flags is None else (tile.rows, tile.columns),
    }  # fmt: skip
    return TritonLaunch("repair", arguments, constants, tiles_of(batch, m, n, tile), REPAIR.warps, REPAIR.stages)
