"""Defines black boxes that answer dot products, and the faults for which a box is refused before the search."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import kernels
from ...engines.callable_engine import as_engine
from ...engines.engine import Engine, FormatLike
from ...engines.instruction import Instruction
from ...engines.matrix_engine import MatrixEngine
from ...formats import get_format
from ..interface import DotBatch, Interface, along_diagonals
from ..random_operands import operands

#: Rows and columns of the matrices in which one dot product is asked at every position.
TILE = 4
#: Number of dot products that are asked again, to see whether the answers stay the same.
REPEATED = 64


class Fault(Exception):
    """`Fault` is the reason why a box cannot be identified: it does not answer, or not always the same.

    `batch` has an example.
    """

    def __init__(self, kind: str, message: str, batch: DotBatch | None = None):
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.batch = kind, message, batch


@dataclass
class Box:
    """`Box` is a black box that answers batches of dot products.

    Parameters
    ----------
    interface : Interface
        Formats of the box, and the number of products that one call adds.
    answer : callable
        Function that takes a DotBatch and returns the encodings of d, shape (size,).
    label : str
        Name of the box.
    matrix : callable, optional
        Function that takes encodings of matrices a (m, k), b (k, n), c (m, n) and scales, and returns encodings of d (m, n).
        None: the box answers single dot products only.
    recorded : DotBatch, optional
        Inputs that the box can answer, if its answers were recorded earlier.

    Attributes
    ----------
    queries : int
        Number of dot products that a search constructed and gave to the box so far.
    vectors : int
        Number of random dot products that were given to the box so far, to refute a specification.
    """

    interface: Interface
    answer: Callable[[DotBatch], np.ndarray]
    label: str = "box"
    matrix: Callable[..., np.ndarray] | None = None
    recorded: DotBatch | None = None
    queries: int = field(default=0, init=False)
    vectors: int = field(default=0, init=False)

    def ask(self, batch: DotBatch, *, chosen: bool = True) -> np.ndarray:
        """Return the box's result d for each dot product of a batch, as an encoding.

        `chosen` says whether a search constructed the inputs: then the count `queries` grows by the number of dot products,
        otherwise (random inputs) the count `vectors`.

        Raises
        ------
        Fault
            If the box raises, or returns a result of another shape or type.
        """
        if chosen:
            self.queries += batch.size
        else:
            self.vectors += batch.size
        return self._checked(self.answer, (batch.size,), batch, batch)

    def ask_matrices(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return the box's result for a product of random matrices as encodings; its elements are added to the count `vectors`.

        Raises
        ------
        Fault
            See :meth:`ask`.
        """
        if self.matrix is None:
            raise ValueError(f"{self.label} answers single dot products only: give the Box a `matrix` function")
        self.vectors += c.size
        return self._checked(self.matrix, c.shape, None, a, b, c, scale_a, scale_b)

    def _checked(self, function, shape, batch, *args) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):  # a user's callable may be numpy, and special values are probed
                d = function(*args)
        except (KeyboardInterrupt, MemoryError):
            raise
        except (Exception, SystemExit) as error:  # a box that ends the program does not answer
            raise Fault("raises", f"{type(error).__name__}: {error}", self._culprit(batch)) from error
        container = self.interface.formats[3].container
        if not isinstance(d, np.ndarray) or d.dtype.kind not in "ui" or d.dtype.itemsize != container.itemsize:
            what = d.dtype if isinstance(d, np.ndarray) else type(d).__name__
            raise Fault("type", f"the result holds {what}, expected encodings in {container}", batch)
        if d.shape != shape:
            raise Fault("shape", f"the result has shape {d.shape}, expected {shape}", batch)
        return d.view(container)

    def _culprit(self, batch: DotBatch | None) -> DotBatch | None:
        """Return the first dot product of the batch for which the box raises if it is asked alone."""
        if batch is None:
            return None
        for index in range(batch.size):
            one = batch.rows(slice(index, index + 1))
            try:
                self.answer(one)
            except (Exception, SystemExit):
                return one
        return None


def _wrapped(function: Callable) -> Callable:
    """Return the function, called on copies that it may overwrite, and without scale arguments if there are no scales."""

    def run(*operands):
        return function(*(x.copy() for x in operands if x is not None))

    return run


