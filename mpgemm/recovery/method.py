"""Describes recovery methods as rows of data: the split of operands into words, the products of words, and their sums.

A method approximates ``A B + C`` by products of narrower words. Word j of x is ``x_j = RN((x - x_0 - ... ) 2^(j s))`` with the
word scale exponent s (:mod:`tensorcore_models.formats.words`), so that ``x ~ sum_j x_j 2^(-j s)``. Product (i, j) is word i
of A times word j of B and has weight ``2^-((i + j) s)``; its *level* is i + j. The fields of a row have these values:

accumulation
    ``core``: one chain through the engine adds all products, starting from c.
    ``blocks``: for every `restart_every` products of k, one chain from zero adds all products of words; the results are
    added, in order, to an outside sum that starts from c.
    ``staged``: chains from zero add all products of words, the first chain over one k step, each later chain over
    `restart_every` products of k; the results are added, in order, to an outside sum that starts from zero; c is added last.
    ``nested``: each level has one chain, highest level first; its result, scaled by a power of two, seeds the next chain.
    Every addition happens in the core.
    ``outside``: each level has one chain from zero; levels are joined outside, ``t = RN(t 2^-s + next)``; c is added last.
    ``k_step``: sums are those of ``outside``, but level 0 restarts from zero at every k step, or every `restart_every`
    products of k, and its partial sums are added outside.
    ``termwise``: each product has one chain from zero; products of a level are added outside, then joined as in ``outside``.
    ``elementwise``: each k step of each product starts from zero; all results are added to one outside sum, c last.
    ``bands``: each k step from zero is summed as in ``nested``, but the unit itself scales the seed of the next level
    (:meth:`tensorcore_models.Engine.scaled_input`); the results of the k steps are added outside, in order from zero, c last.
    "Outside" means IEEE FP32 rounded to nearest even (FP64 if the engine's results are FP64).
order
    Order of the products inside one chain. ``step`` takes all products of a k step, then the next k step, as fused kernels do.
    ``term`` takes a product over all of k, then the next product. A number q, a multiple of the k step, takes a product over q
    of k, then the next product over the same q, as kernels whose tiles hold q of k do. Products come in the order of the row.
repair
    ``fp32`` computes results that are not finite again, as chains of FP32 fused multiply-adds in k order from zero, c last.
    So infinities, NaN and words that overflow give the results of FP32.
parts
    Number of parts of equal length into which k is divided; lengths are multiples of 256, and the last part may be shorter. The
    sums above, without C, are computed for each part from zero and added outside in order; c is added last. ``auto`` takes a
    number that depends only on n, k and the method (:func:`mpgemm.recovery.parts.parts_of`), so that the bits of a row of the
    result do not depend on the number of rows.
equilibrate
    ``rows`` multiplies rows of A and columns of B by powers of two that bring their largest element just below
    ``theta = min(f_max, sqrt(F_max / k))``, where f_max and F_max are the largest finite numbers of the word format and the
    result format. The scaling is undone at the end, and c is added outside after that.

Costs are counted in passes; one pass is one engine product of the full size.
"""

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mpgemm.recovery.word_count import CountControl
from tensorcore_models import ROUNDINGS, get_format
from tensorcore_models.formats import Format, IntegerFormat, format_family, operand_format
from tensorcore_models.formats.words import OVERFLOWS
from tensorcore_models.integers import checked_integer, integer_fields

ACCUMULATIONS = ("core", "blocks", "staged", "nested", "outside", "k_step", "termwise", "elementwise", "bands")
ORDERS = ("step", "term")
REPAIRS = ("none", "fp32")
EQUILIBRATIONS = ("none", "rows")
KINDS = ("words", "integer_slices", "residues", "split_residues", "quantised", "own")
CERTAINTIES = ("published formula", "library practice", "reconstruction", "not stated")
TARGETS = ("engine", "fp32", "fp64", "input")

#: Moduli of Ozaki scheme II in the order in which they are taken, the largest pairwise coprime integers up to 256.
MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193, 191, 181, 179, 173)

#: Moduli whose residues are pairs of words of FP8 (:mod:`mpgemm.recovery.split_residues`).
SPLIT_MODULI = (1283, 1279, 1253, 1249, 1245, 1223, 1219, 1207, 1201, 1193, 1189, 1181, 1177, 1171, 1163, 1159)

#: Largest number of bits below a common exponent that integer slices may hold.
MOST_SLICE_BITS = 112


