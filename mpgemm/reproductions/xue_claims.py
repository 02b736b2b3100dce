"""Compares the claims of Xue et al. (arXiv:2507.23387v4) that are numbers with ours, and says why they differ.

Speeds are predicted by the model of the chip, from nominal parameters unless a row says otherwise. Accuracies are those of the
model of the cube that rounds after each product. Nothing here ran on an Ascend chip.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

import ascend
from ascend.blocking import optimal_bm
from ascend.reports.calibration import ASSUMED_SIZE, PUBLISHED_BLOCK, PUBLISHED_DOUBLE, PUBLISHED_SINGLE, predict, speed
from ascend.reports.figures import PAPER_PEAK
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import only_pair
from mpgemm.reporting.report import Table
from mpgemm.reproductions.xue_table2 import operand_loss
from tensorcore_models.formats.split_analysis import bits_retained, count_residuals, underflow_probability

#: Rows and columns of the products whose accuracy is measured, and their k for fig. 8, which states none, and for fig. 9a.
SIDE, DEPTH_8, DEPTH_9 = 96, 256, 64 * 44
#: Largest value on the x axis of figure 12.
LARGE = 20480
CUBE, FEW_FRACTIONS = "ascend:cube.m16n16k16.f32.f16.f16.f32", 1 << 18


class Ours:
    """`Ours` computes the numbers of the rows, each only once."""

    def __init__(self, seeds: tuple[int, ...]):
        self.seeds, self.chip, self.b3 = seeds, ascend.get_chip("910A"), ascend.get_chip("910B3")

    @cached_property
    def predicted(self) -> tuple[float, float]:
        """Return the predicted TFLOP/s of the published block with single and double buffers, from nominal parameters."""
        return predict(self.chip)

    @cached_property
    def fitted(self) -> tuple[float, float]:
        """Return the predicted TFLOP/s of the published block after fitting two parameters to the two published speeds."""
        return predict(self.chip.with_calibration())

    @cached_property
    def efficiencies(self) -> tuple[float, float]:
        """Return the least and the largest f of the feasible blocks."""
        found = [b.fusion_efficiency(self.chip) for b in ascend.feasible_blocks(self.chip)]
        return min(found), max(found)

    @cached_property
    def square(self) -> tuple[ascend.Blocking, float]:
        """Return the fastest block (b, 64, b) with double buffers, and its TFLOP/s."""
        blocks = [b for b in ascend.feasible_blocks(self.chip) if b.bm == b.bn and b.bk == PUBLISHED_BLOCK.bk]
        return max(((b, speed(self.chip, block=b)) for b in blocks), key=lambda pair: pair[1])

    @cached_property
    def roofs(self) -> tuple[float, float]:
        """Return the least operational intensity of a feasible block, and the knee of the roofline."""
        points = [
            ascend.roofline(b, *ASSUMED_SIZE, self.chip, peak=PAPER_PEAK) for b in ascend.feasible_blocks(self.chip)
        ]
        return min(p.operational_intensity for p in points), points[0].knee

    def sizes(self, m: int, k: int, n: int) -> tuple[float, float]:
        """Return the TFLOP/s of the published block on the 910A and of FP32 on the 910B3."""
        b3 = ascend.plan(m, k, n, self.b3, terms=1, operand="fp32", simulated=2, top=1, error_of=lambda s: 0.0)[0]
        return speed(self.chip, (m, k, n)), b3.tflops

    @cache  # noqa: B019  # one object for each run
    def error(self, what: str, exponent: int, k: int = DEPTH_8, side: int = SIDE, signed: bool = True, scale: int = 12,
              step: str = "sequential") -> float:  # fmt: skip
        """Return the mean error (eq. 13) over the seeds of "fp16", "fp32" (NumPy on this machine), "termwise" or
        "elementwise"."""
        found = []
        for seed in self.seeds:
            rng = np.random.default_rng(seed)
            a, b = (
                rng.uniform(-1.0 if signed else 0.0, 1.0, shape) * 2.0**exponent for shape in ((side, k), (k, side))
            )
            a, b = a.astype(np.float32), b.astype(np.float32)
            exact = a.astype(float) @ b.astype(float)
            if what == "fp16":
                result = ascend.cube_hgemm(a, b)
            elif what == "fp32":
                result = a @ b
            else:
                options: dict[str, Any] = {"order": what, "scale_exponent": scale, "step_order": step}
                result = ascend.cube_gemm(a, b, blocking=PUBLISHED_BLOCK, chip=self.chip, **options)
            found.append(np.linalg.norm(result - exact) / np.linalg.norm(exact))
        return float(np.mean(found))


@dataclass(frozen=True)
class StatedNumber:
    """`StatedNumber` is a number that the paper states, with ours."""

    place: str  #: Section, figure or table of the paper.
    what: str
    theirs: str
    ours: Callable[[Ours], str]
    why: str = ""  #: Reason why the numbers differ, or limits of the comparison.


def _kept(exponent: int, scale: int) -> str:
    return f"{bits_retained(exponent, scale, 'rne').worst:.0f} bits"


def _both(o: Ours, *size: int) -> str:
    return "{:.1f} and {:.1f}".format(*o.sizes(*size))


_M, _K, _N = ASSUMED_SIZE
_MODEL = "the model has nominal rates; section 7 names what it leaves out (DMA set-up, synchronisation, scalar work)"
CLAIMS = (
    StatedNumber("table 2", "bits that SGEMM-cube loses against FP32", "1 to 2",
          lambda o: f"{operand_loss(only_pair('sgemm_cube', CUBE), FEW_FRACTIONS):.1f} of an operand"),
    StatedNumber("5.1", "FP16 peak of the 910A", "256 TFLOP/s", lambda o: f"{o.chip.peak_flops() / 1e12:.1f} TFLOP/s",
          "32 cores x 8192 FLOP a cycle at 1 GHz; the paper counts 2^10 as 1000"),
    StatedNumber("6.1", "FP32 peak of the 910B3", "73.73 TFLOP/s", lambda o: f"{o.b3.peak_flops('fp32') / 1e12:.2f} TFLOP/s",
          "the depth of a step, 4, is inferred from it"),
    StatedNumber("3.1", "fraction bits that two words keep", "at least 22", lambda o: _kept(0, 12)),
    StatedNumber("4.1, fig. 2a", "gradual underflow at exponent 0", "above 10 %",
          lambda o: f"{underflow_probability(0, gradual=True):.1%}",
          "the paper's event; rounding to nearest flushes half as many residuals"),
    StatedNumber("4.1, fig. 2a", "underflow at exponents -10, -12 and -13", "near 100 % below -12",
          lambda o: ", ".join(f"{underflow_probability(e):.1%}" for e in (-10, -12, -13)),
          "by eq. 5, which counts residuals below the least subnormal and zeros"),
    StatedNumber("4.1, fig. 2a", "residuals flushed at exponents -10, -12 and -13", "(not stated)",
          lambda o: ", ".join(f"{(r := count_residuals(e, 0, 'rne')).flushed / r.total:.1%}" for e in (-10, -12, -13)),
          "all 2^23 fractions of an exponent, to nearest"),
    StatedNumber("4.1", "precision after complete underflow", "11 bits", lambda o: _kept(-14, 0),
          "fraction bits of the worst number at exponent -14 without scaling"),
    StatedNumber("4.2, rule 1", "fraction bits at exponents -2 and -4 without scaling", "22 and fewer",
          lambda o: f"{_kept(-2, 0)} and {_kept(-4, 0)}"),
    StatedNumber("4.2, rule 2", "low words that overflow at exponent 15 with s_b = 12 and 13", "2^12 is the largest",
          lambda o: " and ".join(f"{bits_retained(15, s, 'rne').overflowed:.2%}" for s in (12, 13)),
          "with 2^12 the residuals nearest to half a unit of the high word still round up to infinity"),
    StatedNumber("4.2", "exponents 15 to 27 are remapped into range", "22 bits", lambda o: f"at 16: {_kept(16, 12)}",
          "true of the low word alone: the high word overflows from 16 on, whatever s_b is"),
    StatedNumber("eq. 8", "N_fused of (176, 64, 176)", "44", lambda o: str(PUBLISHED_BLOCK.n_fused(o.chip))),
    StatedNumber("5.1.1, fig. 6", "f of the feasible blocks", "0.92 to 1 (figure)",
          lambda o: "{:.3f} to {:.3f}".format(*o.efficiencies)),
    StatedNumber("5.1.1", "the best bm by eq. 9", "86 to 90",
          lambda o: "{:.1f} to {:.1f}".format(*sorted(optimal_bm(o.chip, f) for f in o.efficiencies)),
          "from all f of the feasible space; the paper says neither its f nor its effective L1"),
    StatedNumber("5.1.1", "speed at bm = 96, its choice by eq. 9, and at 176", "? and 65.3",
          lambda o: f"{speed(o.chip, block=ascend.Blocking(96, 64, 96)):.1f} and {o.predicted[1]:.1f}",
          "eq. 9 shares B among all cores; each core's MTE2 pulls all of B, 8192 / bm bytes a cycle"),
    StatedNumber("6.3, fig. 10", "operational intensities above the knee", "all",
          lambda o: "least {:.0f}, knee {:.1f}".format(*o.roofs)),
    StatedNumber("6.3, fig. 11a", "best speed with single buffers", f"{PUBLISHED_SINGLE} TFLOP/s",
          lambda o: f"{o.predicted[0]:.1f} predicted",
          "the size is not stated; 5632 x 2816 x 5632 is assumed"),
    StatedNumber("6.3, fig. 11b", "best speed with double buffers", f"{PUBLISHED_DOUBLE} TFLOP/s",
          lambda o: f"{o.predicted[1]:.1f}; {o.fitted[1]:.1f} fitted",
          f"{_MODEL}; fitted: two parameters, to this row and the one before"),
    StatedNumber("6.3", "gain by double buffers", "57 %", lambda o: f"{o.predicted[1] / o.predicted[0] - 1:.0%}", _MODEL),
    StatedNumber("abstract, 6.3", "share of the peak of three GEMMs", "77 % (of 256 / 3)",
          lambda o: "{:.0%}; {:.0%} of 262 / 3".format(*(
              1e12 * PUBLISHED_DOUBLE / peak for peak in (PAPER_PEAK, o.chip.peak_flops() / 3))),
          "arithmetic on their 65.3"),
    StatedNumber("6.3", "best block", "(176, 64, 176)",
          lambda o: "{}, {:.1f}".format(*o.square),
          "of the blocks (b, 64, b); others can be faster in the model"),
    StatedNumber("6.3, fig. 12a", "m and n large: SGEMM-cube on 910A and FP32 on 910B3", "> 60, slightly above",
          lambda o: _both(o, LARGE, _K, LARGE), f"m = n = {LARGE}; TFLOP/s, both predicted"),
    StatedNumber("6.3, fig. 12b", "k large: SGEMM-cube on 910A and FP32 on 910B3", "60 and 63",
          lambda o: _both(o, _M, LARGE, _N), f"k = {LARGE}; both predicted; {_MODEL}"),
    StatedNumber("6.3, fig. 12c", "all large: SGEMM-cube on 910A and FP32 on 910B3", "surpasses FP32",
          lambda o: _both(o, LARGE, LARGE, LARGE),
          "the paper's 910B3 gets slower with size; the model has no cause for that"),
    StatedNumber("6.2, fig. 8a", "error of FP16, both signs", "about 1e-4", lambda o: f"{o.error('fp16', 0):.1e}",
          f"k = {DEPTH_8} in all rows of fig. 8; the paper does not state its k"),
    StatedNumber("6.2, fig. 8b", "error of FP16, entries above 0", "about 1e-4",
          lambda o: f"{o.error('fp16', 0, signed=False):.1e}",
          "falls with k: 8.6e-5 at k = 16 (reproduce xue8b --shape 64 16 64)"),
    StatedNumber("6.2, fig. 8a", "gain of s_b = 12 over s_b = 0 at exponents -8 and -10", "1 to 2 orders",
          lambda o: ", ".join(f"{o.error('termwise', e, scale=0) / o.error('termwise', e):.0f} times" for e in (-8, -10))),
    StatedNumber("6.2, fig. 8a", "error of s_b = 6 at exponent -14", "insufficient",
          lambda o: f"{o.error('termwise', -14, scale=6) / o.error('termwise', -14):.0f} times s_b = 12's"),
    StatedNumber("6.2, fig. 8a", "elementwise against SGEMM at exponent 0", "comparable",
          lambda o: f"{o.error('elementwise', 0) / o.error('fp32', 0):.2f} times SGEMM's",
          "SGEMM is NumPy's on this machine"),
    StatedNumber("6.2, fig. 8a", "termwise against SGEMM at exponent -8", "surpasses it",
          lambda o: f"{o.error('termwise', -8) / o.error('fp32', -8):.2f} times SGEMM's",
          "the rounding inside of a cube step is not published; the model here rounds after every product"),
    StatedNumber("6.2, fig. 9a", "termwise, m = n from 32 to 192", "nearly unchanged",
          lambda o: " to ".join(f"{o.error('termwise', 0, DEPTH_9, side):.2e}" for side in (32, 192))),
    StatedNumber("6.2, fig. 9b", "termwise against SGEMM as k grows (704, 2816, 11264)", "always better",
          lambda o: ", ".join(f"{o.error('termwise', 0, k, 32) / o.error('fp32', 0, k, 32):.2f}" for k in (704, 2816, 11264)),
          "times SGEMM's error; the next row rounds once a step"),
    StatedNumber("6.2, fig. 9b", "termwise with one rounding per cube step against SGEMM as k grows", "always better",
          lambda o: ", ".join(
              f"{o.error('termwise', 0, k, 32, step='exact') / o.error('fp32', 0, k, 32):.2f}" for k in (704, 2816, 11264)),
          "an assumption that the paper's curve needs"),
)  # fmt: skip


def run(context: Context) -> Outcome:
    """Return the table of claims."""
    ours = Ours(tuple(context.seeds))
    rows = []
    for number, claim in enumerate(CLAIMS, 1):
        rows.append((number, claim.place, claim.what, claim.theirs, claim.ours(ours), claim.why))
        if context.progress:
            context.progress(number, len(CLAIMS), "claims")
    names = ("number", "place", "claim", "paper", "here", "why")
    tables = [
        Table("Claims of Xue et al. that are numbers", ("", "paper", "here", "claim"),
              [(row[0], row[3], row[4], row[2]) for row in rows]),
        Table("Places in the paper, and why the numbers differ or what is compared", ("", "place", "why"),
              [(row[0], row[1], row[5]) for row in rows]),
    ]  # fmt: skip
    return Outcome("xue-claims", tables, {"rows": [dict(zip(names, row, strict=True)) for row in rows]})
