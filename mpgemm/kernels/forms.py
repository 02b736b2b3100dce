"""Derives the constants of :mod:`mpgemm.kernels.source` for a method's row, and lists the rows that have kernels.

A kernel goes over tiles of k. Inside a tile one product follows the other, and chains that restart do so at every tile; so a
row's turns (`order`) and restarts (`restart_every`) are the length of the tile, and where a row states neither, each of its
chains has one product alone and any tile has the same bits.
"""

import dataclasses
from dataclasses import dataclass

from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.sums import sums_of
from tensorcore_models.formats import get_float_format

#: Products of k in a tile where a method asks for one and the call does not say which: 128 bytes of words, a row of the widest
#: swizzle of shared memory.
TILES = {"fp16": 64, "bf16": 64, "tf32": 32}
#: Methods that have a kernel, and the options by which the row of a kernel differs from the method's own.
KERNELS: dict[str, dict[str, int | str]] = {
    "ootomo_tf32": {"order": TILES["tf32"], "restart_every": TILES["tf32"]},
    "ootomo": {"order": TILES["fp16"], "restart_every": TILES["fp16"]},
    "sgemm_cube": {},
    "markidis": {"order": TILES["fp16"]},
    "egemm": {"order": TILES["fp16"]},
    "tf32x3": {"order": "term", "restart_every": TILES["tf32"]},
    "bf16x3": {"order": "term", "restart_every": TILES["bf16"]},
    "bf16x6": {"order": "term", "restart_every": TILES["bf16"]},
    "bf16x9": {"order": "term", "restart_every": TILES["bf16"]},
    "bf16xfp32x2": {"order": "term", "restart_every": TILES["bf16"]},
    "bf16xfp32x3": {"order": "term", "restart_every": TILES["bf16"]},
}
_ROUNDINGS = {"fp16": ("rne", "rz"), "bf16": ("rne",), "tf32": ("rna",)}


@dataclass(frozen=True)
class KernelForm:
    """The constants by which a kernel is a method.

    Attributes
    ----------
    words : (int, int)
        Words of A and of B that take part.
    format, rounding, scale
        Of the words; word j carries 2^(j scale).
    products : tuple of (int, int)
        Words of A and of B, in the order in which a tile multiplies them.
    chains : tuple of int
        The chain of each product.
    restarts : tuple of bool
        Whether each chain restarts from zero at every tile and is added outside.
    levels : tuple of tuple of int
        Chains that are added together, the smallest level first.
    shifts : tuple of int
        What is joined so far is multiplied by 2^-shift before the next level is added, and at the end.
    start : float
        What the sums start from: -0 leaves the first block as it is.
    seeds : bool
        Whether C is where the chain (or the sum outside) starts, and not added last.
    tile : int or None
        Products of k in a tile; None: any, with the same bits.
    """

    words: tuple[int, int]
    format: str
    rounding: str
    scale: int
    products: tuple[tuple[int, int], ...]
    chains: tuple[int, ...]
    restarts: tuple[bool, ...]
    levels: tuple[tuple[int, ...], ...]
    shifts: tuple[int, ...]
    start: float
    seeds: bool
    tile: int | None

    def constants(self) -> dict:
        """As the kernel names them."""
        return {
            "FORMAT": self.format, "ROUNDING": self.rounding, "WORDS": self.words, "SCALE": self.scale,
            "PRODUCTS": self.products, "CHAINS": self.chains, "RESTARTS": self.restarts, "LEVELS": self.levels,
            "SHIFTS": self.shifts, "START": self.start,
        }  # fmt: skip


def narrowed(form: KernelForm, most: tuple[int, int]) -> KernelForm:
    """Return the form without products of words that are zero: A has `most[0]` words at most, B `most[1]`.

    Products with zeros leave a sum as it is; so finite results keep their bits. Chains without products stay, as zeros.
    """
    kept = [p for p, (i, j) in enumerate(form.products) if i < most[0] and j < most[1]]
    products = tuple(form.products[p] for p in kept)
    words = (1 + max(i for i, _ in products), 1 + max(j for _, j in products))
    return dataclasses.replace(form, words=words, products=products, chains=tuple(form.chains[p] for p in kept))


