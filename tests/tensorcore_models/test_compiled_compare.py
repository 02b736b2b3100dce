"""Equal or not: kernels compared by normal forms of their expressions and by bits."""

import itertools
import re

import numpy as np
import pytest
from judge_pairs import MMA, halves_turned
from ptx_cases import GEMM, text

import tensorcore_models as tcm
from tensorcore_models import compiled
from tensorcore_models.compiled.normal_form import normal_forms
from tensorcore_models.compiled.trial_inputs import operand_formats, trial


def verdict(first, second, m=64, n=32, k=96, grids=None, **options):
    """The comparison of two texts as GEMMs of the first file's operands."""
    case = GEMM[first]
    a, b = case.operands(m, n, k)
    kind = {"fp16": np.float16}.get(case.format, a.dtype)
    arguments = [a.view(kind), b.view(kind), np.zeros((m, n), np.float32), m, n, k]
    programs = [compiled.read(x if "\n" in x else text(x)) for x in (first, second)]
    grids = grids or [GEMM.get(x, case).grid(m, n) for x in (first, second)]
    return compiled.compare(*programs, arguments=arguments, grids=grids, **options)


def test_a_kept_promotion_differs_from_a_folded_one():
    found = verdict("sm_80-bf16-kept", "sm_80-bf16-folded")
    assert found.verdict == "different" and "of 2048 elements differ" in found.reason
    arguments, index, left, right = found.witness
    assert left != right and len(index) == 2 and arguments[0].shape == (64, 96)


def test_different_code_of_one_recipe_is_equal():
    """mma.sync and wgmma code of the same sum on one unit: other instructions, tiles, layouts and padding."""
    found = verdict("sm_80-fp16-masked", "sm_90-fp16-masked", m=48, n=80, k=80, unit="hopper")
    assert found.verdict == "equal" and found.assumptions == () and found.witness is None
    source = text("sm_80-bf16-folded")
    renamed = source.replace("%r1,", "%r1 ,").replace("bar.sync", "barrier.sync")
    assert verdict("sm_80-bf16-folded", renamed, grids=[(2, 1)] * 2).verdict == "equal"


@pytest.mark.full
def test_a_promotion_that_adds_to_zero_only_is_none():
    """One tile of k: what is added outside is added to +0, which no sum of the instruction shows, in any rounding."""
    source = text("sm_80-bf16-kept")
    for other in (source.replace("add.f32", "add.rz.f32"), text("sm_80-bf16-folded")):
        assert verdict("sm_80-bf16-kept", other, k=32, grids=[(2, 1)] * 2).verdict == "equal"
        assert verdict("sm_80-bf16-kept", other, k=64, grids=[(2, 1)] * 2).verdict == "different"


@pytest.mark.full  # 2 s and more: two readings of a long kernel
def test_sums_of_fp8_products_reach_no_subnormal_number():
    """They are multiples of 2^-18: flushing changes none of them, nor does halving that is undone; on bf16 both may."""
    for change in (
        lambda x: x.replace("add.f32", "add.ftz.f32"),
        lambda x: re.sub(r"(add\.f32\s+(%\w+),.*;)", r"\1 mul.f32 \2, \2, 0f3F000000; mul.f32 \2, \2, 0f40000000;", x),
    ):
        for name, m, k, found in (("sm_90-fp8-promoted", 64, 128, "equal"), ("sm_80-bf16-kept", 64, 64, "different")):
            changed = change(text(name))
            assert changed != text(name)
            assert verdict(name, changed, m=m, k=k, grids=[GEMM[name].grid(m, 32)] * 2, seconds=0).verdict == found, (
                name
            )


def test_products_of_one_pass_may_change_places():
    """The halves of k = 16 are one pass on Hopper and two on Ampere."""
    turned = re.sub(MMA, lambda found: halves_turned(found, True), source := text("sm_80-bf16-folded"))
    assert turned != source
    assert verdict("sm_80-bf16-folded", turned, grids=[(2, 1)] * 2, unit="hopper").verdict == "equal"
    assert verdict("sm_80-bf16-folded", turned, grids=[(2, 1)] * 2).verdict == "different"


def test_passes_over_padding_leave_no_trace():
    """80 products in steps of 32 and of 64 that are masked: the last tile of the latter has passes over zeros only."""
    source, (m, n, k) = text("sm_80-fp16-masked"), (32, 32, 80)
    case = GEMM["sm_80-fp16-masked"]
    a, b = (x.view(np.float16) for x in case.operands(m, n, k))
    recipe = compiled.read(source).recipe([a, b, np.zeros((m, n), np.float32), m, n, k], case.grid(m, n))
    ((_, _, start, passes),) = {normal_forms(recipe)[i] for i in range(1)}
    assert start == ("constant", 0) and len(passes) == k // 8


def test_trial_inputs_are_of_the_operands_formats():
    """FP8 as bytes: numbers of the format, not shuffled codes; the output and sizes stay."""
    case = GEMM["sm_90-fp8"]
    a, b = case.operands(64, 32, 64)
    c = np.zeros((64, 32), np.float32)
    recipe = compiled.read(text("sm_90-fp8")).recipe([a, b, c, 64, 32, 64], case.grid(64, 32))
    formats = operand_formats(recipe)
    assert formats == {0: "e4m3fn", 1: "e4m3fn"}
    given = trial([a, b, c, 64], 2, formats, np.random.default_rng(0), 1)
    assert given[2] is c and given[3] == 64 and given[0].dtype == a.dtype
    values = tcm.decode(given[0], "e4m3fn")
    assert np.isfinite(values).all() and 0.5 < values.std() < 2 and sorted(given[0].ravel()) != sorted(a.ravel())


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("first", "second"), [*itertools.combinations(["sm_80-tf32x3", "sm_80-bf16x3", "sm_80-bf16x6"], 2)]
)
def test_recovered_products_of_different_words_differ(first, second):
    assert verdict(first, second, m=32, n=32, k=32).verdict == "different"


def test_equal_rests_on_what_data_decided():
    found = verdict("sm_80-tf32x3", "sm_80-tf32x3", m=32, n=32, k=32)
    assert found.verdict == "equal" and any("setp.num.f32" in each for each in found.assumptions)
    assert str(found).startswith("equal: their expressions have one normal form")


HEAD = """.version 8.6
.target sm_90a
.visible .entry k(.param .u64 x, .param .u64 y) .reqntid 32
{ .reg .b32 %r<8>; .reg .b64 %x; .reg .b64 %y; .reg .pred %p<4>;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %r1, %tid.x; mad.wide.u32 %x, %r1, 4, %x; mad.wide.u32 %y, %r1, 4, %y;
ld.global.u32 %r2, [%x]; ld.global.u32 %r3, [%x+128];
"""


@pytest.mark.parametrize(("body", "old", "new"), [
    ("lop3.b32 %r4, %r2, %r3, 5, TABLE;", "TABLE", ("0x96", "0xe8")),
    ("atom.global.cas.b32 %r4, [%y], 0, VALUE; ld.global.u32 %r4, [%y];", "VALUE", ("%r2", "%r3")),
])  # fmt: skip
def test_what_an_instruction_says_beside_its_operands_counts(body, old, new):
    programs = [compiled.read(f"{HEAD}{body.replace(old, each)} st.global.u32 [%y], %r4; ret; }}") for each in new]
    arguments = [np.arange(3, 67, dtype=np.uint32) * 77773, np.zeros(32, np.uint32)]
    found = compiled.compare(*programs, arguments=arguments, grids=(1, 1), seconds=0)
    assert found.verdict == "different"
