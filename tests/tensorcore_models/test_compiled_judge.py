"""The judge of `compiled.compare`: verdicts on mutants and on configurations against bits on many inputs."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from judge_pairs import FAMILIES, configurations, judged, mutants
from ptx_cases import GEMM

PTX = Path(__file__).resolve().parents[1] / "vectors" / "ptx"
#: Mutants that change no bit, by their name.
HARMLESS = (
    "registers renamed", "additions turned", "additions named rn", "additions as products by one", "plus zero", "times one",
    "fma turned",
)  # fmt: skip
#: Files whose mutants are judged, and the unit on which.
FILES = [
    ("sm_80-bf16-folded", "hopper"), ("sm_80-bf16-kept", None), ("sm_80-bf16-folded", None), ("sm_80-tf32x3", None),
    ("sm_80-fp32", None), ("sm_90-fp8-promoted", None), ("sm_80-tf32", None), ("sm_80-fp16-masked", "hopper"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "unit"), FILES)
@pytest.mark.sweep(1)
def test_mutants(name, unit):
    """No wrong verdict; what changes no bit is said to be equal."""
    found = [judged(pair, inputs=6) for pair in mutants(name, unit)]
    assert found and not [(x.pair.name, x.verdict, x.wrong) for x in found if x.wrong]
    harmless = [x for x in found if x.pair.name.partition(": ")[2].partition(" on ")[0] in HARMLESS]
    assert {x.pair.name: x.verdict for x in harmless if x.verdict != "equal"} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_two_hundred_pairs(monkeypatch):
    """0 wrongly equal, 0 wrongly different, at most a tenth unknown; Triton compiles the configurations."""
    pytest.importorskip("triton", reason="triton is not installed: pip install 'mpgemm[triton]'")
    monkeypatch.syspath_prepend(str(PTX))
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    import make

    assert sys.modules["make"].HERE == PTX
    pairs = [pair for name in GEMM for pair in mutants(name)]
    pairs += [pair for name, unit in FILES if unit for pair in mutants(name, unit)]
    pairs += [pair for family in FAMILIES for pair in configurations(make.compiled, family)]
    found = [judged(pair) for pair in pairs]
    counts = Counter(x.verdict for x in found)
    print(len(pairs), dict(counts), [(x.pair.name, x.reason) for x in found if x.verdict == "unknown"])
    assert len(pairs) >= 200
    assert not [(x.pair.name, x.verdict, x.wrong) for x in found if x.wrong]
    assert counts["unknown"] <= len(pairs) / 10
