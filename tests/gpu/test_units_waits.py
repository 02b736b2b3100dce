"""Tests that the machine stops at kernels that lack the last wait, or its barrier, before shared memory is used again."""

import re

import pytest

import tensorcore_models as tcm
from tensorcore_models import compiled
from tensorcore_models.gpu import launchers
from tensorcore_models.kernels import lowered

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import unit_machine  # noqa: E402

#: The last wait of a loop whose copies run ahead, and the barrier behind it.
_LAST = re.compile(r"(?P<wait>cp\.async\.wait_group\s+0;)(?P<between>[^;]*?)(?P<barrier>bar\.sync\s+0;)")
_CHANGES = {
    "nothing": lambda m: m[0],
    "the wait": lambda m: m["between"] + m["barrier"],
    "the barrier": lambda m: m["wait"] + m["between"],
}


def run_without(what: str, monkeypatch) -> int:
    """Run four warps that reduce in shared memory behind the loop; the number of places at which the text was changed."""
    read, found = compiled.read, []

    def changed(text):
        text, count = _LAST.subn(_CHANGES[what], text)
        found.append(count)
        return read(text)

    monkeypatch.setattr(launchers.compiled, "read", changed)
    unit = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
    operands = unit_machine.normal(lowered(unit), 3, (13, 11, 72))
    unit_machine.run(unit, unit_machine.compiling("sm_90"), operands, warps=(2, 2), each=(1, 1))
    return sum(found)


@pytest.mark.parametrize("what", ["the wait", "the barrier"])
def test_shared_memory_is_used_again_when_all_copies_are_there_and_all_warps_know(what, monkeypatch):
    assert run_without("nothing", monkeypatch) == 1
    with pytest.raises(compiled.KernelFault, match="writes shared memory that a copy of warp 0 wrote"):
        run_without(what, monkeypatch)
