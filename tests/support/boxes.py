"""Black boxes for tests: random parametric units, recorded answers, and boxes that misbehave."""

from pathlib import Path

import numpy as np

import tensorcore_models as tcm
from tensorcore_models.aspects import search
from tensorcore_models.probing import Box
from tensorcore_models.probing.identify.box import model_answer
from tensorcore_models.probing.identify.inputs import pool
from tensorcore_models.probing.interface import DotBatch, Interface

ROUNDINGS = ("rne", "rz", "rna", "ru", "rd", "ro")
OPERANDS = ("fp16", "bf16", "e4m3fn", "e5m2", "tf32", "e4m3fnuz")


#: All that `identify` looks for.
EVERY_ROUNDING = search.ROUNDINGS


def random_unit(seed: int, roundings: tuple[str, ...] = ROUNDINGS) -> tcm.MatrixEngine:
    """A parametric unit with every field drawn."""
    rng = np.random.default_rng([seed, 77])

    def pick(*values):
        return values[int(rng.integers(len(values)))]

    while True:
        terms, bits = pick(1, 2, 4, 8, 16), pick(None, *range(4, 36))
        result = pick("fp32", "fp32", "fp16", "bf16")
        fields = {
            "c_position": pick("early", "early", "late"),
            "output_rounding": pick(*roundings),
            "late_rounding": pick(*roundings),
            "output_fraction_bits": pick(None, None, int(rng.integers(2, tcm.get_format(result).fraction_bits))),
            "flush_inputs": pick(False, False, False, True),
            "flush_outputs": pick(False, False, False, True),
            "product_overflow_exponent": pick(None, None, 128, 12),
            "zero_operand": pick("skip", "skip", "minus126", "format_minimum"),
            "zero_c": pick("skip", "skip", "minus126", "format_minimum"),
            "subnormal_c": pick("raw", "normalised"),
            "negative_underflow": pick("positive", "negative"),
            "exponent_floor": pick(None, None, -133, -20, -6, -150),
            "nan": pick("all_ones", "quiet"),
        }
        if bits is not None:
            fields |= {
                "alignment_rounding": pick(*roundings),
                "sticky": pick(False, False, False, True),
                "normalised_products": pick(False, False, True),
                "normalise_each_add": pick(False, False, False, False, False, True),
                "integer_bits": pick(None, None, None, 3, 4, 6),
                "alignment": pick("global", "global", "pairwise", "odd_even"),
            }
        try:
            spec = tcm.ParametricDotAdd(terms, bits, **fields)
            return tcm.MatrixEngine(
                spec, a_format=pick(*OPERANDS), c_format=pick("fp32", result), d_format=result, k=terms * pick(1, 1, 2)
            )
        except ValueError:  # fields that contradict each other
            continue


def recorded(folder: Path, row: tcm.Instruction) -> Box:
    """A box that knows only the answers in a folder of `hardware_vectors/amx`."""
    archive = np.load(folder / "vectors.npz")
    parts = {name: [] for name in "abcd"}
    for kind in sorted({name.rsplit("/", 1)[0] for name in archive.files}):
        a, b, c, d = (archive[f"{kind}/{name}"] for name in "abcd")
        n, m = b.shape[2], a.shape[1]
        parts["a"].append(np.repeat(a, n, axis=1).reshape(-1, row.k))
        parts["b"].append(np.tile(b.swapaxes(1, 2), (1, m, 1)).reshape(-1, row.k))
        parts["c"].append(c.reshape(-1))
        parts["d"].append(d.reshape(-1))
    a, b, c, d = (np.concatenate(parts[name]) for name in "abcd")
    answers = {(x.tobytes(), y.tobytes(), int(z)): w for x, y, z, w in zip(a, b, c, d, strict=True)}

    def answer(batch: DotBatch) -> np.ndarray:
        rows = zip(batch.a, batch.b, batch.c, strict=True)
        return np.array([answers[x.tobytes(), y.tobytes(), int(z)] for x, y, z in rows], d.dtype)

    return Box(Interface.of(row), answer, f"recorded {row.name}", recorded=DotBatch(a, b, c))


#: Dot products that an identification asks at most before its random phase.
MOST_QUERIES = 10_000
#: A unit of four products.
FOUR = tcm.MatrixEngine(tcm.FusedDotAdd(4, 24))


def same(unit: tcm.MatrixEngine, found: tcm.MatrixEngine, count: int, seed: int = 99) -> bool:
    """Whether two engines agree on fresh inputs of all kinds."""
    rng = np.random.default_rng(seed)
    one, other, interface = model_answer(unit), model_answer(found), Interface.of(unit)
    for _ in range(max(1, count // 20_000)):
        batch = pool(interface, min(count, 20_000), rng)
        if not np.array_equal(one(batch), other(batch)):
            return False
    return True
