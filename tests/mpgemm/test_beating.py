"""Recovery methods as terms: they compute what the methods compute, and solvers find operands on which one beats another."""

import json
import time
from fractions import Fraction

import numpy as np
import pytest
from solvers import needs_solver

import mpgemm
from mpgemm.bounds import beating
from mpgemm.cli import main
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal import methods as ways
from tensorcore_models.probing.formal.encoding import Inputs
from tensorcore_models.probing.formal.witnesses import Witness

METHODS = (
    "fp16", "markidis", "markidis:rounding=rne,terms=3", "markidis:order=term", "markidis_scaled", "egemm", "ma", "ootomo",
    "ootomo:accumulate_outside=c_only,terms=4", "ootomo_inside", "sgemm_cube", "sgemm_cube:accumulation=elementwise",
)  # fmt: skip
#: Three words, scaled and not; words of other formats.
OTHERS = (("multiword:words=3,dynamic_scaling=False", "h100"), ("bf16x9", "h100"), ("tf32x3", "a100"))
#: What is asked of the exponents of random operands.
LOW, HIGH = -20, 12


def operands(rng: np.random.Generator, k: int) -> Witness:
    """FP32 operands with residual words: all 24 bits are random."""
    values = rng.uniform(1, 2, 2 * k + 1) * 2.0 ** rng.integers(LOW, HIGH, 2 * k + 1) * rng.choice([-1, 1], 2 * k + 1)
    values[rng.random(2 * k + 1) < 0.1] = 0
    codes = tuple(int(x) for x in values.astype(np.float32).view(np.uint32))
    return Witness(codes[:k], codes[k : 2 * k], codes[-1], beating.OPERANDS)


def by_term(way: formal.Way, witness: Witness) -> int:
    """The way's term on constants."""
    a, b, c = ([t.constant(code, 32) for code in codes] for codes in (witness.a, witness.b, [witness.c]))
    inputs = Inputs(tuple(a), tuple(b), c[0])
    conditions: list[t.Term] = []
    given = ways.given_operands(inputs, way.formats, way.engine, (LOW, HIGH), (LOW, HIGH), conditions)
    *holds, result = t.evaluate([*conditions, way.term(given, conditions)], {})
    assert all(holds)
    return result


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("method", "engine"), [*((m, e) for m in METHODS for e in ("v100", "h100")), *OTHERS])
def test_terms_of_methods_are_their_results(method, engine):
    """One k step, and three: chains, promotion and orders; kernels and reference agree inside of `run`."""
    rng = np.random.default_rng(3)
    way = beating.recovery_way(method, engine)
    for k in (1, way.engine.k, 2 * way.engine.k + 1):
        for _ in range(4):
            witness = operands(rng, k)
            assert by_term(way, witness) == way.run(witness), witness


def test_a_third_word_is_that_of_the_scaled_rest():
    """Only with three words does it show that the second one is taken off at its own scale."""
    way = beating.recovery_way(*OTHERS[0])
    for seed in range(4):
        witness = operands(np.random.default_rng(seed), 1)
        assert by_term(way, witness) == way.run(witness), witness


def test_a_wrong_split_is_a_contradiction(monkeypatch):
    way = beating.recovery_way("ootomo", "v100")
    witness = operands(np.random.default_rng(4), 4)
    right = beating._OnReference._chain_bits
    monkeypatch.setattr(beating._OnReference, "_chain_bits", lambda *given: right(*given) ^ 1)
    with pytest.raises(formal.Contradiction, match="results differ"):
        way.run(witness)


def errors(witness: Witness, names: tuple[str, str], engine: str) -> list[Fraction]:
    """Absolute errors of both methods, computed again from values."""
    a, b, c = (np.array(codes, np.uint32).view(np.float32) for codes in (witness.a, witness.b, [witness.c]))
    exact = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(float(c[0])))
    results = [mpgemm.recovered_gemm(a[None], b[:, None], c[None], name, engine)[0, 0] for name in names]
    return [abs(Fraction(float(d)) - exact) for d in results]


