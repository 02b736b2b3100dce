"""This module defines recipes: the instruction of a library's kernel, its order of k, and the conversion to the output.

A recipe is data that :meth:`Recipe.gemm_bits` interprets: :func:`tensorcore_models.orders.order.evaluate` computes chains and
sums, :func:`finish` converts to the output.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..engines.engine import Engine
from ..engines.scaled import apply_at_end, scaled_sums
from ..engines.scaling import Scaling
from ..formats import Format, get_float_format, get_format
from ..formats.operands import check_bits, operand_bits, values_of_bits
from ..formats.rounding import decode, encode
from ..machine.fp_state import default_fp_state
from ..orders.order import Chain, Order, Sum, leaves, uncovered, with_output
from ..orders.trees import tree_of_order


class Unknown(ValueError):
    """`Unknown` is raised if the result of a library is not known, because results are not guessed.

    Parameters
    ----------
    what : str
        Description of the case, with the value that is not known.
    field : str
        Name of the field with this value.
    known : iterable
        Values of the field for which results are known.
    advice : str
        Advice on what to do.
    """

    def __init__(self, what: str, *, field: str, known=(), advice: str = ""):
        self.field, self.known, self.advice = field, tuple(known), advice
        listed = f"; known: {', '.join(map(str, self.known))}" if self.known else ""
        super().__init__(f"{what}{listed}{'. ' + advice if advice else ''}")


@dataclass(frozen=True)
class Epilogue:
    """`Epilogue` describes how a sum becomes an element of the output.

    Parameters
    ----------
    adds_zero : bool
        Whether the scale is applied by a fused multiply-add, RN32(sum * scale + 0), which turns -0 into +0; if False, it is
        applied by a product, which keeps -0.
    saturates : bool
        Whether results beyond an 8-bit output format, infinities included, become its largest number.
    formats : tuple of str
        Output formats for which the epilogue is known.
    scales : bool
        Whether the effect of a scale other than 1 is known.
    """

    adds_zero: bool = False
    saturates: bool = False
    formats: tuple[str, ...] = ("fp32", "fp16", "bf16")
    scales: bool = True

    def __str__(self) -> str:
        scale = "RN32(sum * scale + 0), fused" if self.adds_zero else "RN32(sum * scale)" if self.scales else "the sum"
        return (
            f"{scale}; then rounded to nearest in the output format{', 8-bit ones saturated' if self.saturates else ''}"
        )


@default_fp_state
def folded_scale(scale_a: float, scale_b: float) -> float:
    """Return RN32(scale_a * scale_b), the product of two FP32 factors; overflow gives an infinity."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return float(np.float32(scale_a) * np.float32(scale_b))


