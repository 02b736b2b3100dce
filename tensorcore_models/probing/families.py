"""The formulas behind the probe vectors, one function for each algorithm family.

q is the quantum of the alignment, 2^-F when the largest exponent is 0; R the fraction bits of the result; u = 2^(2-R)
the unit in the last place of a result in [4, 8).
"""

from fractions import Fraction

from ..accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
)
from .builder import ONE, Builder
from .dots import Product, power
from .outcomes import OUTCOMES, QUARTERS, TAILS

HALF = Fraction(1, 2)


# -- parts that several families share ---------------------------------------------------------------------------------------
def kept_bits(build: Builder, pair: tuple[int, ...], fraction_bits: int, tiny: int | None) -> None:
    """P4, cancellation: 1 - 1 + 2^-F is kept, 2^-(F+1) is lost. `tiny` is the position of the small product, None for c."""
    what = "c" if tiny is None else "product"
    for distance, kept in ((fraction_bits, True), (fraction_bits + 1, False)):
        small = power(-distance)
        products = {pair[0]: ONE, pair[1]: -ONE, **({} if tiny is None else {tiny: small})}
        build.add(
            f"1 - 1 + 2^-{distance} as {what}: {'kept' if kept else 'lost'}",
            products, small if tiny is None else Fraction(0), small if kept else Fraction(0), smallest=small,
        )  # fmt: skip


def alignment_rounding(
    build: Builder, pair: tuple[int, ...], rounding: str, fraction_bits: int, tiny: int | None
) -> None:
    """P5: 1 - 1 + t q for fractions t of the quantum q."""
    q = power(-fraction_bits)
    for t in TAILS:
        products = {pair[0]: ONE, pair[1]: -ONE, **({} if tiny is None else {tiny: t * q})}
        build.add(
            f"1 - 1 + {t} q at the alignment",
            products, t * q if tiny is None else Fraction(0), OUTCOMES[rounding][t] * q, smallest=q / 2,
        )  # fmt: skip


def output_rounding(build: Builder, places: tuple[int, ...], rounding: str, *, use_c: bool = True) -> None:
    """P8: 3 + (1 + t u) = 4 + t u; c carries 1 + t u where its format can, else a fourth product carries 1, and a fifth t u."""
    u = power(2 - build.fraction_bits)
    fits = build.row.formats[2].fraction_bits >= build.fraction_bits
    for t in TAILS:
        sign = -1 if t < 0 else 1
        expected = sign * 4 + OUTCOMES[rounding][t] * u
        products = {place: Fraction(sign) for place in places[:3]}
        name = f"{sign * 4} + {t} u in the output"
        if use_c and fits:
            build.add(name, products, sign + t * u, expected, smallest=u)
        elif use_c:
            build.add(name, {**products, places[3]: t * u}, Fraction(sign), expected, smallest=u)
        else:
            products[places[3]] = Fraction(sign)
            build.add(name, {**products, places[4]: t * u}, Fraction(0), expected, smallest=u)


def single_rounding(build: Builder, place: int, rounding: str, tails: tuple[Fraction, ...] = TAILS) -> None:
    """Rounding of one addition: c = 1 plus the product t u, u the unit in the last place of 1."""
    u = power(-build.fraction_bits)
    for t in tails:
        sign = -1 if t < 0 else 1
        expected = sign + OUTCOMES[rounding][t] * u
        build.add(f"{sign} + {t} u in the output", {place: t * u}, Fraction(sign), expected, smallest=u)


