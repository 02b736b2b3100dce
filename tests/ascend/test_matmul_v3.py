"""MatMulV3's keys and fields: the vendor's own unit tests and knowledge lines, and plans there and back."""

import json

import pytest

import ascend
from ascend.reports.matmul_v3 import (
    A2_KEY,
    A5_KEY,
    decode_key,
    encode_key,
    entered_knowledge,
    laid_out,
    matmul_v3_snippet,
    matmul_v3_tiling,
    read_knowledge,
    template_of,
)
from ascend.schedule import build_schedule
from mpgemm.cli import main

#: hicann/ops-nn e5c3fa93, matmul/mat_mul_v3/tests/ut/op_host/test_matmul_v3_tiling.cpp: keys, and the templates of their cases.
VENDOR_KEYS = (
    (A2_KEY, 0, {"MIXND2NZ": "MIXND2NZ_TRUE"}),
    (A2_KEY, 65536, {"MIXND2NZ": "MIXND2NZ_FALSE"}),
    (A2_KEY, 65584, {"SPLITCOREMODE": "DETERMINISTIC_SPLIT_K", "MIXND2NZ": "MIXND2NZ_FALSE"}),
    (A2_KEY, 65616, {"SPLITCOREMODE": "SINGLE_CORE_NKM_SPLIT_K", "MIXND2NZ": "MIXND2NZ_FALSE"}),
    (A2_KEY, 69634, {"LOADMODE": "BL1_FULLLOAD", "FIXOPTI": "BASE_ENABLE_ALIGNOUT", "MIXND2NZ": "MIXND2NZ_FALSE"}),
    (A2_KEY, 73730, {"LOADMODE": "BL1_FULLLOAD", "FIXOPTI": "VEC_NZ2ND_UNALIGNOUT", "MIXND2NZ": "MIXND2NZ_FALSE"}),
    (A5_KEY, 18, {"API_LEVEL": "TENSOR_LEVEL", "A_TRANS": "TRANS"}),
    (A5_KEY, 66, {"API_LEVEL": "TENSOR_LEVEL", "B_TRANS": "TRANS"}),
    (A5_KEY, 4162, {"API_LEVEL": "TENSOR_LEVEL", "B_TRANS": "TRANS", "MODEL": "STREAM_K"}),
    (A5_KEY, 24578, {"API_LEVEL": "TENSOR_LEVEL", "MODEL": "BASIC_SPLIT_K"}),
    (A5_KEY, 12289, {"API_LEVEL": "BASIC_LEVEL", "MODEL": "TO_MUL"}),
    (A5_KEY, 65602, {"API_LEVEL": "TENSOR_LEVEL", "B_TRANS": "TRANS", "FULL_LOAD": "A_FULL_LOAD"}),
    (A5_KEY, 2101250, {"API_LEVEL": "TENSOR_LEVEL", "MODEL": "STREAM_K", "L0C2OUT_MODEL": "1V2_ND_ALIG_FIXPIPE"}),
    (A5_KEY, 1048642, {"API_LEVEL": "TENSOR_LEVEL", "B_TRANS": "TRANS", "L0C2OUT_MODEL": "1V1_ND_ALIG_FIXPIPE"}),
)


@pytest.mark.parametrize(("parts", "key", "chosen"), VENDOR_KEYS, ids=[str(key) for _, key, _ in VENDOR_KEYS])
def test_keys_of_the_vendors_tests(parts, key, chosen):
    assert encode_key(parts, chosen) == key
    found = decode_key(parts, key)
    assert {name: value for name, value in found.items() if value != encode_default(parts, name)} == {
        name: value for name, value in chosen.items() if value != encode_default(parts, name)
    }


def encode_default(parts, name):
    return next(part.values[0] for part in parts if part.name == name)


def test_numbers_that_are_no_keys_are_refused():
    for key, message in (
        (3, "LOADMODE must lie between 0 and 2, got 3"),
        (1 << 40, "more than 28 bits"),
        (-1, "not a tiling key"),
    ):
        with pytest.raises(ValueError, match=message):
            decode_key(A2_KEY, key)
    for chosen, message in (
        ({"LOAD": "x"}, "LOAD: the key has LOADMODE"),
        ({"LOADMODE": "x"}, "LOADMODE must be one of BASE"),
    ):
        with pytest.raises(ValueError, match=message):
            encode_key(A2_KEY, chosen)


