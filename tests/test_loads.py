"""What a person loads: lines of the packages' Python that `evaluate`, `plan`, `simulate` and `compare` read."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
#: All four together; 41,068 before modules were read where their names are used.
MOST_LINES = 35_000

CODE = """
import contextlib, io, json, sys
from mpgemm.cli import main
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(line.split()) == 0
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}))
"""


def loaded(folder, *commands):
    """Names of the packages' modules that commands import, with their files."""
    found = subprocess.run(
        [sys.executable, "-c", CODE, *commands], capture_output=True, text=True, cwd=folder, check=True
    )
    packages = ("mpgemm", "ascend", "tensorcore_models")
    modules = json.loads(found.stdout).items()
    return {name: Path(file) for name, file in modules if name.partition(".")[0] in packages and file.endswith(".py")}


def test_four_jobs_read_a_third_of_the_packages(tmp_path):  # 3 s: four commands in one process
    for name, shape in (("A", (16, 64)), ("B", (64, 16))):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    found = loaded(
        tmp_path,
        "evaluate A.npy B.npy",
        "plan 512 512 512 --chip 910A --top 2",
        "simulate --block 176,64,176",
        "compare --methods fp16 ootomo --engines h100 --shape 16 64 16",
    )
    lines = sum(file.read_text(encoding="utf-8").count("\n") for file in found.values())
    assert 20_000 < lines <= MOST_LINES, f"{lines} lines of {len(found)} files"
    unused = ("mpgemm.reporting.plots", "mpgemm.amx", "mpgemm.recovery.integer_run", "mpgemm.bounds.probabilistic",
              "mpgemm.cli.ascend_views.profiles", "ascend.pipes.trace", "tensorcore_models.arithmetic.recorder",
              "tensorcore_models.kernels.recorded")  # fmt: skip
    assert all(map(importlib.util.find_spec, unused))  # a name that moved would never be found
    assert not [name for name in unused if name in found]


def test_a_unit_reads_the_rows_and_families_of_its_vendor_alone():
    code = """
import sys, tensorcore_models as tcm
tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32")
others = ("catalogue.amd", "catalogue.tenstorrent", "families.fidelity", "families.round_down")
print([name for name in sys.modules if name.endswith(others)])
tcm.list_instructions("cdna3")
print(sorted(name for name in sys.modules if name.endswith(others))[:2], len(tcm.list_instructions()) > 900)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    names = ["tensorcore_models.catalogue.amd", "tensorcore_models.families.round_down"]
    assert found.stdout.splitlines() == ["[]", f"{names} True"]
