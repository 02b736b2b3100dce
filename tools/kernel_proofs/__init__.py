"""This package holds the lemmas of docs/proofs.md: the kernels of 32-bit and 64-bit lanes compute their fused sum.

`lemmas` defines a lemma and its proof. `machine` has the operations of the kernels' C code. `narrow_lemmas`,
`down_lemmas`, `wide_lemmas` and `group_lemmas` have the statements, `proofs` the accumulators for which they add up to
a proof. ``python tools/prove_kernels.py`` proves all.
"""
