"""One launch of a kernel: arguments by name, constants, grid. Devices, the gate and `mpgemm kernel` make the same ones."""

from typing import Any

from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.forms import KernelForm
from tensorcore_models.gpu.launches import TritonLaunch, View


def places_of(name: str, view: View | None, dimensions: tuple[str, str]) -> dict[str, Any]:
    strides = (0, 0, 0) if view is None else view.strides
    names = ("batch", *dimensions)
    return {name: view, **{f"{name}_{d}": s for d, s in zip(names, strides, strict=True)}}


def tiles_of(batch: int, m: int, n: int, configuration: Configuration) -> int:
    """Tiles of a result."""
    return batch * -(-m // configuration.rows) * -(-n // configuration.columns)


def gemm_launch(
    form: KernelForm,
    configuration: Configuration,
    sizes: tuple[int, int, int, int],
    a: View,
    b: View,
    out: View,
    c: View | None = None,
    exponents: tuple[View, View] | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    flags: View | None = None,
) -> TritonLaunch:
    """The product of a method.

    Parameters
    ----------
    form : KernelForm
    configuration : Configuration
    sizes : (int, int, int, int)
        batch, m, n, k.
    a, b, out, c : View
        C is added, or is where sums start where the form says so and alpha = beta = 1.
    exponents : (View, View), optional
        Powers of two by which rows of A and columns of B are scaled, shapes (batch, m) and (batch, n), without gaps.
    alpha, beta : float
    flags : View of s32, optional
        Where the kernel says for each tile whether elements are not finite.

    Raises
    ------
    ValueError
        If the tile of the configuration is not the one that the method's bits ask for.
    """
    check_depth(form, configuration)
    batch, m, n, k = sizes
    factors = (alpha, beta) != (1.0, 1.0)
    seed = c is not None and form.seeds and not factors and exponents is None
    rows, columns = exponents or (None, None)
    arguments = {
        **places_of("a", a, ("row", "k")), **places_of("b", b, ("k", "column")), **places_of("c", c, ("row", "column")),
        **places_of("out", out, ("row", "column")), "row_exponents": rows, "column_exponents": columns, "m": m, "n": n, "k": k,
        "a_plane": a.plane or 0, "b_plane": b.plane or 0, "alpha": float(alpha), "beta": float(beta), "flags": flags,
    }  # fmt: skip
    constants = {
        **form.constants(), **configuration.constants(), "SPLIT": (a.plane is not None, b.plane is not None),
        "SCALED": exponents is not None, "ADD": c is not None and not seed, "SEED": seed, "FACTORS": factors,
        "EVEN_K": k % configuration.depth == 0,
    }  # fmt: skip
    grid = tiles_of(batch, m, n, configuration)
    return TritonLaunch("gemm", arguments, constants, grid, configuration.warps, configuration.stages)


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
    sizes: tuple[int, int, int, int], a: View, b: View, out: View, c: View | None = None, alpha: float = 1.0,
    beta: float = 1.0, flags: View | None = None, tile: Configuration = REPAIR,
) -> TritonLaunch:  # fmt: skip
    """Results that are not finite computed again in FP32; parameters as for :func:`gemm_launch`, A and B as given.

    flags, tile: What the product said of its tiles, and their configuration; without flags the whole result is read.
    """
    batch, m, n, k = sizes
    arguments = {
        **places_of("a", a, ("row", "k")), **places_of("b", b, ("k", "column")), **places_of("c", c, ("row", "column")),
        **places_of("out", out, ("row", "column")), "m": m, "n": n, "k": k, "alpha": float(alpha), "beta": float(beta),
        "flags": flags,
    }  # fmt: skip
    tile = REPAIR if flags is None else tile
    own = {**REPAIR.constants(), "BM": min(REPAIR.rows, tile.rows), "BN": min(REPAIR.columns, tile.columns)}
    constants = {
        **own, "ADD": c is not None, "FACTORS": (alpha, beta) != (1.0, 1.0),
        "FLAGGED": None if flags is None else (tile.rows, tile.columns),
    }  # fmt: skip
    return TritonLaunch("repair", arguments, constants, tiles_of(batch, m, n, tile), REPAIR.warps, REPAIR.stages)
