"""Judges what `mpgemm compare` prints, every row and every sentence, by rational numbers and data sheets typed again here."""

import math
import re

import numpy as np
from judge_truth import Errors, exact_product, places_fit, sizes_of

#: Dense peaks by operand format, read from the data sheets a second time: NVIDIA V100, A100, H100, H200, Blackwell (HGX B200),
#: Blackwell Ultra (HGX B300), L40S; AMD MI200 series, MI300X. Engines without an entry have no rate.
PEAKS = {
    "v100": {"fp16": 125},
    "a100": {"fp16": 312, "bf16": 312, "tf32": 156, "int8": 624, "fp64": 19.5},
    "h100": {"fp16": 989.4, "bf16": 989.4, "tf32": 494.7, "int8": 1978.9, "fp64": 66.9},
    "h200": {"fp16": 989.4, "bf16": 989.4, "tf32": 494.7, "int8": 1978.9, "fp64": 66.9},
    "b200": {"fp16": 2250, "bf16": 2250, "tf32": 1100, "int8": 4500, "fp64": 37},
    "b300": {"fp16": 2250, "bf16": 2250, "tf32": 1125, "int8": 150, "fp64": 1.25},
    "l40s": {"fp16": 362.05, "bf16": 362.05, "tf32": 183, "int8": 733},
    "mi250": {"fp16": 362.1, "bf16": 362.1, "int8": 362.1, "fp64": 90.5},
    "mi300x": {"fp16": 1307.4, "bf16": 1307.4, "tf32": 653.7, "int8": 2614.9, "fp64": 163.4},
}
ENGINES = (*PEAKS, "rtx4060", "ampere", "ieee")
#: method: (products, operand format).
METHODS = {
    "fp16": (1, "fp16"), "bf16": (1, "bf16"), "tf32": (1, "tf32"), "markidis": (4, "fp16"), "egemm": (4, "fp16"),
    "ootomo": (3, "fp16"), "ootomo_inside": (3, "fp16"), "sgemm_cube": (3, "fp16"), "multiword": (3, "fp16"),
    "bf16x6": (6, "bf16"), "bf16x9:restart_every=16": (9, "bf16"), "3xTF32": (3, "tf32"), "ozaki_int8": (10, "int8"),
    "ozaki_int8:slices=8": (36, "int8"), "ozaki2_int8:moduli=16": (16, "int8"), "fp64": (1, "fp64"),
}  # fmt: skip
_BITS = r"(every bit|no bits|[\d.]+ bits)"
_METHOD = r"([\w:=,]+?)(?: \(a reconstruction\))?"


def spelled(bits):
    return "every bit" if bits == math.inf else f"{bits:.1f} bits" if bits >= 0.05 else "no bits"


def same_bits(text, bits):
    """Whether spelled bits are these, or those of the last digit's other rounding."""
    return any(text == spelled(bits + shift) for shift in (0, 1e-6, -1e-6))


#: Bits that two FP32 products may differ by, of the norm and of the largest result (docs/answers.md), and what is near to that.
THRESHOLDS, MARGINS = (0.75, 1.5), (0.25, 0.5)
#: From bad to good.
STANDINGS = ("lost", "less accurate", "undecided", "borderline", "as accurate")


def chance(results):
    """Bits of the quotient of two equal errors that so many results leave open."""
    return 1.96 / math.log(2) / math.sqrt(results - 1) if results > 1 else math.log2(25.45)


def stand(behind, which, results, exact):
    """The place in STANDINGS of a method so many bits behind; which: 0 the norm, 1 the largest result."""
    open_by, within = chance(results), THRESHOLDS[which] - behind
    if exact and results > 1:
        return 4
    if abs(within) < max(MARGINS[which], open_by) or (results == 1 and within > 0):
        return 2 if open_by > MARGINS[which] else 3
    return 4 if within > 0 else 1


def enough(behinds):
    """Results that would decide for differences of so many bits behind; None where that are more than a million."""
    found = [
        None
        if abs(t - behind) < 1.96 / math.log(2) / 1000
        else max(16, 1 + math.ceil((1.96 / math.log(2) / (t - behind)) ** 2))
        for behind, t in behinds
    ]
    return None if None in found else max(found)


def behind(error, other):
    """Bits that an error is larger than another, both at least FP32's unit roundoff."""
    error, other = max(error, 2.0**-24), max(other, 2.0**-24)
    if math.isinf(error) or math.isinf(other):
        return 0.0 if error == other else math.inf if math.isinf(error) else -math.inf
    return math.log2(error / other)


