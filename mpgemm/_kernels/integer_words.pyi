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

def scan(
    x: np.ndarray,
    is_double: bool,
    rows: int,
    columns: int,
    by_rows: bool,
    largest: np.ndarray,
    finite: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def slices(
    x: np.ndarray,
    is_double: bool,
    rows: int,
    columns: int,
    by_rows: bool,
    powers: np.ndarray,
    balanced: bool,
    bits: int,
    planes: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def residues(
    x: np.ndarray,
    is_double: bool,
    rows: int,
    columns: int,
    by_rows: bool,
    powers: np.ndarray,
    bits: int,
    moduli: np.ndarray,
    planes: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def looked_up(
    x: np.ndarray,
    is_double: bool,
    rows: int,
    columns: int,
    by_rows: bool,
    powers: np.ndarray,
    bits: int,
    modulus: np.ndarray,
    tables: np.ndarray,
    planes: np.ndarray,
    level: int,
    threads: int,
) -> None: ...
def integers(
    x: np.ndarray,
    is_double: bool,
    rows: int,
    columns: int,
    by_rows: bool,
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
def reduce(
    product: np.ndarray, factor: float, modulus: float, accumulate: bool, out: np.ndarray, level: int, threads: int
) -> None: ...
def join_slices(
    arrays: list[np.ndarray],
    types: np.ndarray,
    steps: np.ndarray,
    row_exponents: np.ndarray,
    column_exponents: np.ndarray,
    row_powers: np.ndarray | None,
    column_powers: np.ndarray | None,
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
    row_exponents: np.ndarray,
    column_exponents: np.ndarray,
    row_powers: np.ndarray | None,
    column_powers: np.ndarray | None,
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
