"""Every family states every aspect, or says why not; the page that shows it is current."""

from pathlib import Path

import families_page
import pytest

from tensorcore_models import accumulators
from tensorcore_models.families import FAMILIES
from tensorcore_models.families.aspect_list import ASPECTS
from tensorcore_models.families.base import Accumulator

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_hole_has_a_reason(family):
    for aspect in ASPECTS:
        states, reason = families_page.states(family, aspect), families_page.hole(family, aspect)
        assert (states or aspect.derived or reason) and not (states and reason), (
            f"{family.__name__} has neither {aspect.method} nor a reason for that in left_out, or both"
        )
    assert set(family.left_out) <= {aspect.title for aspect in ASPECTS if families_page.hole(family, aspect)}


def test_the_page_is_current():
    assert (ROOT / "docs" / "families.md").read_text() == families_page.page()


def test_the_base_class_lists_its_aspects():
    for aspect in ASPECTS:
        for name in (aspect.method, *aspect.others):
            assert f"`{name}`" in Accumulator.__doc__ and hasattr(Accumulator, name), name


def test_families_are_public_without_being_listed():
    assert {family.__name__ for family in FAMILIES} <= set(accumulators.__all__)
    assert len(FAMILIES) == len(set(FAMILIES)) >= 12
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        accumulators.Nothing  # noqa: B018
