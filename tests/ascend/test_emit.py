"""Kernels written out: their bits, flags and tiles on the shim, and that faults planted in them are found."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from own_kernel import OWN

import ascend
from ascend.emit.check import check_emitted, compiler
from ascend.emit.pto import pto_files, schedule_of
from ascend.emit.user_kernels import OwnKernel, check_own
from ascend.emit.write import EMITTERS, write_files
from ascend.schedule import build_schedule
from mpgemm.cli import main

pytestmark = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("c++", "g++", "clang++")), reason="needs a C++ compiler"
)
B3 = ascend.get_chip("910B3")
LARGEST_WORK = 1_500_000


def written(folder, s):
    """The kernel's files."""
    write_files(folder, pto_files(s))
    return folder


def random_schedule(rng):
    """Ragged sizes, grids that do not come out even, k groups, split-k, terms, operands, layouts, unit flag, single buffers."""
    operand = str(rng.choice(["fp16", "fp16", "fp16", "bf16", "int8", "fp32"]))
    terms = int(rng.choice([1, 3, 4])) if operand == "fp16" else 1
    unit = 32 if operand == "int8" else 16
    block = ascend.Blocking(*(u * int(rng.integers(1, most)) for u, most in ((16, 5), (unit, 3), (16, 5))))
    m, n = (int(rng.integers(1, 200)) for _ in range(2))
    k = int(rng.integers(1, max(min(400, LARGEST_WORK // (m * n * terms)), 2)))
    options = {"terms": terms, "operand": operand, "buffering": str(rng.choice(["double", "double", "single"])),
               "layout": "nt" if operand in ("int8", "fp32") else str(rng.choice(["nd", "nt", "nz", "nz"])),
               "unit_flag": bool(rng.random() < 0.3), "balanced": bool(rng.random() < 0.5)}  # fmt: skip
    if terms > 1:
        options |= {"mode": str(rng.choice(["termwise", "fused"])), "presplit": str(rng.choice(["", "b", "ab"]))}
    blocks = -(-k // block.bk)
    split = int(rng.integers(1, min(blocks, 4) + 1))
    if operand != "int8" and terms == 1 and rng.random() < 0.5:
        options["merge"] = "atomic"
    if "merge" not in options and rng.random() < 0.6:
        options["n_fused"] = int(rng.integers(1, 3))
    if rng.random() < 0.5:
        options["grid"] = (int(rng.integers(1, 5)), split, int(rng.integers(2, 5)))
        options["swizzle"] = ascend.Swizzle(1, int(rng.integers(0, 2)))
    else:
        options |= {"split": split, "swizzle": ascend.Swizzle(int(rng.integers(1, 4)), int(rng.integers(0, 2)))}
    chip = str(rng.choice(["910B3", "910B1", "950"]))
    return build_schedule(
        m, k, n, chip, block, kernel="grid", resident="none", cores=int(rng.choice([7, 20])), **options
    )


def drawn(seed):
    """The first schedule that fits of those that a seed draws."""
    rng = np.random.default_rng(seed)
    while True:
        try:
            return random_schedule(rng)
        except ValueError:
            continue


@pytest.mark.sweep(1)  # a kernel takes a second or two of the compiler
@pytest.mark.parametrize("seed", range(60))
def test_an_emitted_kernel_is_the_plan(tmp_path, seed):
    """Bits of cube_gemm, no race, no flag left up, and each core stores the tiles and ranges of k of the schedule."""
    s = drawn(seed)
    found = check_emitted(written(tmp_path, s), seed=seed, optimization="-O0")
    assert found.sound, (s, found.sentences())


def test_the_draws_reach_every_kind():
    drawn_ones = [drawn(seed) for seed in range(60)]
    for what in (
        lambda s: s.mode == "fused" and s.terms > 1, lambda s: s.mode == "termwise" and s.terms > 1, lambda s: s.terms == 4,
        lambda s: s.operand == "int8", lambda s: s.operand == "bf16", lambda s: s.groups > 2,
        lambda s: s.owns_rectangles and s.swizzle.direction == 0, lambda s: s.owns_rectangles and s.swizzle.direction == 1,
        lambda s: len(s.k_slices) > 1 and s.merge == "reduce", lambda s: len(s.k_slices) > 1 and s.merge == "atomic",
        lambda s: s.layout == "nz" and s.terms == 1,
        lambda s: s.unit_flag, lambda s: s.buffering == "single", lambda s: s.layout == "nt" and s.terms == 1,
        lambda s: s.m % 16 and s.n % 16 and s.k % 16, lambda s: s.tiles % s.used_cores,
    ):  # fmt: skip
        assert sum(bool(what(s)) for s in drawn_ones) >= 2


#: What is replaced in the cubes' kernel, and the kind of fault that names it. In half of them the numbers stay right: a race
#: and tiles computed by other cores show in no bit.
PLANTED = {
    "a wrong flag": (
        [("raise<PIPE_MTE1, PIPE_M>(kEventB + slot);", "raise<PIPE_MTE1, PIPE_M>(kEventA + slot);")], "flag raised twice"),
    "nobody waits for L0B": (
        [("    raise<PIPE_MTE1, PIPE_M>(kEventB + slot);\n", ""), ("    await<PIPE_MTE1, PIPE_M>(kEventB + at.l0Slot);\n", "")],
        "race"),
    "FIXPIPE does not wait for the cube": (
        [("            raise<PIPE_M, PIPE_FIX>(l0cSlot);\n", "            ;\n"),
         ("        await<PIPE_M, PIPE_FIX>(l0cSlot);", "        ;")], "race"),
    "one buffer of L1 where two are needed": ([("kL1A + (word * kSlots + slot) * kL1ABytes", "kL1A")], "race"),
    "one L0B where two are needed": ([("TASSIGN(to, slot * kL0BBytes);", "TASSIGN(to, 0);")], "race"),
    "two sums share L0C": ([("kL0CBytes = 12288;", "kL0CBytes = 6144;")], "race"),
    "a flag that nobody raises": ([("            raise<PIPE_MTE2, PIPE_MTE1>(l1Slot);\n", "")],
                                   "wait for a flag that is not up"),
    "a tail as long as the others": ([("least((index + 1) * unit, size)", "(index + 1) * unit")], "beyond the matrix"),
    "k ends too soon": ([("Range{0, kK}", "Range{0, kK - 16}")], "bits"),
    "tiles go to other cores": ([("(core + kFirst)", "(core + 1 + kFirst)")], "tiles"),
    "no barrier between small products": ([("        pipe_barrier(PIPE_M);", "        ;")], "no barrier"),
    "a flag is not taken back": ([("        await<PIPE_MTE1, PIPE_MTE2>(slot);\n", "")], "flag left up"),
}  # fmt: skip
IN_THE_VECTOR_UNITS = {
    "no barrier between vector steps": ("TCVT(first, x, RoundMode::CAST_RINT);\n    pipe_barrier(PIPE_V);",
                                        "TCVT(first, x, RoundMode::CAST_RINT);", "race"),
    "the low word is not scaled": ("TMULS(rest, rest, scale);", "TMULS(rest, rest, 1.0f);", "bits"),
}  # fmt: skip


def planted(folder, s, name, changes):
    files = pto_files(s)
    for old, new in changes:
        assert old in files[name], old
        files[name] = files[name].replace(old, new, 1)
    write_files(folder, files)
    return check_emitted(folder, optimization="-O0")


@pytest.mark.full  # a kernel takes a second or two of the compiler
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(tmp_path, name):
    s = build_schedule(
        100, 200, 150, B3, ascend.Blocking(64, 32, 48), terms=1, kernel="grid", layout="nt", balanced=False, cores=3
    )
    changes, kind = PLANTED[name]
    found = planted(tmp_path, s, "gemm_cube.cpp", changes)
    assert kind in {fault.kind for fault in found.faults}, found.sentences()


@pytest.mark.full
@pytest.mark.parametrize("name", IN_THE_VECTOR_UNITS)
def test_a_fault_planted_in_the_vector_units_is_found(tmp_path, name):
    s = build_schedule(40, 50, 60, B3, ascend.Blocking(32, 32, 32), kernel="grid", mode="fused", resident="none")
    old, new, kind = IN_THE_VECTOR_UNITS[name]
    found = planted(tmp_path, s, "gemm_vector.cpp", [(old, new)])
    assert kind in {fault.kind for fault in found.faults}, found.sentences()


@pytest.mark.parametrize(
    ("chip", "options", "why"),
    [
        ("910A", {"terms": 1, "layout": "nt"}, "PTO does not exist for 910A"),
        ("910B3", {"mode": "elementwise"}, "the cube can neither scale a term"),
        ("910B3", {"mode": "termwise_inplace"}, "the cube can neither scale a term"),
        ("910B3", {"terms": 1, "operand": "int8"}, "transposes only 16-bit elements: use --layout nt"),
        ("910B3", {"terms": 1, "operand": "int8", "layout": "nd"}, "transposes only 16-bit elements: use --layout nt"),
        ("910B3", {"terms": 1, "operand": "hf32", "layout": "nt"}, "multiplies fp16, bf16, fp32, int8, got hf32"),
        ("910B3", {"terms": 1, "layout": "nt", "merge": "atomic", "split": 2, "n_fused": 1}, "only if L0C holds the "
        "slice as one sum"),
        ("910B3", {"resident": "a"}, "streams both operands to the cube, but this plan has the placement 'A kept'"),
    ],
)  # fmt: skip
def test_what_pto_cannot_say_is_refused(chip, options, why):
    s = build_schedule(
        100, 200, 150, chip, ascend.Blocking(64, 32, 48), kernel="grid", **{"resident": "none"} | options
    )
    with pytest.raises(ValueError, match=why):
        pto_files(s)


@pytest.mark.full  # 2 s and more: its host is compiled and run
def test_operands_in_fractals(tmp_path):
    """NZ, ragged on every side: padded with zeros in memory; elements that the host reads and the record names."""
    s = build_schedule(
        41, 70, 53, B3, ascend.Blocking(32, 32, 32), terms=1, kernel="grid", layout="nz", resident="none"
    )
    files = pto_files(s)
    assert "48 x 80" in files["record.json"]["layout_a"] and "80 x 64" in files["record.json"]["layout_b"]
    assert "kRowsA = 48;" in files["main.cpp"] and "kColumnsB = 64;" in files["main.cpp"]
    assert check_emitted(written(tmp_path, s), optimization="-O0").sound
    wrong = files["gemm_cube.cpp"].replace("whole(depth, kC0);", "length(depth);", 1)
    (tmp_path / "gemm_cube.cpp").write_text(wrong)
    assert "not in whole fractals" in {fault.kind for fault in check_emitted(tmp_path, optimization="-O0").faults}


def test_the_record_tells_what_a_caller_needs():
    s = build_schedule(
        100, 200, 150, B3, ascend.Blocking(64, 32, 48), kernel="grid", mode="fused", split=2, resident="none"
    )
    record = pto_files(s)["record.json"]
    assert record["workspace_bytes"] == {
        "words": {"a": 4 * 100 * 200, "b": 4 * 200 * 150},
        "copies_of_c": 6 * 100 * 150 * 4,
    }
    l1 = record["l1"]
    assert l1["b_offset"] == 2 * l1["slots"] * l1["a_bytes"]
    assert l1["b_offset"] + 2 * l1["slots"] * l1["b_bytes"] <= B3.l1_bytes
    assert record["launches"] == 4 and record["events"]["M to MTE1"] == 4
    assert schedule_of(json.loads(json.dumps(record))) == s
    host = pto_files(s)["main.cpp"]
    assert "kCopies = 6" in host and "kSplitsA = true" in host
    plain = pto_files(
        build_schedule(100, 200, 150, B3, ascend.Blocking(64, 32, 48), terms=1, kernel="grid", layout="nt")
    )
    assert "gemm_vector.cpp" not in plain and "MPGEMM_VECTOR_PASSES 0" in plain["main.cpp"]


def own(folder, text=OWN, entry="launch", arguments=("c", "a", "b", "nullptr")):
    file = folder / "own.cpp"
    file.write_text(text)
    return OwnKernel(file, entry, 1, 32, 32, 32, "fp16", "nd", arguments, B3)


@pytest.mark.full
def test_a_kernel_of_ones_own(tmp_path):
    """One chain in k: the cube's bits; without the barrier that frees the buffers a race, the numbers being right."""
    found = check_own(own(tmp_path), optimization="-O0")
    assert found.sound and not found.different and "one chain over k" in found.sentences()[0]


@pytest.mark.full
def test_whole_tiles_are_moved_and_an_unknown_call_names_those_of_the_shim(tmp_path):
    text = OWN.replace("TEXTRACT(a0, a1, 0, 0)", "TMOV(a0, a1)").replace("TEXTRACT(b0, b1, 0, 0)", "TMOV(b0, b1)")
    found = check_own(own(tmp_path, text), optimization="-O0")
    assert "TEXTRACT" not in text and found.sound and not found.different
    with pytest.raises(ValueError, match=r"TGATHER.* \(the shim has TADD, .*TMOV, TMULS, TSTORE, TSUB\)"):
        check_own(own(tmp_path, text.replace("TMOV", "TGATHER")), optimization="-O0")


def test_a_chip_without_pto_has_no_kernel_of_it(tmp_path):
    with pytest.raises(ValueError, match="PTO does not exist for 910A"):
        OwnKernel(own(tmp_path).file, "launch", 1, 32, 32, 32, "fp16", "nd", ("c", "a", "b"), ascend.get_chip("910A"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [("        pipe_barrier(PIPE_ALL);\n    }", "    }", "race"), ("b + 16 * 32 * k", "b", "numbers"),
     ("TASSIGN(c0, 0)", "TASSIGN(c0, 16)", "address not in whole 32 bytes"),
     ("BaseShape2D<T, 32, 32, Layout::ND>> ga(a", "BaseShape2D<T, 32, 64, Layout::ND>> ga(a", "beyond the matrix")],
)  # fmt: skip
def test_faults_of_a_kernel_of_ones_own(tmp_path, old, new, kind):
    assert old in OWN
    found = check_own(own(tmp_path, OWN.replace(old, new, 1)), optimization="-O0")
    assert kind in {fault.kind for fault in found.faults}, found.sentences()


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"entry": "a; b"}, "--entry must be the name of a function"), ({"arguments": ("a", "b")}, "among them c")],
)  # fmt: skip
def test_what_cannot_be_called_is_refused(tmp_path, changes, why):
    with pytest.raises(ValueError, match=why):
        own(tmp_path, **changes)


def test_a_file_that_does_not_compile_is_one_line(tmp_path):
    with pytest.raises(ValueError, match="own.cpp does not compile: .*error"):
        check_own(own(tmp_path, "int x = ;"), optimization="-O0")


def test_commands(tmp_path, capsys):
    """plan --emit writes, check-kernel runs; a folder without a record is refused."""
    folder = tmp_path / "kernel"
    plan = ["plan", "40", "64", "48", "--chip", "910B3", "--terms", "1", "--layout", "nt", "--top", "1"]
    assert main([*plan, "--emit", "pto", str(folder)]) == 0
    assert "record.json" in capsys.readouterr().out
    assert main(["check-kernel", str(folder)]) == 0
    assert "no race" in capsys.readouterr().out
    for arguments, why in (
        (["check-kernel", str(tmp_path)], "holds no record.json"),
        (["check-kernel", str(folder), "1", "2", "3"], "leave out the size"),
        (["check-kernel", str(folder / "gemm_cube.cpp")], "needs M K N, --entry NAME and --cores COUNT"),
        ([*plan, "--emit", "cuda", str(folder)], "target must be one of ascendc, catlass, pto"),
        (
            [x.replace("nt", "nd") for x in plan] + ["--operand", "int8", "--emit", "pto", str(folder)],
            "transposes only 16-bit elements",
        ),
    ):
        assert _status(arguments) == 2
        assert why in capsys.readouterr().err


def test_without_operands_the_fastest_way_that_the_dialect_can_say_is_written(tmp_path, capsys):
    """FP32 on the cube is fastest, but PTO has no way from NZ to L0B for it: three terms, and why."""
    folder = tmp_path / "kernel"
    plan = ["plan", "60", "100", "80", "--chip", "910B3", "--top", "1", "--emit"]
    assert main([*plan, "pto", str(folder)]) == 0
    assert "fp32 would be faster, but pto cannot express it: got fp32 operands with --layout" in " ".join(
        capsys.readouterr().out.split()
    )
    assert json.loads((folder / "record.json").read_text())["terms"] == 3 and (folder / "gemm_vector.cpp").exists()
    assert _status([*plan, "ascendc", str(folder)]) == 2  # no way at all: the first one's reason
    assert "--layout nd, or with nt" in capsys.readouterr().err


def _status(arguments):
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("dialect", "texts"),
    [
        (
            "catlass",
            (
                "Gemm::MmadAtlasA2Pingpong<false>",
                "GemmIdentityBlockSwizzle<",
                "layout::ColumnMajor",
                "kM = 200, kN = 300",
            ),
        ),
        ("ascendc", ("IterateAll", "kBTransposed = true")),
    ],
)
def test_other_dialects(dialect, texts):
    """What is written says the plan; what a dialect cannot say is refused."""
    p = ascend.plan(200, 128, 300, B3, terms=1, layout="nt", target=dialect, top=1, error_of=lambda s: 0.0)[0]
    files = EMITTERS[dialect](p.schedule)
    assert all(text in files["gemm.cpp"] for text in texts)
    assert files["record.json"]["predicted_us"] == pytest.approx(1e6 * p.seconds)
    if dialect == "ascendc":
        fields = files["record.json"]["tiling"]
        assert all(f"tiling.set_{name}({value});" in files["tiling.cpp"] for name, value in fields.items())
    kept = build_schedule(
        200, 128, 300, B3, ascend.Blocking(64, 32, 48), terms=1, kernel="grid", layout="nt", resident="a"
    )
    with pytest.raises(ValueError, match=f"plan with --for {dialect}"):
        EMITTERS[dialect](kept)
    with pytest.raises(ValueError, match="--terms 1, or --emit pto"):
        EMITTERS[dialect](
            build_schedule(200, 128, 300, B3, ascend.Blocking(64, 32, 48), kernel="grid", resident="none")
        )
    with pytest.raises(ValueError, match="use --tiling, which prints blocks"):
        EMITTERS[dialect](
            build_schedule(200, 128, 320, B3, ascend.Blocking(64, 64, 64), terms=1, kernel="grid", operand="w8a16")
        )


#: What of ACL a host calls.
ACL = """
#pragma once
#include <cstddef>
using aclError = int;
using aclrtStream = void *;
enum { ACL_SUCCESS, ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST };
aclError aclInit(const char *);
aclError aclFinalize();
aclError aclrtSetDevice(int);
aclError aclrtResetDevice(int);
aclError aclrtCreateStream(aclrtStream *);
aclError aclrtSynchronizeStream(aclrtStream);
aclError aclrtMalloc(void **, size_t, int);
aclError aclrtMemcpy(void *, size_t, const void *, size_t, int);
aclError aclrtMemsetAsync(void *, size_t, int, size_t, aclrtStream);
"""


@pytest.mark.parametrize("options", [{"terms": 1, "layout": "nt"}, {"mode": "fused", "split": 2}])
def test_a_host_compiles(tmp_path, options):
    s = build_schedule(100, 200, 150, B3, ascend.Blocking(64, 32, 48), kernel="grid", resident="none", **options)
    written(tmp_path, s)
    (tmp_path / "acl").mkdir()
    (tmp_path / "acl" / "acl.h").write_text(ACL)
    command = [compiler(), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{tmp_path}", "main.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


#: A main function for pto-isa's own CPU simulator: whole numbers, whose sums are exact in any order.
ON_THE_VENDORS = """
#include "gemm_cube.cpp"
#include <cstdio>
#include <vector>
int main()
{
    using namespace plan;
    const auto fractal = [](size_t r, size_t c, size_t rows) { return c / 16 * rows * 16 + r * 16 + c % 16; };
    const auto inA = [=](size_t r, size_t c) { return kInFractals ? fractal(r, c, kRowsA) : r * kK + c; };
    const auto inB = [=](size_t r, size_t c) {
        return kInFractals ? fractal(r, c, kRowsB) : kBTransposed ? c * kK + r : r * kN + c;
    };
    std::vector<half> a(kRowsA * kColumnsA, half(0.0f)), b(kRowsB * kColumnsB, half(0.0f));
    std::vector<float> c(kM * kN, -1.0f);
    for (size_t k = 0; k < kK; ++k) {
        for (size_t i = 0; i < kM; ++i)
            a[inA(i, k)] = (half)(float)((int)((i * kK + k) * 7 % 13) - 6);
        for (size_t j = 0; j < kN; ++j)
            b[inB(k, j)] = (half)(float)((int)((j * kK + k) * 5 % 11) - 5);
    }
    for (uint32_t core = 0; core < kUsedCores; ++core) {
        pto::cpu_sim::execution_context.block_idx = core;
        gemm_cube((uint8_t *)a.data(), nullptr, (uint8_t *)b.data(), nullptr, (uint8_t *)c.data());
    }
    int wrong = 0;
    for (uint32_t i = 0; i < kM; ++i)
        for (uint32_t j = 0; j < kN; ++j) {
            float sum = 0;
            for (uint32_t k = 0; k < kK; ++k)
                sum += (float)a[inA(i, k)] * (float)b[inB(k, j)];
            wrong += sum != c[i * kN + j];
        }
    std::printf("%d wrong", wrong);
}
"""


@pytest.mark.full
@pytest.mark.parametrize("layout", ["nt", "nd", "nz"])
def test_the_vendors_simulator_takes_the_kernel(tmp_path, layout):
    """MPGEMM_PTO_ISA: a checkout of pto-isa whose CPU simulator this compiler builds (f35e7f60 with g++ 12)."""
    vendor = os.environ.get("MPGEMM_PTO_ISA")
    if not vendor:
        pytest.skip("MPGEMM_PTO_ISA is not set: a checkout of pto-isa")
    s = build_schedule(
        41, 70, 53, B3, ascend.Blocking(32, 32, 32), terms=1, kernel="grid", layout=layout, resident="none"
    )
    written(tmp_path, s)
    (tmp_path / "vendors.cpp").write_text(ON_THE_VENDORS)
    program = tmp_path / "vendors"
    built = subprocess.run(
        [compiler(), "-std=c++20", "-O1", "-ffp-contract=off", "-w", "-D__CPU_SIM", "-DPTO_CPU_MAX_THREADS=1u",
         f"-I{vendor}/include", str(tmp_path / "vendors.cpp"), "-o", str(program), "-ldl", "-lpthread"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[:2000]
    assert subprocess.run([program], capture_output=True, text=True).stdout == "0 wrong"
