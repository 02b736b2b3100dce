"""The guides of docs/architecture.md, followed: how many files each touches, and that all that it promises is there."""

import contextlib
import dataclasses
import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import ascend
import mpgemm
import mpgemm.cli
import tensorcore_models as tcm
from ascend.chips import files
from mpgemm.bounds import bounds
from mpgemm.cli import main
from mpgemm.cli.common.discovery import all_commands
from mpgemm.recovery.rows import ROWS
from tensorcore_models import families, kernels, probing
from tensorcore_models.catalogue import nvidia
from tensorcore_models.engines.description import words_of_engine
from tensorcore_models.orders.trees import tree_of
from tensorcore_models.probing import formal
from tensorcore_models.probing.identify.fields import families_for
from tensorcore_models.probing.interface import Interface

RECIPES = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text().partition("## How to add")[2]

#: A family: c is added to the exact sum of the products, which is cut to whole numbers.
FAMILY = '''
"""WholeSum: the exact sum of a step's products and c, cut to a whole number."""

from dataclasses import dataclass
from typing import ClassVar

from tensorcore_models.families.aspect_list import ASPECTS
from tensorcore_models.families.base import Accumulator
from tensorcore_models.formats.exact_rounding import round_to_bits
from tensorcore_models.arithmetic import decode


@dataclass(frozen=True)
class WholeSum(Accumulator):
    """Sums are cut to whole numbers."""

    left_out: ClassVar = {aspect.title: "made up for a test" for aspect in ASPECTS if aspect.title != "integers"}

    @property
    def terms_per_step(self) -> int:
        return 2

    def pass_bits(self, p):
        c = decode(p.formats[2], p.c, self)
        total = (-1) ** c.negative * c.significand * 2.0**c.exponent
        for x, y in zip(p.x, p.y, strict=True):
            total += (-1) ** (x.negative != y.negative) * x.significand * y.significand * 2.0 ** (x.exponent + y.exponent)
        return round_to_bits(total < 0, int(abs(total)), 0, p.formats[3], "rz")
'''

COMMAND = """
from mpgemm.reporting.output import Output

QUESTION = "plan a block"
SUMMARY = "says it once or twice"
EXAMPLES = (("--twice", "says it twice"),)


def add_arguments(parser):
    parser.add_argument("--twice", action="store_true", help="say it twice")


def run(args):
    said = "twice" if args.twice else "once"
    return Output({"said": said}, [said])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that is part of the families' one, so that a file put there is a file put beside them."""
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    yield tmp_path
    importlib.invalidate_caches()


def test_a_family_is_one_file(folder, monkeypatch):
    assert "one file or folder in `families/`" in RECIPES
    (folder / "whole_sum.py").write_text(FAMILY)
    importlib.invalidate_caches()
    found = inspect.getattr_static(families, "_found")()
    (new,) = set(found) - set(families.FAMILIES)
    assert new.__name__ == "WholeSum"
    monkeypatch.setattr(families, "FAMILIES", found)
    spec = new()
    engine = tcm.MatrixEngine(spec, a_format="fp16")
    a = np.array([[1.5, 2.25, -0.5, 3.0]])
    assert engine.gemm(a, a.T)[0, 0] == 16  # 2.25 + 5.0625 is cut to 7, 7 + 9.25 to 16
    assert kernels.kernel_name(engine).startswith("reference (WholeSum has no lowering; ")
    assert words_of_engine(engine).title.endswith("WholeSum") and tree_of(spec, 4) is None
    with pytest.raises(ValueError, match="no bound is derived for WholeSum"):
        bounds.gemm_bound(engine, a, a.T)
    with pytest.raises(formal.Unencodable, match="made up for a test"):
        formal.monotonicity_witness(engine, k=2)
    assert all(spec.searches() == () for _ in families_for(Interface.of(engine)))
    row = tcm.Instruction(spec, arch="hopper", name="whole", m=1, n=1, k=2, source="a test", evidence="inferred")
    assert probing.probe_set(row) == ((), ())  # it raised KeyError once


