"""This module compares each peer with this package: equal operands, results bit by bit, interleaved times."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import gfloat
import gfloat.formats
import ml_dtypes
import mmaemu
import mpmath
import numpy as np
import torch
from harness import interleaved
from mmasim.amd import isa_mfma
from mmasim.amd.sim import MFMA
from mmasim.nv_ptx import isa_mma, isa_tcgen05mma, isa_wgmma, sim

import mpgemm
import tensorcore_models as tcm
from tensorcore_models import libraries
from tensorcore_models.hardware.campaign.recording import recorded
from tensorcore_models.probing.random_operands import KINDS, operands

RECORDINGS = Path(__file__).resolve().parents[1] / "tests" / "vectors"


class Row(NamedTuple):
    """`Row` is one comparison; `ratio` is the peer's median time over this package's."""

    peer: str
    work: str
    covered: str
    results: int
    differ: int
    who: str
    ratio: float | None


def ratio(theirs: Callable[[], object], ours: Callable[[], object], turns: int) -> float:
    """Return the median time of the peer over that of this package, on the same work, turn by turn."""
    timings = interleaved({"ours": ours, "theirs": theirs}, turns, warm_up=1)
    return timings["theirs"].median / timings["ours"].median


# -- matrix units: mmasim -----------------------------------------------------------------------------------------------------
ARCHITECTURES = {
    "volta": "Volta", "turing": "Turing", "ampere": "Ampere", "ada": "Ada Lovelace", "hopper": "Hopper",
    "blackwell": "Blackwell", "rtx_blackwell": "RTX Blackwell", "cdna1": "CDNA1", "cdna2": "CDNA2", "cdna3": "CDNA3",
}  # fmt: skip


def other_size(prefix: str, name: str) -> bool:
    """Return whether a row is another row of its table at a larger m or n, with the same sums for each element."""
    shape = name.split(".")[0].partition("k")[0]
    if prefix == "tcgen05.mma." and "block" not in name and shape.startswith("m128"):
        return True
    return prefix in ("wgmma.", "tcgen05.mma.") and not shape.endswith("n8")


def mmasim_operations() -> dict[str, Callable]:
    """Return the maker of mmasim's operation for each "arch:name"; wgmma and tcgen05 at their smallest m and n."""
    tables = (
        ("mma.", isa_mma.mma_shape_and_type, sim.MMA),
        ("mma.", isa_mma.mma_block_scale_shape_and_type, sim.MMABlockScale),
        ("wgmma.", isa_wgmma.wgmma_shape_and_type, sim.WGMMA),
        ("tcgen05.mma.", isa_tcgen05mma.tcgen05mma_shape_and_type, sim.TCGen05MMA),
        ("tcgen05.mma.", isa_tcgen05mma.tcgen05mma_block_scale_shape_and_type, sim.TCGen05MMABlockScale),
        ("v_mfma_", isa_mfma.arch_mfma_suffix, MFMA),
    )
    ours = {theirs: arch for arch, theirs in ARCHITECTURES.items()}
    found: dict[str, Callable] = {}
    for prefix, table, make in tables:
        for architecture, names in table.items():
            for name in names:
                ending = ".".join(word for word in name.split(".") if not word.startswith("kind::"))
                if other_size(prefix, ending):
                    continue
                found.setdefault(
                    f"{ours[architecture]}:{prefix}{ending}",
                    lambda make=make, architecture=architecture, name=name: make(architecture, name),
                )
    return found


def as_torch(bits, dtype):
    """Return encodings as a tensor of mmasim's dtype; for formats that torch lacks, it holds the encodings themselves."""
    if dtype == torch.uint8:
        return torch.from_numpy(np.ascontiguousarray(bits, np.uint8))
    signed = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[dtype.itemsize]
    return torch.from_numpy(np.ascontiguousarray(bits).view(signed)).view(dtype)


