"""Operations of the vector lanes against their contracts, on every instruction set of this CPU, in a C program of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "tensorcore_models" / "_kernels"
FLAGS = ("-O2", "-ffp-contract=off", "-fno-strict-aliasing", "-w")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def compiled(program: Path, target: Path, *flags: str) -> Path:
    """A C program that includes the kernels' headers."""
    include = [word for folder in KERNELS.iterdir() if folder.is_dir() for word in ("-I", str(folder))]
    subprocess.run(["cc", *FLAGS, *flags, *include, str(program), "-o", str(target), "-lm"], check=True)
    return target


@pytest.mark.full
@pytest.mark.parametrize(
    "flags", [pytest.param((), id="as shipped"), pytest.param(("-DMPG_CHECK",), id="checked", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("sweep", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_operations_keep_their_contracts(flags, sweep, tmp_path):  # 3 s: the compiler
    program = compiled(ROOT / "tests" / "operations" / "operations_selftest.c", tmp_path / "operations", *flags)
    done = subprocess.run([program, sweep], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith(", 0 wrong\n"), done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.sweep(1)  # each compiles the lanes twice: 10 s
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mpg_power32(255)", "power32, lane 0: x = 255"),
        ("mpg_truncated_plain(mpg_allf_plain(0x1p31f))", "truncated (plain C), lane 0: x = 2147483648"),
        ("mpg_scale_of_plain(mpg_all_plain(255 << 23), 25)", "scale_of (plain C), lane 0"),
        ("mpg_byte_of_a(-17, -1)", "byte_of_a, lane 0: x = -17"),
    ],
)
def test_a_checked_operation_names_what_it_cannot_take(call, message, tmp_path):
    source = tmp_path / "outside.c"
    source.write_text(f'#include "narrow.h"\nint main(void)\n{{\n    (void){call};\n    return 0;\n}}\n')
    for flags, seen in ((("-DMPG_CHECK",), True), ((), False)):
        done = subprocess.run([compiled(source, tmp_path / "outside", "-O0", *flags)], capture_output=True, text=True)
        assert (done.returncode != 0) == seen and (message in done.stderr) == seen
