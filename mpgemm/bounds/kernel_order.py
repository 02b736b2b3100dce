"""Reads what a test states about its kernel's order of k: chains, parts, sums outside of the unit, or any order."""

from dataclasses import dataclass
from typing import Any

from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.orders.order import Order, Sum, leaves, order_of

#: Value of `k_order` for an unknown order of k.
ANY = "any"


@dataclass(frozen=True)
class KernelOrder:
    """`KernelOrder` says which orders of k a kernel may have."""

    k: int
    step: int  #: Products of one step of the unit, which stay together.
    splits: int = 1  #: Largest number of chains; where it is above 1, their lengths are unknown.
    #: Order as in :meth:`tensorcore_models.Engine.gemm`, or "any": the steps in any order, in any number of chains.
    k_order: Any = "sequential"
    #: (least, most) products after which a chain's result is added to an FP32 sum outside and a new chain starts.
    promote_every: tuple[int, int] | None = None
    block: int | None = None  #: Values of k that share their scales; a chain ends there if scales are applied outside.
    #: Whether the test stated an order; otherwise this is the order with the longest chains, and kernels may lose less.
    stated: bool = True

    @property
    def known(self) -> bool:
        """Return whether the products of every chain are known."""
        return (
            self.splits == 1
            and self.k_order != ANY
            and (self.promote_every is None or len(set(self.promote_every)) == 1)
        )

    def chains(self) -> list[tuple[range, ...]]:
        """Return the pieces of k of every chain, in the order in which they are added; the order must be known."""
        if self.promote_every is not None or self.block is not None:
            every = min(x for x in (self.block, self.promote_every and self.promote_every[0]) if x is not None)
            parts = (
                [range(self.k)]
                if self.k_order == "sequential"
                else [p for c in leaves(self._order()) for p in c.pieces]
            )
            return [(p[i : i + every],) for p in parts for i in range(0, len(p), every)]
        if self.k_order == "sequential":
            return [(range(self.k),)] if self.k else []
        return [chain.pieces for chain in leaves(self._order()) if chain.pieces]

    def _order(self) -> Order:
        order = order_of(self.k, self.step, self.k_order)
        assert order is not None  # callers handle "sequential" themselves
        return order

    @property
    def longest(self) -> int:
        """Return the largest number of products in one chain."""
        ends = [x for x in (self.block, self.promote_every and self.promote_every[1]) if x is not None]
        return min([self.k, *ends])

    @property
    def additions(self) -> int:
        """Return the largest number of additions outside of the unit."""
        if self.known:
            return max(len(self.chains()) - 1, 0)
        ends = [x for x in (self.block, self.promote_every and self.promote_every[0]) if x is not None]
        if ends:
            return max(-(-self.k // min(ends)) - 1, 0) + self.splits - 1
        return self.splits - 1 if self.k_order != ANY else max(-(-self.k // self.step) - 1, 0)

    def in_words(self) -> str:
        """Return the order in words, for messages."""
        text = "one chain over k" if self.k_order == "sequential" and self.splits == 1 else f"order {self.k_order}"
        if self.splits > 1:
            text = f"at most {self.splits} chains"
        if self.k_order == ANY:
            text = "any order of the unit's steps"
        if self.promote_every is not None:
            least, most = self.promote_every
            text += f", added outside in FP32 every {least if least == most else f'{least} to {most}'} products"
        elif self.block is not None:
            text += f", scaled and added outside in FP32 every {self.block} products"
        return text


def kernel_order(
    unit: Engine, k: int, splits: int, k_order: Any, promote_every: Any, scaling: Scaling | None
) -> KernelOrder:
    """Return the order that a test states, after checking it.

    Raises ValueError if statements contradict each other, the unit's steps or the blocks of scales; TypeError if a value that
    must be a number is none.
    """
    if isinstance(splits, bool) or not hasattr(splits, "__index__"):
        raise TypeError(f"splits is {splits!r}, expected an integer, the number of chains")
    if splits < 1:
        raise ValueError(f"splits is {splits}, expected at least 1")
    stated = k_order is not None or promote_every is not None
    k_order = "sequential" if k_order is None else k_order
    block = scaling.block if scaling is not None and scaling.applied == "block" else None
    every = _interval(unit, promote_every, block)
    if k_order != ANY:
        if splits != 1 and k_order != "sequential":
            raise ValueError(
                f"got splits {splits} with k_order {k_order!r}, which states the number of chains itself; leave splits out"
            )
        if every is not None and k_order != "sequential":
            raise ValueError(
                f"got promote_every with k_order {k_order!r}, expected k_order 'sequential' or 'any'; if the kernel adds "
                "sums of parts of k outside the unit, give splits instead of promote_every"
            )
        order = order_of(k, unit.k, k_order)
        if isinstance(order, Sum) and _rounds(order):
            raise ValueError(
                "got a k_order that rounds partial sums to another format, for which no bound is known; call assert_bits "
                "with a recipe of this order"
            )
    elif splits != 1:
        raise ValueError(f"got splits {splits} with k_order 'any', which allows any number of chains; leave splits out")
    return KernelOrder(k, unit.k, int(splits), k_order, every, block, stated)


def _rounds(order: Order) -> bool:
    return isinstance(order, Sum) and bool(order.partials or order.carry or any(_rounds(part) for part in order.parts))


def check_sums_outside(unit: Engine) -> None:
    """Raise ValueError if the unit's results are not FP32, the only format in which results are added outside."""
    if unit.formats[3].name != "fp32":
        raise ValueError(
            f"{unit.label} gives {unit.formats[3].name}, expected a unit with FP32 results for sums outside the unit; "
            "leave promote_every out"
        )


def _interval(unit: Engine, given: Any, block: int | None) -> tuple[int, int] | None:
    """Return (least, most) products between sums outside."""
    if given is None:
        return None
    ends = given if isinstance(given, tuple | list) else (given, given)
    if len(ends) != 2 or any(isinstance(x, bool) or not hasattr(x, "__index__") for x in ends):
        raise TypeError(
            f"promote_every is {given!r}, expected an integer (a number of products) or a pair (least, most)"
        )
    least, most = (int(x) for x in ends)
    if least > most:
        raise ValueError(f"promote_every is {given}, expected (least, most) with least <= most")
    if least < 1 or least % unit.k or most % unit.k:
        raise ValueError(
            f"promote_every is {given}, expected a multiple of {unit.k}, the products in one k step of {unit.label}"
        )
    check_sums_outside(unit)
    if block is not None and (block % least or block % most):
        raise ValueError(
            f"promote_every is {given}, expected a divisor of {block}, because a chain ends where the scales change, after "
            f"every {block} products"
        )
    return least, most
