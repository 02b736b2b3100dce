"""Defines the inputs of an experiment: the source of a pair of matrices and the values that identify it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpgemm.experiments.journal import content_key
from mpgemm.inputs import matrices
from mpgemm.inputs.files import check_matrix, read_matrix, read_stack
from mpgemm.inputs.sizes import check_fits, check_shapes
from tensorcore_models.formats.rounding import source_array


@dataclass(frozen=True)
class Case:
    """`Case` is one input of an experiment."""

    label: str  #: Name in tables and progress lines.
    identity: Mapping  #: JSON-compatible values that determine the matrices, the journal's key.
    #: Function that returns the pair, in float32 if that holds all values of a matrix, otherwise in float64 (:func:`as_given`).
    #: It may be called more than once, and can be pickled.
    load: Callable[[], matrices.Pair] = field(compare=False)
    note: str = ""  #: Facts that a reader must know about the input, such as a conversion or a licence.
    group: str = ""  #: Name that cases share which differ only in their seed; their errors are averaged.
    #: Function that returns the C that is added to the product; see :func:`with_addend`.
    addend: Callable[[], np.ndarray] | None = field(default=None, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "group", self.group or self.label)

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return (A, B, C), with C None for a product without an addend."""
        return *self.load(), None if self.addend is None else self.addend()


def distinct_cases(cases: Sequence[Case]) -> list[Case]:
    """Return the cases without copies: a case with the label and matrices of an earlier case is not a second seed."""
    return list({(case.group, case.label, content_key(case.identity)): case for case in cases}.values())


def stacks_of(cases: Sequence[Case]) -> set[str]:
    """Return the groups of several cases without seeds, which are the pairs of a stack."""
    members = Counter(case.group for case in cases if "seed" not in case.identity)
    return {group for group, count in members.items() if count > 1}


def shipped_case(name: str) -> Case:
    """Return the case of a pair that ships with the package."""
    a, b = matrices.load_shipped(name)
    row = matrices.SHIPPED[name]
    identity = {"shipped": name, "sha256": _digest(a, b)}
    return Case(f"shipped:{name}", identity, partial(matrices.load_shipped, name), f"{row.summary}. {row.licence}.")


def generated_cases(
    distribution: str,
    shape: Sequence[int],
    seeds: Sequence[int],
    parameters: Mapping[str, float] | None = None,
    precision: str = "fp32",
) -> list[Case]:
    """Return one case for each seed of a distribution, all in one group."""
    m, k, n = shape
    if min(shape) >= 0:
        check_fits((m * k + k * n + m * n,), 8, f"matrices of {m} x {k} x {n}")
    row = matrices.get_distribution(distribution)
    values = row.complete(parameters or {})
    group = f"{distribution}({', '.join(f'{key}={value:g}' for key, value in values.items())}) {m}x{k}x{n}"
    wide: dict[str, Any] = {"precision": precision} if precision != "fp32" else {}
    group += "".join(f" {name}" for name in wide.values())

    def case(seed: int) -> Case:
        identity = {"distribution": distribution, "parameters": values, "shape": [m, k, n], "seed": seed, **wide}
        return Case(
            f"{group} seed {seed}",
            {**identity, "numpy": np.__version__},
            partial(matrices.generate, distribution, m, k, n, seed, **{**values, **wide}),
            row.summary,
            group,
        )

    return [case(seed) for seed in seeds]


def file_case(a_path: Path, b_path: Path) -> Case:
    """Return the case of two files with one matrix each; see :func:`file_cases`."""
    return _matrices_case(read_matrix(a_path), read_matrix(b_path), str(a_path), str(b_path))


def file_cases(
    a_path: Path, b_path: Path, a_name: str | None = None, b_name: str | None = None, *, transpose_b: bool = False
) -> list[Case]:
    """Return the cases of two files, which hold a matrix or a stack of matrices each.

    There is one case for each pair of a stack, and they form one group; a single matrix is paired with every matrix of the
    other file's stack. Numbers keep their precision; a case's note says how many numbers FP32 cannot hold.

    a_path, b_path, a_name, b_name: arguments of :func:`mpgemm.inputs.files.read_stack`.
    transpose_b: whether the file holds B transposed, as layers keep their weights (x @ W.T).
    Raises ValueError, TypeError and OSError like :func:`mpgemm.inputs.files.read_stack`, and ValueError if the shapes or the
        stacks do not match.
    """
    a, b = read_stack(a_path, a_name), read_stack(b_path, b_name)
    if transpose_b:
        b = b.swapaxes(-1, -2)
    count = max(len(x) if x.ndim == 3 else 1 for x in (a, b))
    if any(x.ndim == 3 and len(x) != count for x in (a, b)):
        raise ValueError(
            f"{a_path} holds {len(a)} matrices and {b_path} holds {len(b)}; expected equal numbers, or one matrix in one file"
        )
    if a.ndim == b.ndim == 2:
        return [_matrices_case(a, b, str(a_path), str(b_path))]
    cases = []
    for number in range(count):
        first, second = (x[number] if x.ndim == 3 else x for x in (a, b))
        names = [f"{path}[{number}]" if x.ndim == 3 else str(path) for x, path in ((a, a_path), (b, b_path))]
        cases.append(_matrices_case(first, second, *names))
    stack = f"{Path(a_path).name} x {Path(b_path).name}"
    return [replace(case, group=stack) for case in cases] if count > 1 else cases