def kernel_method(method: str | RecoveryMethod, **options) -> RecoveryMethod:
    """Return the row whose bits a kernel gives: the method's with turns and restarts of a tile, unless the call says which.

    Parameters
    ----------
    method : str or RecoveryMethod
        A name of :data:`KERNELS`, options behind a colon, or a row.
    **options
        The method's.

    Raises
    ------
    ValueError
        If there is no kernel for it; the message names the methods that have one.
    """
    if isinstance(method, RecoveryMethod):
        row = method.with_options(**options)
    else:
        name = str(method).partition(":")[0]
        own = get_method(method, **options)
        row = own
        if name in KERNELS:
            plain = get_method(name)
            tile = next((x for x in (own.restart_every, own.order) if isinstance(x, int)), None)
            for option, value in KERNELS[name].items():
                if getattr(own, option) == getattr(plain, option):
                    row = row.with_options(**{option: value if tile is None or value == "term" else tile})
    kernel_form(row)
    return row


def kernel_form(row: RecoveryMethod) -> KernelForm:
    """Return the constants for a row.

    Raises
    ------
    ValueError
        If no kernel computes the row; the message says why, and which methods have kernels.
    """
    fmt = row.formats[0]
    if row.kind != "words" or fmt not in _ROUNDINGS or row.words < 2 or row.last_rounding:
        raise ValueError(f"method {row.name!r} has no kernel; methods with kernels: {', '.join(KERNELS)}")
    if row.rounding not in _ROUNDINGS[fmt]:
        raise ValueError(
            f"method {row.name!r}: kernels round {fmt} by {' or '.join(_ROUNDINGS[fmt])}, not {row.rounding}"
        )
    if row.overflow == "saturate":
        raise ValueError(f"method {row.name!r}: words of kernels that overflow are infinite; they do not saturate")
    sums = sums_of(row)
    if sums is None:
        raise ValueError(
            f"method {row.name!r} has accumulation {row.accumulation!r}; "
            "kernels have core, blocks, outside, k_step and termwise"
        )
    scale = row.word_scale(get_float_format(fmt))
    return KernelForm(
        (1 + max(i for i, _ in row.products), 1 + max(j for _, j in row.products)),
        fmt, row.rounding, scale, row.products, sums.chains, sums.restarts, sums.levels,
        tuple(step * scale for step in sums.steps),
        -0.0 if row.accumulation == "blocks" else 0.0,
        sums.seeds and row.equilibrate == "none",
        _tile(row, sums.chains, sums.restarts),
    )  # fmt: skip


def _tile(row: RecoveryMethod, chains: tuple[int, ...], restarts: tuple[bool, ...]) -> int | None:
    """Return products of k in a tile; None where any tile has the same bits. Raises ValueError where no tile has the row's."""
    shared = any(chains.count(chain) > 1 and not restarts[chain] for chain in chains)
    inside = any(chains.count(chain) > 1 and restarts[chain] for chain in chains)
    wanted = set()
    if any(restarts):
        if row.restart_every is None:
            raise ValueError(
                f"method {row.name!r}: a kernel restarts at every tile of k, not at every k step: give restart_every"
            )
        wanted.add(row.restart_every)
    if shared:
        if not isinstance(row.order, int):
            raise ValueError(
                f"method {row.name!r}: in a kernel the products of a chain take turns at every tile of k: give order a number"
            )
        wanted.add(row.order)
    elif inside and row.order != "term" and row.order != row.restart_every:
        raise ValueError(f"method {row.name!r}: inside of a tile one product follows the other: give order='term'")
    if len(wanted) > 1:
        raise ValueError(
            f"method {row.name!r}: order {row.order} and restart_every {row.restart_every} are both the kernel's tile of k, "
            "give them one number"
        )
    tile = wanted.pop() if wanted else None
    if tile is not None and (tile < 16 or tile & (tile - 1) or tile > 256):
        raise ValueError(f"method {row.name!r}: a kernel's tile of k is a power of two from 16 to 256, got {tile}")
    return tile
