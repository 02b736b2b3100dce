"""Pairs of compiled kernels for the judge of `compiled.compare`: mutants of PTX, and configurations that Triton compiles.

A mutant is one change of the text, as a compiler or a person might make it: some change no bit, some every one.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from ptx_cases import GEMM, text

from tensorcore_models import compiled
from tensorcore_models.compiled.compare import outputs

R = r"(%\w+)"
ADD = rf"add\.f32\s+{R}, {R}, {R};"
FMA = rf"fma\.rn\.f32\s+{R}, {R}, {R}, {R};"
MMA = r"(mma\.sync\S*\.f32)\s+\{([^}]*)\}, \{([^}]*)\}, \{([^}]*)\}, \{([^}]*)\};"


def halves_turned(found, turn_a: bool) -> str:
    head, d, a, b, c = found.groups()
    left, right = ([x.strip() for x in part.split(",")] for part in (a, b))
    turned = left[len(left) // 2 :] + left[: len(left) // 2] if turn_a else left
    return f"{head} {{{d}}}, {{{', '.join(turned)}}}, {{{', '.join(right[::-1])}}}, {{{c}}};"


def _exchanged(source: str) -> str:
    """Two neighbouring products of one accumulator change places."""
    found = list(re.finditer(MMA, source))
    for first, second in itertools.combinations(found, 2):
        if first[2].strip() == first[5].strip() == second[2].strip() == second[5].strip():
            one, two = (
                f"{x[1]} {{{x[2]}}}, {{{y[3]}}}, {{{y[4]}}}, {{{x[5]}}};" for x, y in ((first, second), (second, first))
            )
            middle = source[first.end() : second.start()]
            if "ldmatrix" in middle or "cvt" in middle:
                continue
            return source[: first.start()] + one + middle + two + source[second.end() :]
    return source


def _without_one(source: str) -> str:
    """The last product that adds to its own accumulator is left out."""
    lines = source.splitlines(keepends=True)
    for i in range(len(lines) - 1, -1, -1):
        found = re.search(MMA, lines[i])
        if found and found[2].strip() == found[5].strip():
            return "".join(lines[:i] + lines[i + 1 :])
    return source


def _after_additions(change: str) -> Callable[[str], str]:
    return lambda s: re.sub(ADD, lambda x: x[0] + "\n\t" + change.replace("D", x[1]), s)


MUTANTS: dict[str, Callable[[str], str]] = {
    "registers renamed": lambda s: re.sub(r"%r([\d<])", r"%renamed\1", s),
    "additions turned": lambda s: re.sub(ADD, r"add.f32 \1, \3, \2;", s),
    "additions named rn": lambda s: s.replace("add.f32", "add.rn.f32"),
    "additions toward zero": lambda s: s.replace("add.f32", "add.rz.f32"),
    "additions up": lambda s: s.replace("add.f32", "add.rp.f32"),
    "additions that flush": lambda s: s.replace("add.f32", "add.ftz.f32"),
    "additions as products by one": lambda s: re.sub(ADD, r"fma.rn.f32 \1, \2, 0f3F800000, \3;", s),
    "plus zero": _after_additions("add.f32 D, D, 0f00000000;"),
    "times one": _after_additions("mul.f32 D, D, 0f3F800000;"),
    "halved and doubled": _after_additions("mul.f32 D, D, 0f3F000000;\n\tmul.f32 D, D, 0f40000000;"),
    "fma turned": lambda s: re.sub(FMA, r"fma.rn.f32 \1, \3, \2, \4;", s),
    "fma parted": lambda s: re.sub(
        FMA, r"mul.rn.f32 %parted, \2, \3;" + "\n\t" + r"add.rn.f32 \1, %parted, \4;", s
    ).replace(".reg .pred", ".reg .b32 %parted;\n\t.reg .pred", 1),
    "fma toward zero": lambda s: s.replace("fma.rn.f32", "fma.rz.f32"),
    "halves of k turned": lambda s: re.sub(MMA, lambda x: halves_turned(x, True), s),
    "halves of k turned in B": lambda s: re.sub(MMA, lambda x: halves_turned(x, False), s),
    "two products exchanged": _exchanged,
    "a product left out": _without_one,
    "A negative": lambda s: re.sub(r"(wgmma\.mma_async.*, )1, 1(, \d, \d)?;", r"\1-1, 1\2;", s),
    "words cut": lambda s: s.replace("cvt.rna.tf32", "cvt.rz.tf32").replace("cvt.rn.bf16x2", "cvt.rz.bf16x2"),
    "never promoted": lambda s: re.sub(ADD, r"mov.b32 \1, \3;", s),
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two texts, and a launch of each with the same arguments."""

    name: str
    texts: tuple[str, str]
    arguments: list
    grids: tuple
    unit: str | None = None


