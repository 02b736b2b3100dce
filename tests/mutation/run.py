# ruff: noqa: E501  (one mutant a row)
"""Breaks the code on purpose and sees the suite catch it.

    python tests/mutation/run.py [--only WORD] [--list]

Each mutant changes one thing (F by one, a rounding, the product normalisation, the block size, where c is added) in one
place: the kernel alone, the reference alone, or one row of the catalogue. It is applied to a copy of the tree, kernels are
rebuilt, and the tests that should notice run. A mutant that no test notices is reported and makes the exit status 1. Takes minutes: it is
not part of the suite. Needs an environment in which the tests run (make test sets one up).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """One deliberate fault: in `path`, the single occurrence of `old` becomes `new`."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...] = ("tests/tensorcore_models",)


FUSED = "tensorcore_models/families/fused/integers.py"
ROUND_DOWN = "tensorcore_models/families/round_down/specification.py"
GROUP_SUM = "tensorcore_models/families/group_sum.py"
NVIDIA = "tensorcore_models/catalogue/nvidia.py"
AMD = "tensorcore_models/catalogue/amd.py"

KERNEL = "tensorcore_models/_kernels/generic/generic_fused.h"
VECTORS = "tensorcore_models/_kernels/generic/generic_vector_sums.h"
VECTOR_TESTS = ("tests/tensorcore_models/test_kernels_vectors.py",)
TWINS = ("tests/tensorcore_models/test_kernels_twins.py", "tests/tensorcore_models/test_kernels_hardware.py")
FACTS = "mpgemm/bounds/operand_facts.py"
BOUNDS = ("tests/mpgemm/test_scaled_bounds.py", "tests/mpgemm/test_bounds.py")

AMX = ("tests/mpgemm/test_amx.py", "tests/tensorcore_models/test_cpu_engines.py")
#: What notices a wrong row: hand-derived vectors, published rows, recordings.
ROWS = (
    *(
        f"tests/tensorcore_models/test_{name}.py"
        for name in ("catalogue", "recorded_gpus", "worked_examples", "kernels_hardware")
    ),
    "--deselect=tests/tensorcore_models/test_catalogue.py::test_the_generated_page_is_current",  # would notice any change
)
FAST = tuple(f"tests/tensorcore_models/test_{name}.py" for name in ("fast_kernels", "fast_groups", "promotion"))

SUITES = ("tests/tensorcore_models/test_suites.py",)
BEATING = ("tests/mpgemm/test_beating.py",)
SEARCH, GRID = ("tests/ascend/test_search.py",), ("tests/ascend/test_grid.py",)
BYTES = ("tests/ascend/test_memory.py", "tests/ascend/test_simulate.py")
GAUDI, RISCV, ARM, WORMHOLE = (
    (f"tests/tensorcore_models/test_{name}.py",) for name in ("gaudi", "riscv", "arm", "tenstorrent")
)
QEMU = ("tests/tensorcore_models/test_arm_emulated.py",)
IDENTIFY = ("tests/tensorcore_models/test_identify.py", "-k", "Faults or sign_of_a_sum")

