"""The playground's WebAssembly and JavaScript in node: the same bits as the package."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.explanations.functions import explain_function
from tensorcore_models.atlas.witnesses import ONE_SCALE
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.formats.exact_rounding import round_to_bits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import playground_data  # noqa: E402

RUNNER = ROOT / "tests" / "support" / "playground.js"
ROWS = [row for row in tcm.list_instructions() if row.published]
FAMILIES = sorted({type(row.accumulator).__name__ for row in ROWS})


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Folder with the module and the catalogue: 5 s, of which the compiler takes most."""
    if not playground_data.can_compile():
        pytest.skip(playground_data.MISSING)
    if not shutil.which("node"):
        pytest.skip("node is not installed: nothing here runs the playground's scripts")
    folder = tmp_path_factory.mktemp("playground")
    playground_data.write(folder)
    return folder


def drawn(rng, fmt, shape):
    """Encodings: of numbers around 1, of any number, of small integers, zeros and specials among them."""
    bits = fmt.bits
    wild = rng.integers(0, 1 << bits, shape, dtype=np.uint64, endpoint=False) if bits < 64 else rng.bytes(0)
    if bits == 64:
        wild = np.frombuffer(rng.bytes(8 * int(np.prod(shape))), np.uint64).reshape(shape)
    if isinstance(fmt, IntegerFormat):
        return wild.astype(fmt.container)
    spread = min(6, fmt.emax - 1) if fmt.emax > 1 else 1
    low, high = max(0, fmt.bias - spread), min((1 << fmt.exponent_bits) - 1, fmt.bias + spread)
    fields = rng.integers(low, high + 1, shape, dtype=np.uint64) << np.uint64(fmt.fraction_bits + fmt.padding_bits)
    rest = wild & np.uint64(fmt.sign_bit | ((1 << fmt.fraction_bits + fmt.padding_bits) - 1))
    near = fields | rest
    kind = rng.random(shape[:1] + (1,) * (len(shape) - 1))
    share = rng.random(shape)
    codes = np.where(kind < 0.7, near, np.where(share < 0.9, near, wild))
    codes = np.where((kind > 0.85) & (share < 0.3), np.uint64(fmt.sign_bit) & wild, codes)
    return codes.astype(fmt.container)


