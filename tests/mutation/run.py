# ruff: noqa: E501  (one mutant a row)
"""Breaks the code on purpose and sees the suite catch it.

    python tests/mutation/run.py [--only WORD] [--jobs N] [--list]

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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from places import changed

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """One deliberate fault: within the function, macro or constant `place` of `path` the single `old` becomes `new`."""

    name: str
    path: str
    place: str
    old: str
    new: str
    tests: tuple[str, ...] = ("tests/tensorcore_models",)


FUSED = "tensorcore_models/families/fused/steps.py"
NUMBERS = "tensorcore_models/arithmetic/numbers.py"
SUMS = "tensorcore_models/arithmetic/sums.py"
ROUND_DOWN = "tensorcore_models/families/round_down/specification.py"
GROUP_SUM = "tensorcore_models/families/group_sum.py"
DERIVED = "tensorcore_models/aspects/derived_errors.py"
NVIDIA = "tensorcore_models/catalogue/nvidia.py"
AMD = "tensorcore_models/catalogue/amd.py"

KERNEL = "tensorcore_models/_kernels/generic/generic_fused.h"
VECTORS = "tensorcore_models/_kernels/generic/generic_vector_sums.h"
VECTOR_TESTS = ("tests/tensorcore_models/test_kernels_vectors.py",)
TWINS = ("tests/tensorcore_models/test_kernels_twins.py", "tests/tensorcore_models/test_kernels_hardware.py")
PROGRAMS = ("tests/tensorcore_models/test_programs.py",)
FACTS = "mpgemm/bounds/operand_facts.py"
MISREAD = ("tests/testing/test_misread_operands.py",)
NAMED = ("tests/testing/test_named_faults.py",)
JUDGED = ("tests/testing/test_judged_conclusions.py",)
RECORDED = ("tests/frameworks/test_torch_recorder.py",)
ATTENTION = ("tests/tensorcore_models/test_libraries_attention.py",)
MODEL = ("tests/frameworks/test_torch_libraries.py",)
VERDICTS = ("tests/mpgemm/test_spread.py", "tests/mpgemm/test_verdict.py", "tests/mpgemm/test_comparison.py")
CONDITION = ("tests/mpgemm/test_conditioning.py",)
LIKELY = ("tests/mpgemm/test_probabilistic.py",)
WATCHED = ("tests/mpgemm/test_watching.py",)
NODES = ("tests/mpgemm/test_derived_errors.py",)
BOUNDS = ("tests/mpgemm/test_scaled_bounds.py", "tests/mpgemm/test_bounds.py")

COMPILED = ("tests/tensorcore_models/test_compiled_kernels.py",)
AMX = ("tests/mpgemm/test_amx.py", "tests/tensorcore_models/test_cpu_engines.py")
#: What notices a wrong row: hand-derived vectors, published rows, recordings.
ROWS = (
    *(
        f"tests/tensorcore_models/test_{name}.py"
        for name in ("catalogue", "recorded_gpus", "worked_examples", "kernels_hardware")
    ),
    "--deselect=tests/tensorcore_models/test_catalogue.py::test_the_generated_page_is_current",  # would notice any change
)
FAST = tuple(
    f"tests/tensorcore_models/test_{name}.py"
    for name in ("fast_kernels", "fast_kernels_ends", "fast_chains", "fast_groups", "promotion")
)
OPERATIONS = ("tests/tensorcore_models/test_operations.py",)
EDGES = ("tests/tensorcore_models/test_edges.py",)
LANES = ("tests/tensorcore_models/test_fast_lanes_of_32_bits.py",)

SUITES = ("tests/tensorcore_models/test_suites.py",)
BEATING = ("tests/mpgemm/test_beating.py",)
SEARCH, GRID = ("tests/ascend/test_search.py",), ("tests/ascend/test_grid.py",)
RULES = ("tests/ascend/test_tiling_rules.py",)
TIME = ("tests/ascend/test_time_model.py",)
WIDENED = ("tests/ascend/test_widened_weights.py",)
FIT = ("tests/ascend/test_evidence.py", "-kfit or rows")
EMIT = ("tests/ascend/test_emit.py", "-mnot slow", "-kplanted or the_plan or record")
BYTES = ("tests/ascend/test_memory.py", "tests/ascend/test_simulate.py")
GAUDI, RISCV, ARM, WORMHOLE = (
    (f"tests/tensorcore_models/test_{name}.py",) for name in ("gaudi", "riscv", "arm", "tenstorrent")
)
REDUCTIONS = ("tests/tensorcore_models/test_compiled_instructions.py", "-kreductions")
QEMU = ("tests/tensorcore_models/test_arm_emulated.py",)
AMD_MACHINE = (
    "tests/tensorcore_models/test_compiled_amd_instructions.py",
    "tests/tensorcore_models/test_compiled_amd_refusals.py",
)
GPU_UNITS = ("tests/gpu/test_units_stored.py",)
IDENTIFY = ("tests/tensorcore_models/test_identify_boxes.py",)
FUNCTIONS = ("tests/functions/test_special_functions.py", "-kplain or kind or sines")

MUTANTS = (
    Mutant("PTX: the rows of ldmatrix are not turned", "tensorcore_models/compiled/ptx/movement.py", "build_matrix_load", "if transposed:", "if not transposed:", COMPILED),
    Mutant("PTX: a reduction of numbers always sees a NaN", "tensorcore_models/compiled/ptx/warps.py", "_reduced_numbers", "if nan_wins else np.uint32", "if True else np.uint32", REDUCTIONS),
    Mutant("PTX: lanes of every mask are reduced together", "tensorcore_models/compiled/ptx/warps.py", "_groups", "active & (masks == each)", "active", REDUCTIONS),
    Mutant("AMD: a half that nobody wrote is read", "tensorcore_models/compiled/amdgcn/vector_operands.py", "VectorTarget._write_part", "absent & ~mask", "absent & 0", AMD_MACHINE),
    Mutant("kernels: room of words in memory is that of elements", "mpgemm/kernels/configurations.py", "configurations", "fits(form, row, target, split)", "fits(form, row, target)", ("tests/kernels/test_plans.py", "-kestimated")),
    Mutant("parts of k: many rows pay what they may not", "mpgemm/recovery/parts.py", "parts_of", "2 * parts * LEAST_PRODUCTS", "parts * LEAST_PRODUCTS // 2", ("tests/kernels/test_counted.py",)),
    Mutant("PTX: the swizzle takes other bits of an address", "tensorcore_models/compiled/ptx/shared_tiles.py", "swizzled", "addresses >> 7", "addresses >> 8", COMPILED),
    Mutant("PTX: a wait for copies orders one group more", "tensorcore_models/compiled/races.py", "RaceChecks._waited", "- 1 - left", "- left", ("tests/tensorcore_models/test_compiled_races.py",)),
    Mutant("PTX: products on tensor memory are in no order", "tensorcore_models/compiled/races.py", "RaceChecks._unordered", "agents <= self.beside", "agents < self.beside", ("tests/tensorcore_models/test_compiled_races.py",)),
    Mutant("PTX: a wgmma sees registers without a fence", "tensorcore_models/compiled/ptx/pending.py", "PendingRegisters.written", "= True", "= False", ("tests/tensorcore_models/test_compiled_races.py",)),
    Mutant("PTX: flushing changes no sum", "tensorcore_models/compiled/normal_form.py", "Forms._applied", ">= _NORMAL", ">= _SMALLEST", ("tests/tensorcore_models/test_compiled_compare.py",)),
    Mutant("PTX: bits that nobody wrote are zeros once they moved", "tensorcore_models/compiled/ptx/unwritten.py", "_filled", "value | hole", "value & ~hole", ("tests/tensorcore_models/test_compiled_unwritten.py",)),
    Mutant("PTX: the halves of a pair share what nobody wrote", "tensorcore_models/compiled/ptx/unwritten.py", "_parts", "half * upper", "0 * upper", ("tests/tensorcore_models/test_compiled_unwritten.py",)),
    Mutant("PTX: clocks of warps order blocks, too", "tensorcore_models/compiled/races.py", "RaceChecks._disordered", "(blocks == mine) & known", "known", ("tests/tensorcore_models/test_compiled_global_races.py",)),
    Mutant("PTX: one block that meets is enough", "tensorcore_models/compiled/global_writes.py", "GlobalWrites.met", "& (self.exchanged[blocks] > stamps)", "", ("tests/tensorcore_models/test_compiled_global_races.py",)),
    Mutant("PTX: a comparison may write a constant", "tensorcore_models/compiled/ptx/program.py", "_writes_registers", "Register | Sink)", "Register | Sink | Immediate)", ("tests/tensorcore_models/test_compiled_refusals.py",)),
    Mutant("predict: a kernel multiplies whatever is given", "mpgemm/cli/common/kernel_options.py", "kernel_recipe", "taken != [fmt, fmt]", "not taken", ("tests/mpgemm/test_library_commands.py",)),
    Mutant("PTX: terms of products have no negative zeros", "tensorcore_models/compiled/solver_terms.py", "NodeTerms._operation", "_nothing(product.negative)", "_nothing(t.FALSE)", ("tests/tensorcore_models/test_compiled_solving.py",)),
    Mutant("AMD: clamped sums of integers wrap", "tensorcore_models/compiled/isa/operations.py", "saturated", "np.clip(exact, limits.min, limits.max)", "exact", AMD_MACHINE),
    Mutant("AMD: a mask is cleared by lanes that do not run", "tensorcore_models/compiled/amdgcn/scalar.py", "_cleared", "absent & kept", "np.uint32(0) & kept", AMD_MACHINE),
    Mutant("AMD: a lane keeps what was never written", "tensorcore_models/compiled/amdgcn/waves.py", "build_write", "if absent is not None:\n            machine.vectors", "if False:\n            machine.vectors", AMD_MACHINE),
    Mutant("units on a GPU: a flagged tile stays", "tensorcore_models/gpu/products.py", "DeviceUnit.run", "column in on_cpu:", "column in on_cpu[:-1]:", GPU_UNITS),
    Mutant("units on a GPU: parts of A have a bit more", "tensorcore_models/gpu/phases.py", "_parts", "& -2", "& -1", GPU_UNITS),
    Mutant("units on a GPU: the last products of phases are left out", "tensorcore_models/gpu/phases.py", "run_phases", "-(-(k % plan.step) // STEP)", "k % plan.step // STEP", GPU_UNITS),
    Mutant("units on a GPU: what is subnormal is not flushed", "tensorcore_models/gpu/conversions.py", "converted", "if spec.flush:", "if False:", GPU_UNITS),
    Mutant("units on a GPU: zeros have their scale's exponent", "tensorcore_models/gpu/groups.py", "_operand", "(values != 0)", "(values == values)", GPU_UNITS),
    Mutant("units on a GPU: zeros have an exponent", "tensorcore_models/gpu/aligned.py", "_operand", "values == 0, _LOWEST", "values != values, _LOWEST", GPU_UNITS),
    Mutant("units on a GPU: a tile's addend is another's", "tensorcore_models/gpu/products.py", "DeviceUnit.run", "else c[batch][here]", "else c[0][:rows, :columns]", GPU_UNITS),
    Mutant("kernel: F + 1", KERNEL, "NAME(sum_truncated)", "p->fraction_bits;", "p->fraction_bits - 1;", TWINS),
    Mutant("kernel: F - 1", KERNEL, "NAME(sum_truncated)", "p->fraction_bits;", "p->fraction_bits + 1;", TWINS),
    Mutant("kernel: alignment always truncates", "tensorcore_models/_kernels/generic/generic_ieee.h", "NAME(aligned)", "rounding != MPG_RZ", "0", TWINS),
    Mutant("kernel: products normalised", KERNEL, "NAME(gather)", "if (p->normalised", "if (!p->normalised", TWINS),
    Mutant("kernel: ties to even become ties away", "tensorcore_models/_kernels/generic/generic_number.h", "MPG_AWAY", ") + (odd) > (half", ") >= (half", TWINS),
    Mutant("kernel: ties down add to a rest of all bits", "tensorcore_models/_kernels/generic/generic_number.h", "MPG_AWAY", "(rest) > (half) - !!(negative)", "(rest) + !!(negative) > (half)", TWINS),
    Mutant("kernel: block size", "tensorcore_models/families/interleaved.py", "InterleavedDotAdd.plan_fields", "self.terms_per_step,", "max(1, self.terms_per_step // 2),", TWINS),
    Mutant("kernel: c late", "tensorcore_models/families/fused/lowering.py", '_C_POSITIONS["late"]', "1", "0", TWINS),
    Mutant("kernel: CDNA3 rounds to zero", KERNEL, "NAME(round_down)", "far ? MPG_RZ : p->add_rounding", "MPG_RZ", TWINS),
    Mutant("vectors: products a place too far down", VECTORS, "W_(sum_global)", ".exponent + (uint64_t", ".exponent - 1 + (uint64_t", TWINS),
    Mutant("vectors: products a place too far up", VECTORS, "W_(sum_global)", "exponent + (uint64_t)(", "exponent + 1 + (uint64_t)(", TWINS),
    Mutant("vectors: ties away become ties to even", VECTORS, "W_(cut)", "rounding == MPG_RNE ?", "rounding != MPG_LOSSLESS ?", TWINS),
    Mutant("vectors: nothing is redone", VECTORS, "W_(row)", "a_special || b_special || V_(lanes)(redo)", "0", TWINS),
    Mutant("vectors: exact sums may lose bits", VECTORS, "W_(cut)", "redo |= inexact", "redo &= inexact", VECTOR_TESTS),
    Mutant("vectors: carry between words lost", "tensorcore_models/_kernels/generic/generic_vector_words.h", "W_(add)", "high - V_(less)(low, x.low)", "high", TWINS),
    Mutant("vectors: output ties", "tensorcore_models/_kernels/generic/generic_vector_codes.h", "V_(encode)", "& v->odd)", "& 0)", TWINS),
    Mutant("programs: any factor is zero where an operand takes no part", "tensorcore_models/arithmetic/recorder.py", "PassRecorder._zero_without", "if x.at == zero[0].at:", "if True:", PROGRAMS),
    Mutant("programs: a sum is above its addends by the most", "tensorcore_models/arithmetic/recorder.py", "PassRecorder.add", "least + operations.low(other)", "least + operations.high(other)", PROGRAMS),
    Mutant("programs: nothing is left out", "tensorcore_models/arithmetic/recorder.py", "PassRecorder.set_apart", "self.seldom.add(condition.at)", "pass", PROGRAMS),
    Mutant("programs: products that lie unevenly are a run", "tensorcore_models/kernels/programs.py", "_Line._run", "step not in (None, between)", "False", PROGRAMS),
    Mutant("programs: ties to odd become ties to even", "tensorcore_models/_kernels/programs/programs_operations.h", "V_(rounded)", "(~V_(shr)(x, n) & unit)", "(V_(shr)(x, n) & unit)", PROGRAMS),
    Mutant("programs: shifts take the last bits of their places", "tensorcore_models/_kernels/programs/programs_operations.h", "CAPPED", "V_(min_signed)(places, V_(all)(63))", "(places & 63)", PROGRAMS),
    Mutant("addend: decides beside overflowing products", "tensorcore_models/_kernels/generic/generic_pass.h", "mpg_special_addends_stay", ") && !p->has_limit", ")", VECTOR_TESTS),
    Mutant("addend: decides beside specials", "tensorcore_models/_kernels/generic/generic_pass.h", "mpg_deciding_addend", "(mpg_special_addends_stay(p) && !special", "mpg_special_addends_stay(p", VECTOR_TESTS),
    Mutant("addend: decides before a late addition", "tensorcore_models/_kernels/generic/generic_pass.h", "mpg_special_addends_stay", "mpg_adds_late(p) && !", "", VECTOR_TESTS),
    Mutant("addend: a late NaN by the rule of the fused sum", "tensorcore_models/_kernels/generic/generic_pass.h", "mpg_pass_of_panel", "mpg_adds_late(p) ? &p->late : &", "&", TWINS),
    Mutant("pack: specials of a panel's later vectors", "tensorcore_models/_kernels/generic/generic_vector_pack.h", "V_(pack_position)", "special) << l;", "special);", TWINS),
    Mutant("pack: signs of B", "tensorcore_models/_kernels/generic/generic_vector_pack.h", "V_(pack_position)", "(kept ^ x.negative) - x.negative", "kept", TWINS),
    Mutant("flush: by the rounded subnormal number", "tensorcore_models/_kernels/generic/generic_number.h", "mpg_encode_number", "+ (int64_t)(kept >> (r->kept_bits + 1)) <", "<", FAST),
    Mutant("reference: flush at the smallest normal number", SUMS, "_is_tiny", "carry < fmt.", "carry <= fmt.", FAST),
    Mutant("x86 NaN: b before a", "tensorcore_models/_kernels/generic/generic_lanes.h", "mpg_lanes_nan_of_chain", "a[q], b[q * MPG_LANES + l", "b[q * MPG_LANES + l], a[q", TWINS),
    Mutant("x86 NaN: the sum before c", "tensorcore_models/_kernels/generic/generic_lanes.h", "mpg_lanes_nan_of_sum", "x[l], y[", "y[l], x[", TWINS),
    Mutant("chains: subnormal operands kept", "tensorcore_models/_kernels/chains/chains.h", "MPG_CHAIN_FLUSHING", "MPG_CHAIN_FLUSHING 0x9FC0u", "MPG_CHAIN_FLUSHING 0x9F80u", FAST),
    Mutant("chains: an empty lane adds nothing", "tensorcore_models/_kernels/chains/chains_tile.h", "CHAIN_NAME(run_lanes)", "< lanes; lane", "< lanes && lane < count; lane", FAST),
    Mutant("emulated AMX: flush at 2^-126", "tensorcore_models/_kernels/cpu_units/x86_emulated.h", "mpg_emulated_sum", "= 0x1.ffffffp-127", "= 0x1p-126", AMX),
    Mutant("emulated AMX: odd before even", "tensorcore_models/_kernels/cpu_units/x86_emulated.h", "mpg_emulated_tile_dpbf16ps", "even, odd", "odd, even", AMX),
    Mutant("sgemm: products of words in another order", "mpgemm/amx.py", "_on_words", 'method"]).products', 'method"]).products[::-1]', AMX),
    Mutant("sgemm: restart every 512", "mpgemm/_kernels/amx_sgemm.pyx", "multiply_words", "/ SGEMM_DEPTH, 0", "/ SGEMM_DEPTH * 2, 0", AMX),
    Mutant("sgemm: words truncated", "mpgemm/_kernels/amx_sgemm.h", "sgemm_rounded", "bits + 0x7FFFu + (bits >> 16 & 1u))", "bits)", AMX),
    Mutant("sgemm: the last row of k kept from the slice before", "mpgemm/_kernels/amx_sgemm.h", "sgemm_pack_b_body", "(depth + 1) / 2 * 2; k % SGEMM_DEPTH", "depth; 0", AMX),
    Mutant("sgemm: the guard sees no small numbers", "mpgemm/amx.py", "_SMALLEST_MAGNITUDE", ".0**-102", ".0**-120", AMX),
    Mutant("FP64 chain: ties away", "tensorcore_models/_kernels/generic/generic_lanes.h", "mpg_lane_rule_of", "error == MPG_RNA;", "0;", VECTOR_TESTS),
    Mutant("FP64 chain: second part of the error", "tensorcore_models/_kernels/generic/generic_fma.h", "mpg_lanes_fma_exact", "rest + x2,", "rest,", VECTOR_TESTS),
    Mutant("spread: an interval of one seed's width", "mpgemm/experiments/spread.py", "interval_of", "deviation / math.sqrt(x.size)", "deviation", VERDICTS),
    Mutant("spread: normal quantiles", "mpgemm/experiments/spread.py", "student_quantile", "math.sqrt(freedom) * math.tan(high)", "1.96", VERDICTS),
    Mutant("verdict: nothing is borderline", "mpgemm/experiments/standing.py", "standing", "< max(margin, chance)", "< 0", VERDICTS),
    Mutant("verdict: seeds are not paired", "mpgemm/experiments/standing.py", "differences_of", "theirs[case], floor", "min(theirs.values()), floor", VERDICTS),
    Mutant("baseline: NumPy's product", "mpgemm/experiments/methods.py", "fp32_baseline", 'ieee_engine("fp32").gemm(as_fp32(a), as_fp32(b), promote_every=FP32_CHAIN)', "native_fp32(a, b)", VERDICTS),
    Mutant("condition: the result's norm forgotten", "mpgemm/exact/conditioning.py", "Conditioning.of", "norms[0] / norms[1]", "norms[0]", CONDITION),
    Mutant("condition: safe without a digit", "mpgemm/experiments/slice_advice.py", "SliceAdvice._sentence", "if bits < DIGIT", "if bits < -DIGIT", CONDITION),
    Mutant("condition: a relative target over |A||B|", "mpgemm/experiments/slice_advice.py", "_Goal.__init__", "np.abs(self.values) if relative else self.sizes", "self.sizes", CONDITION),
    Mutant("likely bound: no bias", "mpgemm/bounds/probabilistic.py", "step_sums", "r.unit / 2", "r.unit / 20", LIKELY),
    Mutant("likely bound: no deviation", "mpgemm/bounds/probabilistic.py", "step_sums", "r.unit**2", "r.unit**2 / 900", LIKELY),
    Mutant("likely bound: a rounding less is stated", DERIVED, "_times", "rounding.number * count", "(rounding.number * count - 1)", LIKELY),
    Mutant("reference: F + 1", SUMS, "sum_aligned", ".fraction_bits, spec", ".fraction_bits - 1, spec"),
    Mutant("reference: F - 1", SUMS, "sum_aligned", ".fraction_bits, spec", ".fraction_bits + 1, spec"),
    Mutant("reference: alignment to nearest", SUMS, "sum_aligned", "spec.alignment_rounding", '"rne"'),
    Mutant("reference: output to nearest", SUMS, "rounded_sum", "spec.output_rounding", '"rne"'),
    Mutant("reference: products normalised", FUSED, "step", "if spec.normalised_products", "if not spec.normalised_products"),
    Mutant("reference: c late", FUSED, "step", "] if late else [c", "c] if late else ["),
    Mutant("reference: block size", "tensorcore_models/reference/matrix.py", "dot_bits", "= accumulator.terms_per_step", "= max(1, accumulator.terms_per_step // 2)"),
    Mutant("reference: CDNA3 rounds to zero", ROUND_DOWN, "FusedDotRoundDownAdd._finite", "to_zero, kept)", "to_zero, to_zero)"),
    Mutant("reference: GDFS F", GROUP_SUM, "GroupDotFusedSum._finite", "self.exponent_floor), self.fraction_bits", "self.exponent_floor), self.fraction_bits + 1"),
    Mutant("reference: GPS tree becomes a chain", "tensorcore_models/families/pairwise.py", "GroupPairwiseSum._tree", "places // 2", "places - 1"),
    Mutant("reference: GPS zeros keep their sign", NUMBERS, "positive_zero", "no(number.is_zero)", "no(number.is_zero ^ number.is_zero)", FAST),
    Mutant("reference: no alignment floor", NUMBERS, "largest_exponent", "floor is None", "True"),
    Mutant("reference: GDFS groups that cancel take no part", GROUP_SUM, "GroupDotFusedSum._finite", "z.every(x.is_zero for x in products)", "group.is_zero"),
    Mutant("reference: CDNA3 sum rounded once", ROUND_DOWN, "FusedDotRoundDownAdd._finite", "self.sum_fraction_bits is not None", "False"),
    Mutant("reference: VDPBF16PS order", "tensorcore_models/families/fma_chain.py", "SequentialFMA._order", "pair + 1, pair)", "pair, pair + 1)"),
    Mutant("reference: FMA rounds to zero", "tensorcore_models/families/fma_chain.py", "SequentialFMA.pass_bits", "self.rounding", '"rz"'),
    Mutant("catalogue: volta F", NVIDIA, 'ARCHITECTURES["volta"]', "fraction_bits=23", "fraction_bits=24", ROWS),
    Mutant("catalogue: turing F", NVIDIA, 'ARCHITECTURES["turing"]', "fraction_bits=24", "fraction_bits=25", ROWS),
    Mutant("catalogue: ampere F", NVIDIA, 'ARCHITECTURES["ampere"]', "fraction_bits=24", "fraction_bits=23", ROWS),
    Mutant("catalogue: hopper F", NVIDIA, 'ARCHITECTURES["hopper"]', "fraction_bits=25", "fraction_bits=24", ROWS),
    Mutant("catalogue: rtx_blackwell F", NVIDIA, 'ARCHITECTURES["rtx_blackwell"]', "fraction_bits=25", "fraction_bits=26", ROWS),
    Mutant("catalogue: ampere N", NVIDIA, '_FOUR_AND_EIGHT["fp16"]', "8", "4", ROWS),
    Mutant("catalogue: hopper tf32 N", NVIDIA, '_SIXTEEN["tf32"]', "8", "4", ROWS),
    Mutant("catalogue: hopper floor", NVIDIA, 'ARCHITECTURES["hopper"]', "-21", "-20", ROWS),
    Mutant("catalogue: GDFS floor", NVIDIA, "GROUPED_FLOOR", "GROUPED_FLOOR = -139", "GROUPED_FLOOR = -138", ROWS),
    Mutant("catalogue: turing m8n8k4 on a unit of its own", NVIDIA, 'ARCHITECTURES["turing"]', '_884: "volta"', "", ROWS),
    Mutant("catalogue: CDNA1 N", AMD, "_exact", "group,", "group // 2,", ROWS),
    Mutant("rules: zero operands have exponents", "tensorcore_models/families/aligned.py", "AlignedSum.zero_operand", 'ZeroExponent = "skip"', 'ZeroExponent = "minus126"', ROWS),
    Mutant("rules: c = 0 has an exponent", "tensorcore_models/families/aligned.py", "AlignedSum.zero_c", 'ZeroExponent = "skip"', 'ZeroExponent = "minus126"', ROWS),
    Mutant("catalogue: fp32 results to nearest", NVIDIA, "output", '": "rz", "output_fraction_bits', '": "rne", "output_fraction_bits'),
    Mutant("catalogue: ada fp8 F", NVIDIA, "_ADA_FP8", "fraction_bits=13", "fraction_bits=14", ROWS),
    Mutant("catalogue: wgmma fp8 F", NVIDIA, "_WGMMA", "fraction_bits=13", "fraction_bits=14", ROWS),
    Mutant("catalogue: block-scaled N", NVIDIA, "_block_scaled_rows", 'arch, 32, "', 'arch, 16, "', ROWS),
    Mutant("catalogue: CDNA2 group", AMD, "_cdna1_and_2_rows", "partial(_pairwise, 4)", "partial(_pairwise, 2)", ROWS),
    Mutant("catalogue: CDNA3 N", AMD, "_cdna3_rows", "min(8, k", "min(4, k"),
    Mutant("catalogue: CDNA3 fp8 N", AMD, "_cdna3_rows", "GroupFusedDotRoundDownAdd(16)", "GroupFusedDotRoundDownAdd(8)"),
    Mutant("fast: 32-bit lanes F + 1", "tensorcore_models/_kernels/common/operations_avx512.h", "mpg_scale_of_raw_avx512", "fraction_bits + 254) <<", "fraction_bits + 255) <<", FAST),
    Mutant("fast: sums beyond 2^31", "tensorcore_models/_kernels/narrow/narrow_lanes.h", "OP(narrow_step)", "far = wide_sum && ", "far = 0 && ", FAST),
    Mutant("fast: fp16 results not to odd first", "tensorcore_models/_kernels/narrow/narrow_lanes.h", "OP(narrow_step)", "x = OP(odd)(x, total);", "", FAST),
    Mutant("operations: the last words are another lane's, AVX-512", "tensorcore_models/_kernels/common/operations_avx512.h", "mpg_ends_raw_avx512", "(second, odd)", "(second, even)", OPERATIONS),
    Mutant("fast: 64-bit lanes count one too few", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_sums)", "- (signs << 15)", "- (signs << 15) + 1", FAST),
    Mutant("fast: 64-bit lanes never careful", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_fda)", "return MPG_REPEAT", "return 0", FAST),
    Mutant("fast: nearest alignment of large and small sums in the lanes", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_nearest)", "(none, top)", "(top, none)", FAST),
    Mutant("fast: slices of pairwise sums hand -0 on", "tensorcore_models/_kernels/pairwise/pairwise.h", "mpg_pairwise_row", " || !last)", ")", FAST),
    Mutant("small: infinities in half of the lanes are lost", "tensorcore_models/_kernels/narrow/narrow.h", "mpg_fp16_pack_lanes", "any != 0", "(uint8_t)any", ("tests/tensorcore_models/test_small_products.py",)),
    Mutant("small: a product that needs the generic kernel stays", "tensorcore_models/kernels/small.py", "SmallProduct._run", "d if taken else", "d if True else", ("tests/tensorcore_models/test_small_products.py",)),
    Mutant("fast: 64-bit lanes add up outside once too rarely", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_rows)", "left == 0)", "left == -1)", FAST),
    Mutant("kernel: no alignment floor", KERNEL, "NAME(sum_truncated)", "= p->floor", "+= 0", TWINS),
    Mutant("kernel: GDFS zeros of both operands only", KERNEL, "NAME(groups)", "= 0 || b[q", "= 0 && b[q", TWINS),
    Mutant("kernel: CDNA3 sum keeps a bit more", KERNEL, "NAME(round_down)", "p->sum_fraction_bits;", "p->sum_fraction_bits - 1;", TWINS),
    Mutant("vectors: CDNA3 sum keeps a bit more", VECTORS, "W_(round_down)", "p->sum_fraction_bits;", "p->sum_fraction_bits - 1;", TWINS),
    Mutant("kernel: GPS addends flushed once only", "tensorcore_models/_kernels/generic/generic_lane_passes.h", "mpg_lanes_body", "% p->c_flush_passes =", "=", FAST),
    Mutant("fast: GPS addends keep the sign of zero", "tensorcore_models/_kernels/pairwise/pairwise.h", "mpg_pairwise_row", "const int handed_on = left == 0 && (q + group < length || !last)", "const int handed_on = 0", FAST),
    Mutant("fast: exact sums rounded twice", "tensorcore_models/_kernels/pairwise/pairwise.h", "mpg_sum_to_odd", "~bits & 1", "0", FAST),
    Mutant("fast: exact sums that are not exact stay", "tensorcore_models/_kernels/pairwise/pairwise.h", "mpg_exact_row", "(lost[j] << 1 != 0)", "0", FAST),
    Mutant("fast: 32-bit lanes one floor too low", "tensorcore_models/kernels/narrow.py", "_fused_task", "exponent_floor + 127)", "exponent_floor + 126)", FAST),
    Mutant("fast: small addends without products are lost", "tensorcore_models/kernels/narrow.py", "NarrowKernel._lanes", "result.redo |= tiny & (result.d == 0)", "redo |= False", FAST),
    Mutant("fast: subnormal addends align at their leading bit", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_fda)", "(careful)\n", "(0)\n", FAST),
    Mutant("fast: CDNA3 sum rounded once, 32-bit lanes", "tensorcore_models/_kernels/narrow/narrow_lanes.h", "OP(narrow_down)", "OP(where_more)(low, low & ~lost, lost)", "low", LANES),
    Mutant("operations: ties of fp16 in plain C go away from zero", "tensorcore_models/_kernels/common/operations_plain.h", "mpg_fp16_raw_plain", "- (whole & 1)", "- 1", OPERATIONS),
    Mutant("operations: floors of negative numbers", "tensorcore_models/_kernels/common/operations_plain.h", "mpg_floored_raw_plain", "cut + ", "cut + 0 * ", OPERATIONS),
    Mutant("operations: a quarter of 64 bytes is another, AVX-512", "tensorcore_models/_kernels/common/operations_avx512.h", "mpg_quarter_raw_avx512", "_epi32(x, 2)", "_epi32(x, 3)", OPERATIONS),
    Mutant("operations: units of AVX-512 a place too far", "tensorcore_models/_kernels/common/operations_avx512.h", "mpg_unit_of_raw_avx512", "254 << 23", "255 << 23", OPERATIONS),
    Mutant("operations: a checked power takes an infinity", "tensorcore_models/_kernels/common/bits.h", "mpg_power32", "x <= 254", "x <= 255", OPERATIONS),
    Mutant("edges: windows, the power of a zero is infinite", "tensorcore_models/_kernels/narrow/narrow.h", "mpg_narrow_value", "(127 - f->bias + scale - subnormal) & *nonzero", "127 - f->bias + scale - subnormal", EDGES),
    Mutant("edges: range, subnormal results are rounded to nearest", "tensorcore_models/_kernels/common/operations_avx512.h", "mpg_chopped32_raw_avx512", "_mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)", "_mm512_cvtpd_ps(x)", EDGES),
    Mutant("edges: largest sums, they never leave 32 bits", "tensorcore_models/kernels/narrow.py", "_fused_task", "wide_sum=terms == 16 and", "wide_sum=terms < 16 and", EDGES),
    Mutant("edges: addends, those of a window may be as large as any", "tensorcore_models/kernels/narrow.py", "NarrowKernel._addends", "_WINDOW_C if shift", "(1, INFINITE) if shift", EDGES),
    Mutant("edges: pruned, zeros of B take part in the alignment", "tensorcore_models/_kernels/narrow/narrow.h", "mpg_byte_of_b", "| ~nonzero", "", EDGES),
    Mutant("edges: pairs of rows, the fourth has the exponents of the third", "tensorcore_models/_kernels/narrow/narrow_items.h", "mpg_items_quads", "(ea[3 * length + k] & 0xFF0000u)", "(ea[2 * length + k] & 0xFF0000u)", EDGES),
    Mutant("edges: cancelling, negative products are rounded down", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_sums)", "signs ? OP(count_below)(low[i], lowest, limit[i])", "signs ? low[i]", EDGES),
    Mutant("edges: specials, rows of A are not marked", "tensorcore_models/_kernels/narrow/narrow.h", "mpg_narrow_pack_a_body", "special[row] |= (uint8_t)(flags != 0)", "special[row] |= 0", EDGES),
    Mutant("edges: tails, one column more than panels is in none", "tensorcore_models/_kernels/narrow/narrow_tiles.h", "mpg_panels", "(rest + 15) / 16", "(rest + 14) / 16", EDGES),
    Mutant("fast: infinite addends are taken", "tensorcore_models/_kernels/common/addends.h", "mpg_addends_body", ">= span", "> span", FAST),
    Mutant("fast: small addends are kept", "tensorcore_models/_kernels/common/addends.h", "mpg_addends_body", "small << 1", "0 * small", FAST),
    Mutant("fast: marks of a tile are lost", "tensorcore_models/_kernels/common/driver.h", "mpg_give_tile", "any |= own->redo[i]", "any |= 0", FAST),
    Mutant("fast: special addends of small products are taken", "tensorcore_models/_kernels/common/driver.h", "mpg_run_products", "(result[i] & 0x7F800000u) == 0x7F800000u", "0", FAST),
    Mutant("fast: small products all have the first one's B", "tensorcore_models/_kernels/common/driver.h", "mpg_run_products", "mpg_source_item(&one->b, item)", "one->b", FAST),
    Mutant("fast: the power of a zero in a window is infinite", "tensorcore_models/_kernels/narrow/narrow.h", "mpg_narrow_value", "(127 - f->bias + scale - subnormal) & *nonzero", "127 - f->bias + scale - subnormal", LANES),
    Mutant("fast: results of a window are not shifted back", "tensorcore_models/_kernels/narrow/narrow_job.h", "mpg_narrow_run_tile", "job->task.back != 1.0f", "0", LANES),
    Mutant("fast: a window one exponent too wide", "tensorcore_models/_kernels/narrow/narrow_window.h", "mpg_window_shift", "begin > end", "begin > end + 1", LANES),
    Mutant("fast: addends of a window are not shifted", "tensorcore_models/kernels/narrow.py", "NarrowKernel._addends", "scale=2.0**-shift", "scale=1.0", LANES),
    Mutant("fast: sums of bands are not scaled", "tensorcore_models/_kernels/narrow/narrow.h", "mpg_narrow_is_scaled", "t->scaled && t->scaled >> place & 1", "0", LANES),
    Mutant("fast: results of a tile are not shifted back", "tensorcore_models/_kernels/narrow/narrow_items.h", "mpg_items_window", "127 + both", "127", LANES),
    Mutant("fast: CDNA3 sum rounded once", "tensorcore_models/_kernels/wide/wide_lanes.h", "OP(wide_down)", "((total + (cut & (total >> 63))) & ~cut)", "(total)", FAST),
    Mutant("operations: sums to odd forget what is lost", "tensorcore_models/_kernels/common/operations.h", "OP(odd_sum)", " | OP(unlike64)(sum - x, y) | OP(unlike64)(sum - y, x)", "", OPERATIONS),
    Mutant("operations: ties of doubles go up", "tensorcore_models/_kernels/common/operations.h", "OP(nearest_of)", " - (bits & OP(all_bits)(1))", " - OP(all_bits)(1)", OPERATIONS),
    Mutant("fast: bits of groups at the wrong place", "tensorcore_models/_kernels/groups/groups_pack_avx512.h", "mpg_group_pack_b_avx512", "short)(2 <<", "short)(1 <<", FAST),
    Mutant("fast: groups without products take part", "tensorcore_models/_kernels/groups/groups_lanes.h", "OP(group_integers)", "OP(pairs)(p->ea[2 * g + 1])", "OP(all_words)(-1)", FAST),
    Mutant("formats: fp6 and fp4 do not clamp", "tensorcore_models/formats/rows.py", "Format.clamps", 'self.specials == "finite"', "False", ("tests/tensorcore_models/test_rounding.py",)),
    Mutant("fast: large group sums are not marked", "tensorcore_models/_kernels/groups/groups_lanes.h", "OP(group_row_of)", "|= beyond >> l & 1", "|= 0", FAST),
    Mutant("fast: group sums F - 1", "tensorcore_models/_kernels/groups/groups_lanes.h", "OP(group_step)", "mpg_group_power(-t-", "mpg_group_power(1 - t-", FAST),
    Mutant("fast: exponents of the other tile", "tensorcore_models/_kernels/narrow/narrow_items.h", "mpg_items_quads", "other + k", "k", FAST),
    Mutant("chains: a pass at the wrong group", "tensorcore_models/_kernels/chains/chains_tile.h", "CHAIN_NAME(tile)", "* job->groups +", "+", FAST),
    Mutant("chains: edge rows not written back", "tensorcore_models/_kernels/chains/chains_tile.h", "CHAIN_NAME(edge)", "memcpy(d", "if (r + 1 < rows) memcpy(d", FAST),
    Mutant("chains: outside sums keep the inner one", "tensorcore_models/_kernels/chains/chains_tile.h", "CHAIN_NAME(run)", "= every ? VECTOR_SET(0) :", "=", FAST),
    Mutant("chains: NaN keeps its sign", "tensorcore_models/_kernels/chains/chains_tile.h", "CHAIN_NAME(finish)", "(bits & ~is_nan)", "(bits & ~(is_nan >> 1))", FAST),
    Mutant("chains: columns of the last panel", "tensorcore_models/_kernels/chains/chains.h", "mpg_chain_pack_b", "first + column, left,", "first, left,", FAST),
    Mutant("chains: saturated results stay", "tensorcore_models/kernels/chains.py", "ChainsKernel.run", "again.any()", "False", FAST),
    Mutant("fast: chains twice as long", "tensorcore_models/kernels/narrow.py", "NarrowKernel.run", "chain=every /", "chain=2 * every /", FAST),
    Mutant("fast: operations without products cut sums", "tensorcore_models/kernels/narrow.py", "NarrowKernel.of", " or dot.fraction_bits < _kept(dot, formats[3])", "", LANES),
    Mutant("fast: plain group order", "tensorcore_models/kernels/narrow.py", "NarrowKernel.of", "spec.group_order", "sorted(spec.group_order)", FAST),
    Mutant("bound: one addend too few", GROUP_SUM, "GroupDotFusedSum.step_error", "(count + 1) * 2.0**-self.fraction_bits", "count * 2.0**-self.fraction_bits / 2", BOUNDS),
    Mutant("watch: only results that are no numbers are outside", "mpgemm/bounds/watching.py", "hold", "~(size <= bound)", "np.isnan(size)", WATCHED),
    Mutant("watch: the rest after a word is half as large", "mpgemm/bounds/norms.py", "split_norms", "unit * rest + root * step", "unit * rest / 2", WATCHED),
    Mutant("watch: the largest norm for the least", "mpgemm/bounds/norms.py", "_least", "np.fmin.reduce(x, axis=None, initial=np.inf", "np.fmax.reduce(x, axis=None, initial=0.0", WATCHED),
    Mutant("watch: negative errors are small", "mpgemm/bounds/watching.py", "within", "max(np.max(error), -np.min(error))", "np.max(error)", WATCHED),
    Mutant("watch: a chain of one step", "mpgemm/bounds/watching.py", "sums_bound", "terms + 1", "1", WATCHED),
    Mutant("bound: nothing lifts the alignment", DERIVED, "_Step._addend", "_power(max(floors)) if floors else 0.0", "0.0", BOUNDS),
    Mutant("bound: a cut to nearest loses a quarter", DERIVED, "_Step._cut", "0.5, 1.0", "0.25, 1.0", NODES),
    Mutant("bound: any exponent is an alignment's", DERIVED, "_Step._cut", "node.of[0] in top.numbers", "True", NODES),
    Mutant("nodes: an integer is a number in any unit", "tensorcore_models/arithmetic/nodes.py", "Notes.of_whole", "_equal(known.unit, unit)", "True", NODES),
    Mutant("nodes: a tree is taken for one of all products", "tensorcore_models/arithmetic/nodes.py", "Notes.assume", "x.part is not True", "False", NODES),
    Mutant("bound: scales have no exponents", FACTS, "_operand", "exponents + factor.exponents,", "exponents,", BOUNDS),
    Mutant("bound: subnormal scales are normal", FACTS, "_operand", "small | factor.small", "small", BOUNDS),
    Mutant("bound: group sums as large as their scales", GROUP_SUM, "GroupDotFusedSum.group_facts", "(sums * ratio)", "ratio", BOUNDS),
    Mutant("sampled lines: blocks of four pairs count as draws", "mpgemm/bounds/populations.py", "Drawn.blocks", "range(first, first + count)", "(first + i % 4 for i in range(count))", ("tests/testing/test_statistical_lines.py",)),
    Mutant("misread operands: without their scales", "mpgemm/testing/diagnosis/displaced.py", "_read_from", "read * factors", "read", MISREAD),
    Mutant("stale blocks: scales of the place move along", "mpgemm/testing/diagnosis/along_k.py", "_stale_of", "scale[:, at]", "scale[:, of_a]", MISREAD),
    Mutant("maps of lines: a tile is counted from its start", "mpgemm/testing/diagnosis/displaced.py", "_line_maps", "at % tile", "at // tile", MISREAD),
    Mutant("named faults: a chain that goes on has no scales", "mpgemm/testing/diagnosis/along_k.py", "_uncleared", "(chains * outside)", "chains", NAMED),
    Mutant("named faults: what fits few is not asked of more", "mpgemm/testing/diagnosis/failure.py", "Failure.few", "times * self.screened", "self.screened", NAMED),
    Mutant("named faults: all groups of columns are finer", "mpgemm/testing/diagnosis/along_k.py", "_others", "together * 2", "together // 2", NAMED),
    Mutant("named faults: gaps of a leading dimension hold results", "mpgemm/testing/diagnosis/displaced.py", "strided", "& (j < n)", "& (j < stride)", NAMED),
    Mutant("judged: right elements speak against a race", "mpgemm/testing/diagnosis/__init__.py", "_scattered", "<= f.wrong.size", "< 0", JUDGED),
    Mutant("judged: what fits by chance is listed as tried", "mpgemm/testing/diagnosis/__init__.py", "diagnose", "in found if finding.perhaps}", "in found if finding.good}", JUDGED),
    Mutant("judged: one factor below 0 is ruled out", "mpgemm/testing/diagnosis/proved.py", "contradicted", "for sign in (1, -1)", "for sign in (1,)", JUDGED),
    Mutant("judged: an output rounds nothing that a fault makes", "mpgemm/testing/diagnosis/proved.py", "contradicted", "own = fmt.unit_roundoff", "own = 0 * fmt.unit_roundoff", JUDGED),
    Mutant("judged: all metrics must decide", "mpgemm/experiments/standing.py", "results_for_all", "return min((n for n in beyond", "return max((n for n in beyond", VERDICTS),
    Mutant("places: scattered elements are everywhere", "mpgemm/testing/diagnosis/places.py", "_product", "share > 0.25", "share > 0.0", NAMED),
    Mutant("recorder: a device's own function is another", "mpgemm/frameworks/torch_dispatch.py", "parts_of", "set(found._backend_fns) != {None}", "False", RECORDED),
    Mutant("recorder: operations of nobody's library are silent", "mpgemm/frameworks/torch_recorder.py", "_Products.__torch_dispatch__", " or unseen(func)", "", RECORDED),
    Mutant("traces: scales are no inputs", "mpgemm/traces/comparing.py", "_operand_equal", "scales is False", "False", RECORDED),
    Mutant("right kernels: factors of blocks are always fused", "mpgemm/testing/possible_results.py", "right_kernels", "fused=False", "fused=True", ("tests/testing/test_kernel_spread.py",)),
    Mutant("attention: row sums are not fused", "tensorcore_models/libraries/attention.py", "_Head._row_sums", "fused_multiply_add(rows, np.broadcast_to(shrink[:, None], rows.shape), chain(_of_threads(p)))", "rows * shrink[:, None] + chain(_of_threads(p))", ATTENTION),
    Mutant("attention: quads join in another order", "tensorcore_models/libraries/attention_rules.py", "_FLASH_STEPS", "(2, 1)", "(1, 2)", ATTENTION),
    Mutant("attention: parts are joined without a fused multiply-add", "tensorcore_models/libraries/attention.py", "_combined", "fused_multiply_add(each, weight, out)", "each * weight + out", ATTENTION),
    Mutant("rows: lanes join at growing distances", "tensorcore_models/libraries/fp32_lanes.py", "halves", "[width >> i for i in range(1, width.bit_length())]", "[width >> i for i in range(1, width.bit_length())][::-1]", ATTENTION),
    Mutant("model: numbers divide as tensors do", "mpgemm/frameworks/torch_operations.py", "_div", "isinstance(y, torch.Tensor)", "True", MODEL),
    Mutant("model: scalars are rounded to bf16 first", "mpgemm/frameworks/torch_operations.py", "_pair", "torch.tensor(v, dtype=torch.float64).to(wide)", "torch.tensor(v, dtype=torch.float64).to(dtype).to(wide)", MODEL),
    Mutant("model: unknown operations run silently", "mpgemm/frameworks/torch_mode.py", "Emulation._other", "if found is None", "if False", MODEL),
    Mutant("model: one order stands for two", "mpgemm/frameworks/model_products.py", "profiled_products", "if (other.engine.label", "if False and (other.engine.label", MODEL),
    Mutant("traces: a prediction forgets the bias", "mpgemm/frameworks/predicted_traces.py", "PredictedTrace._output", "sums if bias is None", "sums if True", ("tests/mpgemm/test_predicted_traces.py",)),
    Mutant("recovered products: operations of libraries are not counted", "mpgemm/kernels/torch_mode.py", "RecoveredProducts.__torch_dispatch__", "(multiplies or unseen(func))", "multiplies", ("tests/kernels/test_torch_recovered.py",)),
    Mutant("attention: what a cast loses is no part of right weights", "mpgemm/testing/attention_weights.py", "held_weight", "low = min(*cast, 0.0)", "low = min(0.0, 0.0)", ("tests/testing/test_attention_weights.py",)),
    Mutant("exact blocks: the last block has the factors of the first", "mpgemm/exact/blocks.py", "ExactBlocks._part", "a[:, None] * b.T[None]", "a[:, None] * b.T[None, :, :1]", ("tests/mpgemm/test_exact_blocks.py",)),
    Mutant("attention: nothing over nothing is no ratio", "mpgemm/testing/attention_case.py", "limit_of", "ratio(np.abs(out - each.case.exact), each.case.typical)", "np.abs(out - each.case.exact) / each.case.typical", ("tests/testing/test_attention_checks.py",)),
    Mutant("grouped products: all experts have the scales of the first", "mpgemm/testing/grouped.py", "_of_expert", "return x[expert]", "return x[0]", ("tests/testing/test_grouped.py",)),
    Mutant("an epilogue's slope is half of it", "mpgemm/testing/epilogues.py", "_through", "steepest * error", "0.5 * steepest * error", ("tests/testing/test_epilogues.py",)),
    Mutant("faults behind an epilogue: of the sums", "mpgemm/testing/faults.py", "_tried", "case = replace(case, end=end, ended=right)", "pass", ("tests/testing/test_epilogues.py",)),
    Mutant("grouped products: rows are numbered from their group's first", "mpgemm/testing/check.py", "_worst", "start + i", "i", ("tests/testing/test_grouped.py",)),
    Mutant("swiglu: another activation of the gates is silu", "mpgemm/testing/diagnosis/__init__.py", "_other_ends", "shape.apply(gate, 0.0) * up", "gate * up", ("tests/testing/test_epilogues.py",)),
    Mutant("bound: groups of zeros take no part", GROUP_SUM, "GroupDotFusedSum.group_facts", "errors.top_exponent(top, part & zero)", "None", BOUNDS),
    Mutant("suites: Hawkeye's cancelling sets do not cancel", "tensorcore_models/probing/suites/hawkeye.py", "_neutral", "large, 2 * large", "large, 3 * large", SUITES),
    Mutant("suites: fasi's subnormal result", "tensorcore_models/probing/suites/fasi.py", "_below_normal", "normal / 2 if difference", "normal / 4 if difference", SUITES),
    Mutant("suites: fasi's test of hardware", "tensorcore_models/probing/suites/fasi.py", "_native", "tiny = 3 * smallest", "tiny = 2 * smallest", SUITES),
    Mutant("suites: GNFT's carries", "tensorcore_models/probing/suites/gnft.py", "_carries", "- 1][2])", "- 1][2] + 1)", SUITES),
    Mutant("suites: valpey's table 5", "tensorcore_models/probing/suites/valpey.py", "_table_5", "printed else 7", "printed else 6", SUITES),
    Mutant("terms of methods: a word scaled the other way", "tensorcore_models/probing/formal/methods.py", "rounded_words", "point - j", "point + j", BEATING),
    Mutant("terms of methods: a word taken off unscaled", "tensorcore_models/probing/formal/methods.py", "rounded_words", "z.minus(word.align, z.number(j * scale))", "word.align", BEATING),
    Mutant("terms of methods: sums not scaled", "mpgemm/bounds/beating.py", "TermArithmetic.scale", "z.plus(x.align, z.number(exponent))", "x.align", BEATING),
    Mutant("ascend: core 0 is the first of the order", "ascend/kernels/grid.py", "GridKernel.visits", "(core + self._busiest) % self.used_cores", "core", SEARCH),
    Mutant("ascend: nothing bounds the memory", "ascend/pipes/simulate.py", "_run_phase", "max(engine.end_time(), floor", "engine.end_time(", SEARCH),
    Mutant("ascend: a stay's latency for each tile", "ascend/planner/estimate.py", "_Forms.multiplication", "streamed + filling", "streamed + tiles * filling", SEARCH),
    Mutant("ascend: a round trip through one buffer", "ascend/closed_forms.py", "BlockForms.block", "self.round_trip / self.depth", "self.round_trip", SEARCH),
    Mutant("ascend: A's move takes from B's buffer", "ascend/closed_forms.py", "_PaperForms.round_trip", "chip.l1_to_l0b_rate", "chip.l1_to_l0b_rate + self.cube", ("tests/ascend/test_planner.py",)),
    Mutant("ascend: k blocks all full", "ascend/planner/estimate.py", "_Forms.__init__", "self.length / (self.blocks * c.bk", "np.ones_like(self.length", SEARCH),
    Mutant("ascend: NZ sizes as given", "ascend/tiling/fields.py", "cube_fields", "aligned(size, unit) if in_nz", "size if in_nz", RULES),
    Mutant("ascend: loads of a panel and of a stream apart", "ascend/tiling/fields.py", "_dividing", "more % fewer == 0", "True", RULES),
    Mutant("ascend: int8 in blocks of 16", "ascend/operand_formats.py", "FORMATS", '"cube_int8_k", 32, data', '"cube_int8_k", 16, data', RULES),
    Mutant("ascend: bands never turn", "ascend/grid.py", "Swizzle.order", "self.turns", "False", GRID),
    Mutant("ascend: a tile dealt twice", "ascend/kernels/grid.py", "GridKernel.visits", "each[first :", "each[first // 2 :", GRID),
    Mutant("ascend: what is left makes a band of its own", "ascend/grid.py", "Swizzle.order", "if self.adaptive else", "if False else", GRID),
    Mutant("ascend: pieces as wide as high", "ascend/grid.py", "pieces", "along_m >= along_n", "along_m > along_n", GRID),
    Mutant("ascend: most cores wait in the last round", "ascend/kernels/grid.py", "GridKernel._last_round", "self.cores // 2", "self.cores // 4", GRID),
    Mutant("ascend: core 0 has a small piece", "ascend/kernels/grid.py", "GridKernel._busiest", "(m1 - m0) * (n1 - n0)", "-(m1 - m0) * (n1 - n0)", GRID),
    Mutant("ascend: Norm's cube never idles", "ascend/schedule_options.py", "WithOptions.mmad_head", '== "norm"', '== ""', TIME),
    Mutant("ascend: FIXPIPE is issued when the cube is done", "ascend/pipes/simulate.py", "Timeline.counters", "QUEUED_BLOCKS /", "0 /", TIME),
    Mutant("ascend: rectangles miss L2 as by rows", "ascend/memory.py", "schedule_misses", 's.resident == "none" and', "s.deals_one_by_one and", BYTES),
    Mutant("ascend: what is kept is never lost", "ascend/memory.py", "l2_misses", "lost * (1", "0 * (1", BYTES),
    Mutant("ascend: iterateOrder says n first", "ascend/tiling/fields.py", "by_columns", "direction == 1", "direction == 2", GRID),
    Mutant("ascend: all of L2 keeps what turns", "ascend/memory.py", "_again", "(l2_bytes - 2 * kept)", "l2_bytes", BYTES),
    Mutant("ascend: loops of other depths alike", "ascend/pipes/build.py", "_Builder._core_loops", "0), depth)", "0), of_slice[0][0][1])", BYTES),
    Mutant("ascend: all rows of C start aligned", "ascend/schedule_options.py", "WithOptions.fixpipe_row_extra", "unaligned *", "0 *", TIME),
    Mutant("ascend: Norm moves A before B is there", "ascend/pipes/build.py", "_Builder._move", "(FULL_IN_L1, ())", "(FULL_IN_L1[:1], ())", TIME),
    Mutant("ascend: every tile is scaled at the end", "ascend/programs/passes.py", "dequantized", "own * (core", "own * s.waves * (core", TIME),
    Mutant("ascend: parts of a line cost a line", "ascend/memory.py", "_pieces", "np.minimum(piece / ND_LINE, 1.0)", "1.0", TIME),
    Mutant("ascend: one block missed is all missed", "ascend/pipes/build.py", "_Builder._read", "chip.gm_to_l1_latency + miss *", "chip.gm_to_l1_latency +", TIME),
    Mutant("ascend: narrow weights come as wide as they go", "ascend/pipes/build.py", "_Builder._load", "s.weight_bytes / s.operand_bytes", "1", WIDENED),
    Mutant("ascend: memory gives widened weights", "ascend/memory.py", "operand_bytes_from_memory", "s.weight_bytes", "s.operand_bytes", WIDENED),
    Mutant("ascend: closed forms do not widen", "ascend/planner/estimate.py", "_Forms.widened", "return read + write", "return read", WIDENED),
    Mutant("ascend: the scalar unit has no queue", "ascend/pipes/build.py", "_Builder._product", '("QUEUE_FREE",) * stop', "()", TIME),
    Mutant("ascend fit: what others tell is fitted, too", "ascend/reports/fit.py", "_told_apart", "[-1] > LEAST_SINGULAR", "[-1] > -1", FIT),
    Mutant("ascend fit: rows left out are in", "ascend/reports/fit.py", "_fitted_to_others", "others.fitted(chosen", "data.fitted(chosen", FIT),
    Mutant("ascend fit: needless ones stay", "ascend/reports/fit.py", "_without_needless", "list(chosen[:-1])", "list(chosen[:0])", FIT),
    Mutant("ascend fit: two rates move apart", "ascend/reports/fit.py", "_Rows.changed", "for number in each.numbers:", "for number in each.numbers[:1]:", FIT),
    Mutant("ascend emit: a place in L0 is free too soon", "ascend/emit/pto.py", "_block_text", "terms[number + 1 :]", "terms[number + 2 :]", EMIT),
    Mutant("ascend emit: B over A's second word", "ascend/emit/pto.py", "constants", "s.words * slots * a_bytes", "slots * a_bytes", EMIT),
    Mutant("ascend emit: a chain as long as a block", "ascend/emit/pto.py", "constants", "b.bk * s.n_fused", "b.bk", EMIT),
    Mutant("ascend emit: tiles are not compared", "ascend/emit/check.py", "tile_faults", "stored != walked", "False", EMIT),
    Mutant("ascend shim: a wait orders all pipes", "ascend/emit/shim/mpgemm/core.hpp", "wait_flag", "event); }", "event), mpgemm::core().barrier(PIPE_ALL); }", EMIT),
    Mutant("terms of methods: k not padded", "mpgemm/bounds/beating.py", "_words", "zero] * padding", "zero] * 0", BEATING),
    Mutant("gaudi: subnormal fp8 keep their exponents", "tensorcore_models/kernels/narrow.py", "NarrowKernel.of", "(a, via)", "(a)", GAUDI),
    Mutant("gaudi: fp8 taken as given beyond the lanes", "tensorcore_models/kernels/narrow.py", "_windowed", "min(lowest) < narrow.LEAST", "False", GAUDI),
    Mutant("gaudi: the last +0 keeps -0", "tensorcore_models/engines/rollup.py", "Rollup._finished", "negative_zeros, 0, x", "negative_zeros, x, x", GAUDI),
    Mutant("gaudi: flushes forget the sign", "tensorcore_models/families/converted/integers.py", "_flushed", "fmt.sign_bit", "0", GAUDI),
    Mutant("riscv: c added to nearest", "tensorcore_models/catalogue/riscv.py", "dot", 'late_rounding="ro"', 'late_rounding="rne"', RISCV),
    Mutant("arm: EBF as without", "tensorcore_models/catalogue/arm.py", "_bfloat16", "_row(FUSED_PAIR", "_row(PairRoundOddSum()", ARM),
    Mutant("arm: pairs rounded to odd", "tensorcore_models/catalogue/arm.py", "FUSED_PAIR", 'output_rounding="rne"', 'output_rounding="ro"', ARM),
    Mutant("arm: LSCALE the other way", "tensorcore_models/families/scaled_dot.py", "ScaledDotAdd._scaled", "bias + self", "bias - self", ARM),
    Mutant("arm: OSM holds nothing", "tensorcore_models/families/scaled_dot.py", "ScaledDotAdd.pass_bits", "select(overflow,", "select(z.no(overflow),", ARM),
    Mutant("qemu: b by rows", "tensorcore_models/cpu_units/qemu.py", "QemuEngine._run", "1, 4, 2)", "1, 2, 4)", QEMU),
    Mutant("qemu: a and b of an outer product change places", "tensorcore_models/cpu_units/arm_steps.c", "step", '"fmopa za0.s, p0/m, p0/m, z0.h, z1.h");', '"fmopa za0.s, p0/m, p0/m, z1.h, z0.h");', QEMU),
    Mutant("wormhole: phases 1 and 2 change places", "tensorcore_models/families/fidelity/parts.py", "follows", "(1 - side)", "side", WORMHOLE),
    Mutant("wormhole: subnormal numbers are kept", "tensorcore_models/families/fidelity/steps.py", "_taken_apart", "same(field, 0), 0,", "same(field, 0), fraction,", WORMHOLE),
    Mutant("wormhole: nothing is left to other phases", "tensorcore_models/families/fidelity/specification.py", "FidelityPhases.left_of_products", "left += math", "left += 0 * math", WORMHOLE),
    Mutant("wormhole: ties of sums away from zero", "tensorcore_models/families/fidelity/steps.py", "added", '"rnu"', '"rna"', WORMHOLE),
    Mutant("wormhole: the erratum 26 places", "tensorcore_models/_kernels/generic/generic_phases.h", "mpg_phase_add", "shift -= 27", "shift -= 26", WORMHOLE),
    Mutant("wormhole: zero products of fp16 lift nothing", "tensorcore_models/families/fidelity/steps.py", "_group", "zero = max(0, lift)", "zero = 0", WORMHOLE),
    Mutant("wormhole: A and B change places", "tensorcore_models/families/fidelity/specification.py", "_Phases", "operands_alike: ClassVar = False", "operands_alike: ClassVar = True", WORMHOLE),
    Mutant("gpu kernels: planes of words in 32 bits", "mpgemm/kernels/source.py", "plane_offset", "tl.full((), count, tl.int64)", "count", ("tests/kernels/test_large_offsets.py",)),
    Mutant("gpu kernels: c in another view is read late", "mpgemm/kernels/multiply.py", "_fits", "for x in read", "for x in read[:2]", ("tests/kernels/test_matmul.py",)),
    Mutant("gpu kernels: words of batches are not repeated", "mpgemm/kernels/products.py", "TensorProduct.tensors", "batches != held", "False", ("tests/kernels/test_matmul.py",)),
    Mutant("gpu kernels: tiles are timed on the result", "mpgemm/kernels/products.py", "TensorProduct._tuned", "torch.empty_like(out)", "out", ("tests/kernels/test_tuning.py",)),
    Mutant("gpu kernels: products of other types are taken", "mpgemm/kernels/torch_mode.py", "RecoveredProducts.__torch_dispatch__", "kinds != {torch.float32}", "False", ("tests/kernels/test_torch_recovered.py",)),
    Mutant("gpu kernels: a product has the bits of FP64 in its error", "mpgemm/kernels/verification.py", "ended_error", "(x - rest)", "x", ("tests/kernels/test_matmul.py",)),
    Mutant("gpu kernels: the bound lacks the last roundings", "mpgemm/bounds/watching.py", "ended_bound", "own + sums_bound(sizes, 2, fmt)", "own", ("tests/kernels/test_matmul.py",)),
    Mutant("gpu kernels: a unit is not looked at", "mpgemm/kernels/torch_mode.py", "recovered", 'if "unit" in options', "if False", ("tests/kernels/test_torch_recovered.py",)),
    Mutant("gpu kernels: a grid has one program more", "tensorcore_models/gpu/launches.py", "TritonLaunch.__post_init__", "> MOST_PROGRAMS", "> MOST_PROGRAMS + 1", ("tests/kernels/test_kernel_command.py",)),
    Mutant("gpu kernels: what is timed is not kept", "mpgemm/kernels/tuning.py", "fastest", "cache.lookup(key)", "None", ("tests/kernels/test_tuning.py",)),
    Mutant("campaign: one failure ends it", "mpgemm/campaign/tasks.py", "carry_out", "except Exception as", "except MemoryError as", ("tests/campaign/test_folder.py",)),
    Mutant("campaign: what failed is not tried again", "mpgemm/campaign/folder.py", "Rows.__init__", 'if "failed" not in row', "if True", ("tests/campaign/test_folder.py",)),
    Mutant("campaign: another device's folder is taken", "mpgemm/campaign/folder.py", "claim", "if apart:", "if False:", ("tests/campaign/test_folder.py",)),
    Mutant("campaign: what a share started goes on", "mpgemm/campaign/jobs.py", "_end", "os.killpg(process.pid, signal.SIGKILL)", "process.kill()", ("tests/campaign/test_jobs.py",)),
    Mutant("campaign: halves of a pair change places", "mpgemm/campaign/functions.py", "compared", "*function.before, block_operands(block)", "block_operands(block), *function.before", ("tests/campaign/test_campaign_parts.py",)),
    Mutant("special functions: large angles lose their lowest word", "tensorcore_models/_kernels/functions/angles.h", "mpg_quarters", "upper << shift | (uint64_t)product[first] << shift >> 32", "upper << shift", FUNCTIONS),
    Mutant("special functions: turns of negative angles go forward", "tensorcore_models/functions/angles.py", "reduced", "z.minus(z.number(0), turns)", "turns", FUNCTIONS),
    Mutant("special functions: empty sequences are refused", "tensorcore_models/functions/function.py", "Function._checked", "if x.size:", "if True:", FUNCTIONS),
    Mutant("attention: Triton's exponents are rounded once", "mpgemm/experiments/attention.py", "KERNELS", "fused_sum=True, fused_exponent=False", "fused_sum=True, fused_exponent=True", ("tests/mpgemm/test_attention.py",)),
    Mutant("gpu units: an infinity times zero", "tensorcore_models/gpu/specials.py", "_infinite_products", "undefined > 0", "undefined < 0", ("tests/gpu/test_units_specials.py",)),
    Mutant("gpu units: infinities of both signs", "tensorcore_models/gpu/specials.py", "taken_apart", "nan | (positive & negative)", "nan", ("tests/gpu/test_units_specials.py",)),
    Mutant("gpu units: flags beside special values", "tensorcore_models/gpu/products.py", "DeviceUnit._apart", "(flags != 0) | ~apart.any", "~apart.any", ("tests/gpu/test_units_specials.py",)),
    Mutant("identify: steps end as a GEMM does", "tensorcore_models/probing/identify/box.py", "_engine_box", "dataclasses.replace(unit, rollup=None)", "unit", IDENTIFY),
    Mutant("identify: nothing but zeros is never asked", "tensorcore_models/probing/identify/inputs.py", "zeros", "    _zeros_alone(batch, interface, rng)\n", "", IDENTIFY),
    Mutant("identify: matrices may differ", "tensorcore_models/probing/identify/challenge.py", "refute", "                _refuse_other_matrices(box, spec, log, found)\n", "", IDENTIFY),
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
    path.write_text(changed(mutant.path, path.read_text(), mutant.place, mutant.old, mutant.new))


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
        exhaustive = () if mutant is None else (("-m", "not slow"),)  # where the other tests see nothing
        for more in ((), *exhaustive):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests, *more]
            done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise SystemExit(
                    f"{mutant and mutant.name}: the tests did not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                )
            if done.returncode == 1:
                return False
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutants whose name holds this word")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default 2)")
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if args.only in m.name]
    if args.list:
        print("\n".join(m.name for m in chosen))
        return 0
    survivors = []
    with ThreadPoolExecutor(args.jobs) as pool:
        suites = sorted({mutant.tests for mutant in chosen})
        for tests, passed in zip(suites, pool.map(lambda tests: survives(None, tests), suites), strict=True):
            if not passed:  # a test that fails anyway would catch everything
                raise SystemExit(f"the tests fail without any fault: {', '.join(tests)}")
        for mutant, alive in zip(chosen, pool.map(lambda m: survives(m, m.tests), chosen), strict=True):
            survivors += [mutant.name] * alive
            print(f"{'SURVIVED' if alive else 'caught':9} {mutant.name}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
