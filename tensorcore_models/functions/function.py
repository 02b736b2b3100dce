"""This module defines `Function`: a special function on arrays, on one operand step by step, and as terms for solvers."""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from .._kernels.conversion import convert
from ..formats import Format, get_float_format
from ..formats.interop import as_array
from ..formats.rounding import decode, encode, encode_target, source_array
from ..machine.fp_state import default_fp_state
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for
from . import on_integers, sequences
from .rows import Row

#: Approximate number of lane operations per step of a sequence, for `threads_for`.
_OPERATIONS = 8
_HIGH = "fp64 high"


@dataclass(frozen=True)
class Function:
    """`Function` is one special function of one architecture; :func:`tensorcore_models.get_function` returns it.

    Attributes
    ----------
    arch, name : str
        Architecture and name of the function.
    row : Row
        Program and formats of the function, and its greatest error in words.
    evidence : str
        Evidence for the bits on this architecture.
    """

    arch: str
    name: str
    row: Row
    evidence: str

    def __str__(self) -> str:
        lines = [
            f"{self.arch}:{self.name}, {self.row.kind}, {self._signature}",
            f"error: {self.row.error or 'one rounding of the result, ' + self.row.rounding}",
            f"evidence: {self.evidence}",
        ]
        return "\n".join(lines)

    @property
    def _signature(self) -> str:
        word = "two in a word" if self.row.packed else "one in a word"
        return f"{', '.join([self.row.operand] * len(self.row.operands))} to {self.row.result}, {word}"

    # -- arrays ----------------------------------------------------------------------------------------------------------
    @property
    def operand_dtype(self) -> np.dtype:
        """Return the integer type of the operands' encodings: uint16 for a single 16-bit number, else uint32."""
        narrow = self._widened is not None and not self.row.packed
        return np.dtype(np.uint16 if narrow else np.uint32)

    @property
    def result_dtype(self) -> np.dtype:
        """Return the integer type of the results' encodings."""
        if self._narrowed is None:
            return np.dtype(np.uint32)
        bits = self._narrowed.bits * (2 if self.row.packed else 1)
        return np.dtype(f"u{bits // 8}")

    @default_fp_state
    def bits(self, *operands: Any) -> np.ndarray:
        """Return the function's results for encodings of its operands.

        Parameters
        ----------
        *operands : array_like of integers
            Encodings of the operands: FP32, FP16 or bf16 numbers, words with two 16-bit numbers for a packed instruction, or
            the upper words of FP64 numbers. Most functions have one operand. Divisions have two, and so have conversions into
            pairs, whose second operand becomes the lower half.

        Returns
        -------
        numpy.ndarray
            Encodings of the results in the operands' broadcast shape: uint16 for 16-bit results, else uint32.

        Raises
        ------
        ValueError
            If the number of operands is wrong, or an element does not fit into the operand's word.
        TypeError
            If an operand does not hold integers.

        Examples
        --------
        >>> import tensorcore_models as tcm
        >>> ex2 = tcm.get_function("hopper", "ex2.approx.ftz.f32")
        >>> [hex(x) for x in ex2.bits([0x3F800000, 0x3F000000])]
        ['0x40000000', '0x3fb504f2']
        """
        words = self._words(operands)
        shape = words[0].shape
        if self._widened is not None:
            halves = words[0].reshape(-1).view(np.uint16)
            return self._halves[halves].view(self.result_dtype).reshape(shape)
        if self.row.packed:
            upper, lower = (self._narrow(self._run([x])) for x in words)
            bits = self.result_dtype.type(8 * upper.itemsize)
            return (upper.astype(self.result_dtype) << bits | lower).reshape(shape)
        return self._narrow(self._run(words)).reshape(shape)

    @default_fp_state
    def values(self, *operands: Any) -> np.ndarray:
        """Return the function's results as numbers, for values of its operands.

        Parameters
        ----------
        *operands : array_like
            Values that the operand's format can represent. A packed instruction is computed for each element separately. The
            lower word of an FP64 number is ignored (PTX ISA).

        Returns
        -------
        numpy.ndarray
            Results as float32, or float64 for FP64 instructions. A conversion into pairs gives shape (..., 2), one result for
            each operand.

        Raises
        ------
        ValueError
            If the operand's format cannot represent a value (round it with ``tensorcore_models.round_to``), or the number of
            operands is wrong.
        TypeError
            If an operand does not hold real numbers.
        """
        self._check_count(operands)
        codes = [self._codes_of(x, name) for x, name in zip(operands, self.row.operands, strict=True)]
        if self._widened is not None:
            return self._numbers(self._halves[codes[0]])
        words = list(np.broadcast_arrays(*codes))
        if self.row.packed:
            return np.stack([self._numbers(self._narrow(self._run([x]))).reshape(x.shape) for x in words], axis=-1)
        return self._numbers(self._narrow(self._run(words))).reshape(words[0].shape)

    def _check_count(self, operands: tuple) -> None:
        if len(operands) != len(self.row.operands):
            wanted = f"{len(self.row.operands)} operands ({', '.join(self.row.operands)})"
            raise ValueError(f"{self.name} takes {wanted}, got {len(operands)}")

    def _words(self, operands: tuple) -> list[np.ndarray]:
        """Return the operands as arrays of words, broadcast to one shape."""
        self._check_count(operands)
        words = [
            self._checked(x, name, self.operand_dtype) for x, name in zip(operands, self.row.operands, strict=True)
        ]
        try:
            together = np.broadcast_arrays(*words)
        except ValueError:
            shapes = " and ".join(str(x.shape) for x in words)
            raise ValueError(f"operands of {self.name} have shapes {shapes}, expected shapes that broadcast") from None
        return [np.ascontiguousarray(x).reshape(x.shape) for x in together]

    def _checked(self, given: Any, name: str, dtype: np.dtype) -> np.ndarray:
        """Return one operand's words; an empty sequence of any type has no words."""
        x = as_array(given, name)
        if x.size:
            if x.dtype.kind not in "iu":
                raise TypeError(
                    f"{name} must hold encodings, which are integers, got dtype {x.dtype}; for values use .values"
                )
            most = (1 << 8 * dtype.itemsize) - 1
            if x.dtype != dtype and not (int(x.min()) >= 0 and int(x.max()) <= most):
                raise ValueError(
                    f"{name} of {self.name} must lie in [0, {most:#x}], got values from {x.min()} to {x.max()}"
                )
        return x.astype(dtype, copy=False)

    def _single(self, given: Any, name: str, dtype: np.dtype) -> int:
        """Return the word of a scalar operand as an integer."""
        x = self._checked(given, name, dtype)
        if x.ndim:
            raise TypeError(f"{name} of {self.name} has shape {x.shape}, expected one number: use bits for arrays")
        return int(x)

    def _codes_of(self, given: Any, name: str) -> np.ndarray:
        """Return encodings of values, or the upper words of FP64 values."""
        x = source_array(given, name)
        if self.row.operand == _HIGH:
            return (x.astype(np.float64).view(np.uint64) >> np.uint64(32)).astype(np.uint32)
        fmt = get_float_format(self.row.operand)
        codes = encode(x, fmt)
        back = decode(codes, fmt, np.float64)
        wide = x.astype(np.float64)
        if not ((back == wide) | (np.isnan(back) & np.isnan(wide))).all():
            raise ValueError(
                f"{name} of {self.name} holds values that {fmt.name} cannot represent: round {name} with "
                f"tensorcore_models.round_to"
            )
        return codes

    def _run(self, words: list[np.ndarray]) -> np.ndarray:
        """Return the program's results as uint32 of shape (n,)."""
        flat = [np.ascontiguousarray(x).reshape(-1) for x in words]
        program = self.sequence
        if not program.steps:
            return flat[0]
        out = np.empty(flat[0].size, np.uint32)
        threads = threads_for(_OPERATIONS * (len(program.steps) + 4) * out.size)
        second = flat[1] if len(flat) > 1 else None
        sequences.compiled(program).run(flat[0], second, out, isa_level(), threads)
        return out

    def _narrow(self, words: np.ndarray) -> np.ndarray:
        """Return FP32 words converted to the result's format."""
        fmt = self._narrowed
        if fmt is None:
            return words
        out = np.empty(words.size, fmt.container)
        if out.size:
            target, threads = _target(fmt, self.row.rounding), threads_for(_OPERATIONS * out.size)
            convert.encode(words.view(np.uint8), 4, out.view(np.uint8), out.itemsize, target, 0, isa_level(), threads)
        return out

    @cached_property
    def _halves(self) -> np.ndarray:
        """Return the results for all 16-bit operands."""
        codes = np.arange(1 << 16, dtype=np.uint16)
        wide = decode(codes, get_float_format(self.row.operand), np.float32)
        return self._narrow(self._run([wide.view(np.uint32)]))

    def _numbers(self, codes: np.ndarray) -> np.ndarray:
        if self.row.result == _HIGH:
            return (codes.astype(np.uint64) << np.uint64(32)).view(np.float64)
        if self._narrowed is None:
            return codes.view(np.float32)
        return decode(codes, self._narrowed, np.float32)

    # -- one operand -----------------------------------------------------------------------------------------------------
    def exact_bits(self, *operands: int) -> int:
        """Return the result for scalar operands, computed slowly in plain integers: the reference for :meth:`bits`.

        Parameters
        ----------
        *operands : int
            Encodings of the operands, as in :meth:`bits`.

        Raises
        ------
        ValueError, TypeError
            See :meth:`bits`; TypeError also if an operand is an array.
        """
        self._check_count(operands)
        named = zip(operands, self.row.operands, strict=True)
        return self._on(on_integers, [self._single(x, name, self.operand_dtype) for x, name in named])

    def terms(self, *operands: Any) -> Any:
        """Return the result as a bit-vector term (:mod:`tensorcore_models.bitvectors.terms`); the operands are terms, too.

        Raises
        ------
        tensorcore_models.bitvectors.passes.Unencodable
            If the function divides or takes a square root by the IEEE rules, which have no terms.
        """
        from . import on_terms

        self._check_count(operands)
        return self._on(on_terms, list(operands))

    def _on(self, z, words: list) -> Any:
        if self._widened is not None and self.row.packed:
            halves = [z.as_code(z.bits(words[0], high, high - 15), 16) for high in (31, 15)]
            return z.joined(self._one(z, halves[0]), self._one(z, halves[1]), 16)
        if self.row.packed:
            assert self._narrowed is not None
            return z.joined(self._one(z, words[0]), self._one(z, words[1]), self._narrowed.bits)
        return self._one(z, *words)

    def _one(self, z, *words: Any) -> Any:
        """Return one result, computed with the operations `z`."""
        fp32 = get_float_format("fp32")
        if self._widened is not None:
            words = (z.converted(words[0], self._widened, fp32),)
        found = sequences.evaluate(z, self.sequence, words)
        return found if self._narrowed is None else z.converted(found, fp32, self._narrowed, self.row.rounding)

    def steps(self, *operands: int) -> list[tuple[sequences.SequenceStep, list[Any], Any]]:
        """Return the instructions that compute one result, each with its operands and its result as plain integers.

        Parameters
        ----------
        *operands : int
            Encodings of the operands, as in :meth:`bits`; one number for a packed instruction.

        Raises
        ------
        ValueError, TypeError
            See :meth:`exact_bits`.
        """
        program = self.sequence
        if len(operands) != len(program.operands):
            wanted = f"{len(program.operands)} operands ({', '.join(program.operands)})"
            raise ValueError(f"{self.name} takes {wanted}, got {len(operands)}")
        dtype = np.dtype(np.uint32 if self._widened is None else np.uint16)
        words = [self._single(x, name, dtype) for x, name in zip(operands, program.operands, strict=True)]
        if self._widened is not None:
            words = [on_integers.converted(words[0], self._widened, get_float_format("fp32"))]
        known = sequences.values(on_integers, program, words)
        found = []
        for number, step in enumerate(program.steps):
            given = [source[0] if isinstance(source, tuple) else known[source] for source in step.sources]
            found.append((step, given, known[number]))
        return found

    # -- from the row ----------------------------------------------------------------------------------------------------
    @cached_property
    def sequence(self) -> sequences.InstructionSequence:
        """Return the sequence of instructions that computes one result."""
        names = ("x",) if self.row.packed else self.row.operands
        return sequences.parse(self.row.program, names)

    @cached_property
    def _widened(self) -> Format | None:
        return None if self.row.operand in ("fp32", "word", _HIGH) else get_float_format(self.row.operand)

    @cached_property
    def _narrowed(self) -> Format | None:
        return None if self.row.result in ("fp32", "word", _HIGH) else get_float_format(self.row.result)


@cache
def _target(fmt: Format, rounding: str):
    """Return the rules of a conversion whose NaN has all bits set except the sign."""
    target = encode_target(fmt, rounding, None, None, "keep", 0)
    nan_is_constant = 1  # as in convert.h
    return replace(target, nan_code=fmt.magnitude_mask, nan_rule=nan_is_constant)
