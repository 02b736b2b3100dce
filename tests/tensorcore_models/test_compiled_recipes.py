"""What kernels compute, read out of their PTX: one expression for all outputs, and the recipe that predicts their bits."""

import re

import numpy as np
import pytest
from ptx_cases import GEMM, rows_to_normalise, text

import tensorcore_models as tcm
from tensorcore_models import compiled, libraries
from tensorcore_models.compiled.common_forms import forms
from tensorcore_models.compiled.expressions import ExpressionTrace, Products, bytes_of
from tensorcore_models.compiled.isa.meaning import Meaning


def recipe_of(name, m=None, n=None, k=None, changed=lambda x: x):
    """(recipe, A, B) of one of the GEMM files."""
    case = GEMM[name]
    m, n, k = (m, n, k) if m else (16, 32, 48) if case.masked else (*case.tile[:2], 2 * case.tile[2])
    a, b = case.operands(m, n, k)
    program = compiled.read(changed(text(name)))
    return program.recipe([a, b, np.zeros((m, n), np.float32), m, n, k], grid=case.grid(m, n)), a, b


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", GEMM)
def test_every_gemm_has_one_expression(name):
    recipe, a, b = recipe_of(name)
    assert len(recipe.forms) == 1 and len(recipe.forms[0].outputs) == a.shape[0] * b.shape[1]
    case = GEMM[name]
    unit = "fma.rn.f32" if case.instruction == "fma" else f"{case.unit}:{case.instruction}"
    found = recipe.instructions[0].replace("n32k", "n8k").replace("n16k", "n8k").replace("m128", "m64")
    assert len(recipe.instructions) == 1 and found == (unit if "mma.m16" not in unit else unit.replace("n16k", "n8k"))


@pytest.mark.parametrize("name", [name for name, case in GEMM.items() if not case.words])
def test_plain_gemms_are_recipes_of_libraries_that_predict_their_bits(name):
    recipe, a, b = recipe_of(name)
    predicted = recipe.library().gemm_bits(a, b)
    assert np.array_equal(predicted, GEMM[name].predicted(a, b))


def test_promotion_is_seen_and_its_loss_too():
    kept, folded = (recipe_of(f"sm_80-bf16-{name}", 32, 32, 128)[0] for name in ("kept", "folded"))
    assert kept.library().order == libraries.Sum(
        tuple(libraries.Chain((range(x, x + 32),)) for x in range(0, 128, 32)), start="zero"
    )
    assert folded.library().order == libraries.Chain((range(128),))
    assert "k 0:32 + k 32:64" in str(kept) and "add.f32" not in str(folded)


@pytest.mark.parametrize(
    ("name", "words"), [("tf32x3", "10 01 00"), ("bf16x3", "10 01 00"), ("bf16x6", "11 20 02 10 01 00")]
)
def test_words_of_products_are_named_in_their_order(name, words):
    recipe, _, _ = recipe_of(f"sm_80-{name}", 32, 32, 16)
    lines = [line for line in recipe.outline() if " then " in line]

    def word(side):
        return side.count("sub.f32") and (2 if "sub.f32(sub.f32" in side or "sub.f32(cvt" in side else 1)

    sides = [line.strip().removeprefix("then ").split(", k ")[0].split(" x ") for line in lines]
    assert " ".join(f"{word(left)}{word(right)}" for left, right in sides) == words
    assert any("setp.num.f32 is true wherever it decides" in each for each in recipe.assumptions)
    assert "w1 = " in str(recipe) and "not a recipe of libraries: the factors of a chain" in str(recipe)
    with pytest.raises(libraries.Unknown, match="plain elements"):
        recipe.library()


def test_the_epilogue_and_tensor_maps():
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((64, 128)).astype(np.float16) for _ in "ab")
    c = np.zeros((64, 64), np.float16)
    maps = [x for each in (a, b, c) for x in (compiled.TensorMap(each, (64, 64), "128B"), 0, 0, 0, 0)]
    recipe = compiled.read(text("sm_90-described")).recipe([*maps, 64, 64, 128])
    assert not c.any()  # the caller's arrays stay as they are
    assert len(recipe.forms) == 1 and recipe.outline()[0].startswith("cvt.rn.f16.f32")
    library = recipe.library()
    bits = [np.ascontiguousarray(x).view(np.uint16) for x in (a, b.T)]
    wgmma = tcm.get_instruction("hopper:wgmma.m64n8k16.f32.f16.f16")
    want = wgmma.gemm(a, np.ascontiguousarray(b.T)).astype(np.float16)
    assert np.array_equal(library.gemm_bits(*bits, out_format="fp16"), want.view(np.uint16))
    with pytest.raises(libraries.Unknown, match="output format"):
        library.gemm_bits(*bits)


