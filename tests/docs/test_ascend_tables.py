"""The computed tables of docs/ascend.md are what the planner and the simulator say."""

import ascend_tables
import pytest

PAGE = ascend_tables.PAGE.read_text(encoding="utf-8")
PLANS = ascend_tables.table(PAGE, "plans")


def row(shape, chip):
    """The line of the table of plans, which names a shape once for its three chips."""
    below = PLANS.partition(f"| {shape} |")[2]
    return next(line for line in f"| {shape} |{below}".splitlines() if f"| {chip} |" in line)


@pytest.mark.parametrize(("shape", "chip"), [((64, 64, 16384), "310P3"), ((1000, 333, 777), "910B3")])
def test_a_plan_of_the_page_is_current(shape, chip):
    assert ascend_tables.plan_row(shape, chip, False) == row(" x ".join(map(str, shape)), chip)


@pytest.mark.parametrize(
    "name",
    [*(pytest.param(name, marks=pytest.mark.full) for name in ("advice", "published")), "losses", "squares", "moved"],
)
def test_a_table_of_the_page_is_current(name):
    """2 seconds: every published measurement is simulated."""
    assert ascend_tables.table(PAGE, name) == ascend_tables.TABLES[name]()


@pytest.mark.full
@pytest.mark.parametrize("name", ["plans", "front", "paper", pytest.param("bits", marks=pytest.mark.slow)])
def test_a_long_table_of_the_page_is_current(name):
    """Half a minute for all shapes on all chips or all choices of one shape; two minutes for every block's product."""
    assert ascend_tables.table(PAGE, name) == ascend_tables.TABLES[name]()
