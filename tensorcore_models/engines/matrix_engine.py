"""This module defines `MatrixEngine`, an accumulator with operand formats: custom units and the catalogue's instructions."""

import dataclasses

from .. import kernels
from ..families.base import Accumulator
from ..formats import get_format
from ..formats.names import format_name
from ..integers import checked_integer
from .engine import Engine, FormatLike


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatrixEngine(Engine):
    """`MatrixEngine` is a custom matrix unit: an accumulator with operand formats.

    Parameters
    ----------
    accumulator : Accumulator
        Accumulator algorithm; the only positional argument.
    a_format, b_format, c_format, d_format : str or Format
        Formats of the operands and the result; c and d default to fp32, b to the format of a.
    k : int, optional
        k step; by default that of the accumulator.
    scale_format : str or Format, optional
        Format of the block scales of a block-scaled unit.
    block_size : int, optional
        Number of consecutive products that share a block scale.
    largest_input_scale : int
        Largest s for which the unit can compute D = A B + C 2^-s, 0 if it cannot scale C.

    Raises
    ------
    ValueError
        If k is not positive, only one of scale_format and block_size is given, or the accumulator cannot multiply the formats.
    """

    accumulator: Accumulator = dataclasses.field(kw_only=False)
    a_format: FormatLike = "fp16"
    # None means the format of a, and the k step of the accumulator; both are set below.
    b_format: FormatLike = None  # type: ignore[assignment]
    c_format: FormatLike = "fp32"
    d_format: FormatLike = "fp32"
    k: int = None  # type: ignore[assignment]
    scale_format: FormatLike | None = None
    block_size: int | None = None
    largest_input_scale: int = 0

    def __post_init__(self):
        if not isinstance(self.accumulator, Accumulator):
            raise TypeError(f"accumulator must be an Accumulator, got {type(self.accumulator).__name__}")
        if self.b_format is None:
            object.__setattr__(self, "b_format", self.a_format)
        for side, field in enumerate(("a_format", "b_format", "c_format", "d_format")):
            fmt = get_format(getattr(self, field))
            read = self.accumulator.operand_format(fmt, side) if side < 2 else fmt
            object.__setattr__(self, field, format_name(read))
        if self.k is None:
            object.__setattr__(self, "k", self.accumulator.terms_per_step)
        for field, least in (("k", 1), ("block_size", 1), ("largest_input_scale", 0)):
            value = getattr(self, field)
            if value is None:
                continue
            object.__setattr__(self, field, checked_integer(value, field))
            if value < least:
                raise ValueError(f"{field} is {value}, expected at least {least}")
        if (self.scale_format is None) != (self.block_size is None):
            raise ValueError(
                f"scale_format is {self.scale_format} and block_size is {self.block_size}: give both, or neither"
            )
        if self.scale_format is not None and not self.accumulator.takes_scales:
            raise ValueError(
                f"got scale_format {self.scale_format}, but {type(self.accumulator).__name__} takes no block scales: leave "
                "scale_format out, or use FusedDotAdd, ParametricDotAdd or GroupDotFusedSum"
            )
        self.accumulator.check_formats(self.formats, self.block_size)

    @property
    def label(self) -> str:
        return (
            f"{type(self.accumulator).__name__}({get_format(self.a_format).name} to {get_format(self.d_format).name})"
        )

    def with_rules(self, **edge_rules):
        """Return a copy with other values of the accumulator's edge rules (:mod:`tensorcore_models.accumulators`)."""
        return dataclasses.replace(self, accumulator=self.accumulator.with_rules(**edge_rules))

    def _small_product(self, a_shape, b_shape):
        return kernels.small_product(self, a_shape, b_shape)

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        return kernels.matrix_bits(self, a, b, c, scale_a, scale_b)

    def _promoted_bits(self, a, b, total, scale_a, scale_b, every):
        if get_format(self.c_format).name != "fp32" or get_format(self.d_format).name != "fp32":
            return None
        return kernels.promoted_bits(self, a, b, total, scale_a, scale_b, every)
