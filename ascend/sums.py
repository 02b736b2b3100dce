"""What decides the bits of a product besides the data: the ranges of k, the order of the sums, the operand's format."""

from dataclasses import dataclass

from ascend.grid import Range


@dataclass(frozen=True)
class Sums:
    """How the products of one element of C are added: what a numeric interpreter needs of a schedule.

    Two schedules with equal sums give the same bits.
    """

    #: For each slice of k its k groups, as half-open ranges: a group is one chain in L0C.
    slices: tuple[tuple[Range, ...], ...]
    order: str = "termwise"  #: Order of the terms, see :mod:`ascend.cube`.
    terms: int = 1  #: Products of words for each product.
    operand: str = "fp16"  #: Format of the operands.
    reseeded: bool = False  #: L0C starts each k group after the first from C instead of 0.
    step: int = 16  #: Products of one cube step.
    lanes: str = ""  #: The operand that a vector kernel streams ("a", "b"); "" on the cube.
    #: How FP32 operands become HF32, as :attr:`ascend.Chip.hf32_rounding`; "" for other operands.
    hf32_rounding: str = ""
