"""This module defines `Engine`, the base class of matrix engines: anything with formats, a k step and `gemm`.

An engine is an accumulator with formats (:mod:`.matrix_engine`), a catalogued instruction (:mod:`.instruction`), or a user's
callable (:mod:`.callable_engine`). Its callers use only what :class:`Engine` defines. a is (m, k), b is (k, n), c and d (m, n).

K is padded with +0 to a multiple of the engine's k step and chained in order: the result of one step is the c of the next. With
the default edge rules, padding changes no finite sum except that it turns -0 into +0 in units whose results can be -0 (IEEE
additions, AMD's sums). With ``zero_operand="format_minimum"`` or ``scaled_zero="keeps_scale"``, padding can raise an alignment
exponent. Missing block scales get the encoding 0, the smallest scale, as in memory filled with zeros.
"""

import abc
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..formats import Format, IntegerFormat, get_format
from ..formats.exact_rounding import check_rounding
from ..formats.interop import as_array
from ..formats.operands import check_bits, operand_bits, scale_bits, values_of_bits
from ..formats.sums import add_rounded, scale_cut, scale_rounded
from ..integers import checked_integer
from ..kernels.small import SmallProduct
from ..machine.fp_state import default_fp_state
from ..orders.order import KOrder, Order, OrderUnit, evaluate, leaves, merged, order_of, uncovered
from .arguments import one_chain, scalar
from .homes import home_of

if TYPE_CHECKING:
    from .prepared import PreparedProduct

FormatLike = str | Format | IntegerFormat


