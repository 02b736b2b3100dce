from numpy import ndarray

NEAREST: int
ODD: int
DIFFERENCE: int
BLOCK: int

class Product:
    def __init__(
        self, a: ndarray, a_double: bool, b: ndarray, b_double: bool, m: int, k: int, n: int, level: int, threads: int
    ) -> None: ...
    def units(self, row_units: ndarray, column_units: ndarray) -> None: ...
    def expansion(self, high: ndarray, low: ndarray, open: ndarray) -> None: ...
    def rounded_fp32(self, c: ndarray | None, out: ndarray, open: ndarray) -> None: ...

def finish(
    high: ndarray,
    low: ndarray,
    row_units: ndarray,
    column_units: ndarray,
    c: ndarray | None,
    x: ndarray | None,
    what: int,
    out: ndarray,
    level: int,
    threads: int,
) -> None: ...
def dots(
    a: tuple[ndarray, bool],
    b: tuple[ndarray, bool],
    steps: tuple[int, int, int],
    rows: ndarray,
    columns: ndarray,
    c: ndarray | None,
    x: ndarray | None,
    what: int,
    out: ndarray,
    threads: int,
) -> None: ...
