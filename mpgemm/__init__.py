"""FP32-accuracy GEMM recovered from low-precision matrix engines, with exact errors."""

# ruff: noqa: F401  (what is imported here is the public interface)
# Recovery methods, their errors and bounds.
from mpgemm.amx import SgemmResult, sgemm, sgemm_report
from mpgemm.bounds.attribution import Attribution, attribute
from mpgemm.bounds.bounds import block_fma_bounds, gemm_bound, multiword_bound
from mpgemm.bounds.describe import Description, describe
from mpgemm.bounds.method_bounds import MethodBound, method_bound
from mpgemm.bounds.tolerances import Tolerance, tolerance
from mpgemm.bounds.two_engines import SideBySide, side_by_side
from mpgemm.bounds.vacuity import Vacuity, check_tolerance
from mpgemm.exact.errors import ErrorMeter, ErrorReport, errors
from mpgemm.exact.mp import mp_gemm, mp_gemm_entries
from mpgemm.exact.product import ExactResult, exact_dot_integers, exact_gemm
from mpgemm.experiments.comparison import Comparison, ComparisonRecord, compare
from mpgemm.experiments.promotion import PromotionAdvice, advise_promotion
from mpgemm.recovery.engines import UnsuitableEngine, hypothetical_engine, ieee_engine, resolve_engine
from mpgemm.recovery.methods import RecoveryMethod, get_method, list_methods
from mpgemm.recovery.run import RecoveryResult, recovered_gemm, recovered_gemm_report
