"""This package computes special functions of GPUs, and sequences of instructions around them, on arrays of encodings."""
