"""CATLASS's policies and instantiations: against the policies' template parameters, and against a C++ model of the names."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import ascend
from ascend.emit.catlass import catlass_batch_files, catlass_files
from ascend.emit.check import compiler
from ascend.reports.catlass import ASSEMBLIES, MX, POLICIES, assemblies_of, catlass_text, instantiation, policy_values
from ascend.schedule import build_schedule, variant
from mpgemm.cli import main

ROWS = [(arch, row) for arch, rows in ASSEMBLIES.items() for row in rows] + [("Ascend950", row) for row in MX]


def planned(chip="910B3", operand="fp16", **options):
    block = ascend.Blocking(128, 64 if operand != "mxfp8" else 128, 128)
    return build_schedule(
        1024, 2048, 512, chip, block, kernel="grid", balanced=False,
        **{"terms": 1, "layout": "nt", "resident": "none", "operand": operand} | options,
    )  # fmt: skip


def arguments_of(text):
    """Name and arguments of the DispatchPolicy that a text instantiates."""
    name, words = re.search(r"using DispatchPolicy = Gemm::(\w+)<([^>]*)>;", text).groups()
    return name, [word.strip() for word in words.split(",")]


KINDS = {"bool": r"true|false", "uint32_t": r"\d+", "class": r"ArchTag"}


@pytest.mark.parametrize(("arch", "row"), ROWS, ids=[f"{arch} {row.name}" for arch, row in ROWS])
def test_a_policy_is_given_each_of_its_parameters(arch, row):
    """As many arguments as the policy has parameters, each of its kind; what its static_asserts ask holds."""
    s = planned("950" if arch == "Ascend950" else "910B3", "mxfp8" if row in MX else "fp16")
    for unit_flag in (False, True):
        policy = POLICIES[row.policy]
        name, words = arguments_of("\n".join(instantiation(variant(s, unit_flag=unit_flag), row)))
        assert name == policy.name and len(words) == len(policy.parameters)
        given = dict(zip([name for _, name in policy.parameters], words, strict=True))
        assert all(re.fullmatch(KINDS[kind], given[name]) for kind, name in policy.parameters)
        assert given.get("ENABLE_UNIT_FLAG") in (None, str(unit_flag).lower())
        assert not unit_flag or given.get("L0C_STAGES", "1") == "1"


def test_int8_has_no_unit_flag():
    s = planned(operand="int8", unit_flag=True)
    assert policy_values(s, POLICIES["MmadAtlasA2Pingpong"]) == {"ENABLE_UNIT_FLAG": "false"}


@pytest.mark.skipif("MPGEMM_CATLASS" not in os.environ, reason="MPGEMM_CATLASS names no checkout of CATLASS")
def test_policies_are_those_of_catlass():
    """Every policy's template parameters, in order and by type, and which have defaults; every kernel and scheduler exists."""
    root = Path(os.environ["MPGEMM_CATLASS"]) / "include" / "catlass" / "gemm"
    text = (root / "dispatch_policy.hpp").read_text(encoding="utf-8")
    for policy in POLICIES.values():
        declared = re.search(rf"template\s*<([^;{{}}]*?)>\s*struct {policy.name}\b", text, re.DOTALL)[1]
        found = [tuple(word.split("=")[0].split()) for word in declared.split(",")]
        assert [(kind, name.rstrip("_")) for kind, name in found] == list(policy.parameters)
        assert declared.count("=") == policy.optional
    swizzles = (root / "block" / "block_swizzle.hpp").read_text(encoding="utf-8")
    for _, row in ROWS:
        assert f"class {row.kernel}" in (root / "kernel" / row.header).read_text(encoding="utf-8")
        assert f"struct {row.scheduler} " in swizzles
        assert (root.parents[2] / "examples" / row.example).is_dir()


