"""Defines the limits of a search, after which a box counts as outside of the families."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """`Limits` holds the limits of one identification.

    A cost is the number of products evaluated to compare specifications with answers.
    """

    refit: int  # most cost of crossing after a refutation, and after each renewal
    renewed: int  # how often the box is asked more inputs like those whose answers the best specification misses
    patient: bool  # whether renewals continue after one that did not lower the number of missed answers
    crossing: int  # most cost of the last crossing of the best specifications
    nearly: int  # the same limit if the best specification misses at most FEW answers
    total: int  # total cost after which the next refutation ends the identification


#: Most missed answers of a nearly right specification, which may be one field away.
FEW = 4
#: Limits by the name of the effort; docs/identify.md says what each cannot find.
EFFORTS = {
    "quick": Limits(0, 0, False, 0, 0, 200_000_000),
    "normal": Limits(80_000_000, 3, False, 30_000_000, 400_000_000, 600_000_000),
    "thorough": Limits(80_000_000, 3, True, 400_000_000, 400_000_000, 4_000_000_000),
}


def limits_of(effort: str) -> Limits:
    """Return the limits of an effort; raise ValueError for an unknown name."""
    if effort not in EFFORTS:
        raise ValueError(f"effort is {effort!r}; known: {', '.join(EFFORTS)}")
    return EFFORTS[effort]