def test_split_k_is_atomic_additions_in_the_order_of_blocks():
    m, n, k = 16, 32, 144
    a, b = GEMM["sm_80-fp16-masked"].operands(m, n, k)
    recipe = compiled.read(text("sm_80-split-k")).recipe([a, b, np.zeros((m, n), np.float32), m, n, k], grid=(1, 1, 3))
    outline = recipe.outline()
    assert [line.strip() for line in outline if "atom" in line] == ["atom.add.f32"] * 3
    assert outline[3].strip() == "param_2[i, j]"  # what was there before
    assert "k 0:32, 96:128" in "\n".join(outline)
    assert "order of blocks and threads" in recipe.assumptions[0]


@pytest.mark.full  # 4 s: an expression for each of its additions
def test_a_reduction_s_tree():
    x = rows_to_normalise(2, 256)
    out = np.zeros(x.shape, np.uint16)
    recipe = compiled.read(text("sm_80-normalised")).recipe([x, out, 256, 1e-5], grid=2)
    assert recipe.outline()[0].startswith("cvt.rn.bf16.f32") and "div.rn.f32" in recipe.outline()[1]
    assert recipe.instructions == () or "fma.rn.f32" in str(recipe)


def test_a_mutant_has_another_expression():
    plain, _, _ = recipe_of("sm_80-bf16-kept")
    mutant, _, _ = recipe_of("sm_80-bf16-kept", changed=lambda x: x.replace("add.f32", "add.rz.f32"))
    assert plain.outline() != mutant.outline() and "add.rz.f32" in mutant.outline()[0]
    with pytest.raises(libraries.Unknown, match="where a chain or an addition is expected"):
        mutant.library()


def test_kernels_without_an_output():
    nothing = ".version 8.0\n.target sm_80\n.visible .entry none(.param .u64 x) .reqntid 32 { ret; }\n"
    with pytest.raises(ValueError, match="writes to no array"):
        compiled.read(nothing).recipe([np.zeros(4)])


STRUCTURE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 8 .b8 all[32]) .reqntid 32
{ .reg .b32 %r<9>; .reg .b64 %rd<9>;
  mov.b64 %rd1, all; ld.param.u64 %rd2, [%rd1+8]; ld.param.u64 %rd3, [all+24]; ld.param.b32 %r4, [all+16];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd2, %rd4; add.u64 %rd6, %rd3, %rd4;
  ld.global.b32 %r2, [%rd5]; fma.rn.f32 %r3, %r2, %r2, 0f00000000; mul.f32 %r3, %r3, %r4; st.global.b32 [%rd6], %r3; ret; }
"""


def test_addresses_in_a_structure():
    """CUTLASS in C++ passes one structure; the kernel's alpha = 3 is part of the expression, and finishes the sum."""
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    data = bytearray(32)
    data[16:20] = np.float32(3).tobytes()
    program = compiled.read(STRUCTURE)
    given = compiled.Structure(bytes(data), {8: x, 24: y})
    program.run([given])
    assert y.tolist() == (3 * x * x).tolist()
    recipe = program.recipe([given])
    assert "argument 0 at byte 24" in recipe.output and y.tolist() == (3 * x * x).tolist()
    assert "all at byte 8[i + k]" in str(recipe) and "operations after the sum use constants" in str(recipe)
    with pytest.raises(ValueError, match="all has 32 bytes, but the Structure has 24"):
        program.run([compiled.Structure(bytes(24), {8: x})])
    with pytest.raises(ValueError, match="at byte 28, outside of a structure of 32 bytes"):
        compiled.Structure(bytes(32), {28: x})
    with pytest.raises(TypeError, match="the output, is not an array"):
        compiled.compare(program, program, arguments=[given], grids=[1, 1])


