# Recovery methods, their errors and bounds.
from mpgemm.amx import SgemmResult as SgemmResult, sgemm as sgemm, sgemm_report as sgemm_report
from mpgemm.bounds.attribution import Attribution as Attribution, attribute as attribute
from mpgemm.bounds.bounds import gemm_bound as gemm_bound
from mpgemm.bounds.method_bounds import MethodBound as MethodBound, method_bound as method_bound
from mpgemm.bounds.published_bounds import block_fma_bounds as block_fma_bounds, multiword_bound as multiword_bound
from mpgemm.bounds.watching import OutsideBound as OutsideBound
from mpgemm.testing.tolerance_result import Tolerance as Tolerance
from mpgemm.testing.tolerances import tolerance as tolerance
from mpgemm.testing.tolerance_result import Vacuity as Vacuity, check_tolerance as check_tolerance
from mpgemm.exact.errors import ErrorMeter as ErrorMeter, ErrorReport as ErrorReport, errors as errors
from mpgemm.exact.mp import mp_gemm as mp_gemm, mp_gemm_entries as mp_gemm_entries
from mpgemm.exact.product import (
    ExactResult as ExactResult,
    exact_dot_integers as exact_dot_integers,
    exact_gemm as exact_gemm,
)
from mpgemm.experiments.comparison import (
    Comparison as Comparison,
    ComparisonRecord as ComparisonRecord,
    compare as compare,
)
from mpgemm.experiments.judging import verdict as verdict
from mpgemm.experiments.promotion import PromotionAdvice as PromotionAdvice, advise_promotion as advise_promotion
from mpgemm.experiments.slice_advice import SliceAdvice as SliceAdvice, slice_advice as slice_advice
from mpgemm.experiments.verdict import Verdict as Verdict
from mpgemm.experiments.whodunit import Whodunit as Whodunit, whodunit as whodunit
from mpgemm.explanations.dots import Explanation as Explanation, explain as explain
from mpgemm.explanations.two_engines import SideBySide as SideBySide, side_by_side as side_by_side
from mpgemm.recovery.engines import (
    UnsuitableEngine as UnsuitableEngine,
    hypothetical_engine as hypothetical_engine,
    ieee_engine as ieee_engine,
    resolve_engine as resolve_engine,
)
from mpgemm.recovery.methods import (
    RecoveryMethod as RecoveryMethod,
    get_method as get_method,
    list_methods as list_methods,
)
from mpgemm.recovered import (
    RecoveryResult as RecoveryResult,
    recovered_gemm as recovered_gemm,
    recovered_gemm_report as recovered_gemm_report,
)
