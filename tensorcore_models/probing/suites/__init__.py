"""Run test suites against any engine: the published ones, and :mod:`.package_suite`.

The published tests are data, one module for each suite (:data:`SUITES` has them). A run gives a table of features, evidence and
verdicts. The verdicts are the authors'; some misread units that the authors did not have (khattak-mikaitis, section V-A).
`misread` lists such tests for a modelled unit. `tensorcore_models.probing.characterise`, this package's own suite, avoids these
errors and returns its findings as one result.
"""

from .model import PublishedTest, Truth
from .table import SUITES, Judged, SuiteRow, SuiteTable, judged, misread, run, truth_of

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