def _arguments(case, m: int, n: int, k: int) -> list:
    a, b = case.operands(m, n, k)
    kind = {"fp16": np.float16, "tf32": np.float32, "fp32": np.float32}.get(case.format, a.dtype)
    kind = np.float32 if case.words else kind
    return [a.view(kind), b.view(kind), np.zeros((m, n), np.float32), m, n, k]


def mutants(name: str, unit: str | None = None) -> Iterator[Pair]:
    """The mutants of a file that change its text."""
    case, source = GEMM[name], text(name)
    m, n, k = max(case.tile[0], 64), case.tile[1], 2 * case.tile[2]
    for kind, change in MUTANTS.items():
        changed = change(source)
        if changed != source:
            grids = (case.grid(m, n),) * 2
            label = f"{name}: {kind}" + (f" on {unit}" if unit else "")
            yield Pair(label, (source, changed), _arguments(case, m, n, k), grids, unit)


#: Kernel of tests/vectors/ptx, compute capability, type, constants, tiles: what is compared within.
FAMILIES = {
    "bf16": ("gemm", 80, "bf16", {}), "fp16": ("gemm", 80, "fp16", {"MASK": True}),
    "tf32": ("gemm", 80, "fp32", {"PRECISION": "tf32"}), "tf32x3": ("gemm", 80, "fp32", {"PRECISION": "tf32x3"}),
    "fp32": ("gemm", 80, "fp32", {}), "wgmma": ("gemm", 90, "fp16", {}), "fp8": ("gemm", 90, "fp8e4nv", {}),
    "tcgen05": ("gemm", 100, "bf16", {}), "split": ("split_k", 80, "fp16", {}),
}  # fmt: skip
_PLAIN = (
    ({}, (32, 32, 32), 4, 3), ({}, (64, 32, 32), 4, 1), ({}, (32, 64, 64), 8, 2), ({"OUTSIDE": "folded"}, (32, 32, 32), 4, 2),
    ({"OUTSIDE": "kept"}, (32, 32, 32), 4, 3), ({"OUTSIDE": "kept"}, (64, 32, 64), 4, 2),
)  # fmt: skip
_WIDE = (
    ({}, (64, 32, 32), 4, 3), ({}, (64, 64, 64), 4, 2), ({"OUTSIDE": "folded"}, (64, 32, 64), 4, 3),
    ({"OUTSIDE": "kept"}, (64, 32, 32), 4, 2), ({"OUTSIDE": "kept"}, (64, 64, 64), 8, 3),
)  # fmt: skip
#: (constants, tile, warps, stages) of each family.
CONFIGURATIONS = {
    "bf16": _PLAIN, "fp16": _PLAIN, "tf32": _PLAIN, "wgmma": _WIDE, "tcgen05": _WIDE,
    "tf32x3": (({}, (32, 32, 16), 4, 3), ({}, (32, 32, 32), 4, 2), ({"PRECISION": "bf16x3"}, (32, 32, 16), 4, 3),
               ({"OUTSIDE": "folded"}, (32, 32, 16), 4, 1), ({"PRECISION": "bf16x6"}, (32, 32, 16), 4, 3)),
    "fp32": (({}, (16, 16, 16), 4, 3), ({}, (32, 16, 32), 4, 1), ({"OUTSIDE": "kept"}, (16, 16, 16), 4, 2),
             ({"OUTSIDE": "folded"}, (16, 16, 32), 2, 2)),
    "fp8": (*(({"IMPRECISE": n}, (64, 32, 64), 4, 3) for n in (None, 32, 64, 0)), ({"IMPRECISE": 32}, (64, 64, 64), 4, 2),
            ({"OUTSIDE": "kept"}, (64, 32, 64), 4, 2)),
    "split": tuple(({"PARTS": parts}, (32, 32, depth), 4, 2) for parts, depth in ((1, 32), (2, 32), (3, 32), (2, 64))),
}  # fmt: skip
_KINDS = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32, "fp8e4nv": ml_dtypes.float8_e4m3fn}