def finish(
    total: np.ndarray, result: Format, epilogue: Epilogue, fmt: Format, scale: float, scale_result: float | None = None
) -> np.ndarray:
    """Return encodings of the output in `fmt` from encodings of the sum in `result`.

    `scale` is an FP32 factor. `scale_result` is a second factor, whose product is rounded to FP32 before the output is rounded.
    """
    scale32, float32 = np.float32(scale), get_format("fp32")
    values = total.view(np.float32) if result == float32 else decode(total, result, np.float32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if epilogue.adds_zero:
            # An FP32 product is exact in float64, and adding +0 changes only the sign of a zero, so there is one rounding.
            values = (values if scale32 == 1 else values.astype(np.float64) * np.float64(scale32)) + 0.0
        elif scale32 != 1:
            values = values * scale32
        values = values.astype(np.float32, copy=False)
        if scale_result is not None:
            values = values * np.float32(scale_result)
        if epilogue.saturates and fmt.bits == 8:
            values = np.clip(values, -np.float32(fmt.max_finite), np.float32(fmt.max_finite))
    nan = np.isnan(values)
    bits = values.view(np.uint32) if fmt == float32 else encode(np.where(nan, np.float32(0), values), fmt)
    if nan.any():  # NaN from NVIDIA's conversions has every bit below the sign set
        bits = np.where(nan, fmt.container.type(fmt.magnitude_mask), bits)
    return np.ascontiguousarray(bits, fmt.container)


@dataclass(frozen=True)
class Recipe:
    """`Recipe` describes the computation of a library's kernel, from operands to output.

    Parameters
    ----------
    engine : Engine
        Instruction, or the fused multiply-add of the CUDA cores.
    k : int
        Length of the sum.
    order : Order
        Order of k: chains and the sums that join them.
    epilogue : Epilogue
        Conversion of the sum to the output.
    name : str
        Name of the library and its kernel.
    source : str
        Source of the order, measured or published.
    shape : (m, n), optional
        Only size for which the recipe holds; None if it holds for all sizes.
    rounding : str, optional
        Rounding with which the library converts FP32 operands to the engine's formats. Operands are then given as encodings of
        FP32.

    Raises
    ------
    TypeError, ValueError
        If the order takes a value of k beyond the end or more than once, or the engine's arithmetic is not public.
    """

    engine: Engine
    k: int
    order: Order
    epilogue: Epilogue = Epilogue()
    name: str = "recipe"
    source: str = ""
    shape: tuple[int, int] | None = None
    rounding: str | None = None

    def __post_init__(self):
        if not isinstance(self.engine, Engine):
            raise TypeError(f"engine is {type(self.engine).__name__}, expected an Engine")
        if not isinstance(self.order, Chain | Sum):
            raise TypeError(f"order is {type(self.order).__name__}, expected a Chain or a Sum")
        if getattr(self.engine, "accumulator", self) is None:
            raise ValueError(f"{self.engine.label} cannot be computed, because its arithmetic is not public")
        uncovered(self.order, self.k)

    @property
    def chains(self) -> tuple[Chain, ...]:
        """Return the chains in the order in which their results are joined."""
        return tuple(leaves(self.order))

    @property
    def lost(self) -> np.ndarray:
        """Return the values of k that the kernel leaves out of the sum."""
        return uncovered(self.order, self.k)

    def sum_bits(self, a, b, *, out_format: str = "fp32") -> np.ndarray:
        """Return the encodings of the sum before the epilogue, in the engine's result format.

        `out_format` matters only if partial sums are rounded to it. Errors are those of :meth:`gemm_bits`.
        """
        if self.rounding is not None:
            a, b = (self._rounded(x, name) for x, name in ((a, "a"), (b, "b")))
        return self.engine.sum_bits(a, b, with_output(self.order, out_format))

    def _rounded(self, x, name: str) -> np.ndarray:
        """Return an operand, given as FP32 encodings, rounded to the engine's format."""
        values = check_bits(x, get_float_format("fp32"), name).view(np.float32)
        return operand_bits(values, self.engine.formats["ab".index(name)], self.rounding, name)

    @property
    def operand_formats(self) -> tuple[str, str]:
        """Return the formats in which A and B are given."""
        a, b = ("fp32" if self.rounding else fmt.name for fmt in self.engine.formats[:2])
        return a, b

    def gemm_bits(
        self, a, b, *, out_format: str = "fp32", scale: float = 1.0, scale_result: float | None = None
    ) -> np.ndarray:
        """Return the kernel's output as encodings, shape (m, n).

        Parameters
        ----------
        a, b : array of unsigned integers
            Encodings of shapes (m, k) and (k, n).
        out_format : str
            Format of the output.
        scale : float
            FP32 factor of the sum; see :func:`folded_scale` for the product of two factors.
        scale_result : float, optional
            Second factor, for 8-bit outputs.

        Raises
        ------
        TypeError, ValueError
            If types or shapes are wrong, or (:class:`Unknown`) the epilogue for the output format or the scale is not known.
        """
        fmt = get_format(out_format)
        result = get_format(self.engine.d_format)
        as_it_is = fmt == result and fmt.name != "fp32"  # FP64 and integers are not rounded
        plain = isinstance(fmt, Format) and isinstance(result, Format)
        if fmt.name not in self.epilogue.formats or not (plain or as_it_is):
            raise Unknown(
                f"{self.name}: the output format {fmt.name} is not known",
                field="out_format",
                known=self.epilogue.formats,
                advice="Choose one of these and round its result",
            )
        if not self.epilogue.scales and scale != 1:
            raise Unknown(
                f"{self.name}: the effect of a scale of {scale} on this kernel's sum is not known",
                field="scale",
                known=(1,),
                advice="Leave the scale at 1 and multiply the result",
            )
        a, b = np.asarray(a), np.asarray(b)
        if a.ndim == 2 and a.shape[1] != self.k:
            raise ValueError(f"{self.name}: a is {a.shape}, but the recipe has k = {self.k}: make a recipe for this k")
        if self.shape is not None and a.ndim == b.ndim == 2 and (a.shape[0], b.shape[1]) != self.shape:
            got = (a.shape[0], b.shape[1])
            raise ValueError(
                f"{self.name}: the recipe is for m, n = {self.shape}, but the operands have {got}: make a recipe "
                f"for this shape"
            )
        total = self.sum_bits(a, b, out_format=fmt.name)
        if as_it_is or not isinstance(fmt, Format) or not isinstance(result, Format):
            return total
        return finish(total, result, self.epilogue, fmt, scale, scale_result)

    def scaled_bits(self, a, b, scaling: Scaling, *, out_format: str = "fp32") -> np.ndarray:
        """Return the kernel's result for scaled operands as encodings, shape (m, n).

        Only results with one factor for each matrix were measured; other results are predicted.

        Parameters
        ----------
        a, b : array of unsigned integers
            Encodings of shapes (m, k) and (k, n).
        scaling : Scaling
            Factors of the operands. They are applied to the recipe's sum or, if each block of 128 products has its own
            factors, to the sum of each block.
        out_format : str
            Format of the output.

        Raises
        ------
        Unknown
            If the scales are applied inside the unit, or to blocks that the recipe's chains do not follow.
        TypeError, ValueError
            See :meth:`gemm_bits`.
        """
        if scaling.folded:
            return self.gemm_bits(a, b, out_format=out_format, scale=folded_scale(scaling.a.item(), scaling.b.item()))
        fmt, float32 = get_float_format(out_format), get_float_format("fp32")
        if scaling.applied == "product" or (scaling.applied == "block" and not self._fits_blocks(scaling.block)):
            raise Unknown(
                f"{self.name} with scales ({scaling.in_words()}) is not known", field="scales",
                known=("per tensor", "per row and column", "blocks of 128 with one chain"),
                advice="Use engine.gemm(a, b, scale_a=..., scale_b=...), which computes them on a unit",
            )  # fmt: skip
        if scaling.applied == "block":
            sums = scaled_sums(self.engine, np.asarray(a), np.asarray(b), scaling)
        else:
            bits = self.sum_bits(a, b, out_format=out_format)
            sums = apply_at_end(
                values_of_bits(bits, self.engine.formats[3]).astype(np.float32), scaling.on(self.engine)
            )
        return finish(sums.view(np.uint32), float32, replace(self.epilogue, adds_zero=False), fmt, 1.0)

    def _fits_blocks(self, block: int | None) -> bool:
        """Return whether factors can change after each block: the order is one chain, or restarts after each block."""
        if isinstance(self.order, Chain) or block is None:
            return block is not None
        return self.order == restarted(0, self.k, block, begin="zero")

    def __str__(self) -> str:
        return self.picture()

    def picture(self) -> str:
        """Return the recipe as text, with the outline of its order."""
        lost = self.lost
        lines = [f"{self.name}, k = {self.k}", f"  engine: {self.engine.label}, k step {self.engine.k}"]
        lines.append(
            f"  order in {self.engine.d_format} (k a:b is a chain of the instruction over k = a to b - 1, from +0):"
        )
        lines += [f"    {line}" for line in tree_of_order(self.order).outline()]
        if lost.size:
            lines.append(f"  left out: {lost.size} values, k {lost[0]}:{lost[-1] + 1}")
        lines.append(f"  output: {self.epilogue}")
        if self.rounding:
            lines.insert(2, f"  operands: FP32, rounded to {self.engine.formats[0].name} ({self.rounding})")
        if self.source:
            lines.append(f"  source: {self.source}; results of the recipe are predicted")
        return "\n".join(lines)


# -- building blocks of orders ------------------------------------------------------------------------------------------------
def contiguous(start: int, stop: int, length: int) -> tuple[range, ...]:
    """Return start to stop as consecutive ranges of `length`; the last range may be shorter."""
    return tuple(range(x, min(x + length, stop)) for x in range(start, stop, length))


def restarted(start: int, stop: int, length: int, *, begin: str = "first") -> Order:
    """Return chains over consecutive ranges of `length`, added left to right, or one chain if a single range covers all."""
    blocks = tuple(Chain((piece,)) for piece in contiguous(start, stop, length))
    return blocks[0] if len(blocks) == 1 and begin == "first" else joined(blocks, start=begin)


def joined(parts, **options) -> Order:
    """Return the parts added left to right; a single part is returned unchanged unless `options` ask for a sum."""
    whole = Sum(tuple(parts), **options)
    plain = len(whole.parts) == 1 and whole.start == "first" and not whole.carry and not whole.partials
    return whole.parts[0] if plain else whole


def butterfly(parts) -> Order:
    """Return lanes joined by a butterfly: lane i adds lane i + W/2, then i + W/4, ..., i + 1, for W lanes.

    Raises ValueError if W is not a power of two.
    """
    lanes = list(parts)
    if len(lanes) & (len(lanes) - 1):
        raise ValueError(f"a butterfly sum got {len(lanes)} lanes, expected a power of two")
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [Sum((lanes[i], lanes[i + half])) for i in range(half)]
    return lanes[0]


def residue_first(start: int, stop: int, tile: int) -> Chain:
    """Return one chain that starts with the part of the range that fills no tile, as in CUTLASS's iterators."""
    residue = (stop - start) % tile
    pieces = (range(start, start + residue), range(start + residue, stop))
    return Chain(tuple(piece for piece in pieces if len(piece)))