#: The names of CATLASS that the emitted text uses, with the arguments that its kernels take (0dfcf9df).
MODEL = """
#pragma once
#include <cstddef>
#include <cstdint>
using half = uint16_t;
using GM_ADDR = uint8_t *;
using aclError = int;
using aclrtStream = void *;
constexpr int ACL_SUCCESS = 0, ACL_MEM_MALLOC_HUGE_FIRST = 0, ACL_MEMCPY_HOST_TO_DEVICE = 1, ACL_MEMCPY_DEVICE_TO_HOST = 2;
inline int aclInit(const char *) { return 0; }
inline int aclFinalize() { return 0; }
inline int aclrtSetDevice(int) { return 0; }
inline int aclrtResetDevice(int) { return 0; }
inline int aclrtCreateStream(void **) { return 0; }
inline int aclrtSynchronizeStream(void *) { return 0; }
inline int aclrtMalloc(void **, size_t, int) { return 0; }
inline int aclrtMemcpy(void *, size_t, const void *, size_t, int) { return 0; }
namespace tla {
template <int N> struct Int {};
template <class...> struct Shape {};
template <class E, class L> struct Layout {};
template <class E, class L> Layout<E, L> MakeLayout(uint32_t, uint32_t) { return {}; }
} // namespace tla
namespace Catlass {
enum class Status { kSuccess };
struct GemmCoord { uint32_t m, n, k; };
template <uint32_t, uint32_t, uint32_t> struct GemmShape {};
namespace Arch { struct AtlasA2 {}; struct Ascend950 {}; }
namespace layout { struct RowMajor {}; struct ColumnMajor {}; struct zN {}; }
namespace Gemm {
//@policies
template <class E, class L> struct GemmType {};
namespace Tile {
template <class Arch, class EA, class LA, class EB, class LB, class EC, class LC> struct PackedTileCopyTla {};
}
namespace Block {
template <class P, class L1, class L0, class A, class B, class C> struct BlockMmad {};
template <class P, class L1, class L0, class A, class B, class C, class Bias, class Copy> struct BlockMmadTla {};
template <uint32_t Offset, uint32_t Direction> struct GemmIdentityBlockSwizzle {};
template <uint32_t Offset, uint32_t Direction> struct GemmIdentityBlockSwizzleL1FullLoad {};
} // namespace Block
namespace Kernel {
struct Plain { struct Arguments { GemmCoord shape; GM_ADDR a, b, c; }; };
template <class LA, class LB, class LC> struct Laid {
    struct Arguments { GemmCoord shape; uint8_t *a; LA la; uint8_t *b; LB lb; uint8_t *c; LC lc; uint8_t *bias{nullptr}; };
};
template <class M, class E, class S> struct BasicMatmul : Plain {};
template <class M, class E, class S> struct SmallMatmul : Plain {};
template <class M, class E, class S> struct MatmulFullLoadA : Plain {};
template <class M, class E, class S> struct BatchedMatmul {
    struct Arguments { uint32_t count; GemmCoord shape; GM_ADDR a, b, c; };
};
template <class M, class E, class S, class G> struct GroupedMatmulSliceM {
    struct Arguments { GemmCoord shape; uint32_t count; uint8_t *groups, *a, *b, *c; };
};
using A = tla::Layout<half, layout::RowMajor>;
using B = tla::Layout<half, layout::ColumnMajor>;
using C = tla::Layout<float, layout::RowMajor>;
template <class M, class E, class S> struct BasicMatmulTla : Laid<A, B, C> {};
template <class M, class E, class S> struct BatchedMatmulTla {
    struct Arguments { uint32_t count; GemmCoord shape; GM_ADDR a; A la; GM_ADDR b; B lb; GM_ADDR c; C lc; };
};
template <class M, class E, class S, class G> struct GroupedMatmulSliceMTla {
    struct Arguments { GemmCoord shape; uint32_t count; GM_ADDR groups, a; A la; GM_ADDR b; B lb; GM_ADDR c; C lc; };
};
} // namespace Kernel
namespace Device {
template <class K> struct DeviceGemm {
    Status CanImplement(const typename K::Arguments &) { return Status::kSuccess; }
    size_t GetWorkspaceSize(const typename K::Arguments &) { return 0; }
    Status Initialize(const typename K::Arguments &, uint8_t *) { return Status::kSuccess; }
    Status operator()(aclrtStream, uint32_t) { return Status::kSuccess; }
};
} // namespace Device
} // namespace Gemm
} // namespace Catlass
"""


def compiles(text, folder):
    """The compiler's errors of an emitted file beside the model, whose name every header has."""
    policies = "\n".join(
        f"template <{', '.join(f'{kind} {name}' for kind, name in p.parameters)}> struct {p.name} {{}};"
        for p in POLICIES.values()
    )
    (folder / "model.hpp").write_text(MODEL.replace("//@policies", policies), encoding="utf-8")
    for header in re.findall(r'#include ["<]((?:catlass|tla|acl)/[^">]+)[">]', text):
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text('#include "model.hpp"\n', encoding="utf-8")
    (folder / "gemm.cpp").write_text(text, encoding="utf-8")
    command = [compiler(), "-std=c++17", "-fsyntax-only", "-Wall", "-Werror", f"-I{folder}", str(folder / "gemm.cpp")]
    return subprocess.run(command, capture_output=True, text=True).stderr