def spelling(operation, which: str) -> str:
    """Return PTX's name of the format of A or B, or "" for AMD's operations."""
    return getattr(operation, f"{which}_type_ptx", "")


def peer_result(operation, a, b, c, scales):
    """Return encodings of the result of mmasim's `operation` on encodings."""
    if getattr(operation, "packing", 1) == 2:  # two FP4 encodings in a byte, the first in the high half
        a, b = a[:, ::2] << 4 | a[:, 1::2], b[::2] << 4 | b[1::2]
    else:  # one FP4 encoding to a byte lies in bits 2 to 5 (PTX, .kind::f8f6f4)
        a, b = (x << 2 if t == "e2m1" else x for x, t in ((a, spelling(operation, "a")), (b, spelling(operation, "b"))))
    operands = [as_torch(x, t) for x, t in ((a, operation.a_type), (b, operation.b_type), (c, operation.c_type))]
    operands += [as_torch(scale, operation.s_type) for scale in scales if scale is not None]
    d = operation(*operands)
    signed = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[d.dtype.itemsize]
    return d.contiguous().view(signed).numpy().view(f"u{d.dtype.itemsize}")


def unlike(x, y, fmt: str):
    """Return where encodings of one format differ without both being NaN, and where both are NaN with other payloads."""
    nan = np.isnan(tcm.decode(x, fmt).astype(np.float64)) & np.isnan(tcm.decode(y, fmt).astype(np.float64))
    return (x != y) & ~nan, (x != y) & nan


class Tally:
    """`Tally` counts compared and different results by kind of data, and NaN of other payloads apart."""

    def __init__(self) -> None:
        self.results, self.nan = 0, 0
        self.by_kind: Counter[str] = Counter()

    def add(self, kind: str, theirs: np.ndarray, ours: np.ndarray, fmt: str) -> None:
        """Compare encodings of one format."""
        values, payloads = unlike(theirs, ours, fmt)
        self.results += ours.size
        self.nan += int(payloads.sum())
        if values.any():
            self.by_kind[kind] += int(values.sum())

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.by_kind.most_common())
        payloads = f"{self.nan} more are NaN of another payload" if self.nan else ""
        return "; ".join(part for part in (kinds, payloads) if part) or "none"


@cache
def catalogue() -> dict[str, tcm.Instruction]:
    """Return the rows of the catalogue by "arch:name"."""
    return {str(row): row for row in tcm.list_instructions()}


def drawn(row: tcm.Instruction, kind: str, tiles: int) -> Iterator[tuple]:
    """Return operands of `row` from a fixed seed: a, b, c and scales of each tile."""
    batch = operands(row, kind, tiles, np.random.default_rng(1))
    for i in range(tiles):
        yield (*(x[i] for x in batch[:3]), tuple(None if x is None else x[i] for x in batch[3:]))


def units(quick: bool) -> Iterator[Row]:
    """Yield the comparison of mmasim's rows on drawn operands of all kinds, and on recordings of GPUs, an architecture a
    line.
    """
    made, tiles = mmasim_operations(), 1 if quick else 4
    for arch in ARCHITECTURES:
        names = [name for name in made if name.startswith(f"{arch}:")]
        shared = [name for name in names if name in catalogue()]
        tally, times = Tally(), []
        for name in shared:
            row, operation = catalogue()[name], made[name]()
            for kind in KINDS:
                for a, b, c, scales in drawn(row, kind, tiles):
                    tally.add(
                        kind, peer_result(operation, a, b, c, scales), row.mma_bits(a, b, c, *scales), row.d_format
                    )
            times.append(
                ratio(partial(peer_result, operation, a, b, c, scales), partial(row.mma_bits, a, b, c, *scales), 3)
            )
        covered = f"{len(shared)} of their {len(names)} rows, {sum(n.startswith(arch + ':') for n in catalogue())} here"
        unlike_here = sum(tally.by_kind.values())
        yield Row(
            "mmasim",
            f"{arch}, one instruction",
            covered,
            tally.results,
            unlike_here,
            str(tally),
            float(np.median(times)),
        )
    yield from on_recordings(made)


