"""States the FP32 product that others are held against."""

#: Products of a chain of it: fused multiply-adds from zero, in order of k; the chains are added up in FP32.
FP32_CHAIN = 256
#: So many bits less reach it: two FP32 products of one input differ by as much (docs/answers.md).
MARGIN = 0.75
