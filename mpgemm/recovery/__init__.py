"""Describes recovery methods as rows of data and runs them on any matrix engine.

`rows` and `methods` describe the methods, `run` binds a method to operands, `word_run` splits operands into floating-point
words, and `arithmetic` sums the products of these words. `integer_words`, `integer_run` and `integer_joins` do the same for
integers.
"""
