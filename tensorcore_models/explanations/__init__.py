"""Defines how accumulators and orders are described: in words and formulas, as trees of sums, and as drawings of boxes.

`engines.description` makes the description of an engine, and `orders.trees` the trees of accumulators and recipes.
"""
