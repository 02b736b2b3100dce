"""Defines how experiments describe and run one way to multiply two matrices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import JudgedProduct, hold, within


@dataclass(frozen=True)
class GemmMethod:
    """`GemmMethod` is one way to multiply."""

    name: str  #: Unique name, for tables and files.
    label: str  #: Label in tables, without the step order.
    #: ``multiply(a, b)`` returns the product of float32 or float64 matrices; with `takes_addend`, ``multiply(a, b, c)`` returns
    #: the product plus c. The function can be pickled.
    multiply: Callable[..., np.ndarray] = field(compare=False)
    #: JSON-compatible values that determine `multiply`, the key of the journal's results.
    settings: Mapping = field(default_factory=dict)
    #: ``details(a, b)``, or ``details(a, b, c)``, returns JSON-compatible facts that are recorded with the errors.
    details: Callable[..., dict] | None = field(default=None, compare=False)
    takes_addend: bool = False  #: Whether the method can add a C.
    #: Whether the time is recorded, because a real unit and not a model runs.
    timed: bool = False
    #: likely_bound, certain_bound: functions ``bound(a, b)`` of the error of each element that holds with a probability
    #: (:mod:`mpgemm.bounds.probabilistic`) or with certainty; None where no such bound is known.
    likely_bound: Callable[..., np.ndarray] | None = field(default=None, compare=False)
    certain_bound: Callable[..., np.ndarray] | None = field(default=None, compare=False)
    #: Rounding of a cube step (:data:`ascend.numeric.arguments.STEP_ORDERS`), empty for methods without the cube.
    step_order: str = ""
    #: ``bound(rows_of_a, columns_of_b)``, or with C as third argument, returns a certified bound of |product - exact|,
    #: elementwise, or None.
    bound: Callable[..., np.ndarray | None] | None = field(default=None, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "settings", {"name": self.name, **self.settings})

    @property
    def bound_by_norms(self) -> Callable[..., np.ndarray | None] | None:
        """Return `bound` as a function of the operands, None if the method has no certified bound."""
        bound = self.bound
        return None if bound is None else lambda a, b: bound(Lines(a, 1), Lines(b, 0))

    def hold(
        self, computed: np.ndarray, error: np.ndarray, a: Lines, b: Lines, c: np.ndarray | None = None, **options
    ) -> int:
        """Return how many elements of a product have a finite bound, and raise OutsideBound if one of them is outside of it.

        error: computed - exact, or its magnitude, elementwise.
        **options: options of the multiplication besides the settings, JSON-compatible.
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
    """Return the bound of :func:`mpgemm.bounds.probabilistic.likely_bound`, a module that only curves need to import."""
    from mpgemm.bounds.probabilistic import likely_bound

    return likely_bound(*operands, **options)