_ONE_ZERO = bytes(16)
_ORDER = ("k_order", "promote_every", "promote_rounding")
_ENDS = ("alpha", "beta", "scale_a", "scale_b", "input_rounding", "input_saturate")


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return read-only encodings of +0 that share one element, because allocating them costs a small product a tenth."""
    return np.ndarray(shape, dtype, buffer=_ONE_ZERO, strides=(0,) * len(shape))


class Engine(abc.ABC):
    """`Engine` is the base class of matrix engines, which recovery methods, probes and experiments use.

    Attributes
    ----------
    a_format, b_format, c_format, d_format : str or Format
        Formats of the operands and of the result.
    k : int
        k step, the number of products that one step adds.
    scale_format : str or None
        Format of the block scales; None for an engine without block scales.
    block_size : int or None
        Number of consecutive products that share a block scale.
    largest_input_scale : int
        Largest s for which the unit can compute D = A B + C 2^-s, 0 if it cannot scale C; see :meth:`scaled_input`.
    """

    a_format: FormatLike
    b_format: FormatLike
    c_format: FormatLike
    d_format: FormatLike
    k: int
    scale_format: FormatLike | None = None
    block_size: int | None = None
    largest_input_scale: int = 0

    @abc.abstractmethod
    def _chain_bits(self, a, b, c, scale_a, scale_b) -> np.ndarray:
        """Return d for validated encodings of any m and n, with k a multiple of the k step."""

    @property
    def label(self) -> str:
        """Return a short name of the engine for tables."""
        return type(self).__name__

    @functools.cached_property
    def formats(self) -> tuple:
        """Return the formats of a, b, c and d."""
        return tuple(get_format(f) for f in (self.a_format, self.b_format, self.c_format, self.d_format))

    def gemm_bits(
        self,
        a,
        b,
        c=None,
        scale_a=None,
        scale_b=None,
        *,
        k_order: KOrder = "sequential",
        promote_every: int | None = None,
        promote_rounding: str = "rne",
    ) -> np.ndarray:
        """Return D = A B + C on raw encodings, for any m, n, k.

        Parameters
        ----------
        a, b, c : array of unsigned integers
            Encodings of shapes (m, k), (k, n), (m, n), one in each array element. c = None means zeros.
        scale_a, scale_b : array of unsigned integers
            Encodings of the block scales, of shapes (m, ceil(k/bs)) and (ceil(k/bs), n) for block size bs; only for engines
            with block scales.
        k_order : str, Order or sequence
            Order of k (:func:`tensorcore_models.orders.order.order_of`). "sequential" is one chain that starts from c. In
            every other order, all chains start from zero. Their results are added in order and c is added last, with additions
            in the output format that round to nearest even.
        promote_every : int, optional
            Number of products, a multiple of the k step, after which the chain's result is added to an FP32 accumulator
            outside the unit. This accumulator starts from c; each chain starts from zero.
        promote_rounding : str
            Rounding of the additions outside the unit.

        Returns
        -------
        ndarray
            Encodings of d, shape (m, n), in the container type of the output format.

        Raises
        ------
        TypeError, ValueError
            If types or shapes are wrong, encodings exceed the format's width, or scales are missing or given to an engine
            without scales.
        """
        if scale_a is None and scale_b is None and one_chain(k_order, promote_every, promote_rounding):
            small = self._small(a, b)
            if small is not None and (d := small.bits(a, b, c)) is not None:
                return d
        return self._gemm_bits(a, b, c, scale_a, scale_b, k_order, promote_every, promote_rounding)

    @default_fp_state
    def _gemm_bits(self, a, b, c, scale_a, scale_b, *order) -> np.ndarray:
        if (home := home_of(a)) is not None:
            return home.gemm_bits(self, a, b, c, scale_a, scale_b, dict(zip(_ORDER, order, strict=True)))
        a, b, c = self._check_matrices(a, b, c)
        scale_a, scale_b = self.check_scales(a.shape, b.shape, scale_a, scale_b)
        return self._gemm_checked(a, b, c, scale_a, scale_b, *order)

    def gemm(
        self,
        a,
        b,
        c=None,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        scale_a=None,
        scale_b=None,
        input_rounding: str | None = None,
        input_saturate: bool = False,
        k_order: KOrder = "sequential",
        promote_every: int | None = None,
        promote_rounding: str = "rne",
    ) -> np.ndarray:
        """Return D = alpha A B + beta C on values, for any m, n, k.

        With alpha = beta = 1 the chain starts from c. Otherwise the chain starts from 0, and RNE(RNE(alpha chain) +
        RNE(beta c)) is computed in the output format. beta = 0 ignores c even where it is NaN. k = 0 gives beta c, or zeros
        without c.

        Parameters
        ----------
        a, b, c : array_like
            Values of shapes (m, k), (k, n), (m, n): numpy or ml_dtypes arrays, DLPack or ``__array__`` objects. Torch tensors
            on a GPU are multiplied on the GPU and give a tensor; they may have leading batch dimensions
            (docs/units_on_gpus.md).
        alpha, beta : float
            Factors of A B and of C.
        scale_a, scale_b : array_like, optional
            Scales of the operands, recognised by shape and type (:func:`tensorcore_models.read_scales`): one for each tensor,
            one for each row of A and column of B, one for each block of 128 along k, or the unit's own block scales (values,
            or encodings of type uint8). All but the unit's block scales are applied to the sums in FP32, outside the unit; c is
            then added last, and alpha and beta must be 1.
        input_rounding : str, optional
            Rounding of values that an operand format cannot represent; with None such values raise an error.
        input_saturate : bool
            Whether rounded values beyond the range of the operand format become its largest finite number. If False, the
            format decides: infinity if it has one; an error if it has only NaN (e4m3fn); the largest finite number if it has
            neither (fp4, fp6).
        k_order, promote_every, promote_rounding
            See :meth:`gemm_bits`.

        Returns
        -------
        ndarray
            Result of shape (m, n) in the numpy or ml_dtypes type of the output format (float32 if it has none).

        Raises
        ------
        TypeError, ValueError
            See :meth:`gemm_bits`; also if values are not representable and `input_rounding` is None (the message gives their
            number and the first such value).
        """
        if scale_a is None and scale_b is None and one_chain(k_order, promote_every, promote_rounding):
            small = self._small(a, b) if type(alpha) is type(beta) is float and alpha == beta == 1 else None
            if small is not None and (d := small.values(a, b, c)) is not None:
                return d
        rounding, order = (input_rounding, input_saturate), (k_order, promote_every, promote_rounding)
        return self._gemm(a, b, c, (alpha, beta), (scale_a, scale_b), rounding, order)

    @default_fp_state
    def _gemm(self, a, b, c, factors, scales, rounding, order) -> np.ndarray:
        """Compute :meth:`gemm` for operands of all types, including tensors on a GPU."""
        if (home := home_of(a)) is not None:
            ends = dict(zip(_ENDS, (*factors, *scales, *rounding), strict=True))
            return home.gemm(self, a, b, c, ends, dict(zip(_ORDER, order, strict=True)))
        formats = self.formats
        alpha, beta = (scalar(x, name) for x, name in zip(factors, ("alpha", "beta"), strict=True))
        (scale_a, scale_b), (input_rounding, input_saturate) = scales, rounding
        use_c = c is not None and beta != 0
        a = operand_bits(a, formats[0], input_rounding, "a", input_saturate)
        b = operand_bits(b, formats[1], input_rounding, "b", input_saturate)
        c_bits = operand_bits(c, formats[2], input_rounding, "c", input_saturate) if use_c else None
        a, b, start = self._check_matrices(a, b, c_bits)
        if scale_a is not None or scale_b is not None:
            from .scaled import scaled_outside

            sums = scaled_outside(self, a, b, scales, alpha == beta == 1, **dict(zip(_ORDER, order, strict=True)))
            if sums is not None:
                return sums if c is None else sums + as_array(c, "c").astype(np.float32)
        given = (scale_bits(s, self.scale_format, n) for s, n in ((scale_a, "scale_a"), (scale_b, "scale_b")))
        sa, sb = self.check_scales(a.shape, b.shape, *given)
        simple = alpha == 1 and (not use_c or beta == 1)
        if not simple:
            start = _zeros(start.shape, start.dtype)
        d = self._gemm_checked(a, b, start, sa, sb, *order)
        if not simple:
            d = scale_rounded(d, alpha, formats[3], formats[3])
            if c_bits is not None:
                d = add_rounded(d, scale_rounded(c_bits, beta, formats[2], formats[3]), formats[3])
        return values_of_bits(d, formats[3])

    def prepared(self, m: int, k: int, n: int) -> "PreparedProduct":
        """Return a function for many small products of one shape, which checks the shapes only once.

        Parameters
        ----------
        m, k, n : int
            Sizes: a is (m, k), b is (k, n).

        Returns
        -------
        PreparedProduct
            Function that takes values as :meth:`gemm` does; its method `bits` takes encodings as :meth:`gemm_bits` does. The
            results have the same bits as those of `gemm` and `gemm_bits`.

        Raises
        ------
        ValueError, TypeError
            If a size is negative or not an integer.

        Examples
        --------
        >>> import numpy as np, tensorcore_models as tcm
        >>> product = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32").prepared(16, 16, 8)
        >>> a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
        >>> c = np.zeros((16, 8), np.float32)
        >>> for _ in range(3):
        ...     c = product(a, b, c)
        >>> float(c[0, 0])
        48.0
        """
        from .prepared import PreparedProduct

        return PreparedProduct(self, m, k, n)

    def scaled_input(self, c: np.ndarray, scale: int) -> np.ndarray:
        """Return encodings of c 2^-scale in the format of c, for a unit that scales its accumulator input.

        The exponent is lowered and the significand is kept. Bits below the smallest subnormal number are truncated. This
        truncation is inferred: NVIDIA's units truncate results, and no publication describes such an input.

        Parameters
        ----------
        c : ndarray of unsigned integers
            Encodings of the addend in the format of c.
        scale : int
            Number s from 0 to :attr:`largest_input_scale`.

        Raises
        ------
        ValueError
            If the unit cannot scale its input by 2^-scale.
        """
        scale = checked_integer(scale, "the scale of the accumulator input")
        if not 0 <= scale <= self.largest_input_scale:
            takes = (
                f"0 to {self.largest_input_scale}"
                if self.largest_input_scale
                else "0, because this unit cannot scale c"
            )
            raise ValueError(f"input_scale is {scale}, expected {takes} ({self.label})")
        return c if scale == 0 else scale_cut(c, -scale, self.formats[2])

    def _small_product(self, a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> SmallProduct | None:
        """Return the kernel for small products of these shapes, None if the engine has none."""
        return None

    def _small(self, a, b) -> SmallProduct | None:
        return self._small_product(a.shape, b.shape) if type(a) is type(b) is np.ndarray else None

    def _check_matrices(self, a, b, c) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        formats = self.formats
        a, b = check_bits(a, formats[0], "a", 2), check_bits(b, formats[1], "b", 2)
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"a has shape {a.shape} and b {b.shape}, expected as many columns of a as rows of b")
        shape = (a.shape[0], b.shape[1])
        if c is None:
            return a, b, _zeros(shape, formats[2].container)
        c = check_bits(c, formats[2], "c", 2)
        if c.shape != shape:
            raise ValueError(
                f"c has shape {c.shape}, expected {shape} for a of shape {a.shape} and b of shape {b.shape}"
            )
        return a, b, c

    def check_scales(self, a_shape, b_shape, scale_a, scale_b):
        """Check block scales for operands of these shapes; return their encodings, or (None, None) without block scales.

        Raises
        ------
        ValueError, TypeError
            If scales are missing, given to an engine without scales, of a wrong shape, or beyond the format's width.
        """
        if self.scale_format is None:
            if scale_a is not None or scale_b is not None:
                raise ValueError(
                    f"got scale_a or scale_b, but {self.label} has no block scales: leave them out, or use gemm, which applies "
                    "other scales outside the unit"
                )
            return None, None
        if scale_a is None or scale_b is None:
            raise ValueError(
                f"{'scale_a' if scale_a is None else 'scale_b'} is missing: {self.label} needs scale_a and scale_b, each with "
                f"one {self.scale_format} scale for {self.block_size} products"
            )
        fmt = get_format(self.scale_format)
        # The top bit of a ue4m3 scale is stored and ignored (xie-mma-sim, section IV-E, step 0).
        scale_a = check_bits(scale_a, fmt, "scale_a", len(a_shape), ignore_high=True)
        scale_b = check_bits(scale_b, fmt, "scale_b", len(b_shape), ignore_high=True)
        blocks = -(-a_shape[-1] // self.block_size)
        for scale, expected, name in (
            (scale_a, (*a_shape[:-1], blocks), "scale_a"),
            (scale_b, (*b_shape[:-2], blocks, b_shape[-1]), "scale_b"),
        ):
            if scale.shape != expected:
                raise ValueError(
                    f"{name} has shape {scale.shape}, expected {expected}: one scale for {self.block_size} products"
                )
        return scale_a, scale_b

    def _gemm_checked(self, a, b, c, scale_a, scale_b, k_order, promote_every, promote_rounding):
        check_rounding(promote_rounding)
        k = a.shape[1]
        order = order_of(k, self.k, k_order)
        self._check_blocks(k, order, promote_every)
        if promote_every is not None:
            return self._promoted(a, b, c, scale_a, scale_b, order, promote_every, promote_rounding)
        if k == 0 or 0 in c.shape:
            return self._c_as_result(c)
        if order is None:
            return self._padded(a, b, c, scale_a, scale_b, [range(k)])
        total = evaluate(order, self._unit(a, b, c, scale_a, scale_b))
        return add_rounded(total, self._c_as_result(c), self.formats[3])

    @default_fp_state
    def sum_bits(self, a, b, order: Order) -> np.ndarray:
        """Return the encodings of A B in one order of k, without an addend.

        The sign of a zero result follows from the chains and sums of the order.

        Parameters
        ----------
        a, b : array of unsigned integers
            Encodings of shapes (m, k), (k, n).
        order : Order
            Order of k; a product whose k is not in it is left out of the sum.

        Raises
        ------
        TypeError, ValueError
            See :meth:`gemm_bits`; also if the engine has block scales.
        """
        a, b, zero = self._check_matrices(a, b, None)
        self.check_scales(a.shape, b.shape, None, None)
        uncovered(order, a.shape[1])
        if 0 in zero.shape:
            return self._c_as_result(zero)
        return evaluate(order, self._unit(a, b, zero, None, None))

    def _unit(self, a, b, c, scale_a, scale_b) -> OrderUnit:
        """Return the functions with which the interpreter of orders runs this engine on these operands."""
        zero = _zeros(c.shape, c.dtype)

        def chain(pieces, joined):
            if not joined:
                return self._padded(a, b, zero, scale_a, scale_b, pieces)
            if scale_a is not None:
                raise ValueError(
                    f"got a chain with joined=True, but {self.label} has block scales, which need pieces that start on a k "
                    "step: use joined=False"
                )
            index = np.concatenate([np.arange(p.start, p.stop, p.step) for p in pieces])
            return self._padded(a[:, index], b[index], zero, None, None, [range(len(index))])

        def restarts(pieces, every, total):
            if scale_a is not None:
                return None
            pieces = merged(pieces)
            if len(pieces) == 1:
                taken = slice(pieces[0].start, pieces[0].stop, pieces[0].step)
                return self._promoted_bits(a[:, taken], b[taken], total, None, None, every)
            index = np.concatenate([np.arange(p.start, p.stop, p.step) for p in pieces])
            return self._promoted_bits(a[:, index], b[index], total, None, None, every)

        return OrderUnit(self.formats[3], self.k, chain, restarts, lambda: self._c_as_result(zero))

    def _check_blocks(self, k: int, order: Order | None, every: int | None) -> None:
        """Refuse chains that start inside a block of products with one scale, because blocks are counted from the start."""
        if self.block_size is None:
            return
        starts = [piece.start for chain in leaves(order) for piece in chain.pieces] if order is not None else []
        if isinstance(every, int | np.integer) and every < k:
            starts.append(int(every))
        inside = [start for start in starts if start % self.block_size]
        if inside:
            raise ValueError(
                f"a chain starts at product {inside[0]}, inside a block of {self.block_size} products that share a scale: "
                f"split k at multiples of {math.lcm(self.k, self.block_size)}"
            )

    def _c_as_result(self, c: np.ndarray) -> np.ndarray:
        """Return c in the output format, rounded to nearest if that format is narrower."""
        c_format, d_format = self.formats[2:]
        return c.copy() if c_format == d_format else scale_rounded(c, 1.0, c_format, d_format)

    def _promoted(self, a, b, c, scale_a, scale_b, order, every, rounding):
        if order is not None:
            raise ValueError(
                f"got promote_every={every!r} and a k_order other than 'sequential': leave one of the two out"
            )
        if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1 or every % self.k:
            raise ValueError(f"promote_every is {every!r}, expected a positive multiple of the k step {self.k}")
        c_format, d_format = self.formats[2:]
        if isinstance(d_format, IntegerFormat):
            raise ValueError(
                f"promote_every adds in FP32, but {self.label} accumulates integers: leave promote_every out"
            )
        if 0 in c.shape:
            return self._c_as_result(c)
        outside = get_format("fp64" if d_format.name == "fp64" else "fp32")
        total = scale_rounded(c, 1.0, c_format, outside)
        zero = _zeros(c.shape, c.dtype)
        done = 0
        if rounding == "rne" and outside == d_format:
            whole = a.shape[1] // every * every
            sums = self._promoted_bits(a[:, :whole], b[:whole], total, scale_a, scale_b, every)
            if sums is not None:
                total, done = sums, whole
        for start in range(done, a.shape[1], every):
            part = self._padded(a, b, zero, scale_a, scale_b, [range(start, min(start + every, a.shape[1]))])
            total = add_rounded(total, scale_rounded(part, 1.0, d_format, outside), outside, rounding)
        return total if outside == d_format else scale_rounded(total, 1.0, outside, d_format)

    def _promoted_bits(self, a, b, total, scale_a, scale_b, every) -> np.ndarray | None:
        """Return FP32 sums of chains of `every` products in one call, None if the engine has no kernel for them."""
        return None

    def _padded(self, a, b, c, scale_a, scale_b, pieces: Sequence[range]) -> np.ndarray:
        """Return one chain over pieces of k, each padded with zeros to a multiple of the k step."""
        pieces_a, pieces_b, pieces_sa, pieces_sb = [], [], [], []
        block = self.block_size
        for piece in pieces:
            pad = -len(piece) % self.k
            taken = slice(piece.start, piece.stop, piece.step)
            x, y = a[:, taken], b[taken]
            if pad:
                x, y = np.pad(x, ((0, 0), (0, pad))), np.pad(y, ((0, pad), (0, 0)))
            pieces_a.append(x)
            pieces_b.append(y)
            if block is not None:
                if piece.step != 1:
                    raise ValueError(
                        f"{self.label} has block scales, so a chain must take consecutive values of k, got {piece}"
                    )
                first, last = piece.start // block, -(-piece.stop // block)
                missing = -(-(len(piece) + pad) // block) - (last - first)
                pieces_sa.append(np.pad(scale_a[:, first:last], ((0, 0), (0, missing))))
                pieces_sb.append(np.pad(scale_b[first:last], ((0, missing), (0, 0))))
        if len(pieces) == 1:
            a, b = pieces_a[0], pieces_b[0]
        else:
            a, b = np.concatenate(pieces_a, axis=1), np.concatenate(pieces_b, axis=0)
        if scale_a is not None:
            scale_a, scale_b = np.concatenate(pieces_sa, axis=1), np.concatenate(pieces_sb, axis=0)
        return self._chain_bits(a, b, c, scale_a, scale_b)
