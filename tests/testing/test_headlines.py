"""The first lines of an answer agree with what stands below them."""

import numpy as np

import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.testing import check_gemm


def test_a_line_that_misses_lost_products_of_other_pairs_says_so(capsys):
    assert main(["tolerance", "--engine", "h100", "--operands", "e4m3fn", "--k", "512", "--quiet"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    first, below = text.split("certified (no kernel", 1)
    missed = "the least single k dropped (in "
    assert f"on this pair; on others it misses {missed}" in first and f"misses {missed}" in below


def test_a_picture_of_more_elements_than_the_tolerance_refuses_says_of_which():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(tcm.get_format("e4m3fn").dtype) for shape in ((64, 256), (256, 48)))
    right = tcm.default_instruction("h100", "e4m3fn", path="wgmma").gemm(a, b)
    for factor, more in ((1.01, True), (2, False)):
        found = check_gemm(right * np.float32(factor), a, b, engine="h100/wgmma")
        assert not found.passes
        assert any("larger errors than right kernels" in line for line in found.picture) == more, str(found)
