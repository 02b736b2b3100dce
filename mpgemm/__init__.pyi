# Recovery methods, their errors and bounds.
from mpgemm.amx import SgemmResult, sgemm, sgemm_report
from mpgemm.bounds.attribution import Attribution, attribute
from mpgemm.bounds.bounds import gemm_bound
from mpgemm.bounds.method_bounds import MethodBound, method_bound
from mpgemm.bounds.published_bounds import block_fma_bounds, multiword_bound
from mpgemm.bounds.tolerance_result import Tolerance
from mpgemm.bounds.tolerances import tolerance
from mpgemm.bounds.vacuity import Vacuity, check_tolerance
from mpgemm.exact.errors import ErrorMeter, ErrorReport, errors
from mpgemm.exact.mp import mp_gemm, mp_gemm_entries
from mpgemm.exact.product import ExactResult, exact_dot_integers, exact_gemm
from mpgemm.experiments.comparison import Comparison, ComparisonRecord, compare
from mpgemm.experiments.judging import verdict
from mpgemm.experiments.promotion import PromotionAdvice, advise_promotion
from mpgemm.experiments.slice_advice import SliceAdvice, slice_advice
from mpgemm.experiments.verdict import Verdict
from mpgemm.experiments.whodunit import Whodunit, whodunit
from mpgemm.explanations.dots import Explanation, explain
from mpgemm.explanations.two_engines import SideBySide, side_by_side
from mpgemm.recovery.engines import UnsuitableEngine, hypothetical_engine, ieee_engine, resolve_engine
from mpgemm.recovery.methods import RecoveryMethod, get_method, list_methods
from mpgemm.recovery.run import RecoveryResult, recovered_gemm, recovered_gemm_report

__all__ = [
    "Attribution",
    "Comparison",
    "ComparisonRecord",
    "Explanation",
    "ErrorMeter",
    "ErrorReport",
    "ExactResult",
    "MethodBound",
    "PromotionAdvice",
    "RecoveryMethod",
    "RecoveryResult",
    "SgemmResult",
    "SideBySide",
    "SliceAdvice",
    "Tolerance",
    "UnsuitableEngine",
    "Vacuity",
    "Verdict",
    "Whodunit",
    "advise_promotion",
    "attribute",
    "block_fma_bounds",
    "check_tolerance",
    "compare",
    "explain",
    "errors",
    "exact_dot_integers",
    "exact_gemm",
    "gemm_bound",
    "get_method",
    "hypothetical_engine",
    "ieee_engine",
    "list_methods",
    "method_bound",
    "mp_gemm",
    "mp_gemm_entries",
    "multiword_bound",
    "recovered_gemm",
    "recovered_gemm_report",
    "resolve_engine",
    "sgemm",
    "sgemm_report",
    "side_by_side",
    "slice_advice",
    "tolerance",
    "verdict",
    "whodunit",
]
