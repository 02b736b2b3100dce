"""The term language in which accumulators are stated for SMT solvers.

`terms` are bit-vectors, `integers` numbers of known range on top of them, `numbers` floating-point encodings taken apart,
`sums` sums of them aligned to a common exponent; `passes` is what one pass of an accumulator is given.
"""