MUTANTS = (
    Mutant("kernel: F + 1", KERNEL, "    const int32_t unit = largest - p->fraction_bits;", "    const int32_t unit = largest - p->fraction_bits - 1;", TWINS),
    Mutant("kernel: F - 1", KERNEL, "    const int32_t unit = largest - p->fraction_bits;", "    const int32_t unit = largest - p->fraction_bits + 1;", TWINS),
    Mutant("kernel: alignment always truncates", KERNEL, "    if (rounding != MPG_RZ)\n", "    if (0)\n", TWINS),
    Mutant("kernel: products normalised", KERNEL, "if (p->normalised && out", "if (!p->normalised && out", TWINS),
    Mutant("kernel: ties to even become ties away", "tensorcore_models/_kernels/generic/generic_number.h", "(rest) + (odd) > (half)", "(rest) >= (half)", TWINS),
    Mutant("kernel: block size", "tensorcore_models/families/interleaved.py", 'step=self.terms_per_step,', 'step=max(1, self.terms_per_step // 2),', TWINS),
    Mutant("kernel: c late", "tensorcore_models/families/fused/lowering.py", '"late": 1, "exact": 2', '"late": 0, "exact": 2', TWINS),
    Mutant("kernel: CDNA3 rounds to zero", KERNEL, "far ? MPG_RZ : p->add_rounding", "MPG_RZ", TWINS),
    Mutant("vectors: products a place too far down", VECTORS, "    const V place = r.exponent + (uint64_t)(p", "    const V place = r.exponent - 1 + (uint64_t)(p", TWINS),
    Mutant("vectors: products a place too far up", VECTORS, "    const V place = r.exponent + (uint64_t)(p", "    const V place = r.exponent + 1 + (uint64_t)(p", TWINS),
    Mutant("vectors: ties away become ties to even", VECTORS, "rounding == MPG_RNE ? W_(shr_low)", "rounding != MPG_LOSSLESS ? W_(shr_low)", TWINS),
    Mutant("vectors: nothing is redone", VECTORS, "if (a_special || b_special || V_(lanes)(redo))", "if (0)", TWINS),
    Mutant("vectors: exact sums may lose bits", VECTORS, "*redo |= inexact;", "*redo &= inexact;", VECTOR_TESTS),
    Mutant("vectors: carry between words lost", "tensorcore_models/_kernels/generic/generic_vector_words.h", "x.high + y.high - V_(less)(low, x.low)", "x.high + y.high", TWINS),
    Mutant("vectors: output ties", "tensorcore_models/_kernels/generic/generic_vector_codes.h", ">> v->drop) & v->odd)", ">> v->drop) & 0)", TWINS),
    Mutant("addend: decides beside overflowing products", "tensorcore_models/_kernels/generic/generic_pass.h", "!mpg_adds_late(p) && !p->has_limit", "!mpg_adds_late(p)", VECTOR_TESTS),
    Mutant("addend: decides beside specials", "tensorcore_models/_kernels/generic/generic_pass.h", "(mpg_special_addends_stay(p) && !special)", "mpg_special_addends_stay(p)", VECTOR_TESTS),
    Mutant("addend: decides before a late addition", "tensorcore_models/_kernels/generic/generic_pass.h", "!mpg_adds_late(p) && !p->has_limit", "!p->has_limit", VECTOR_TESTS),
    Mutant("addend: a late NaN by the rule of the fused sum", "tensorcore_models/_kernels/generic/generic_pass.h", "mpg_adds_late(p) ? &p->late : &p->rule);", "&p->rule);", TWINS),
    Mutant("pack: specials of a panel's later vectors", "tensorcore_models/_kernels/generic/generic_vector_pack.h", "V_(lanes)(x.special) << l;", "V_(lanes)(x.special);", TWINS),
    Mutant("pack: signs of B", "tensorcore_models/_kernels/generic/generic_vector_pack.h", "(kept ^ x.negative) - x.negative", "kept", TWINS),
    Mutant("flush: by the rounded subnormal number", "tensorcore_models/_kernels/generic/generic_number.h", "leading + (int64_t)(kept >> (r->kept_bits + 1)) < emin", "leading < emin", FAST),
    Mutant("reference: flush at the smallest normal number", "tensorcore_models/reference/ieee.py", "rounded.bit_length() - 1 + quantum < fmt.emin", "rounded.bit_length() - 1 + quantum <= fmt.emin", FAST),
    Mutant("x86 NaN: b before a", "tensorcore_models/_kernels/generic/generic_lanes.h", "mpg_first_nan(a[q], b[q * MPG_LANES + l])", "mpg_first_nan(b[q * MPG_LANES + l], a[q])", TWINS),
    Mutant("x86 NaN: the sum before c", "tensorcore_models/_kernels/generic/generic_lanes.h", "sum[l] = mpg_first_nan(x[l], y[l]);", "sum[l] = mpg_first_nan(y[l], x[l]);", TWINS),
    Mutant("chains: subnormal operands kept", "tensorcore_models/_kernels/chains/chains.h", "#define MPG_CHAIN_FLUSHING 0x9FC0u", "#define MPG_CHAIN_FLUSHING 0x9F80u", FAST),
    Mutant("chains: an empty lane adds nothing", "tensorcore_models/_kernels/chains/chains_tile.h", "for (int64_t lane = 0, k = start; lane < lanes; lane++) {", "for (int64_t lane = 0, k = start; lane < lanes && lane < count; lane++) {", FAST),
    Mutant("emulated AMX: flush at 2^-126", "tensorcore_models/_kernels/cpu_units/x86_emulated.h", "odd >= 0x1.ffffffp-127", "odd >= 0x1p-126", AMX),
    Mutant("emulated AMX: odd before even", "tensorcore_models/_kernels/cpu_units/x86_emulated.h", "mpg_emulated_add(even, odd)", "mpg_emulated_add(odd, even)", AMX),
    Mutant("sgemm: products of words in another order", "mpgemm/amx.py", 'get_method(model["method"]).products', 'get_method(model["method"]).products[::-1]', AMX),
    Mutant("sgemm: restart every 512", "mpgemm/_kernels/amx_sgemm.pyx", "job.block, job.plane = m, n, restart // SGEMM_DEPTH, 0", "job.block, job.plane = m, n, restart // SGEMM_DEPTH * 2, 0", AMX),
    Mutant("sgemm: words truncated", "mpgemm/_kernels/amx_sgemm.h", "(bits + 0x7FFFu + (bits >> 16 & 1u))", "(bits)", AMX),
    Mutant("sgemm: the last row of k kept from the slice before", "mpgemm/_kernels/amx_sgemm.h", "for (int64_t k = (depth + 1) / 2 * 2; k % SGEMM_DEPTH; k += 2)", "for (int64_t k = depth; 0; k += 2)", AMX),
    Mutant("sgemm: the guard sees no small numbers", "mpgemm/amx.py", "_SMALLEST_MAGNITUDE = 2.0**-102", "_SMALLEST_MAGNITUDE = 2.0**-120", AMX),
    Mutant("FP64 chain: ties away", "tensorcore_models/_kernels/generic/generic_lanes.h", "f.ties_only = error == MPG_RNA;", "f.ties_only = 0;", VECTOR_TESTS),
    Mutant("FP64 chain: second part of the error", "tensorcore_models/_kernels/generic/generic_fma.h", "error = rest + x2,", "error = rest,", VECTOR_TESTS),
    Mutant("reference: F + 1", FUSED, "largest - spec.fraction_bits, spec.alignment_rounding",
           "largest - spec.fraction_bits - 1, spec.alignment_rounding"),
    Mutant("reference: F - 1", FUSED, "largest - spec.fraction_bits, spec.alignment_rounding",
           "largest - spec.fraction_bits + 1, spec.alignment_rounding"),
    Mutant("reference: alignment to nearest", FUSED, "largest - spec.fraction_bits, spec.alignment_rounding",
           'largest - spec.fraction_bits, "rne"'),
    Mutant("reference: output to nearest", FUSED, "d_format, spec, spec.output_rounding, kept", 'd_format, spec, "rne", kept'),
    Mutant("reference: products normalised", FUSED, "if spec.normalised_products:", "if not spec.normalised_products:"),
    Mutant("reference: c late", FUSED, '[] if late else [c])', '[c] if late else [])'),
    Mutant("reference: block size", "tensorcore_models/reference/matrix.py", "step = accumulator.terms_per_step",
           "step = max(1, accumulator.terms_per_step // 2)"),
    Mutant("reference: CDNA3 rounds to zero", ROUND_DOWN, '"rz" if far else self.add_rounding', '"rz"'),
    Mutant("reference: GDFS F", GROUP_SUM, "self.exponent_floor) - self.fraction_bits\n", "self.exponent_floor) - self.fraction_bits + 1\n"),
    Mutant("reference: GPS tree becomes a chain", "tensorcore_models/families/pairwise.py", "middle = places // 2",
           "middle = places - 1"),
    Mutant("reference: GPS zeros keep their sign", "tensorcore_models/families/pairwise.py", "y._replace(negative=False) if y.is_zero", "y._replace(negative=False) if y != x", FAST),
    Mutant("reference: no alignment floor", "tensorcore_models/reference/aligned.py", "largest if floor is None else", "largest if True else"),
    Mutant("reference: GDFS groups that cancel take no part", GROUP_SUM, '"skip_zero_products": all(x.is_zero for x in products)', '"skip_zero_products": total == 0'),
    Mutant("reference: CDNA3 sum rounded once", ROUND_DOWN, "if self.sum_fraction_bits is not None and total:", "if False:"),
    Mutant("reference: VDPBF16PS order", "tensorcore_models/families/fma_chain.py", "(pair + 1, pair)", "(pair, pair + 1)"),
    Mutant("reference: FMA rounds to zero", "tensorcore_models/families/fma_chain.py",
           "d_format, self, self.rounding, flush", 'd_format, self, "rz", flush'),
    Mutant("catalogue: volta F", NVIDIA, '"volta": Architecture(\n        fraction_bits=23', '"volta": Architecture(\n        fraction_bits=24', ROWS),
    Mutant("catalogue: turing F", NVIDIA, '"turing": Architecture(\n        fraction_bits=24', '"turing": Architecture(\n        fraction_bits=25', ROWS),
    Mutant("catalogue: ampere F", NVIDIA, '"ampere": Architecture(\n        fraction_bits=24', '"ampere": Architecture(\n        fraction_bits=23', ROWS),
    Mutant("catalogue: hopper F", NVIDIA, '"hopper": Architecture(\n        fraction_bits=25', '"hopper": Architecture(\n        fraction_bits=24', ROWS),
    Mutant("catalogue: rtx_blackwell F", NVIDIA, '"rtx_blackwell": Architecture(\n        fraction_bits=25', '"rtx_blackwell": Architecture(\n        fraction_bits=26', ROWS),
    Mutant("catalogue: ampere N", NVIDIA, '_FOUR_AND_EIGHT = {"fp16": 8', '_FOUR_AND_EIGHT = {"fp16": 4', ROWS),
    Mutant("catalogue: hopper tf32 N", NVIDIA, '_SIXTEEN = {"fp16": 16, "bf16": 16, "tf32": 8}', '_SIXTEEN = {"fp16": 16, "bf16": 16, "tf32": 4}', ROWS),
    Mutant("catalogue: hopper floor", NVIDIA, '"fp16": -21},\n        sync=_SYNC, double=((16, 8, 16)', '"fp16": -20},\n        sync=_SYNC, double=((16, 8, 16)', ROWS),
    Mutant("catalogue: GDFS floor", NVIDIA, "GROUPED_FLOOR = -139", "GROUPED_FLOOR = -138", ROWS),
    Mutant("catalogue: turing m8n8k4 on a unit of its own", NVIDIA, 'units={_884: "volta"}', "units={}", ROWS),
    Mutant("catalogue: CDNA1 N", AMD, "        group, fraction_bits=None", "        group // 2, fraction_bits=None", ROWS),
    Mutant("rules: zero operands have exponents", "tensorcore_models/families/aligned.py", 'zero_operand: ZeroExponent = "skip"', 'zero_operand: ZeroExponent = "minus126"', ROWS),
    Mutant("rules: c = 0 has an exponent", "tensorcore_models/families/aligned.py", 'zero_c: ZeroExponent = "skip"', 'zero_c: ZeroExponent = "minus126"', ROWS),
    Mutant("catalogue: fp32 results to nearest", NVIDIA, '{"output_rounding": "rz", "output_fraction_bits"', '{"output_rounding": "rne", "output_fraction_bits"'),
    Mutant("catalogue: ada fp8 F", NVIDIA, "terms=16, fraction_bits=13", "terms=16, fraction_bits=14", ROWS),
    Mutant("catalogue: wgmma fp8 F", NVIDIA, "Narrow(fraction_bits=13", "Narrow(fraction_bits=14", ROWS),
    Mutant("catalogue: block-scaled N", NVIDIA, '_fda(arch, 32, "fp32"), evidence', '_fda(arch, 16, "fp32"), evidence', ROWS),
    Mutant("catalogue: CDNA2 group", AMD, "name, _pairwise(4, shape[2]))", "name, _pairwise(2, shape[2]))", ROWS),
    Mutant("catalogue: CDNA3 N", AMD, "FusedDotRoundDownAdd(min(8, shape[2]))", "FusedDotRoundDownAdd(min(4, shape[2]))"),
    Mutant("catalogue: CDNA3 fp8 N", AMD, "GroupFusedDotRoundDownAdd(16)", "GroupFusedDotRoundDownAdd(8)"),
    Mutant("fast: 32-bit lanes F + 1", "tensorcore_models/_kernels/narrow/narrow_avx512.h", "(t->fraction_bits + 254) << 23", "(t->fraction_bits + 255) << 23", FAST),
    Mutant("fast: AVX2 sums beyond 2^31", "tensorcore_models/_kernels/narrow/narrow_avx2.h", "        far = _mm256_movemask_ps(", "        far = 0 & _mm256_movemask_ps(", FAST),
    Mutant("fast: AVX2 fp16 results not to odd first", "tensorcore_models/_kernels/narrow/narrow_avx2.h", "_mm256_castps_si256(x[g]), inexact)", "_mm256_castps_si256(x[g]), zero)", FAST),
    Mutant("fast: 64-bit lanes end with another lane's count", "tensorcore_models/_kernels/wide/wide_avx512.h", "end[3] = _mm512_castsi512_pd(_mm512_shuffle_epi8(second, odd))", "end[3] = _mm512_castsi512_pd(_mm512_shuffle_epi8(second, even))", FAST),
    Mutant("fast: 64-bit lanes count one too few", "tensorcore_models/_kernels/wide/wide_avx512.h", "fraction_bits - 32768);", "fraction_bits - 32767);", FAST),
    Mutant("fast: 64-bit lanes add up outside once too rarely", "tensorcore_models/_kernels/wide/wide_avx512.h", "        if (apart && --left == 0) {", "        if (apart && --left == -1) {", FAST),
    Mutant("kernel: no alignment floor", KERNEL, "        largest = p->floor;\n    const int32_t unit", "        largest += 0;\n    const int32_t unit", TWINS),
    Mutant("kernel: GDFS zeros of both operands only", KERNEL, "zeros &= a[q] == 0 || b[q] == 0;", "zeros &= a[q] == 0 && b[q] == 0;", TWINS),
    Mutant("kernel: CDNA3 sum keeps a bit more", KERNEL, "- p->sum_fraction_bits;", "- p->sum_fraction_bits - 1;", TWINS),
    Mutant("vectors: CDNA3 sum keeps a bit more", VECTORS, "- (uint64_t)p->sum_fraction_bits;", "- (uint64_t)p->sum_fraction_bits - 1;", TWINS),
    Mutant("kernel: GPS addends flushed once only", "tensorcore_models/_kernels/generic/generic_lane_passes.h", "if (p->c_flush_passes && s % p->c_flush_passes == 0)", "if (p->c_flush_passes && s == 0)", FAST),
    Mutant("fast: GPS addends keep the sign of zero", "tensorcore_models/_kernels/pairwise/pairwise.h", "left == 0 && (q + group < length || !last) ? 0 : kept", "kept", FAST),
    Mutant("fast: exact sums rounded twice", "tensorcore_models/_kernels/pairwise/pairwise.h", ">> 63 & ~bits & 1;", ">> 63 & 0;", FAST),
    Mutant("fast: exact sums that are not exact stay", "tensorcore_models/_kernels/pairwise/pairwise.h", "(uint8_t)(lost[j] << 1 != 0)", "(uint8_t)0", FAST),
    Mutant("fast: 32-bit lanes one floor too low", "tensorcore_models/kernels/narrow.py", "dot.exponent_floor + 127)", "dot.exponent_floor + 126)", FAST),
    Mutant("fast: small addends without products are lost", "tensorcore_models/kernels/narrow.py", "result.redo |= tiny & (result.d == 0)", "redo |= False", FAST),
    Mutant("fast: subnormal addends align at their leading bit", "tensorcore_models/_kernels/wide/wide_avx512.h", "        if (careful)\n            own =", "        if (0)\n            own =", FAST),
    Mutant("fast: 64-bit lanes never careful", "tensorcore_models/_kernels/wide/wide_avx512.h", "== 0 ? 0 : MPG_REPEAT", "== 0 ? 0 : 0", FAST),
    Mutant("fast: CDNA3 sum rounded once", "tensorcore_models/_kernels/wide/wide_avx512.h", "total = _mm512_andnot_si512(cut,", "(void)_mm512_andnot_si512(cut,", FAST),
    Mutant("fast: CDNA3 sum rounded once, plain C", "tensorcore_models/_kernels/wide/wide_rows.h", "(UINT64_C(1) << (52 - t->sum_bits)) - 1", "0", FAST),
    Mutant("fast: bits of groups at the wrong place", "tensorcore_models/_kernels/groups/groups_avx512.h", "_mm512_set1_epi16((short)(2 << q))", "_mm512_set1_epi16((short)(1 << q))", FAST),
    Mutant("fast: groups without products take part", "tensorcore_models/_kernels/groups/groups.h", "((common | -common) >> 31)", "(~(common & 0))", FAST),
    Mutant("formats: fp6 and fp4 do not clamp", "tensorcore_models/formats/rows.py", 'return self.specials == "finite"', "return False", ("tests/tensorcore_models/test_rounding.py",)),
    Mutant("fast: group sums F - 1", "tensorcore_models/_kernels/groups/groups_avx512.h", "mpg_group_power(-t->fraction_bits) * 0x1.8p52", "mpg_group_power(1 - t->fraction_bits) * 0x1.8p52", FAST),
    Mutant("fast: exponents of the other tile", "tensorcore_models/_kernels/narrow/narrow_items.h", "(ea[other + k] & 0xFF00u)", "(ea[k] & 0xFF00u)", FAST),
    Mutant("chains: a pass at the wrong group", "tensorcore_models/_kernels/chains/chains_tile.h", "(p * job->groups + group) * MPG_CHAIN_ROWS", "(p + group) * MPG_CHAIN_ROWS", FAST),
    Mutant("chains: edge rows not written back", "tensorcore_models/_kernels/chains/chains_tile.h", "        memcpy(d + r * ldd, whole", "        if (r + 1 < rows) memcpy(d + r * ldd, whole", FAST),
    Mutant("chains: outside sums keep the inner one", "tensorcore_models/_kernels/chains/chains_tile.h", "sum[r][v] = every ? VECTOR_SET(0) :", "sum[r][v] =", FAST),
    Mutant("chains: NaN keeps its sign", "tensorcore_models/_kernels/chains/chains.h", "> 0x7F800000u ? (uint32_t)nan : bits", "> 0x7F800000u ? (uint32_t)nan | (bits & 0x80000000u) : bits", FAST),
    Mutant("chains: padding of the last panel", "tensorcore_models/_kernels/chains/chains.h", "for (int64_t left = columns * size; left > 0;", "for (int64_t left = columns * size; left >= bytes;", FAST),
    Mutant("chains: saturated results stay", "tensorcore_models/kernels/chains.py", "if again.any():", "if False:", FAST),
    Mutant("fast: chains twice as long", "tensorcore_models/kernels/narrow.py", "chain=every // self.task.terms)", "chain=2 * every // self.task.terms)", FAST),
    Mutant("fast: plain group order", "tensorcore_models/kernels/narrow.py", "for group in spec.group_order)", "for group in sorted(spec.group_order))", FAST),
    Mutant("bound: one addend too few", GROUP_SUM, "cut = (count + 1) * 2.0**-self.fraction_bits",
           "cut = count * 2.0**-self.fraction_bits / 2", BOUNDS),
    Mutant("bound: nothing lifts the alignment", "tensorcore_models/families/fused/bound.py", "(cut + more) * 2.0 ** min(floor, 1000)", "0.0", BOUNDS),
    Mutant("bound: scales have no exponents", FACTS, "found.exponents + factor.exponents, found.part", "found.exponents, found.part",
           BOUNDS),
    Mutant("bound: subnormal scales are normal", FACTS, "found.small | factor.small", "found.small", BOUNDS),
    Mutant("bound: group sums as large as their scales", GROUP_SUM, "(1 / (sums * ratio)[lifted])", "(1 / ratio[lifted])", BOUNDS),
    Mutant("bound: groups of zeros take no part", GROUP_SUM, "found = errors.top_exponent(top, part & zero)", "found = None", BOUNDS),
    Mutant("suites: Hawkeye's cancelling sets do not cancel", "tensorcore_models/probing/suites/hawkeye.py", "minus, twice = -large, 2 * large", "minus, twice = -large, 3 * large", SUITES),
    Mutant("suites: fasi's subnormal result", "tensorcore_models/probing/suites/fasi.py", "-normal / 2 if difference", "-normal / 4 if difference", SUITES),
    Mutant("suites: fasi's test of hardware", "tensorcore_models/probing/suites/fasi.py", "tiny = 3 * smallest", "tiny = 2 * smallest", SUITES),
    Mutant("suites: GNFT's carries", "tensorcore_models/probing/suites/gnft.py", "return str(rows[right - 1][2])", "return str(rows[right - 1][2] + 1)", SUITES),
    Mutant("suites: valpey's table 5", "tensorcore_models/probing/suites/valpey.py", "-7 if printed else 7", "-7 if printed else 6", SUITES),
    Mutant("terms of methods: a word scaled the other way", "tensorcore_models/probing/formal/methods.py", "z.number(rest.point - j * scale)", "z.number(rest.point + j * scale)", BEATING),
    Mutant("terms of methods: a word taken off unscaled", "tensorcore_models/probing/formal/methods.py", "z.minus(word.align, z.number(j * scale))", "word.align", BEATING),
    Mutant("terms of methods: sums not scaled", "mpgemm/bounds/beating.py", "align=z.plus(x.align, z.number(exponent))", "align=x.align", BEATING),
    Mutant("ascend: core 0 is the first of the order", "ascend/kernels/grid.py", "(core + self._busiest) % self.used_cores", "core", SEARCH),
    Mutant("ascend: nothing bounds the memory", "ascend/pipes/simulate.py", "max(engine.end_time(), floor)", "engine.end_time()", SEARCH),
    Mutant("ascend: a stay's latency for each tile", "ascend/estimate.py", "return streamed + filling", "return streamed + tiles * filling", SEARCH),
    Mutant("ascend: k blocks all full", "ascend/estimate.py", "self.length / (self.blocks * c.bk)", "np.ones_like(self.length)", SEARCH),
    Mutant("ascend: bands never turn", "ascend/grid.py", "if self.turns:", "if False:", GRID),
    Mutant("ascend: a tile dealt twice", "ascend/kernels/grid.py", "each[first :: self.cores]", "each[first // 2 :: self.cores]", GRID),
    Mutant("ascend: all of L2 keeps what turns", "ascend/memory.py", "(l2_bytes - 2 * kept)", "l2_bytes", BYTES),
    Mutant("ascend: loops of other depths alike", "ascend/pipes/build.py", "key = (*way[group], stay._replace(slice=0), depth)", "key = (*way[group], stay._replace(slice=0), of_slice[0][0][1])", BYTES),
    Mutant("terms of methods: k not padded", "mpgemm/bounds/beating.py", "[zero] * padding", "[zero] * 0", BEATING),
    Mutant("gaudi: subnormal fp8 keep their exponents", "tensorcore_models/kernels/narrow.py", "a_operand=Operand.of(a, via)", "a_operand=Operand.of(a)", GAUDI),
    Mutant("gaudi: fp8 taken as given beyond the lanes", "tensorcore_models/kernels/narrow.py", "if fmt.emax > 15 or lowest < -16", "if fmt.emax > 99 or lowest < -99", GAUDI),
    Mutant("gaudi: the last +0 keeps -0", "tensorcore_models/engines/rollup.py", "np.where(negative_zeros, 0, x)", "np.where(negative_zeros, x, x)", GAUDI),
    Mutant("gaudi: flushes forget the sign", "tensorcore_models/families/converted/integers.py", "word(0xFFFF), word(fmt.sign_bit))", "word(0xFFFF), word(0))", GAUDI),
    Mutant("riscv: c added to nearest", "tensorcore_models/catalogue/riscv.py", 'late_rounding="ro"', 'late_rounding="rne"', RISCV),
    Mutant("arm: EBF as without", "tensorcore_models/catalogue/arm.py", "odd, extended = PairRoundOddSum(), FUSED_PAIR", "odd, extended = PairRoundOddSum(), PairRoundOddSum()", ARM),
    Mutant("arm: pairs rounded to odd", "tensorcore_models/catalogue/arm.py", 'c_position="late", output_rounding="rne"', 'c_position="late", output_rounding="ro"', ARM),
    Mutant("arm: LSCALE the other way", "tensorcore_models/families/scaled_dot.py", "bias=fmt.bias + self.scale", "bias=fmt.bias - self.scale", ARM),
    Mutant("arm: OSM holds nothing", "tensorcore_models/families/scaled_dot.py", "if self.saturate and overflow else", "if self.saturate and not overflow else", ARM),
    Mutant("qemu: b by rows", "tensorcore_models/hardware/cpu/qemu.py", "b.transpose(0, 3, 1, 4, 2)", "b.transpose(0, 3, 1, 2, 4)", QEMU),
    Mutant("qemu: a and b of an outer product change places", "tensorcore_models/hardware/cpu/arm_steps.c", 'OUTER("fmopa za0.s, p0/m, p0/m, z0.h, z1.h");', 'OUTER("fmopa za0.s, p0/m, p0/m, z1.h, z0.h");', QEMU),
    Mutant("wormhole: phases 1 and 2 change places", "tensorcore_models/families/fidelity.py", "self.phase >> (1 - side) & 1", "self.phase >> side & 1", WORMHOLE),
    Mutant("wormhole: subnormal numbers are kept", "tensorcore_models/families/fidelity.py", "            significand = 0\n", "            significand |= 0\n", WORMHOLE),
    Mutant("wormhole: nothing is left to other phases", "tensorcore_models/families/fidelity.py", "2.0 ** (1 - self.leading_b) if self.phase == 0 else 1.0", "2.0 ** (1 - self.leading_b) if self.phase == 0 else 0.0", WORMHOLE),
    Mutant("identify: steps end as a GEMM does", "tensorcore_models/probing/identify/box.py", "dataclasses.replace(unit, rollup=None)", "unit", IDENTIFY),
    Mutant("identify: nothing but zeros is never asked", "tensorcore_models/probing/identify/inputs.py", "    _zeros_alone(batch, interface, rng)\n", "", IDENTIFY),
    Mutant("identify: matrices may differ", "tensorcore_models/probing/identify/challenge.py", "                _refuse_other_matrices(box, spec, log, found)\n", "", IDENTIFY),
)  # fmt: skip


