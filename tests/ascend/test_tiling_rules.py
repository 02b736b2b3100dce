"""TCubeTiling's published rules: every plan keeps them, as a second statement of them says, and each can be seen broken."""

import json
import math

import numpy as np
import pytest

import ascend
from ascend.reports.tiling import ascendc_snippet, basic_snippet, snippets
from ascend.schedule import build_schedule, variant
from ascend.tiling.entered import entered, read_tiling
from ascend.tiling.fields import broken_rules, broken_rules_of, is_said_by, layout_of, tiling_fields
from ascend.tiling.rules import RULES
from mpgemm.cli import main

B3 = ascend.get_chip("910B3")


# -- the rules once more, as the page's prose has them --------------------------------------------------------------


def judged(f, chip, operand, layout, split):
    """Faults of the fields `f`: TCubeTiling, tables 1 to 3, sentence by sentence, with nothing shared with the package."""
    faults = []

    def must(kept, what):
        if not kept:
            faults.append(what)

    width = {"fp16": 2, "bf16": 2, "fp32": 4, "hf32": 4, "mxfp4": 0.5}.get(operand, 1)
    row = {2: 16, 4: 8, 1: 32, 0.5: 64}[width]  # C0
    mx = operand.startswith("mx")
    for name in f.keys() - {"iterateOrder"}:
        must(f[name] >= 1, f"{name} is not positive")
    along_m, along_n = math.ceil(f["M"] / f["singleCoreM"]), math.ceil(f["N"] / f["singleCoreN"])
    along_k = math.ceil(f["Ka"] / f["singleCoreK"])
    must(1 <= f["usedCoreNum"] <= chip.cores, "more cores than there are")
    must(f["usedCoreNum"] == along_m * along_n * (along_k if split else 1), "cores do not match the parts")
    must(split or f["singleCoreK"] == f["Ka"], "K cut without being split")
    must(f["Ka"] == f["Kb"], "two K")
    must(
        f["singleCoreM"] <= f["M"] and f["singleCoreN"] <= f["N"] and f["singleCoreK"] <= f["Ka"], "a core has too much"
    )
    if layout == "nz":
        must(f["M"] % 16 == 0 and f["singleCoreM"] % 16 == 0, "NZ: M")
        must(f["N"] % 16 == 0 and f["singleCoreN"] % 16 == 0, "NZ: N")
        must(f["Ka"] % row == 0 and f["singleCoreK"] % max(row, 16) == 0, "NZ: K")
    must(f["baseM"] % 16 == 0 and f["baseN"] % 16 == 0, "base in fractals")
    transposed_alone = layout == "nt"
    must(f["baseK"] % (64 if mx else row if transposed_alone or width == 1 else 16) == 0, "baseK")
    must(f["baseM"] * f["baseK"] * width * f["dbL0A"] <= chip.l0a_bytes, "L0A")
    must(f["baseN"] * f["baseK"] * width * f["dbL0B"] <= chip.l0b_bytes, "L0B")
    must(f["baseM"] * f["baseN"] * 4 * f["dbL0C"] <= chip.l0c_bytes, "L0C")
    in_l1 = f["baseK"] * width * (f["baseM"] * f["depthA1"] + f["baseN"] * f["depthB1"])
    scales = f["baseK"] // 32 * (f["baseM"] * f["depthA1"] + f["baseN"] * f["depthB1"]) if mx else 0
    must(in_l1 + scales <= chip.l1_bytes, "L1")
    must({f["dbL0A"], f["dbL0B"], f["dbL0C"]} <= {1, 2} and f["iterateOrder"] in (0, 1), "switches")
    must(f["depthA1"] in (f["stepM"] * f["stepKa"], 2 * f["stepM"] * f["stepKa"]), "depthA1")
    must(f["depthB1"] in (f["stepN"] * f["stepKb"], 2 * f["stepN"] * f["stepKb"]), "depthB1")
    loads_a = math.ceil(f["singleCoreK"] / (f["baseK"] * f["stepKa"]))
    loads_b = math.ceil(f["singleCoreK"] / (f["baseK"] * f["stepKb"]))
    must(loads_a % loads_b == 0 or loads_b % loads_a == 0, "MDL: loads of A and B")
    must(f["stepM"] == 1 or math.ceil(f["Ka"] / f["baseK"]) <= f["stepKa"], "MDL: stepM")
    must(f["stepN"] == 1 or math.ceil(f["Kb"] / f["baseK"]) <= f["stepKb"], "MDL: stepN")
    return faults


