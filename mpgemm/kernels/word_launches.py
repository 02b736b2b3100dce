"""Describes operands as planes of words in memory, and makes the launches that write and multiply them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpgemm.kernels.configurations import BYTES, Configuration
from mpgemm.kernels.forms import KernelForm
from mpgemm.kernels.launches import NO_END, ProductEnd, check_depth, places_of, seeds_sums, tiles_of
from mpgemm.recovery.word_run import scaling_target
from tensorcore_models.formats import get_float_format
from tensorcore_models.gpu.launches import DescribedArray, TritonLaunch, View

#: k of planes is padded to a multiple of this at least, so that a tile of any kernel fits.
LEAST_DEPTH = 64
#: Rows of planes start at multiples of this number of bytes, which TMA requires.
ROW_BYTES = 16


@dataclass(frozen=True)
class WordPlanes:
    """`WordPlanes` describes the words of an operand in memory: a plane (batch, line, k) or (batch, k, line) for each word.

    Attributes
    ----------
    format : str
        Format of the words.
    words, batches, lines : int
        Numbers of words, batches and lines; lines are rows of A or columns of B.
    k : int
        Length of k, padded by zeros to whole tiles.
    inner : {"k", "lines"}
        Dimension whose elements are neighbours in memory.
    """

    format: str
    words: int
    batches: int
    lines: int
    k: int
    inner: str

    @property
    def pitch(self) -> int:
        """Number of elements from one row of a plane to the next."""
        unit = ROW_BYTES // BYTES[self.format]
        return -(-(self.k if self.inner == "k" else self.lines) // unit) * unit

    @property
    def rows(self) -> int:
        """Number of rows of a plane for one batch."""
        return self.lines if self.inner == "k" else self.k

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the whole array."""
        return self.words * self.batches * self.rows, self.pitch

    @property
    def plane(self) -> int:
        """Number of elements from one word to the next."""
        return self.batches * self.rows * self.pitch

    @property
    def first(self) -> int:
        """Number of rows from one batch to the next; 0 if all batches share one operand."""
        return self.rows if self.batches > 1 else 0

    def described(self, data: Any, lines: int, depth: int) -> DescribedArray:
        """Return the array with the TMA descriptor for boxes of lines x depth."""
        box = (lines, depth) if self.inner == "k" else (depth, lines)
        return DescribedArray(data, self.format if self.format != "tf32" else "fp32", self.shape, box)

    def view(self, data: Any, side: int) -> View:
        """Return the array as :func:`mpgemm.kernels.launches.gemm_launch` takes planes of A (side 0) or B (side 1)."""
        line, inner = (self.pitch, 1) if self.inner == "k" else (1, self.pitch)
        strides = (inner, line) if side else (line, inner)
        kind = self.format if self.format != "tf32" else "fp32"
        return View(data, kind, (self.first * self.pitch, *strides), self.plane)


