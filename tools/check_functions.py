"""This tool checks the special functions against recordings of a GPU, measures their errors, and draws samples.

    python tools/check_functions.py --recordings FOLDER [--blocks 1000]    # hashes of whole domains, pairs of divisions
    python tools/check_functions.py --neighbours                           # is each segment's triple the only one?
    python tools/check_functions.py --sample FOLDER tests/vectors/special_functions.json
    python tools/check_functions.py --errors errors.json [--functions ex2.approx.ftz.f32] [--sampled]

FOLDER holds `mufu.npz`: for each instruction "hash/NAME" with 65,536 block hashes (tensorcore_models.functions.hashes), and
"small/NAME" with the results of "small/two.a" and "small/two.b" of divisions.

How the tables were found: the results of one binade, 2^23 of them, are a staircase in each segment. The place of a step
bounds c0 + c1 x + c2 Q(x) from both sides, so a segment gives 2^17 inequalities in three unknown integers. With the true x^2 as
Q(x) no triple satisfies them. It is the folded partial products of x^2 below the column 2^19 that the multiplier leaves out:
without them one triple is left in each segment (`--neighbours` changes each coefficient by its unit and counts changes that no
result shows). The low bits of all c0 of a table are one constant, the unit's bias. All other operands follow from the
reductions.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.functions import Function
from tensorcore_models.functions.hashes import BLOCKS, block_hash, block_operands
from tensorcore_models.functions.tables import tables

#: Number of operands at a time.
CHUNK = 1 << 20


# -- recordings ----------------------------------------------------------------------------------------------------------
def recorded_name(function: Function) -> str:
    """Return the name of an instruction in recordings: those of FP64 return the upper word."""
    return function.name + (".hi" if function.name.endswith(".f64") else "")


def differing_blocks(function: Function, hashes: np.ndarray, blocks: range | list[int]) -> list[int]:
    """Return the blocks of 2^16 operands in which a function differs from its recording; of two operands the first is 0."""
    first = [np.uint32(0)] * (len(function.row.operands) - 1)
    return [b for b in blocks if block_hash(function.bits(*first, block_operands(b))) != int(hashes[b])]


def check_recordings(folder: Path, count: int) -> int:
    """Print the differences from a folder's recordings, and return the number of functions with any."""
    wrong = 0
    with np.load(folder / "mufu.npz") as recorded:
        for function in tcm.list_functions("hopper"):
            name = recorded_name(function)
            if f"hash/{name}" in recorded.files:
                blocks = range(0, BLOCKS, BLOCKS // min(count, BLOCKS))
                found = differing_blocks(function, recorded[f"hash/{name}"], blocks)
                print(f"{name}: {len(found)} of {len(blocks)} blocks differ", flush=True)
            elif f"small/{name}" in recorded.files:
                results = function.bits(recorded["small/two.a"], recorded["small/two.b"])
                found = np.flatnonzero(results != recorded[f"small/{name}"]).tolist()
                print(f"{name}: {len(found)} of {results.size} pairs differ", flush=True)
            else:
                continue
            wrong += bool(found)
    return wrong


#: Binades (sign and exponent field) of the instructions that are the unit alone, and the step between their blocks, such
#: that all segments of all tables occur.
BINADES = {
    "ex2.approx.ftz.f32": ((0x084, 0x184), 5), "lg2.approx.ftz.f32": ((0x07F, 0x07E), 1),
    "rcp.approx.ftz.f32": ((0x07F,), 1), "rsqrt.approx.ftz.f32": ((0x07F, 0x080), 1),
    "sqrt.approx.ftz.f32": ((0x07F, 0x080), 1), "sin.approx.ftz.f32": ((0x081,), 1), "cos.approx.ftz.f32": ((0x181,), 1),
    "tanh.approx.f32": (tuple(range(0x077, 0x082)), 8),
}  # fmt: skip
#: Blocks with specials, subnormal numbers and the ends of ranges, and some others.
EDGE_BLOCKS = (
    0x0000, 0x0001, 0x007F, 0x0080, 0x0100, 0x3300, 0x3880, 0x3F80, 0x3FC0, 0x43E0, 0x477F, 0x7E80, 0x7F7F, 0x7F80, 0x7FC0,
    0x8000, 0x8080, 0xBF80, 0xC2FC, 0xC315, 0xFE80, 0xFF7F, 0xFF80,
)  # fmt: skip


def binade_blocks(binade: int, step: int) -> range:
    """Return every so manyth block of one sign and exponent field of FP32."""
    return range(binade << 7, (binade + 1) << 7, step)


def sample(folder: Path) -> dict:
    """Sample a folder's recordings for the project's tests: sums of the block hashes of binades, some blocks, some pairs."""
    with np.load(folder / "mufu.npz") as recorded:
        hashes = {name.removeprefix("hash/"): recorded[name] for name in recorded.files if name.startswith("hash/")}
        pairs = {
            name: recorded[f"small/{name}"][::512] for name in ("two.a", "two.b", *(f"div.{x}" for x in _DIVISIONS))
        }
    sums = {
        name: {f"{b:#05x}": f"{int(hashes[name][binade_blocks(b, step)].sum(dtype=np.uint64)):#018x}" for b in binades}
        for name, (binades, step) in BINADES.items()
    }
    blocks = {name: {f"{b:#06x}": f"{int(found[b]):#018x}" for b in EDGE_BLOCKS} for name, found in hashes.items()}
    return {
        "binades": sums,
        "blocks": blocks,
        "pairs": {name: [int(x) for x in found] for name, found in pairs.items()},
    }


_DIVISIONS = ("approx.ftz.f32", "approx.f32", "full.f32")


def check_neighbours() -> int:
    """Print the number of triples for which a change of one coefficient by its unit changes no result, and return it."""
    x = np.arange(1 << 17, dtype=np.int64)
    square = np.zeros_like(x)
    for i in range(10, 17):
        square += (x >> i & 1) * (((x & ((1 << i) - 1)) >> (18 - i)) + (1 << (2 * i - 19)))
    unchanged = total = 0
    for name, table in tables().items():
        common = math.gcd(*(row[0] - table.rows[0][0] for row in table.rows)) or table.rows[0][0]
        unit = min(common & -common, 1 << 16)  # the constant lower bits are the unit's bias
        for c0, c1, c2 in table.rows:
            value = c0 + c1 * x + c2 * square
            cut = np.maximum(np.frexp(value.astype(np.float64))[1] - 24, 0)
            for change in (unit, -unit, x, -x, square, -square):
                other = value + change
                total += 1
                unchanged += bool((value >> cut == other >> cut).all())
        print(f"{name}: c0 in units of {unit}", flush=True)
    print(f"{unchanged} of {total} changes of one coefficient change no result")
    return unchanged


# -- errors --------------------------------------------------------------------------------------------------------------
def exact_erf(x: np.ndarray) -> np.ndarray:
    """Return erf in float64."""
    from scipy.special import erf

    return erf(x)


def exact_gelu(x: np.ndarray) -> np.ndarray:
    """Return x Phi(x) in float64, without cancellation for negative x."""
    from scipy.special import erfc

    return 0.5 * x * erfc(-x * math.sqrt(0.5))


def exact_gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Return x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3) in float64, without cancellation for negative x."""
    return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


#: Function that each instruction approximates, magnitudes between which all operands are measured, and whether negative ones
#: are measured. Below the least magnitude the function is 1, x or a multiple of x, up to 2^-24 of it; beyond the largest it
#: is constant, 0 or infinite. rcp, rsqrt and sqrt repeat in each binade or two; a logarithm is dominated by the exponent.
EXACT: dict[str, tuple[Callable, float, float, bool]] = {
    "ex2.approx.ftz.f32": (np.exp2, 2.0**-30, 128.0, True),
    "lg2.approx.ftz.f32": (np.log2, 2.0**-8, 2.0**8, False),
    "rcp.approx.ftz.f32": (lambda x: 1 / x, 1.0, 2.0, False),
    "rsqrt.approx.ftz.f32": (lambda x: 1 / np.sqrt(x), 1.0, 4.0, False),
    "sqrt.approx.ftz.f32": (np.sqrt, 1.0, 4.0, False),
    "sin.approx.ftz.f32": (np.sin, 2.0**-30, 2 * math.pi, False),
    "cos.approx.ftz.f32": (np.cos, 2.0**-30, 2 * math.pi, False),
    "tanh.approx.f32": (np.tanh, 2.0**-13, 16.0, False),
    "exp2f": (np.exp2, 2.0**-30, 256.0, True),
    "expf": (np.exp, 2.0**-30, 128.0, True),
    "__expf": (np.exp, 2.0**-30, 128.0, True),
    "sinf": (np.sin, 2.0**-30, 2.0**128, False),
    "cosf": (np.cos, 2.0**-30, 2.0**128, False),
    "tanf": (np.tan, 2.0**-30, 2.0**128, False),
    "logf": (np.log, 2.0**-8, 2.0**8, False),
    "__logf": (np.log, 2.0**-8, 2.0**8, False),
    "rsqrtf": (lambda x: 1 / np.sqrt(x), 1.0, 4.0, False),
    "sqrt.rn.f32": (np.sqrt, 1.0, 4.0, False),
    "rcp.rn.f32": (lambda x: 1 / x, 1.0, 2.0, False),
    "erff": (exact_erf, 2.0**-30, 8.0, False),
    "tanhf": (np.tanh, 2.0**-30, 16.0, False),
    "torch.sigmoid": (_sigmoid, 2.0**-30, 128.0, True),
    "torch.silu": (lambda x: x * _sigmoid(x), 2.0**-30, 128.0, True),
    "torch.gelu": (exact_gelu, 2.0**-30, 16.0, True),
    "torch.gelu_tanh": (exact_gelu_tanh, 2.0**-30, 16.0, True),
}  # fmt: skip
#: Function that each 16-bit form approximates; all 65,536 operands are measured if the result is a normal number.
EXACT_HALVES = {
    "ex2.approx.f16": np.exp2, "ex2.approx.ftz.bf16": np.exp2, "tanh.approx.f16": np.tanh, "tanh.approx.bf16": np.tanh,
}  # fmt: skip
#: Functions of which :data:`SAMPLE` uniformly drawn operands are measured, because all take half an hour.
SAMPLED = ("tanf", "torch.gelu_tanh")
#: Functions of two operands, of which :data:`PAIRS` are drawn: exponents with a normal quotient, all fractions.
DIVISIONS = ("div.approx.ftz.f32", "div.approx.f32", "div.full.f32", "div.rn.f32")
PAIRS = SAMPLE = 1 << 24
#: Instructions whose error is drawn as absolute, not in units of a result that passes 0.
ABSOLUTE = ("sin.", "cos.", "lg2.")
#: Functions that rise (+1) or fall (-1) over all of their domain.
MONOTONE = {
    "exp2f": 1, "rsqrtf": -1, "ex2.approx.ftz.f32": 1, "lg2.approx.ftz.f32": 1, "rcp.approx.ftz.f32": -1,
    "rsqrt.approx.ftz.f32": -1, "sqrt.approx.ftz.f32": 1, "tanh.approx.f32": 1, "expf": 1, "__expf": 1, "logf": 1, "__logf": 1,
    "erff": 1, "tanhf": 1, "torch.sigmoid": 1,
}  # fmt: skip


def _codes(low: float, high: float) -> tuple[int, int]:
    ends = np.array([low, min(high, float(np.finfo(np.float32).max))], np.float32).view(np.uint32)
    return int(ends[0]), int(ends[1]) + (high >= 2.0**128)


def chunks(low: float, high: float) -> Iterator[np.ndarray]:
    """Yield all FP32 encodings of numbers from `low` to below `high`, ascending."""
    first, last = _codes(low, high)
    for start in range(first, last, CHUNK):
        yield np.arange(start, min(start + CHUNK, last), dtype=np.int64).astype(np.uint32)


def in_ulps(error: np.ndarray, exact: np.ndarray, fraction_bits: int = 23) -> np.ndarray:
    """Return errors in units in the last place at exact values that are normal numbers of a format, FP32 by default."""
    field = exact.view(np.uint64) & np.uint64(0x7FF0000000000000)
    return error * (np.uint64((2046 + fraction_bits) << 52) - field).view(np.float64)  # 2^(fraction_bits - exponent)


class Errors:
    """`Errors` holds the extremes of a function's error, for signs and 1/64 of binades, and the breaks of monotonicity."""

    def __init__(self, name: str, operands: int, coverage: str = "exhaustive") -> None:
        self.name, self.coverage, self.operands, self.breaks = name, coverage, 0, 0
        self.rounded = 0  # number of results that are correctly rounded
        self.function = tcm.get_function("hopper", name)
        self.format = tcm.get_format(self.function.row.result)
        self.part = 1 << min(max((operands >> 11).bit_length(), 12), 20)  # operands of one point of a curve
        self.extremes = {"ulp": 0.0, "absolute": 0.0, "relative": 0.0}
        self.where = dict.fromkeys(self.extremes, 0.0)
        self.of_sign = {1: 0.0, -1: 0.0}
        self.sum, self.last = 0.0, dict[int, float]()
        self.sizes = dict.fromkeys(self.extremes, 0.0)  # sums of |error|
        self.curve: list[tuple[float, float, float]] = []

    def add(self, codes: np.ndarray, sign: int, exact: Callable) -> None:
        """Measure the operands of one chunk."""
        words = codes | np.uint32(0x80000000 if sign < 0 else 0)
        got = self.function.bits(words).view(np.float32).astype(np.float64)
        x = words.view(np.float32).astype(np.float64)
        self._count_breaks(got, sign)
        with np.errstate(all="ignore"):
            self.compare(x, got, exact(x), sign)

    def compare(self, x: np.ndarray, got: np.ndarray, true: np.ndarray, sign: int = 1) -> None:
        """Compare results with exact ones, if these are normal numbers of the result's format."""
        fits = np.isfinite(got) & (np.abs(true) >= self.format.min_normal) & (np.abs(true) <= self.format.max_finite)
        if not fits.any():
            return
        x, got, true = x[fits], got[fits], true[fits]
        error = got - true
        ulps = in_ulps(error, true, self.format.fraction_bits)
        self.operands += x.size
        self.sum += float(ulps.sum())
        self.rounded += int((tcm.round_to(true, self.format).astype(np.float64) == got).sum())
        for key, values in (("ulp", np.abs(ulps)), ("absolute", np.abs(error)), ("relative", np.abs(error / true))):
            self.sizes[key] += float(values.sum())
            at = int(values.argmax())
            if values[at] > self.extremes[key]:
                self.extremes[key], self.where[key] = float(values[at]), float(x[at])
        self.of_sign[sign] = max(self.of_sign[sign], float(np.abs(ulps).max()))
        drawn = error * 2.0**24 if self.name.startswith(ABSOLUTE) else ulps
        for start in range(0, x.size, self.part):
            part = drawn[start : start + self.part]
            self.curve.append((float(x[start]), float(part.min()), float(part.max())))

    def _count_breaks(self, got: np.ndarray, sign: int) -> None:
        """Count steps of finite results against the function's direction, from the last result before the chunk on."""
        direction = MONOTONE.get(self.name, 0) * sign
        finite = got[np.isfinite(got)]
        if finite.size:
            before = [self.last[sign]] if sign in self.last else []
            self.last[sign] = finite[-1]
            self.breaks += int((np.diff(finite, prepend=before) * direction < 0).sum())

    def to_dict(self) -> dict:
        """Return the findings, for JSON."""
        counted = self.name in MONOTONE and self.coverage == "exhaustive"
        return {
            "operands": self.operands, "coverage": self.coverage, "extremes": self.extremes, "where": self.where,
            "mean_size": {key: total / max(self.operands, 1) for key, total in self.sizes.items()},
            "correctly_rounded": self.rounded / max(self.operands, 1), "mean_ulp": self.sum / max(self.operands, 1),
            "of_positive": self.of_sign[1], "of_negative": self.of_sign[-1], "breaks": self.breaks if counted else None,
            "curve": self.curve,
        }  # fmt: skip


