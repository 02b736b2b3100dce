"""An option is stated once: schedules, requests, plans and commands have it from there, and obey or refuse it."""

import inspect

import pytest

import ascend
from ascend.planner.choice import Choice
from ascend.request import Request
from ascend.schedule_options import ScheduleOptions, SharedOptions, options_of
from mpgemm.cli.common.discovery import command_parser

BLOCK = ascend.Blocking(64, 64, 64)
SHARED = options_of(SharedOptions)
#: Options that cannot be combined with the defaults, with what they need beside them.
VALUES = {
    "terms": (1, {}), "buffering": ("single", {}), "mode": ("elementwise", {}), "operand": ("bf16", {"terms": 1}),
    "merge": ("atomic", {}), "layout": ("nd", {}), "presplit": ("b", {}), "warm": (True, {}),
    "dequantize": ("vector", {"terms": 1, "operand": "int8"}), "unit_flag": (True, {}), "template": ("mdl", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_an_option_reaches_the_schedule_and_the_plan(name):
    if name == "reseed_l0c":  # no path into L0C behind FIXPIPE: refused there, obeyed on a coupled core
        with pytest.raises(ValueError, match="but 910B3 has no path from UB into L0C"):
            ascend.plan(64, 64, 64, "910B3", reseed_l0c=True)
        chip, value, others = "910A", True, {}
    else:
        chip, (value, others) = "910B3", VALUES[name]
    options = {name: value} | others
    built = ascend.build_schedule(64, 128, 64, chip, BLOCK, kernel="grid", **options)
    planned = ascend.plan(64, 128, 64, chip, rank="analytic", top=1, error_of=lambda s: 0.0, **options)[0].schedule
    asked = Request(64, 128, 64, ascend.get_chip(chip), **options)
    for found in (built, planned, asked):
        assert getattr(found, name) == value != SHARED[name][0]
        assert found.shared_options().keys() == SHARED.keys()


def test_help_and_docstrings_say_every_option():
    known = options_of(ScheduleOptions)
    for command, chosen in (("plan", SHARED), ("simulate", known)):
        shown = {x.dest: x for x in command_parser(command)._actions}
        for name in known.keys() & chosen.keys() & shown.keys():
            _, row = known[name]
            assert shown[name].help.startswith(row.command.get("help", row.says)), name
            assert not row.choices or set(shown[name].choices) == set(row.choices) - {""}, name
    for record in (SharedOptions, ScheduleOptions, Request, Choice):
        assert all(f"\n    {name} : " in record.__doc__ for name in options_of(record)), record
    planned = inspect.signature(ascend.plan).parameters
    assert {*options_of(Choice), *options_of(Request)} <= planned.keys()


@pytest.mark.parametrize("call", [ascend.plan, lambda *a, **o: ascend.build_schedule(*a, BLOCK, **o)])
def test_an_unknown_option_names_the_nearest(call):
    with pytest.raises(TypeError, match=r"has no option presplitt \(did you mean 'presplit'\?\)"):
        call(64, 64, 64, "910B3", presplitt="b")


def test_a_target_sets_the_template_and_refuses_another():
    assert Request(64, 64, 64, ascend.get_chip("910B3"), target="ascendc", terms=1).template == "mdl"
    with pytest.raises(ValueError, match="target ascendc has no template norm"):
        ascend.plan(64, 64, 64, "910B3", terms=1, target="ascendc", template="norm")
