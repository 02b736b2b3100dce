"""This package is the term language in which accumulators are stated for SMT solvers.

`terms` holds bit-vectors and `integers` holds integers of known range built from them, on which
:mod:`tensorcore_models.arithmetic` works as on plain integers. `passes` holds passes of accumulators whose encodings are terms.
"""
