"""The programs that `make cross` runs on other architectures, here with this machine's compiler."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CROSS = ROOT / "tests" / "cross"
FLAGS = ("-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-w")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("program", "maker"),
    [
        ("lanes_selftest", "make_cases"),
        ("groups_selftest", "make_group_cases"),
        ("chains_selftest", None),
        ("units_selftest", None),
    ],
)
def test_programs_find_nothing_wrong(program, maker, tmp_path, monkeypatch):
    kernels = (ROOT / "tensorcore_models" / "_kernels", ROOT / "mpgemm" / "_kernels")
    folders = [x for kernel in kernels for x in (kernel, *kernel.iterdir()) if x.is_dir()]
    built, cases = tmp_path / program, tmp_path / "cases.bin"
    include = [word for folder in folders for word in ("-I", str(folder))]
    subprocess.run(["cc", *FLAGS, *include, str(CROSS / f"{program}.c"), "-o", str(built), "-lm"], check=True)
    if maker is not None:
        monkeypatch.setattr(sys, "argv", [maker, str(cases)])
        monkeypatch.syspath_prepend(str(CROSS))
        runpy.run_path(str(CROSS / f"{maker}.py"), run_name="__main__")
    done = subprocess.run([built, *([cases] if maker else [])], capture_output=True, text=True, check=True)
    assert maker is None or done.stdout.endswith(", 0 wrong\n"), done.stdout
