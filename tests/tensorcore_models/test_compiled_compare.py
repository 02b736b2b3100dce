"""Equal or not: kernels compared by normal forms of their expressions and by bits."""

import itertools

import numpy as np
import pytest
from ptx_cases import GEMM, text

from tensorcore_models import compiled


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


def test_promotion_on_the_unit_s_own_boundary_is_not_said_to_be_equal():
    """Rounding a sum that is exact another way: the same bits on every input tried, another expression."""
    source = text("sm_80-bf16-kept")
    found = verdict("sm_80-bf16-kept", source.replace("add.f32", "add.rz.f32"), k=32, grids=[(2, 1)] * 2)
    assert found.verdict == "unknown" and "6 inputs" in found.reason


@pytest.mark.parametrize(
    ("first", "second"), [*itertools.combinations(["sm_80-tf32x3", "sm_80-bf16x3", "sm_80-bf16x6"], 2)]
)
def test_recovered_products_of_different_words_differ(first, second):
    assert verdict(first, second, m=32, n=32, k=32).verdict == "different"


def test_equal_rests_on_what_data_decided():
    found = verdict("sm_80-tf32x3", "sm_80-tf32x3", m=32, n=32, k=32)
    assert found.verdict == "equal" and any("setp.num.f32" in each for each in found.assumptions)
    assert str(found).startswith("equal: their expressions have one normal form")
