"""This module defines the FP32 product that other products are compared with."""

#: Products in one FP32 chain of the baseline: fused multiply-adds from zero, in order of k; FP32 additions join the chains.
FP32_CHAIN = 256
#: Tolerance in bits for reaching the baseline, because two FP32 products of one input differ by as much (docs/answers.md).
MARGIN = 0.75
