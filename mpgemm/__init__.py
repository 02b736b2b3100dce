"""FP32-accuracy GEMM recovered from low-precision matrix engines, with exact errors."""

# ruff: noqa: F401  (what is imported here is the public interface)
from mpgemm.errors import ErrorMeter, ErrorReport, errors
from mpgemm.exact import ExactResult, exact_gemm
from mpgemm.mp import mp_gemm