#: (trans a, trans b), m, k, n of the vendor's unit tests of FP16 on Atlas A2, and whether A and B are laid out.
VENDOR_LAYOUTS = (
    ((0, 0), 249, 512, 311, 0, 1), ((0, 1), 8192, 8192, 8192, 0, 0), ((0, 0), 320, 513, 311, 1, 1),
    ((1, 0), 1024, 256, 768, 0, 0), ((0, 0), 640, 513, 320, 1, 1), ((1, 1), 10832, 4224, 1408, 1, 0),
    ((0, 0), 150, 1024, 131328, 0, 1), ((1, 0), 127, 640, 320, 1, 1), ((1, 1), 261, 3753, 2146, 1, 1),
    ((0, 1), 32, 1408, 11264, 0, 0), ((0, 0), 16384, 5121, 1709, 1, 1), ((0, 0), 8200, 88, 32, 1, 0),
    ((0, 0), 256, 15000, 256, 0, 0),
)  # fmt: skip


@pytest.mark.parametrize("case", VENDOR_LAYOUTS, ids=lambda case: "x".join(map(str, case[1:4])))
def test_operands_that_vector_cores_lay_out(case):
    """As the vendor's tests of the base template have it; the last cuts k and lays out nothing although K = 15000 is ragged."""
    (turned_a, turned_b), m, k, n, a, b = case
    inner_a, outer_a = (m, k) if turned_a else (k, m)
    inner_b, outer_b = (k, n) if turned_b else (n, k)
    found = laid_out(inner_a, outer_a, "fp16", 2), laid_out(inner_b, outer_b, "fp16", 2)
    assert found == ((bool(a), bool(b)) if case is not VENDOR_LAYOUTS[-1] else (True, False))


#: Three lines of Ascend910B2_24_AiCore_MatMulV3_runtime_kb.json (hicann/ops-nn e5c3fa93), sizes and fields.
KNOWLEDGE = {
    "m": 2048, "k": 6656, "n": 6656, "a_dtype": 1, "a_format": 2, "b_format": 2, "trans_a_flag": False, "trans_b_flag": True,
}  # fmt: skip
FIELDS = {
    "usedCoreNum": 24, "singleCoreM": 256, "singleCoreN": 128, "singleCoreK": 6656, "baseM": 256, "baseN": 128, "baseK": 64,
    "depthA1": 8, "depthB1": 8, "stepM": 1, "stepN": 1, "iterateOrder": 0, "stepKa": 4, "stepKb": 4, "dbL0A": 2, "dbL0B": 2,
    "dbL0C": 1, "l2MTileCnt": 1, "l2NTileCnt": 3, "l2MTileBlock": 8, "l2NTileBlock": 18, "l2IterateOrder": 0, "tilingEnable": 0,
}  # fmt: skip


def record(info=(), fields=()):
    return {"info_dict": KNOWLEDGE | dict(info), "knowledge": FIELDS | dict(fields)}


def test_a_knowledge_line_is_a_schedule():
    s, notes = entered_knowledge(record(), ascend.get_chip("910B2"))
    assert (s.m, s.k, s.n, s.layout, s.operand, s.cores) == (2048, 6656, 6656, "nt", "fp16", 24)
    assert s.blocking == ascend.Blocking(256, 64, 128) and s.swizzle == ascend.Swizzle(18, 1, turns=False)
    assert len(s.row_blocks) == 8 and len(s.column_blocks) == 52 and not notes and s.template == "mdl"
    turned, notes = entered_knowledge(
        record({"trans_a_flag": True, "b_format": 29, "a_dtype": 27}, {"l2MTileCnt": 2, "l2MTileBlock": 4, "depthA1": 16}),
        ascend.get_chip("910B2"),
    )  # fmt: skip
    assert (turned.layout, turned.operand, turned.swizzle) == ("nz", "bf16", ascend.Swizzle(4, 0))
    assert [any(word in note for note in notes) for word in ("4 x 18 tiles", "K x M", "depthA1 = 16")] == [True] * 3


def test_a_plan_comes_back_from_its_fields():
    """Tiles one by one: the fields of a plan are a knowledge line of the same blocks, order, cores and depth."""
    chip = ascend.get_chip("910B2")
    for swizzle, layout in ((ascend.Swizzle(3, 0), "nt"), (ascend.Swizzle(7, 1, turns=False), "nd")):
        s = build_schedule(
            2048, 4096, 4096, chip, ascend.Blocking(128, 64, 256), terms=1, kernel="grid", layout=layout, swizzle=swizzle,
            balanced=False, template="mdl", resident="none",
        )  # fmt: skip
        found = matmul_v3_tiling(s)
        assert found.key == 65536 and found.template["LOADMODE"] == "BASE_FULLLOAD"
        info = {"m": 2048, "k": 4096, "n": 4096, "trans_b_flag": layout == "nt"}
        back = entered_knowledge({"info_dict": KNOWLEDGE | info, "knowledge": found.fields}, chip).schedule
        assert back == s
    ragged = build_schedule(
        249, 512, 311, chip, ascend.Blocking(32, 64, 128), terms=1, kernel="grid", layout="nd", resident="none"
    )
    assert matmul_v3_tiling(ragged).key == 0  # the vendor's test of this size: B's rows of 622 bytes are laid out


