import numpy as np

INT32: int
INT64: int
FLOAT: int
MOST_MODULI: int
LIMB: int
BLOCK: int
PIECE: int
PIECES: int
HIGH: int
MARGIN: int
TABLE_MODULUS: int

#: A matrix: its bytes, whether they are doubles, numbers of rows and columns, and whether rows (not columns) share an exponent.
Source = tuple[np.ndarray, bool, int, int, bool]
#: Exponents of the rows and of the columns of a result, and the powers of two of both, or None.
Scales = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]

def scan(
    source: Source,
    largest: np.ndarray,
    finite: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def slices(
    source: Source,
    powers: np.ndarray,
    balanced: bool,
    bits: int,
    planes: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def residues(
    source: Source,
    powers: np.ndarray,
    bits: int,
    moduli: np.ndarray,
    planes: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def looked_up(
    source: Source,
    powers: np.ndarray,
    bits: int,
    modulus: np.ndarray,
    tables: np.ndarray,
    planes: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def integers(
    source: Source,
    powers: np.ndarray,
    out: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def quantise(
    x: np.ndarray,
    is_double: bool,
    factor: float,
    limit: float,
    word: np.ndarray,
    rest: np.ndarray | None,
    largest: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def reduce(product: np.ndarray, modulus: int, accumulate: bool, out: np.ndarray, level: int, threads: int) -> None: ...
def join_slices(
    arrays: list[np.ndarray],
    types: np.ndarray,
    steps: np.ndarray,
    scales: Scales,
    out: np.ndarray,
    is_double: bool,
    level: int,
    threads: int,
) -> None: ...
def join_residues(
    planes: np.ndarray,
    inverses: np.ndarray,
    weights: np.ndarray,
    product: np.ndarray,
    scales: Scales,
    out: np.ndarray,
    is_double: bool,
    level: int,
    threads: int,
) -> None: ...
def reduce_sums(
    arrays: list[np.ndarray],
    types: np.ndarray,
    factors: np.ndarray,
    modulus: float,
    out: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def add_quantised(
    product: np.ndarray, kind: int, factor: float, accumulate: bool, sums: np.ndarray, level: int, threads: int
) -> None: ...
