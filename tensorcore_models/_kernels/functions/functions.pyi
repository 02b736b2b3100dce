from numpy import ndarray

class Sequence:
    def __init__(
        self, steps: ndarray, values: ndarray, operands: int, result: int, coefficients: ndarray, units: ndarray
    ) -> None: ...
    def run(self, x: ndarray, y: ndarray | None, out: ndarray, level: int, threads: int) -> None: ...
