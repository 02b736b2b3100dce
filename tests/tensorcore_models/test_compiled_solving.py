"""Two kernels that no normal form and no tried input decides: solvers do, on terms with the machine's bits."""

import random

import numpy as np
import pytest
from ptx_cases import GEMM, text
from solvers import needs_solver

from tensorcore_models import compiled
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.passes import Unencodable
from tensorcore_models.compiled.kernel_recipe import KernelRecipe
from tensorcore_models.compiled.normal_form import Forms
from tensorcore_models.compiled.solver_terms import NodeTerms

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) .reqntid 32
{ .reg .b32 %r<20>; .reg .b16 %h<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;
  ld.global.b32 %r2, [%rd5]; ld.global.b32 %r3, [%rd6]; BODY st.global.b32 [%rd7], %r9; ret; }
"""
#: Bodies from %r2 and %r3 to %r9.
BODIES = {
    **{f"add{r}{f}": f"add{r}{f}.f32 %r9, %r2, %r3;" for r in (".rn", ".rz", ".rm", ".rp") for f in ("", ".ftz")},
    **{f"mul{r}": f"mul{r}.f32 %r9, %r2, %r3;" for r in (".rn", ".rz.ftz", ".rm", ".rp")},
    **{f"fma{r}": f"fma{r}.f32 %r9, %r2, %r3, %r2;" for r in (".rn", ".rz", ".rn.ftz")},
    **{name: f"{name}.f32 %r9, %r2, %r3;" for name in ("min", "max", "max.NaN", "min.ftz")},
    "sub": "sub.f32 %r9, %r2, %r3;",
    **{
        f"cvt.{r}.{k}": f"cvt.{r}.{k}.f32 %h1, %r2; cvt.f32.{k} %r9, %h1;"
        for r in ("rn", "rz")
        for k in ("bf16", "f16")
    },
    **{
        name: f"{name}.f32 %r9, %r2;"
        for name in ("ex2.approx.ftz", "rcp.approx", "rsqrt.approx.ftz", "lg2.approx", "tanh.approx")
    },
    "div.full": "div.full.f32 %r9, %r2, %r3;",
    "ex2.approx.f16x2": "ex2.approx.f16x2 %r9, %r2;",
    "halves": "mov.b16 %h2, 0; cvt.rn.bf16.f32 %h1, %r2; mov.b32 %r5, {%h2, %h1}; add.f32 %r9, %r5, %r3;",
}
_EDGES = [0, 1, 0x7FFFFF, 0x800000, 0x33800000, 0x3F800000, 0x3F800001, 0x477FF000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001]


def kernel(body):
    return compiled.read(HEAD.replace("BODY", body))


def arguments(a, b):
    return [np.array(a, np.uint32).view(np.float32), np.array(b, np.uint32).view(np.float32), np.zeros(32, np.float32)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_terms_have_the_bits_of_the_machine(body):
    """Random encodings, near ones of both signs, and edges."""
    draw = random.Random(3)
    a = [draw.choice(_EDGES) | draw.getrandbits(1) << 31 if i % 2 else draw.getrandbits(32) for i in range(32)]
    b = [x ^ draw.getrandbits(24) ^ (1 << 31) if i % 3 else draw.choice(_EDGES) for i, x in enumerate(a)]
    given = arguments(a, b)
    program = kernel(body)
    recipe = program.recipe(given)
    assert isinstance(recipe, KernelRecipe) and len(recipe.forms) == 1
    program.run(given)
    terms = NodeTerms({0: 32, 1: 32}, lambda node: None)
    term = terms.of(recipe.root)
    for i in range(32):
        values = {v.params[0]: (a, b)[x.array][i] for x, v in terms.variables.items()}
        assert t.evaluate([term], values) == [int(given[2].view(np.uint32)[i])], (hex(a[i]), hex(b[i]))


def test_terms_of_matrix_instructions_have_the_bits_of_the_machine():
    case = GEMM["sm_80-bf16-kept"]
    a, b = case.operands(64, 32, 32)
    given = [a.view(np.uint16), b.view(np.uint16), np.zeros((64, 32), np.float32), 64, 32, 32]
    program = compiled.read(text("sm_80-bf16-kept"))
    recipe = program.recipe(given, (2, 1))
    program.run(given, (2, 1))
    terms = NodeTerms({0: 16, 1: 16}, lambda node: None)
    term = terms.of(recipe.root)
    for i, j in ((0, 0), (5, 17), (63, 31)):
        values = {}
        for x, variable in terms.variables.items():
            row, column = (c + s[0] * i + s[1] * j for c, s in x.index)
            values[variable.params[0]] = int(given[x.array][row, column])
        assert t.evaluate([term], values) == [int(given[2].view(np.uint32)[i, j])]


def compared(first, second, **options):
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(32).astype(np.float32) for _ in "ab"] + [np.zeros(32, np.float32)]
    return compiled.compare(kernel(first), kernel(second), arguments=given, grids=[1, 1], **options)


@needs_solver
@pytest.mark.unsanitized
def test_equal_because_no_values_tell_them_apart():
    twice, doubled = "add.f32 %r9, %r2, %r2;", "mul.f32 %r9, %r2, 0f40000000;"
    found = compared(twice, doubled)
    assert found.verdict == "equal" and "1 questions" in found.reason and found.witness is None
    assert compared(twice, doubled, seconds=0).verdict == "unknown"


@needs_solver
@pytest.mark.unsanitized
def test_a_model_is_a_witness_once_the_kernels_show_it():
    """Halving loses the last bit of subnormal numbers only, which no drawn input has."""
    found = compared("mul.f32 %r4, %r2, 0f3F000000; mul.f32 %r9, %r4, 0f40000000;", "mul.f32 %r9, %r2, 0f3F800000;")
    assert found.verdict == "different"
    given, index, left, right = found.witness
    assert left != right and 0 < abs(given[0][index]) < 2.0**-126


@needs_solver
@pytest.mark.unsanitized
def test_parts_that_differ_where_nothing_shows_are_equal():
    """The parts differ for subnormal numbers; both are multiplied by 0, so that what is made of them is asked next."""
    tail = " mul.f32 %r5, %r5, 0f00000000; add.f32 %r9, %r5, 0f3F800000;"
    found = compared(
        "mul.f32 %r4, %r2, 0f3F000000; mul.f32 %r5, %r4, 0f40000000;" + tail, "mul.f32 %r5, %r2, 0f3F800000;" + tail
    )
    assert found.verdict == "equal" and "(1 questions)" in found.reason


@needs_solver
def test_what_has_no_term_stays_open():
    found = compared("abs.f32 %r9, %r2;", "abs.ftz.f32 %r9, %r2; abs.f32 %r9, %r2;  add.f32 %r9, %r9, 0f80000000;")
    assert found.verdict == "unknown" and "has no term" in found.reason
    with pytest.raises(Unencodable, match=r"abs\.f32 has no term"):
        recipe = kernel("abs.f32 %r9, %r2;").recipe(arguments([0] * 32, [0] * 32))
        NodeTerms({0: 32, 1: 32}, lambda node: None).of(recipe.root)


@pytest.mark.full
@needs_solver
def test_words_that_were_exact_are_cut_where_products_are_subnormal():
    """bf16x6: the third word rounds only below 2^-133, which a large factor on the other side shows (4 s of a solver)."""
    case, source = GEMM["sm_80-bf16x6"], text("sm_80-bf16x6")
    programs = [compiled.read(x) for x in (source, source.replace("cvt.rn.bf16x2", "cvt.rz.bf16x2"))]
    a, b = case.operands(64, 32, 32)
    given = [a.view(np.float32), b.view(np.float32), np.zeros((64, 32), np.float32), 64, 32, 32]
    found = compiled.compare(*programs, arguments=given, grids=[case.grid(64, 32)] * 2)
    assert found.verdict == "different" and np.abs(found.witness[0][0]).max() < 2.0**-100


def test_units_hold_for_the_results_of_matrix_instructions():
    """What the normal form takes from formats: results are multiples of the products' unit."""
    case = GEMM["sm_90-fp8-promoted"]
    a, b = (np.random.default_rng(7).integers(0, 16, s).astype(np.uint8) for s in ((64, 128), (128, 32)))
    given = [a, b, np.zeros((64, 32), np.float32), 64, 32, 128]
    program = compiled.read(text("sm_90-fp8-promoted"))
    root = program.recipe(given, case.grid(64, 32)).root
    forms = Forms()
    unit = forms.unit(forms.of(root))
    program.run(given, case.grid(64, 32))
    scaled = np.ldexp(given[2].astype(np.float64), -unit)
    assert unit == -18 and (scaled == np.rint(scaled)).all() and (scaled % 2 == 1).any()


