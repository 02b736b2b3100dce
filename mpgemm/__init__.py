"""FP32-accuracy GEMM recovered from low-precision matrix engines, with exact errors."""