def products_below(words: int, level: int | None = None) -> tuple[tuple[int, int], ...]:
    """Return the products (i, j) of word indices with i + j <= `level`, smallest products first.

    words: number of words.
    level: largest i + j, by default that of all products.

    >>> products_below(2, 1)
    ((0, 1), (1, 0), (0, 0))
    """
    level = 2 * (words - 1) if level is None else level
    pairs = [(i, j) for i in range(words) for j in range(words) if i + j <= level]
    return tuple(sorted(pairs, key=lambda pair: (-sum(pair), pair)))


@dataclass(frozen=True, kw_only=True)
class RecoveryMethod:
    """`RecoveryMethod` describes one way to recover accuracy from a narrow matrix engine, as a row of a table.

    Parameters
    ----------
    name, title : str
        Name in calls and tables, and a descriptive title.
    formula, source : str
        Formula of the arithmetic, and its source.
    certainty : {"published formula", "library practice", "reconstruction", "not stated"}
        Evidence for the formula. A "reconstruction" is inferred from descriptions, not from the authors' text or code. "not
        stated" is the default, for methods that a user defines.
    kind : {"words", "integer_slices", "residues", "split_residues", "quantised", "own"}
        Algorithm that runs the method: floating-point words, integer slices on a common exponent, residues, residues as pairs
        of words, quantised words, or functions of the user.
    formats : tuple of str
        Operand formats that the engine may have; the first is the method's default.
    words : int
        Number of words of each operand.
    rounding : str
        Rounding of the split.
    last_rounding : str
        Rounding of the last word if it differs, otherwise empty.
    scale_exponent : int or None
        Word scale exponent s: word j is multiplied by 2^(j s) before it is rounded. None means the word format's precision.
    products : tuple of (int, int)
        Products of words that are computed, in order (indices from 0).
    accumulation, order, equilibrate, repair, parts
        Order of the additions, scaling of rows and columns, repair of results that are not finite, and division of k.
        :mod:`mpgemm.recovery.method` explains their values.
    restart_every : int or None
        Number of products after which a chain restarts from zero, for the accumulations "blocks", "staged" and "k_step"; None
        means the engine's k step.
    target : {"engine", "fp32", "fp64", "input"}
        Format of the result: the engine's, FP32, FP64, or FP64 if an operand is FP64 and FP32 otherwise.
    moduli : tuple of int
        Moduli of a residue method.
    slice_bits : int
        Number of bits of an integer slice, without its sign.
    count : CountControl or None
        Rule by which the number of slices or moduli follows from the matrices; None if the method has a fixed number.
    overflow : {"inf", "saturate"} or None
        Value of a word that overflows, infinity or the largest number; None for the engine's rule.
    split, join : callable or None
        Functions of a method of the kind "own"; :mod:`mpgemm.recovery.own_run` describes their arguments and results.
    range_limits : str
        Inputs for which the claims of the method's source hold.
    claimed_loss : str
        Bits lost against FP32 according to table 2 of Xue et al. (arXiv:2507.23387v4).
    default_engine : str
        Engine that runs the method if a call names none.
    options : mapping
        Options that a call may give, each with its meaning.
    """

    name: str
    title: str
    formula: str
    source: str
    certainty: str = "not stated"
    kind: str = "words"
    formats: tuple[str, ...] = ("fp16",)
    words: int = 2
    rounding: str = "rne"
    last_rounding: str = ""
    scale_exponent: int | None = 0
    products: tuple[tuple[int, int], ...] = ((0, 0),)
    accumulation: str = "core"
    restart_every: int | None = None
    order: str | int = "step"
    parts: int | str = 1
    equilibrate: str = "none"
    repair: str = "none"
    target: str = "fp32"
    moduli: tuple[int, ...] = ()
    slice_bits: int = 7
    count: CountControl | None = None
    overflow: str | None = None
    split: Callable | None = None
    join: Callable | None = None
    range_limits: str = ""
    claimed_loss: str = ""
    default_engine: str = "h100"
    options: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self):
        for name in ("words", "scale_exponent", "restart_every", "slice_bits"):
            if getattr(self, name) is not None:
                integer_fields(self, name)
        for name, known in (
            ("kind", KINDS),
            ("accumulation", ACCUMULATIONS),
            ("equilibrate", EQUILIBRATIONS),
            ("repair", REPAIRS),
            ("certainty", CERTAINTIES),
            ("target", TARGETS),
            ("rounding", ROUNDINGS),
            ("last_rounding", ("", *ROUNDINGS)),
            ("overflow", (None, *OVERFLOWS)),
        ):
            if getattr(self, name) not in known:
                self._fail(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(map(str, known))}")
        self._check_words()
        self._check_sums()
        if (self.kind == "own") != callable(self.split) or (self.join is not None and self.kind != "own"):
            self._fail(f"kind is {self.kind!r}; the kind 'own' needs a split function, others take no split or join")
        if self.kind == "residues":
            check_moduli(self.moduli)
        if self.kind == "split_residues" and (len(self.moduli) < 2 or not set(self.moduli) <= set(self.known_moduli)):
            self._fail(f"moduli are {self.moduli}, expected at least two of {', '.join(map(str, self.known_moduli))}")

    def _check_words(self) -> None:
        if not (self.name and self.title and self.formula and self.source and self.formats):
            self._fail("a row needs name, title, formula, source and formats")
        for fmt in self.formats:
            get_format(fmt)
        if not 1 <= self.words <= 32:
            self._fail(f"words is {self.words!r}, expected an integer from 1 to 32")
        if len(set(self.products)) != len(self.products) or not self.products:
            self._fail(f"products are {self.products}, expected at least one pair, all different")
        if any(not (0 <= i < self.words and 0 <= j < self.words) for i, j in self.products):
            self._fail(f"products are {self.products}, expected word indices from 0 to {self.words - 1}")

    def _check_sums(self) -> None:
        """Raise ValueError if the fields of the sums contradict each other."""
        if self.scale_exponent is not None and not 0 <= self.scale_exponent <= 100:
            self._fail(f"scale_exponent is {self.scale_exponent!r}, expected an integer from 0 to 100, or None")
        if (
            self.kind != "own"
            and self.accumulation in ("core", "blocks", "staged")
            and self.scale_exponent != 0
            and self.words > 1
        ):
            self._fail(
                f"scale_exponent is {self.scale_exponent!r}, expected 0 for accumulation {self.accumulation!r}, which adds "
                "products of different words without scaling them"
            )
        if isinstance(self.order, str | bool):
            if self.order not in ORDERS:
                self._fail(f"order is {self.order!r}, expected 'step', 'term' or a number of products of k")
        elif checked_integer(self.order, "order") < 1:
            self._fail(f"order is {self.order}, expected a positive number of products of k")
        if self.parts != "auto" and (isinstance(self.parts, str) or checked_integer(self.parts, "parts") < 1):
            self._fail(f"parts is {self.parts!r}, expected a positive number of parts of k, or 'auto'")
        if self.parts != 1 and self.kind != "words":
            self._fail(
                f"parts is {self.parts!r}, expected 1, because only methods of the kind 'words' have parts, not {self.kind!r}"
            )
        restarts = self.restart_every is not None
        if restarts != (self.accumulation in ("blocks", "staged")) and not (restarts and self.accumulation == "k_step"):
            wanted = f"{'None' if restarts else 'a number'} for accumulation {self.accumulation!r}"
            self._fail(f"restart_every is {self.restart_every!r}, expected {wanted}")
        levels = [i + j for i, j in self.products]
        if (
            self.kind != "own"
            and self.accumulation not in ("core", "blocks", "staged")
            and levels != sorted(levels, reverse=True)
            and self.accumulation != "elementwise"
        ):
            self._fail(f"products are {self.products}, expected the highest level first for {self.accumulation!r}")

    def _fail(self, message: str):
        raise ValueError(f"method {self.name!r}: {message}")

    def with_count(self, count: int) -> "RecoveryMethod":
        """Return a copy of the row with `count` slices or moduli.

        Raises
        ------
        ValueError
            If the method cannot have this number of slices or moduli.
        """
        if self.modular:
            return dataclasses.replace(self, moduli=self.known_moduli[:count], count=None)
        upper = self.products == products_below(self.words, self.words - 1)
        products = products_below(count, count - 1 if upper else None)
        return dataclasses.replace(self, words=count, products=products, count=None)

    @property
    def most_words(self) -> int:
        """Return the largest number of slices or moduli that the method can have."""
        return len(self.known_moduli) if self.modular else MOST_SLICE_BITS // self.slice_bits

    @property
    def word_count(self) -> int:
        """Return the number of slices or moduli of the method."""
        return len(self.moduli) if self.modular else self.words

    @property
    def modular(self) -> bool:
        """Return whether the words are residues."""
        return self.kind in ("residues", "split_residues")

    @property
    def known_moduli(self) -> tuple[int, ...]:
        """Return the moduli in the order in which the method uses them."""
        return SPLIT_MODULI if self.kind == "split_residues" else MODULI

    @property
    def exact(self) -> bool:
        """Return whether the method relies on exact sums of products."""
        return self.modular or self.kind == "integer_slices"

    @property
    def largest_product(self) -> int:
        """Return the largest magnitude of a product of two words, for a method whose sums are exact."""
        if self.modular:
            return 32**2 if self.kind == "split_residues" else max(p // 2 for p in self.moduli) ** 2
        return 1 << 14 if self.slice_bits == 8 else ((1 << self.slice_bits) - 1) ** 2

    @property
    def passes(self) -> int:
        """Return the number of full-size engine products of one call, with the method's own number of slices or moduli."""
        if self.modular:
            return len(self.moduli) * (3 if self.kind == "split_residues" else 1)
        return len(self.products)

    @property
    def integer(self) -> bool:
        """Return whether the words are integers."""
        return isinstance(get_format(self.formats[0]), IntegerFormat)

    @property
    def scaled_input(self) -> bool:
        """Return whether the engine must be able to multiply its accumulator input by a power of two."""
        return self.accumulation == "bands"

    def word_scale(self, fmt: Format) -> int:
        """Return the scale exponent s for words of the format `fmt`."""
        return fmt.precision if self.scale_exponent is None else self.scale_exponent

    def with_options(self, **options) -> "RecoveryMethod":
        """Return the row with the given options.

        Raises
        ------
        ValueError
            If the method has no such option (the message lists its options), or a value is not allowed.
        """
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            near = [difflib.get_close_matches(name, list(self.options), 1) for name in unknown]
            hint = f" (did you mean {near[0][0]!r}?)" if near[0] else ""
            has = ", ".join(self.options) or "no options"
            raise ValueError(f"method {self.name!r} has no option {', '.join(map(repr, unknown))}{hint}; it has {has}")
        return dataclasses.replace(self, **_changes(self, options)) if options else self

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.title}",
            f"  {self.formula}",
            f"  passes {self.passes}; words {self.words} of {' or '.join(self.formats)}, rounding {self.rounding}"
            f"{f', the last {self.last_rounding}' if self.last_rounding else ''}; "
            f"accumulation {self.accumulation}; equilibrate {self.equilibrate}",
            f"  {'source' if self.certainty == 'not stated' else self.certainty}: {self.source}",
        ]
        if self.range_limits:
            lines.append(f"  range: {self.range_limits}")
        lines += [f"  option {name}: {text}" for name, text in self.options.items()]
        return "\n".join(lines)


