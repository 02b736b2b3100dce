"""Judges what `mpgemm evaluate` says of SGEMM-cube on two matrices, sentence by sentence, by rational numbers."""

import math
import re

import numpy as np
from judge_comparison import STANDINGS, THRESHOLDS, behind, chance, enough, spelled, stand
from judge_truth import Errors, exact_product, places_fit, sizes_of

from mpgemm.cli.evaluate import VERDICT_WORDS

STEPS = {"rounding after every product": "sequential", "rounding once a step": "exact"}
ORDERS = ("termwise", "elementwise")
SCALES = ("0", "6", "12", "auto")
_BITS = r"(every bit|no bits|24 bits or more|[\d.]+ bits)"
_LOST = 2.0**-10
BORDERLINE = "borderline, about as far behind FP32 as two FP32 products may differ"
UNDECIDED = "undecided, as there are too few results to tell"
SAID = {
    "lost": "results are lost", "less accurate": "less accurate than FP32", "undecided": UNDECIDED, "borderline": BORDERLINE,
    "as accurate": "as accurate as FP32",
}  # fmt: skip


def bits_fit(text, bits):
    """Whether spelled bits are these: from 24 on no number is told."""
    return (text == "24 bits or more" and 24 - 1e-6 <= bits < math.inf) or any(
        text == spelled(bits + shift) for shift in (0, 1e-6, -1e-6)
    )


class Measured:
    """One product: errors against the product of the matrices, and which of its results are lost."""

    def __init__(self, judge, computed):
        self.errors = judge.errors(computed)
        self.values = values = np.asarray(computed, np.float64)
        self.lost = np.zeros(values.shape, bool)
        self.shares = np.zeros(values.shape)
        for place, share in np.ndenumerate(np.array(self.errors.elements, object)):
            if share is None:
                true, got = judge.ieee[place], values[place]
                self.lost[place] = not (true == got or (np.isnan(true) and np.isnan(got)))
                self.shares[place] = math.inf
            else:
                self.lost[place] = share > _LOST
                self.shares[place] = share

    @property
    def count(self):
        return int(self.lost.sum())


