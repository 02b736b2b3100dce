"""Every family states every aspect, or says why not; the page that shows it is current."""

import importlib.util
from pathlib import Path

import pytest

from tensorcore_models import accumulators
from tensorcore_models.families import FAMILIES
from tensorcore_models.families.base import ASPECTS, Accumulator

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("families_page", ROOT / "docs" / "_ext" / "families_page.py")
PAGE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(PAGE)
TITLES = {aspect.title for aspect in ASPECTS}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_hole_has_a_reason(family):
    for aspect in ASPECTS:
        assert PAGE.states(family, aspect) != bool(PAGE.hole(family, aspect)), (
            f"{family.__name__} has neither {aspect.method} nor a reason for that in left_out, or both"
        )
    assert set(family.left_out) <= TITLES and {t for t in family.left_out if not PAGE.hole(family, _aspect(t))} == set()


def _aspect(title):
    return next(aspect for aspect in ASPECTS if aspect.title == title)


def test_the_page_is_current():
    assert (ROOT / "docs" / "families.md").read_text() == PAGE.page()


def test_the_base_class_lists_its_aspects():
    for aspect in ASPECTS:
        for name in (aspect.method, *aspect.others):
            assert f"`{name}`" in Accumulator.__doc__ and hasattr(Accumulator, name), name


def test_families_are_public_without_being_listed():
    assert {family.__name__ for family in FAMILIES} <= set(accumulators.__all__)
    assert len(FAMILIES) == len(set(FAMILIES)) >= 12
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        accumulators.Nothing  # noqa: B018
