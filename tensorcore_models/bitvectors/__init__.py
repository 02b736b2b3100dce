"""The term language in which specifications are stated for SMT solvers.

`terms` are bit-vectors, `integers` numbers of known range on top of them, `numbers` floating-point encodings taken apart.
"""