def _one_by_one(matrix: Callable[..., np.ndarray], interface: Interface) -> Callable[[DotBatch], np.ndarray]:
    """Return a function that answers each dot product by one call of `matrix`, with one row and one column."""
    container = interface.formats[3].container

    def answer(batch: DotBatch) -> np.ndarray:
        out = np.empty(batch.size, container)
        for i in range(batch.size):
            scales = () if batch.scales is None else (batch.scales[0][i][None], batch.scales[1][i][:, None])
            d = matrix(batch.a[i][None], batch.b[i][:, None], batch.c[i].reshape(1, 1), *scales)
            if not isinstance(d, np.ndarray) or d.shape != (1, 1) or d.dtype.itemsize != container.itemsize:
                return d  # the caller refuses it and gives the reason
            out[i] = d[0, 0]
        return out

    return answer


def _tiled(unit: Any, interface: Interface) -> Callable[[DotBatch], np.ndarray]:
    """Return a function that answers dot products by an instruction on tiles: each tile's diagonal holds some of them."""

    def answer(batch: DotBatch) -> np.ndarray:
        d = unit.mma_bits(*along_diagonals(interface, batch))
        return np.diagonal(d, axis1=1, axis2=2).reshape(-1)[: batch.size].copy()

    return answer


def model_answer(unit: MatrixEngine) -> Callable[[DotBatch], np.ndarray]:
    """Return a function that answers dot products by a model, with the generic kernel, which needs no preparation."""
    low = kernels.lowered(unit)

    def answer(batch: DotBatch) -> np.ndarray:
        scales = () if batch.scales is None else (batch.scales[0][:, None, :], batch.scales[1][:, :, None])
        d = kernels.generic_batch_bits(low, batch.a[:, None, :], batch.b[:, :, None], batch.c[:, None, None], *scales)
        return d[:, 0, 0]

    return answer


def as_box(
    unit: Any,
    *,
    a_format: FormatLike | None = None,
    b_format: FormatLike | None = None,
    c_format: FormatLike | None = None,
    d_format: FormatLike | None = None,
    k: int | None = None,
    scale_format: FormatLike | None = None,
    block_size: int | None = None,
    raw: bool = False,
    key: int | None = None,
) -> Box:
    """Return a black box for an engine or a function that multiplies matrices.

    Parameters
    ----------
    unit : Box, Engine or callable
        Matrix unit. A callable is f(a, b, c) -> d on arrays of shapes (m, k), (k, n), (m, n); with block scales it also takes
        scale_a (m, blocks) and scale_b (blocks, n).
    a_format, b_format, c_format, d_format, k, scale_format, block_size
        Formats of a callable's operands and result, number of products that it adds, and its block scales; leave them out for
        an engine, which knows them. b_format defaults to a_format, c_format to d_format.
    raw : bool
        Whether the callable takes and returns encodings (unsigned integers); otherwise values in the formats' natural types.
    key : int, optional
        Key of a callable's stochastic roundings (:class:`tensorcore_models.FusedDotAdd` says how it is used); only with raw.

    Raises
    ------
    TypeError
        If `unit` is neither a box, an engine nor a callable.
    ValueError
        If formats or k are missing or contradict each other.
    """
    if isinstance(unit, Box):
        return unit
    if isinstance(unit, Engine):
        return _engine_box(unit)
    if not callable(unit):
        raise TypeError(f"unit must be an engine or a callable f(a, b, c), got {type(unit).__name__}")
    if a_format is None or d_format is None or k is None:
        raise ValueError(
            f"a callable needs a_format, d_format and k (number of products), got {a_format!r}, {d_format!r} and {k!r}"
        )
    if (scale_format is None) != (block_size is None):
        raise ValueError(f"pass both scale_format and block_size or neither, got {scale_format!r} and {block_size!r}")
    if not raw:
        if scale_format is not None:
            raise ValueError("block scales need raw=True: the callable takes and returns encodings")
        if key is not None:
            raise ValueError("key needs raw=True: the callable takes and returns encodings")
        return _engine_box(
            as_engine(unit, a_format=a_format, b_format=b_format, c_format=c_format, d_format=d_format, k=k)
        )
    formats = tuple(get_format(f) for f in (a_format, b_format or a_format, c_format or d_format, d_format))
    scale = None if scale_format is None else get_format(scale_format)
    interface = Interface(formats, k, scale, block_size, key=key)
    matrix = _wrapped(unit)
    return Box(interface, _one_by_one(matrix, interface), getattr(unit, "__name__", "callable"), matrix)