def on_recordings(made: dict[str, Callable]) -> Iterator[Row]:
    """Yield the comparison of both packages with recordings of GPUs, a GPU a line."""
    for index in sorted(RECORDINGS.glob("*/index.json")):
        theirs, ours, rows, others = Tally(), Tally(), set(), set()
        for row, kind, batch, d in recorded(index.parent):
            if str(row) not in made:
                others.add(str(row))
                continue
            rows.add(str(row))
            operation = made[str(row)]()
            for i in range(len(d)):
                scales = tuple(None if x is None else x[i] for x in batch[3:])
                a, b, c = (x[i] for x in batch[:3])
                theirs.add(kind, peer_result(operation, a, b, c, scales), d[i], row.d_format)
                ours.add(kind, row.mma_bits(a, b, c, *scales), d[i], row.d_format)
        name = index.parent.name
        covered = f"{len(rows)} recorded rows; {len(others)} more are not in mmasim"
        wrong = sum(theirs.by_kind.values())
        yield Row("mmasim", f"against what {name} recorded", covered, theirs.results, wrong, str(theirs), None)
        wrong = sum(ours.by_kind.values())
        yield Row("this package", f"against what {name} recorded", covered, ours.results, wrong, str(ours), None)


# -- FP8 products as torch computes them: mmaemu ------------------------------------------------------------------------------
def scaled_products(quick: bool) -> Iterator[Row]:
    """Yield the comparison of `torch._scaled_mm` for two profiles and both accumulations, with bf16 results."""
    m, n, k = (32, 64, 512) if quick else (64, 256, 1920)
    rng = np.random.default_rng(2)
    a, b = (tcm.encode(rng.standard_normal(shape) * 40, "e4m3fn", saturate=True) for shape in ((m, k), (k, n)))
    x = as_torch(a, torch.float8_e4m3fn)
    w = as_torch(np.ascontiguousarray(b.T), torch.float8_e4m3fn)
    scales = np.float32(1 / 64), np.float32(1 / 32)
    for profile, device in (("hopper", "h100"), ("ada", "rtx4060")):
        for fast in (True, False):
            theirs = partial(
                mmaemu.scaled_mm, x, w.t(), *map(torch.tensor, scales),
                out_dtype=torch.bfloat16, use_fast_accum=fast, profile=profile, splitk=1,
            )  # fmt: skip
            ours = partial(libraries.scaled_mm, a, b, *scales, device=device, out_format="bf16", fast_accumulation=fast)
            got = theirs().contiguous().view(torch.int16).numpy().view(np.uint16)
            tally = Tally()
            tally.add("normal", got, ours(), "bf16")
            work = f"_scaled_mm {m} x {k} x {n}, {profile}, {'fast' if fast else 'slow'} accumulation"
            yield Row(
                "mmaemu",
                work,
                "one shape",
                tally.results,
                sum(tally.by_kind.values()),
                str(tally),
                ratio(theirs, ours, 3),
            )


# -- formats: gfloat and ml_dtypes --------------------------------------------------------------------------------------------
#: gfloat's format for each format of this package.
GFLOAT = {
    "fp16": "binary16", "bf16": "bfloat16", "e5m2": "ocp_e5m2", "e4m3fn": "ocp_e4m3", "e3m2": "ocp_e3m2", "e2m3": "ocp_e2m3",
    "e2m1": "ocp_e2m1", "ue8m0": "ocp_e8m0",
}  # fmt: skip
ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16, "e5m2": ml_dtypes.float8_e5m2, "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "e4m3": ml_dtypes.float8_e4m3,
    "e3m4": ml_dtypes.float8_e3m4, "e3m2": ml_dtypes.float6_e3m2fn, "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def same_values(theirs: np.ndarray, ours: np.ndarray) -> int:
    """Return the number of different values; NaN equals NaN, and zeros count with their signs."""
    theirs, ours = np.asarray(theirs, np.float64), np.asarray(ours, np.float64)
    both_nan = np.isnan(theirs) & np.isnan(ours)
    return int((~both_nan & (theirs.view(np.int64) != ours.view(np.int64))).sum())


