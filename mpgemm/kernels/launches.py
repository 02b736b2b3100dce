"""One launch of a kernel: arguments by name, constants, grid. Devices, the gate and `mpgemm kernel` make the same ones."""

from typing import Any

from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.forms import KernelForm
from tensorcore_models.gpu.launches import TritonLaunch, View


def _places(name: str, view: View | None, dimensions: tuple[str, str]) -> dict[str, Any]:
    strides = (0, 0, 0) if view is None else view.strides
    names = ("batch", *dimensions)
    return {name: view, **{f"{name}_{d}": s for d, s in zip(names, strides, strict=True)}}


def _tiles(batch: int, m: int, n: int, configuration: Configuration) -> int:
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
        **_places("a", a, ("row", "k")), **_places("b", b, ("k", "column")), **_places("c", c, ("row", "column")),
        **_places("out", out, ("row", "column")), "row_exponents": rows, "column_exponents": columns, "m": m, "n": n, "k": k,
        "a_plane": a.plane or 0, "b_plane": b.plane or 0, "alpha": float(alpha), "beta": float(beta),
    }  # fmt: skip
    constants = {
        **form.constants(), **configuration.constants(), "SPLIT": (a.plane is not None, b.plane is not None),
        "SCALED": exponents is not None, "ADD": c is not None and not seed, "SEED": seed, "FACTORS": factors,
        "EVEN_K": k % configuration.depth == 0,
    }  # fmt: skip
    grid = _tiles(batch, m, n, configuration)
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
    beta: float = 1.0,
) -> TritonLaunch:  # fmt: skip
    """Results that are not finite computed again in FP32; parameters as for :func:`gemm_launch`, A and B as given."""
    batch, m, n, k = sizes
    arguments = {
        **_places("a", a, ("row", "k")), **_places("b", b, ("k", "column")), **_places("c", c, ("row", "column")),
        **_places("out", out, ("row", "column")), "m": m, "n": n, "k": k, "alpha": float(alpha), "beta": float(beta),
    }  # fmt: skip
    constants = {**REPAIR.constants(), "ADD": c is not None, "FACTORS": (alpha, beta) != (1.0, 1.0)}
    return TritonLaunch("repair", arguments, constants, _tiles(batch, m, n, REPAIR), REPAIR.warps, REPAIR.stages)


#: Elements of a row that a program splits.
SPLIT_BLOCK = 256


def split_launch(
    form: KernelForm, side: int, sizes: tuple[int, int, int], x: View, out: View, exponents: View | None = None
) -> TritonLaunch:
    """An operand split into planes of words.

    Parameters
    ----------
    form : KernelForm
    side : int
        0: words of A; 1: of B.
    sizes : (int, int, int)
        batch, rows, columns.
    x, out : View
        `out` has planes; its rows have no gaps.
    exponents : View, optional
        Powers of two by which elements are multiplied first; strides 0 where they do not change.
    """
    batch, rows, columns = sizes
    strides = (0, 0, 0) if exponents is None else exponents.strides
    arguments = {
        "x": x, "out": out, "exponents": exponents, "rows": rows, "columns": columns, "x_batch": x.strides[0],
        "x_row": x.strides[1], "x_column": x.strides[2], "out_batch": out.strides[0], "plane": out.plane,
        "e_batch": strides[0], "e_row": strides[1], "e_column": strides[2],
    }  # fmt: skip
    constants = {
        "FORMAT": form.format, "ROUNDING": form.rounding, "COUNT": form.words[side], "SCALE": form.scale,
        "SCALED": exponents is not None, "BLOCK": SPLIT_BLOCK,
    }  # fmt: skip
    return TritonLaunch("split_words", arguments, constants, batch * rows * -(-columns // SPLIT_BLOCK))
