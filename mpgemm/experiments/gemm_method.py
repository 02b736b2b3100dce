"""One way to multiply two matrices, as experiments see it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import JudgedProduct, hold, within


@dataclass(frozen=True)
class GemmMethod:
    """One way to multiply."""

    name: str  #: Unique; for tables and files.
    label: str  #: For tables, without the step order.
    #: ``multiply(a, b)`` on float32 or float64 matrices gives the product, ``multiply(a, b, c)`` the product plus c
    #: where `takes_addend`; it can be pickled.
    multiply: Callable[..., np.ndarray] = field(compare=False)
    #: JSON-compatible values that determine `multiply`; the journal of results is keyed by them.
    settings: Mapping = field(default_factory=dict)
    #: ``details(a, b)``, or ``details(a, b, c)``, gives JSON-compatible facts that are recorded beside the errors.
    details: Callable[..., dict] | None = field(default=None, compare=False)
    takes_addend: bool = False  #: Whether it adds a C.
    timed: bool = (
        False  #: Whether its time is a result: of a real unit, not of a model. Others leave no clock in files.
    )
    #: likely_bound, certain_bound: ``bound(a, b)`` of the error of each element, with a probability
    #: (:mod:`mpgemm.bounds.probabilistic`) and for certain; None where no such bound is known.
    likely_bound: Callable[..., np.ndarray] | None = field(default=None, compare=False)
    certain_bound: Callable[..., np.ndarray] | None = field(default=None, compare=False)
    #: How a cube step rounds (:data:`ascend.numeric.arguments.STEP_ORDERS`), empty where there is no cube.
    step_order: str = ""
    #: ``bound(rows_of_a, columns_of_b)``, or with C behind them, gives a certified bound of |product - exact|, elementwise, or
    #: None.
    bound: Callable[..., np.ndarray | None] | None = field(default=None, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "settings", {"name": self.name, **self.settings})

    @property
    def bound_by_norms(self) -> Callable[..., np.ndarray | None] | None:
        """`bound` as a function of the operands; None where nothing is certified of the method."""
        bound = self.bound
        return None if bound is None else lambda a, b: bound(Lines(a, 1), Lines(b, 0))

    def hold(
        self, computed: np.ndarray, error: np.ndarray, a: Lines, b: Lines, c: np.ndarray | None = None, **options
    ) -> int:
        """Hold a product of this method on these operands against its bound. Raises OutsideBound.

        Returns how many elements have a finite bound: nothing is said about the others.

        error: computed - exact, or its size, elementwise.
        **options: With which it was multiplied, beside the settings; JSON-compatible.
        """
        if self.bound is None:
            return 0
        if c is None and within(error, self.bound(a.least, b.least, **options)):
            return error.size
        bound = self.bound(a, b, **options) if c is None else self.bound(a, b, c, **options)
        if bound is None:
            return 0
        recipe = {**self.settings, "method": self.name, **({"options": options} if options else {})}
        hold(JudgedProduct(self.label, recipe, a.values, b.values, c), computed, error, bound)
        return int(np.isfinite(bound).sum())


def likely(*operands: np.ndarray | None, **options) -> np.ndarray:
    """Return the bound of :func:`mpgemm.bounds.probabilistic.likely_bound`, whose module curves alone need."""
    from mpgemm.bounds.probabilistic import likely_bound

    return likely_bound(*operands, **options)