def _engine_box(unit: Engine) -> Box:
    interface = Interface.of(unit)
    if isinstance(unit, MatrixEngine):
        step = dataclasses.replace(unit, rollup=None) if isinstance(unit, Instruction) else unit
        return Box(interface, model_answer(unit), unit.label, step.gemm_bits)  # a dot product has no final rollup
    row = getattr(unit, "row", None)
    if row is not None and hasattr(unit, "mma_bits"):
        return Box(interface, _tiled(unit, Interface.of(unit, row.m, row.n)), unit.label, unit.gemm_bits)
    return Box(interface, _one_by_one(unit.gemm_bits, interface), unit.label, unit.gemm_bits)


def examine(box: Box, rng: np.random.Generator) -> None:
    """Check that a box answers, always the same, and the same at each position of a matrix; raise a Fault if not."""
    kind = "random_bits" if box.interface.integer else "normals"
    batch = box.recorded.rows(slice(0, REPEATED)) if box.recorded else random_dots(box.interface, kind, REPEATED, rng)
    first = box.ask(batch)
    for again in (batch, batch.rows(slice(None, None, -1))):
        d = box.ask(again)
        d = d if again is batch else d[::-1]
        if (d != first).any():
            one = int(np.flatnonzero(d != first)[0])
            raise Fault("not deterministic", f"one dot product gave {first[one]:#x} and {d[one]:#x}", batch.rows([one]))
    if box.matrix is not None and box.interface.key is None:
        _examine_positions(box, batch, first)


def _examine_positions(box: Box, batch: DotBatch, wanted: np.ndarray) -> None:
    """Ask a product of matrices with equal rows of A and equal columns of B: every element is the same dot product."""
    for index in range(0, batch.size, 8):
        a, b = np.repeat(batch.a[index][None], TILE, 0), np.repeat(batch.b[index][:, None], TILE, 1)
        c = np.full((TILE, TILE), batch.c[index])
        scales = () if batch.scales is None else (batch.scales[0][index][None], batch.scales[1][index][:, None])
        d = box.ask_matrices(a, b, c, *(np.repeat(scale, TILE, axis) for axis, scale in enumerate(scales)))
        if (d != wanted[index]).any():
            row, column = (int(i) for i in np.argwhere(d != wanted[index])[0])
            raise Fault(
                "depends on the position",
                f"the same operands give {wanted[index]:#x} alone and {d[row, column]:#x} in row {row}, column {column} "
                f"of {TILE} x {TILE}",
                batch.rows([index]),
            )


def refuse_trivial(box: Box, batch: DotBatch, answers: np.ndarray) -> None:
    """Refuse, by a Fault, a box that multiplies nothing: all of its answers are one number, or always c."""
    c_format, d_format = box.interface.formats[2:]
    if batch.size > 1 and (answers == answers[0]).all():
        raise Fault("no product", f"all {batch.size} answers are {int(answers[0]):#x}", batch.rows([0]))
    if c_format == d_format and (answers == batch.c).all():
        live = np.flatnonzero(batch.addends > 1)
        raise Fault("no product", f"all {batch.size} answers are c", batch.rows(live[:1] if live.size else [0]))


def random_dots(interface: Interface, kind: str, count: int, rng: np.random.Generator) -> DotBatch:
    """Return independent dot products of a kind of :data:`tensorcore_models.probing.random_operands.KINDS`."""
    a, b, c, scale_a, scale_b = operands(interface.tile(1, 1), kind, count, rng)
    scales = () if scale_a is None or scale_b is None else (scale_a[:, 0], scale_b[:, :, 0])
    return DotBatch(a[:, 0], b[:, :, 0], c[:, 0, 0], *scales)
