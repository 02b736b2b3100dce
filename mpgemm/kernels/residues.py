"""Launches of Ozaki's scheme II on int8: a row's moduli as the kernels' constants."""

import math
from functools import lru_cache

from mpgemm.kernels.configurations import Configuration
from mpgemm.recovery.integer_joins import remainders
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.methods import get_method
from tensorcore_models.gpu.launches import TritonLaunch, View

RESIDUES = "ozaki2_int8"
#: Bits of a limb; products of k that an int32 sum of residues holds (2^14 each).
LIMB, CHUNK = 40, 1 << 16
BLOCK = 128
TILE = Configuration(64, 64, 64, 4, 2)


def residue_method(method: str) -> RecoveryMethod:
    """The row of a call; ValueError where its moduli would follow from the matrices."""
    row = get_method(method)
    if row.count is not None:
        raise ValueError(
            f"method {method!r}: a kernel's moduli do not follow from the matrices; give moduli a number, 2 to 20"
        )
    return row


@lru_cache(maxsize=32)
def residue_constants(moduli: tuple[int, ...]) -> dict:
    """Moduli, inverses and limbs as the kernels name them."""
    found = remainders(moduli)
    count = -(-(found.product.bit_length() + 1) // LIMB)
    mask = (1 << LIMB) - 1

    def limbs(x: int) -> tuple[int, ...]:
        return tuple(x >> (LIMB * j) & mask for j in range(count))

    return {
        "MODULI": tuple(moduli), "FACTORS": tuple(found.factors), "WEIGHTS": tuple(limbs(found.product // p) for p in moduli),
        "PRODUCT": limbs(found.product), "LIMBS": count,
    }  # fmt: skip


def residues_launch(
    moduli: tuple[int, ...], sizes: tuple[int, int, int], x: View, out: View, exponents: View
) -> TritonLaunch:
    """An operand as planes of residues of RZ(x 2^exponent).

    Parameters
    ----------
    moduli : tuple of int
    sizes : (int, int, int)
        batch, rows, columns.
    x, out, exponents : View
        `out` has int8 planes, rows without gaps.
    """
    batch, rows, columns = sizes
    names = ("batch", "row", "column")
    arguments = {
        "x": x, "out": out, "exponents": exponents, "rows": rows, "columns": columns, "out_batch": out.strides[0],
        "plane": out.plane, **{f"x_{d}": s for d, s in zip(names, x.strides, strict=True)},
        **{f"e_{d}": s for d, s in zip(names, exponents.strides, strict=True)},
    }  # fmt: skip
    constants = {"MODULI": tuple(moduli), "BLOCK": BLOCK}
    return TritonLaunch("residues", arguments, constants, batch * rows * -(-columns // BLOCK))


def residue_products_launch(
    moduli: tuple[int, ...], sizes: tuple[int, int, int, int], a: View, b: View, out: View, exponents: tuple[View, View],
    tile: Configuration = TILE,
) -> TritonLaunch:  # fmt: skip
    """A B from planes of residues.

    Parameters
    ----------
    moduli : tuple of int
    sizes : (int, int, int, int)
        batch, m, n, k.
    a, b, out : View
        Planes of residues, rows without gaps; the result in FP64.
    exponents : (View, View)
        Powers of two of the units of rows and columns, int32, without gaps.
    tile : Configuration
    """
    batch, m, n, k = sizes
    arguments = {
        "a": a, "b": b, "out": out, "row_exponents": exponents[0], "column_exponents": exponents[1], "m": m, "n": n, "k": k,
        "a_batch": a.strides[0], "a_plane": a.plane, "b_batch": b.strides[0], "b_plane": b.plane,
        "out_batch": out.strides[0], "out_row": out.strides[1], "out_column": out.strides[2],
    }  # fmt: skip
    grid = batch * math.ceil(m / tile.rows) * math.ceil(n / tile.columns)
    constants = {**residue_constants(moduli), **tile.constants(), "CHUNK": CHUNK}
    return TritonLaunch("residue_products", arguments, constants, grid, tile.warps, tile.stages)
