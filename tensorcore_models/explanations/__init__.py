"""What a sum computes, for readers: the words and formulas of every accumulator, and the order of a sum as a tree.

`words` has one row for each class of accumulator, `orders` makes trees of accumulators and of recipes, `tree` is the tree with
its text, `drawing` draws boxes as SVG.
"""