def test_the_fields_on_ascend_950():
    s = build_schedule(
        4096, 8192, 1280, "950", ascend.Blocking(256, 64, 256), terms=1, kernel="grid", layout="nt", resident="none"
    )
    found = matmul_v3_tiling(s)
    assert decode_key(A5_KEY, found.key)["B_TRANS"] == "TRANS" and found.fields["mL1"] == 256
    assert found.fields["kL1"] == s.load_k and found.fields["skSingleCoreK"] == 8192
    assert '"l1BufferNum": 2' in matmul_v3_snippet(s)


#: What makes a line or a plan one that is not timed or said, and why.
REFUSED = (
    ({}, {"tilingEnable": 2}, "SINGLE_CORE_SPLIT_K .* cannot be timed"),
    ({}, {"tilingEnable": 10}, "AL1_FULLLOAD"),
    ({}, {"tilingEnable": 9}, "digits of unknown templates: SPLITCOREMODE 9"),
    ({}, {"singleCoreM": 512}, "must be baseM x baseN = 256 x 128, got 512 x 128"),
    ({}, {"baseM": "256"}, "baseM must be whole numbers"),
    ({"a_dtype": 9}, {}, r"a_dtype must be one of 0 \(fp32\)"),
)


@pytest.mark.parametrize(("info", "fields", "message"), REFUSED, ids=[message[:12] for *_, message in REFUSED])
def test_lines_that_are_not_timed_say_why(info, fields, message):
    with pytest.raises(ValueError, match=message):
        entered_knowledge(record(info, fields), ascend.get_chip("910B2"))


def test_plans_that_the_operator_cannot_say():
    for options, message in (
        ({"terms": 3}, "got 3 term"), ({"split": 2}, "plan with --for catlass --split 1"),
        ({"grid": ascend.Grid(4, 1, 6), "resident": "none"}, "assigns tiles one by one"),
    ):  # fmt: skip
        s = build_schedule(
            1024,
            1024,
            1024,
            "910B2",
            ascend.Blocking(128, 64, 128),
            kernel="grid",
            **{"terms": 1, "layout": "nz"} | options,
        )
        with pytest.raises(ValueError, match=message):
            matmul_v3_tiling(s)
    with pytest.raises(ValueError, match="keys are known for Atlas A2"):
        matmul_v3_tiling(build_schedule(512, 512, 512, "910A", ascend.Blocking(128, 64, 128), kernel="grid", terms=1))
    assert template_of(10000) == template_of(0) | {"SPECIALOPT": "K_SHIFT"}


def test_the_commands_of_a_tiling(tmp_path, capsys):
    path = tmp_path / "kb.json"
    path.write_text(json.dumps(record()) + "\n", encoding="utf-8")
    assert main(["simulate", "--tiling", str(path), "--chip", "910B2"]) == 0
    assert "m, k, n = 2048, 6656, 6656" in capsys.readouterr().out
    assert (
        main(["plan", "512", "512", "512", "--terms", "1", "--chip", "910B3", "--for", "catlass", "--split", "1"]) == 0
    )
    out = capsys.readouterr().out
    assert "tiling key 65536" in out and '"l2MTileCnt"' in out
    for text, words, message in (
        (json.dumps(record()) * 1 + "\n" + json.dumps(record()), [], "has 2 tilings, one on each line"),
        (json.dumps(record()), ["--layout", "nd"], "which determines --layout"),
        (json.dumps({"knowledge": {}}), [], 'expected objects "info_dict"'),
        ('{"knowledge": ', [], "is not JSON"),
        (json.dumps({"info_dict": KNOWLEDGE, "knowledge": {"baseM": 16}}), [], "this line of a runtime_kb.json lacks "),
    ):
        path.write_text(text, encoding="utf-8")
        assert main(["simulate", "--tiling", str(path), "--chip", "910B2", *words]) == 2
        assert message in capsys.readouterr().err
    path.write_text('{"M": 1}', encoding="utf-8")
    assert read_knowledge(path) is None