def cases(row, count, rng):
    """(k, a, b, c, scales, expected) of `count` dot products, with a length that is no multiple of the unit's."""
    k = int(rng.integers(1, 33))
    a_format, b_format, c_format, _ = row.formats
    a, b = drawn(rng, a_format, (count, k)), drawn(rng, b_format, (count, k))
    c = drawn(rng, c_format, (count, 1))
    scales = [None] * count
    if row.scale_format:
        fmt, blocks = tcm.get_format(row.scale_format), -(-k // row.block_size)
        scales = [drawn(rng, fmt, (2, blocks)) for _ in range(count)]
    expected = [
        row.gemm_bits(x[None], y[:, None], z[None], *((s[0][None], s[1][:, None]) if s is not None else ()))[0, 0]
        for x, y, z, s in zip(a, b, c, scales, strict=True)
    ]
    return k, a, b, c[:, 0], scales, expected


def ask(built, tmp_path, tasks):
    """What node answers to each task."""
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(map(json.dumps, tasks)) + "\n")
    done = subprocess.run(["node", str(RUNNER), str(built), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def dots_task(kind, row, case):
    """A task about the dot products of a case."""
    k, a, b, c, scales, _ = case
    dots = [
        [list(map(str, x.tolist())), list(map(str, y.tolist())), str(z), *([[], []] if s is None else s.tolist())]
        for x, y, z, s in zip(a, b, c.tolist(), scales, strict=True)
    ]
    return {"ask": kind, "unit": str(row), "k": k, "dots": dots}


def check(built, tmp_path, rows, per_row):
    rng = np.random.default_rng(len(rows))
    given = [(row, cases(row, per_row, rng)) for row in rows]
    answers = ask(built, tmp_path, [dots_task("dots", *pair) for pair in given])
    for (row, (k, a, b, c, _, expected)), found in zip(given, answers, strict=True):
        wrong = [i for i, (x, y) in enumerate(zip(found, expected, strict=True)) if int(x) != int(y)]
        assert not wrong, (str(row), k, [(a[i], b[i], c[i], found[i], expected[i]) for i in wrong[:2]])


def rows_of(family, most):
    """Rows of a family, spread over the catalogue."""
    rows = [row for row in ROWS if type(row.accumulator).__name__ == family]
    return rows[:: -(-len(rows) // most)]


# In make test: one build of the module, about five seconds, and three runs of node.
def test_the_page_computes_the_bits_of_the_package(built, tmp_path):
    check(built, tmp_path, [row for family in FAMILIES for row in rows_of(family, 4)], 4)


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_ten_thousand_random_dot_products_of_each_family(built, tmp_path, family):
    """Every row of the family takes part."""
    rows = rows_of(family, 1000)
    check(built, tmp_path, rows, -(-10_000 // len(rows)))


def test_every_row_with_public_arithmetic_is_there_and_the_module_is_small(built):
    data = json.loads((built / "catalogue.js").read_text().partition("mpgemm.catalogue = ")[2].rstrip(";\n"))
    assert [row["name"] for row in data["rows"]] == [str(row) for row in ROWS]
    assert (built / "kernel.wasm").stat().st_size < playground_data.LARGEST


def ordinary(row, count, rng):
    """Dot products of numbers around 1, as `cases` gives them."""
    k = int(rng.integers(1, 17))
    blocks = -(-k // row.block_size) if row.scale_format else 0
    ones = np.full((2, blocks), ONE_SCALE[row.scale_format]) if row.scale_format else None
    spread = [
        near_one(rng, fmt, shape) for fmt, shape in zip(row.formats, ((count, k), (count, k), (count,)), strict=False)
    ]
    return (k, *spread, [ones] * count, None)


def near_one(rng, fmt, shape):
    if isinstance(fmt, IntegerFormat):
        return rng.integers(0, 1 << fmt.bits - 1, shape, dtype=np.uint64).astype(fmt.container)
    if not fmt.has_fields:
        values = np.abs(tcm.decode(np.arange(1 << fmt.bits, dtype=fmt.container), fmt, np.float64))
        return rng.choice(np.flatnonzero((values >= 0.5) & (values < 4)), shape).astype(fmt.container)
    field = rng.integers(fmt.bias - 1, fmt.bias + 2, shape, dtype=np.uint64) << np.uint64(fmt.fraction_bits)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape, dtype=np.uint64)
    sign = rng.integers(0, 2, shape, dtype=np.uint64) * np.uint64(fmt.sign_bit)
    return (((field | fraction) << np.uint64(fmt.padding_bits)) | sign).astype(fmt.container)


def test_the_last_step_that_is_drawn_ends_with_the_result(built, tmp_path):
    """Every product and c is named in the steps of a family, but for zeros and for sums that the unit makes of groups."""
    rng = np.random.default_rng(5)
    rows = [row for family in FAMILIES for row in rows_of(family, 6)]
    given = [(row, ordinary(row, 3, rng)) for row in rows]
    for (row, case), answers in zip(given, ask(built, tmp_path, [dots_task("steps", *x) for x in given]), strict=True):
        for result, ended, labels in answers:
            wrapped = isinstance(row.formats[3], IntegerFormat)
            assert ended == result or (wrapped and (ended - result) % 2**32 == 0), (str(row), result, ended, labels)
            named = [label.partition(",")[0] for label in labels if label == "c" or label.startswith("k = ")]
            named = list(dict.fromkeys(named)) if any("part" in label for label in labels) else named
            assert len(named) == len(set(named)), (str(row), labels)
            if type(row.accumulator).__name__ not in (
                "GroupDotFusedSum",
                "FidelityPhases",
            ):  # their addends are groups' sums
                assert set(named) == {"c", *(f"k = {k}" for k in range(case[0]))}, (str(row), labels)


# -- what is typed ---------------------------------------------------------------------------------------------------------
VALUES = (
    "1",
    "-0",
    "0.1",
    "1e-3",
    "-1/3",
    "3*2^-12",
    "2^-24",
    "2**-25",
    "0x1.8p-4",
    "65504",
    "65519.99999999999999999",
    "65520",
)
HALVES = tuple(f"{1 + 2**-11 * n:.20f}{tail}" for n in (1, 3) for tail in ("", "00000000000000000001"))


def test_numbers_are_rounded_once_from_what_is_typed(built, tmp_path):
    """Ties and what lies a little beyond them, where a number that became a double first is rounded twice."""
    texts = [*VALUES, *HALVES]
    (found,) = ask(built, tmp_path, [{"ask": "parse", "format": "fp16", "texts": texts}])
    for text, answer in zip(texts, found, strict=True):
        assert int(answer["code"]) == exact_code(text), text
        if text in ("1", "-0", "2^-24", "65504"):
            assert answer["note"] == ""
    assert "rounded to 0.0999755859375" in found[VALUES.index("0.1")]["note"]
    assert "became infinity" in found[VALUES.index("65520")]["note"]


def exact_code(text):
    """The encoding in fp16 of a text, by exact rational numbers."""
    body = text.removeprefix("-")
    power = re.fullmatch(r"(?:(\d+)\*)?2(?:\^|\*\*)(-?\d+)", body)
    hexadecimal = float.fromhex(body) if "x" in body else None
    value = (
        Fraction(hexadecimal)
        if hexadecimal
        else int(power[1] or 1) * Fraction(2) ** int(power[2])
        if power
        else Fraction(body)
    )
    fmt = tcm.FORMATS["fp16"]
    scaled = value * 2**200
    sticky = int(scaled.denominator > 1)  # below the last bit of any number here
    return round_to_bits(text.startswith("-"), 2 * (scaled.numerator // scaled.denominator) + sticky, -201, fmt)


BAD = {
    "fp16": {"abc": "is not a number", "": "missing", "1/0": "divides by zero", "0x12345": "more than the 16 bits",
             "1e99999": "beyond 5000",
             "--1": "is not a number", "1..2": "is not a number", "2^": "is not a number"},
    "e4m3fn": {"inf": "no infinity", "500": "beyond 448", "-nan": None},
    "e2m1": {"nan": "no NaN", "inf": "no infinity", "7": None},
    "s8": {"128": "-128 to 127", "0.5": "no integer", "nan": "is not a number"},
    "ue8m0": {"-1": "has no sign", "0": "is zero"},
}  # fmt: skip


def test_what_is_no_number_of_a_format_is_told_in_words(built, tmp_path):
    tasks = [{"ask": "parse", "format": name, "texts": list(texts)} for name, texts in BAD.items()]
    for (name, texts), found in zip(BAD.items(), ask(built, tmp_path, tasks), strict=True):
        for (text, words), answer in zip(texts.items(), found, strict=True):
            assert ("error" not in answer) if words is None else (words in answer.get("error", "")), (
                name,
                text,
                answer,
            )


# -- special functions -----------------------------------------------------------------------------------------------------
FUNCTIONS = [f for f in tcm.list_functions("hopper") if not f.row.packed]
WORDS = (
    0,
    1 << 31,
    1,
    0x3F800000,
    0xBF800001,
    0x3B7FFFFF,
    0x40FFFFFF,
    0x477FE000,
    0x47CE4780,
    0x7F7FFFFF,
    0x7F800000,
    0xFF800000,
)


def function_operands(function, rng):
    """Encodings: specials and ends of ranges, numbers of usual size, any others."""
    usual = (rng.standard_normal(4) * 4).astype(np.float32).view(np.uint32)
    words = np.concatenate([np.array(WORDS, np.uint32), usual, rng.integers(0, 1 << 32, 4, np.uint32)])
    count = len(function.row.operands)
    pairs = words if count == 1 else np.concatenate([words, rng.permutation(words)])
    if function.row.operand == "fp64 high":  # the page reads whole doubles
        return [[int(x) << 32] for x in pairs]
    if function.operand_dtype == np.uint16:
        return [[int(x) >> 16] for x in pairs]
    return pairs.reshape(count, -1).T.tolist()


def test_special_functions_are_those_of_explain(built, tmp_path):
    """Bits, each instruction, and each lookup of the unit; exact values are doubles there, so errors agree to 2^-20 ulp."""
    rng = np.random.default_rng(60)
    given = [(function, function_operands(function, rng)) for function in FUNCTIONS]
    tasks = [
        {
            "ask": "lookups",
            "function": f"hopper:{function.name}",
            "operands": [[str(x) for x in pair] for pair in codes],
        }
        for function, codes in given
    ]
    for (function, operands), answers in zip(given, ask(built, tmp_path, tasks), strict=True):
        high = function.row.operand == "fp64 high"
        fmt = "fp64" if high else function.row.operand
        for codes, found in zip(operands, answers, strict=True):
            words = [code >> 32 if high else code for code in codes]
            place = (function.name, [hex(x) for x in codes])
            assert int(found["code"]) >> (32 if high else 0) == int(function.bits(*words)), place
            if np.isnan(values := [float(tcm.decode(code, fmt)) for code in codes]).any():
                continue  # explain takes numbers
            wanted = explain_function(function, values)
            assert [(x["name"], tuple(x["operands"]), x["word"]) for x in found["operations"]] == [
                (x.name, x.operands, x.result) for x in wanted.operations
            ], place
            for got, want in zip(found["operations"], wanted.operations, strict=True):
                assert (got["lookup"] is None) == (want.lookup is None)
                if want.lookup is not None:
                    assert seen(got["lookup"]) == seen(asdict(want.lookup)), place
            assert (found["error"] is None) == (wanted.error is None), place
            if wanted.error is not None:
                assert abs(found["error"] - wanted.error) <= 2**-20 * max(1, abs(wanted.error)), place


def seen(lookup):
    """What is shown of a lookup: of an operand whose result is fixed nothing."""
    if lookup["replaced"]:
        return True
    names = {"fraction_bits": "fractionBits"}
    shown = ("table", "segment", "segments", "x", "c0", "c1", "c2", "square", "whole", "total", "scale", "significand")
    return {name: lookup[name] for name in shown} | {
        "bits": lookup.get("fraction_bits", lookup.get(names["fraction_bits"]))
    }


# -- matrices and the search -----------------------------------------------------------------------------------------------
UNITS = (
    "volta:mma.m8n8k4.f32.f16.f16.f32", "hopper:mma.m16n8k16.f32.f16.f16.f32", "cdna2:v_mfma_f32_32x32x8f16",
    "gaudi2:mme.k8.f32.f16.f16.f32", "ascend:cube.m16n16k16.f32.f16.f16.f32",
)  # fmt: skip
SCALES = (0, 6, 12, 20)


def test_recovery_methods_have_the_bits_of_the_package(built, tmp_path):
    """Numbers of ordinary size, small ones, and some that FP16 does not hold."""
    rng, tasks, expected = np.random.default_rng(7), [], []
    for index, unit in enumerate(UNITS):
        m, k, n = 5, (16, 37, 64, 7, 33)[index], 4
        a, b = (
            np.ldexp(rng.standard_normal(s), int(rng.integers(-16, 3))).astype(np.float32) for s in ((m, k), (k, n))
        )
        if index == 1:
            a[2, 3] = 1e6
        for method in ("fp16", "markidis", "ootomo", *(f"sgemm_cube:scale_exponent={s}" for s in SCALES)):
            name, _, scale = method.partition(":scale_exponent=")
            task = {
                "ask": "method",
                "method": name,
                "unit": unit,
                "m": m,
                "n": n,
                "k": k,
                "a": a.ravel().tolist(),
                "b": b.ravel().tolist(),
            }
            tasks.append(task | ({"scale": int(scale)} if scale else {}))
            expected.append(mpgemm.recovered_gemm(a, b, method=method, engine=unit))
    for task, want, found in zip(tasks, expected, ask(built, tmp_path, tasks), strict=True):
        got = np.array(found, np.uint32).view(np.float32).reshape(want.shape)
        assert np.array_equal(got, want, equal_nan=True), (task["method"], task["unit"], task.get("scale"))


def test_the_search_finds_a_short_input_on_which_units_differ(built, tmp_path):
    pairs = [
        UNITS[:2],
        (UNITS[1], UNITS[2]),
        ("hopper:wgmma.m64n8k32.f32.e4m3.e4m3", "ada:mma.m16n8k32.f32.e4m3.e4m3.f32"),
    ]
    for pair, found in zip(
        pairs, ask(built, tmp_path, [{"ask": "differ", "units": pair} for pair in pairs]), strict=True
    ):
        assert found and found[0] != found[1], pair