def terms_by_cancellation(
    build: Builder, terms: int, fraction_bits: int, partners: tuple[int, ...], groups: int = 1
) -> bool:
    """P3: X at 0, -X at j, y everywhere else; y survives in the steps after the one in which X and -X meet."""
    k = build.row.k
    gap = fraction_bits + k.bit_length() + 2
    done = True
    for j in (p for p in partners if p < k):
        survivors = k - (j // terms + 1) * terms
        products = {i: power(-gap) for i in range(k)} | {0: ONE, j: -ONE}
        done &= build.add(
            f"X at 0, -X at {j}: {survivors} of {k} small addends survive",
            products, power(-gap), survivors * power(-gap), smallest=power(-gap),
        )  # fmt: skip
    return done


def terms_by_rounding(build: Builder, terms: int, rounding: str) -> None:
    """P11: two products of half a unit of c, one in each half of the step: their sum counts in one operation, not in two."""
    half = power(-build.fraction_bits - 1)
    up = 2 * half
    build.add(
        f"c = 1 and half a unit at 0 and at {terms // 2}: one operation of {terms} sees a whole unit",
        {0: half, terms // 2: half}, ONE, ONE + up, smallest=up,
    )  # fmt: skip
    if terms < build.row.k and rounding in ("rz", "rne"):
        build.add(
            f"c = 1 and half a unit at 0 and at {terms}: two operations lose both",
            {0: half, terms: half},
            ONE,
            ONE,
            smallest=up,
        )


def products_as_they_are(build: Builder, places: tuple[int, ...], fraction_bits: int, *, use_c: bool) -> None:
    """P6: 1.5^2 - 1.5^2 + q keeps q, because 2.25 has exponent 0."""
    q, square = power(-fraction_bits), (Fraction(3, 2), Fraction(3, 2))
    products: dict[int, Product] = {places[0]: square, places[1]: (-square[0], square[1])}
    if not use_c:
        products[places[2]] = q
    build.add("1.5^2 - 1.5^2 + q: products are not normalised", products, q if use_c else Fraction(0), q, smallest=q)


# -- the families ------------------------------------------------------------------------------------------------------------
def fused_dot_add(build: Builder) -> None:
    """FDA and chains of it."""
    spec = build.spec_of(FusedDotAdd)
    bits = spec.fraction_bits
    kept_bits(build, (0, 1), bits, None)
    if build.product_span >= bits + 1:
        kept_bits(build, (0, 1), bits, 2)
    alignment_rounding(build, (0, 1), spec.alignment_rounding, bits, None)
    output_rounding(build, (0, 1, 2, 3), spec.output_rounding)
    products_as_they_are(build, (0, 1, 2), bits, use_c=True)
    one_alignment(build, bits, spec.output_rounding)
    terms = spec.terms
    if build.product_span >= bits + build.row.k.bit_length() + 3:
        terms_by_cancellation(build, terms, bits, (1, terms - 1, terms))
    if bits > build.fraction_bits:
        terms_by_rounding(build, terms, spec.output_rounding)
    if spec.exponent_floor is not None:
        alignment_floor(build, spec.exponent_floor, bits, spec.output_rounding)


def alignment_floor(build: Builder, floor: int, fraction_bits: int, rounding: str) -> None:
    """Products below the floor with c = 0: one unit of 2^(floor - F) is kept and decides the result, halves of it are lost."""
    unit, last = power(floor - fraction_bits), power(build.row.formats[3].quantum_exponent)
    if rounding not in ("rz", "rne") or unit >= last / 2 or build.row.k < 3:
        return
    first, below, above = (last - unit, Fraction(0), last) if rounding == "rz" else (last / 2, Fraction(0), last)
    name = f"alignment floor {floor}: "
    build.add(name + "one unit is kept", {0: first, 1: unit}, 0, above, smallest=last, scales=(0,))
    build.add(
        name + "halves of it are lost", {0: first, 1: unit / 2, 2: unit / 2}, 0, below, smallest=last, scales=(0,)
    )


def exact_dot_add(build: Builder) -> None:
    """CDNA1: an exact sum of a few products and c, rounded once."""
    spec = build.spec_of(ParametricDotAdd)
    single_rounding(build, 0, spec.output_rounding)
    half, terms, k = power(-build.fraction_bits - 1), spec.terms, build.row.k
    tiny = half * half
    build.add("1 - 1 and c tiny: nothing is cut off", {0: ONE, 1: -ONE}, tiny, tiny)
    build.add("a tie and c tiny: above the tie", {0: ONE, 1: half}, tiny, ONE + 2 * half, smallest=2 * half)
    above = ONE + 2 * half
    build.add("a tie and a product that is tiny: above the tie", {0: half, 1: half / 64}, ONE, above, smallest=2 * half)
    for distance in {1, terms // 2, terms - 1} - {0}:
        build.add(
            f"half a unit at 0 and {distance} meet c together", {0: half, distance: half}, ONE, above, smallest=2 * half
        )
    if terms < k:
        build.add(
            f"half a unit at 0 and {terms}: each is lost to c", {0: half, terms: half}, ONE, ONE, smallest=2 * half
        )


def one_alignment(build: Builder, fraction_bits: int, rounding: str) -> None:
    """Two neighbours that are cut off below the largest addend do not meet first, as they would in a tree of alignments."""
    small = power(-fraction_bits - 1)
    if build.product_span >= fraction_bits + 2:
        build.add(
            "1 - 1 and half a quantum at 2 and 3: both lost", {0: ONE, 1: -ONE, 2: small, 3: small}, 0, 0, 2 * small
        )
    elif rounding == "rz":
        build.add("half a quantum of c at 0 and 1: both lost", {0: ONE, 1: ONE}, -1 / small, -1 / small)


def interleaved_dot_add(build: Builder) -> None:
    """fp8 through fp16: two chained FDAs over interleaved pairs, c last (khattak-mikaitis, section IV-A5)."""
    spec = build.spec_of(InterleavedDotAdd)
    bits, run, groups = spec.dot.fraction_bits, spec.run, spec.groups
    first = [k for k in range(build.row.k) if k // run % groups == spec.group_order[0]]
    other = [k for k in range(build.row.k) if k // run % groups == spec.group_order[1]]
    kept_bits(build, (first[0], first[1]), bits, first[2])
    small = power(-bits - 1)
    products = {first[0]: ONE, first[1]: -ONE, first[2]: small, first[3]: small}
    build.add("1 - 1 and half a quantum twice in the first group: both lost", products, 0, 0, 2 * small)
    alignment_rounding(build, (first[0], first[1]), spec.dot.alignment_rounding, bits, first[2])
    output_rounding(build, tuple(first[:5]), spec.dot.output_rounding, use_c=False)
    products_as_they_are(build, tuple(first[:3]), bits, use_c=False)
    single_rounding_of_late_c(build, first[0], spec.final_rounding)
    small = power(-bits - build.row.k.bit_length() - 2)
    build.add(
        "1 and -1 in the first group, tiny in the second: kept",
        {first[0]: ONE, first[1]: -ONE, other[0]: small},
        0,
        small,
    )
    build.add(
        "1 in the first group, tiny and -1 in the second: lost",
        {first[0]: ONE, other[0]: -ONE, other[1]: small},
        0,
        0,
        small,
    )
    build.add(
        "1 and tiny in the first group, -1 in the second: lost",
        {first[0]: ONE, first[1]: small, other[0]: -ONE},
        0,
        0,
        small,
    )
    build.add(
        "1 and -1 in the second group, tiny in the first: lost",
        {other[0]: ONE, other[1]: -ONE, first[0]: small},
        0,
        0,
        small,
    )
    build.add("1 - 1 and c tiny: c is added last", {first[0]: ONE, first[1]: -ONE}, small, small)
    half = power(-build.fraction_bits - 1)
    build.add(
        "1 + half a unit in each group: lost twice", {first[0]: ONE, first[1]: half, other[0]: half}, 0, ONE, 2 * half
    )
    build.add(
        f"1, half a unit twice in the first group (at {first[1]}, {first[-1]}): a whole unit",
        {first[0]: ONE, first[1]: half, first[-1]: half}, 0, ONE + 2 * half,
    )  # fmt: skip


def single_rounding_of_late_c(build: Builder, place: int, rounding: str) -> None:
    """The dot product 1 plus c = t u, u the unit in the last place of 1."""
    u = power(-build.fraction_bits)
    for t in TAILS:
        sign = -1 if t < 0 else 1
        expected = sign + OUTCOMES[rounding][t] * u
        build.add(f"{sign} + c = {t} u in the last addition", {place: Fraction(sign)}, t * u, expected, smallest=u)


def group_dot_fused_sum(build: Builder) -> None:
    """GDFS: groups of 16 are summed exactly, the group sums aligned with c at F = 35."""
    spec = build.spec_of(GroupDotFusedSum)
    group, bits = spec.group, spec.fraction_bits
    kept_bits(build, (0, group), bits, None)
    alignment_rounding(build, (0, group), "rz", bits, None)
    output_rounding(build, (0, group, 2 * group, 1), spec.output_rounding)
    terms_by_rounding(build, spec.terms, spec.output_rounding)
    # c = -2^(F+1) has the quantum 2: two group sums of 1 are cut off one by one, one group sum of 2 is not.
    c = -power(bits + 1)
    nearer = c + power(bits - build.fraction_bits)
    build.add(f"1 in each of two groups of {group} is cut off below c", {0: ONE, group: ONE}, c, c)
    build.add("1 twice in one group is kept and truncates c", {0: ONE, group - 1: ONE}, c, nearer)


def fused_dot_round_down_add(build: Builder) -> None:
    """FDRDA and GFDRDA of CDNA3 (xie-mma-sim, sections IV-F and IV-H)."""
    spec = build.spec_of(FusedDotRoundDownAdd)
    step = spec.parity_groups
    places = tuple(step * i for i in range(4))
    kept_bits(build, places[:2], spec.fraction_bits, places[2])
    alignment_rounding(build, places[:2], "rz", spec.fraction_bits, places[2])
    kept_bits(build, places[:2], spec.c_fraction_bits, None)
    c_rounding(build, places[:2], spec)
    output_rounding(build, places, spec.output_rounding)
    products_as_they_are(build, places[:3], spec.fraction_bits, use_c=False)
    tie = power(-build.fraction_bits - 1)
    for distance, above in ((spec.dot_fraction_bits, True), (spec.dot_fraction_bits + 1, False)):
        build.add(
            f"a tie with c = 1 and 2^-{distance} in the dot product: {'above the tie' if above else 'lost'}",
            {places[0]: tie, places[1]: power(-distance)}, ONE, ONE + (2 * tie if above else 0), smallest=2 * tie,
        )  # fmt: skip
    build.add(
        "the dot product is rounded down below a tie",
        {places[0]: tie, places[1]: -power(-spec.dot_fraction_bits - 1)}, ONE, ONE, smallest=2 * tie,
    )  # fmt: skip
    # c = 1 and a negative dot product: the sum is below 1, so that it shows one bit more than at 1.
    quarter = tie / 2
    for distance, above in ((spec.dot_fraction_bits, True), (spec.dot_fraction_bits + 1, False)):
        build.add(
            f"a tie below c = 1 and 2^-{distance} in the dot product: {'above the tie' if above else 'lost'}",
            {places[0]: -3 * quarter, places[1]: power(-distance)}, ONE, ONE - (2 if above else 4) * quarter, smallest=quarter,
        )  # fmt: skip
    sum_bits(build, places, spec)
    terms_by_cancellation(build, spec.terms, spec.fraction_bits, (step, spec.terms - step, spec.terms))
    if spec.terms > step:
        terms_by_rounding(build, spec.terms, spec.output_rounding)
    if step == 2:  # the odd group is rounded down where it meets the even group
        q = power(-spec.fraction_bits)
        for t in QUARTERS:
            expected = OUTCOMES[spec.add_rounding][t] * q
            build.add(f"1 - 1 at even k, {t} q at odd k", {0: ONE, 2: -ONE, 1: t * q}, 0, expected, smallest=q / 2)
        even = power(-build.fraction_bits - 1)
        build.add(
            "halves of a unit at even and odd k meet before c",
            {0: even, 1: even},
            ONE,
            ONE + 2 * even,
            smallest=2 * even,
        )


def sum_bits(build: Builder, places: tuple[int, ...], spec: FusedDotRoundDownAdd) -> None:
    """A sum just above the tie beyond 2: what lies below the bits kept of it is gone before the last rounding."""
    kept, last = spec.sum_fraction_bits, power(-build.fraction_bits)
    for distance in (spec.dot_fraction_bits, spec.dot_fraction_bits - 1):
        above = kept is None or distance <= kept - 1
        build.add(
            f"2, a tie and 2^-{distance}: {'above the tie' if above else 'lost'}",
            {places[0]: 2 * last, places[1]: power(-distance)}, 2 - last, 2 + (2 * last if above else 0), smallest=last,
        )  # fmt: skip


def c_rounding(build: Builder, pair: tuple[int, ...], spec: FusedDotRoundDownAdd) -> None:
    """1 - 1 + c with c a fraction of its quantum: rounded down, by GFDRDA to zero if it is too far below."""
    q = power(-spec.c_fraction_bits)
    for t in (*QUARTERS, HALF, -HALF):
        c = t * q
        exponent = -spec.c_fraction_bits - (1 if abs(t) >= HALF else 2)
        far = spec.c_cutoff is not None and exponent < -spec.c_cutoff
        expected = OUTCOMES["rz" if far else spec.add_rounding][t] * q
        build.add(f"1 - 1 + c = {t} q at c's alignment", {pair[0]: ONE, pair[1]: -ONE}, c, expected, smallest=q / 2)


def sequential_fma(build: Builder) -> None:
    """SFMA: one fused multiply-add after the other (fasi, section 3.3; khattak-mikaitis, section IV-A2)."""
    spec = build.spec_of(SequentialFMA)
    single_rounding(build, 0, spec.rounding)
    half = power(-build.fraction_bits - 1)
    order = [1, 0] if spec.pair_order == "odd_first" else list(range(build.row.k))
    if build.row.k > 1:
        first, second = order[0], order[1]
        build.add(
            f"c = 1, then half a unit twice (k = {first}, {second})", {first: half, second: half}, ONE, ONE, 2 * half
        )
        build.add(f"half a unit in c and at k = {first}, then 1", {first: half, second: ONE}, half, ONE + 2 * half)
        build.add(
            f"half a unit in c, 1 at k = {first}, then half a unit", {first: ONE, second: half}, half, ONE, 2 * half
        )
        build.add(
            f"1 at k = {first}, -1 at k = {second}: c is lost", {first: ONE, second: -ONE}, half * half, 0, half * half
        )
    p = build.row.formats[0].precision
    if 2 * p - 1 > build.fraction_bits + 1:
        root = 1 + power(-(build.fraction_bits + 1) // 2)
        square = root * root
        low = square - 1 - 2 * (root - 1)
        build.add("the product is not rounded", {0: (root, root)}, low - square, low)


def group_pairwise_sum(build: Builder) -> None:
    """GPS: FP32 products, binary tree over a group, group sums added to c one after the other."""
    spec = build.spec_of(GroupPairwiseSum)
    single_rounding(build, 0, "rne")
    half, group, k = power(-build.fraction_bits - 1), spec.group, build.row.k
    for distance in (1, group // 2, group - 1):
        if 0 < distance < group:
            build.add(
                f"half a unit at 0 and {distance} meet before c",
                {0: half, distance: half},
                ONE,
                ONE + 2 * half,
                smallest=2 * half,
            )
    if group < k:
        build.add(
            f"half a unit at 0 and {group}: each is lost to c", {0: half, group: half}, ONE, ONE, smallest=2 * half
        )
    if group == 4:
        build.add(
            "1 + half a unit, then a half again: a tree, not one fused sum",
            {0: ONE, 1: half, 2: half},
            0,
            ONE,
            2 * half,
        )
        build.add("halves of a unit in the second pair of the tree", {0: ONE, 2: half, 3: half}, 0, ONE + 2 * half)
    fmt = build.row.formats[0]
    subnormal = power(fmt.emin - 1)
    seen = subnormal if spec.flush_input == "none" else Fraction(0)
    build.add("a subnormal operand", {0: (subnormal, ONE)}, 0, seen, scales=(0,))
    if fmt.emin == -126:
        below = power(-127)
        expected = Fraction(0) if spec.flush_results else below
        build.add("a difference below 2^-126", {0: 3 * below, 1: -2 * below}, 0, expected, scales=(0,))


def laned_fma(build: Builder) -> None:
    """AMX: two interleaved chains from zero, their sum, then c."""
    single_rounding(build, 0, "rne")
    half = power(-build.fraction_bits - 1)
    build.add("half a unit twice in one lane meets before c", {0: half, 2: half}, ONE, ONE + 2 * half)
    last = build.row.k - 2
    build.add(f"half a unit at 0 and {last}: one chain for all k", {0: half, last: half}, ONE, ONE + 2 * half)
    build.add("half a unit in both lanes meets before c", {0: half, 1: half}, ONE, ONE + 2 * half)
    build.add("1 and two halves of a unit in one lane: each is lost", {0: ONE, 2: half, 6: half}, 0, ONE, 2 * half)
    build.add(
        "1 in one lane, two halves of a unit in the other: a whole unit", {0: ONE, 1: half, 3: half}, 0, ONE + 2 * half
    )
    build.add("half a unit twice, then 1 in the same lane", {0: half, 2: half, 4: ONE}, 0, ONE + 2 * half)


def pair_round_odd(build: Builder) -> None:
    """BFMMLA: every operation rounds to odd; pairs first."""
    single_rounding(build, 0, "ro")
    half = power(-build.fraction_bits - 1)
    build.add("half a unit twice in a pair meets before c", {0: half, 1: half}, ONE, ONE + 2 * half)
    # Each pair sticks to the odd neighbour: 1 + u/2 becomes 1 + u, and 1 + u + u/2 stays there.
    build.add("half a unit in each of two pairs", {0: half, 2: half}, ONE, ONE + 2 * half)
    build.add("1 - 1 in two pairs and c tiny: c is lost, its stickiness not", {0: ONE, 2: -ONE}, half * half, 2 * half)


FAMILIES = {
    FusedDotAdd: fused_dot_add,
    InterleavedDotAdd: interleaved_dot_add,
    GroupDotFusedSum: group_dot_fused_sum,
    FusedDotRoundDownAdd: fused_dot_round_down_add,
    GroupFusedDotRoundDownAdd: fused_dot_round_down_add,
    SequentialFMA: sequential_fma,
    GroupPairwiseSum: group_pairwise_sum,
    LanedFMA: laned_fma,
    PairRoundOddSum: pair_round_odd,
    ParametricDotAdd: exact_dot_add,
}
