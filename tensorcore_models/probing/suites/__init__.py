"""Published test suites, run against any engine: a table of features, evidence vectors and verdicts.

The tests are data, one module for each suite (:mod:`.rows` names them). Their verdicts are theirs: some misread units that
their authors did not have (khattak-mikaitis, section V-A; `misread` says which tests do so on a modelled unit). The probes of
`tensorcore_models.probing.characterise` do not.
"""

from .model import PublishedTest, Truth
from .rows import SUITES
from .table import Judged, SuiteRow, SuiteTable, judged, misread, run, truth_of

__all__ = [
    "SUITES",
    "Judged",
    "PublishedTest",
    "SuiteRow",
    "SuiteTable",
    "Truth",
    "judged",
    "misread",
    "run",
    "truth_of",
]