class VerdictJudge:
    """Truth about one run of `evaluate`; `false` collects what is not.

    Parameters
    ----------
    a, b : ndarray
    cube : callable
        ``cube(a, b, order=..., scale_exponent=..., step_order=..., row_scaling=..., low_low=...)``: what is judged; with
        ``cube.short_chains(a, b, setting, step_order)``, the same in chains of 256 products, and ``cube.fp32(a, b)``, FP32.
    """

    def __init__(self, a, b, cube):
        self.a, self.b, self.cube = a.astype(np.float64), b.astype(np.float64), cube
        self.exact, self.sizes = exact_product(a, b), sizes_of(a, b)
        with np.errstate(all="ignore"):
            self.narrow = a.astype(np.float32), b.astype(np.float32)
            self.ieee = a.astype(np.float64) @ b.astype(np.float64)
            self.fp32 = Measured(self, cube.fp32(*self.narrow))
        self.results, self.k = a.shape[0] * b.shape[1], a.shape[1]
        self.missing = sum(x is None for row in self.exact for x in row)
        self.zero = all(x == 0 for row in self.exact for x in row)
        self.norm_noise, self.largest_noise = THRESHOLDS
        self.beyond = [int((np.isfinite(x) & (np.abs(x) >= 65520)).sum()) for x in (self.a, self.b)]
        self.cache, self.false = {}, []

    def errors(self, computed):
        return Errors(self.exact, self.sizes, computed)

    def measured(self, order, scale, scaled, step, low_low=False):
        key = order, scale, scaled, step, low_low
        if key not in self.cache:
            exponent = scale if scale == "auto" else int(scale)
            given = {
                "order": order,
                "scale_exponent": exponent,
                "row_scaling": scaled,
                "step_order": step,
                "low_low": low_low,
            }
            self.cache[key] = Measured(self, self.cube(*self.narrow, **given))
        return self.cache[key]

    def bits_behind(self, found):
        """(norm, largest result): bits behind FP32."""
        ours, theirs = found.errors, self.fp32.errors
        return behind(ours.frobenius, theirs.frobenius), behind(ours.componentwise, theirs.componentwise)

    def status(self, setting, step):
        """One step order by itself."""
        found = self.measured(*setting, step)
        if found.count:
            return "results are lost"
        exact = found.errors.componentwise == 0
        places = [stand(bits, which, self.results, exact) for which, bits in enumerate(self.bits_behind(found))]
        return SAID[STANDINGS[min(places)]]

    def statuses(self, setting):
        """Of both step orders: what differs between them by chance only is no other status."""
        found = [self.status(setting, step) for step in STEPS.values()]
        behinds = np.array([self.bits_behind(self.measured(*setting, step)) for step in STEPS.values()])
        with np.errstate(invalid="ignore"):
            spread = np.abs(behinds[0] - behinds[1])
        alike = (spread <= np.array([self.norm_noise, self.largest_noise]) + 1e-9).all()
        if "results are lost" not in found and alike and found[0] != found[1]:
            return [UNDECIDED if UNDECIDED in found else BORDERLINE] * 2
        return found

    def claim(self, true, text):
        if not true:
            self.false.append(text)

    # -- what is said --------------------------------------------------------------------------------------------------
    def judge(self, text):
        lines = [line.strip() for line in text.splitlines()]
        start = next(i for i, line in enumerate(lines) if line.startswith(("Verdict:", "No verdict")))
        end = lines.index("", start)
        said = [line for line in lines[start:end] if line != VERDICT_WORDS]  # they explain the others
        used = next(
            (re.match(r"Use (\w+) order, s_b = (\w+)(, rows and columns scaled)?", x) for x in said if x[:4] == "Use "),
            None,
        )
        plain = [(order, scale, False) for order in ORDERS for scale in SCALES]
        candidates = [(used[1], used[2], bool(used[3]))] if used else plain
        # sentences about "without scaling" are about the best setting that does not scale, which is not named
        best = None
        for setting in candidates:
            for unscaled in plain if setting[2] else [setting]:
                self.false = []
                self.setting, self.unscaled = setting, unscaled
                for line in said:
                    self.sentence(line)
                if best is None or len(self.false) < len(best):
                    best = self.false
        self.false = best
        self.range_table(lines[end:])
        return self.false

    def range_table(self, lines):
        rows = [re.split(r"\s{2,}", line) for line in lines if re.match(r"[AB]  ", line)]
        for name, x in zip("AB", self.narrow, strict=True):
            cells = next(row for row in rows if row[0] == name)
            finite = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
            low, high = (int(f(np.frexp(finite)[1])) - 1 for f in (np.min, np.max)) if finite.size else (None, None)
            self.claim(cells[1] == (f"{low} to {high}" if finite.size else "-"), f"exponents of {name}: {cells[1]}")
            tiny = int((finite <= 2.0**-25).sum())
            counts = [int((x == 0).sum()), int((finite >= 65520).sum()), tiny, int((finite < 2.0**-14).sum()) - tiny]
            self.claim(cells[-4:] == [str(count) for count in counts], f"counts of {name}: {cells[-4:]}, true {counts}")

    def sentence(self, line):
        for pattern, judge in SENTENCES:
            if found := re.fullmatch(pattern, line):
                true = judge(self, *found.groups())
                self.claim(true, line)
                return
        self.claim(False, f"not judged: {line}")

    def headline(self, status, scaled, always, not_enough=None, k=None):
        true = bool(scaled) == self.setting[2] and self.statuses(self.setting) == [status] * 2
        if k is None:
            return true
        enough = all(
            self.status(self.setting, step) == "as accurate as FP32"
            or self.errors(self.cube.short_chains(*self.narrow, self.setting, step)).bits
            >= self.fp32.errors.bits - self.norm_noise - 1e-3
            for step in STEPS.values()
        )
        return true and int(k) == self.k > 256 and enough != bool(not_enough)

    def too(self):
        return all(
            self.status(self.setting, step) == "results are lost"
            and 0 < self.measured(*self.setting, step).count <= self.fp32.count
            for step in STEPS.values()
        )

    def depends(self, first, second, scaled):
        return bool(scaled) == self.setting[2] and self.statuses(self.setting) == [first, second] and first != second

    def step(self, how, bits, fp32, found, more, way, within, element, margin, place, threshold, largest_one):
        ours = self.measured(*self.setting, STEPS[how])
        norm, largest = self.bits_behind(ours)
        if not (bits_fit(bits, ours.errors.bits) and bits_fit(fp32, self.fp32.errors.bits)):
            return False
        if (element is not None) != (largest > self.largest_noise + 1e-9 and norm <= self.norm_noise + 1e-9):
            return False
        if element is not None and abs(float(element) - largest) > 0.051:
            return False
        if not self.margin_is(margin, place, threshold, largest_one, (norm, largest), how):
            return False
        told = self.statuses(self.setting)[list(STEPS).index(how)] != UNDECIDED
        if (within is not None) != (told and abs(norm) <= self.norm_noise + 1e-9 and math.isfinite(norm)):
            return False
        if within is not None and within != f" (within {self.norm_noise:.2f})":
            return False
        if found == "nothing is left":
            return norm == math.inf
        if found == "FP32 leaves its range":
            return self.fp32.errors.frobenius == math.inf and self.fp32.count and ours.errors.frobenius < math.inf
        if "times" in found:
            factor, how_much = re.search(r"an error ([\d.]+) times (smaller|larger)", found).groups()
            return math.isclose(float(factor), 2 ** abs(norm), rel_tol=0.05) and (how_much == "smaller") == (norm < 0)
        return abs(abs(norm) - float(more)) <= 0.051 and (way == "more") == (norm < 0)

    def margin_is(self, margin, place, threshold, largest_one, behinds, how):
        """Whether a borderline difference, and only that, has its distance from the threshold beside it."""
        borderline = self.statuses(self.setting)[list(STEPS).index(how)] == BORDERLINE
        if margin is None or not borderline:
            return margin is None and not borderline
        noise = self.norm_noise, self.largest_noise
        which = int(np.argmax([b - n for b, n in zip(behinds, noise, strict=True)]))
        beyond = behinds[which] - noise[which]
        told = float(margin) * (1 if place == "beyond" else -1)
        return (
            abs(told - beyond) < 0.0051 and abs(float(threshold) - noise[which]) < 0.0051 and bool(largest_one) == which
        )

    def beside(self, listed):
        """Of NumPy nothing is said that another machine could check; FP32 on the cube is one chain."""
        found = dict(re.findall(r"(?:^|, )(.*?) " + _BITS, listed))
        chain = found.pop("FP32 on the cube (910B)", None)
        return not found and (chain is None or self.chain_of_fp32(chain))

    def lost_step(self, how, count, of):
        return self.missing and int(of) == self.results and self.measured(*self.setting, STEPS[how]).count == int(count)

    def exact_step(self, how, ours, fp32):
        found = self.measured(*self.setting, STEPS[how]).errors
        return [ours, fp32] == [
            x and "exact" or "not exact" for x in (found.frobenius == 0, self.fp32.errors.frobenius == 0)
        ]

    def not_finite(self, places, count, of):
        return places_fit(places, self.a, self.b) and self.missing == int(count) > 0 and int(of) == self.results

    def cancel(self):
        return self.fp32.errors.bits < 1 and not self.zero and not self.fp32.count

    def chance_is(self, results, bits, known):
        """Few results: what they leave open, and how many would decide for the differences that are undecided."""
        steps = [
            step for step, said in zip(STEPS.values(), self.statuses(self.setting), strict=True) if said == UNDECIDED
        ]
        behinds = [pair for step in steps
                   for pair in zip(self.bits_behind(self.measured(*self.setting, step)), THRESHOLDS, strict=True)]  # fmt: skip
        needed = enough(behinds)
        right = needed if needed and needed > self.results else None
        told = int(known.split()[1]) if known.startswith("about") else None
        return (
            steps and int(results) == self.results and abs(float(bits) - chance(self.results)) < 0.051 and told == right
        )

    def condition(self, norm, bits):
        """The condition in norm, of a product that FP32 has so few bits of."""
        total = sum(x * x for row in self.exact for x in row)
        true = math.sqrt(float(sum(s * s for row in self.sizes for s in row) / total)) if total else math.inf
        near = norm == "inf" if math.isinf(true) else math.isclose(float(norm), true, rel_tol=0.06)
        return near and true > 99 and bits_fit(bits, self.fp32.errors.bits)

    def lost_elements(self, kind, name, counts, i, j, value):
        if (kind == "Lost elements") != any(self.measured(*self.unscaled, step).count for step in STEPS.values()):
            return False
        x = self.a if name == "A" else self.b
        odd = ~(np.abs(x) < 65520)
        found = [int((odd & np.isfinite(x)).sum()), int((~np.isfinite(x)).sum())]
        told = [f"{n} {what}" for n, what in zip(found, ("beyond 65504", "infinite or NaN"), strict=True) if n]
        first = tuple(int(place) for place in np.argwhere(odd)[0])
        return counts == " and ".join(told) and first == (int(i), int(j)) and f"{float(x[first]):g}" == value

    def lost_results(self, without, count, of, i, j):
        found = max((self.measured(*self.unscaled, step) for step in STEPS.values()), key=lambda x: x.count)
        place = int(i), int(j)
        true = (
            bool(without) == self.setting[2]
            and found.count == int(count)
            and int(of) == self.results
            and found.lost[place]
        )
        return true and found.shares[place] >= found.shares[found.lost].max() * (1 - 1e-6)

    def fp32_loses(self, count, of):
        return self.fp32.count == int(count) and int(of) == self.results

    def scaled(self, step="exact"):
        return self.measured("termwise", "12", True, step)

    def gains_nothing(self):
        plain = self.measured(*self.unscaled, "exact")
        gain = behind(plain.errors.frobenius, self.scaled().errors.frobenius)
        return gain <= max(self.norm_noise, 0.5) + 1e-9

    def not_enough(self, bits):
        return (
            bits_fit(bits, self.scaled().errors.bits)
            and self.status(("termwise", "12", True), "exact") != "as accurate"
        )

    def not_enough_of_each(self, *told):
        setting = ("termwise", "12", True)
        found = [self.measured(*setting, step) for step in STEPS.values()]
        fits = [bits_fit(bits, each.errors.bits) for bits, each in zip(told[::2], found, strict=True)]
        return all(fits) and list(told[1::2]) == [status.partition(",")[0] for status in self.statuses(setting)]

    def conversion(self):
        return any(not np.isfinite(x).all() for x in (self.a, self.b)) and self.scaled().count

    def why(self, where, bits, cause, with_it, step=None):
        step = STEPS[where] if where else "exact"
        found = self.measured(*self.unscaled, step)
        if bits is not None and not bits_fit(bits, found.errors.bits):
            return False
        if with_it is not None and not bits_fit(with_it, self.measured(*self.unscaled, step, True).errors.bits):
            return False
        return self.unscaled[1] == "auto" or self.is_cause(cause, found)

    def is_cause(self, cause, found):
        """Whether no other part of the error is much larger, over all results, lost ones, or relative to |A||B|."""
        if cause == "overflow":  # the largest error is in a row or column of such an element
            row, column = np.unravel_index(int(np.argmax(found.shares)), found.shares.shape)
            return bool((np.abs(self.a[row]) >= 65520).any() or (np.abs(self.b[:, column]) >= 65520).any())
        operand, dropped, sums = (np.abs(part) for part in self.parts(int(self.unscaled[1]), found))
        mine = {"dropped term": dropped, "accumulation": sums}.get(cause, operand)
        sizes = np.array([[float(x) for x in row] for row in self.sizes])
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = [np.ones(sizes.shape), np.where(sizes > 0, 1 / sizes, 0.0)]
        weights += [weight * found.lost for weight in weights]
        norms = [[np.linalg.norm(weight * part) for part in (mine, operand / 3, dropped, sums)] for weight in weights]
        return any(own > 0.4 * max(others) for own, *others in norms)

    def parts(self, s, found):
        """(what the words lose of the operands, the low-low product, the rest) of a product's error, in binary64."""
        with np.errstate(all="ignore"):
            halves = []
            for x in (self.narrow[0].astype(np.float64), self.narrow[1].astype(np.float64)):
                x = np.where(np.isfinite(x), x, 0.0)
                high = np.clip(x, -65504, 65504).astype(np.float16).astype(np.float64)
                low = np.clip(np.ldexp(x - high, s), -65504, 65504).astype(np.float16).astype(np.float64)
                halves.append((x, high, np.ldexp(low, -s)))
            (a, a_high, a_low), (b, b_high, b_low) = halves
            operand = (a_high + a_low - a) @ b + (a_high + a_low) @ (b_high + b_low - b)
            dropped = a_low @ b_low
            error = found.values - a @ b
            return (np.nan_to_num(part, posinf=0, neginf=0) for part in (operand, dropped, error - operand + dropped))

    def short_chains(self, bits):
        """In chains of 256 products each; of which step order is not said."""
        chains = [self.errors(self.cube.short_chains(*self.narrow, self.unscaled, step)) for step in STEPS.values()]
        return self.k > 256 and any(bits_fit(bits, errors.bits) for errors in chains)

    def chain_of_fp32(self, bits):
        a, b = (x.astype(np.float64) for x in self.narrow)
        total = np.zeros((a.shape[0], b.shape[1]))
        with np.errstate(all="ignore"):
            for i in range(self.k):
                total = (total + a[:, i : i + 1] * b[i]).astype(np.float32).astype(np.float64)
        errors = self.errors(total)
        if bits == "24 bits or more" or not bits[0].isdigit():
            return bits_fit(bits, errors.bits)
        return abs(float(bits.split()[0]) - errors.bits) < 0.06

    def use(self, order, scale, scaled, same):
        tolerances = 0.1, 0.5
        best = [self.measured(*self.setting, step).errors for step in STEPS.values()]
        for other in same_settings(same, order):
            for mine, step in zip(best, STEPS.values(), strict=True):
                theirs = self.measured(*other, step).errors
                apart = (
                    abs(behind(mine.frobenius, theirs.frobenius)),
                    abs(behind(mine.componentwise, theirs.componentwise)),
                )
                if apart[0] > tolerances[0] + 1e-9 or apart[1] > tolerances[1] + 1e-9:
                    return False
        return True

    def use_fp32(self):
        return not self.fp32.count and not self.missing

    def scale_first(self):
        return self.fp32.count > 0 and not self.missing