@needs_solver
@pytest.mark.unsanitized
def test_a_witness_has_residual_words_and_beats():
    names = ("ootomo", "markidis")
    verdict = beating.beating_operands(*names, "v100", timeout=120)
    assert verdict.status == "witness"
    mine, theirs = errors(verdict.witness, names, "v100")
    assert mine < theirs
    assert any(code & 0x1FFF for code in (*verdict.witness.a, *verdict.witness.b))  # bits that no fp16 number has


@pytest.mark.slow
@needs_solver
@pytest.mark.parametrize("engine", ["v100", "t4", "a100", "h100"])
@pytest.mark.parametrize("names", [("markidis", "ootomo"), ("ootomo", "markidis")])
def test_each_method_wins_somewhere(names, engine):
    verdict = beating.beating_operands(*names, engine, timeout=400)
    assert verdict.status == "witness"
    mine, theirs = errors(verdict.witness, names, engine)
    assert mine < theirs


def test_a_method_does_not_beat_itself():
    """Both terms are one, which takes no solver; nothing is between an error and itself."""
    assert beating.beating_operands("ootomo", "ootomo", "v100").status == "none"


@needs_solver
def test_no_time_is_an_answer():
    assert beating.beating_operands("markidis", "ootomo", "v100", timeout=0.05).status == "timeout"


def test_the_time_holds_for_building_the_question():
    """3000 products take half a minute to build; without a deadline that is how long this takes."""
    start = time.monotonic()
    assert beating.beating_operands("markidis", "ootomo", "v100", k=3000, timeout=0.3).status == "timeout"
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("k", [0, -1, 4097, 99999999999999999999])
def test_lengths_that_no_solver_answers_are_refused(k, capsys):
    assert main(["beats", "markidis", "ootomo", "--k", str(k), "--timeout", "1"]) == 2
    assert capsys.readouterr().err == (f"mpgemm beats: solvers take dot products of 1 to 4096 products, got k = {k}\n")


@pytest.mark.parametrize(
    ("method", "engine", "word"),
    [("ozaki_int8", "h100", "scaled rows"), ("multiword", "h100", "scaled rows"),
     ("fp16", "hopper:mma.m16n8k16.f16.f16.f16.f16", "gives results that are not fp32; take an engine with fp32 c and d")],
)  # fmt: skip
def test_what_has_no_encoding_is_refused(method, engine, word):
    with pytest.raises(formal.Unencodable, match=word):
        beating.recovery_way(method, engine)


def test_operands_of_other_formats_are_refused():
    way = beating.recovery_way("ootomo", "v100")
    with pytest.raises(ValueError, match="same operand and result formats"):
        formal.beating_input(way, formal.inside(way.engine))


@pytest.mark.parametrize("asked", [{"exponents": (5, 2)}, {"c_exponents": (-300, -200)}])
def test_exponents_must_exist(asked):
    with pytest.raises(ValueError, match="the exponents of fp32 lie between -126 and 127"):
        beating.beating_operands("ootomo", "markidis", "v100", **asked)


# -- the command -------------------------------------------------------------------------------------------------------------
@needs_solver
@pytest.mark.unsanitized
def test_the_command_prints_operands_and_errors(capsys):
    assert main(["beats", "ootomo", "markidis", "--engine", "v100", "--timeout", "120"]) == 0
    out = capsys.readouterr().out
    assert "error" in out and "run on the kernels and on the integer reference" in out


def test_the_command_says_what_a_proof_means(capsys):
    assert main(["beats", "ma", "ma", "--engine", "v100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "none"
    assert main(["beats", "ma", "ma", "--engine", "v100"]) == 0
    assert "ma is nowhere nearer than ma (exponents (-14, 14)" in capsys.readouterr().out


def test_bad_input_is_one_line(capsys):
    assert main(["beats", "ozaki_int8", "ootomo"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