def gfloat_formats(quick: bool) -> Iterator[Row]:
    """Yield the comparison of every decoded encoding, and of numbers rounded in three ways."""
    modes = {"rne": gfloat.RoundMode.TiesToEven, "rz": gfloat.RoundMode.TowardZero, "rna": gfloat.RoundMode.TiesToAway}
    for name, spelling in GFLOAT.items():
        info = getattr(gfloat.formats, f"format_info_{spelling}")
        bits = np.arange(1 << info.bits, dtype=np.uint32).astype(tcm.get_format(name).container)
        theirs, ours = partial(gfloat.decode_ndarray, info, bits.astype(np.int64)), partial(tcm.decode, bits, name)
        yield Row(
            "gfloat",
            f"decode {name}",
            "all encodings",
            bits.size,
            same_values(theirs(), ours()),
            "",
            ratio(theirs, ours, 3),
        )
        if name == "ue8m0":
            continue
        x = np.random.default_rng(3).standard_normal(4096 if quick else 65536) * np.exp2(
            np.random.default_rng(4).integers(-12, 6)
        )
        for mode, theirs_mode in modes.items():
            theirs = partial(gfloat.round_ndarray, info, x, theirs_mode, True)
            ours = partial(tcm.round_to, x, name, mode, saturate=True)
            yield Row(
                "gfloat",
                f"round to {name}, {mode}",
                "normal numbers",
                x.size,
                same_values(theirs(), ours()),
                "",
                ratio(theirs, ours, 3),
            )


def rounded_by_ml_dtypes(x: np.ndarray, dtype: type) -> np.ndarray:
    """Return the values of ml_dtypes' conversion."""
    return x.astype(dtype).astype(np.float64)


def ml_dtypes_formats(quick: bool) -> Iterator[Row]:
    """Yield the comparison of FP32 numbers rounded to nearest: a spread of encodings inside of the format's range."""
    step = 65537 if quick else 4099
    x = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for name, dtype in ML_DTYPES.items():
        fmt = tcm.get_format(name)
        inside = x[np.abs(x) <= tcm.decode(fmt.max_bits, fmt)]
        theirs = partial(rounded_by_ml_dtypes, inside, dtype)
        ours = partial(tcm.round_to, inside, name)
        differ = same_values(theirs(), ours())
        yield Row(
            "ml_dtypes",
            f"round to {name}, nearest even",
            "FP32 in range",
            inside.size,
            differ,
            "",
            ratio(theirs, ours, 3),
        )


# -- exact products: mpmath ---------------------------------------------------------------------------------------------------
def exact_products(quick: bool) -> Iterator[Row]:
    """Yield the comparison of correctly rounded FP64 results of an exact product."""
    m, k, n = (8, 64, 8) if quick else (24, 256, 24)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)

    def theirs() -> np.ndarray:
        with mpmath.workprec(2200):
            rows, columns = ([[mpmath.mpf(float(v)) for v in line] for line in x] for x in (a, b.T))
            return np.array([[float(mpmath.fdot(row, column)) for column in columns] for row in rows])

    def ours() -> np.ndarray:
        return mpgemm.exact_gemm(a, b).rounded("fp64")

    differ = same_values(theirs(), ours())
    yield Row("mpmath", f"exact product {m} x {k} x {n}", "FP32 operands", m * n, differ, "", ratio(theirs, ours, 3))


PARTS = (units, scaled_products, gfloat_formats, ml_dtypes_formats, exact_products)
