"""This module fits the two free parameters of the timing model to the two speeds that the paper publishes.

The parameters were chosen before fitting, by their meaning: the cube cycles lost to flags and scalar work for every
block, which slow single and double buffering, and the fraction of a B load that stops the cube in spite of double
buffers (the paper's alpha in T_comp + alpha T_mem, section 5.1.2), which does not affect single buffering. So the
single-buffered speed alone determines the first parameter, and the double-buffered speed the second.

The paper does not give the matrix size of these speeds; 5632 x 2816 x 5632 is assumed (32 row blocks of 176 and one k
group of 44 blocks of 64).
"""

from collections.abc import Callable
from typing import NamedTuple

from ascend.blocking import Blocking, Buffering
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.pipes.simulate import simulate
from ascend.planner.plan import plan
from ascend.schedule import build_schedule

Size = tuple[int, int, int]
#: SGEMM-cube, section 6.3, on 910A: TFLOP/s of the best block, (176, 64, 176).
PUBLISHED_SINGLE = 41.7
PUBLISHED_DOUBLE = 65.3
PUBLISHED_BLOCK = Blocking(176, 64, 176)
#: Assumed m, k, n of these speeds.
ASSUMED_SIZE = (5632, 2816, 5632)


class Calibration(NamedTuple):
    """`Calibration` is the result of the fit: the parameters, and TFLOP/s before and after it (single, double)."""

    sync_cycles_per_block: float
    non_overlapped_fraction: float
    nominal: tuple[float, float]
    calibrated: tuple[float, float]


def speed(
    chip: Chip, size: Size = ASSUMED_SIZE, block: Blocking = PUBLISHED_BLOCK, buffering: Buffering = "double"
) -> float:
    """Return TFLOP/s of a block at a size (m, k, n)."""
    return simulate(build_schedule(*size, chip, block, buffering=buffering)).tflops


def predict(chip: Chip, size: Size = ASSUMED_SIZE) -> tuple[float, float]:
    """Return the predicted TFLOP/s of the published block, (single, double) buffered."""
    return speed(chip, size, buffering="single"), speed(chip, size)


def fit(chip: Chip, size: Size = ASSUMED_SIZE) -> Calibration:
    """Fit the two parameters to 41.7 and 65.3 TFLOP/s. Raises ValueError if the model is slower even without the losses."""
    ideal = chip.replace(sync_cycles_per_block=0, non_overlapped_fraction=0)
    nominal = predict(ideal, size)
    sync = _decreasing_root(
        lambda x: speed(ideal.replace(sync_cycles_per_block=x), size, buffering="single"),
        PUBLISHED_SINGLE, 1000.0, "sync_cycles_per_block",
    )  # fmt: skip
    synced = ideal.replace(sync_cycles_per_block=sync)
    fraction = _decreasing_root(
        lambda x: speed(synced.replace(non_overlapped_fraction=x), size),
        PUBLISHED_DOUBLE, 1.0, "non_overlapped_fraction",
    )  # fmt: skip
    return Calibration(sync, fraction, nominal, predict(synced.replace(non_overlapped_fraction=fraction), size))


def _decreasing_root(f: Callable[[float], float], target: float, high: float, name: str) -> float:
    """Return the point of [0, high] where the decreasing `f` has the value `target`, by bisection."""
    if not f(0.0) >= target >= f(high):
        raise ValueError(
            f"no value of {name} between 0 and {high:g} gives {target} TFLOP/s: give a target from {f(high):.1f} to "
            f"{f(0.0):.1f}"
        )
    low = 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) > target else (low, middle)
        if high - low < 1e-6 * high:
            break
    return (low + high) / 2


class Statement(NamedTuple):
    """`Statement` is a published statement beside the model's value, in TFLOP/s unless the text says otherwise."""

    statement: str
    published: str
    nominal: float
    calibrated: float
    used_in_fit: bool


def statements() -> list[Statement]:
    """Return the published speeds on 910A and 910B3, each with the nominal and the calibrated prediction."""
    nominal = get_chip("910A")
    chips = (nominal, nominal.with_calibration())
    m, k, n = ASSUMED_SIZE
    square = Blocking(96, 64, 96)

    def both(f: Callable[[Chip], float]) -> tuple[float, float]:
        return f(chips[0]), f(chips[1])

    def best(block: Blocking, size: Size) -> Callable[[Chip], float]:
        return lambda chip: speed(chip, size, block)

    def k_spread(chip: Chip) -> float:
        values = [speed(chip, (m, factor * k, n)) for factor in (1, 2, 3, 4, 6)]
        return min(values) / max(values)

    large = 3 * m
    sgemm = plan(8192, 8192, 8192, get_chip("910B3"), terms=1, operand="fp32", kernel="paper", simulated=50, top=1)[0]
    return [
        Statement("single buffer, (176, 64, 176)", "41.7", *both(lambda chip: predict(chip)[0]), True),
        Statement("double buffer, (176, 64, 176)", "65.3", *both(lambda chip: predict(chip)[1]), True),
        Statement("double over single", "1.566", *both(lambda chip: predict(chip)[1] / predict(chip)[0]), True),
        Statement("double buffer, (96, 64, 96), the traffic optimum", "below 176", *both(best(square, ASSUMED_SIZE)), False),
        Statement(f"m = n = {large}, k = {k}", "over 60", *both(best(PUBLISHED_BLOCK, (large, k, large))), False),
        Statement("k from 2816 to 16896: slowest over fastest", "stable", *both(k_spread), False),
        Statement(f"k = {4 * k}", "about 60", *both(best(PUBLISHED_BLOCK, (m, 4 * k, n))), False),
        Statement(f"910B3, FP32, 8192^3, best block {sgemm.blocking}", "about 63", sgemm.tflops, sgemm.tflops, False),
    ]  # fmt: skip
