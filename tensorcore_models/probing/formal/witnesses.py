"""Runs inputs that a solver found again, on the compiled kernels and on the integer reference."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...aspects.values import decode_value
from ...bitvectors import terms as t
from ...formats import Format
from ...reference import dot_bits
from ...results import Result
from .encoding import Formats, Inputs, Modelled, formats_of

#: Rows and columns of the product that runs a witness on the fast kernels, large enough for all of them.
_TILE = 64


class Contradiction(RuntimeError):
    """`Contradiction` is the error for two computations of one result that differ, so that one of them has a fault.

    The computations are the kernels, the integer reference and the encoding for solvers.
    """


@dataclass(frozen=True, repr=False)
class Witness(Result):
    """`Witness` holds the operands of one dot product, as encodings.

    Parameters
    ----------
    a, b : tuple of int
        Operands of A and of B, k numbers each.
    c : int
        Addend.
    formats : Formats
        Formats of the encodings.
    scale_a, scale_b : tuple of int
        Block scales; empty for formats without block scales.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    formats: Formats
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()

    def to_rows(self) -> list[dict]:
        """Return one row for each product with the encodings of a and b."""
        return [{"k": k, "a": x, "b": y} for k, (x, y) in enumerate(zip(self.a, self.b, strict=True))]

    def sentences(self) -> list[str]:
        """Return a sentence with the addend and the number of products."""
        return [f"{len(self.a)} products and c = {shown(self.c, self.formats.c)}"]

    @classmethod
    def of(cls, inputs: Inputs, formats: Formats, values: Mapping[str, int]) -> "Witness":
        """Return the operands for given values of the solver's variables."""

        def read(codes) -> tuple[int, ...]:
            return tuple(t.evaluate(codes, values))

        return cls(
            read(inputs.a), read(inputs.b), read([inputs.c])[0], formats, read(inputs.scale_a), read(inputs.scale_b)
        )

    def __str__(self) -> str:
        pairs = Counter(zip(self.a, self.b, strict=True))
        zeros = pairs.pop((0, 0), 0)
        lines = [f"c = {shown(self.c, self.formats.c)}"]
        for (x, y), count in pairs.items():
            times = "" if count == 1 else f"{count} times "
            lines.append(f"+ {times}{shown(x, self.formats.a)} * {shown(y, self.formats.b)}")
        return "\n".join(lines + ([f"+ {zeros} products of zeros"] if zeros else []))

    def run(self, engine: Modelled) -> int:
        """Return d, if the compiled kernels (one element, and each element of a tile) and the integer reference agree on it.

        Raises
        ------
        Contradiction
            If the results differ.
        """
        results = {"reference": self._on_reference(engine)}
        for name, size in (("one element", 1), (f"a {_TILE} x {_TILE} tile", _TILE)):
            found = np.unique(self._on_kernel(engine, size))
            results[name] = int(found[0]) if found.size == 1 else found.tolist()
        if len(set(map(str, results.values()))) > 1:
            raise Contradiction(f"{engine.label} on\n{self}\nresults differ: {results}")
        return results["reference"]

    def _on_reference(self, engine: Modelled) -> int:
        scales: dict[str, Any] = {}
        if self.scale_a:
            scales = {
                "scale_a": list(self.scale_a),
                "scale_b": list(self.scale_b),
                "scale_format": self.formats.scale,
                "block_size": self.formats.block_size,
            }
        return dot_bits(engine.accumulator, list(self.a), list(self.b), self.c, engine.formats, **scales)

    def _on_kernel(self, engine: Modelled, size: int) -> np.ndarray:
        def rows(codes: tuple[int, ...], fmt: Format) -> np.ndarray:
            return np.tile(np.array(codes, fmt.container), (size, 1))

        f = self.formats
        scales: dict[str, Any] = {}
        if f.scale is not None:
            scales = {"scale_a": rows(self.scale_a, f.scale), "scale_b": rows(self.scale_b, f.scale).T}
        c = np.full((size, size), self.c, f.c.container)
        return engine.gemm_bits(rows(self.a, f.a), rows(self.b, f.b).T, c, **scales)


def shown(code: int, fmt: Format) -> str:
    """Return an encoding with its value, as text."""
    kind, negative, significand, exponent = fmt.decode_exact(code)
    value: str
    if kind != "finite":
        value = "-inf" if kind == "inf" and negative else kind
    elif significand == 0:
        value = "-0" if negative else "0"
    else:
        leading = significand.bit_length() - 1
        value = f"{'-' if negative else ''}{significand / (1 << leading)!r} * 2^{exponent + leading}"
    return f"0x{code:0{-(-fmt.bits // 4)}x} ({value})"


def witness_formats(*engines: Modelled) -> Formats:
    """Return the operand formats that all engines share; raise ValueError if they differ."""
    found = [formats_of(engine) for engine in engines]
    for other in found[1:]:
        if other != found[0]:
            raise ValueError(f"the engines must have the same operand and result formats, got {found[0]} and {other}")
    return found[0]


def exact_value(code: int, fmt: Format) -> Fraction:
    """Return the value of a finite encoding; raise ValueError for an infinity or a NaN."""
    value = decode_value(code, fmt)
    if value is None:
        raise ValueError(f"{shown(code, fmt)} of {fmt.name} is not finite, expected a finite number")
    return value
