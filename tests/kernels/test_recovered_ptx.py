"""Kernels that Triton compiled before, run here without Triton: the bits of the simulation, and mutants that break them."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from mpgemm.kernels import whole_gate
from mpgemm.kernels.configurations import Configuration
from mpgemm.kernels.forms import KERNELS, kernel_method
from mpgemm.kernels.gate import GateCase, near_tile, text_machine
from mpgemm.kernels.residues import RESIDUES
from tensorcore_models import compiled
from tensorcore_models.gpu.launchers import CompiledText
from tensorcore_models.gpu.targets import TARGETS, get_target

FOLDER = Path(__file__).parents[1] / "vectors" / "ptx" / "recovered"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ptx"))
PRODUCTS = [name for name in NAMES if not name.endswith("-repair")]
REPAIRED = "sm_80-ootomo"


def read(name):
    """(facts, text) of a file."""
    text = (FOLDER / f"{name}.ptx").read_text()
    return json.loads(text.partition("\n")[0].removeprefix("// ")), text


def case_of(name, **changes):
    """(case, machine with the file's text) of a product."""
    facts, text = read(name)
    row = kernel_method(facts["method"])
    texts = [CompiledText("gemm", changes.pop("text", text), facts["parameters"])]
    if name == REPAIRED:
        row = row.with_options(repair="fp32")
        other = read(f"{name}-repair")
        texts.append(CompiledText("repair", other[1], other[0]["parameters"]))
    target = get_target(facts["target"])
    case = GateCase(row, target, Configuration(**facts["configuration"]), add=True, **changes)
    return case, text_machine(target, texts)


def shapes_of(name):
    """The shape that a file was compiled for, then others that Triton gives the same text: ragged, or multiples of 16."""
    facts, _ = read(name)
    tile, ragged = Configuration(**facts["configuration"]), facts["sizes"][0] % 16
    own = near_tile(tile, facts["sizes"])
    return [own, (2, 3, 5), (tile.rows + 1, tile.columns, tile.depth)] if ragged else [own, (16, 16, 32), (48, 32, 128)]


@pytest.mark.parametrize("kinds", [("wide", "special"), pytest.param(("normal", "positive"), marks=pytest.mark.full)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_kernel_gives_the_bits_of_its_method(name, kinds):
    case, machine = case_of(name)
    for result in case.check(kinds, shapes_of(name)[:1], machine):
        assert result.differ == 0, result
        assert result.finite == result.elements or result.data == "special", result


def test_repaired_results_are_finite_where_fp32_has_them():
    case, machine = case_of(REPAIRED)
    without = dataclasses.replace(case, row=dataclasses.replace(case.row, repair="none"))
    shapes = shapes_of(REPAIRED)[:1]
    repaired, plain = (list(each.check(["special"], shapes, machine))[0] for each in (case, without))
    assert repaired.differ == plain.differ == 0
    assert repaired.finite > plain.finite


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_repeated_product_of_another_shape(name):
    case, machine = case_of(name)
    for shape in shapes_of(name)[1:]:
        assert [r.differ for r in case.check(["normal"], [shape], machine)] == [0]


def mutants(text):
    """Texts in which the order of products, a word or the promotion is another."""
    lines = text.splitlines()
    products = [i for i, line in enumerate(lines) if "mma" in line and ".sync" in line and "row.col" in line]
    conversions = [i for i, line in enumerate(lines) if "cvt.rn" in line and "16.f32" in line]
    additions = [i for i, line in enumerate(lines) if "add.rn.f32" in line or "add.f32" in line]
    if conversions:
        yield (
            "truncated words",
            "\n".join(line.replace("cvt.rn.", "cvt.rz.") if i in conversions else line for i, line in enumerate(lines)),
        )
    if products:
        dropped = [line for i, line in enumerate(lines) if i != products[0]]
        yield "a product left out", "\n".join(dropped)
    if additions:
        i = additions[0]
        yield "a subtraction", "\n".join([*lines[:i], lines[i].replace("add.", "sub."), *lines[i + 1 :]])


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", [name for name in PRODUCTS if name.startswith("sm_80")])
def test_mutants_are_caught(name):
    _, text = read(name)
    found = dict(mutants(text))
    assert found
    for what, changed in found.items():
        case, machine = case_of(name, text=changed)
        try:
            differ = sum(r.differ for r in case.check(["normal"], shapes_of(name)[:1], machine))
        except (compiled.KernelFault, compiled.Refused):
            continue
        assert differ, what


def test_every_instruction_is_known_and_the_files_are_small():
    assert {name: compiled.read(read(name)[1]).unknown for name in NAMES} == dict.fromkeys(NAMES, {})
    assert sum(path.stat().st_size for path in FOLDER.glob("*.ptx")) < 300_000


class Stopped(GateCase):
    name = "stopped"

    def run(self, machine, *operands):
        raise compiled.KernelFault("a register that nobody wrote", 7)


def test_a_gate_goes_on_behind_what_is_stopped_and_where_it_ended(monkeypatch, capsys, tmp_path):
    name, runs = PRODUCTS[0], []
    case, machine = case_of(name)
    shape = shapes_of(name)[0]

    class Stored(GateCase):
        def check(self, *ignored):
            runs.append(self)
            return GateCase.check(self, ("normal",), [shape], machine)

    both = [kind(case.row, case.target, case.configuration, add=True) for kind in (Stopped, Stored)]
    monkeypatch.setattr(whole_gate, "cases", lambda targets: both)
    monkeypatch.setattr(whole_gate, "kernels_digest", lambda: "one")
    kept = tmp_path / "gate.jsonl"
    for _ in range(2):
        assert whole_gate.main(["--out", str(kept)]) == 1
        stopped, *_, total = capsys.readouterr().out.splitlines()
        assert "stopped: line 7: a register that nobody wrote" in stopped
        assert f"{case.target.name}: 2 cases, 1 comparisons, 0 of {shape[0] * shape[1]} differ, 1 stopped" == total
    assert len(runs) == 1 and len(kept.read_text().splitlines()) == 3  # what was stopped ran again
    monkeypatch.setattr(whole_gate, "cases", lambda targets: both[1:])
    assert whole_gate.main(["--out", str(kept)]) == 0
    monkeypatch.setattr(whole_gate, "kernels_digest", lambda: "other")
    with pytest.raises(ValueError, match="has results of kernels one, expected other"):
        whole_gate.main(["--out", str(kept)])


def test_a_bit_that_differs_fails_the_gate(monkeypatch, capsys):
    case, machine = case_of(REPAIRED)

    class Wrong(GateCase):
        def check(self, *ignored):
            return GateCase.check(self, ("normal",), [(2, 3, 5)], machine)

        def expected(self, a, b, c):
            return np.nextafter(GateCase.expected(self, a, b, c), np.float32(9))

    monkeypatch.setattr(
        whole_gate, "cases", lambda targets: [Wrong(case.row, case.target, case.configuration, add=True)]
    )
    monkeypatch.setattr(whole_gate, "kernels_digest", lambda: "stored")  # which asks Triton for its version
    assert whole_gate.main([]) == 1 and "6 of 6 differ" in capsys.readouterr().out


def test_the_gate_has_every_method_on_every_target_in_every_tile():
    pytest.importorskip("torch", reason="plans take torch tensors: pip install 'mpgemm[kernels]'")
    every = list(whole_gate.cases())
    assert {(x.row.name, x.target.name) for x in every} == {
        (method, target.name) for method in (*KERNELS, RESIDUES) for target in TARGETS.values() if target.gated
    }
    assert len({f"{x.name} {x.target.name} {x.configuration}" for x in every}) == len(every)
    planned = [x for x in every if x.name.startswith("ootomo from words") and x.target.name == "sm_90"]
    assert {(x.layout, x.row.equilibrate, x.row.parts) for x in planned} == {
        ("nn", "rows", 1), ("tt", "rows", 1), ("nn", "none", 1), ("nn", "rows", 2)
    }  # fmt: skip