def test_an_architecture_with_fp8_and_wgmma_is_one_row_of_one_file(monkeypatch):
    assert re.search(r"\*\*A GPU architecture\*\*: one row in `catalogue/nvidia.py`", RECIPES)
    row = nvidia.Architecture(
        fraction_bits=26, terms={"fp16": 16}, floors={"fp32": -133, "fp16": -21},
        sync=((((16, 8, 16),), "fp16", (("fp32", "fp32"),)),),
        narrow=(nvidia.Narrow(terms=16, fraction_bits=15),),
        group=nvidia.Group(prefix="wgmma", shapes=nvidia.WGMMA_SHAPES, integer_shapes=nvidia.WGMMA_SHAPES),
        capability=(14, 0), whole_major=True, target="sm_140a", devices={"y100": ()},
    )  # fmt: skip
    monkeypatch.setitem(nvidia.ARCHITECTURES, "madeup", row)
    paths = {r.path for r in nvidia.rows() if r.arch == "madeup"}
    eight = next(r for r in nvidia.rows() if r.name == "mma.m16n8k32.f32.e4m3.e4m3.f32" and r.arch == "madeup")
    assert paths == {"mma", "wmma", "wgmma"}
    assert (eight.accumulator.fraction_bits, eight.accumulator.output_fraction_bits) == (15, 15)


def test_a_method_is_one_row_of_one_file(monkeypatch, capsys):
    assert "one row in `recovery/rows.py`" in RECIPES
    row = dataclasses.replace(mpgemm.get_method("ootomo", terms=4), name="made_up", title="a method made up for a test")
    monkeypatch.setitem(ROWS, "made_up", row)
    words = "compare --methods made_up ootomo --engine a100 --distribution normal --shape 4 8 4"
    assert main(words.split()) == 0
    assert "made_up" in capsys.readouterr().out
    a = np.float32([[1.1, 2.2]])
    result = mpgemm.recovered_gemm(a, a.T, method="made_up", engine="a100")
    assert result == mpgemm.recovered_gemm(a, a.T, method="ootomo:terms=4", engine="a100")
    assert "made_up" in str(mpgemm.explain("made_up", a[0], a[0], engine="a100"))


def test_a_chip_is_one_file(tmp_path, monkeypatch, capsys):
    assert "one file in `ascend/chips/`" in RECIPES
    folder = Path(shutil.copytree(Path(files.__file__).parent, tmp_path / "chips"))
    text = (folder / "910A.toml").read_text(encoding="utf-8").replace("910A", "910X")
    (folder / "910X.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(files.resources, "files", lambda package: {"ascend.chips": folder}[package])
    files._built_in.cache_clear()
    try:
        assert "910X" in ascend.list_chips()
        assert main(["simulate", "64", "64", "64", "--chip", "910X"]) == 0
        assert "910X" in capsys.readouterr().out
    finally:
        files._built_in.cache_clear()


def test_a_command_is_one_file(tmp_path, monkeypatch, capsys):
    assert "one file in `mpgemm/cli/`" in RECIPES
    (tmp_path / "made_up.py").write_text(COMMAND, encoding="utf-8")
    monkeypatch.setattr(mpgemm.cli, "__path__", [*mpgemm.cli.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    try:
        assert main(["made-up", "--twice"]) == 0 and capsys.readouterr().out == "twice\n"
        assert "made-up" in all_commands()
        for words, shown in (
            (["--help"], "says it"),
            (["completion", "bash"], "--twice"),
            (["made-up", "--help"], "--twice"),
        ):
            with contextlib.suppress(SystemExit):
                main(words)
            text = capsys.readouterr().out
            assert "made-up" in text and shown in text
    finally:
        sys.modules.pop("mpgemm.cli.made_up", None)