def planes_of(form: KernelForm, side: int, x: View, batches: int, lines: int, k: int, depth: int) -> WordPlanes:
    """Return the layout of an operand's words: that of its elements, except that tf32 always lies along k, as units need it."""
    line, inner = (x.strides[2], x.strides[1]) if side else (x.strides[1], x.strides[2])
    lined = line == 1 and inner != 1 and form.format != "tf32"
    return WordPlanes(form.format, form.words[side], batches, lines, -(-k // depth) * depth, "lines" if lined else "k")


def padded_depth(form: KernelForm) -> int:
    """Return the multiple to which k of planes is padded."""
    return max(LEAST_DEPTH, form.tile or 0)


#: Lines and length of k that a program splits at a time, by whether lines are scaled and by the inner dimension.
_SPLIT_TILES = {(True, "k"): (8, 256), (True, "lines"): (32, 64), (False, "k"): (32, 128), (False, "lines"): (64, 64)}
#: Number of warps of a program that splits.
SPLIT_WARPS = 4


def split_operands_launch(
    form: KernelForm, sizes: tuple[int, int, int], operands: tuple[View | None, View | None],
    planes: tuple[WordPlanes | None, WordPlanes | None], words: tuple[Any, Any], exponents: tuple[Any, Any] = (None, None),
    counts: Sequence[int] | None = None,
) -> TritonLaunch:  # fmt: skip
    """Return the launch that writes the words of A, of B, or of both.

    Parameters
    ----------
    form : KernelForm
        Constants of the method.
    sizes : (int, int, int)
        Sizes m, n, k.
    operands : (View or None, View or None)
        A and B; None for an operand that is not split.
    planes : (WordPlanes or None, WordPlanes or None)
        Layouts of the words.
    words : (Tensor, Tensor)
        Arrays for the words, with the planes' shapes.
    exponents : (Tensor of int32, Tensor of int32), optional
        Arrays for the exponents of rows and columns, if these are scaled.
    counts : (int, int), optional
        Numbers of words that are written; by default the form's.
    """
    m, n, k = sizes
    scaled = any(e is not None for e in exponents)
    # 24 bits of the target suffice, because an FP32 significand above the target is above its first 24 bits
    significand, top = np.frexp(scaling_target(get_float_format(form.format), get_float_format("fp32"), k))
    arguments: dict[str, Any] = {
        **places_of("a", operands[0], ("row", "k")), **places_of("b", operands[1], ("k", "column")), "m": m, "n": n, "k": k,
        "padded": next(p.k for p in planes if p is not None), "top": int(top), "significand": int(significand * 2.0**24),
    }  # fmt: skip
    tiles, programs = [], []
    for side, (name, place, layout) in enumerate(zip("ab", ("row", "column"), planes, strict=True)):
        arguments[f"{name}_words"] = None if layout is None else layout.view(words[side], side)
        arguments[f"{place}_exponents"] = (
            View(exponents[side], "s32", (0, 0, 0)) if layout is not None and scaled else None
        )
        arguments[f"{name}_pitch"] = 0 if layout is None else layout.pitch
        arguments[f"{name}_plane"] = 0 if layout is None else layout.plane
        lines, depth = _SPLIT_TILES[scaled, "k" if layout is None else layout.inner]
        steps = 0 if layout is None else layout.batches * -(-layout.lines // lines)
        programs.append(steps if layout is None or scaled else steps * -(-layout.k // depth))
        tiles.append((lines, depth))
    arguments["a_programs"] = programs[0]
    constants = {
        "WORDS": tuple(counts or form.words), "INNER": tuple("k" if p is None else p.inner for p in planes),
        "FORMAT": form.format, "ROUNDING": form.rounding, "SCALE": form.scale, "SCALED": scaled,
        "A_LINES": tiles[0][0], "A_DEPTH": tiles[0][1], "B_LINES": tiles[1][0], "B_DEPTH": tiles[1][1],
    }  # fmt: skip
    return TritonLaunch("split_operands", arguments, constants, sum(programs), SPLIT_WARPS)


def word_product_launch(
    form: KernelForm, configuration: Configuration, sizes: tuple[int, int, int, int], planes: tuple[WordPlanes, WordPlanes],
    words: tuple[Any, Any], out: View, end: ProductEnd = NO_END, exponents: tuple[Any, Any] | None = None,
    part: int | None = None,
) -> TritonLaunch:  # fmt: skip
    """Return the launch that multiplies planes of words by TMA; see :func:`mpgemm.kernels.launches.gemm_launch`."""
    check_depth(form, configuration)
    batch, m, n, k = sizes
    seed, parts = seeds_sums(form, end, exponents), 1 if part is None else -(-k // part)
    rows, columns = exponents or (None, None)
    arguments: dict[str, Any] = {
        "a": planes[0].described(words[0], configuration.rows, configuration.depth),
        "b": planes[1].described(words[1], configuration.columns, configuration.depth),
        **end.arguments(), **places_of("out", out, ("row", "column")),
        "row_exponents": None if rows is None else View(rows, "s32", (0, 0, 0)),
        "column_exponents": None if columns is None else View(columns, "s32", (0, 0, 0)),
        "m": m, "n": n, "k": planes[0].k, "part_k": part, "a_first": planes[0].first, "b_first": planes[1].first,
        "a_plane": planes[0].batches * planes[0].rows, "b_plane": planes[1].batches * planes[1].rows,
    }  # fmt: skip
    constants = {
        **form.constants(), **configuration.constants(), "INNER": (planes[0].inner, planes[1].inner),
        "SCALED": exponents is not None, "SEED": seed, **end.constants(seed), "PARTS": parts,
    }  # fmt: skip
    grid = tiles_of(batch * parts, m, n, configuration)
    return TritonLaunch("word_product", arguments, constants, grid, configuration.warps, configuration.stages)