def _matrices_case(a_read: np.ndarray, b_read: np.ndarray, a_path: str, b_path: str) -> Case:
    (a, a_beyond), (b, b_beyond) = as_given(a_read, a_path), as_given(b_read, b_path)
    if a.shape[1] != b.shape[0]:
        hint = "; --transpose-b reads a B that is stored transposed, as for x @ W.T" if a.shape[1] == b.shape[1] else ""
        raise ValueError(
            f"{a_path} is {a.shape[0]} x {a.shape[1]} and {b_path} is {b.shape[0]} x {b.shape[1]}; "
            f"expected a B with {a.shape[1]} rows, one for each column of A{hint}"
        )
    note = _beyond_fp32(("A", a, a_beyond), ("B", b, b_beyond))
    label = f"{Path(a_path).name} x {Path(b_path).name}"
    return Case(label, {"files": label, "sha256": _digest(a, b)}, partial(_given, a, b), note)


def _beyond_fp32(*operands: tuple[str, np.ndarray, int]) -> str:
    """Return a warning if operands have numbers that FP32 cannot hold, otherwise ""."""
    found = [f"{count} of {x.size} elements of {name}" for name, x, count in operands if count]
    return f"FP32 cannot hold {' and '.join(found)}; methods on FP32 or narrower operands round them" if found else ""


def with_addend(case: Case, source: str) -> Case:
    """Return the case with an addend C from a matrix file (a name with a suffix) or from a distribution.

    A distribution is drawn with the case's seed, or with 0 if the case has none.
    """
    m, n = _product_shape(case)
    label = Path(source).name
    if not Path(source).suffix and source in matrices.DISTRIBUTIONS:
        seed = case.identity.get("seed", 0)
        values = matrices.get_distribution(source).complete({})
        identity: dict = {"distribution": source, "parameters": values, "seed": seed, "numpy": np.__version__}
        load, note = partial(matrices.generate_addend, source, m, n, seed, **values), ""
    elif Path(source).suffix:
        c, beyond = as_given(read_matrix(Path(source)), source)
        if c.shape != (m, n):
            raise ValueError(
                f"C in {source} is {c.shape[0]} x {c.shape[1]}, expected {m} x {n}, the product of {case.label}"
            )
        identity, load = {"file": label, "sha256": _digest(c)}, partial(np.asarray, c)
        note = _beyond_fp32(("C", c, beyond))
    else:
        raise ValueError(
            f"C is {source!r}, expected a matrix file (a name with a suffix) or one of {', '.join(matrices.DISTRIBUTIONS)}"
        )
    return replace(
        case,
        label=f"{case.label} + {label}",
        group=f"{case.group} + {label}",
        identity={**case.identity, "addend": identity},
        note="; ".join(filter(None, (case.note, note))),
        addend=load,
    )


def _product_shape(case: Case) -> tuple[int, int]:
    if "shape" in case.identity:
        return case.identity["shape"][0], case.identity["shape"][2]
    a, b = case.load()
    return a.shape[0], b.shape[1]


def given_case(a, b, c=None, label: str = "") -> Case:
    """Return the case of matrices in memory, of any real type; by default the label states their shapes."""
    (a, a_beyond), (b, b_beyond) = as_given(a, "a"), as_given(b, "b")
    check_shapes(a, b)
    operands = [("A", a, a_beyond), ("B", b, b_beyond)]
    if c is not None:
        c, c_beyond = as_given(c, "c")
        check_shapes(a, b, c)
        operands.append(("C", c, c_beyond))
    label = label or f"{a.shape[0]} x {a.shape[1]} times {b.shape[0]} x {b.shape[1]}"
    identity = {"given": label, "sha256": _digest(*(x for _, x, _ in operands))}
    addend = None if c is None else partial(np.asarray, c)
    return Case(label, identity, partial(_given, a, b), _beyond_fp32(*operands), addend=addend)


def _given(a: np.ndarray, b: np.ndarray) -> matrices.Pair:
    return a, b


def as_given(x: np.ndarray, name: str) -> tuple[np.ndarray, int]:
    """Return x in float32 if that holds all of its values, otherwise in float64, and the number of elements FP32 cannot hold.

    Raises TypeError and ValueError like :func:`mpgemm.inputs.files.check_matrix`, and for values that float64 may not hold
        (long doubles, integers beyond 2^53), because the product of rounded numbers may differ in all of its digits.
    """
    x = source_array(check_matrix(x, name), name)
    if x.dtype == np.float32:
        return np.ascontiguousarray(x), 0
    with np.errstate(over="ignore", under="ignore"):
        wide = np.ascontiguousarray(x, dtype=np.float64)
        narrow = wide.astype(np.float32)
        beyond = int(np.count_nonzero((narrow != wide) & ~np.isnan(wide)))
    return (wide, beyond) if beyond else (narrow, 0)


def as_fp32(x: np.ndarray) -> np.ndarray:
    """Return x rounded to float32 (to nearest, ties to even), the operand format of the methods for FP32."""
    with np.errstate(over="ignore", under="ignore"):
        return x.astype(np.float32, copy=False)


def _digest(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for x in arrays:
        digest.update(f"{x.shape}{x.dtype.str}".encode())
        digest.update(np.ascontiguousarray(x).tobytes())
    return digest.hexdigest()