def random_request(rng):
    """A chip, operand, layout, terms, mode, merge, target and size as anybody may ask for."""
    chip = ascend.get_chip(str(rng.choice(["910A", "310P3", "910B1", "910B3", "910B4", "A3", "950"])))
    operands = [
        x for x in ("fp16", "bf16", "fp32", "hf32", "int8", "fp8", "hifloat8", "mxfp8", "mxfp4") if _has(chip, x)
    ]
    operand = str(rng.choice(operands))
    terms = int(rng.choice([1, 3, 4])) if operand == "fp16" else 1
    targets = ["", *(["ascendc"] if chip.name != "910A" else [])]
    options = {"terms": terms, "operand": operand, "layout": str(rng.choice(["nz", "nd", "nt"])),
               "target": str(rng.choice(targets)), "buffering": str(rng.choice(["double", "double", "single"]))}  # fmt: skip
    if terms > 1:
        options["mode"] = str(rng.choice(["termwise", "fused", "elementwise", "termwise_inplace"]))
    elif operand != "int8":  # int8 sums cannot be added as FP32
        options["merge"] = str(rng.choice(["reduce", "atomic"]))
    size = [
        int(2 ** rng.uniform(0, 13)) + 1 if rng.random() < 0.7 else int(16 * rng.integers(1, 300)) for _ in range(3)
    ]
    return chip, size, options


def _has(chip, operand):
    try:
        return bool(chip.cube_step_k(operand))
    except ValueError:
        return False


@pytest.mark.sweep(6)
@pytest.mark.parametrize("seed", range(100))
def test_every_plan_is_legal(seed):
    """20 plans each, 2,000 in all, over chips, operands, layouts, terms and targets: none breaks a published rule."""
    rng = np.random.default_rng(seed)
    found = 0
    while found < 20:
        chip, size, options = random_request(rng)
        try:
            plans = ascend.plan(*size, chip, rank="analytic", top=2, error_of=lambda s: 0.0, **options)
        except ValueError as error:
            assert "no block fits" in str(error), error
            continue
        for p in plans:
            s = p.schedule
            if s.on_cube:
                faults = judged(tiling_fields(s), chip, s.operand, layout_of(s), len(s.k_slices) > 1)
                assert not faults, (chip.name, size, options, str(s.blocking), tiling_fields(s))
                assert not broken_rules_of(s)
                assert not options["target"] or is_said_by(s, "ascendc")
                found += 1


#: A tiling that keeps every rule, and for each rule fields (or a circumstance) that break it.
SOUND = tiling_fields(build_schedule(1024, 512, 1024, B3, ascend.Blocking(128, 64, 128), kernel="grid", grid=(4, 1, 4),
                                     resident="none", terms=1, balanced=False))  # fmt: skip
