"""What a tolerance would let pass: faults that a test with it does not see."""

from dataclasses import asdict, dataclass, replace

import numpy as np

from mpgemm.exact.product import exact_gemm
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Products in a dropped block of k, where nothing else is said: a small tile of a kernel.
BLOCK = 32
#: Products that are looked at together.
_PRODUCTS = 1 << 18


@dataclass(frozen=True, repr=False)
class Vacuity(Result):
    """What a tolerance would let pass on data.

    Attributes
    ----------
    elements : int
        Elements compared.
    zero_passes : int
        Elements for which a result of 0 passes.
    lost_product_passes : int
        Elements for which the loss of the largest product of the sum passes.
    block : int
        Products of a block of k.
    blocks, unseen_blocks : int
        Blocks that k has, and those that a kernel can leave out of the whole product with every element still passing.
    terms, unseen_terms : int
        The same for single values of k.
    """

    elements: int
    zero_passes: int
    lost_product_passes: int
    block: int = 0
    blocks: int = 0
    unseen_blocks: int = 0
    terms: int = 0
    unseen_terms: int = 0

    @property
    def vacuous(self) -> bool:
        """Whether a kernel that writes zeros passes everywhere, although there is something to add up."""
        return self.elements > 0 and self.terms > 0 and self.zero_passes == self.elements

    @property
    def verdict(self) -> str:
        """The worst fault that passes everywhere, in a few words."""
        if self.vacuous:
            return "VACUOUS: a kernel that writes zeros passes"
        if self.unseen_blocks:
            return f"WEAK: a kernel that drops {self.block} products of k can pass"
        if self.unseen_terms:
            return "can fail, but not where a single product is lost"
        return "can fail: zeros, a dropped block and a lost product are all seen"

    def to_rows(self) -> list[dict]:
        """One record."""
        return [self.to_dict()]

    def to_dict(self) -> dict:
        """JSON-compatible values, with the verdict."""
        return {**asdict(self), "vacuous": self.vacuous, "verdict": self.verdict}

    def __str__(self) -> str:
        return (
            f"{self.verdict}; of {self.elements} elements, 0 passes for {self.zero_passes} and the loss of the largest product "
            f"for {self.lost_product_passes}; {self.unseen_blocks} of {self.blocks} blocks of {self.block} products and "
            f"{self.unseen_terms} of {self.terms} single values of k can be left out unseen"
        )


def check_line(rtol: float, atol: float) -> None:
    """Refuse a tolerance that is negative or NaN. Raises ValueError with the part at fault."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise ValueError(f"{name} is {value}, expected a number of at least 0")


@default_fp_state
def check_tolerance(a, b, c=None, *, rtol: float = 0.0, atol: float = 0.0, bound=None, block: int = BLOCK) -> Vacuity:
    """What the test ``|computed - exact| <= atol + rtol |exact|`` (or `<= bound`) would let pass on these data.

    A fault counts as unseen where every element of the product passes with it; the rounding errors of the kernel are left out.

    Parameters
    ----------
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        The operands of the test; block-scaled ones multiplied by their scales (:meth:`BlockScaled.values`).
    rtol, atol : float
        As for numpy.allclose.
    bound : array_like, optional
        Tolerance of each element instead.
    block : int
        Products of a dropped block of k.

    Raises
    ------
    ValueError
        If a tolerance is negative or NaN, or the block is empty.
    """
    check_line(rtol, atol)
    if block < 1:
        raise ValueError(f"a block of k has at least one product, got {block}")
    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    c = None if c is None else np.asarray(c).astype(np.float64)
    exact = np.abs(np.asarray(exact_gemm(a, b, c).rounded("fp64")))
    allowed = atol + rtol * exact if bound is None else np.broadcast_to(np.asarray(bound, np.float64), exact.shape)
    k = a.shape[1]
    largest, unseen_terms = np.zeros(exact.shape), 0
    part = max(1, _PRODUCTS // max(1, exact.size))
    for start in range(0, k, part):
        products = np.abs(a[:, start : start + part].T[:, :, None] * b[start : start + part, None, :])
        np.maximum(largest, products.max(axis=0), out=largest)
        unseen_terms += int((products <= allowed).all(axis=(1, 2)).sum())
    starts = range(0, k, block)
    lost = (np.abs(a[:, start : start + block] @ b[start : start + block]) for start in starts)
    return Vacuity(
        exact.size,
        int(np.count_nonzero(exact <= allowed)),
        int(np.count_nonzero(largest <= allowed)),
        block,
        len(starts),
        sum(bool((x <= allowed).all()) for x in lost),
        k,
        unseen_terms,
    )


def on_the_whole(part: Vacuity, a: np.ndarray, b: np.ndarray, exact: np.ndarray, allowed: np.ndarray) -> Vacuity:
    """The same for the whole product, of which some rows and columns were looked at; the largest products' loss as a
    share of the part."""
    zeros = int(np.count_nonzero(exact <= allowed))
    lost = round(part.lost_product_passes / max(1, part.elements) * exact.size)
    found = replace(part, elements=exact.size, zero_passes=zeros, lost_product_passes=lost)
    if found.vacuous or part.elements == exact.size:
        return found
    blocks, terms = part.unseen_blocks, part.unseen_terms
    if blocks:
        starts = range(0, a.shape[1], part.block)
        blocks = sum(_unseen(a[:, i : i + part.block], b[i : i + part.block], allowed) for i in starts)
    if terms:
        terms = _unseen_terms(a, b, allowed)
    return replace(found, unseen_blocks=blocks, unseen_terms=terms)


def _unseen(a: np.ndarray, b: np.ndarray, allowed: np.ndarray) -> bool:
    """Whether a test would not miss a part of k: its product is nowhere larger than what is allowed.

    A few rows are computed at a time, because the first rows usually settle it.
    """
    rows = max(1, _PRODUCTS // max(1, a.shape[1] * b.shape[1]))
    return all((np.abs(a[i : i + rows] @ b) <= allowed[i : i + rows]).all() for i in range(0, len(a), rows))


def _unseen_terms(a: np.ndarray, b: np.ndarray, allowed: np.ndarray) -> int:
    """How many single products (values of k) a test would not miss; their largest elements settle most of them."""
    a, b, k = np.abs(a), np.abs(b), np.arange(a.shape[1])
    i, j = a.argmax(0), b.argmax(1)
    largest = a[i, k] * b[k, j]
    seen, unseen = largest > allowed[i, j], largest <= allowed.min()
    open_terms = np.flatnonzero(~seen & ~unseen)
    return int(unseen.sum()) + sum(bool((np.outer(a[:, at], b[at]) <= allowed).all()) for at in open_terms)