@pytest.mark.parametrize(("first", "second"), [
    ("div.full.f32 %r9, %r2, %r7;", "mul.f32 %r9, %r2, 0f3A83126F;"),  # 1000 in a register: the unit's reciprocal, 1/1000 here
    ("mov.b32 %r5, 0f3F800000; div.full.f32 %r9, %r5, %r2;", "rcp.approx.f32 %r9, %r2;"),
    ("ex2.approx.f32 %r5, %r2; add.rn.f32 %r9, %r5, 0f00000000;", "ex2.approx.f32 %r9, %r2;"),
    ("rsqrt.approx.ftz.f32 %r5, %r2; mul.rn.f32 %r9, %r5, 0f3F800000;", "rsqrt.approx.ftz.f32 %r9, %r2;"),
])  # fmt: skip
def test_rules_of_special_functions(first, second):
    """Equal by normal forms alone, and equal bits on all edges of the operand."""
    number = "mov.b32 %r6, 1000; xor.b32 %r7, %r6, 0; cvt.rn.f32.s32 %r7, %r7; "
    found = compared(number + first, number + second, seconds=0)
    assert (found.verdict, found.reason) == ("equal", "their expressions have one normal form")
    given = [
        arguments(
            [draw ^ sign for draw in (*_EDGES, 0x42F6E979, 0xC2F6E979) for sign in (0, 1 << 31)] + [5] * 6, [0] * 32
        )
        for _ in "ab"
    ]
    for body, own in zip((first, second), given, strict=True):
        kernel(number + body).run(own)
    assert np.array_equal(*(own[2].view(np.uint32) for own in given))


@needs_solver
def test_operands_of_exponentials_are_asked_about():
    """ex2 with and without .ftz differs on an input; of operands that solvers find alike it is alike."""
    assert compared("ex2.approx.f32 %r9, %r2;", "ex2.approx.ftz.f32 %r9, %r2;").verdict == "different"
    found = compared(
        "max.f32 %r4, %r2, %r3; ex2.approx.ftz.f32 %r9, %r4;",
        "neg.f32 %r4, %r2; max.f32 %r5, %r2, %r3; max.f32 %r4, %r5, %r2; ex2.approx.ftz.f32 %r9, %r4;",
    )
    assert found.verdict == "equal" and "solvers find no values" in found.reason
