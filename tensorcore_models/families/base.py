"""Defines `Accumulator`, the base of every family, which has a method with a fallback for each aspect."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from ..explanations.descriptions import Words
from ..explanations.sums import Position, SumBuilder
from ..formats import Format, IntegerFormat
from .aspect_list import ASPECTS
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
#: NaN rules under which a NaN result is one of the operands.
OPERAND_NAN = ("x86", "dmma")
ZeroExponent = Literal["skip", "minus126", "format_minimum"]
Rules = dict[str, tuple[str, ...] | None]
AnyFormat = Format | IntegerFormat


class SumAlgorithm(enum.Enum):
    """`SumAlgorithm` names the algorithms that code outside of the families knows, such as the fast kernels."""

    FUSED = enum.auto()  # FusedDotAdd
    INTERLEAVED = enum.auto()  # InterleavedDotAdd
    ROUND_DOWN = enum.auto()  # FusedDotRoundDownAdd, GroupFusedDotRoundDownAdd
    LATE = enum.auto()  # ParametricDotAdd whose c is not early
    EXACT = enum.auto()  # ParametricDotAdd that truncates nothing
    PARAMETRIC = enum.auto()  # ParametricDotAdd with rules that FusedDotAdd lacks
    SCALED = enum.auto()  # ScaledDotAdd
    GROUP_SUM = enum.auto()  # GroupDotFusedSum
    PAIRWISE = enum.auto()  # GroupPairwiseSum
    PAIR_ODD = enum.auto()  # PairRoundOddSum
    FMA_CHAIN = enum.auto()  # SequentialFMA
    LANES = enum.auto()  # LanedFMA
    INTEGER = enum.auto()  # IntegerDotAdd
    PHASES = enum.auto()  # FidelityPhases, IntegerPhases
    CONVERTED = enum.auto()  # ConvertedDotAdd: another algorithm on converted operands
    WIDENED = enum.auto()  # WidenedDotAdd: another algorithm between conversions of c and d


class Form(NamedTuple):
    """`Form` is an algorithm that code outside of the families knows (or None), and a specification with its fields."""

    algorithm: SumAlgorithm | None
    spec: Any


class Conversion(NamedTuple):
    """`Conversion` describes operands and results that are converted before and after the sum of another accumulator `spec`.

    ``convert(codes, side)`` converts encodings of a (side 0) or b (1) to the formats of `spec`. If results are converted, too,
    ``finish(codes)`` converts results of `spec` after every `every` products (None: at the end of a chain), and
    ``convert(codes, 2)`` converts the addend.
    """

    spec: "Accumulator"
    formats: tuple[Any, ...]
    convert: Callable[[Any, int], Any]
    finish: Callable[[Any], Any] | None = None
    every: int | None = None


class Arrangement(NamedTuple):
    """`Arrangement` is the order in which a kernel takes the products of one pass: groups, then the additions of `tree`."""

    groups: list[list[int]]
    tree: list[int]


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    """`Accumulator` is an algorithm by which a matrix unit adds the products of one output element.

    A family is a frozen subclass whose fields specify the algorithm. It states aspects of its arithmetic by overriding the
    methods of the table. Each method has a fallback, so a family that overrides only `pass_bits` can already multiply. The
    fallbacks "derived" need a `pass_bits` that computes only with the operations of :mod:`tensorcore_models.arithmetic`:

    =============  =================================  =====================================================================
    aspect         method                             fallback
    =============  =================================  =====================================================================
    integers       `pass_bits`                        NotImplementedError, because nothing can be computed
    words          `words`, `scales_products`,        derived from `pass_bits`, else the name of the class
                   `inside`
    tree           `add_step`, `shows_order`          derived from `pass_bits`, else no tree is drawn
    kernels        `plan_fields`, `arrangement`,      `pass_bits` runs, compiled if it is written in
                   `operand_tables`, `form`,          `p.arithmetic`, else in plain Python
                   `conversion`
    bound          `step_error`, `group_facts`,       derived from `pass_bits`, else ValueError
                   `group_facts_of_formats`,
                   `unrounded`
    search         `searches`, `simplest`             `identify` does not look for the family
    terms          `pass_term`, `parametric`          `pass_bits` runs on terms if it can be recorded, else Unencodable
    probe vectors  `probe`                            `probe_set` is empty
    symmetries     `interchangeable`, `idle`          comparisons of kernels let no product change its place
    =============  =================================  =====================================================================

    A subclass that overrides the `pass_bits` of another family has another algorithm, so the kernel, bound and words of that
    family would be wrong for it. It must therefore override the methods of the table that the family overrides; otherwise the
    definition of the class raises TypeError.

    Parameters
    ----------
    nan : {"all_ones", "quiet", "x86", "dmma"}
        Edge rule: encoding of a NaN result. "all_ones": all fraction bits are set. "quiet": only the leading fraction bit is
        set. "x86" (SequentialFMA and LanedFMA only): the first NaN among a, b and the addend, made quiet. "dmma"
        (SequentialFMA only): as "x86", in the order b, addend, a.
    tf32_nan : {"truncated", "kept"}
        Edge rule: value of a tf32 NaN whose payload is only in the 13 ignored bits: infinity ("truncated") or NaN ("kept").
    """

    nan: NanRule = "all_ones"
    tf32_nan: Literal["truncated", "kept"] = "truncated"

    #: Whether engines of this algorithm can have block scales.
    takes_scales: ClassVar[bool] = False
    #: Whether the algorithm converts its operands first, so that their encodings need no exponent and fraction fields.
    converts: ClassVar[bool] = False
    #: Whether the algorithm multiplies integers; else it multiplies floating-point numbers.
    takes_integers: ClassVar[bool] = False
    #: Whether the algorithm is public; else the unit can be listed, but nothing can be computed with it.
    published: ClassVar[bool] = True
    #: Whether block scales multiply each product, which a sentence then adds to `words`; else `words` describes them.
    scales_products: ClassVar[bool] = True
    #: Allowed values of the edge rules by name; None where the class validates the value.
    edge_rules: ClassVar[Rules] = {"nan": ("all_ones", "quiet"), "tf32_nan": ("truncated", "kept")}
    #: Whether the algorithm adds only parts of the products, so that even the result of one product is not the product.
    partial: ClassVar[bool] = False
    #: Whether A and B of one format may change places.
    operands_alike: ClassVar[bool] = True
    #: Name of the field with the number of products of one pass; None if a pass takes one product.
    step_field: ClassVar[str | None] = None
    #: Titles of aspects that use the fallback, each with the reason.
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
                "override these, too, or derive the class from Accumulator, which has a fallback for each"
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
        """Check the fields of a subclass, which overrides this method."""

    def with_rules(self, **rules):
        """Return a copy with other values of edge rules, such as `nan` (:mod:`tensorcore_models.accumulators` explains each).

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
            Formats of a, b, c and d.
        block_size : int or None
            Number of products that share a block scale.

        Raises
        ------
        ValueError
            If an integer format is given to an algorithm for floating-point numbers, or a floating-point format to one for
            integers; or if a format lacks the separate exponent and fraction fields that the algorithm needs.
        """
        for name, fmt in zip("abcd", formats, strict=True):
            if isinstance(fmt, IntegerFormat) != self.takes_integers:
                kind = "an integer" if self.takes_integers else "a floating-point"
                raise ValueError(f"{type(self).__name__} got {name}_format {fmt.name}, expected {kind} format")
            if isinstance(fmt, Format) and not (fmt.has_fields or (self.converts and name in "ab")):
                raise ValueError(
                    f"{name}_format {fmt.name} has no exponent and fraction fields, which {type(self).__name__} needs: let "
                    "ConvertedDotAdd convert the operands first"
                )

    def operand_format(self, fmt: AnyFormat, side: int) -> AnyFormat:
        """Return the format as which the unit reads operands of a (side 0) or b (side 1); by default `fmt`."""
        return fmt

    # -- steps -----------------------------------------------------------------------------------------------------------
    @property
    def terms_per_step(self) -> int:
        """Return the number of products of one pass; k is split into chained passes of this length."""
        return 1 if self.step_field is None else getattr(self, self.step_field)

    @property
    def groups_per_instruction(self) -> int:
        """Return the period of a chain in passes: 1 if all passes follow the same rules, else the passes of one instruction."""
        return 1

    @property
    def inner(self) -> "Accumulator":
        """Return the specification of one sum of products; an algorithm that contains another accumulator returns that one."""
        return self

    @property
    def key(self) -> int | None:
        """Return the key of stochastic roundings; None for an algorithm whose results depend on its inputs alone."""
        return None

    # -- integers --------------------------------------------------------------------------------------------------------
    def pass_bits(self, p: "Pass") -> int:
        """Return the encoding of the result of one pass, computed in plain integers; kernels are tested against it.

        If this method uses only the operations of `p.arithmetic` (:mod:`tensorcore_models.arithmetic`), the family also has
        compiled kernels, terms for solvers, words, a tree and a bound.

        Parameters
        ----------
        p : tensorcore_models.reference.Pass
            Encodings of the operands of up to `terms_per_step` products, and of the addend.

        Raises
        ------
        NotImplementedError
            If the class does not override this method.
        """
        raise NotImplementedError(f"{type(self).__name__} states no algorithm: override pass_bits")

    # -- words and tree --------------------------------------------------------------------------------------------------
    def words(self, d: str) -> Words:
        """Return the description of the arithmetic for readers; `d` is the format of the result.

        By default the description is derived from `pass_bits`. If that is impossible, it holds only the name of the class.
        """
        from ..explanations import derived

        found = derived.words(self, d)
        if found is not None:
            return found
        name = type(self).__name__
        return Words(f"No words are derived for the algorithm of the class {name}", (), "", f"computes by {name}")

    def shows_order(self, formats: Sequence[AnyFormat]) -> bool:
        """Return whether :func:`tensorcore_models.probing.summation_tree` can find the order of additions.

        `formats` holds the formats of a, b, c and d. By default the result is False for algorithms that add integers, or only
        parts of the products.
        """
        return not (self.takes_integers or self.partial)

    def inside(self, p: "Pass") -> Sequence[tuple[str, float]]:
        """Return (text, rounding error) for each intermediate sum of pass `p`; empty (the default) if a pass is one sum."""
        return ()

    def add_step(self, ks: Sequence[Position], c: Position, to: SumBuilder) -> Position | None:
        """Add the operations of one step over the products `ks` and the addend `c` to a tree of the sum.

        Returns
        -------
        int or None
            Position of the step's result in the tree; None if the order is not known. By default the order is derived from
            `pass_bits`.
        """
        from ..explanations import derived

        return derived.add_step(self, ks, c, to)

    # -- kernels ---------------------------------------------------------------------------------------------------------
    def plan_fields(self, formats: Sequence[Any], scale: Format | None, block_size: int | None) -> dict[str, Any]:
        """Return the fields of the plan that the compiled generic kernel runs (:mod:`tensorcore_models.aspects.plans`).

        Parameters
        ----------
        formats : sequence of Format or IntegerFormat
            Formats of a, b, c and d.
        scale, block_size
            Format of the block scales and number of products of a block; None without block scales.

        Raises
        ------
        BeyondKernels
            If the generic kernels cannot run the algorithm; a class that does not override this method always raises this
            error. The engine then runs `pass_bits`, compiled if it can be recorded (:mod:`tensorcore_models.kernels.recorded`),
            else in plain Python.
        """
        from ..aspects.plans import BeyondKernels

        raise BeyondKernels(f"{type(self).__name__} has no lowering")

    def arrangement(self, length: int) -> Arrangement:
        """Return the order in which the kernel reads `length` products of one pass; by default one after the other."""
        return Arrangement([list(range(length))], [])

    def operand_tables(self, formats: Sequence[Any]) -> "tuple[np.ndarray | None, np.ndarray | None]":
        """Return tables that convert encodings of A and B before they are multiplied; by default none."""
        return None, None

    def conversion(self, formats: Sequence[Any]) -> "Conversion | None":
        """Return a conversion of the operands after which another accumulator gives the same results; by default None.

        With a conversion, kernels convert the operands once and run the fast kernels of the other accumulator.
        """
        return None

    def form(self) -> Form:
        """Return the algorithm by which fast kernels compute this specification; by default no fast kernel computes it.

        A specification of another family that gives the same results may be named, too; its fast kernels then run.
        """
        return Form(None, self)

    # -- bound -----------------------------------------------------------------------------------------------------------
    def step_error(self, unit: Any, facts: "OperandFacts | None") -> "StepError":
        """Return a bound on the error of one step: a relative part and an absolute part.

        The relative part is multiplied by |c| plus the sum of all |a b| of the step. By default the bound is derived from
        `pass_bits` (:mod:`tensorcore_models.aspects.derived_errors`).

        Parameters
        ----------
        unit : Engine
            Engine with its formats, block scales and label.
        facts : OperandFacts or None
            Exponents of the operands; None for integers.

        Raises
        ------
        ValueError
            If no bound can be derived; the message gives the reason.
        """
        from ..aspects import derived_errors

        return derived_errors.step_error(self, unit, facts)

    def group_facts_of_formats(self, unit: Any) -> "GroupFacts | None":
        """Return bounds on the alignment exponents of group sums, for all operands of the formats; None without groups."""
        return None

    def group_facts(self, unit: Any, a, b, scale_a, scale_b) -> "GroupFacts | None":
        """Return bounds on the alignment exponents of group sums, for these operands; None without groups."""
        return None

    def unrounded(self) -> "Accumulator | None":
        """Return a copy that gives unrounded aligned sums in a wide result format; None for a sum without an alignment."""
        return None

    # -- search ----------------------------------------------------------------------------------------------------------
    @classmethod
    def searches(cls) -> "tuple[Search, ...]":
        """Return the searches by which `identify` looks for the family; by default none.

        A search lists the fields that it changes, their possible values, and the specifications from which it starts.
        """
        return ()

    def simplest(self) -> "Accumulator":
        """Return the specification of the simplest class that computes the same on every input."""
        return self

    # -- terms -----------------------------------------------------------------------------------------------------------
    def pass_term(self, p: "TermPass") -> "Term":
        """Return the result of one pass as a term over bit-vectors.

        By default it is ``self.pass_bits(p)``, if `pass_bits` does not branch on values, so that it also runs on terms.

        Parameters
        ----------
        p : tensorcore_models.bitvectors.passes.TermPass
            Terms of the operands and of the addend.

        Raises
        ------
        Unencodable
            If there is no term for the algorithm.
        """
        from ..arithmetic.program import why_unrecorded
        from ..bitvectors.passes import Unencodable

        reason = self.left_out.get("terms") or why_unrecorded(p)
        if reason:
            raise Unencodable(f"{type(self).__name__} has no encoding as terms ({reason}): override pass_term")
        return self.pass_bits(p)  # type: ignore[return-value]

    def parametric(self) -> "Any | None":
        """Return the ParametricDotAdd that computes the same results; None if no ParametricDotAdd computes them."""
        return None

    # -- probe vectors ---------------------------------------------------------------------------------------------------
    def probe(self, build: "Builder") -> None:
        """Add probe vectors, inputs whose results distinguish this specification from similar ones; by default none.

        Parameters
        ----------
        build : tensorcore_models.aspects.probes.Builder
            Object to which the probe vectors are added.
        """

    # -- symmetries ------------------------------------------------------------------------------------------------------
    def interchangeable(self, length: int) -> tuple[tuple[int, ...], ...]:
        """Return sets of products of one pass; products of one set may change places. By default each has its own set.

        Returns
        -------
        tuple of tuple of int
            Places of the products in each set; each place is in exactly one set. Block scales move with their products.
        """
        return tuple((place,) for place in range(length))

    def idle(self, formats: Sequence[Any]) -> bool:
        """Return whether a pass over zero operands leaves the result of every earlier pass unchanged; False if unknown.

        Parameters
        ----------
        formats : sequence of Format or IntegerFormat
            Formats of a, b, c and d.
        """
        return False
