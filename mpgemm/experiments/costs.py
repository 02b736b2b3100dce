"""Computes a method's cost on a device: its engine products of the full size over the device's peak rate for their operands.

The rate is the dense one of the vendor's data sheet (:mod:`tensorcore_models.catalogue.rates`), or the user's. Splits, sums
outside of the matrix unit and memory are left out. Where no rate is known, none is made up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpgemm.experiments.recovery_methods import MethodOnEngine
from tensorcore_models.catalogue import canonical_device
from tensorcore_models.catalogue.rates import DATA_SHEETS, DataSheet

#: Results of the products that the rates of data sheets are for: some devices are faster with sums in FP16.
_SUMS = ("fp32", "fp64", "s32")


@dataclass(frozen=True)
class Rate:
    """A peak rate in TFLOP/s (TOP/s for integers), and whose statement it is."""

    tflops: float
    source: str

    def milliseconds(self, products: int) -> float:
        """Return the time at this rate of `products` products of 10^12 operations each (2 m k n = 10^12)."""
        return 1000 * products / self.tflops


def data_sheet(requested: str) -> DataSheet | None:
    """Return the data sheet of the device that an engine's name begins with ("a100", "h100/wgmma"), None where it names
    none."""
    try:
        return DATA_SHEETS.get(canonical_device(requested.partition(":")[0].partition("/")[0]))
    except ValueError:
        return None


def rate_of(pair: MethodOnEngine, rates: Mapping[str, float], operands: str | None = None) -> Rate | None:
    """Return the rate of a pair's engine, None where nobody states it: the user's first; `operands`: of its device's native
    product instead."""
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
    """Refuse rates of engines that are not compared, and rates that are none. Raises ValueError."""
    engines = {name for pair in pairs for name in (pair.requested, pair.engine.label)}
    for name, tflops in rates.items():
        if name not in engines:
            raise ValueError(
                f"a rate is given for {name!r}, which is not among the compared engines {', '.join(sorted(engines))}"
            )
        if not 0 < tflops < float("inf"):
            raise ValueError(f"the rate of {name} is {tflops:g}, expected TFLOP/s above 0")
