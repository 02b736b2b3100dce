"""Bounds the error of a result and takes it apart into its causes."""
