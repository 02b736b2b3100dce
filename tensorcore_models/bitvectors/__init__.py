"""The term language in which accumulators are stated for SMT solvers.

`terms` are bit-vectors, `integers` numbers of known range on top of them, `numbers` floating-point encodings taken apart,
`sums` sums of them aligned to a common exponent, `arithmetic` what families say a pass in; `passes` is what one pass is given.
"""
