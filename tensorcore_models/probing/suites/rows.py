"""Published test suites of matrix units by name; each is a table in the module of its name.

All are generalised from fp16 operands and fp32 results to any formats: P is the precision of the result, R = P - 1 its fraction
bits, p the smaller precision of the operands; all addends may be scaled by one power of two, so that 8-bit formats have them.
Where a published test misreads units, `valid` says for which units it does not; the sources claim more.
"""

from .fasi import FASI
from .fttn import FTTN
from .gnft import GNFT
from .hawkeye import HAWKEYE
from .model import PublishedTest
from .valpey import VALPEY

SUITES: dict[str, tuple[PublishedTest, ...]] = {
    "fasi": FASI,
    "gnft": GNFT,
    "fttn": FTTN,
    "valpey": VALPEY,
    "hawkeye": HAWKEYE,
}