class ComparisonJudge:
    """Truth about one run; `false` collects what is not."""

    def __init__(self, a, b, methods, engines, bits, product, fp32):
        self.a, self.b, self.bits = a, b, bits
        self.exact, self.sizes = exact_product(a, b), sizes_of(a, b)
        self.results = a.shape[0] * b.shape[1]
        self.missing = sum(x is None for row in self.exact for x in row)
        self.zero = all(x == 0 for row in self.exact for x in row if x is not None)
        with np.errstate(all="ignore"):
            narrow = a.astype(np.float32), b.astype(np.float32)
            self.fp32, self.fp32_numpy = self.errors(fp32(*narrow)), self.errors(narrow[0] @ narrow[1])
        self.measured = {}
        for method in methods:
            for engine in engines:
                try:
                    computed = product(a, b, method, engine)
                except ValueError:
                    continue
                self.measured[method, engine] = self.errors(computed)
        self.engines = list(dict.fromkeys(engines))
        self.false = []

    def errors(self, computed):
        return Errors(self.exact, self.sizes, computed)

    def claim(self, true, text):
        if not true:
            self.false.append(text)

    # -- what is true --------------------------------------------------------------------------------------------------
    def cost(self, method, engine):
        products, fmt = METHODS[method]
        peak = PEAKS.get(engine, {}).get(fmt)
        return None if peak is None else 1000 * products / peak

    def fp32_is_a_measure(self):
        return not self.zero_told() and self.fp32.normwise <= 2.0**-10 and self.fp32.bits >= 1

    def zero_told(self):
        """A zero product of which everything is exact looks like any exact product."""
        return self.zero and any(e.frobenius == math.inf for e in (self.fp32, *self.measured.values()))

    def reaches(self, wanted, method, engine):
        return self.side(wanted, method, engine)[0] == 4

    def side(self, wanted, method, engine):
        """(place in STANDINGS, bits within the threshold that decides, that threshold)."""
        errors = self.measured[method, engine]
        if wanted != "FP32":
            bits = float(wanted.split()[0])
            return 4 if errors.bits >= bits else 1, errors.bits - bits, bits
        found = []
        for which, metric in enumerate(("frobenius", "componentwise")):
            bits = behind(getattr(errors, metric), getattr(self.fp32, metric))
            standing = stand(bits, which, self.results, errors.componentwise == 0)
            found.append((standing, THRESHOLDS[which] - bits, THRESHOLDS[which]))
        if errors.componentwise > 2.0**-10 >= self.fp32.componentwise:
            return 0, -math.inf, 0
        return min(found)

    def undecided(self, told, wanted, engine):
        """Whether exactly the borderline methods are named, each with its distance from the threshold."""
        names = re.findall(
            r" Borderline: ([\w:=,]+?), ([\d.]+) bits (within|beyond) the threshold of ([\d.]+)(?: of the largest result)?\.",
            told or "",
        )
        few = re.findall(
            r" Undecided: ([\w:=,]+?), because up to ([\d.]+) bits of (\d+) results? may be chance; "
            r"(about (\d+)|many more) results would decide\.", told or "",
        )  # fmt: skip
        sides = {name: self.side(wanted, name, engine) for name in self.of(engine)}
        if {name for name, *_ in names} != {name for name, (side, *_) in sides.items() if side == 3}:
            return False
        if {name for name, *_ in few} != {name for name, (side, *_) in sides.items() if side == 2}:
            return False
        for name, bits, results, _, number in few:
            _, within, of = sides[name]
            needed = enough([(of - within, of)])
            if abs(float(bits) - chance(self.results)) > 0.051 or int(results) != self.results:
                return False
            if (int(number) if number else None) != (needed if needed and needed > self.results else None):
                return False
        for name, bits, where, threshold in names:
            _, within, of = sides[name]
            if (
                abs(float(bits) * (1 if where == "within" else -1) - within) > 0.0051
                or abs(float(threshold) - of) > 0.0051
            ):
                return False
        return True

    def of(self, engine):
        return [method for method, other in self.measured if other == engine]

    # -- what is said --------------------------------------------------------------------------------------------------
    def judge(self, text):
        verdict, table, *notes = text.strip().split("\n\n")
        self.table(table.splitlines()[1:])
        said = set()
        for line in [*verdict.splitlines()[1:], *"\n".join(notes).splitlines()]:
            self.sentence(line.strip(), said)
        if not self.missing:
            wanted = [*(["FP32"] if self.fp32_is_a_measure() else []), *([f"{self.bits:g} bits"] if self.bits else [])]
            expected = {(engine, what) for engine in self.engines if self.of(engine) for what in wanted}
            self.claim(said == expected, f"recommendations for {sorted(said ^ expected)} are missing or too many")
        return self.false

    def table(self, lines):
        headings, rows = lines[0].split(), [re.split(r"\s{2,}", line.strip()) for line in lines[2:]]
        shown, last = set(), -1.0
        for row in rows:
            cells = dict(zip(headings, row, strict=True))
            method = cells["method"].removesuffix(" [reconstruction]")
            for engine in cells["requested"].split(", "):
                self.claim((method, engine) not in shown, f"{method} on {engine} has two rows")
                shown.add((method, engine))
                self.row(cells, method, engine)
            if not self.missing:
                error = self.measured[method, cells["requested"].split(", ")[0]].frobenius
                self.claim(error >= last * (1 - 1e-9), f"{method} stands behind a larger error")
                last = error
        self.claim(shown == set(self.measured), f"rows of {sorted(shown ^ set(self.measured))} are missing or too many")

    def row(self, cells, method, engine):
        cost, products = self.cost(method, engine), METHODS[method][0]
        self.claim(int(cells["passes"]) == products, f"{method}: {cells['passes']} passes")
        near = (
            cells["cost"] == "-"
            if cost is None
            else math.isclose(float(cells["cost"]), cost, rel_tol=6e-3, abs_tol=6e-3)
        )
        self.claim(near, f"{method} on {engine}: cost {cells['cost']}, true {cost}")
        bits, told = self.measured[method, engine].bits, cells["effective_bits"]
        near = told == "-" if self.missing else math.isclose(float(told), bits, rel_tol=6e-3, abs_tol=6e-3)
        self.claim(near, f"{method} on {engine}: {told} bits, true {bits}")

    def sentence(self, line, said):
        for pattern, judge in SENTENCES:
            found = re.fullmatch(pattern, line)
            if found:
                true = judge(self, said, *found.groups())
                self.claim(true is None or true, line)
                return
        self.claim(False, f"not judged: {line}")

    def not_finite(self, said, places, count, of):
        return (
            places_fit(places, self.a, self.b)
            and self.missing == int(count)
            and self.results == int(of)
            and self.missing
        )

    def fp32_bits(self, said, bits, here):
        return same_bits(bits, self.fp32.bits) and same_bits(here, self.fp32_numpy.bits) and not self.missing

    def condition(self, said, norm, median, largest, zeros):
        """|A||B| over |AB|, from fractions."""
        pairs = [(s, abs(x)) for sizes, row in zip(self.sizes, self.exact, strict=True)
                 for s, x in zip(sizes, row, strict=True) if x is not None and s]  # fmt: skip
        each = sorted(math.inf if not x else max(1.0, float(s / x)) for s, x in pairs) or [1.0]
        total = sum(x * x for _, x in pairs)
        root = math.sqrt(float(sum(s * s for s, _ in pairs) / total)) if total else math.inf if pairs else 1.0
        middle = (each[(len(each) - 1) // 2] + each[len(each) // 2]) / 2
        true = max(1.0, root), middle, each[-1]
        if int(zeros or 0) != sum(not x for _, x in pairs):
            return False
        return all(
            (told == "inf" and math.isinf(x)) or math.isclose(float(told), x, rel_tol=0.06)
            for told, x in zip((norm, median, largest), true, strict=True)
        )

    def not_certified(self, said, listed):
        """Every product with an infinite error is listed, with some of its results."""
        found = {}
        for n, of, method, engine in re.findall(r"(\d+) of (\d+) results of (\S+) on (\S+?)(?:, |$)", listed):
            if not (0 < int(n) <= int(of) == self.results):
                return False
            found[method, engine] = int(n)
        infinite = {key for key, product in self.measured.items() if math.isinf(product.frobenius)}
        return infinite <= set(found) <= set(self.measured)

    def product_is_zero(self, said):
        return self.zero and not self.missing

    def fp32_loses(self, said):
        return self.fp32.normwise > 2.0**-10 and not self.zero

    def cancels(self, said, of_sizes, of_product):
        near = math.isclose(float(of_sizes), self.fp32.normwise, rel_tol=0.06)
        return near and math.isclose(float(of_product), self.fp32.frobenius, rel_tol=0.06) and self.fp32.bits < 1

    def cheapest(self, said, engines, wanted, method, passes, rate, cost, bits, worst, grade, others, undecided):
        unknown = set(others.split(", ")) if others else set()
        for engine in engines.split(", "):
            said.add((engine, wanted))
            if not self.undecided(undecided, wanted, engine):
                return False
            reached = [name for name in self.of(engine) if self.reaches(wanted, name, engine)]
            costs = {name: self.cost(name, engine) for name in reached}
            known = {name: value for name, value in costs.items() if value is not None}
            if known.get(method) != min(known.values(), default=None) or unknown != set(costs) - set(known):
                return False
            products, fmt = METHODS[method]
            if int(passes) != products or float(rate) != PEAKS[engine][fmt]:
                return False
            if not math.isclose(float(cost), known[method], rel_tol=6e-3):
                return False
            if not same_bits(bits, self.measured[method, engine].bits):
                return False
            if not self.worst_element(self.measured[method, engine].componentwise, wanted, worst, grade):
                return False
        return True

    def worst_element(self, error, wanted, told, grade):
        """Told where the worst element has fewer bits than were asked for; grade A is (k + 1) u over |A||B|, u = 2^-24."""
        kept = math.inf if error == 0 else -math.log2(error)
        fewer = wanted != "FP32" and kept < float(wanted.split()[0])
        if told is None:
            return not fewer
        return fewer and same_bits(told, kept) and (grade == "A") == (error <= (self.a.shape[1] + 1) * 2.0**-24)

    def no_cost(self, said, engines, wanted, listed, undecided):
        names = re.findall(r"([\w:=,]+?) \((\d+) pass(?:es)?, " + _BITS + r"\)", listed)
        for engine in engines.split(", "):
            said.add((engine, wanted))
            if not self.undecided(undecided, wanted, engine):
                return False
            reached = {name for name in self.of(engine) if self.reaches(wanted, name, engine)}
            if {name for name, *_ in names} != reached or any(self.cost(name, engine) for name in reached):
                return False
            if not all(same_bits(bits, self.measured[name, engine].bits) for name, _, bits in names):
                return False
        return True

    def none_reaches(self, said, engines, surely, wanted, best, bits, undecided):
        for engine in engines.split(", "):
            said.add((engine, wanted))
            if not self.undecided(undecided, wanted, engine) or bool(surely) != bool(undecided):
                return False
            if any(self.reaches(wanted, name, engine) for name in self.of(engine)):
                return False
            errors = {name: self.measured[name, engine] for name in self.of(engine)}
            if errors[best].frobenius > min(e.frobenius for e in errors.values()) * (1 + 1e-9):
                return False
            if not same_bits(bits, errors[best].bits):
                return False
        return True

    def rate_of(self, said, engines, source):
        known = not source.startswith("no data sheet")
        return all(any(bool(self.cost(method, e)) == known for method in self.of(e)) for e in engines.split(", "))

    def left_out(self, said, method, engine):
        return (method, engine) not in self.measured


_UNDECIDED = r"((?: (?:Borderline|Undecided): .*?\.(?=$| B| U))*)"
_WANTED = r"(FP32|[\d.]+ bits)"
SENTENCES = (
    (r"([AB] holds .*), so (\d+) of (\d+) results are infinite or NaN in every method\. No bits are given "
     r"and no method is recommended; replace infinities and NaN first\.", ComparisonJudge.not_finite),
    (rf"FP32, chains of 256: {_BITS}; NumPy's here {_BITS}\.", ComparisonJudge.fp32_bits),
    (r"Condition of the product, \|A\|\|B\| / \|AB\|: (\S+) in norm; by element (\S+) in the median, (\S+) at most"
     r"(?: \((\d+) of \d+ results cancel to 0\))?\.", ComparisonJudge.condition),
    (r"The exact product is 0, so there are no leading bits to compare, only errors over \|A\|\|B\| \(componentwise\)\.",
     ComparisonJudge.product_is_zero),
    (r"FP32 itself loses this product, which leaves its range; scale A or B first\.", ComparisonJudge.fp32_loses),
    (r"The results cancel: FP32's error is (\S+) of \|A\|\|B\| and yet (\S+) of the product \(norms\), so FP32's error is "
     r"no goal here\.", ComparisonJudge.cancels),
    (rf"(.*): the cheapest that reaches {_WANTED} is {_METHOD}: (\d+) pass(?:es)? at ([\d.]+) TFLOP/s, ([\d.]+) ms for 10\^12 "
     rf"operations, {_BITS}(?: in the norm, {_BITS} in the worst element over \|A\|\|B\| \(grade ([ABC-])\))?\."
     rf"(?: Methods that also reach it, at an unknown cost: ([^.]*)\.)?{_UNDECIDED}", ComparisonJudge.cheapest),
    (rf"(.*): {_WANTED} is reached by (.*); the cheapest is not known, because no rate is known\.{_UNDECIDED}",
     ComparisonJudge.no_cost),
    (rf"(.*): none( surely)? reaches {_WANTED}; the best is {_METHOD} \({_BITS}\)\.{_UNDECIDED}",
     ComparisonJudge.none_reaches),
    (r"Rate of (.*): (.*)\.", ComparisonJudge.rate_of),
    (r".*?: (.*) have no certified bound, because no bound is derived, operands are not finite, or sums may overflow\.",
     ComparisonJudge.not_certified),
    (r"Left out: (\S+) on (\S+): .*", ComparisonJudge.left_out),
    (r"rate: dense peak of the device.*|3xTF32 is cutlass_3xtf32 \(.*\): .*\.|This package chose the order of bf16x3 .*|"
     r".*: FP32 cannot hold .*|"
     r"tf32 rounds its operands to nearest even unless told otherwise .*",
     lambda judge, said: None),
)  # fmt: skip
