"""Defines the bits of each operand that a fidelity phase multiplies, for plain integers and for terms."""

#: Number of bits of a significand, and of the leading bits that a multiplier takes of an operand of A and of B.
DIGITS, TAKEN = 11, (7, 5)
#: Number of products in one exact group, and in one step of the unit, which has two groups.
GROUP, STEP = 8, 16
#: Number of bits that the accumulator has below the last bit of a group's sum.
BELOW = 13
#: Number of places by which the normalisation of a sum of exactly -1 unit is too short (Wormhole's erratum).
ERRATUM = 27


def follows(phase: int, side: int) -> bool:
    """Return whether a phase takes the bits of A (side 0) or B below the leading bits."""
    return bool(phase >> (1 - side) & 1)


def lowered(phase: int) -> int:
    """Return how far the exponents of a phase's products lie below those of the operands' products."""
    return sum(TAKEN[side] for side in (0, 1) if follows(phase, side))
