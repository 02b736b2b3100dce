"""Recipes of kernels with special functions: symbols, shared parts by name, rows; and tables of addresses."""

import json
import re

import numpy as np
import pytest
from ptx_cases import text

from tensorcore_models import compiled
from tensorcore_models.compiled.common_texts import Texts
from tensorcore_models.compiled.library_recipes import Evaluation
from tensorcore_models.compiled.nodes import Applied, Constant, Element
from tensorcore_models.compiled.normal_form import normal_forms


def attention(**options):
    """A recipe of the recorded style: two heads of 32 rows, 16 columns, blocks of 16 keys."""
    q, k, v = (np.random.default_rng(i).standard_normal((2, 32, 16)).astype(np.float16) for i in range(3))
    given = [q, k, v, np.zeros_like(q), 32, np.float32(0.25)]
    return compiled.read(text("sm_90-attention")).recipe(given, (2, 2), **options)


@pytest.fixture(scope="module")
def recipe():
    return attention()


def test_attention_has_one_expression_with_its_functions(recipe):
    lines = str(recipe).splitlines()
    assert len(recipe.forms) == 1 and len(lines) < 100
    told = "\n".join(lines)
    for part in ("ex2.approx.ftz.f32", "div.full.f32", "max.f32 over k", "add.f32 over k", "param_1[i, k, l], l 0:16"):
        assert part in told, part
    assert re.search(r"then t\d+ x param_2\[i, k, u\], k 16:32", told)  # the second block of keys, weights by name
    defined = set(re.findall(r"^ *(t\d+) =", told, re.M))
    assert defined and defined == set(re.findall(r"\bt\d+\b", told))


def test_rows_are_read_alone(recipe):
    (form,) = attention(rows=[3, 35]).forms
    assert form.outputs.tolist() == [*range(48, 64), *range(560, 576)]
    with pytest.raises(ValueError, match=r"rows must be from 0 to 63, got \[64\]"):
        attention(rows=[64])


@pytest.mark.full
def test_orders_of_maxima_do_not_count(recipe):
    """A maximum gives the same bits in any order, a sum of FP32 does not."""
    source = text("sm_90-attention")
    program = compiled.read(source)
    swapped = re.sub(r"(max\.f32\s+%\w+, )(%\w+), (%\w+);", r"\1\3, \2;", source)
    q, k, v = (np.random.default_rng(i).standard_normal((2, 32, 16)).astype(np.float16) for i in range(3))
    given = [q, k, v, np.zeros_like(q), 32, np.float32(0.25)]
    assert swapped != source
    found = compiled.compare(program, compiled.read(swapped), arguments=given, grids=[(2, 2)] * 2, seconds=0)
    assert found.verdict == "equal"
    other = compiled.read(source.replace("ex2.approx.ftz.f32", "ex2.approx.f32", 1))
    found = compiled.compare(program, other, arguments=given, grids=[(2, 2)] * 2, seconds=0)
    assert found.verdict == "flushing" and "ex2.approx.ftz.f32" in found.reason
    for changed in ("ex2.approx.ftz.f32", "div.full.f32"):  # another function or operation is no matter of flushing
        other = compiled.read(source.replace(changed, changed.replace("ex2", "lg2").replace("div.full", "mul"), 1))
        found = compiled.compare(program, other, arguments=given, grids=[(2, 2)] * 2, seconds=0)
        assert found.verdict == "different", changed


