"""Which bits of which operand a fidelity phase multiplies: what the integers and the terms of FidelityPhases share."""

#: Bits of a significand, and those that a multiplier takes of an operand of A and of B.
DIGITS, TAKEN = 11, (7, 5)
#: Products of one exact group, and of one step of the unit: two groups.
GROUP, STEP = 8, 16
#: Places below the last one of a group's sum that the accumulator has.
BELOW = 13
#: A sum of exactly -1 unit is normalised by so many places too few.
ERRATUM = 27


def follows(phase: int, side: int) -> bool:
    """Return whether a phase takes the bits of A (side 0) or B that follow the leading ones."""
    return bool(phase >> (1 - side) & 1)


def lowered(phase: int) -> int:
    """Return how far the exponents of a phase's products lie below those of the operands' products."""
    return sum(TAKEN[side] for side in (0, 1) if follows(phase, side))
