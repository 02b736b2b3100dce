"""How far an identification goes before it says that a box is outside of the families."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a search may cost, in products that are evaluated for comparisons.

    Parameters
    ----------
    refit : int
        To mend a specification that was refuted, or after each renewal.
    renewed : int
        How often a search goes on with inputs that are like those it misses.
    crossing : int
        The last crossing of the best specifications.
    total : int
        Beyond it a specification that is refuted once more is the last.
    """

    refit: int
    renewed: int
    crossing: int
    total: int


#: By name; docs/identify.md says what each gives up.
EFFORTS = {
    "quick": Limits(0, 0, 0, 200_000_000),
    "normal": Limits(40_000_000, 1, 60_000_000, 600_000_000),
    "thorough": Limits(80_000_000, 3, 400_000_000, 4_000_000_000),
}


def limits_of(effort: str) -> Limits:
    """The limits of an effort.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort is {effort!r}; known: {', '.join(EFFORTS)}")
    return EFFORTS[effort]
