"""Choices that another package recorded: asked for with its names, and refused where it has none."""

import sys
from types import ModuleType

import pytest

from mpgemm.cli.common.library_options import make_recipe
from tensorcore_models.libraries import Unknown, recorded_split, scaled_mm_recipe
from tensorcore_models.libraries.recorded import Problem


@pytest.fixture
def recordings(monkeypatch):
    """A stand-in for mmaemu's table; what it was asked for is in its list `asked`."""
    table = ModuleType("mmaemu.platform.splitk_table")
    table.asked, table.row = [], {"splitK": 3, "custom": 1}

    def lookup(*sizes, **options):
        table.asked.append((sizes, options))
        return table.row

    table.lookup = lookup
    for name in ("mmaemu", "mmaemu.platform"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, table.__name__, table)
    return table


def test_a_call_is_asked_for_in_the_tables_order(recordings):
    found = recorded_split(16, 4096, 32, a_format="e5m2", out_format="fp16", fast_accumulation=True)
    assert found == (3, "pairwise")
    options = {"a_dtype": "e5m2", "b_dtype": "e4m3", "out_dtype": "float16", "use_fast_accum": True, "profile": "ada"}
    assert recordings.asked == [((16, 32, 4096), options)]


@pytest.mark.parametrize(
    ("device", "row", "expected"),
    [
        ("rtx4060", {"splitK": 2, "custom": 0}, (2, "serial")),
        ("rtx4060", {"splitK": 2, "custom": 2}, (2, "serial")),
        ("rtx4060", {"splitK": 1, "custom": 1}, (1, None)),
        ("h100", {"splitK": 4, "custom": 1}, (4, "serial")),
    ],
)
def test_schemes(recordings, device, row, expected):
    recordings.row = row
    assert recorded_split(16, 4096, 16, device=device) == expected


def test_calls_that_were_not_recorded_decline(recordings):
    recordings.row = None
    with pytest.raises(Unknown, match="16 x 4096 x 16 .* was not recorded on h100"):
        recorded_split(16, 4096, 16, device="h100")
    with pytest.raises(Unknown, match="device 'b200' has no recorded choices; known: rtx4060, h100"):
        recorded_split(16, 4096, 16, device="b200")
    assert len(recordings.asked) == 1


def test_without_the_package_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mmaemu", None)
    with pytest.raises(ValueError, match=r"pip install 'mpgemm\[scaled-mm\]'"):
        recorded_split(16, 4096, 16)


def test_the_command_takes_recorded_choices(recordings):
    recipe = make_recipe("rtx4060", "scaled_mm", {}, Problem("e4m3fn", "bf16", 4096, 16, 16), "mmaemu")
    assert recipe == scaled_mm_recipe(4096, split_k=3, scheme="pairwise")
    with pytest.raises(ValueError, match="leave these two fields out of --config"):
        make_recipe("rtx4060", "scaled_mm", {"split_k": "2"}, Problem("e4m3fn", "bf16", 4096, 16, 16), "mmaemu")
    with pytest.raises(ValueError, match="--recorded mmaemu with --library scaled_mm"):
        make_recipe("rtx4060", "scaled_mm", {}, Problem("e4m3fn", "bf16", 4096, 16, 16), "chosen.json")


def test_the_real_table_agrees_with_recorded_results():
    """Two rows of mmaemu 0.1.0's tables, where it is installed."""
    pytest.importorskip("mmaemu", reason="mmaemu is not installed (extra scaled-mm)")
    assert recorded_split(1, 1920, 1920, device="h100") == (1, None)
    with pytest.raises(Unknown):
        recorded_split(1, 17 * 16, 1_000_003)
