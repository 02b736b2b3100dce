"""The term language in which accumulators are stated for SMT solvers.

`terms` are bit-vectors, `integers` numbers of known range on top of them: on those :mod:`tensorcore_models.arithmetic` works as
on plain integers. `passes` has passes of accumulators whose encodings are terms.
"""
