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
    patient : bool
        It goes on even where more answers were missed than before.
    crossing, nearly : int
        The last crossing of the best specifications; that where at most :data:`FEW` answers are missed.
    total : int
        Beyond it a specification that is refuted once more is the last.
    """

    refit: int
    renewed: int
    patient: bool
    crossing: int
    nearly: int
    total: int


#: Answers that a specification misses which is nearly right: one field more may give them.
FEW = 4
#: By name; docs/identify.md says what each gives up.
EFFORTS = {
    "quick": Limits(0, 0, False, 0, 0, 200_000_000),
    "normal": Limits(80_000_000, 3, False, 60_000_000, 400_000_000, 600_000_000),
    "thorough": Limits(80_000_000, 3, True, 400_000_000, 400_000_000, 4_000_000_000),
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
