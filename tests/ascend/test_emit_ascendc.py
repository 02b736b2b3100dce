"""Kernels on AscendC's Matmul: which cores they start and count, and their numbers on a small model of the calls."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ascend
from ascend.emit.ascendc import ascendc_files
from ascend.emit.ascendc_check import check_ascendc_kernel
from ascend.emit.check import compiler
from ascend.emit.write import EMITTERS, write_files
from ascend.grid import Swizzle
from ascend.schedule import build_schedule
from ascend.tiling.fields import broken_rules_of, core_mode, cube_fields, tiling_fields
from mpgemm.cli import main

MODEL = Path(__file__).parents[1] / "support" / "ascendc_model.hpp"
MAIN = """
#include "{folder}/gemm.cpp"
template <class T> std::vector<T> read(const char *path, uint64_t count)
{{
    std::vector<T> found(count);
    std::FILE *file = std::fopen(path, "rb");
    model::demand(file && std::fread(found.data(), sizeof(T), count, file) == count, path);
    return found;
}}
int main()
{{
    TCubeTiling tiling{{{fields}}};
    auto a = read<kElement>("{folder}/a.bin", {m}ull * {k}), b = read<kElement>("{folder}/b.bin", {k}ull * {n});
    auto rows = read<float>("{folder}/rows.bin", {m}), columns = read<float>("{folder}/columns.bin", {n});
    std::vector<{result}> c({m}ull * {n});
    std::vector<int32_t> workspace({m}ull * {n});
    auto p = [](auto &x) {{ return reinterpret_cast<uint8_t *>(x.data()); }};
    for (model::block = 0; model::block < {blocks}; ++model::block)
        gemm(p(a), p(b), p(c), {scales} p(workspace), reinterpret_cast<uint8_t *>(&tiling));
    std::fwrite(c.data(), sizeof(c[0]), c.size(), stdout);
    std::fputs(model::taskType, stderr);
}}
"""


def grid(m, k, n, block, chip="910B3", **options):
    said = {"kernel": "grid", "terms": 1, "resident": "none", "balanced": False, "template": "mdl", "layout": "nd"}
    return build_schedule(m, k, n, chip, ascend.Blocking(*block), **said | options)


def computed(s, tmp_path, change=lambda text: text):
    """What the emitted text gives on the model, what it should give, and the type of the kernel that it says."""
    folder = tmp_path / "kernel"
    write_files(folder, ascendc_files(s))
    record = json.loads((folder / "record.json").read_text())
    (folder / "gemm.cpp").write_text(change((folder / "gemm.cpp").read_text()))
    (tmp_path / "lib").mkdir(exist_ok=True)
    for header in ("kernel_operator.h", "lib/matmul_intf.h"):
        (tmp_path / header).write_text(f'#include "{MODEL}"\n')
    rng = np.random.default_rng(3)
    kind = np.int8 if s.operand == "int8" else np.float32
    a, b = (rng.integers(-9, 10, shape).astype(kind) for shape in ((s.m, s.k), (s.k, s.n)))
    rows, columns = (np.ldexp(rng.integers(1, 9, size), -3).astype("f4") for size in (s.m, s.n))
    for name, x in (("a", a), ("b", b.T if s.layout == "nt" else b), ("rows", rows), ("columns", columns)):
        (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(x).tobytes())
    sums = a.astype(np.int64) @ b.astype(np.int64)
    expected = sums * rows[:, None].astype(float) * columns if s.dequantize else sums
    types = ("float", "f4") if s.dequantize or s.operand != "int8" else ("int32_t", "i4")
    text = MAIN.format(
        folder=folder, m=s.m, k=s.k, n=s.n, result=types[0], scales="p(rows), p(columns)," if s.dequantize else "",
        fields=", ".join(map(str, record["tiling"].values())), blocks=record["cubes"] * record["counted_for_each_cube"],
    )  # fmt: skip
    (tmp_path / "main.cpp").write_text(text)
    program = tmp_path / "program"
    built = subprocess.run(
        [compiler(), "-std=c++17", "-O0", "-w", f"-I{tmp_path}", str(tmp_path / "main.cpp"), "-o", str(program)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([program], capture_output=True)
    assert done.returncode == 0, done.stdout
    return np.frombuffer(done.stdout, types[1]).reshape(s.m, s.n), expected, done.stderr.decode()


COLUMNS = Swizzle(1, 1, False)
CUBES = {
    "fp32": {"m": 70, "k": 50, "n": 150, "block": (32, 32, 48), "operand": "fp32", "grid": (2, 1, 2)},
    "slices, nt": {"m": 70, "k": 96, "n": 50, "block": (16, 16, 48), "operand": "fp32", "grid": (3, 2, 2), "layout": "nt",
                   "merge": "atomic"},
    "columns first": {"m": 70, "k": 64, "n": 150, "block": (16, 32, 32), "operand": "int8", "grid": (2, 1, 2),
                      "swizzle": COLUMNS},
}  # fmt: skip
MIXED = {
    "two along n": ({"m": 70, "k": 64, "n": 220, "block": (32, 32, 32), "grid": (2, 1, 2)}, (1, 2)),
    "two along m": ({"m": 100, "k": 64, "n": 90, "block": (32, 32, 32), "grid": (1, 1, 3)}, (2, 1)),
    "one": ({"m": 100, "k": 64, "n": 90, "block": (112, 32, 96), "grid": (1, 1, 1), "buffering": "single"}, (1, 1)),
    "wide": ({"m": 20, "k": 64, "n": 1100, "block": (16, 32, 512), "grid": (1, 1, 3)}, (2, 1)),
    "by columns": ({"m": 70, "k": 64, "n": 250, "block": (32, 32, 32), "grid": (1, 1, 2), "swizzle": COLUMNS}, (1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CUBES)
@pytest.mark.sweep(1)
def test_without_vector_work_the_cubes_alone_are_started_and_counted(name, tmp_path):
    s = grid(**CUBES[name])
    found, expected, task = computed(s, tmp_path)
    assert np.array_equal(found, expected) and task == "KERNEL_TYPE_AIC_ONLY"
    text = (tmp_path / "kernel" / "gemm.cpp").read_text()
    assert text.index("#define ASCENDC_CUBE_ONLY") < text.index('#include "lib/matmul_intf.h"')
    record = json.loads((tmp_path / "kernel" / "record.json").read_text())
    assert record["cubes"] == record["tiling"]["usedCoreNum"] == s.used_cores


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.sweep(1)
def test_with_vector_work_the_vector_cores_are_counted(name, tmp_path):
    """Two vector cores drive a cube whose rectangle has two equal halves of whole tiles, and one another."""
    options, along = MIXED[name]
    s = grid(**{"operand": "int8", "dequantize": "vector"} | options)
    mode, counted, cubes = core_mode(s), tiling_fields(s), cube_fields(s)
    assert (mode.name, mode.along_m, mode.along_n) == ("mix", *along) and not broken_rules_of(s)
    assert cubes["usedCoreNum"] <= counted["usedCoreNum"] <= mode.counted * cubes["usedCoreNum"]
    found, expected, task = computed(s, tmp_path)
    assert np.array_equal(found, expected.astype("f4")) and task == f"KERNEL_TYPE_MIX_AIC_1_{mode.counted}"
    assert "ASCENDC_CUBE_ONLY" not in (tmp_path / "kernel" / "gemm.cpp").read_text()


@pytest.mark.parametrize(
    "fault",
    [("core / kCounted", "core"), ("between * sizeof(half)", "0"), ("part / kAlongM", "part"), ("row + i)", "row)")],
)
@pytest.mark.sweep(1)
def test_a_fault_in_the_text_is_seen(fault, tmp_path):
    s = grid(**{"operand": "int8", "dequantize": "vector"} | MIXED["two along m"][0])
    found, expected, _ = computed(s, tmp_path, lambda text: text.replace(*fault))
    assert not np.array_equal(found, expected.astype("f4"))


def changed(folder, name, old, new):
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("options", "name", "old", "new", "kind", "why"),
    [
        ({}, "gemm.cpp", "#define ASCENDC_CUBE_ONLY", "//", "mode", "MIX mode without vector work: .* 2 cubes"),
        ({}, "gemm.cpp", "AIC_ONLY);", "MIX_AIC_1_2);", "mode", "kernel's type is not KERNEL_TYPE_AIC_ONLY"),
        ({}, "tiling.cpp", "SetDim(4)", "SetDim(2)", "count", r"SetDim\(2\) and usedCoreNum = 4 differ"),
        ({}, "tiling.cpp", "set_stepM(1)", "set_stepM(3)", "rule", "depthA1"),
        ({"mixed": True}, "gemm.cpp", "#include", "#define ASCENDC_CUBE_ONLY\n#include", "mode", "starts no vector core"),
        ({"mixed": True}, "gemm.cpp", "AIC_1_2", "AIC_1_1", "count", "usedCoreNum = 8"),
        ({"mixed": True}, "tiling.cpp", "(8)", "(4)", "rule", "usedCoreNum = 4 must be ceil"),
    ],
)  # fmt: skip
def test_a_wrong_mode_or_count_is_found(options, name, old, new, kind, why, tmp_path):
    mixed = {"operand": "int8", "dequantize": "vector"} if options else {}
    s = grid(128, 64, 256, (32, 32, 32), grid=(2, 1, 2), **mixed)
    write_files(tmp_path, ascendc_files(s))
    sound = check_ascendc_kernel(tmp_path)
    assert sound.sound and sound.cubes == 4 and sound.counted == (8 if mixed else 4)
    changed(tmp_path, name, old, new)
    found = check_ascendc_kernel(tmp_path)
    assert any(fault.kind == kind and re.search(why, fault.what) for fault in found.faults), found.faults


def test_the_command_reads_an_ascendc_kernel(tmp_path, capsys):
    write_files(tmp_path, ascendc_files(grid(128, 64, 256, (32, 32, 32), grid=(2, 1, 2))))
    assert main(["check-kernel", str(tmp_path)]) == 0
    assert "cube only, usedCoreNum counts 4 cubes" in capsys.readouterr().out
    assert main(["check-kernel", str(tmp_path), "--seed", "1"]) == 2
    changed(tmp_path, "gemm.cpp", "#define ASCENDC_CUBE_ONLY", "")
    assert main(["check-kernel", str(tmp_path)]) == 1


def test_sums_are_scaled_by_no_other_dialect():
    s = grid(128, 64, 256, (32, 32, 32), operand="int8", dequantize="vector", layout="nt", grid=None, template="")
    for dialect in ("pto", "catlass"):
        with pytest.raises(ValueError, match="use --emit ascendc, which scales the sums"):
            EMITTERS[dialect](s)


def test_coupled_cores_have_no_mode():
    s = grid(128, 64, 256, (32, 32, 32), chip="310P3", grid=(2, 1, 2), layout="nd")
    with pytest.raises(ValueError, match="reads ND rows"):  # a pass turns them into NZ on this chip
        ascendc_files(s)
    assert core_mode(s).name == "coupled"