TABLE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 tables, .param .u64 .ptr scratch) .reqntid 32
{ .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %h<3>;
mov.u32 %r1, %ctaid.x; ld.param.u64 %rd1, [tables]; mad.wide.u32 %rd2, %r1, 8, %rd1; ld.global.u64 %rd3, [%rd2];
mov.u32 %r2, %tid.x; mad.wide.u32 %rd4, %r2, 4, %rd3; ld.global.b32 %r3, [%rd4];
add.f32 %r4, %r3, %r3; st.global.b32 [%rd4], %r4; EXTRA ret; }"""


def test_tables_of_addresses():
    arrays = [np.arange(32, dtype=np.float32) + i for i in range(3)]
    kept = [x.copy() for x in arrays]
    program = compiled.read(TABLE.replace("EXTRA", ""))
    recipe = program.recipe([compiled.PointerTable(arrays)], grid=3)
    assert "at entry 2[i]" in str(recipe) and all(map(np.array_equal, arrays, kept))
    program.run([compiled.PointerTable(arrays[::-1])], grid=2)
    assert [np.array_equal(x, f * y) for f, x, y in zip((1, 2, 2), arrays, kept, strict=True)] == [True] * 3
    with pytest.raises(ValueError, match="needs at least one array"):
        compiled.PointerTable([])
    with pytest.raises(TypeError, match="needs numpy arrays, got list"):
        compiled.PointerTable([[1.0]])
    with pytest.raises(ValueError, match="argument 0 at entry 1 is not contiguous"):
        program.run([compiled.PointerTable([arrays[0], np.zeros((32, 2), np.float32)[:, 0]])], grid=2)


def test_an_array_left_out_is_named():
    program = compiled.read(TABLE.replace("EXTRA", "ld.param.u64 %rd5, [scratch]; st.global.b32 [%rd5], %r4;"))
    with pytest.raises(
        compiled.KernelFault, match="address 0x0, in none of the arguments; scratch was left out and is 0"
    ):
        program.run([compiled.PointerTable([np.zeros(32, np.float32)])])


def test_fp16_to_bf16_without_a_rounding_rounds_to_nearest():
    body = "cvt.u16.u32 %h1, %r3; cvt{}.bf16.f16 %h2, %h1; cvt.u32.u16 %r5, %h2; st.global.b32 [%rd4], %r5;"
    found = []
    for rounding in ("", ".rn"):
        x = np.random.default_rng(0).integers(0, 1 << 16, 32).astype(np.uint32)
        compiled.read(TABLE.replace("EXTRA", body.format(rounding))).run([compiled.PointerTable([x])])
        found.append(x)
    assert np.array_equal(*found)


ROWS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 which, .param .u64 out) .reqntid 64
{ .reg .b64 %rd<9>; .reg .b32 %r<19>;
mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [which]; ld.param.u64 %rd3, [out];
mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd3, %rd4; BODY st.global.b32 [%rd5], %r9; ret; }"""
INDICES = {
    "param_0[i // 8]": "shr.u32 %r2, %r1, 3; mul.wide.u32 %rd6, %r2, 4; add.u64 %rd6, %rd1, %rd6;",
    "param_0[i mod 16 + 2]": "and.b32 %r2, %r1, 15; add.u32 %r2, %r2, 2; mul.wide.u32 %rd6, %r2, 4; add.u64 %rd6, %rd1, %rd6;",
    "param_0[loaded(i)]": "add.u64 %rd6, %rd2, %rd4; ld.global.b32 %r2, [%rd6]; mad.wide.u32 %rd6, %r2, 4, %rd1;",
}


