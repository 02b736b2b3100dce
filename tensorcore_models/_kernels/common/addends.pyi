from numpy import ndarray

def prepare(
    values: ndarray, marks: ndarray, least: int, beyond: int, scale: float, tiny: int, level: int, threads: int
) -> int: ...