def check_moduli(moduli) -> tuple[int, ...]:
    """Return the moduli; raise ValueError if they are not pairwise coprime integers from 2 to 256."""
    moduli = tuple(checked_integer(p, "a modulus") for p in moduli)
    if len(moduli) < 2 or any(not 2 <= p <= 256 for p in moduli):
        raise ValueError(f"moduli are {moduli}, expected at least two integers from 2 to 256")
    for i, p in enumerate(moduli):
        for q in moduli[:i]:
            if math.gcd(p, q) != 1:
                raise ValueError(f"moduli {q} and {p} share the factor {math.gcd(p, q)}, expected coprime moduli")
    return moduli


def _choice(name: str, value, known: Mapping):
    for key, meaning in known.items():
        if type(key) is type(value) and key == value:
            return meaning
    raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, known))}")


def _count(name: str, value, low: int, high: int) -> int:
    value = checked_integer(value, name)
    if not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, expected an integer from {low} to {high}")
    return value


class _Call(NamedTuple):
    """`_Call` holds the options of a call, and the fields that earlier options have changed."""

    row: RecoveryMethod
    options: Mapping
    changes: dict

    def now(self, name: str) -> Any:
        """Return the current value of a field."""
        return self.changes.get(name, getattr(self.row, name))


def _format(call: _Call, name: str, value) -> dict:
    value = operand_format(value).name if isinstance(value, str) and format_family(value) else value
    family = _choice(name, value, {f: _variants_of(f) for f in call.row.formats})
    return {"formats": (value, *(f for f in family if f != value))}