def configurations(compile_kernel, family: str, m: int = 64, n: int = 64, k: int = 128) -> Iterator[Pair]:
    """All pairs of a family's configurations; `compile_kernel` is `compiled` of make.py."""
    kernel, capability, kind, constants = FAMILIES[family]
    made = []
    for own, tile, warps, stages in CONFIGURATIONS[family]:
        ptx = compile_kernel(kernel, capability, kind, {**constants, **own}, tile, warps, stages).asm["ptx"]
        parts = own.get("PARTS")
        grid = (m // tile[0], n // tile[1], *((parts,) if parts else ()))
        made.append((f"{own} {tile} {warps} warps {stages} stages", ptx, grid))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32).astype(_KINDS[kind]) for shape in ((m, k), (k, n)))
    arguments = [a, b, np.zeros((m, n), np.float32), m, n, k]
    for (one, first, g1), (two, second, g2) in itertools.combinations(made, 2):
        yield Pair(f"{family}: {one} and {two}", (first, second), arguments, (g1, g2))


@dataclass
class Judged:
    """One pair: the verdict, and whether bits speak against it."""

    pair: Pair
    verdict: str
    reason: str
    wrong: str = ""


def judged(pair: Pair, inputs: int = 24) -> Judged:
    """The verdict on a pair, checked on bits: of the witness, or of inputs that `compare` did not see."""
    programs = [compiled.read(source) for source in pair.texts]
    options = {} if pair.unit is None else {"unit": pair.unit}
    found = compiled.compare(*programs, arguments=pair.arguments, grids=pair.grids, **options)
    result = Judged(pair, found.verdict, found.reason)
    place = 2

    def bits(arguments):
        return [outputs(p, arguments, g, place, **options) for p, g in zip(programs, pair.grids, strict=True)]

    if found.verdict == "different":
        arguments, index, left, right = found.witness
        again = [int(x[index]) for x in bits(arguments)]
        if again != [left, right] or left == right:
            result.wrong = f"the witness gives {again}"
    elif found.verdict == "equal":
        for seed in range(inputs):
            given = _fresh(pair.arguments, place, seed)
            left, right = bits(given)
            if (left != right).any():
                result.wrong = f"{int((left != right).sum())} elements differ on input {seed}"
                break
    return result


def _fresh(arguments: list, place: int, seed: int) -> list:
    """Finite numbers of clustered, wide, cancelling and extreme exponents, drawn apart from those of `compare`."""
    rng = np.random.default_rng(1000 + seed)
    kind = seed % 6

    def drawn(x):
        raw = x.view(f"u{x.itemsize}") if x.dtype.kind == "V" else x
        shape, dtype = raw.shape, x.dtype
        if dtype.kind == "u":
            dtype = np.dtype(ml_dtypes.float8_e4m3fn if x.itemsize == 1 else ml_dtypes.bfloat16)
        widths = (0, 3, 8, 14, 30, 60)
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-widths[kind], widths[kind] + 1, shape)
        if seed % 4 == 3:
            half = shape[1] // 2
            values[:, half : 2 * half] = -values[:, :half]
        largest = float(ml_dtypes.finfo(dtype).max) / 4
        return np.clip(values, -largest, largest).astype(dtype).view(x.dtype)

    return [drawn(x) if isinstance(x, np.ndarray) and i != place else x for i, x in enumerate(arguments)]