@pytest.mark.full
@pytest.mark.parametrize("chip", ["910B3", "950"])
def test_what_is_written_compiles_against_the_names(tmp_path, chip):
    """One product, a batch and groups; a text with one argument too few does not."""
    s = planned(chip)
    one = catlass_files(s)["gemm.cpp"]
    assert compiles(one, tmp_path) == ""
    assert "error" in compiles(re.sub(r"given\{GemmCoord\{kM, kN, kK\}, ", "given{", one), tmp_path)
    for rows in ([96] * 5, [96, 200, 96]):
        options = {"terms": 1, "layout": "nt", "target": "catlass", "split": 1, "error_of": lambda s: 0.0}
        best = ascend.plan_batch(rows, 256, 128, chip, **options)[0]
        files = catlass_batch_files(best)
        assert compiles(files["gemm.cpp"], tmp_path) == ""
        record = files["record.json"]
        assert record["products"] == rows and record["predicted_us"] == pytest.approx(1e6 * best.seconds)
        assert record["kernel"].startswith("BatchedMatmul" if len(set(rows)) == 1 else "GroupedMatmulSliceM")
        assert ("ends[] = {96, 296, 392}" in files["gemm.cpp"]) == (len(set(rows)) > 1)


def test_the_kernels_that_a_plan_is():
    """Tiles one by one: basic and preload; A kept with all of k: the full load; slices of k: split-k; rectangles: none."""
    assert [row.name for row in assemblies_of(planned())] == ["basic", "preload"]
    small = build_schedule(
        128,
        64,
        256,
        "910B3",
        ascend.Blocking(64, 64, 64),
        terms=1,
        kernel="grid",
        layout="nd",
        resident="none",
        balanced=False,
    )
    assert "small" in [row.name for row in assemblies_of(small)]
    kept = build_schedule(512, 512, 2048, "910B3", ascend.Blocking(128, 64, 128), terms=1, kernel="grid", resident="a")
    assert [row.name for row in assemblies_of(kept)] == ["full load of A"]
    long = build_schedule(512, 8192, 2048, "910B3", ascend.Blocking(128, 64, 128), terms=1, kernel="grid", resident="a")
    assert assemblies_of(long) == [] and catlass_text(long) == ""
    slices = planned(grid=ascend.Grid(1, 2, 1), split=2)
    assert [row.name for row in assemblies_of(slices)] == ["split-k"] and "ReduceAdd" in catlass_text(slices)
    with pytest.raises(ValueError, match="split k by their own rules"):
        catlass_files(slices)
    assert assemblies_of(planned(terms=3, layout="nz")) == []
    mx = planned("950", "mxfp8")
    assert [row.name for row in assemblies_of(mx)] == ["MX"] and "Int<128>" in catlass_text(mx)
    with pytest.raises(ValueError, match="the emitted host code does not pass the scales"):
        catlass_files(mx)


def test_the_commands_of_several_products(tmp_path, capsys):
    batch = ["plan", "128", "64", "128", "--batch", "40", "--terms", "1", "--chip", "910B3", "--layout", "nd"]
    assert main([*batch, "--tiling"]) == 0
    out = capsys.readouterr().out
    assert "on a group of 1 cores" in out and "tiling.set_baseM" in out and "all products on all cores" in out
    assert main([*batch, "--for", "catlass", "--split", "1"]) == 0
    out = capsys.readouterr().out
    assert "Gemm::Kernel::BatchedMatmul<" in out and "tiling.set_baseM" not in out
    grouped = [
        "plan",
        "512",
        "128",
        "--grouped",
        "7,200,33",
        "--terms",
        "1",
        "--chip",
        "950",
        "--layout",
        "nd",
        "--split",
        "1",
    ]
    assert main([*grouped, "--emit", "catlass", str(tmp_path / "kernel")]) == 0
    assert "GroupedMatmulSliceMTla" in (tmp_path / "kernel" / "gemm.cpp").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*batch, "--emit", "ascendc", str(tmp_path / "x")]) == 2
    assert "use --emit catlass, whose kernel computes all" in capsys.readouterr().err and not (tmp_path / "x").exists()