def _words(call: _Call, name: str, value) -> dict:
    if name == "slices" and value == "auto":
        return {"count": CountControl()}
    words = _count(name, value, 1, {"words": 8, "slices": call.row.most_words}.get(name, 16))
    return {"words": words, "products": products_below(words, words - 1)}


def _moduli(call: _Call, name: str, value) -> dict:
    if isinstance(value, str) and value == "auto":
        return {"count": CountControl()}
    row, known = call.row, call.row.known_moduli
    chosen = known[: _count(name, value, 2, len(known))] if isinstance(value, int | np.integer) else value
    return {"moduli": check_moduli(chosen) if row.kind == "residues" else tuple(chosen)}


def _counting(key: str, low: int, high: int) -> "_Change":
    """Return the change by an option of :class:`CountControl`, for its field and the range of its values."""

    def change(call: _Call, name: str, value) -> dict:
        row, control = call.row, call.changes.get("count")
        counted = "moduli" if row.modular else "slices"
        if name == "mantissa_bits" and counted in call.options:
            raise ValueError(
                f"method {row.name!r}: got mantissa_bits and {counted}, but mantissa_bits determines {counted}; leave "
                f"{counted} out"
            )
        if name != "mantissa_bits" and (control is None or (name == "bits" and control.fixed)):
            raise ValueError(f"method {row.name!r}: got {name} without {counted}=auto; give {counted}=auto, too")
        changed: dict[str, Any] = {key: _count(name, value, low, high)}
        return {"count": dataclasses.replace(control or CountControl(fixed=True), **changed)}

    return change


