"""What a sum computes, for readers: the words and formulas of every accumulator, and the order of a sum as a tree.

`words`, `tree` and `sums` are what accumulators are described in: sentences and formulas, a tree with its text, and a builder
of trees. `engine_words` and `orders` ask the accumulators of engines and recipes; `drawing` draws boxes as SVG.
"""
