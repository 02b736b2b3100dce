"""Computes figures and tables of papers again with this package's models, for `mpgemm reproduce`."""
