"""The limits of a search: how much it does before it says that a box is outside of the families."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one identification; costs are products that are evaluated to compare specifications with answers."""

    refit: int  # the most that crossing may cost where a specification was refuted, and after each renewal
    renewed: int  # how often the box is asked more inputs like those whose answers the best specification misses
    patient: bool  # whether the renewals go on after one that did not lower the number of missed answers
    crossing: int  # the most that the last crossing of the best specifications may cost
    nearly: int  # the same where the best specification misses at most FEW answers
    total: int  # once an identification has cost more, the next refutation ends it


#: A specification that misses at most this many answers is nearly right: it may be one field away.
FEW = 4
#: The limits by the name of the effort; docs/identify.md says what each cannot find.
EFFORTS = {
    "quick": Limits(0, 0, False, 0, 0, 200_000_000),
    "normal": Limits(80_000_000, 3, False, 30_000_000, 400_000_000, 600_000_000),
    "thorough": Limits(80_000_000, 3, True, 400_000_000, 400_000_000, 4_000_000_000),
}


def limits_of(effort: str) -> Limits:
    """Return the limits of an effort; raises ValueError if there is none of that name."""
    if effort not in EFFORTS:
        raise ValueError(f"effort is {effort!r}; known: {', '.join(EFFORTS)}")
    return EFFORTS[effort]
