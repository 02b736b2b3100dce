"""Which products ptxas contracts and which divisions it folds: the machine's reading beside ptxas's own code."""

import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import compiled

NAMES = {"add": "FADD", "sub": "FADD", "mul": "FMUL", "fma": "FFMA"}
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) .reqntid 32
{ .reg .b64 %rd<3>; .reg .b32 %r<99>; .reg .pred %p<3>;
ld.param.b64 %rd1, [p]; mov.u32 %r90, %tid.x; mad.wide.u32 %rd1, %r90, 400, %rd1;
"""


def kernel(body: str) -> str:
    """A kernel of 32 threads, each with a row of 100 words; what it stores lies behind its four operands."""
    loads = "".join(f"ld.global.b32 %r{i}, [%rd1+{4 * i}];\n" for i in range(4))
    return f"{HEAD}{loads}{body}\nret; }}\n"


def drawn(seed: int, count: int = 20) -> str:
    """Products, sums and differences of earlier numbers, none twice; some are stored, as are all that nothing uses."""
    rng = random.Random(seed)
    lines, unused, seen = [], set(), set()
    for i in range(4, 4 + count):
        while True:
            name, flush = rng.choice(["mul", "mul", "add", "sub"]), rng.choice(["", "", "", "", ".ftz"])
            x = rng.choice(sorted(unused)) if unused and rng.random() < 0.6 else rng.randrange(i)
            y = rng.randrange(i)
            if x != y and (name, flush, x, y) not in seen:
                break
        seen |= {(name, flush, x, y), (name, flush, y, x)}
        unused = (unused - {x, y}) | {i}
        rounding = ".rn" if rng.random() < 0.1 else ""
        lines.append(f"{name}{rounding}{flush}.f32 %r{i}, %r{x}, %r{y};")
        if rng.random() < 0.1:
            lines.append(f"st.global.b32 [%rd1+{4 * i}], %r{i};")
    lines += [f"st.global.b32 [%rd1+{4 * i}], %r{i};" for i in sorted(unused)]
    return kernel("\n".join(lines))


def counted(program) -> Counter:
    """FADD, FMUL and FFMA of the entry as the machine runs it."""
    parts = [part for ins in program.entry.code for part in (getattr(ins, "parts", None) or (ins,))]
    return Counter(NAMES[ins.name] for ins in parts if ins.name in NAMES and ins.modifiers[-1] == "f32")


def assembled(text: str, folder: Path, *options: str) -> str:
    """The SASS that ptxas makes of a text."""
    triton = pytest.importorskip("triton", reason="Triton brings ptxas and nvdisasm")
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    if not os.access(tools / "ptxas", os.X_OK):
        pytest.skip("this Triton brings no ptxas")
    (folder / "k.ptx").write_text(text)
    subprocess.run([tools / "ptxas", *options, "-arch=sm_80", folder / "k.ptx", "-o", folder / "k.cubin"], check=True)
    done = subprocess.run([tools / "nvdisasm", "-c", folder / "k.cubin"], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(6))
def test_products_are_contracted_where_ptxas_does(seed, tmp_path):
    text = drawn(seed)
    program = compiled.read(text)
    sass = assembled(text, tmp_path)
    assert counted(program) == Counter(re.findall(r"\b(FADD|FMUL|FFMA)\b", sass))
    kept = assembled(text, tmp_path, "--fmad=false")
    assert counted(compiled.read(text, fmad=False)) == Counter(re.findall(r"\b(FADD|FMUL|FFMA)\b", kept))


def run(body: str, *operands: np.ndarray, **options) -> np.ndarray:
    """What a kernel stores at word 4 of 32 rows."""
    rows = np.zeros((32, 100), np.uint32)
    for i, x in enumerate(operands):
        rows[:, i] = np.asarray(x, np.float32).view(np.uint32)
    compiled.read(kernel(body), **options).run([rows], grid=1)
    return rows[:, 4].view(np.float32)


X, Y, Z, W = (np.random.default_rng(3).standard_normal((4, 32)) * 100).astype(np.float32)


def fused(x, y, z):
    """x y + z rounded once: exact here in float64 but for its own rounding, far below half a unit of FP32."""
    return (x.astype(np.longdouble) * y + z).astype(np.float32)


@pytest.mark.parametrize(("body", "want"), [
    ("mul.f32 %r4, %r0, %r1; add.f32 %r5, %r2, %r4;", fused(X, Y, Z)),
    ("mul.f32 %r4, %r0, %r1; sub.f32 %r5, %r4, %r2;", fused(X, Y, -Z)),
    ("mul.f32 %r4, %r0, %r1; sub.f32 %r5, %r2, %r4;", fused(-X, Y, Z)),
    ("mul.f32 %r4, %r0, %r1; mul.f32 %r6, %r2, %r3; add.f32 %r5, %r6, %r4;", fused(Z, W, X * Y)),
    ("mul.f32 %r4, %r0, %r1; add.f32 %r5, %r4, %r2; bra L; L: add.f32 %r5, %r4, %r2;", X * Y + Z),
    ("mul.f32 %r4, %r0, %r1; add.f32 %r5, %r4, %r2; st.global.b32 [%rd1+40], %r4;", X * Y + Z),
    ("div.full.f32 %r4, %r0, 0f447A0000; mov.b32 %r5, %r4;", X * (np.float32(1) / np.float32(1000))),
    ("mov.b32 %r6, 0f447A0000; div.full.f32 %r4, %r0, %r6; add.f32 %r5, %r4, %r2;",
     fused(X, np.float32(1) / np.float32(1000), Z)),
])  # fmt: skip
def test_results_of_what_ptxas_makes(body, want):
    got = run(f"{body} st.global.b32 [%rd1+16], %r5;", X, Y, Z, W)
    assert np.array_equal(got, want)


def test_the_last_product_of_a_division_is_contracted():
    """div.full scales both operands where the divisor is tiny or huge; the product by the reciprocal is fused."""
    divisor = np.where(np.arange(32) % 3, Y, np.where(np.arange(32) % 2, Y * np.float32(1e-40), Y * np.float32(1e36)))
    numerator = np.where(np.arange(32) % 3, X, divisor * np.float32(0.375))
    scale = np.where(abs(divisor) < 2.0**-126, 2.0**24, np.where(abs(divisor) > 2.0**126, 0.25, 1)).astype(np.float32)
    assert len(np.unique(scale)) == 3
    reciprocal = tcm.get_function("hopper", "rcp.approx.ftz.f32").values(divisor * scale)
    got = run("div.full.f32 %r4, %r0, %r1; add.f32 %r5, %r4, %r2; st.global.b32 [%rd1+16], %r5;", numerator, divisor, Z)
    assert np.array_equal(got, fused(numerator * scale, reciprocal, Z))


def test_contraction_is_an_assumption_and_can_be_left_out():
    text = kernel("mul.f32 %r4, %r0, %r1; add.f32 %r5, %r4, %r2; st.global.b32 [%rd1+16], %r5;")
    rows = np.zeros((32, 100), np.uint32)
    (line,) = compiled.read(text).run([rows], grid=1).assumptions
    assert line.startswith("ptxas makes multiply-adds of 1 additions (line ")
    assert compiled.read(text, fmad=False).run([rows], grid=1).assumptions == ()
    with pytest.raises(ValueError, match="fmad is for PTX"):
        compiled.read(".amdgcn_target", fmad=True)


@pytest.mark.parametrize(
    "line", ["div.full.f32 %r4;", "div.full.f32 %r4, %r0;", "div.approx.f32;", "div.full.f32 %r4, %r0, %r1, %r2;"]
)
def test_divisions_with_too_few_operands_are_refused_where_they_stand(line):
    program = compiled.read(kernel(f"{line} add.f32 %r5, %r4, %r0;"))
    with pytest.raises(compiled.Refused, match="line 11: div"):
        program.run([np.zeros((32, 100), np.uint32)], grid=1)
