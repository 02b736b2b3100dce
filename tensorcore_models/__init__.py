"""Bit-exact models of matrix multiply-accumulate hardware.

Number formats, rounding, splitting into words, accumulator algorithms, the catalogue of published
instructions, matrix engines, probes for black boxes, and runners for real hardware.
"""
