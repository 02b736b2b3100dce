"""This package computes a schedule's product: arguments, words of operands, and the task of the compiled kernel."""
