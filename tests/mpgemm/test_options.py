"""What options show without an import is what the tables say, and `--help` imports nothing that computes."""

import subprocess
import sys

import pytest

from ascend.dialects import DIALECTS
from ascend.planner.accuracy import DISTRIBUTIONS
from ascend.planner.choice import RANKS
from ascend.planner.kinds import PLAN_KERNELS, SIMULATED
from ascend.reports.calibration import ASSUMED_SIZE
from ascend.reports.overlap import COLLECTIVES
from ascend.schedule import KERNELS
from mpgemm.campaign.parts import PARTS
from mpgemm.cli.common import option_values
from mpgemm.cli.common.discovery import all_commands, command_module, command_parser, stated
from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments.curves import AXES
from mpgemm.experiments.curves import SHAPE as CURVE_SHAPE
from mpgemm.experiments.methods import NAMED_METHODS, ON_REQUEST, ORDERS, STEP_ORDERS
from mpgemm.experiments.slice_advice import DEVICES as COST_DEVICES
from mpgemm.experiments.slice_advice import METHODS as COUNTED_METHODS
from mpgemm.testing.tolerances import SHAPE
from tensorcore_models.figures import FORMATS, STYLES
from tensorcore_models.probing.formal.solvers import BACKENDS, DEFAULT_MEMORY, DEFAULT_TIMEOUT
from tensorcore_models.probing.identify.solver import EACH, TOTAL
from tensorcore_models.probing.suites import SUITES

STATED = {
    "KERNELS": tuple(KERNELS),
    "PLAN_KERNELS": PLAN_KERNELS,
    "RANKS": RANKS,
    "SIMULATED": SIMULATED,
    "DISTRIBUTIONS": tuple(DISTRIBUTIONS),
    "TARGETS": tuple(DIALECTS),
    "COLLECTIVES": COLLECTIVES,
    "ASSUMED_SIZE": ASSUMED_SIZE,
    "NAMED_METHODS": tuple(NAMED_METHODS),
    "ON_REQUEST": tuple(ON_REQUEST),
    "ORDERS": ORDERS,
    "STEP_ORDERS": STEP_ORDERS,
    "FIGURE_FORMATS": FORMATS,
    "FIGURE_STYLES": tuple(STYLES),
    "METRICS": tuple(RELATIVE_METRICS),
    "AXES": tuple(AXES),
    "CURVE_SHAPE": CURVE_SHAPE,
    "COUNTED_METHODS": COUNTED_METHODS,
    "COST_DEVICES": COST_DEVICES,
    "SECONDS_EACH": EACH,
    "SECONDS_TOTAL": TOTAL,
    "SUITES": tuple(sorted(SUITES)),
    "SOLVERS": BACKENDS,
    "SOLVER_SECONDS": DEFAULT_TIMEOUT,
    "SOLVER_MEGABYTES": DEFAULT_MEMORY,
    "TOLERANCE_SHAPE": SHAPE,
    "CAMPAIGN_PARTS": tuple(PARTS),
}


def test_all_words_are_held_to_a_table():
    assert {name for name in vars(option_values) if name.isupper()} == set(STATED)


@pytest.mark.parametrize("name", STATED)
def test_words(name):
    assert getattr(option_values, name) == STATED[name]


def test_help_imports_nothing_that_computes():
    code = (
        "import sys, mpgemm.cli; from mpgemm.cli.common.discovery import all_commands, command_parser;"
        "[command_parser(name) for name in all_commands()];"
        "print([m for m in sys.modules if m.startswith(('mpgemm.bounds', 'mpgemm.experiments.evaluate', 'ascend.planner')) "
        "or m in ('tensorcore_models.kernels', 'tensorcore_models.catalogue', 'mpmath')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
    assert len(all_commands()) > 15


@pytest.mark.parametrize("command", all_commands())
def test_the_list_of_commands_reads_what_their_modules_say(command):
    module = command_module(command)
    assert stated(command) == (module.QUESTION, module.SUMMARY)


def test_a_command_is_imported_without_numpy():
    code = (
        "import sys, mpgemm.cli; from mpgemm.cli.common.discovery import all_commands, command_module;"
        "[command_module(name) for name in all_commands()]; print('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_the_list_of_commands_needs_no_numpy():
    code = "import sys; from mpgemm.cli import main\ntry: main(['--help'])\nfinally: print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


@pytest.mark.parametrize(
    "command, words",
    [
        ("evaluate", "--workers 0"),
        ("evaluate", "--verify 0"),
        ("evaluate", "--kv-tile 64"),
        ("compare", "--repeats 0"),
        ("whodunit", "a.npy b.npy c.npy --library scaled_mm"),
        ("whodunit", "a.npy b.npy c.npy --gpu h100 --config split_k=2"),
    ],
)
def test_wrong_options_are_refused_before_a_command_is_imported(command, words):
    with pytest.raises(ValueError, match="goes with|must be at least 1"):
        command_parser(command).parse_args(words.split())
