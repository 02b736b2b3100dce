"""Derives the constants of the kernels in :mod:`mpgemm.kernels.source` from a method's row, and lists the rows with kernels.

A kernel goes over tiles of k. In a tile the products of words follow one after the other, and chains that restart do so at
every tile. So a row's `order` and `restart_every` state the depth of the tile. If a row states neither, each of its chains
holds one product of words, and any depth gives the same bits.
"""

import dataclasses
from dataclasses import dataclass

from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.sums import sums_of
from tensorcore_models.formats import get_float_format

#: Default depth of a tile for methods whose bits depend on it: 128 bytes of words, one row of shared memory's widest swizzle.
TILES = {"fp16": 64, "bf16": 64, "tf32": 32}
#: Methods that have a kernel, and the options in which the kernel's row differs from the method's own row.
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
    """`KernelForm` holds the constants with which the kernels compute a method.

    Attributes
    ----------
    words : (int, int)
        Number of words of A and of B that are multiplied.
    format, rounding, scale
        Format and rounding of the words; word j is multiplied by 2^(j scale).
    products : tuple of (int, int)
        Pairs (word of A, word of B), in the order in which a tile multiplies them.
    chains : tuple of int
        Chain of each product.
    restarts : tuple of bool
        Whether each chain restarts from zero at every tile and is added outside.
    levels : tuple of tuple of int
        Chains that are added to one another, the level of the smallest terms first.
    shifts : tuple of int
        For each level, the sum so far is multiplied by 2^-shift before the next level is added, and at the end.
    start : float
        Initial value of the sums; -0 leaves the first block unchanged.
    seeds : bool
        Whether the chain (or the sum outside) starts from C, in place of adding C last.
    tile : int or None
        Depth of a tile along k; None if every depth gives the same bits.
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
        """Return the constants by the names that the kernels use."""
        return {
            "FORMAT": self.format, "ROUNDING": self.rounding, "WORDS": self.words, "SCALE": self.scale,
            "PRODUCTS": self.products, "CHAINS": self.chains, "RESTARTS": self.restarts, "LEVELS": self.levels,
            "SHIFTS": self.shifts, "START": self.start,
        }  # fmt: skip


def narrowed(form: KernelForm, most: tuple[int, int]) -> KernelForm:
    """Return the form without the products of words that are zero, if A has at most `most[0]` words and B `most[1]`.

    A product with zeros does not change a sum, so finite results keep their bits. Chains without products stay, as zeros.
    """
    kept = [p for p, (i, j) in enumerate(form.products) if i < most[0] and j < most[1]]
    products = tuple(form.products[p] for p in kept)
    words = (1 + max(i for i, _ in products), 1 + max(j for _, j in products))
    return dataclasses.replace(form, words=words, products=products, chains=tuple(form.chains[p] for p in kept))


def kernel_method(method: str | RecoveryMethod, **options) -> RecoveryMethod:
    """Return the row whose bits a kernel gives: the method's row, with the default tile's `order` and `restart_every`.

    Parameters
    ----------
    method : str or RecoveryMethod
        Name in :data:`KERNELS`, with options after a colon, or a row.
    **options
        Options of the method, which replace the defaults.

    Raises
    ------
    ValueError
        If the method has no kernel; the message names the methods that have one.
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
    """Return the constants with which the kernels compute a row.

    Raises
    ------
    ValueError
        If no kernel computes the row; the message says why, and which methods have kernels.
    """
    fmt = row.formats[0]
    if row.kind != "words" or fmt not in _ROUNDINGS or row.words < 2 or row.last_rounding:
        raise ValueError(f"method {row.name!r} has no kernel, expected one of {', '.join(KERNELS)}")
    if row.rounding not in _ROUNDINGS[fmt]:
        raise ValueError(
            f"method {row.name!r} has rounding {row.rounding!r}, expected {' or '.join(_ROUNDINGS[fmt])} for words of {fmt}"
        )
    if row.overflow == "saturate":
        raise ValueError(
            f"method {row.name!r} has overflow 'saturate', expected 'inf', because words that overflow in a kernel are "
            "infinite: give overflow='inf'"
        )
    sums = sums_of(row)
    if sums is None:
        raise ValueError(
            f"method {row.name!r} has accumulation {row.accumulation!r}, expected core, blocks, outside, k_step or termwise"
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
    """Return the depth of a tile, or None if every depth gives the row's bits. Raises ValueError if no depth does."""
    shared = any(chains.count(chain) > 1 and not restarts[chain] for chain in chains)
    inside = any(chains.count(chain) > 1 and restarts[chain] for chain in chains)
    wanted = set()
    if any(restarts):
        if row.restart_every is None:
            raise ValueError(
                f"method {row.name!r} restarts its sums after every k step, but a kernel restarts them after every tile of k: "
                "give restart_every the tile's length along k, such as 64"
            )
        wanted.add(row.restart_every)
    if shared:
        if not isinstance(row.order, int):
            raise ValueError(
                f"method {row.name!r} has order {row.order!r}, expected a number, because a kernel takes the next product of "
                "words after every tile of k: give order the tile's length along k, such as 64"
            )
        wanted.add(row.order)
    elif inside and row.order != "term" and row.order != row.restart_every:
        raise ValueError(
            f"method {row.name!r} has order {row.order!r}, expected 'term', because in each tile a kernel adds one product of "
            "words over the whole tile before the next: give order='term'"
        )
    if len(wanted) > 1:
        raise ValueError(
            f"method {row.name!r} has order {row.order} and restart_every {row.restart_every}, expected equal numbers, because "
            "both are the length of a kernel's tile along k: give both the same number"
        )
    tile = wanted.pop() if wanted else None
    if tile is not None and (tile < 16 or tile & (tile - 1) or tile > 256):
        raise ValueError(
            f"method {row.name!r} needs tiles with {tile} values of k (its order or restart_every), expected a power of two "
            "from 16 to 256"
        )
    return tile
