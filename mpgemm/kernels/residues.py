"""Makes the launches of Ozaki's scheme II on int8, with a row's moduli as the kernels' constants."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.launches import places_of, tiles_of
from mpgemm.recovery.integer_joins import remainders
from mpgemm.recovery.integer_words import residue_bits
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.methods import get_method
from tensorcore_models.gpu.launches import DescribedArray, TritonLaunch, View
from tensorcore_models.gpu.targets import KernelTarget

RESIDUES = "ozaki2_int8"
#: Bits of a limb; number of products of residues (up to 2^14 each) that an int32 sum holds.
LIMB, CHUNK = 40, 1 << 16
#: Lines and length of k for which a program makes residues at a time; multiple to which k is padded.
LINES, BLOCK, PADDED = 8, 128, 128
#: Tiles of the products by unit, the tile for all other units, and the tile of the join.
TILES = {
    "ampere": Configuration(128, 128, 64, 8, 3),
    "ada": Configuration(128, 128, 64, 8, 3),
    "hopper": Configuration(128, 128, 128, 8, 3),
    "blackwell": Configuration(128, 128, 128, 8, 3),
    "rtx_blackwell": Configuration(128, 128, 64, 8, 3),
}
TILE, JOIN = Configuration(64, 64, 64, 4, 2), Configuration(8, 64, 1, 4, 1)


def residue_method(method: str) -> RecoveryMethod:
    """Return the row of a method. Raises ValueError if its moduli would depend on the matrices."""
    row = get_method(method)
    if row.count is not None:
        raise ValueError(
            f"method {method!r} chooses its number of moduli from the matrices, expected a fixed number for a kernel: give "
            "moduli= a number from 2 to 20"
        )
    return row


@lru_cache(maxsize=32)
def residue_constants(moduli: tuple[int, ...]) -> dict:
    """Return moduli, inverses and limbs by the names that the kernels use."""
    found = remainders(moduli)
    count = -(-(found.product.bit_length() + 1) // LIMB)
    mask = (1 << LIMB) - 1

    def limbs(x: int) -> tuple[int, ...]:
        return tuple(x >> (LIMB * j) & mask for j in range(count))

    return {
        "MODULI": tuple(moduli), "FACTORS": tuple(found.factors), "WEIGHTS": tuple(limbs(found.product // p) for p in moduli),
        "PRODUCT": limbs(found.product), "LIMBS": count,
    }  # fmt: skip


@dataclass(frozen=True)
class ResiduePlanes:
    """`ResiduePlanes` describes the residues of a product's operands and their layout in memory.

    Attributes
    ----------
    moduli : tuple of int
        Moduli.
    sizes : (int, int, int, int)
        Sizes batch, m, n, k.
    """

    moduli: tuple[int, ...]
    sizes: tuple[int, int, int, int]

    @property
    def pitch(self) -> int:
        """Length of a line, which is k padded by zeros to whole tiles."""
        return -(-self.sizes[3] // PADDED) * PADDED

    @property
    def bits(self) -> int:
        """Number of bits of the integers to which both operands are scaled."""
        return residue_bits(self.moduli, self.sizes[3])

    def lines(self, side: int) -> int:
        """Return the number of lines of a plane: rows of A (side 0) or columns of B (side 1) of all matrices."""
        return self.sizes[0] * self.sizes[1 + side]

    def shape(self, side: int) -> tuple[int, int]:
        """Return the shape of an operand's planes."""
        return len(self.moduli) * self.lines(side), self.pitch

    def remainders(self) -> tuple[int, int, int]:
        """Shape of the product's remainders."""
        batch, m, n, _ = self.sizes
        return len(self.moduli) * batch, m, n

    def workspace(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shapes and types of the arrays through which the launches pass data, by the names of their arguments."""
        return {
            "a_residues": (self.shape(0), "s8"), "b_residues": (self.shape(1), "s8"),
            "row_exponents": ((self.lines(0),), "s32"), "column_exponents": ((self.lines(1),), "s32"),
            "remainders": (self.remainders(), "s8"),
        }  # fmt: skip


def residue_launches(
    planes: ResiduePlanes,
    a: View,
    b: View,
    out: View,
    room: Mapping[str, Any],
    tile: Configuration,
    described: bool = False,
) -> list[TritonLaunch]:
    """Return the launches of A B in FP64: residues of both operands, their products, and the join.

    Parameters
    ----------
    planes : ResiduePlanes
        Moduli and sizes.
    a, b, out : View
        Matrices of FP64 of any strides.
    room : mapping
        Arrays of :meth:`ResiduePlanes.workspace`.
    tile : Configuration
        Tile of the products.
    described : bool
        Whether the residues are fetched by TMA.

    Raises
    ------
    ValueError
        If the tile's depth does not divide the padded k.
    """
    if PADDED % tile.depth:
        raise ValueError(
            f"the tile has depth {tile.depth}, but k is padded to multiples of {PADDED}: take the depth 32, 64 or 128"
        )
    batch, m, n, _ = planes.sizes
    whole = {name: View(room[name], kind, (0, 0, 0)) for name, (_, kind) in planes.workspace().items()}
    exponents = {name: whole[name] for name in ("row_exponents", "column_exponents")}
    programs = [batch * -(-extent // LINES) for extent in (m, n)]
    split = {
        **places_of("a", a, ("row", "k")), **places_of("b", b, ("k", "column")), "m": m, "n": n, "k": planes.sizes[3],
        **{name: whole[name] for name in ("a_residues", "b_residues")}, **exponents, "a_programs": programs[0],
        "pitch": planes.pitch, "a_plane": planes.lines(0) * planes.pitch, "b_plane": planes.lines(1) * planes.pitch,
        "bits": planes.bits,
    }  # fmt: skip
    found = residue_constants(planes.moduli)
    own = {"MODULI": planes.moduli}
    operands: list[Any] = [whole["a_residues"], whole["b_residues"]]
    if described:
        boxes = (tile.rows, tile.depth), (tile.columns, tile.depth)
        operands = [DescribedArray(x.data, "s8", planes.shape(side), boxes[side]) for side, x in enumerate(operands)]
    multiply = {
        "a": operands[0], "b": operands[1], "out": whole["remainders"], "m": m, "n": n, "pitch": planes.pitch,
        "batches": batch,
    }  # fmt: skip
    factors = {
        "MODULI": planes.moduli, "FACTORS": found["FACTORS"], "CHUNK": CHUNK, "LONG": planes.pitch > CHUNK,
        "DESCRIBED": described,
    }  # fmt: skip
    join = {
        "remainders": whole["remainders"], **exponents, "m": m, "n": n, "plane": batch * m * n, "bits": planes.bits,
        **places_of("out", out, ("row", "column")),
    }  # fmt: skip
    limbs = {name: found[name] for name in ("WEIGHTS", "PRODUCT", "LIMBS")}
    small = {x: y for x, y in JOIN.constants().items() if x != "BK"}
    return [
        TritonLaunch("residues", split, {**own, "BL": LINES, "BK": BLOCK}, sum(programs)),
        TritonLaunch(
            "residue_products", multiply, {**factors, **tile.constants()},
            tiles_of(batch * len(planes.moduli), m, n, tile), tile.warps, tile.stages,
        ),
        TritonLaunch("join_residues", join, {**own, **limbs, **small}, tiles_of(batch, m, n, JOIN), JOIN.warps),
    ]  # fmt: skip


def residue_tile(target: KernelTarget) -> Configuration:
    """Return the tile for products of residues on a target."""
    return TILES.get(target.unit or "", TILE)
