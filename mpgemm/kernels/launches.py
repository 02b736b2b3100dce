"""One launch of a kernel: arguments by name, constants, grid. Devices, the gate and `mpgemm kernel` make the same ones."""

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
    """Return tiles of a result."""
    return batch * -(-m // configuration.rows) * -(-n // configuration.columns)


@dataclass(frozen=True)
class ProductEnd:
    """What follows the words' products: alpha and beta, C, the epilogue.

    Attributes
    ----------
    c : View, optional
        Added, or where sums start where the form says so and alpha = beta = 1.
    alpha, beta : float
    epilogue : FusedEpilogue
    bias : View, optional
        Numbers of rows or columns, as the epilogue says.
    flags : View of s32, optional
        Where the kernel says for each tile whether elements are not finite, for the repair.
    """

    c: View | None = None
    alpha: float = 1.0
    beta: float = 1.0
    epilogue: FusedEpilogue = PLAIN
    bias: View | None = None
    flags: View | None = None

    @property
    def factors(self) -> bool:
        """Whether the product and C are multiplied."""
        return (self.alpha, self.beta) != (1.0, 1.0)

    def arguments(self) -> dict[str, Any]:
        """Return arguments as the kernels name them."""
        return {
            **places_of("c", self.c, ("row", "column")), "alpha": float(self.alpha), "beta": float(self.beta),
            "bias": self.bias, "flags": self.flags,
        }  # fmt: skip

    def constants(self, seed: bool = False) -> dict[str, Any]:
        """Return constants as the kernels name them; seed: C is where sums start."""
        return {
            "ADD": self.c is not None and not seed, "FACTORS": self.factors, **self.epilogue.constants(),
            "MARK": self.flags is not None and bool(self.epilogue),
        }  # fmt: skip


#: The product as it is.
NO_END = ProductEnd()


def seeds_sums(form: KernelForm, end: ProductEnd, exponents) -> bool:
    """Return whether C is where a form's sums start."""
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
    """Return the product of a method.

    Parameters
    ----------
    form : KernelForm
    configuration : Configuration
    sizes : (int, int, int, int)
        batch, m, n, k.
    a, b, out : View
    end : ProductEnd
    exponents : (View, View), optional
        Powers of two by which rows of A and columns of B are scaled, shapes (batch, m) and (batch, n), without gaps.
    part : int, optional
        Products of k of a part: `out` has as many matrices for each of the batch as k has parts, scaled as the words are.

    Raises
    ------
    ValueError
        If the tile of the configuration is not the one that the method's bits ask for.
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
    """Return the sums of parts of k added in order, and the end of the product.

    sizes: batch, m, n. sums: Without gaps, the parts of a matrix one after the other. exponents: As the product had them; a
    batch stride of 0 where all matrices have the same.
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
    """Refuse a tile of k that would change the bits of a method; ValueError."""
    if form.tile is not None and configuration.depth != form.tile:
        raise ValueError(
            f"the method's bits are those of tiles of {form.tile} of k, the configuration has {configuration.depth}: change "
            "restart_every or order of the method, which changes its bits, or the configuration"
        )


#: Tiles of the repair.
REPAIR = Configuration(32, 32, 16, 4, 1)


def repair_launch(
    sizes: tuple[int, int, int, int],
    a: View,
    b: View,
    out: View,
    end: ProductEnd = NO_END,
    tile: Configuration = REPAIR,
) -> TritonLaunch:
    """Return results that are not finite computed again in FP32; parameters as for :func:`gemm_launch`, A and B as given.

    tile: The configuration of the product, if its end has flags; without flags the whole result is read.
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
