"""Figures and tables of papers, computed again with this package's models: what `mpgemm reproduce` runs."""