def copy_tree(target: Path) -> None:
    """The files git knows, as they are in the working tree, and the compiled kernels beside them."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    built = [
        str(path.relative_to(ROOT))
        for package in ("tensorcore_models", "ascend", "mpgemm")
        for pattern in ("*.so", "*.c")  # with the C beside them only the mutated kernel is built again
        for path in (ROOT / package / "_kernels").rglob(pattern)
    ]
    for name in [n for n in names if n] + built:
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def apply(mutant: Mutant | None, tree: Path) -> None:
    if mutant is None:
        return
    path = tree / mutant.path
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} occurs {text.count(mutant.old)} times in {mutant.path}")
    path.write_text(text.replace(mutant.old, mutant.new))


def survives(mutant: Mutant | None, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass in spite of the fault; with None, whether they pass without any."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        apply(mutant, tree)
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        if mutant is not None and "_kernels" in mutant.path:
            build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
            subprocess.run(build, cwd=tree, env=environment, check=True, capture_output=True)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(
                f"{mutant and mutant.name}: the tests did not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants whose name holds this word")
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if args.only in m.name]
    if args.list:
        print("\n".join(m.name for m in chosen))
        return 0
    for tests in {mutant.tests for mutant in chosen}:  # a test that fails anyway would catch everything
        if not survives(None, tests):
            raise SystemExit(f"the tests fail without any fault: {', '.join(tests)}")
    survivors = []
    for mutant in chosen:
        alive = survives(mutant, mutant.tests)
        survivors += [mutant.name] * alive
        print(f"{'SURVIVED' if alive else 'caught':9} {mutant.name}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