def over_all_operands(name: str) -> Errors:
    """Measure a function of one FP32 operand."""
    exact, low, high, both = EXACT[name]
    first, last = _codes(low, high)
    errors = Errors(name, last - first)
    for sign in (1, -1) if both else (1,):
        for codes in chunks(low, high):
            errors.add(codes, sign, exact)
    return errors


def over_a_sample(name: str) -> Errors:
    """Measure a function of one FP32 operand over a sample of its domain."""
    exact, low, high, both = EXACT[name]
    errors, rng = Errors(name, SAMPLE, "sampled"), np.random.default_rng(60)
    for _ in range(SAMPLE // CHUNK):
        sign = int(rng.choice((1, -1))) if both else 1
        errors.add(np.sort(rng.integers(*_codes(low, high), CHUNK, np.uint32)), sign, exact)
    return errors


def over_all_halves(name: str) -> Errors:
    """Measure a function of one 16-bit operand."""
    errors = Errors(name, 1 << 16)
    x = tcm.decode(np.arange(1 << 16, dtype=np.uint16), errors.function.row.operand, np.float64)
    x = x[np.isfinite(x)]
    with np.errstate(over="ignore"):
        errors.compare(x, errors.function.values(x).astype(np.float64), EXACT_HALVES[name](x))
    return errors


def over_pairs(name: str) -> Errors:
    """Measure a division over a sample of pairs."""
    errors, rng = Errors(name, PAIRS, "sampled"), np.random.default_rng(60)
    for _ in range(PAIRS // CHUNK):
        words = (
            rng.integers(65 << 23, 190 << 23, (2, CHUNK), np.uint32) | rng.integers(0, 2, (2, CHUNK), np.uint32) << 31
        )
        x, y = words.view(np.float32).astype(np.float64)
        errors.compare(x, errors.function.bits(*words).view(np.float32).astype(np.float64), x / y)
    return errors


#: Every measured function with its method.
MEASURED = {
    **dict.fromkeys(EXACT, over_all_operands), **dict.fromkeys(EXACT_HALVES, over_all_halves),
    **dict.fromkeys(SAMPLED, over_a_sample), **dict.fromkeys(DIVISIONS, over_pairs),
}  # fmt: skip


def measure(names: list[str], path: Path, sampled: bool = False) -> None:
    """Measure functions, or samples of their operands, and write a JSON file."""
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        errors = (over_a_sample if sampled and name in EXACT else MEASURED[name])(name)
        found[name] = errors.to_dict()
        e = errors.extremes
        signs = f"positive {errors.of_sign[1]:.3f}, negative {errors.of_sign[-1]:.3f}"
        sizes = f"absolute 2^{math.log2(e['absolute']):.2f}, relative 2^{math.log2(e['relative']):.2f}"
        print(
            f"{name}: {errors.operands} operands, {e['ulp']:.5f} ulp at {errors.where['ulp']!r} ({signs}), {sizes}",
            flush=True,
        )
        print(
            f"    mean {found[name]['mean_ulp']:+.3f} ulp, breaks {found[name]['breaks']}, "
            f"correctly rounded {found[name]['correctly_rounded']:.1%}",
            flush=True,
        )
        path.write_text(json.dumps(found))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, metavar="FOLDER")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="number of block hashes of each function")
    parser.add_argument("--neighbours", action="store_true")
    parser.add_argument("--sample", nargs=2, type=Path, metavar=("FOLDER", "FILE"))
    parser.add_argument("--errors", type=Path, metavar="FILE")
    parser.add_argument("--sampled", action="store_true", help="measure samples of operands instead of all operands")
    parser.add_argument("--functions", nargs="+", default=list(MEASURED), choices=list(MEASURED), metavar="NAME")
    args = parser.parse_args()
    wrong = 0
    if args.recordings:
        wrong += check_recordings(args.recordings, args.blocks)
    if args.sample:
        args.sample[1].write_text(json.dumps(sample(args.sample[0]), indent=1) + "\n")
    if args.neighbours:
        wrong += check_neighbours()
    if args.errors:
        measure(args.functions, args.errors, args.sampled)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