def _times_one(source):
    """The text with every stored number multiplied by 1 before."""

    def changed(found):
        return "".join(f"mul.f32 {x}, {x}, 0f3F800000; " for x in re.findall(r"%r\d+", found[1])) + found[0]

    return re.sub(r"st\.global\.v4\.b32 \[[^]]*\], (\{[^}]*\});", changed, source)


def test_a_sum_times_one_is_a_recipe():
    """Epilogues multiply by alpha; 1 changes no bit of a computed number."""
    plain, scaled = (recipe_of("sm_80-bf16-folded", changed=change)[0] for change in (lambda x: x, _times_one))
    assert scaled.outline()[0].startswith("mul.f32") and not plain.outline()[0].startswith("mul.f32")
    assert str(scaled.library().order) == str(plain.library().order)


def finished_recipe():
    """(the recipe of a kernel that adds to C, scales rows and columns, adds a bias, clips; its arguments by name, output)."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 64), (64, 16)))
    c, left, right, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 16), 32, 16, 16))
    out = np.zeros((32, 16), np.float16)
    program = compiled.read(text("sm_80-finished"))
    recipe = program.recipe([a, b, c, left, right, bias, out])
    program.run([a, b, c, left, right, bias, out])
    return (
        recipe,
        (a.view(np.uint16), b.view(np.uint16)),
        {"param_2": c, "param_3": left, "param_4": right, "param_5": bias},
        out,
    )


def test_a_recipe_takes_c_scales_and_a_bias():
    recipe, operands, arrays, out = finished_recipe()
    library = recipe.library()
    assert library.arrays == tuple(arrays) and library.order == libraries.Chain((range(64),))
    assert (out > 0).any() and (out == 0).any()
    assert np.array_equal(library.gemm_bits(*operands, arrays=arrays), out.view(np.uint16))
    assert "operations after the sum use param_2, param_3, param_4, param_5" in str(recipe)
    for name, array in arrays.items():  # each of them counts
        other = library.gemm_bits(*operands, arrays=arrays | {name: array * np.float32(1.5)})
        assert (other != out.view(np.uint16)).any(), name
    with pytest.raises(
        ValueError, match="takes param_2, param_3, param_4, param_5 in addition to A and B, got param_2"
    ):
        library.gemm_bits(*operands, arrays={"param_2": arrays["param_2"]})
    with pytest.raises(libraries.Unknown, match="output format fp32 is not the kernel.s; known: fp16"):
        library.gemm_bits(*operands, arrays=arrays, out_format="fp32")
    with pytest.raises(libraries.Unknown, match="its own factors"):
        library.gemm_bits(*operands, arrays=arrays, scale=2.0)
    with pytest.raises(libraries.Unknown, match="starts its sum from param_2"):
        library.sum_bits(*operands)
    with pytest.raises(libraries.Unknown, match="no other scales"):
        library.scaled_bits(*operands, None)
    with pytest.raises(ValueError, match=r"expected \(m, 64\) and \(64, n\)"):
        library.gemm_bits(operands[1], operands[0], arrays=arrays)


def test_sums_whose_operands_were_computed_in_another_order_are_one_expression():
    """-x + x y of two outputs; of one the product comes first, of the other the negation (as tcgen05.ld has it by warps)."""
    trace, row = ExpressionTrace(), tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32")
    x = trace.add_input(0, "x", (2,), 4, 2).reshape(2, 4)
    out = trace.add_input(1, "out", (2,), 4, 2).reshape(2, 4)

    def negated(i):
        return trace.operation("neg.f32", 1, [np.zeros(1, np.float32)], [x[i : i + 1]], 1, 4)

    first = negated(0)
    numbers, none = trace.values_of(x), np.zeros((1, 2, 1), np.uint64)
    block = Products(
        row,
        2,
        numbers.reshape(1, 2, 1),
        numbers[:1].reshape(1, 1, 1),
        np.zeros((1, 2, 1), np.int64),
        (none, none[:, :1], none),
    )
    product = bytes_of(trace.add(block, 2) + np.arange(2), 4)
    zeros = np.zeros(2, np.float32)
    both = [np.concatenate([first, negated(1)]), product]
    out[:] = trace.operation("add.f32", 3, [zeros, zeros], both, 2, 4, Meaning("add", "f32", ("f32", "f32")))
    (form,) = forms(trace, out.reshape(-1), 1, (2,), 4)
    assert [type(x).__name__ for x in form.root.operands] == ["Applied", "Step"]
