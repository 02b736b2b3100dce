"""This package checks an installed package: fast kernels against their exact twins, and models against outputs of real GPUs.

``hardware.npz`` holds a sample of the outputs of V100, A100, A2, RTX 1000 Ada, L40S, H100, H200 and B200 that
north-numerical-computing/MATLAB-tensor-core publishes (BSD-2-Clause, copyright 2025 Faizan A. Khattak and Mantas
Mikaitis), and a sample of outputs of an H100 that this project recorded; ``tools/make_selftest_vectors.py`` draws both.
"""
