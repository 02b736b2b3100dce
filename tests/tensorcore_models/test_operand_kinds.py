"""Kinds of random operands: every kind of every row is drawn, by numpy 2.5's rules for Python integers, too."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.probing.identify import inputs
from tensorcore_models.probing.random_operands import KINDS, operands

FP64 = tcm.get_instruction("hopper:mma.m16n8k8.f64.f64.f64.f64")


@pytest.fixture(autouse=True)
def newest_numpy(monkeypatch):
    """`np.where` of numpy 2.5 and newer takes Python integers as int64, and so refuses FP64's sign bit."""
    where = np.where

    def strict(condition, *choices):
        if any(type(choice) is int and not -(1 << 63) <= choice < 1 << 63 for choice in choices):
            raise OverflowError("Python int too large to convert to C long")
        return where(condition, *choices)

    monkeypatch.setattr(np, "where", strict)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_operands_of_every_kind(kind):
    for row in tcm.list_instructions():
        drawn = operands(row, kind, 1, np.random.default_rng(0))
        for found, fmt, shape in zip(
            drawn, row.formats, ((row.m, row.k), (row.k, row.n), (row.m, row.n)), strict=False
        ):
            assert found.dtype == fmt.container and found.shape == (1, *shape), row


def test_zeros_of_fp64_have_both_signs():
    a = operands(FP64, "zeros", 40, np.random.default_rng(1)).a
    assert {0, 1 << 63} <= set(a.ravel().tolist())


@pytest.mark.parametrize("draw", [inputs.zeros, inputs.alone, inputs.subnormal], ids=lambda f: f.__name__)
def test_inputs_of_identify_are_drawn_for_fp64(draw):
    for seed in range(4):
        batch = draw(FP64, 50, np.random.default_rng(seed))
        assert batch.a.dtype == batch.c.dtype == np.uint64 and batch.size == 50
