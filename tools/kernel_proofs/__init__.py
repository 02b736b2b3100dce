"""Lemmas of docs/proofs.md: that the kernels of the 32-bit and 64-bit lanes compute the fused sum that they are for.

`lemmas` is what a lemma is and how it is proved; `machine` has the operations that the kernels' C code is made of,
`narrow_lemmas` and `wide_lemmas` the statements, `proofs` the accumulators for which they add up to a proof. ``python tools/prove_kernels.py``
proves all of them.
"""
