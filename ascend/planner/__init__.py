"""This package plans a product: it ranks candidates by closed forms, simulates the best, and gives alternatives."""
