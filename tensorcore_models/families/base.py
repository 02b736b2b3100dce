"""The base of every accumulator family: its specification, and each aspect of it as a method with a fallback."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from ..explanations.descriptions import Words
from ..explanations.sums import Position, SumBuilder
from ..formats import Format, IntegerFormat
from .checks import field_checks

if TYPE_CHECKING:
    import numpy as np

    from ..arithmetic.passes import Pass
    from ..aspects.errors import GroupFacts, OperandFacts, StepError
    from ..aspects.probes import Builder
    from ..aspects.search import Search
    from ..bitvectors.passes import TermPass
    from ..bitvectors.terms import Term

NanRule = Literal["all_ones", "quiet", "x86", "dmma"]
#: Rules under which a NaN result is one of the operands.
OPERAND_NAN = ("x86", "dmma")
ZeroExponent = Literal["skip", "minus126", "format_minimum"]
Rules = dict[str, tuple[str, ...] | None]
AnyFormat = Format | IntegerFormat


class Aspect(NamedTuple):
    """One thing that a family says of its arithmetic, by which method, what holds without it, and methods that go with it.

    `derived` says whether the fallback is made from `pass_bits`.
    """

    title: str
    method: str
    fallback: str
    others: tuple[str, ...] = ()
    derived: bool = False


#: What a family can say, in the order in which it is worth writing. docs/families.md shows who says what.
ASPECTS = (
    Aspect("integers", "pass_bits", "nothing runs: NotImplementedError"),
    Aspect(
        "words",
        "words",
        "made from `pass_bits`; where that does more to its numbers than its arithmetic says, the name of the class",
        ("scales_products", "inside"),
        derived=True,
    ),
    Aspect("tree", "add_step", "made from `pass_bits`; else no tree is drawn", ("shows_order",), derived=True),
    Aspect(
        "kernels",
        "plan_fields",
        "Programs or the integers run",
        ("arrangement", "operand_tables", "form", "conversion"),
    ),
    Aspect(
        "bound",
        "step_error",
        "derived from `pass_bits`; else no bound: ValueError",
        ("group_facts", "group_facts_of_formats", "unrounded"),
        derived=True,
    ),
    Aspect("search", "searches", "identify does not look for it", ("simplest",)),
    Aspect(
        "terms",
        "pass_term",
        "`pass_bits` on terms where it can be recorded; else solvers cannot be asked: Unencodable",
        ("parametric",),
        derived=True,
    ),
    Aspect("probe vectors", "probe", "there are none"),
    Aspect("symmetries", "interchangeable", "no two products may change places", ("idle",)),
)


class SumAlgorithm(enum.Enum):
    """The algorithms that code outside of the families knows: kernels of the fast paths run one or a few of them."""

    FUSED = enum.auto()  # FusedDotAdd
    INTERLEAVED = enum.auto()  # InterleavedDotAdd
    ROUND_DOWN = enum.auto()  # FusedDotRoundDownAdd, GroupFusedDotRoundDownAdd
    LATE = enum.auto()  # ParametricDotAdd whose c joins the aligned sum
    EXACT = enum.auto()  # ParametricDotAdd that cuts nothing off
    PARAMETRIC = enum.auto()  # ParametricDotAdd with other rules than a FusedDotAdd has
    SCALED = enum.auto()  # ScaledDotAdd
    GROUP_SUM = enum.auto()  # GroupDotFusedSum
    PAIRWISE = enum.auto()  # GroupPairwiseSum
    PAIR_ODD = enum.auto()  # PairRoundOddSum
    FMA_CHAIN = enum.auto()  # SequentialFMA
    LANES = enum.auto()  # LanedFMA
    INTEGER = enum.auto()  # IntegerDotAdd
    PHASES = enum.auto()  # FidelityPhases, IntegerPhases
    CONVERTED = enum.auto()  # ConvertedDotAdd: another one of converted operands
    WIDENED = enum.auto()  # WidenedDotAdd: another one between conversions of c and d


class Form(NamedTuple):
    """An algorithm that code outside knows, None if it knows none, and the specification with the fields of that algorithm."""

    algorithm: SumAlgorithm | None
    spec: Any


class Conversion(NamedTuple):
    """Operands converted before the sum: ``convert(codes, side)`` gives those of a (0) or b (1), which `spec` takes.

    Where results are converted, too, ``finish(codes)`` makes them of those of `spec`, after every `every` products (None: of
    a whole chain), and ``convert(codes, 2)`` gives the addend that `spec` takes.
    """

    spec: "Accumulator"
    formats: tuple[Any, ...]
    convert: Callable[[Any, int], Any]
    finish: Callable[[Any], Any] | None = None
    every: int | None = None


class Arrangement(NamedTuple):
    """How a kernel takes the products of one pass: group after group, and the additions after them (`tree`, if any)."""

    groups: list[list[int]]
    tree: list[int]


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    """`Accumulator` is one accumulator algorithm: what a matrix unit does with the products of one output element.

    A family is a subclass, frozen, whose fields specify the algorithm. It says what it knows of its arithmetic by overriding
    methods; each has a fallback, so that a family that only overrides `pass_bits` runs at once. Words, tree, bound and terms
    are made from what the functions of :mod:`tensorcore_models.arithmetic` say that it does; of what does more nothing is said:

    =============  =================================  =====================================================================
    aspect         method                             without it
    =============  =================================  =====================================================================
    integers       `pass_bits`                        nothing runs (NotImplementedError)
    words          `words`, `scales_products`,        they are made from `pass_bits`; else the class's name stands for them
                   `inside`
    tree           `add_step`, `shows_order`          it is made from `pass_bits`; else no tree of the sum is drawn
    kernels        `plan_fields`, `arrangement`,      `pass_bits` is recorded and runs compiled if it is
                   `operand_tables`, `form`,          written in `p.arithmetic`, else in plain Python
                   `conversion`
    bound          `step_error`, `group_facts`,       it is derived from `pass_bits`; else a bound raises ValueError
                   `group_facts_of_formats`,
                   `unrounded`
    search         `searches`, `simplest`             identify does not look for it
    terms          `pass_term`, `parametric`          `pass_bits` runs on terms if it can be recorded; else SMT solvers cannot
                                                      be asked about it (Unencodable)
    probe vectors  `probe`                            it has none: `probe_set` is empty
    symmetries     `interchangeable`, `idle`          kernels are compared with every product in its place
    =============  =================================  =====================================================================

    A subclass that overrides `pass_bits` computes something else than the class it is derived from. So no kernel, bound or
    sentence of the other algorithm may be used for it: a class that inherits one is refused when it is defined (TypeError).

    Parameters
    ----------
    nan : {"all_ones", "quiet", "x86", "dmma"}
        Encoding of NaN results; "x86" for SequentialFMA and LanedFMA only, "dmma" for SequentialFMA only.
    tf32_nan : {"truncated", "kept"}
        What a tf32 operand is whose NaN payload is in the ignored low bits only.
    """

    nan: NanRule = "all_ones"
    tf32_nan: Literal["truncated", "kept"] = "truncated"

    #: Whether an engine of this algorithm can have block scales.
    takes_scales: ClassVar[bool] = False
    #: Whether it converts its operands first, so that their encodings need no fields of exponent and fraction.
    converts: ClassVar[bool] = False
    #: Whether it multiplies integers; else floating-point numbers.
    takes_integers: ClassVar[bool] = False
    #: Whether the algorithm is known: else the unit can be listed, and nothing can be computed with it.
    published: ClassVar[bool] = True
    #: Whether block scales multiply each product, and a sentence is added that says so; else `words` says what they do.
    scales_products: ClassVar[bool] = True
    #: Allowed values of the named edge rules; None where any value that the class validates will do.
    edge_rules: ClassVar[Rules] = {"nan": ("all_ones", "quiet"), "tf32_nan": ("truncated", "kept")}
    #: Whether it adds parts of the products only, so that no result is that of a product.
    partial: ClassVar[bool] = False
    #: Whether A and B of one format may change places.
    operands_alike: ClassVar[bool] = True
    #: The field that says how many products one pass takes; None: it takes one.
    step_field: ClassVar[str | None] = None
    #: Aspects that a family leaves to the fallback, each with the reason.
    left_out: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        others = [c for c in cls.__mro__[1:] if "pass_bits" in vars(c) and c is not Accumulator]
        if "pass_bits" not in vars(cls) or not others:
            return
        theirs = cls.__mro__[1 : cls.__mro__.index(others[0]) + 1]
        names = (name for aspect in ASPECTS for name in (aspect.method, *aspect.others) if name not in vars(cls))
        kept = [name for name in names if any(name in vars(c) for c in theirs)]
        if kept:
            raise TypeError(
                f"{cls.__name__} overrides pass_bits of {others[0].__name__} and inherits its {', '.join(kept)}: "
                "override them, too, or derive the class from Accumulator, where each has a fallback"
            )

    def __post_init__(self):
        for name, check in field_checks(type(self)):
            given = getattr(self, name)
            value = check(given)
            if value is not given:
                object.__setattr__(self, name, value)
        for rule, allowed in self.edge_rules.items():
            value = getattr(self, rule)
            if allowed is not None and value not in allowed:
                raise ValueError(
                    f"{type(self).__name__}: {rule} is {value!r}, expected one of {', '.join(map(repr, allowed))}"
                )
        self._check()

    def _check(self) -> None:
        """Check the class's own fields: a hook."""

    def with_rules(self, **rules):
        """Return a copy with other edge rules.

        Raises
        ------
        ValueError
            If a name is not an edge rule of this class (the message lists them) or a value is not allowed.
        """
        unknown = sorted(set(rules) - set(self.edge_rules))
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no edge rule {', '.join(map(repr, unknown))}; it has {', '.join(self.edge_rules)}"
            )
        return dataclasses.replace(self, **rules)

    def check_formats(self, formats: Sequence[AnyFormat], block_size: int | None) -> None:
        """Raise ValueError for operand formats that the algorithm cannot multiply.

        Parameters
        ----------
        formats : sequence of Format or IntegerFormat
            Of a, b, c and d.
        block_size : int or None
            Products that share a block scale.

        Raises
        ------
        ValueError
            If a format is an integer format and the algorithm takes floating-point numbers, or the other way round.
        """
        for name, fmt in zip("abcd", formats, strict=True):
            if isinstance(fmt, IntegerFormat) != self.takes_integers:
                raise ValueError(
                    f"{type(self).__name__} takes {'integers' if self.takes_integers else 'floating-point numbers'}, "
                    f"{name}_format is {fmt.name}"
                )
            if isinstance(fmt, Format) and not (fmt.has_fields or (self.converts and name in "ab")):
                raise ValueError(
                    f"{type(self).__name__} multiplies encodings with an exponent and a fraction, {name}_format {fmt.name} has "
                    "none: ConvertedDotAdd converts it"
                )

    def operand_format(self, fmt: AnyFormat, side: int) -> AnyFormat:
        """Return the format as which a unit reads operands of a (side 0) or b (1); an edge rule may make it another one."""
        return fmt

    # -- steps -----------------------------------------------------------------------------------------------------------
    @property
    def terms_per_step(self) -> int:
        """Return the number of products that one pass takes; k is cut into chained passes of this length."""
        return 1 if self.step_field is None else getattr(self, self.step_field)

    @property
    def groups_per_instruction(self) -> int:
        """Return the number of passes after which a chain repeats what it does: 1 where all passes are alike."""
        return 1

    @property
    def inner(self) -> "Accumulator":
        """Return the specification of the sum in which products are aligned; for a chain of sums, of one of them."""
        return self

    @property
    def key(self) -> int | None:
        """Return the key of stochastic roundings; None for an algorithm whose results depend on its inputs alone."""
        return None

    # -- integers --------------------------------------------------------------------------------------------------------
    def pass_bits(self, p: "Pass") -> int:
        """Return one pass of the algorithm in plain integers: the truth that kernels are tested against.

        Whoever writes it in the operations of `p.arithmetic` (:mod:`tensorcore_models.arithmetic`) has compiled kernels,
        terms for solvers, words, a tree and a bound by it.

        Parameters
        ----------
        p : tensorcore_models.reference.Pass
            Encodings of up to `terms_per_step` products and of the addend.

        Raises
        ------
        NotImplementedError
            If the class states no algorithm.
        """
        raise NotImplementedError(f"{type(self).__name__} states no algorithm: override pass_bits")

    # -- words and tree --------------------------------------------------------------------------------------------------
    def words(self, d: str) -> Words:
        """Return the description of the arithmetic for readers; `d` is the format of the result.

        By default they are made from what `pass_bits` does; where that is not said by the functions of `p.arithmetic` alone,
        the class is named, and has neither sentences nor a formula.
        """
        from ..explanations import derived

        found = derived.words(self, d)
        if found is not None:
            return found
        name = type(self).__name__
        return Words(f"An algorithm of one's own, {name}", (), "", f"computes by {name}")

    def shows_order(self, formats: Sequence[AnyFormat]) -> bool:
        """Return whether :func:`tensorcore_models.probing.summation_tree` can find the order of additions.

        `formats` are those of a, b, c and d. Not in sums of integers or of parts of products.
        """
        return not (self.takes_integers or self.partial)

    def inside(self, p: "Pass") -> Sequence[tuple[str, float]]:
        """Return the parts of one pass where that is more than one sum: (text, what is lost there); by default nothing."""
        return ()

    def add_step(self, ks: Sequence[Position], c: Position, to: SumBuilder) -> Position | None:
        """Add the operations of one step over the products `ks` and the addend `c` to a tree of the sum.

        Returns
        -------
        int or None
            Position of the step's result; None: the order is not said. By default it is what `pass_bits` does, where the
            functions of `p.arithmetic` say that.
        """
        from ..explanations import derived

        return derived.add_step(self, ks, c, to)

    # -- kernels ---------------------------------------------------------------------------------------------------------
    def plan_fields(self, formats: Sequence[Any], scale: Format | None, block_size: int | None) -> dict[str, Any]:
        """Return fields of the plan that the compiled generic kernel runs (:mod:`tensorcore_models.aspects.plans`).

        Parameters
        ----------
        formats : sequence of Format or IntegerFormat
            Of a, b, c and d.
        scale, block_size
            Block scales, None without.

        Raises
        ------
        BeyondKernels
            Where no kernel holds it, and by default: `pass_bits` is then recorded and runs compiled
            (:mod:`tensorcore_models.kernels.recorded`) if it can be, else in plain Python.
        """
        from ..aspects.plans import BeyondKernels

        raise BeyondKernels(f"{type(self).__name__} has no lowering")

    def arrangement(self, length: int) -> Arrangement:
        """Return the order in which the kernel takes `length` products of one pass; by default one after the other."""
        return Arrangement([list(range(length))], [])

    def operand_tables(self, formats: Sequence[Any]) -> "tuple[np.ndarray | None, np.ndarray | None]":
        """Return tables that convert encodings of A and B before they are multiplied; by default none."""
        return None, None

    def conversion(self, formats: Sequence[Any]) -> "Conversion | None":
        """Return the conversion of operands after which another accumulator does the rest; None (the default) for none.

        The kernels then convert the operands once, and run the other accumulator with its fast kernels.
        """
        return None

    def form(self) -> Form:
        """Return the algorithm that fast kernels know for this specification; by default none.

        A family that computes what another one does for some of its values may give that one's form, and gets its fast kernels.
        """
        return Form(None, self)

    # -- bound -----------------------------------------------------------------------------------------------------------
    def step_error(self, unit: Any, facts: "OperandFacts | None") -> "StepError":
        """Return a bound on the error of one step: a part relative to the largest size of its sum, and an absolute part.

        By default it is derived from what `pass_bits` does (:mod:`tensorcore_models.aspects.derived_errors`).

        Parameters
        ----------
        unit : Engine
            Formats, block scales and label.
        facts : OperandFacts or None
            Exponents of the operands; None for integers.

        Raises
        ------
        ValueError
            If no error is derived; the message says why.
        """
        from ..aspects import derived_errors

        return derived_errors.step_error(self, unit, facts)

    def group_facts_of_formats(self, unit: Any) -> "GroupFacts | None":
        """Return bounds on exact group sums for all operands of the unit's formats; None for a unit without groups."""
        return None

    def group_facts(self, unit: Any, a, b, scale_a, scale_b) -> "GroupFacts | None":
        """Return facts of exact group sums of the given operands, which are float64 values; None for a unit without such
        groups."""
        return None

    def unrounded(self) -> "Accumulator | None":
        """Return a copy whose aligned sums are not rounded at the end; None for an algorithm without an alignment."""
        return None

    # -- search ----------------------------------------------------------------------------------------------------------
    @classmethod
    def searches(cls) -> "tuple[Search, ...]":
        """Return the searches by which identify looks for the family (fields, values, where to start); by default none."""
        return ()

    def simplest(self) -> "Accumulator":
        """Return the specification of the plainest class that computes the same on every input."""
        return self

    # -- terms -----------------------------------------------------------------------------------------------------------
    def pass_term(self, p: "TermPass") -> "Term":
        """Return one pass as a term over bit-vectors: by default ``self.pass_bits(p)`` where that can be recorded.

        What can be recorded asks no value what it is, so that it does the same with terms.

        Parameters
        ----------
        p : tensorcore_models.bitvectors.passes.TermPass

        Raises
        ------
        Unencodable
            If there is no term.
        """
        from ..arithmetic.program import why_unrecorded
        from ..bitvectors.passes import Unencodable

        reason = self.left_out.get("terms") or why_unrecorded(p)
        if reason:
            raise Unencodable(f"{type(self).__name__} has no encoding as terms: {reason}: override pass_term")
        return self.pass_bits(p)  # type: ignore[return-value]

    def parametric(self) -> "Any | None":
        """Return the ParametricDotAdd that computes the same results; None where there is none."""
        return None

    # -- probe vectors ---------------------------------------------------------------------------------------------------
    def probe(self, build: "Builder") -> None:
        """Add probe vectors: inputs whose results, worked out by hand, tell this specification from others; by default none.

        Parameters
        ----------
        build : tensorcore_models.aspects.probes.Builder
        """

    # -- symmetries ------------------------------------------------------------------------------------------------------
    def interchangeable(self, length: int) -> tuple[tuple[int, ...], ...]:
        """Return the sets of products of one pass whose members may change places; by default each product alone.

        Returns
        -------
        tuple of tuple of int
            Places of the products; each place is in one set. Block scales move with their products.
        """
        return tuple((place,) for place in range(length))

    def idle(self, formats: Sequence[Any]) -> bool:
        """Return whether a pass over zeros leaves every result of another pass unchanged; False where this is not known.

        Parameters
        ----------
        formats : sequence of Format or IntegerFormat
            Of a, b, c and d.
        """
        return False