def same_settings(text, order):
    """Settings that a sentence says give the same; of another order at least one."""
    if not text:
        return []
    scales = re.search(r"s_b = ([\w, ]+?)(?: and| give|$)", text)
    return [(order, scale, False) for scale in (scales[1].split(", ") if scales else [])]


_SETTING = r"(\w+) order, s_b = (\w+)(, rows and columns scaled)?"
_STATUS = rf"({'|'.join(SAID.values())})"
_SHORT = r"as accurate as FP32|borderline|undecided|less accurate than FP32|results are lost"
_HOW = f"({'|'.join(STEPS)})"
SENTENCES = (
    (rf"Verdict: {_STATUS}(, with rows and columns scaled)?(, however the cube rounds inside a step)"
     r"(?: in one chain of k = (?=\d+; (not )?)(\d+); (?:not )?as accurate in chains of 256)?\.", VerdictJudge.headline),
    (r"Verdict: results are lost, in FP32 too, because they or their products leave FP32's range\.", VerdictJudge.too),
    (rf"Verdict: {_STATUS} if rounding after every product, as PTO-ISA's ADR-0047 states and cube_gemm computes by default; "
     rf"{_STATUS} if rounding once a step, which the SGEMM-cube paper's figure 9 fits(, with rows and columns scaled)?\.",
     VerdictJudge.depends),
    (rf"{_HOW}: {_BITS}, FP32 {_BITS}: (nothing is left|FP32 leaves its range|"
     r"an error [\d.]+ times \w+|([\d.]+) bits (more|less))"
     r"( \(within [\d.]+\))?"
     r"(?:, but single results are ([\d.]+) bits worse \(componentwise\))?"
     r"(?:; ([\d.]+) bits (within|beyond) the threshold of ([\d.]+)( of the largest result)?)?", VerdictJudge.step),
    (r"Beside it: (.*)\.", VerdictJudge.beside),
    (rf"{_HOW}: (\d+) of (\d+) results are lost", VerdictJudge.lost_step),
    (rf"{_HOW}: (exact|not exact), FP32 (exact|not exact)", VerdictJudge.exact_step),
    (r"(.*), so (\d+) of (\d+) exact results are infinite or NaN\. Bits are not given\.", VerdictJudge.not_finite),
    (r"The exact product is 0, so there are no leading bits to compare, only errors over \|A\|\|B\| \(componentwise\)\.",
     lambda judge: judge.zero),
    (r"The results cancel, so FP32 itself has not one correct bit of the product\. Use FP64 where it matters\.",
     VerdictJudge.cancel),
    (r"With (\d+) results?, differences of up to ([\d.]+) bits may be chance; (about \d+|many more) results would "
     r"decide \(more rows of A or columns of B\)\.", VerdictJudge.chance_is),
    (r"Condition of the product, \|A\|\|B\| / \|AB\|: (\S+) in norm; by element .*\. FP32 itself reaches "
     rf"{_BITS} of it\.", VerdictJudge.condition),
    (r"(Lost elements|Elements) of ([AB])(?: beyond their first word)?: (.*), the first [AB]\[(\d+), (\d+)\] = (\S+)\.",
     VerdictJudge.lost_elements),
    (r"Lost results( without scaling)?: (\d+) of (\d+), the worst C\[(\d+), (\d+)\]\.", VerdictJudge.lost_results),
    (r"FP32 itself loses (\d+) of (\d+) results\.", VerdictJudge.fp32_loses),
    (r"Scaling rows and columns by powers of two \(sgemm_cube_scaled\) gains nothing\.", VerdictJudge.gains_nothing),
    (rf"Scaling rows and columns by powers of two \(sgemm_cube_scaled\) is not enough: {_BITS}\.", VerdictJudge.not_enough),
    (rf"Scaling rows and columns by powers of two \(sgemm_cube_scaled\) is not enough: {_BITS} with "
     rf"rounding after every product \(({_SHORT})\); {_BITS} with "
     rf"rounding once a step \(({_SHORT})\)\.", VerdictJudge.not_enough_of_each),
    (r"Scaling rows and columns does not help, because the 910A's conversion turns infinities and NaNs into numbers\.",
     VerdictJudge.conversion),
    (rf"(?:Why|Without scaling \(.*?\))(?: \({_HOW}\))?:(?: {_BITS};)? (overflow|range|split|dropped term|accumulation): "
     rf"(?:.*with it {_BITS}|[^;]*|two fp16 words.*)\.", VerdictJudge.why),
    (rf"Chains of 256 products \(bk \* N_fused = 256; mpgemm plan --pareto\) have {_BITS}\.", VerdictJudge.short_chains),
    (rf"FP32 with all of k in one chain has {_BITS}, too: FP32 here is in chains of 256\.",
     VerdictJudge.chain_of_fp32),
    (rf"Use {_SETTING}(?: \(method sgemm_cube_scaled\))?(?:; (.* gives? the same))?"
     r"(?:\. Scaled: each row of A and column of B by the power of two that brings its largest element to 2\^14 up to 2\^15)?"
     r"\.(?: (?:FP32|Chains of 256 products) where "
     r"those bits matter\.)?", VerdictJudge.use),
    (r"Use FP32 here\.", VerdictJudge.use_fp32),
    (r"Scale A or B first, or use FP64\.", VerdictJudge.scale_first),
    (r"Replace infinities and NaNs first; FP32 keeps them\.", lambda judge: judge.missing and not judge.fp32.count),
)  # fmt: skip
