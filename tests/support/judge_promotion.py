"""Judges what `mpgemm advise-promotion` says about two matrices, by rational numbers."""

import math
import re

import numpy as np
from judge_truth import Errors, exact_product, sizes_of


class PromotionJudge:
    """Truth about one run; `false` collects what is not.

    Parameters
    ----------
    a, b : ndarray
        As given; `exponents` are the powers of two that the command multiplied them by.
    product : callable
        ``product(a, b, every)``: the engine's product, and its operands as the engine holds them.
    """

    def __init__(self, a, b, exponents, product):
        self.a, self.b = (np.ldexp(x.astype(np.float64), e) for x, e in zip((a, b), exponents, strict=True))
        self.product = product
        self.given = exact_product(self.a, self.b), sizes_of(self.a, self.b)
        self.false = []

    def errors(self, every):
        """(of the sums, whole)."""
        computed, held = self.product(self.a, self.b, every)
        return Errors(exact_product(*held), sizes_of(*held), computed).frobenius, Errors(
            *self.given, computed
        ).frobenius

    def operands(self):
        """Error of rounding the operands, with everything else exact."""
        _, held = self.product(self.a, self.b, None)
        if not all(np.isfinite(x).all() for x in held):
            return math.inf
        return Errors(*self.given, np.array([[float(x) for x in row] for row in exact_product(*held)])).frobenius

    def claim(self, true, text):
        if not true:
            self.false.append(text)

    def judge(self, text, wanted):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        rows = [line.split() for line in lines if re.match(r"(never|\d+) +[\d.]+%", line)]
        self.truth = {row[0]: self.errors(None if row[0] == "never" else int(row[0])) for row in rows}
        for every, _, error, _, bound, whole in rows:
            sums, all_of_it = self.truth[every]
            self.claim(close(error, sums), f"{every}: error {error}, true {sums}")
            self.claim(close(whole, all_of_it), f"{every}: whole error {whole}, true {all_of_it}")
            self.claim(float(bound) * 1.006 >= sums, f"{every}: bound {bound} below {sums}")
        self.bounds = {row[0]: float(row[4]) for row in rows}
        self.wanted = wanted
        start = max(i for i, line in enumerate(lines) if re.match(r"(never|\d+) +[\d.]+%", line)) + 1
        for line in lines[start:]:
            for sentence in re.split(r"\. (?=[A-Z])", line.rstrip(".")):
                self.sentence(sentence)
        return self.false

    def sentence(self, text):
        for pattern, judge in SENTENCES:
            if found := re.fullmatch(pattern, text):
                self.claim(judge(self, *found.groups()), text)
                return
        self.claim(False, f"not judged: {text}")

    def enough(self, target):
        """The longest interval within an error, None for none; intervals that differ by less than the digits shown are both."""
        good = [every for every, (sums, _) in self.truth.items() if sums <= target * 1.006]
        return good[-1] if good else None

    def does_not_matter(self, never, least):
        whole = {every: both[1] for every, both in self.truth.items()}
        true = close(never, whole["never"]) and close(least, min(whole.values()))
        return true and whole["never"] <= 1.1 * min(whole.values()) * 1.006 and self.wanted is None

    def target(self, told, by):
        self.told = float(told)
        least = min(sums for sums, _ in self.truth.values())
        named = {"the error wanted": self.wanted, "twice the smallest error reached": 2 * least}
        return close(told, named[by] if by in named else self.operands() / 4)

    def add_up(self, every, error, target, by, additions):
        true = close(error, self.truth[every][0]) and self.target(target, by) and self.enough(self.told) == every
        return true and math.isclose(float(additions) / 100, 1 / int(every), rel_tol=6e-3)

    def nothing(self, error, target, by):
        never = self.truth["never"][0]
        return close(error, never) and self.target(target, by) and never <= self.told * 1.006

    def none_reaches(self, target, by, error, every):
        least = min(sums for sums, _ in self.truth.values())
        if not (self.target(target, by) and close(error, least)):
            return False
        smallest = self.truth[every or "never"][0]
        return smallest == least or math.isclose(smallest, least, rel_tol=6e-3) and least > self.told / 1.006

    def certified(self, every=None):
        longest = [name for name, bound in self.bounds.items() if bound <= self.told * 1.006]
        return longest[-1:] == [every or "never"]

    def none_certified(self):
        return min(self.bounds.values()) > self.told / 1.006

    def beside(self, fp32, operands):
        return close(operands, self.operands())

    def times(self, factor):
        return math.isclose(float(factor), self.operands() / self.truth["never"][0], rel_tol=1.5e-2)


def close(told, true):
    """Three digits, or two decimals."""
    return float(told) == true or math.isclose(float(told), true, rel_tol=6e-3, abs_tol=5.1e-3 if true > 0.095 else 0)


_EVERY = r"(?:every (\d+) products|never)"
_BY = r"(the error wanted|twice the smallest error reached|a quarter of the error of rounding the operands)"
SENTENCES = (
    (r"Promotion does not matter here: the whole error, rounding the operands to the engine's format included, is (\S+) "
     r"without additions outside, and at best (\S+) with them", PromotionJudge.does_not_matter),
    (rf"Add up outside {_EVERY}: (\S+) on these data, within (\S+) \({_BY}\), for (\S+)% extra additions",
     PromotionJudge.add_up),
    (rf"Nothing needs to be added up outside: the error (\S+) is within (\S+) \({_BY}\)", PromotionJudge.nothing),
    (rf"No interval reaches (\S+) \({_BY}\): the smallest error is (\S+), {_EVERY}", PromotionJudge.none_reaches),
    (r"No interval is certified to reach it", PromotionJudge.none_certified),
    (rf"Certified to reach it: {_EVERY}", PromotionJudge.certified),
    (r"Beside it, on the same operands: FP32 chain (\S+); rounding the operands to the engine's format alone (\S+), which no "
     r"interval cures", PromotionJudge.beside),
    (r"That is (\S+) times the error of the sums without any additions outside", PromotionJudge.times),
    (r"A was multiplied by 2\^(-?\d+) and B by 2\^(-?\d+) first \(--no-scale leaves that out\)", lambda judge, *e: True),
)  # fmt: skip
