"""`mpgemm explain --function`: one result of a special function step by step."""

import json

import pytest

from mpgemm.cli import main


def printed(capsys, *words: str) -> str:
    assert main(["explain", "--function", *words]) == 0
    return capsys.readouterr().out


def test_a_lookup(capsys):
    text = printed(capsys, "ex2", "-0.078155517578125")
    for line in (
        "ex2(0xbda01000) = 0x3f728025",
        "  segment  58 of 64 in table ex2, x = 130815 of 2^17",
        "  c0 c1 c2 0x77f25d57e2, 42568, 925",
        "  square   Q(x) = 32632; x^2 / 2^19 = 32639.626",
        "exact   0.947267952858, so the error is -2.055 units in the last place",
    ):
        assert line in text.splitlines()


def test_the_parts_make_the_result(capsys):
    for name, x in (("tanh", "1.21875"), ("lg2", "0.3"), ("rcp.approx.ftz.f64", "3"), ("sqrt", "1/3"), ("cos", "2")):
        found = json.loads(printed(capsys, name, x, "--json"))
        lookup = found["operations"][-1]["lookup"]
        f = lookup["c0"] + lookup["c1"] * lookup["x"] + lookup["c2"] * lookup["square"]
        if lookup["whole"] is None:
            assert f == lookup["total"]
        magnitude = lookup["significand"] * 2.0 ** (f.bit_length() - lookup["significand"].bit_length())
        if lookup["whole"] is None:
            assert magnitude * 2.0 ** (lookup["scale"] - lookup["fraction_bits"]) == abs(found["value"])


def test_several_instructions_and_a_special_operand(capsys):
    text = printed(capsys, "expf", "1")
    assert "fma_rd(0x3f017731, 0x437c0000, 0x4b400001) = 0x4b400080" in text
    assert "result  2.71828175 (0x402df854)" in text
    assert "the result is a fixed value" in printed(capsys, "sqrt", "-1")
    assert printed(capsys, "list", "--engine", "a100").splitlines()[0] == "ex2.approx.ftz.f32"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ex2"], "got 0 numbers, expected 1"),
        (["tanh", "1", "--engine", "volta"], "unknown function 'tanh' of volta"),
        (["ex2", "x"], "expected a number"),
        (["ex2", "1", "--engine", "h100", "a100"], "takes one architecture"),
        (["cvt.rn.satfinite.e4m3x2.f32", "1", "2"], "converts two numbers"),
    ],
)
def test_bad_input(capsys, words, message):
    assert main(["explain", "--function", *words]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
