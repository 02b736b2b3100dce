"""Grouped products: each group is held to its own tolerance, and faults between groups are named."""

import re
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_grouped_close, check_grouped

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
UNIT = tcm.default_instruction("h100", "e4m3fn", path="wgmma")
#: The third expert has no rows; five rows behind the last end are nobody's.
ENDS, M, K, N = [24, 51, 51, 96], 101, 256, 48


class Call:
    """Operands with scales of blocks and a bias for each expert, and a right kernel whose parts can be read elsewhere."""

    def __init__(self, seed=0, scaled=True):
        rng = np.random.default_rng(seed)
        self.a = rng.standard_normal((M, K)).astype(E4M3)
        self.b = rng.standard_normal((4, K, N)).astype(E4M3)
        self.options = {"engine": "h100", "promote_every": 128}
        self.c = self.scale_a = self.scale_b = None
        if scaled:
            self.c = rng.standard_normal((4, N)) * 10
            self.scale_a, self.scale_b = rng.uniform(0.5, 2, (M, 2)), rng.uniform(0.5, 2, (4, 2, 1))
            del self.options["promote_every"]

    def kernel(self, expert_of=lambda row, e: e, row_of=lambda row, e: row, scale_of=None, bias_of=None):
        """The result, row by row: which expert, row of A, scales and bias each takes is a function of (row, expert)."""
        out = np.full((M, N), np.nan).astype(BF16)
        for row in range(ENDS[-1]):
            own = int(np.searchsorted(ENDS, row, side="right"))
            e, at = expert_of(row, own), row_of(row, own)
            scales, options = {}, {"promote_every": 128}
            if self.scale_a is not None:
                scaled = self.scale_b[e if scale_of is None else scale_of(row, own)]
                scales, options = {"scale_a": self.scale_a[at : at + 1], "scale_b": scaled}, {}
            sums = UNIT.gemm(self.a[at : at + 1], self.b[e], **scales, **options).astype(np.float32)
            bias = 0 if self.c is None else self.c[e if bias_of is None else bias_of(row, own)].astype(np.float32)
            out[row] = (sums[0] + bias).astype(BF16)
        return out

    def check(self, out):
        return check_grouped(
            out, self.a, self.b, ENDS, self.c, scale_a=self.scale_a, scale_b=self.scale_b, **self.options
        )


@pytest.mark.parametrize("scaled", [False, True])
def test_a_right_kernel_passes(scaled):
    call = Call(scaled=scaled)
    out = call.kernel()
    found = call.check(out)
    assert found.passes and found.elements == ENDS[-1] * N, str(found)
    assert_grouped_close(out, call.a, call.b, ENDS, call.c, scale_a=call.scale_a, scale_b=call.scale_b, **call.options)


FAULTS = {
    "wrong expert": (
        {"expert_of": lambda row, e: 0 if e == 1 else e}, "rows 24 to 50, all columns",
        "all rows of the group, 24 to 50, are multiplied with expert 0 in place of expert 1",
    ),
    "boundary rows": (
        {"expert_of": lambda row, e: 1 if 51 <= row < 64 else e}, "rows 51 to 63, all columns",
        "rows 51 to 63 are multiplied with expert 1 in place of expert 3: the kernel takes the boundary to be at row 64, "
        "a multiple of 64",
    ),
    "a boundary too early": (
        {"expert_of": lambda row, e: 1 if row == 23 else e}, "row 23, all columns",
        "row 23 is multiplied with expert 1 in place of expert 0: the kernel takes the boundary to be at row 23",
    ),
    "the offset of a group is lost": (
        {"row_of": lambda row, e: row - 51 if e == 3 else row}, "rows 51 to 95, all columns",
        "all rows of the group, 51 to 95, read A from row 0 on",
    ),
}  # fmt: skip
WITH_SCALES = {
    "scales of the expert before": (
        {"scale_of": lambda row, e: 1 if e == 3 else e}, "rows 51 to 95, all columns", "have the scales of expert 1",
    ),
    "bias of expert 0": (
        {"bias_of": lambda row, e: 0}, "rows 24 to 95, all columns", "have the bias of expert 0 in place of that of",
    ),
}  # fmt: skip


@pytest.mark.sweep(4)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("fault", [*FAULTS, *WITH_SCALES])
def test_faults_between_groups_are_placed_and_named(fault, scaled):
    if fault in WITH_SCALES and not scaled:
        pytest.skip("there are no scales")
    options, place, text = {**FAULTS, **WITH_SCALES}[fault]
    call = Call(1, scaled)
    found = call.check(call.kernel(**options))
    assert not found.passes and found.place == place
    assert any(text in statement for statement in found.suspects), str(found)
    assert len(found.suspects) <= 2


def test_faults_inside_of_a_group_keep_their_names():
    call = Call(2)
    out = call.kernel()
    out[24:51] = (out[24:51].astype(np.float32) * 2).astype(BF16)
    found = call.check(out)
    assert found.place == "rows 24 to 50, all columns"
    assert found.suspects[0].startswith("expert 1: ") and "twice" in " ".join(found.suspects)
    worst = int(re.search(r"worst: out\[(\d+), ", str(found))[1])
    assert 24 <= worst < 51


def test_rows_behind_the_last_group_are_not_looked_at():
    call = Call()
    out = call.kernel()
    out[ENDS[-1] :] = 1000
    assert call.check(out).passes


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"ends": [24, 51, 96]}, ValueError, "must be 4 ascending numbers"),
        ({"ends": [24, 20, 51, 96]}, ValueError, "4 ascending numbers"),
        ({"ends": [24, 51, 51, 200]}, ValueError, "at most 101"),
        ({"ends": [24.0, 51, 51, 96]}, TypeError, "must be integers"),
        ({"b": np.ones((K, N), E4M3)}, ValueError, r"\(experts, k, n\)"),
        ({"out": np.ones((50, N), BF16)}, ValueError, "101 rows"),
        ({"out": np.ones((M, N - 1), BF16)}, ValueError, "48 columns"),
        (
            {"scale_a": np.ones((M, 2)), "scale_b": np.ones((3, 2, 1))},
            ValueError,
            "one entry for each of 4 experts, or be one number, got 3",
        ),
        ({"rows": 0}, ValueError, "at least 1"),
    ],
)
def test_bad_input(change, error, words):
    call = Call(scaled=False)
    given = {"out": np.ones((M, N), BF16), "a": call.a, "b": call.b, "ends": ENDS, "engine": "h100", **change}
    with pytest.raises(error, match=words):
        check_grouped(**given)


def test_some_rows_of_all_groups():
    call = Call()
    out = call.kernel()
    check = partial(check_grouped, a=call.a, b=call.b, ends=ENDS, c=call.c, scale_a=call.scale_a, scale_b=call.scale_b)
    found = check(out, rows=7, **call.options)
    assert found.passes and found.summary == f"{7 * N} of {96 * N} elements were checked, and all are right in 3 groups"
    assert (
        check(out, rows=1, **call.options).summary
        == f"{N} of {96 * N} elements were checked, and all are right in 1 of 3 groups"
    )
    wrong = call.kernel(expert_of=lambda row, e: 1 if row >= 51 else e)
    found = check(wrong, rows=7, **call.options)
    assert found.wrong > 2 * N and all("expert 1 in place of expert 3" in text for text in found.suspects)
    assert not found.outside[
        [row for row in range(M) if row % 16 not in (15, 0) and row not in (31, 47, 63, 79)][0]
    ].any()
