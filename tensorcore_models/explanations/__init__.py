"""Accumulators and orders are described in three things: words and formulas, trees of sums, and drawings of boxes.

The words of an engine are put together in `engines.description`; `orders.trees` draws what accumulators and recipes say.
"""