@pytest.mark.parametrize("told", INDICES)
def test_indices_that_are_not_linear_have_one_expression(told):
    x, which = np.ones(64, np.float32), np.random.default_rng(0).permutation(64).astype(np.int32)
    body = f"{INDICES[told]} ld.global.b32 %r3, [%rd6]; add.f32 %r9, %r3, %r3;"
    program, given = compiled.read(ROWS.replace("BODY", body)), [x, which, np.zeros(64, np.float32)]
    recipe = program.recipe(given)
    assert len(recipe.forms) == 1
    assert told.replace("param_0", "x") in str(recipe)
    element = recipe.root.operands[0]
    places = [element.index[0][0].at((i,)) for i in range(64)]
    want = {"//": np.arange(64) // 8, "mod": np.arange(64) % 16 + 2, "loaded": which}
    assert places == next(v for k, v in want.items() if k in told).tolist()
    assert compiled.compare(program, program, arguments=given, grids=[1, 1]).verdict == "equal"
    other = body.replace("add.f32", "sub.f32")
    found = compiled.compare(program, compiled.read(ROWS.replace("BODY", other)), arguments=given, grids=[1, 1])
    assert (
        found.verdict == "different"
        and "the first has add.f32" in found.reason
        and "the second sub.f32" in found.reason
    )


def test_the_reason_says_where_sums_part():
    loads = "".join(f"ld.global.b32 %r{i + 10}, [%rd1+{4 * i}];" for i in range(5))
    first = "add.f32 %r9, %r10, %r11; add.f32 %r9, %r9, %r12; add.f32 %r9, %r9, %r13;"
    second = "add.f32 %r9, %r10, %r12; add.f32 %r9, %r9, %r11; add.f32 %r9, %r9, %r13;"
    given = [
        np.random.default_rng(0).standard_normal(64).astype(np.float32),
        np.zeros(64, np.int32),
        np.zeros(64, np.float32),
    ]

    def reason(*bodies):
        programs = [compiled.read(ROWS.replace("BODY", loads + body)) for body in bodies]
        return compiled.compare(*programs, arguments=given, grids=[1, 1]).reason

    assert "both add the same 4 terms by add.f32 (lines 7 and 7), in another order" in reason(first, second)
    longer = f"{first} add.f32 %r9, %r9, %r14;"
    assert "the first adds 4 terms by add.f32 (lines 7 and 7), the second 5" in reason(first, longer)


def test_packed_integers_follow_the_index_of_the_sum():
    """Eight numbers of 4 bits in a word: word and shift are stated by k; where one shift is another, they are spelled out."""
    ks = tuple(range(16, 32))
    words = [Element(1, "w", ((k // 8, (0, 0)), (0, (0, 1)))) for k in ks]
    nodes = tuple(Applied("shr.s32", 1, (word, Constant(4 * (k % 8)))) for k, word in zip(ks, words, strict=True))
    assert Texts().along(nodes, 1, "k", ks) == ("shr.s32(w[k // 8, j], 4 * (k mod 8))", ks)
    other = (*nodes[:-1], Applied("shr.s32", 1, (words[-1], Constant(0))))
    text, found = Texts().along(other, 1, "k", ks)
    assert found == () and text.startswith("{shr.s32(w[2, j], 0), shr.s32(w[2, j], 0x4)")


def test_numbers_of_four_bits_have_one_expression():
    """Eight to a word: the shift is a constant of each thread, which follows its index."""
    body = """shr.u32 %r2, %r1, 3; mad.wide.u32 %rd6, %r2, 4, %rd1; ld.global.b32 %r3, [%rd6]; and.b32 %r4, %r1, 7;
        shl.b32 %r4, %r4, 2; shr.u32 %r5, %r3, %r4; and.b32 %r5, %r5, 15; cvt.rn.f32.u32 %r9, %r5;"""
    program = compiled.read(ROWS.replace("BODY", body))
    words, out = np.random.default_rng(2).integers(0, 1 << 32, 8, dtype=np.uint32), np.zeros(64, np.float32)
    recipe = program.recipe([words, words.copy(), out])
    (form,) = recipe.forms
    assert recipe.outline() == ["cvt.rn.f32.u32 (line 8)", "  nibble(x[i // 8], i mod 8)"]
    program.run([words, words.copy(), out])
    found = Evaluation((64,), {"x": words}).of(form.root)
    assert np.array_equal(found, out.view(np.uint32)) and len(np.unique(out)) > 10
    other = compiled.read(ROWS.replace("BODY", body.replace("and.b32 %r4, %r1, 7", "and.b32 %r4, %r1, 3")))
    given = [words, words.copy(), out]
    assert compiled.compare(program, other, arguments=given, grids=[1, 1], output=2, seconds=0).verdict == "different"


MASKS = {
    "where i < 5": "setp.lt.u32 %p1, %r1, 5; selp.b32 %r9, 0fFF800000, %r9, %p1;",
    "where i < 40": "setp.ge.u32 %p1, %r1, 40; selp.b32 %r9, 0f40000000, %r9, %p1;",
}


@pytest.mark.parametrize("told", MASKS)
def test_masks_by_an_index_are_one_expression(told):
    """Where an operand is a constant up to an index, or from it on; a maximum orders constants after what is computed."""
    load = "add.u64 %rd6, %rd1, %rd4; ld.global.b32 %r9, [%rd6]; add.u64 %rd7, %rd2, %rd4; ld.global.b32 %r10, [%rd7];"
    body = (
        f".reg .pred %p1; {load} add.f32 %r9, %r9, %r9; {MASKS[told]} max.f32 %r9, %r9, %r10; ex2.approx.f32 %r9, %r9;"
    )
    program = compiled.read(ROWS.replace("BODY", body))
    x, y = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)
    out = np.zeros(64, np.float32)
    recipe = program.recipe([x, y, out])
    (form,) = recipe.forms
    program.run([x, y, out])
    lines = [line.strip() for line in recipe.outline()]
    assert told in lines and "else" in lines and len(form.outputs) == 64
    found = Evaluation((64,), {"x": x, "which": y}).of(form.root)
    assert np.array_equal(found, out.view(np.uint32))


def test_masks_that_no_bound_states_stay_apart():
    body = """.reg .pred %p1; add.u64 %rd6, %rd1, %rd4; ld.global.b32 %r9, [%rd6]; and.b32 %r2, %r1, 1;
        setp.eq.u32 %p1, %r2, 0; selp.b32 %r9, 0f40000000, %r9, %p1;
        add.u64 %rd6, %rd2, %rd4; ld.global.b32 %r10, [%rd6]; sub.f32 %r9, %r9, %r10;"""
    x = np.ones(64, np.float32)
    recipe = compiled.read(ROWS.replace("BODY", body)).recipe([x, x.copy(), np.zeros(64, np.float32)])
    assert [len(form.outputs) for form in recipe.forms] == [32, 32]


def test_functions_differ_without_flushing_too():
    """What "flushing" rests on: of operations that flush the flush alone is left out."""
    given = [*np.ones((2, 64), np.float32), np.zeros(64, np.float32)]
    load = "add.u64 %rd6, %rd1, %rd4; ld.global.b32 %r9, [%rd6];"
    forms = {}
    for name in ("ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.ftz.f32"):
        recipe = compiled.read(ROWS.replace("BODY", f"{load} {name} %r9, %r9;")).recipe(given)
        forms[name] = normal_forms(recipe, flushing=False)[0]
    plain, flushed, other = forms.values()
    assert plain == flushed != other


@pytest.mark.full  # 7 s: 25,600 outputs, 200 of whose keys are masked
def test_causal_attention_has_one_expression(shared):
    folder = shared / "hardware_vectors" / "h100" / "kernels"
    if not (folder / "triton.json").exists():
        pytest.skip("the recordings of kernels on an H100 are not at hand: set MPGEMM_SHARED to a folder that has them")
    rows = {row["name"]: row for row in json.loads((folder / "triton.json").read_text())}
    row = rows["flash/float16/2x200x64/True/64x64"]
    q, k, v = np.random.default_rng(0).standard_normal((3, row["H"], row["S"], row["D"])).astype(np.float16)
    given = [q, k, v, np.zeros_like(q), row["S"], np.float32(row["scale"])]
    recipe = compiled.read(row["ptx"]).recipe(given, grid=tuple(row["grid"]))
    count, told = len(recipe.forms), "\n".join(recipe.outline())
    assert count == 1
    assert "where j < k\n" in told and "exp" not in told