def _products(call: _Call, name: str, value) -> dict:
    words = call.now("words")
    pairs = {"upper": products_below(words, words - 1), "all": products_below(words)}
    return {"products": _choice(name, value, pairs)}


def _product_order(call: _Call, name: str, value) -> dict:
    first = _choice(name, value, {"smallest_first": False, "largest_first": True})
    return {"products": tuple(sorted(call.now("products"), key=lambda p: (sum(p) if first else -sum(p), p)))}


def _restart_every(call: _Call, name: str, value) -> dict:
    every = _count(name, value, 1, 1 << 30)
    if call.row.accumulation in ("k_step", "staged"):
        return {name: every}
    formula = f"D = C + the sum over blocks of {every} k of core(the products of their words)"
    return {"accumulation": "blocks", name: every, "formula": formula}


_Change = Callable[[_Call, str, Any], dict]

#: Changes by options, in the order in which they take effect: the fields for each value of an option, or a function that
#: returns the fields. An option that is not listed is the name of a field.
_OPTIONS: dict[str, Mapping[Any, dict] | _Change] = {
    "format": _format,
    "words": _words,
    "slices": _words,
    "passes": _words,
    "moduli": _moduli,
    "mantissa_bits": _counting("bits", 1, MOST_SLICE_BITS),
    "bits": _counting("bits", 1, 53),
    "bit_offset": _counting("offset", 0, 64),
    "most": _counting("most", 1, MOST_SLICE_BITS),
    "terms": {3: {"products": products_below(2, 1)}, 4: {"products": products_below(2)}},
    "products": _products,
    "product_order": _product_order,
    "bands": lambda call, name, n: {"products": products_below(call.row.words, _count(name, n, 3, 5) - 1)},
    "restart_every": _restart_every,
    "accumulate_outside": {"k_step": {"accumulation": "k_step"}, "c_only": {"accumulation": "outside"}},
    "dynamic_scaling": {True: {"equilibrate": "rows"}, False: {"equilibrate": "none"}},
}


def _changes(row: RecoveryMethod, options: Mapping) -> dict:
    """Return the fields of the row that the options of a call change."""
    call = _Call(row, options, {})
    known = [name for name in _OPTIONS if name in options]
    for name in (*known, *(name for name in options if name not in _OPTIONS)):
        change, value = _OPTIONS.get(name), options[name]
        if change is None:
            call.changes[name] = value
        else:
            call.changes.update(change(call, name, value) if callable(change) else _choice(name, value, change))
    if call.changes.get("accumulation") == "core" and row.scale_exponent is None:
        call.changes.setdefault("scale_exponent", 0)
    return call.changes


#: Formats that replace each other on hardware that has only one of them.
FP8_VARIANTS = (("e4m3fn", "e4m3fnuz"), ("e5m2", "e5m2fnuz"))


def _variants_of(fmt: str) -> tuple[str, ...]:
    return next((variants for variants in FP8_VARIANTS if fmt in variants), (fmt,))
