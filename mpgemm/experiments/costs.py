"""Computes a method's cost on a device: its number of engine products over the device's peak rate for their operands.

The rate is the dense rate of the vendor's data sheet (:mod:`tensorcore_models.catalogue.rates`), or the user's. The cost
leaves out splits, sums outside of the matrix unit, and memory. A method on an engine without a known rate has no cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpgemm.experiments.recovery_methods import MethodOnEngine
from tensorcore_models.catalogue import canonical_device
from tensorcore_models.catalogue.rates import DATA_SHEETS, DataSheet

#: Result formats to which the rates of data sheets apply; some devices are faster with FP16 sums.
_SUMS = ("fp32", "fp64", "s32")


@dataclass(frozen=True)
class Rate:
    """`Rate` is a peak rate in TFLOP/s (TOP/s for integers) and its source."""

    tflops: float
    source: str

    def milliseconds(self, products: int) -> float:
        """Return the time at this rate of `products` products of 10^12 operations each (2 m k n = 10^12)."""
        return 1000 * products / self.tflops


def data_sheet(requested: str) -> DataSheet | None:
    """Return the data sheet of the device that an engine's name begins with ("a100", "h100/wgmma"), None if there is none."""
    try:
        return DATA_SHEETS.get(canonical_device(requested.partition(":")[0].partition("/")[0]))
    except ValueError:
        return None


def rate_of(pair: MethodOnEngine, rates: Mapping[str, float], operands: str | None = None) -> Rate | None:
    """Return the rate of a pair's engine, None if no source states it; the user's rate comes first.

    operands: format of the device's native product, if that ran instead of the engine's.
    """
    a_format, _, _, d_format = pair.engine.formats
    if operands is None or operands == a_format.name:
        for name in (pair.requested, pair.engine.label):
            if name in rates:
                return Rate(rates[name], "given")
        if (own := getattr(pair.engine, "tflops", None)) is not None:
            return Rate(own, "stated by the engine's owner")
        if d_format.name not in _SUMS:
            return None
    sheet = data_sheet(pair.requested)
    found = None if sheet is None else sheet.rate(operands or a_format.name)
    return None if sheet is None or found is None else Rate(found, sheet.source)


def check_rates(rates: Mapping[str, float], pairs: Sequence[MethodOnEngine]) -> None:
    """Raise ValueError for rates of engines that are not compared, and for rates that are not finite and above 0."""
    engines = {name for pair in pairs for name in (pair.requested, pair.engine.label)}
    for name, tflops in rates.items():
        if name not in engines:
            raise ValueError(
                f"got a rate for {name!r}, expected one of the compared engines {', '.join(sorted(engines))}"
            )
        if not 0 < tflops < float("inf"):
            raise ValueError(f"the rate of {name} is {tflops:g}, expected a finite number of TFLOP/s above 0")