BREAKS = {
    "usedCoreNum on the chip": {"usedCoreNum": 33}, "usedCoreNum counts the parts": {"usedCoreNum": 8},
    "singleCoreK = K": {"singleCoreK": 64}, "Ka = Kb": {"Kb": 528}, "singleCoreM within M": {"singleCoreM": 9984},
    "singleCoreN within N": {"singleCoreN": 9984}, "singleCoreK within K": {"singleCoreK": 1024},
    "M in whole units": {"M": 1023}, "Ka in whole units": {"Ka": 511}, "N in whole units": {"N": 1001},
    "singleCoreM in whole units": {"singleCoreM": 250}, "singleCoreK in whole units": {"singleCoreK": 500},
    "singleCoreN in whole units": {"singleCoreN": 250}, "baseM in whole units": {"baseM": 24},
    "baseN in whole units": {"baseN": 40}, "baseK in whole units": {"baseK": 24}, "baseM within singleCoreM": {"baseM": 272},
    "baseN within singleCoreN": {"baseN": 9984}, "baseK within singleCoreK": {"baseK": 1024},
    "L0A holds them": {"baseM": 272}, "L0B holds them": {"baseN": 9984}, "L0C holds them": {"baseM": 256, "baseN": 256},
    "L1 holds them": {"depthA1": 64, "stepKa": 32}, "dbL0A": {"dbL0A": 3}, "dbL0B": {"dbL0B": 3}, "dbL0C": {"dbL0C": 3},
    "iterateOrder": {"iterateOrder": 2}, "depthA1 once or twice the steps": {"depthA1": 3},
    "depthB1 once or twice the steps": {"depthB1": 24}, "MDL: stepM is 1 while k is walked": {"stepM": 2, "depthA1": 16},
    "MDL: stepN is 1 while k is walked": {"stepN": 2, "depthB1": 16},
    "MDL: one walk divides the other": {"stepKa": 4, "depthA1": 4, "stepKb": 3, "depthB1": 3},
    "ND rows beyond 65535 are checked": {"N": 70000},
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_each_rule_can_be_seen_broken(rule):
    layout = "nd" if rule.name.startswith("ND") else "nz"
    assert not broken_rules(SOUND, B3, layout="nz")
    found = broken_rules(SOUND | BREAKS[rule.name], B3, layout=layout, intrinsics_check=False)
    mine = rule.name.removesuffix(" in whole units").removesuffix(" holds them").split(":")[0].split(" ")[0]
    assert any(mine in text or mine in ("ND", "MDL") for text in found), found


def test_units_of_k_by_operand_and_layout():
    """C0 where B alone is transposed, 16 otherwise; 32 of int8 and 64 of MxMatmul always."""
    fields = SOUND | {
        "baseK": 24,
        "Ka": 528,
        "Kb": 528,
        "singleCoreK": 528,
        "depthA1": 2,
        "depthB1": 2,
        "stepKa": 1,
        "stepKb": 1,
    }
    assert not broken_rules(fields, B3, "fp32", layout="nt")
    assert any("baseK" in text for text in broken_rules(fields, B3, "fp32", layout="nd"))
    assert any("multiple of 32" in text for text in broken_rules(fields | {"baseK": 48}, B3, "int8"))
    assert any("multiple of 64" in text for text in broken_rules(fields | {"baseK": 96}, B3, "mxfp8"))


# -- snippets -------------------------------------------------------------------------------------------------------


def test_calls_come_in_the_order_that_the_api_asks_for():
    s = build_schedule(512, 4096, 512, B3, ascend.Blocking(128, 64, 128), kernel="grid", terms=1, split=2, layout="nt",
                       merge="atomic")  # fmt: skip
    lines = ascendc_snippet(s).splitlines()
    at = {word: next(i for i, line in enumerate(lines) if word in line)
          for word in ("EnableMultiCoreSplitK(true)", "GetTiling", "set_usedCoreNum", "SetBType")}  # fmt: skip
    assert at["SetBType"] < at["EnableMultiCoreSplitK(true)"] < at["GetTiling"] < at["set_usedCoreNum"]
    assert "CubeFormat::ND, DataType::DT_FLOAT16, true" in lines[at["SetBType"]] and "B (n x k) in ND rows" in lines[0]
    in_nz = ascendc_snippet(variant(s, layout="nz"))
    assert "CubeFormat::NZ" in in_nz and "A and B in NZ fractals" in in_nz


def test_a_chip_without_the_matmul_api_says_so():
    a = ascend.get_chip("910A")
    s = build_schedule(512, 512, 512, a, ascend.Blocking(128, 64, 128), kernel="grid", terms=1)
    assert snippets(s) == {"AscendC, basic API": basic_snippet(s)}
    assert "does not exist on 910A" in basic_snippet(s) and "baseM = 128;" in basic_snippet(s)
    for target in ("ascendc", "catlass", "pto"):
        with pytest.raises(ValueError, match="does not exist for 910A.*only AscendC's basic API"):
            ascend.plan(512, 512, 512, a, terms=1, target=target)
    assert set(snippets(variant(s, chip="310P3"))) == {"ascendc"}
    assert set(snippets(variant(s, chip="910B3"))) == {"ascendc", "catlass", "pto"}


@pytest.mark.parametrize(("operand", "needed"), [("mxfp8", 540_672), ("mxfp4", 278_528), ("fp8", 524_288)])
def test_block_scales_take_their_bytes_of_l1(operand, needed):
    """256 x 128 x 256 eight deep: 2 * 8 * 256 * 128 elements, and a byte for each 32 of an MX format."""
    chip = ascend.get_chip("950").replace(l1_bytes=2**20)
    options = {"kernel": "grid", "resident": "none", "terms": 1, "operand": operand, "depth": 8}
    s = build_schedule(4096, 4096, 4096, chip, ascend.Blocking(256, 128, 256), **options)
    assert s.buffer_use()["L1"][0] == needed
    fields = tiling_fields(s)
    assert any("L1" in text for text in broken_rules(fields, chip.replace(l1_bytes=needed - 1), operand))
    assert not any("L1" in text for text in broken_rules(fields, chip.replace(l1_bytes=needed), operand))
    with pytest.raises(ValueError, match=f"overflows L1 of 950: {needed} bytes"):
        build_schedule(4096, 4096, 4096, chip.replace(l1_bytes=needed - 1), ascend.Blocking(256, 128, 256), **options)


@pytest.mark.parametrize("operand", ["int8", "fp8", "hifloat8", "mxfp8", "mxfp4"])
@pytest.mark.parametrize(("k", "layout"), [(1, "nd"), (16, "nz"), (31, "nt"), (32, "nd"), (33, "nz"), (65, "nd")])
def test_a_short_k_has_a_plan(operand, k, layout):
    """Blocks of k are whole fractals of the format, also where k is less than one, or a row of ND less than a byte."""
    options = {"terms": 1, "operand": operand, "layout": layout, "rank": "analytic", "top": 1}
    p = ascend.plan(128, k, 128, "950", error_of=lambda s: 0.0, **options)[0]
    whole = {"int8": 32, "fp8": 32, "hifloat8": 32}.get(operand, 64)
    assert p.blocking.bk % whole == 0 and p.blocking.bk - whole < k
    assert not judged(
        tiling_fields(p.schedule), p.schedule.placed_on, operand, layout_of(p.schedule), len(p.schedule.k_slices) > 1
    )


#: asc-devkit, matmul_high_performance, 8192^3 on a 910B1, case 5: 4156.76 us.
CASE_5 = {
    "usedCoreNum": 24, "M": 8192, "N": 8192, "Ka": 8192, "Kb": 8192, "singleCoreM": 2048, "singleCoreN": 1376,
    "singleCoreK": 8192, "baseM": 128, "baseN": 256, "baseK": 64, "depthA1": 16, "depthB1": 8, "stepKa": 8, "stepKb": 4,
}  # fmt: skip


def test_published_fields_are_timed_as_they_are(tmp_path, capsys):
    path = tmp_path / "tiling.json"
    path.write_text(json.dumps({"tiling": CASE_5}))
    assert main(["simulate", "--tiling", str(path), "--chip", "910B1", "--layout", "nt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 1e6 * found["seconds"] == pytest.approx(4156.76, rel=0.02)
    assert found["notes"] == ["depthA1 = 16 and depthB1 = 8: both streams are timed 8 deep"]
    assert (found["block"], found["grid"], found["template"]) == ([128, 64, 256], [4, 1, 6], "mdl")
    assert main(["simulate", "--tiling", str(path), "--chip", "910B1", "--block", "128,64,256"]) == 2
    assert "--tiling" in capsys.readouterr().err


def test_fields_of_a_plan_mean_the_plan():
    """The fields that a plan for AscendC writes are read as its own schedule: the same time."""
    for size in ((2048, 1024, 3072), (512, 4096, 768)):
        own = ascend.plan(
            *size, "910B3", terms=1, layout="nd", top=1, target="ascendc", split=1, error_of=lambda s: 0.0
        )[0]
        again = entered(tiling_fields(own.schedule), own.schedule.placed_on, "mdl", layout="nd")
        assert ascend.simulate(again.schedule).seconds == pytest.approx(own.seconds, rel=0.001) and not again.notes


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"baseM": 0}, "got 0 for baseM, expected numbers above 0"), ({"Kb": 4096}, "Ka = 8192 and Kb = 4096 differ"),
        ({"usedCoreNum": 48}, "usedCoreNum = 48, but the other fields divide the product into 24 rectangles"),
        ({"singleCoreM": 1024}, "usedCoreNum = 24, but the other fields divide the product into 48 rectangles"),
        ({"baseM": 512}, "overflows"),
    ],
)  # fmt: skip
def test_fields_that_contradict_each_other_are_refused(change, why):
    with pytest.raises(ValueError, match=why):
        entered(CASE_5 | change, ascend.get_chip("910B1"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", "expected an object"),
        ("{", "is not JSON"),
        ('{"M": 1}', "must have N, Ka"),
        (json.dumps(CASE_5 | {"M": 1.5}), "must have whole numbers of at least 0, got M = 1.5"),
    ],
)
def test_files_that_are_no_tiling_are_refused(tmp_path, text, why):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=why):
        read_tiling(tmp_path / "t.json")
